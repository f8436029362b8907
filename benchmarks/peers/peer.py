"""What every peer can do, and the record of trials that all of them recommend from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Protocol

from benchmarks.peers.job import Job, Outcome, Proposal

FULL = 1.0


class Record:
    """Every trial so far; a repeated one is answered from here."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.outcomes: dict[Proposal, Outcome] = {}

    def add(self, outcome: Outcome) -> None:
        self.outcomes[outcome.position, outcome.fraction] = outcome

    def at(self, fraction: float) -> list[Outcome]:
        return [outcome for outcome in self.outcomes.values() if outcome.fraction == fraction]

    def best_at_full_data(self) -> int | None:
        """The most accurate that was measured within the limits; before there is one, the best Accuracy_C."""
        full = [outcome for outcome in self.at(FULL) if outcome.accuracy is not None]
        return self._best([one for one in full if self._job.is_feasible(one)] or full)

    def best_at_any_fraction(self) -> int | None:
        """The most accurate feasible one at full data; before there is one, what the highest fraction lets hope for.

        A configuration seen on a share of the data is taken to keep its accuracy there, and its cost and time to grow
        as they did for others; one that broke a limit at full data, or failed there, comes last.
        """
        full = self.at(FULL)
        feasible = [one for one in full if self._job.is_feasible(one)]
        if feasible:
            return self._best(feasible)
        tried = {one.position for one in full}
        exponent = self.cost_exponent()
        for fraction in reversed(self._job.fractions[:-1]):
            partial = [
                self._job.extrapolated(one, exponent)
                for one in self.at(fraction)
                if one.accuracy is not None and one.position not in tried
            ]
            hopeful = [one for one in partial if self._job.is_feasible(one)]
            if hopeful:
                return self._best(hopeful)
        rest = [self._job.extrapolated(one, exponent) for one in self.outcomes.values() if one.accuracy is not None]
        return self._best(rest)

    def cost_exponent(self) -> float:
        """How cost grows with the fraction, as a power: the median over pairs of trials of one configuration, or 1."""
        by_position: dict[int, list[Outcome]] = {}
        for outcome in self.outcomes.values():
            if outcome.accuracy is not None:
                by_position.setdefault(outcome.position, []).append(outcome)
        slopes = [_slope(seen) for seen in by_position.values() if len(seen) > 1]
        return statistics.median(slopes) if slopes else 1.0

    def _best(self, outcomes: Iterable[Outcome]) -> int | None:
        best = max(outcomes, key=self._job.accuracy_c, default=None)
        return None if best is None else best.position


def _slope(seen: list[Outcome]) -> float:
    low, high = min(seen, key=lambda one: one.fraction), max(seen, key=lambda one: one.fraction)
    return math.log(high.cost / low.cost) / math.log(high.fraction / low.fraction)


class Peer(Protocol):
    """A tool in the replay. Outcomes are in the record before it is told of them."""

    def ask(self) -> Proposal | None:
        """What to try next; None when it has nothing more to propose."""

    def tell(self, outcome: Outcome) -> None:
        """The outcome of what it asked for last."""

    def learn(self, outcome: Outcome) -> None:
        """The outcome of something that it did not ask for."""

    def recommend(self) -> int | None:
        """The configuration it would train on full data now."""


MakePeer = Callable[[Job, Record, int], Peer]  # the last is a seed
