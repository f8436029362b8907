"""Insurance against sub-samples that mislead: part of the money goes where nothing has to be extrapolated."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.improvement import ConstrainedImprovement
from trimtuner.decisions.outlook import Outlook


@dataclass(frozen=True)
class AtTargets(Acquisition):
    """A score for candidates where the goal is meant, which are told apart from all others: those have none."""

    inner: Acquisition

    def score(self, outlook: Outlook) -> Floats:
        """The inner score at targets, 0 elsewhere."""
        is_target = np.isin(outlook.candidates.fractions, outlook.belief.problem.target_fractions)
        return np.where(is_target, self.inner.score(outlook), 0.0)


@dataclass(frozen=True)
class Insured(Acquisition):
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
