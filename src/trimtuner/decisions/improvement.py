"""Expected improvement: how much better than the best measured so far a candidate may turn out.

The improvement is counted on the scale of the goal's model (log for cost, log odds for a share), where its errors are
even; for a cost that is the relative saving. ``ShareAtTargets`` is the insurance against sub-samples that mislead: part
of the money goes where nothing has to be extrapolated, by expected improvement there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from trimtuner.arrays import Floats
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.outlook import Outlook

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
    the search costs about the free runs and 1 / ``share`` of what EI_c on all of the data would have needed.
    """

    first: Acquisition
    second: Acquisition = field(default_factory=lambda: AtTargets(ConstrainedImprovement()))
    free_runs: float = 1.0  # of the mean predicted price at the targets
    share: float = 0.5

    def score(self, outlook: Outlook) -> Floats:
        """The second where it is its turn and it sees a gain."""
        scores = self.second.score(outlook) if self._is_due(outlook) else np.zeros(len(outlook.candidates))
        return scores if scores.max() > 0.0 else self.first.score(outlook)

    def _is_due(self, outlook: Outlook) -> bool:
        # A machine that would be taken away over and over has no price that means anything.
        belief = outlook.belief.undisturbed
        mean_price = float(belief.expected(belief.effort_metric, belief.targets).mean())
        beyond = belief.spent - self.free_runs * mean_price
        at_targets = sum(m.metrics.get(belief.effort_metric, 0.0) for m in belief.measured_targets.values())
        return at_targets < self.share * beyond


def expected_improvement(mean: Floats, variance: Floats, best: float) -> Floats:
    """E[max(f - best, 0)] of a Gaussian: σ (φ(z) + z Φ(z)) with z = (μ - best) / σ."""
    deviation = np.sqrt(np.maximum(variance, 1e-24))
    z = (mean - best) / deviation
    improvement: Floats = deviation * (np.exp(-0.5 * z * z) / _ROOT_TWO_PI + z * ndtr(z))
    return np.maximum(improvement, 0.0)
