"""View 2: the recommendation, how sure it is, why it is this one, and what it saves against the next best."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.decisions.belief import Belief
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState
from trimtuner.tuning.pareto import outline_named
from trimtuner.tuning.recommendation import Recommendation, recommendation_from
from trimtuner.views.tradeoff import FEASIBLE
from trimtuner.views.words import chance, count_of, metric, share


@dataclass(frozen=True)
class Answer:
    """A configuration that could be trained, with what to expect of it."""

    config: Mapping[str, Value]
    fraction: float
    estimates: Mapping[str, tuple[float, float, float]]  # metric: mean, low, high
    chances: Mapping[str, float]  # constraint, as written: the probability that it holds
    chance_feasible: float
    is_measured: bool
    command: str | None


@dataclass(frozen=True)
class Answers:
    """What is recommended, and the runner-up."""

    best: Answer | None  # None: nothing was measured yet
    runner_up: Answer | None
    why: tuple[str, ...]  # sentences
    beside: str = "runner-up"  # what the second is called


def answers(subject: StudyState) -> Answers:
    """The view."""
    belief, target = subject.belief, subject.recommended_target
    if belief is None or target is None or subject.recommendation is None:
        return Answers(None, None, (subject.why_no_model or "",))
    second = _runner_up(belief, target) if subject.problem.goal.against is None else _neighbour(subject, belief, target)
    best = _answer(subject, subject.recommendation)
    runner_up = None if second is None else _answer(subject, recommendation_from(belief, second))
    beside = "runner-up" if subject.problem.goal.against is None else "next on the front"
    return Answers(best, runner_up, tuple(_why(subject, belief, best, runner_up)), beside)


def _answer(subject: StudyState, found: Recommendation) -> Answer:
    words = None if subject.command_of is None else subject.command_of(found.config, found.fraction)
    return Answer(
        config=dict(found.config),
        fraction=found.fraction,
        estimates={name: (one.mean, one.low, one.high) for name, one in found.estimates.items()},
        chances=dict(found.feasible),
        chance_feasible=found.chance_feasible,
        is_measured=found.is_measured,
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


def _why(subject: StudyState, belief: Belief, best: Answer, runner_up: Answer | None) -> list[str]:
    goal = subject.problem.goal
    verb = "highest" if goal.sign > 0 else "lowest"
    count = len({int(one) for one in belief.targets.positions})
    why = f"it has the {verb} expected {goal.metric} among those likely to meet the limits"
    if goal.against is not None:
        why = (
            f"it is the knee of the front of {goal.metric} against {goal.against}: less {goal.against} loses much "
            f"{goal.metric}, and more buys little"
        )
    lines = [
        f"Of {count:,} configurations {why}."
        if best.chance_feasible >= FEASIBLE
        else f"None of {count:,} configurations is likely to meet every limit; this one comes nearest."
    ]
    lines.append(_evidence(subject, best))
    if subject.problem.space.interruptions_per_hour(dict(best.config)) > 0:
        lines.append("Its machines may be taken away: time and cost hold what interruptions are expected to add.")
    if runner_up is not None:
        other = "the runner-up" if goal.against is None else "the next on the front"
        lines.append(_against(other, (goal.metric, goal.against or COST, COST, TIME), best, runner_up))
    return lines


def _evidence(subject: StudyState, best: Answer) -> str:
    own = sorted({m.fraction for m in subject.history.measurements if dict(m.configuration) == best.config})
    if best.is_measured:
        return f"It was measured on {share(best.fraction)} of the data: its figures are measurements."
    total = count_of(len(subject.history.measurements), "measurement")
    if not own:
        return f"It was not tested itself; its figures are predicted from {total} of others."
    shares = ", ".join(share(fraction) for fraction in own)
    return f"It was measured on {shares} of the data; its figures are predicted from {total} in all."


def _against(name: str, metrics: tuple[str, ...], best: Answer, other: Answer) -> str:
    shared = [one for one in metrics if one in best.estimates and one in other.estimates]
    parts = [_difference(one, best.estimates[one][0], other.estimates[one][0]) for one in dict.fromkeys(shared)]
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
