"""`random-small`: random screening at the smallest fraction, the control that every method must beat first.

No package. Eighty random configurations are tried at the smallest fraction (thirty and fifty did worse at 99 % on cnn,
rnn and digits; fifty did better at 95 % on cnn and digits); then those that were most accurate there, of those that
seem to meet the limits at full data, are tried at full data, best first. Whether they seem to is worked out from cost
and time at the smallest fraction, which are taken to grow in proportion to the data until there are configurations
measured at both ends, and then as the median of those did. In its favour: that extrapolation, and that a recommendation
may rest on the smallest fraction until one is measured within the limits at full data.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.job import Job, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record

SCREENED = 80


class RandomSmall:
    """Screen, then verify."""

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        self._job, self._record = job, record
        self._order = [int(one) for one in np.random.default_rng(seed).permutation(job.count)[:SCREENED]]

    def ask(self) -> Proposal | None:
        smallest = self._job.fractions[0]
        for position in self._order:
            if (position, smallest) not in self._record.outcomes:
                return position, smallest
        exponent = self._record.cost_exponent()
        waiting = [
            self._job.extrapolated(one, exponent)
            for one in self._record.at(smallest)
            if (one.position, FULL) not in self._record.outcomes
        ]
        if not waiting:
            return None
        chosen = max(waiting, key=lambda one: (self._job.is_feasible(one), self._job.accuracy_c(one)))
        return chosen.position, FULL

    def tell(self, outcome: Outcome) -> None:
        """All is in the record."""

    learn = tell

    def recommend(self) -> int | None:
        return self._record.best_at_any_fraction()
