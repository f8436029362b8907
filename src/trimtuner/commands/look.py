"""What is told about a study: plain values for scripts, text for people. Nothing here changes or locks anything."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trimtuner.decisions.belief import Places
from trimtuner.errors import InputError, NoAnswer
from trimtuner.jobs.differing import differences_from
from trimtuner.jobs.learning import learnt, learnt_lines
from trimtuner.jobs.studies import JobStudy
from trimtuner.jobs.subjects import subject_of
from trimtuner.problem.history import History, Trial
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.rows import row_of_measurement
from trimtuner.records import StudyView
from trimtuner.state import StudyState
from trimtuner.study.owners import is_alive
from trimtuner.study.study import Study
from trimtuner.tuning import tuner
from trimtuner.tuning.front import KEPT, Front, price_sought
from trimtuner.tuning.recommendation import Estimate, Recommendation
from trimtuner.views.progress import progress
from trimtuner.views.spend import spend
from trimtuner.views.tables import trials_table
from trimtuner.views.terminal import Signs, money_lines, money_words, progress_line, signs_for, timeline_lines
from trimtuner.views.trials import rows, timeline, told_metrics
from trimtuner.views.words import configuration, count_of, metric, number, share, usd, value_text, words_instead


@dataclass(frozen=True)
class Look:
    """A study as it stands."""

    of: JobStudy
    study: Study
    view: StudyView

    @classmethod
    def at(cls, of: JobStudy) -> Look:
        """Read it."""
        study, view = of.open_to_read()
        return cls(of, study, view)

    @property
    def history(self) -> History:
        """What happened."""
        return self.study.history

    def recommendation(self) -> Recommendation | None:
        """The recommendation; nothing before something was measured."""
        return self.study.recommend() if self.history.measurements else None

    def front(self) -> Front | None:
        """The best for every price, where that is the goal and something is likely to meet the limits."""
        if self.study.problem.goal.against is None or not self.history.measurements:
            return None
        try:
            return self.study.front()
        except NoAnswer:
            return None

    @property
    def differing(self) -> tuple[str, ...]:
        """How the job file differs from the study in its record, a line each."""
        return differences_from(self.of.job, self.view)

    def learns_from(self) -> list[dict[str, object]]:
        """The earlier studies, and how much each counts by now, in plain values."""
        return learnt(self.study.recipe.earlier, self.study.belief_at_hand(self.history))

    def learning_lines(self) -> list[str]:
        """The same for a person."""
        return learnt_lines(self.study.recipe.earlier, self.study.belief_at_hand(self.history))

    def command(self, recommendation: Recommendation) -> tuple[str, ...]:
        """The words that train what is recommended."""
        run = self.of.job.run
        return run.command_for(recommendation.config, recommendation.fraction, self.history.next_number)


def status(look: Look) -> dict[str, object]:
    """Money, trials and the recommendation."""
    now = look.view.status()
    recommendation = look.recommendation()
    alive = [owner for owner in look.view.owners() if is_alive(owner)]
    watched = {owner.id for owner in alive}
    open_trials, at = look.view.open_trials(), look.view.now()
    return {
        "study": look.of.job.name,
        "record": str(look.of.job.storage),
        "differs_from_record": list(look.differing),
        "runs": len(alive),
        "budget_usd": now.budget,
        "spent_usd": now.spent,
        "reserved_usd": now.reserved,
        "left_usd": now.left,
        "trials": {
            "succeeded": now.succeeded,
            "failed": now.failed,
            "running": now.open,
            "forgotten": now.forgotten,
        },
        "running": [
            {
                "trial": one.trial.number,
                "attempt": one.attempt,
                "config": dict(one.trial.config),
                "fraction": one.trial.fraction,
                "seconds": None if one.started_at is None else round(at - one.started_at, 1),
                "watched": one.owner in watched,
            }
            for one in open_trials
        ],
        "recommendation": None if recommendation is None else recommended(look, recommendation),
        **({"learns_from": look.learns_from()} if look.study.recipe.earlier else {}),
    }


def recommended(look: Look, recommendation: Recommendation) -> dict[str, object]:
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
        "command": list(look.command(recommendation)),
    }


def answered(look: Look, recommendation: Recommendation) -> dict[str, object]:
    """The recommendation in plain values, and the front that it is the knee of, where one is the goal."""
    front = look.front()
    told = recommended(look, recommendation)
    if front is None:
        return told
    points = [
        {**recommended(look, point), "is_knee": point is front.knee, "price": price, "quality": quality}
        for point, price, quality in zip(front, front.prices, front.qualities, strict=True)
    ]
    return {**told, "price_metric": front.price_metric, "quality_metric": front.quality_metric, "front": points}


def status_text(look: Look) -> str:
    """For a person."""
    now, recommendation = look.view.status(), look.recommendation()
    subject = subject_of(look.of, look.study, look.view)
    lines = [f"{look.of.job.name}  ({look.of.job.storage})"]
    lines += _shown(lambda: money_lines(spend(subject), signs()))
    forgotten = f", {now.forgotten} forgotten" if now.forgotten else ""
    lines.append(f"trials: {now.succeeded} succeeded, {now.failed} failed{forgotten}, {_open_words(now.open, subject)}")
    if subject.attempts:
        lines += _shown(lambda: timeline_lines(timeline(subject), signs()))
    lines += [*look.learning_lines(), ""]
    if recommendation is None:
        return "\n".join([*lines, "nothing measured yet"])
    lines += _shown(lambda: [progress_line(progress(subject), look.study.problem.goal, signs())])
    return "\n".join([*lines, best_text(look, recommendation)])


def _shown(lines: Callable[[], list[str]]) -> list[str]:
    """Lines of a view, or why they cannot be shown: one that fails takes nothing else with it."""
    try:
        return lines()
    except Exception as error:
        return [words_instead(error)]


def _open_words(count: int, subject: StudyState) -> str:
    """Such as ``2 running; 1 run at work`` or ``2 under way that no run watches; no run at work``."""
    lost = len(subject.unwatched)
    parts = [f"{count - lost} running"] + ([f"{lost} under way that no run watches"] if lost else [])
    return f"{', '.join(parts)}; {count_of(subject.runs, 'run') if subject.runs else 'no run'} at work"


def signs() -> Signs:
    """What this terminal can show."""
    return signs_for(sys.stdout.encoding)


def money_line(look: Look) -> str:
    """Spent, reserved and left."""
    return money_words(spend(subject_of(look.of, look.study, look.view)))


def best_text(look: Look, recommendation: Recommendation) -> str:
    """The recommendation, and the command line that trains it; below the front, where one is the goal."""
    front = look.front()
    told = recommendation_text(look, recommendation)
    return told if front is None else f"{front_text(front)}\n\nthe knee is {told}"


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


def recommendation_text(look: Look, recommendation: Recommendation) -> str:
    """One recommendation, and the command line that trains it."""
    limits = recommendation.feasible
    lines = ["recommended:" if recommendation.is_feasible else "least infeasible (nothing known meets every limit):"]
    lines += [f"  {name} = {value_text(value)}" for name, value in recommendation.config.items()]
    lines.append(f"  on {share(recommendation.fraction)} of the data")
    word = "measured" if recommendation.is_measured else "predicted"
    risk = _risk_text(look, recommendation)
    for name, one in recommendation.estimates.items():
        lines.append(f"  {word} {name}{risk if name in (COST, TIME) else ''}: {_estimate(name, one)}")
    lines += [f"  P({limit}) = {chance:.2f}" for limit, chance in limits.items()]
    lines.append(f"train it with: {shlex.join(look.command(recommendation))}")
    return "\n".join(lines)


def _risk_text(look: Look, recommendation: Recommendation) -> str:
    rate = look.study.problem.space.interruptions_per_hour(dict(recommendation.config))
    return ", interruptions added" if rate > 0 else ""


def savings_text(look: Look) -> str | None:
    """What the search cost, against what training every configuration on all of the data is predicted to cost."""
    belief = tuner.believe(look.study.problem, look.study.recipe, look.history, look.study.seed).undisturbed
    if not look.study.problem.space.is_enumerable or belief.effort_metric != COST:
        return None
    everywhere = Places.product(belief.pool, (1.0,))
    every, spent = float(belief.expected(COST, everywhere).sum()), look.view.spent
    text = f"the search cost {usd(spent)}; training all {len(everywhere)} configurations on all of the data would cost "
    return f"{text}about {usd(every)}" + (f", {every / spent:.0f} times as much" if 0 < spent < every else "")


def trial_rows(look: Look) -> list[dict[str, object]]:
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
        }
        for row in rows(subject_of(look.of, look.study, look.view))
    ]


def measurement_rows(look: Look) -> list[dict[str, object]]:
    """Every measurement, snapshots included: what ``import`` takes."""
    return [
        row_of_measurement(measurement)
        for outcome in sorted(look.history.outcomes, key=lambda one: one.trial.number)
        for measurement in outcome.measurements
    ]


def trials_text(look: Look) -> str:
    """A table for a person."""
    subject = subject_of(look.of, look.study, look.view)
    found = rows(subject)
    if not found:
        return "no trials yet"
    listed = trials_table(told_metrics(subject), found)
    return table_text(listed.heads, listed.lines)


def explain_text(look: Look, number: int | None) -> str:
    """Why a trial was asked, or why the recommendation is what it is."""
    return _why_trial(look, number) if number is not None else _why_recommended(look)


def _why_trial(look: Look, wanted: int) -> str:
    trial = next((t for t in _all_trials(look.history) if t.number == wanted), None)
    if trial is None:
        raise InputError(f"there is no trial {wanted}; see: trimtuner trials {look.of.job.path}")
    lines = [f"trial {wanted}: {brief(trial)}"]
    before = _history_before(look.history, wanted)
    if wanted == 0 and trial.origin == "design" and _is_advised(look.study):
        lines += [*look.learning_lines(), "the first trial is what they would recommend, on the smallest fraction"]
        return "\n".join(lines)
    if trial.origin == "design":
        lines.append("the design asked for it: first trials are chosen by a rule, before there is a model to ask")
        return "\n".join(lines)
    if trial.origin == "import":
        return "\n".join([*lines, "it was measured elsewhere and imported"])
    if not before.measurements:
        return "\n".join([*lines, "nothing had been measured yet, so a random configuration was taken"])
    belief = tuner.believe(look.study.problem, look.study.recipe, before, look.study.seed)
    if trial.configuration not in belief.pool:
        belief = belief.elsewhere([trial.configuration])  # several at a time: what else was under way moved the pool
    place = Places(belief.pool, np.array([belief.pool.position(trial.configuration)]), np.array([trial.fraction]))
    lines.append(f"the method {look.of.job.search.method} chose it after {len(before.outcomes)} trials, expecting")
    price = price_sought(look.study.recipe, belief, wanted)
    if price is not None:
        against = belief.problem.goal.against or COST
        sought = f"the best {belief.problem.goal.metric} for a {against} of at most {metric(against, price)}"
        lines[-1] = f"looking for {sought}, {lines[-1]}"
    for name in dict.fromkeys((*belief.problem.metrics, COST, TIME)):
        if belief.quantity_name(name) in belief.quantities:
            lines.append(f"  {name}: {number(float(belief.expected(name, place)[0]))}")
    lines.append(f"  P(it runs and meets every limit there) = {float(belief.chance_feasible(place)[0]):.2f}")
    if trial.recommended is not None:
        config, fraction = trial.recommended
        lines.append(f"recommended at that time: {configuration(config)} on {share(fraction)} of the data")
    return "\n".join(lines)


def _is_advised(study: Study) -> bool:
    """Whether the first trial came from earlier studies: they must have measured all that goal and limits speak of."""
    problem = study.recipe.narrow(study.problem)
    return study.recipe.expect(problem, tuner.pool_for(problem, History(), study.seed)) is not None


def _why_recommended(look: Look) -> str:
    recommendation = look.recommendation()
    if recommendation is None:
        return "\n".join(["nothing has been measured yet, so nothing is recommended", *look.learning_lines()])
    belief = tuner.believe(look.study.problem, look.study.recipe, look.history, look.study.seed)
    goal = belief.problem.goal
    if look.front() is not None:
        reached = f"of {len(belief.targets)} that could be recommended, judged from {len(look.history.measurements)}"
        why = "no other is better without costing more; at the knee the front turns"
        told = f"{best_text(look, recommendation)}\n\n{reached} measurements, these are on the front: {why}"
        return "\n".join([told, *look.learning_lines()])
    worth, chance = belief.worth_at_targets, belief.feasible_at_targets
    order = np.argsort(-(worth * chance), kind="stable")[:5]
    rows = []
    for target in order.tolist():
        place = belief.targets.at(np.array([target]))
        rows.append(
            [
                number(float(belief.expected(goal.metric, place)[0])),
                f"{chance[target]:.2f}",
                "measured" if target in belief.measured_targets else "predicted",
                share(float(place.fractions[0])),
                configuration(belief.pool.configuration(int(place.positions[0]))),
            ]
        )
    heads = [goal.metric, "P(limits)", "", "data", "configuration"]
    tested = len(look.history.measurements)
    return "\n".join(
        [
            best_text(look, recommendation),
            "",
            f"of {len(belief.targets)} that could be recommended, judged from {tested} measurements, the best five are",
            table_text(heads, rows),
            *look.learning_lines(),
        ]
    )


def _history_before(history: History, number: int) -> History:
    """What was known when a trial was asked, as near as the record tells: trials with a smaller number."""
    outcomes = tuple(outcome for outcome in history.outcomes if outcome.trial.number < number)
    return History(outcomes, (), number)


def _all_trials(history: History) -> list[Trial]:
    return [*(outcome.trial for outcome in history.outcomes), *history.pending]


def brief(trial: Trial) -> str:
    """A trial in one line."""
    return f"{configuration(trial.config)} on {share(trial.fraction)} of the data"


def _estimate(name: str, one: Estimate) -> str:
    if one.low == one.high:
        return metric(name, one.mean)
    return f"{metric(name, one.mean)} ({metric(name, one.low)} to {metric(name, one.high)})"


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last may be as long as it likes."""
    every = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in every) for i in range(len(heads) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in every
    )
