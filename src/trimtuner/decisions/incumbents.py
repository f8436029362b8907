"""Whom to recommend, as far as is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Belief


class Incumbent(Protocol):
    """A rule that names one target."""

    def choose(self, belief: Belief) -> int:
        """The position of the target among the belief's targets."""


@dataclass(frozen=True)
class BestPredictedFeasible:
    """The highest predicted goal among targets whose P(feasible) is at least ``confidence`` (TrimTuner: 0.9)."""

    confidence: float = 0.9

    def choose(self, belief: Belief) -> int:
        """Where nothing reaches the confidence, the least infeasible."""
        return best_feasible(belief.goal_at_targets.mean, belief.feasible_at_targets, self.confidence)


def best_feasible(goal: Floats, feasible: Floats, confidence: float) -> int:
    """The position of the best goal among the confident; ties go to the surer one, then to the first."""
    trusted = feasible >= confidence
    if not trusted.any():
        return _first_best(feasible, goal)
    return _first_best(np.where(trusted, goal, -np.inf), feasible)


def _first_best(first: Floats, second: Floats) -> int:
    return int(np.lexsort((np.arange(len(first)), -second, -first))[0])
