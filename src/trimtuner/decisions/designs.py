"""What to test before there is a model to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from trimtuner.arrays import Positions
from trimtuner.problem.history import History
from trimtuner.problem.pool import Pool
from trimtuner.problem.problem import Problem


class Step(NamedTuple):
    """A configuration of the pool, a fraction, and the snapshots to take on the way."""

    position: int
    fraction: float
    snapshots: tuple[float, ...] = ()


class Design(Protocol):
    """A first few trials."""

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The next trial of the design; nothing when the design is complete."""


@dataclass(frozen=True)
class OneAcrossFractions:
    """A random configuration at every fraction but full data: one run where snapshots can be taken (the paper's way).

    A configuration that fails teaches little about growth with the data, so another one takes its place.
    """

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The largest fraction with the smaller ones as snapshots; without snapshots, one by one from the smallest."""
        fractions = problem.space.fractions[:-1] or problem.space.fractions
        failed = {(problem.space.key(o.trial.configuration), o.trial.fraction) for o in history.failures}
        tested = {(problem.space.key(dict(c)), f) for c, f in history.tested()}
        ran = tested - failed
        if any(all((key, fraction) in ran for fraction in fractions) for key, _ in ran):
            return None  # whichever configuration it was: measurements from elsewhere serve as well
        for position in _random_order(len(pool), seed).tolist():
            key = problem.space.key(pool.configuration(position))
            if any((key, fraction) in failed for fraction in fractions):
                continue
            left = tuple(fraction for fraction in fractions if (key, fraction) not in tested)
            if not problem.space.snapshots:
                return Step(position, left[0])
            if left[-1] == fractions[-1]:
                return Step(position, left[-1], left[:-1])
            # The run is made; what it did not report on the way is not worth another.
            return None
        return None


@dataclass(frozen=True)
class CheapStart:
    """Some random configurations among the cheapest third by price, at the smallest fraction only.

    A first run at half the data costs most of what a whole search needs; the model climbs when it has reason to.
    """

    count: int = 3

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """As many as it takes to have ``count`` that ran."""
        fraction = problem.space.fractions[0]
        ran = sum(outcome.failed is None for outcome in history.outcomes)
        if ran + len(history.pending) >= self.count and history.measurements:
            return None
        tested = {(problem.space.key(dict(c)), f) for c, f in history.tested()}
        for position in _cheap_order(pool, seed).tolist():
            if (problem.space.key(pool.configuration(position)), fraction) not in tested:
                return Step(position, fraction)
        return None


def _random_order(count: int, seed: int) -> Positions:
    return np.random.default_rng([seed, 77]).permutation(count)


def _cheap_order(pool: Pool, seed: int) -> Positions:
    """The cheapest third in random order, then the rest."""
    order = _random_order(len(pool), seed)
    if pool.prices_per_hour is None:
        return order
    limit = np.quantile(pool.prices_per_hour, 1.0 / 3.0)
    is_cheap = pool.prices_per_hour[order] <= limit
    return np.concatenate([order[is_cheap], order[~is_cheap]])
