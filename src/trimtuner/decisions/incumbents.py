"""Whom to recommend, as far as is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Booleans, Floats
from trimtuner.decisions.belief import LIKELY, Belief
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import Problem

FEASIBLE_ENOUGH = 0.9  # P(feasible) from which on a target is fully trusted (TrimTuner)
_NEXT_TO_NONE = 1e-9
_BEYOND_DOUBT = 1.645  # deviations: better in 95 % of cases
_MARGIN = 0.005  # a recommendation changes for more than this share of its worth


class Incumbent(ABC):
    """A rule that names one target."""

    @abstractmethod
    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """The position of the target among the belief's targets; ``previous`` is the one recommended before."""

    def may_name(self, belief: Belief) -> Booleans:
        """Which targets it could ever name, whatever the limits: unless it says otherwise, any."""
        return np.ones(len(belief.targets), dtype=bool)


@dataclass(frozen=True)
class BestPredictedFeasible(Incumbent):
    """The highest predicted goal among targets whose P(feasible) is at least ``confidence`` (TrimTuner: 0.9).

    Below the confidence a target is not shut out but discounted in proportion. A cliff there would recommend the tamest
    configuration for good as long as every better one is a hair's breadth short of it.
    """

    confidence: float = FEASIBLE_ENOUGH

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the surer one, then to the first."""
        return _steady_best(
            belief, belief.worth_at_targets * trust_in_proportion(belief.feasible_at_targets, self.confidence), previous
        )


@dataclass(frozen=True)
class BestSurelyFeasible(Incumbent):
    """The highest predicted goal among targets whose P(feasible) is at least ``confidence``, and none below it.

    The papers' rule to the letter (TrimTuner, Alg. 1, line 20: 0.9; thesis 4.2: 0.99): every time anew, whatever was
    measured or recommended before. Of what the papers do not speak, that nothing is so sure, the highest CEA decides.
    """

    confidence: float

    def choose(self, belief: Belief, previous: int | None = None) -> int:  # noqa: ARG002
        """Ties go to the surer one, then to the first."""
        feasible = belief.feasible_at_targets
        return _first_best(belief.worth_at_targets * trust_if_sure(feasible, self.confidence), feasible)


@dataclass(frozen=True)
class MostExpected(Incumbent):
    """The highest predicted worth × P(feasible): a little doubt costs a little, and nothing hangs on a threshold."""

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the surer one, then to the first."""
        return _steady_best(belief, belief.worth_at_targets * belief.feasible_at_targets, previous)


@dataclass(frozen=True)
class BestMeasured(Incumbent):
    """The best that was itself measured within all limits; no forecast is recommended while there is one.

    Before that: the least infeasible one measured where the goal is meant; before any was measured there, the
    configuration that measured best on the most data.
    """

    def choose(self, belief: Belief, previous: int | None = None) -> int:  # noqa: ARG002
        """Ties go to the first."""
        if not belief.measured_targets:
            return _best_on_most_data(belief)
        goal = belief.problem.goal
        return min(
            belief.measured_targets,
            key=lambda target: (
                _excess(belief.problem, belief.measured_targets[target]),
                -goal.sign * belief.measured_targets[target].metrics[goal.metric],
                target,
            ),
        )

    def may_name(self, belief: Belief) -> Booleans:
        """What was measured where the goal is meant; before anything was, any."""
        if not belief.measured_targets:
            return super().may_name(belief)
        return np.isin(np.arange(len(belief.targets)), list(belief.measured_targets))


@dataclass(frozen=True)
class BestPredictedOfTested(Incumbent):
    """The highest predicted goal among configurations tested at some fraction, whatever the limits (FABOLAS)."""

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the first."""
        is_tested = self.may_name(belief)
        free = belief.without_constraints()
        return _steady_best(free, np.where(is_tested, free.worth_at_targets * free.running_at_targets, -1.0), previous)

    def may_name(self, belief: Belief) -> Booleans:
        """Configurations tested at some fraction."""
        tested = {belief.pool.position(dict(m.configuration)) for m in belief.measurements}
        return np.isin(belief.targets.positions, list(tested))


@dataclass(frozen=True)
class BestPredicted(Incumbent):
    """The highest predicted goal, whatever the limits."""

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the first."""
        free = belief.without_constraints()
        return _steady_best(free, free.worth_at_targets * free.running_at_targets, previous)


def _best_on_most_data(belief: Belief) -> int:
    goal, fraction = belief.problem.goal, belief.problem.target_fractions[-1]
    best = max(
        belief.measurements,
        key=lambda m: (
            (belief.pool.position(dict(m.configuration)), fraction) not in belief.failed,
            m.fraction,
            goal.sign * m.metrics[goal.metric],
        ),
    )
    return belief.target_at(best.configuration, fraction)


def _excess(problem: Problem, measurement: Measurement) -> float:
    """By what share of them the limits are broken, added up; 0 within all of them."""
    excess = 0.0
    for constraint in problem.constraints:
        value = measurement.metrics[constraint.metric]
        if not constraint.is_met(value):
            excess += abs(value - constraint.limit) / max(abs(constraint.limit), 1e-12)
    return excess


Trust: TypeAlias = Callable[[Floats, float], Floats]  # what P(feasible) is worth to who wants so much of it


def trust_in_proportion(feasible: Floats, confidence: float) -> Floats:
    """1 from the confidence on, and in proportion below it."""
    return np.asarray(np.minimum(feasible / confidence, 1.0))


def trust_if_sure(feasible: Floats, confidence: float) -> Floats:
    """1 from the confidence on, and next to none below it: enough to tell two apart where nothing is sure."""
    return np.where(feasible >= confidence, 1.0, _NEXT_TO_NONE * feasible)


def _steady_best(belief: Belief, scores: Floats, previous: int | None) -> int:
    """The best score, unless it is a forecast no better than the previous recommendation's by a margin."""
    best = _unless_proven(belief, _first_best(scores, belief.feasible_at_targets))
    if previous is None or best in belief.measured_targets:
        return best
    return previous if scores[previous] >= (1.0 - _MARGIN) * scores[best] else best


def _unless_proven(belief: Belief, challenger: int) -> int:
    """The challenger, unless a target that was measured within all limits is not beaten by it beyond doubt.

    What is proven gives way to evidence, not to a forecast that is a hair better and may yet break a limit; and never
    to what will more likely break one than not, however good it would be.
    """
    mean, variance = belief.goal_at_targets
    proven = belief.proven
    if not proven or challenger in proven:
        return challenger
    best = max(proven, key=lambda target: mean[target])
    if belief.feasible_at_targets[challenger] < LIKELY:
        return best
    return challenger if mean[challenger] - mean[best] >= _BEYOND_DOUBT * np.sqrt(variance[challenger]) else best


def _first_best(first: Floats, second: Floats) -> int:
    return int(np.lexsort((np.arange(len(first)), -second, -first))[0])
