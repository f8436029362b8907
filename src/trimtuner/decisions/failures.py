"""Where jobs fail: the chance that a configuration runs at all, from the trials near it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.models.threads import one_thread

_REACH = 0.35  # distance in the unit cube over which one trial speaks for another
_PRIOR_SUCCESS = 0.95
_PRIOR_WEIGHT = 0.5  # trials


@dataclass(frozen=True)
class ChanceOfRunning:
    """A kernel-weighted success rate over (configuration, log fraction): simple, and certain of nothing far away."""

    rows: Floats
    succeeded: Floats

    @classmethod
    def from_trials(cls, ran: Floats, failed: Floats) -> ChanceOfRunning:
        """From the rows of trials that ran and of those that failed."""
        return cls(np.vstack([ran, failed]), np.repeat([1.0, 0.0], [len(ran), len(failed)]))

    @one_thread
    def at(self, rows: Floats) -> Floats:
        """The chance at each row; 1 everywhere as long as nothing has failed."""
        if self.succeeded.all():
            return np.ones(len(rows))
        near = np.exp(-0.5 * _squared_distance(rows, self.rows) / _REACH**2)
        weighted: Floats = near @ self.succeeded
        return np.asarray((_PRIOR_WEIGHT * _PRIOR_SUCCESS + weighted) / (_PRIOR_WEIGHT + near.sum(axis=1)))


def _squared_distance(rows: Floats, others: Floats) -> Floats:
    left, right = _with_log_fraction(rows), _with_log_fraction(others)
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.asarray(np.maximum(squared, 0.0))


def _with_log_fraction(rows: Floats) -> Floats:
    return np.column_stack([rows[:, :-1], 0.5 * np.log10(rows[:, -1])])
