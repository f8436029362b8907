"""What is told about a study: plain values for scripts, text for people. Nothing here changes or locks anything."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence

from trimtuner.decisions.belief import Places
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.rows import row_of_measurement
from trimtuner.state import StudyState
from trimtuner.tuning.pareto import KEPT, Front
from trimtuner.tuning.recommendation import Recommendation
from trimtuner.views.progress import progress, progress_line
from trimtuner.views.spend import money_lines, money_words, spend
from trimtuner.views.timeline import timeline, timeline_lines
from trimtuner.views.trials import rows, trials_table
from trimtuner.views.words import (
    Signs,
    configuration,
    count_of,
    estimate,
    metric,
    share,
    signs_for,
    usd,
    value_text,
    why_over,
    words_instead,
)


def status(state: StudyState) -> dict[str, object]:
    """Money, trials and the recommendation in plain values."""
    recommendation = state.recommendation
    return {
        "study": state.name,
        "record": state.place,
        "differs_from_record": list(state.differing),
        "runs": state.runs,
        "budget_usd": state.money.budget,
        "spent_usd": state.money.spent,
        "reserved_usd": state.money.reserved,
        "left_usd": state.money.left,
        "trials": _counts(state),
        "running": [_running(state, trial) for trial in state.history.pending],
        "recommendation": None if recommendation is None else recommended(state, recommendation),
        **({"learns_from": state.learns_from} if state.recipe.earlier else {}),
    }


def _counts(state: StudyState) -> dict[str, int]:
    """Trials by what became of them."""
    ended = state.history.outcomes
    forgotten = sum(one.is_forgotten for one in ended)
    over = sum(one.is_over_limit for one in ended)
    failed = sum(one.failed is not None for one in ended) - forgotten - over
    return {
        "succeeded": len(ended) - failed - forgotten - over,
        "over_limit": over,
        "failed": failed,
        "running": len(state.history.pending),
        "forgotten": forgotten,
    }


def _running(state: StudyState, trial: Trial) -> dict[str, object]:
    attempts = [one for one in state.attempts if one.trial == trial.number]
    started = attempts[-1].started_at if attempts else None
    return {
        "trial": trial.number,
        "attempt": attempts[-1].attempt if attempts else 1,
        "config": dict(trial.config),
        "fraction": trial.fraction,
        "seconds": None if started is None else round(state.now - started, 1),
        "watched": trial.number not in state.unwatched,
    }


def recommended(state: StudyState, recommendation: Recommendation) -> dict[str, object]:
    """A recommendation in plain values."""
    return {
        "config": dict(recommendation.config),
        "fraction": recommendation.fraction,
        "estimates": {
            name: {"mean": one.mean, "low": one.low, "high": one.high} for name, one in recommendation.estimates.items()
        },
        "chances": dict(recommendation.feasible),
        "chance_feasible": recommendation.chance_feasible,
        "measured": recommendation.is_measured,
        "command": list(state.command(recommendation)),
    }


def answered(state: StudyState, recommendation: Recommendation) -> dict[str, object]:
    """The recommendation in plain values, and the front that it is the knee of, where one is the goal."""
    front = state.front
    told = recommended(state, recommendation)
    if front is None:
        return told
    points = [
        {**recommended(state, point), "is_knee": point is front.knee, "price": price, "quality": quality}
        for point, price, quality in zip(front, front.prices, front.qualities, strict=True)
    ]
    return {**told, "price_metric": front.price_metric, "quality_metric": front.quality_metric, "front": points}


def status_text(state: StudyState) -> str:
    """Money, trials and the recommendation, for a person."""
    counts, recommendation = _counts(state), state.recommendation
    lines = [f"{state.name}  ({state.place})"]
    lines += _shown(lambda: money_lines(spend(state), signs()))
    forgotten = f", {counts['forgotten']} forgotten" if counts["forgotten"] else ""
    over = f"{counts['over_limit']} stopped over a limit, " if counts["over_limit"] else ""
    told = f"trials: {counts['succeeded']} succeeded, {over}{counts['failed']} failed{forgotten}"
    lines.append(f"{told}, {_open_words(counts['running'], state)}")
    if state.attempts:
        lines += _shown(lambda: timeline_lines(timeline(state), signs()))
    lines += [*learning_lines(state), ""]
    if recommendation is None:
        return "\n".join([*lines, "nothing measured yet"])
    lines += _shown(lambda: [progress_line(progress(state), state.problem.goal, signs())])
    return "\n".join([*lines, best_text(state, recommendation)])


def _shown(lines: Callable[[], list[str]]) -> list[str]:
    """Lines of a view, or why they cannot be shown: one that fails takes nothing else with it."""
    try:
        return lines()
    except Exception as error:
        return [words_instead(error)]


def _open_words(count: int, state: StudyState) -> str:
    """Such as ``2 running; 1 run at work`` or ``2 under way that no run watches; no run at work``."""
    lost = len(state.unwatched)
    parts = [f"{count - lost} running"] + ([f"{lost} under way that no run watches"] if lost else [])
    at_work = f"{count_of(state.runs, 'run') if state.runs else 'no run'} at work"
    why = f" (the last one ended: {why_over(state.why_over)})" if state.why_over and not state.runs else ""
    return f"{', '.join(parts)}; {at_work}{why}"


def signs() -> Signs:
    """What this terminal can show."""
    return signs_for(sys.stdout.encoding)


def money_line(state: StudyState) -> str:
    """What is spent, reserved and left, in one line."""
    return money_words(spend(state))


def best_text(state: StudyState, recommendation: Recommendation) -> str:
    """The recommendation, and the command line that trains it; below the front, where one is the goal."""
    front = state.front
    told = recommendation_text(state, recommendation)
    return told if front is None else f"{front_text(front)}\n\nthe knee is {told}"


def learning_lines(state: StudyState) -> list[str]:
    """A line for each earlier study that this one learns from, with how much of each model stands on it by now."""
    lines = []
    for one in state.learns_from:
        text, weights = f"learns from {one['study']} ({one['measurements']} measurements)", one["weights"]
        told = ", ".join(f"{weight:.2f} for {name}" for name, weight in weights.items())
        lines.append(f"{text}: weight {told}" if told else text)
    return lines


def front_text(front: Front) -> str:
    """The best for every price, in one line each."""
    rows = [
        [
            metric(front.price_metric, price),
            metric(front.quality_metric, quality),
            "measured" if point.is_measured else "predicted",
            "<- knee" if point is front.knee else "",
            configuration(point.config),
        ]
        for point, price, quality in zip(front, front.prices, front.qualities, strict=True)
    ]
    lead = f"the best {front.quality_metric} for every {front.price_metric}"
    note = "" if all(point.is_measured for point in front) else f"; {KEPT}"
    heads = [front.price_metric, front.quality_metric, "", "", "configuration"]
    return f"{lead}{note}:\n{table_text(heads, rows)}"


def recommendation_text(state: StudyState, recommendation: Recommendation) -> str:
    """One recommendation, and the command line that trains it."""
    limits = recommendation.feasible
    lines = ["recommended:" if recommendation.is_feasible else "least infeasible (nothing known meets every limit):"]
    lines += [f"  {name} = {value_text(value)}" for name, value in recommendation.config.items()]
    lines.append(f"  on {share(recommendation.fraction)} of the data")
    word = "measured" if recommendation.is_measured else "predicted"
    risk = _risk_text(state, recommendation)
    for name, one in recommendation.estimates.items():
        lines.append(f"  {word} {name}{risk if name in (COST, TIME) else ''}: {estimate(name, one)}")
    lines += [f"  P({limit}) = {chance:.2f}" for limit, chance in limits.items()]
    command = state.command(recommendation)
    lines += [f"train it with: {shlex.join(command)}"] if command else []
    return "\n".join(lines)


def _risk_text(state: StudyState, recommendation: Recommendation) -> str:
    rate = state.problem.space.interruptions_per_hour(dict(recommendation.config))
    return ", interruptions added" if rate > 0 else ""


def savings_text(state: StudyState) -> str | None:
    """What the search cost, against what training every configuration on all of the data is predicted to cost."""
    belief = None if state.belief is None else state.belief.undisturbed
    if belief is None or not state.problem.space.is_enumerable or belief.effort_metric != COST:
        return None
    everywhere = Places.product(belief.pool, (1.0,))
    every, spent = float(belief.expected(COST, everywhere).sum()), state.money.spent
    text = f"the search cost {usd(spent)}; training all {len(everywhere)} configurations on all of the data would cost "
    return f"{text}about {usd(every)}" + (f", {every / spent:.0f} times as much" if 0 < spent < every else "")


def trial_rows(state: StudyState) -> list[dict[str, object]]:
    """Every trial, in the order of their numbers."""
    return [
        {
            "trial": row.trial,
            "config": dict(row.config),
            "fraction": row.fraction,
            "origin": row.origin,
            "state": row.state,
            "cost": row.cost,
            "time": row.time,
            "metrics": dict(row.metrics),
            "snapshots": [{"fraction": fraction, **measured} for fraction, measured in row.snapshots],
            "attempts": row.attempts,
            "breaks": list(row.breaks),
            "notes": list(row.notes),
        }
        for row in rows(state)
    ]


def measurement_rows(state: StudyState) -> list[dict[str, Value]]:
    """Every measurement, snapshots included: what ``import`` takes."""
    return [
        row_of_measurement(measurement)
        for outcome in sorted(state.history.outcomes, key=lambda one: one.trial.number)
        for measurement in outcome.measurements
    ]


def trials_text(state: StudyState) -> str:
    """A table for a person."""
    found = rows(state)
    if not found:
        return "no trials yet"
    listed = trials_table(state, found)
    noted = [f"trial {row.trial}: {note}" for row in found for note in row.notes]
    return "\n".join([table_text(listed.heads, listed.lines), *noted])


def brief(trial: Trial) -> str:
    """A trial in one line."""
    return f"{configuration(trial.config)} on {share(trial.fraction)} of the data"


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last may be as long as it likes."""
    every = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in every) for i in range(len(heads) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in every
    )
