"""The recommendation: how sure it is, why it is this one, and what it saves against the next best."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.decisions.belief import LIKELY, Belief
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME, Constraint
from trimtuner.state import StudyState
from trimtuner.tuning.pareto import outline_named
from trimtuner.tuning.recommendation import Recommendation, recommendation_from
from trimtuner.views.blocks import Block, Code, Facts, Folded, Heading, Html, Meter, Meters, TextTable, View, Warned
from trimtuner.views.words import chance, count_of, estimate, metric, seconds, share, value_text


@dataclass(frozen=True)
class Answers:
    """What is recommended, and the runner-up."""

    best: Recommendation | None  # None: nothing was measured yet
    runner_up: Recommendation | None
    why: tuple[str, ...]  # sentences
    beside: str = "runner-up"  # what the second is called
    command: str | None = None  # that trains the best, for a shell


def answers(subject: StudyState) -> Answers:
    """What is recommended and its runner-up (of a front, its neighbour), and why."""
    belief, target, best = subject.belief, subject.recommended_target, subject.recommendation
    if belief is None or target is None or best is None:
        return Answers(None, None, (subject.why_no_model or "",))
    is_one_goal = subject.problem.goal.against is None
    second = _runner_up(belief, target) if is_one_goal else _neighbour(subject, belief, target)
    runner_up = None if second is None else recommendation_from(belief, second)
    words = None if subject.command_of is None else subject.command_of(best.config, best.fraction)
    return Answers(
        best,
        runner_up,
        tuple(_why(subject, belief, best, runner_up)),
        beside="runner-up" if is_one_goal else "next on the front",
        command=None if words is None else shlex.join(words),
    )


def _runner_up(belief: Belief, target: int) -> int | None:
    """The best by expected worth and chance among the other configurations."""
    score = belief.worth_at_targets * belief.feasible_at_targets
    others = np.nonzero(belief.targets.positions != belief.targets.positions[target])[0]
    return int(others[np.argmax(score[others])]) if len(others) else None


def _neighbour(subject: StudyState, belief: Belief, target: int) -> int | None:
    """The next better on the front; where there is none, the next cheaper."""
    front = outline_named(subject.recipe, belief)
    targets = [] if front is None else front.targets.tolist()
    if target not in targets or len(targets) < 2:
        return _runner_up(belief, target)
    place = targets.index(target)
    return int(targets[place + 1] if place + 1 < len(targets) else targets[place - 1])


def _why(subject: StudyState, belief: Belief, best: Recommendation, runner_up: Recommendation | None) -> list[str]:
    goal = subject.problem.goal
    verb = "highest" if goal.sign > 0 else "lowest"
    count = len({int(one) for one in belief.targets.positions})
    why = f"it has the {verb} expected {goal.metric} among those likely to meet the limits"
    if goal.against is not None:
        why = (
            f"it is the knee of the front of {goal.metric} against {goal.against}: for less {goal.against} the "
            f"{goal.metric} is much worse, and more buys little"
        )
    lines = [
        f"Of {count:,} configurations {why}."
        if best.is_feasible
        else f"None of {count:,} configurations is likely to meet every limit; this one comes nearest."
    ]
    lines.append(_evidence(subject, best))
    if subject.problem.space.interruptions_per_hour(dict(best.config)) > 0:
        lines.append("Its machines may be taken away: time and cost hold what interruptions are expected to add.")
    if runner_up is not None:
        other = "the runner-up" if goal.against is None else "the next on the front"
        lines.append(_against(other, (goal.metric, goal.against or COST, COST, TIME), best, runner_up))
    return lines


def _evidence(subject: StudyState, best: Recommendation) -> str:
    own = sorted({m.fraction for m in subject.history.measurements if dict(m.configuration) == dict(best.config)})
    if best.is_measured:
        return f"It was measured on {share(best.fraction)} of the data: its figures are measurements."
    total = count_of(len(subject.history.measurements), "measurement")
    if not own:
        return f"It was not tested itself; its figures are predicted from {total} of others."
    shares = ", ".join(share(fraction) for fraction in own)
    return f"It was measured on {shares} of the data; its figures are predicted from {total} in all."


def _against(name: str, metrics: tuple[str, ...], best: Recommendation, other: Recommendation) -> str:
    shared = [one for one in metrics if one in best.estimates and one in other.estimates]
    parts = [_difference(one, best.estimates[one].mean, other.estimates[one].mean) for one in dict.fromkeys(shared)]
    said = f"Against {name}, a run of it has {', '.join(parts)}" if parts else f"Of {name} nothing is known"
    own, others = chance(best.chance_feasible), chance(other.chance_feasible)
    odds = (
        f"both meet the limits with probability {own}" if own == others else f"P(limits) is {own} instead of {others}"
    )
    return f"{said}; {odds}."


def _difference(name: str, own: float, other: float) -> str:
    """Such as ``0.02 USD (40 %) less cost``: what is saved, or paid more."""
    if metric(name, own) == metric(name, other):
        return f"the same {name}"
    word = "less" if own < other else "more"
    if name not in (COST, TIME):
        return f"{abs(own - other):.2g} {word} {name}"
    part = f" ({100 * abs(own - other) / other:.0f} %)" if other else ""
    return f"{metric(name, abs(own - other))}{part} {word} {name}"


def _blocks(subject: StudyState) -> list[Block]:
    view = answers(subject)
    if view.best is None:
        return [*_known_already(subject), subject.note, *view.why]
    best = view.best
    parts: list[Block] = [subject.note, Warned(_none_likely(best)) if not best.is_feasible else "", _sentence(best)]
    parts += [Facts(_config_facts(best.config, best.fraction)), *_command(view.command)]
    parts += [_estimates(best), _limits(subject, best), Heading("Why this one"), *view.why]
    return parts if view.runner_up is None else [*parts, Folded(f"Beside the {view.beside}", [_table(best, view)])]


def _sentence(best: Recommendation) -> str:
    """What it reaches and costs, and how sure that is, to be read aloud."""
    said = [f"{name} {estimate(name, found)}" for name, found in best.estimates.items()]
    how = "It was measured" if best.is_measured else "A run of it should show"
    odds = f"; it runs and meets every limit with probability {chance(best.chance_feasible)}"
    return f"{how}: {', '.join(said)}{odds}." if said else f"Nothing is known of it yet{odds}."


def _none_likely(best: Recommendation) -> str:
    odds = chance(best.chance_feasible)
    return f"Nothing known is likely to meet every limit; this comes nearest, with probability {odds}."


def _config_facts(config: Mapping[str, Value], fraction: float) -> dict[str, str]:
    data = {} if fraction == 1.0 else {"data": share(fraction)}
    return {name: value_text(value) for name, value in config.items()} | data


def _command(command: str | None) -> list[Block]:
    return [] if command is None else [Code(command)]


def _estimates(best: Recommendation) -> TextTable:
    """The numbers with their intervals."""
    lines = []
    for name, found in best.estimates.items():
        interval = "measured" if found.low == found.high else f"{metric(name, found.low)} to {metric(name, found.high)}"
        lines.append([name, metric(name, found.mean), interval])
    return TextTable(["", "expected", "in 9 of 10 cases"], lines, "answer")


def _limits(subject: StudyState, best: Recommendation) -> Block:
    """Each limit with its margin and its chance."""
    meters = []
    for one in subject.problem.constraints:
        found, odds = best.estimates.get(one.metric), best.feasible[one.text]
        margin = "" if found is None else f"{_margin(one, found.mean)}; "
        words = f"{margin}holds with probability {chance(odds)}"
        meters.append(Meter(one.text, odds, words, "good" if odds >= LIKELY else "bad"))
    return Meters(meters) if meters else "There are no limits."


def _margin(limit: Constraint, value: float) -> str:
    """Such as ``0.275 USD (23 %) to spare``."""
    gap = abs(limit.limit - value)
    part = f" ({100 * gap / abs(limit.limit):.0f} %)" if limit.limit else ""
    return f"{metric(limit.metric, gap)}{part} {'to spare' if limit.is_met(value) else 'beyond it'}"


def _known_already(subject: StudyState) -> list[Block]:
    """What the record says was recommended last, and what was measured of it: nothing need be fitted to show it."""
    found = _last_recommended(subject)
    if found is None:
        return []
    config, fraction, since = found
    own = [m for m in subject.history.measurements if dict(m.configuration) == dict(config)]
    measured = [f"{metric_words(m)} on {share(m.fraction)} of the data" for m in own[-2:]]
    told = f"Measured of it so far: {'; '.join(measured)}." if measured else "It was not measured itself yet."
    command = None if subject.command_of is None else shlex.join(subject.command_of(config, fraction))
    parts: list[Block] = [f"Recommended {since}.", Facts(_config_facts(config, fraction)), *_command(command), told]
    return [*parts, _measured_limits(subject, next((m for m in reversed(own) if m.fraction == fraction), None))]


def _measured_limits(subject: StudyState, measured: Measurement | None) -> Block:
    """Each limit with its margin, as far as it was measured of what is recommended."""
    meters = []
    for one in subject.problem.constraints:
        value = None if measured is None else measured.metrics.get(one.metric)
        if value is None:
            meters.append(Meter(one.text, 0.0, "not measured of it on this much data: what is expected follows"))
        else:
            words = f"{metric(one.metric, value)} measured, {_margin(one, value)}"
            meters.append(Meter(one.text, 1.0, words, "good" if one.is_met(value) else "bad"))
    return Meters(meters) if meters else "There are no limits."


def _last_recommended(subject: StudyState) -> tuple[Mapping[str, Value], float, str] | None:
    """Configuration, fraction, and since when."""
    found = [trial for trial in subject.trials if trial.recommended is not None]
    if not found:
        return None
    last = found[-1]
    config, fraction = last.recommended or ({}, 1.0)
    asked = next((one.asked_at for one in subject.attempts if one.trial == last.number), None)
    ago = "" if asked is None else f", {seconds(max(subject.now - asked, 0.0))} ago"
    return config, fraction, f"when trial {last.number} was asked{ago}"


def _at_once(subject: StudyState) -> list[Block]:
    """The same until the model is fitted to what was measured since."""
    known = _known_already(subject)
    if not known:
        return [subject.why_no_model or "Nothing was recommended yet: the first trials are a design."]
    count = count_of(len(subject.history.measurements), "measurement")
    return [subject.note, *known, f"What it reaches and costs, with intervals, follows from {count} in a moment."]


def metric_words(measured: Measurement) -> str:
    """What was measured, in words."""
    return ", ".join(f"{name} {metric(name, value)}" for name, value in measured.metrics.items())


def _in_notebook(subject: StudyState) -> list[Block]:
    best = subject.recommendation
    return [subject.why_no_model or ""] if best is None else [Html(best._repr_html_())]


def _table(best: Recommendation, view: Answers) -> TextTable:
    """What is recommended beside the runner-up."""
    columns = [best] if view.runner_up is None else [best, view.runner_up]
    word = "recommended" if best.is_feasible else "least infeasible"
    names = dict.fromkeys(name for one in columns for name in one.config)
    metrics = dict.fromkeys(name for one in columns for name in one.estimates)
    lines = [
        [name, *(value_text(one.config[name]) if name in one.config else "-" for one in columns)] for name in names
    ]
    lines.append(["data", *(share(one.fraction) for one in columns)])
    lines.append(["figures are", *("measured" if one.is_measured else "predicted" for one in columns)])
    lines += [[name, *(estimate(name, one.estimates.get(name)) for one in columns)] for name in metrics]
    lines += [[f"P({limit})", *(chance(one.feasible[limit]) for one in columns)] for limit in best.feasible]
    lines.append(["P(runs, all limits)", *(chance(one.chance_feasible) for one in columns)])
    return TextTable(["", word, view.beside][: len(columns) + 1], lines, "answer")


VIEW = View("answer", "What to run", "model", _blocks, in_notebook=_in_notebook, at_once=_at_once, is_drawn=False)
