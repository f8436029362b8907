"""The recommendation: how sure it is, why it is this one, and what it saves against the next best."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import numpy as np

from trimtuner.decisions.belief import Belief
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState
from trimtuner.tuning.pareto import outline_named
from trimtuner.tuning.recommendation import Recommendation, recommendation_from
from trimtuner.views.blocks import Block, Code, Heading, Html, TextTable, View
from trimtuner.views.words import chance, count_of, estimate, metric, share, value_text


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
        return [subject.note, *view.why]
    blocks: list[Block] = [subject.note, _table(view.best, view), Heading("Why this one"), *view.why]
    return blocks if view.command is None else [*blocks, Heading("Train it with"), Code(view.command)]


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


VIEW = View("answer", "Recommendation", "model", _blocks, in_notebook=_in_notebook, is_drawn=False)
