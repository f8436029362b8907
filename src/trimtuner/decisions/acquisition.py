"""Scores for candidates, composed by ``*`` and ``/``; larger is better.

Expected improvement is how much better than the best measured so far a candidate may turn out, counted on the scale of
the goal's model (log for cost, log odds for a share), where its errors are even; for a cost that is the relative
saving. ``ShareAtTargets`` is the insurance against sub-samples that mislead: part of the money goes where nothing has
to be extrapolated: to what would be recommended (``ProofOfRecommendation``), then by expected improvement there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import LIKELY
from trimtuner.decisions.incumbents import Incumbent
from trimtuner.decisions.outlook import DEAR, Outlook
from trimtuner.models.posterior import Prediction
from trimtuner.problem.problem import COST, TIME


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
class CostWithOverhead(Acquisition):
    """C(x, s) + C_overhead of Eq. 2.25 and 4.3 of the thesis: the trial's cost, and that of deciding on it.

    FABOLAS counts seconds and adds those that deciding takes; here both are paid at the price of the trial's machines.
    """

    seconds: float  # that deciding takes: a constant, for the same history and seed must give the same trial

    def score(self, outlook: Outlook) -> Floats:
        """The expected cost of the trial, were it so much longer."""
        prices = outlook.belief.pool.prices_per_hour
        if outlook.belief.effort_metric != COST or prices is None:
            return outlook.effort + self.seconds
        return outlook.effort + self.seconds * prices[outlook.candidates.positions] / 3600.0


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


_ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True)
class ConstrainedImprovement(Acquisition):
    """EI_c: expected improvement (Eq. 1 of the TrimTuner paper) times the chance to meet every constraint.

    As long as nothing within the limits was measured there is nothing to improve on, and the chance alone counts.
    """

    def score(self, outlook: Outlook) -> Floats:
        """EI × P(feasible), at each candidate."""
        best = outlook.best_measured
        if best is None:
            return outlook.chance_feasible
        goal = outlook.belief.problem.goal
        mean, variance = outlook.at_candidates(goal.metric)
        return expected_improvement(goal.sign * mean, variance, best) * outlook.chance_feasible


@dataclass(frozen=True)
class AtTargets(Acquisition):
    """A score for candidates where the goal is meant, which are told apart from all others: those have none."""

    inner: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """The inner score at targets, 0 elsewhere."""
        is_target = np.isin(outlook.candidates.fractions, outlook.belief.problem.target_fractions)
        return np.where(is_target, self.inner.score(outlook), 0.0)


@dataclass(frozen=True)
class ShareAtTargets(Acquisition):
    """One score; and after the price of ``free_runs`` full runs, EI_c at targets for ``share`` of the money.

    The first may be as clever as it likes about small fractions. Should they say nothing about full data on this job,
    the search costs about the free runs and 1 / ``share`` of what EI_c on all of the data would have needed. Where
    even the smallest fraction costs more than ``dear`` of a full run, there is too little to save: EI_c alone.
    """

    first: Acquisition
    second: Acquisition = field(default_factory=lambda: AtTargets(ConstrainedImprovement()))
    free_runs: float = 1.0  # of the mean predicted price at the targets
    share: float = 0.5
    dear: float = DEAR  # of that price too

    def score(self, outlook: Outlook) -> Floats:
        """The second where it is its turn and it sees a gain."""
        scores = self.second.score(outlook) if self._is_due(outlook) else np.zeros(len(outlook.candidates))
        return scores if scores.max() > 0.0 else self.first.score(outlook)

    def _is_due(self, outlook: Outlook) -> bool:
        if outlook.scene.smallest_costs > self.dear:
            return True
        belief = outlook.belief.undisturbed  # what trials did cost, not what they would on machines that are taken away
        return belief.spent_at_targets < self.share * (belief.spent - self.free_runs * outlook.scene.target_price)


@dataclass(frozen=True)
class ProofOfRecommendation(Acquisition):
    """A test of what would be recommended; another score where that is measured, or would more likely break a limit.

    While what is recommended is a forecast, no other trial on all of the data tells as much of what the user would get.
    """

    other: Acquisition
    incumbent: Incumbent

    def score(self, outlook: Outlook) -> Floats:
        """1 at the recommendation and 0 elsewhere, if it waits to be tested; a trial under way is no candidate."""
        belief, candidates = outlook.belief, outlook.candidates
        target = self.incumbent.choose(belief)
        if target in belief.measured_targets or belief.feasible_at_targets[target] < LIKELY:
            return self.other.score(outlook)
        is_configuration = candidates.positions == belief.targets.positions[target]
        scores = is_configuration & (candidates.fractions == belief.targets.fractions[target])
        return scores.astype(float) if scores.any() else self.other.score(outlook)


@dataclass(frozen=True)
class ProofOfCheapest(Acquisition):
    """Where the least cost (or time) is sought, a test of what would be recommended; another score once it is proven.

    The cheapest of all that seem to keep the limits seems so by mistake more often than any other. As it is cheap by
    its nature, to test it costs little, and nothing is recommended on the strength of a forecast twice.
    """

    first: Acquisition
    incumbent: Incumbent

    def score(self, outlook: Outlook) -> Floats:
        """The proof's score where the least of one number is sought, else the other."""
        goal = outlook.belief.problem.goal
        if goal.metric not in (COST, TIME) or goal.against is not None:
            return self.first.score(outlook)
        return ProofOfRecommendation(self.first, self.incumbent).score(outlook)


def expected_improvement(mean: Floats, variance: Floats, best: float) -> Floats:
    """E[max(f - best, 0)] of a Gaussian: σ (φ(z) + z Φ(z)) with z = (μ - best) / σ."""
    deviation = np.sqrt(np.maximum(variance, 1e-24))
    z = (mean - best) / deviation
    improvement: Floats = deviation * (np.exp(-0.5 * z * z) / _ROOT_TWO_PI + z * ndtr(z))
    return np.maximum(improvement, 0.0)
