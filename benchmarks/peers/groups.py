"""The searches of one tool on one job, and what they come to."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.papers.curves import Axis, settled, share_of_best
from benchmarks.papers.searches import Trace
from benchmarks.peers.entrants import Entrant
from benchmarks.peers.search import BUDGET_UNITS
from benchmarks.peers.store import Finished


@dataclass(frozen=True)
class Group:
    """The searches of one peer on one table, money in units."""

    entrant: Entrant
    searches: Sequence[Finished]

    @cached_property
    def traces(self) -> list[Trace]:
        return [one.trace for one in sorted(self.searches, key=lambda one: one.search.seed)]

    def settled(self, level: float) -> list[float]:
        """Units until the level was reached for good; infinite for never. The last trial may have passed the budget."""
        found = [settled(trace, Axis.COST, share_of_best, level) for trace in self.traces]
        return [one if math.isinf(one) else min(one, BUDGET_UNITS) for one in found]

    def mean(self, level: float) -> float:
        """Never counts as the whole budget."""
        return statistics.fmean(min(one, BUDGET_UNITS) for one in self.settled(level))

    def count(self, level: float) -> int:
        return sum(math.isfinite(one) for one in self.settled(level))

    @property
    def ask_seconds(self) -> float:
        asked = [seconds for trace in self.traces for seconds in trace.ask_seconds]
        return statistics.fmean(asked)

    @property
    def search_seconds(self) -> float:
        return statistics.fmean(sum(trace.ask_seconds) for trace in self.traces)
