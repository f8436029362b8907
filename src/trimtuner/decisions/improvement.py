"""Expected improvement: how much better than the best measured so far a candidate may turn out.

The improvement is counted on the scale of the goal's model (log for cost, log odds for a share), where its errors are
even; for a cost that is the relative saving.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def expected_improvement(mean: Floats, variance: Floats, best: float) -> Floats:
    """E[max(f - best, 0)] of a Gaussian: σ (φ(z) + z Φ(z)) with z = (μ - best) / σ."""
    deviation = np.sqrt(np.maximum(variance, 1e-24))
    z = (mean - best) / deviation
    improvement: Floats = deviation * (np.exp(-0.5 * z * z) / _ROOT_TWO_PI + z * ndtr(z))
    return np.maximum(improvement, 0.0)
