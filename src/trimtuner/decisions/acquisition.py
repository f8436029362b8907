"""Scores for candidates, composed by ``*`` and ``/``; larger is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.outlook import Outlook
from trimtuner.models.posterior import Prediction


class Acquisition(ABC):
    """A score for each candidate, with ``*`` and ``/`` to compose them."""

    @abstractmethod
    def score(self, outlook: Outlook) -> Floats:
        """One finite number a candidate."""

    def __mul__(self, other: Acquisition) -> Acquisition:
        return Times(self, other)

    def __truediv__(self, other: Acquisition) -> Acquisition:
        return Per(self, other)

    def otherwise(self, other: Acquisition) -> Acquisition:
        """The other score where this one sees no difference between any two candidates."""
        return Otherwise(self, other)


@dataclass(frozen=True)
class Times(Acquisition):
    """The product of two scores."""

    left: Acquisition
    right: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """Left times right, candidate by candidate."""
        return self.left.score(outlook) * self.right.score(outlook)


@dataclass(frozen=True)
class Per(Acquisition):
    """One score for each unit of another."""

    gain: Acquisition
    price: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """Gain divided by price; the price is above 0 by its nature."""
        return self.gain.score(outlook) / np.maximum(self.price.score(outlook), 1e-300)


@dataclass(frozen=True)
class Otherwise(Acquisition):
    """A second score for when the first has nothing to say."""

    first: Acquisition
    second: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """The first, unless it sees a gain nowhere."""
        scores = self.first.score(outlook)
        return scores if scores.max() > 0.0 else self.second.score(outlook)


@dataclass(frozen=True)
class ExpectedCost(Acquisition):
    """What the trial is expected to cost: C(x, s) of Eq. 3 and 5, in USD (in seconds where no price is known)."""

    def score(self, outlook: Outlook) -> Floats:
        """The log-normal's mean, so that doubt about the cost counts against a candidate."""
        return outlook.effort


@dataclass(frozen=True)
class ConstrainedExpectedAccuracy(Acquisition):
    """CEA (Eq. 6): predicted goal at (x, s) times the probability that (x, s) meets the constraints."""

    def score(self, outlook: Outlook) -> Floats:
        """For accuracy, exactly Eq. 6; other goals are measured from the worst value seen, so that more is better."""
        goal = outlook.belief.problem.goal
        mean, variance = outlook.at_candidates(goal.metric)
        return outlook.belief.worth(Prediction(goal.sign * mean, variance)) * outlook.chance_feasible


@dataclass(frozen=True)
class RegardlessOfLimits(Acquisition):
    """A score as it would be if the problem had no constraints."""

    inner: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """The inner score of the same candidates, as if every limit were kept."""
        return self.inner.score(outlook.regardless_of_limits)
