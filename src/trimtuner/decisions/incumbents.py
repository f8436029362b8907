"""Whom to recommend, as far as is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Belief

_BEYOND_DOUBT = 1.645  # deviations: better in 95 % of cases
_MARGIN = 0.005  # a recommendation changes for more than this share of its worth


class Incumbent(Protocol):
    """A rule that names one target."""

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """The position of the target among the belief's targets; ``previous`` is the one recommended before."""


@dataclass(frozen=True)
class BestPredictedFeasible:
    """The highest predicted goal among targets whose P(feasible) is at least ``confidence`` (TrimTuner: 0.9).

    Below the confidence a target is not shut out but discounted in proportion. A cliff there would recommend the tamest
    configuration for good as long as every better one is a hair's breadth short of it.
    """

    confidence: float = 0.9

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the surer one, then to the first."""
        return _steady_best(
            belief, belief.worth_at_targets * trust(belief.feasible_at_targets, self.confidence), previous
        )


@dataclass(frozen=True)
class MostExpected:
    """The highest predicted worth × P(feasible): a little doubt costs a little, and nothing hangs on a threshold."""

    def choose(self, belief: Belief, previous: int | None = None) -> int:
        """Ties go to the surer one, then to the first."""
        return _steady_best(belief, belief.worth_at_targets * belief.feasible_at_targets, previous)


def trust(feasible: Floats, confidence: float) -> Floats:
    """1 from the confidence on, and in proportion below it."""
    return np.asarray(np.minimum(feasible / confidence, 1.0))


def _steady_best(belief: Belief, scores: Floats, previous: int | None) -> int:
    """The best score, unless it is a forecast no better than the previous recommendation's by a margin."""
    best = _unless_proven(belief, _first_best(scores, belief.feasible_at_targets))
    if previous is None or best in belief.measured_targets:
        return best
    return previous if scores[previous] >= (1.0 - _MARGIN) * scores[best] else best


def _unless_proven(belief: Belief, challenger: int) -> int:
    """The challenger, unless a target that was measured within all limits is not beaten by it beyond doubt.

    What is proven gives way to evidence, not to a forecast that is a hair better and may yet break a limit.
    """
    mean, variance = belief.goal_at_targets
    proven = [target for target in belief.measured_targets if belief.feasible_at_targets[target] == 1.0]
    if not proven or challenger in proven:
        return challenger
    best = max(proven, key=lambda target: mean[target])
    return challenger if mean[challenger] - mean[best] >= _BEYOND_DOUBT * np.sqrt(variance[challenger]) else best


def _first_best(first: Floats, second: Floats) -> int:
    return int(np.lexsort((np.arange(len(first)), -second, -first))[0])
