"""What to test before there is a model to ask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.problem.history import History
from trimtuner.problem.problem import Problem
from trimtuner.problem.space import Pool

_FEWEST = 4  # trials of a design that is bounded by money: from fewer a model cannot tell what anything costs
_BLOCK = 16  # points of one Latin hypercube where their number is not known beforehand


class Step(NamedTuple):
    """A configuration of the pool, a fraction, and the snapshots to take on the way."""

    position: int
    fraction: float
    snapshots: tuple[float, ...] = ()


class Design(Protocol):
    """Trials by a rule, without a model: the first few, or all of a search."""

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The next trial of the design; nothing when the design is complete."""


@dataclass(frozen=True)
class AcrossFractions:
    """A few configurations at every fraction but full data: one run each where snapshots can be taken.

    A configuration that fails teaches little about growth with the data, so another one takes its place.
    """

    count: int = 1  # configurations (TrimTuner: one)
    share: float = 0.0  # of the configurations there are, where that is more (Fabulinus: 3 %)

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The largest fraction with the smaller ones as snapshots; without snapshots, one by one from the smallest."""
        fractions = problem.space.fractions[:-1] or problem.space.fractions
        failed = {(problem.space.key(o.trial.config), o.trial.fraction) for o in history.failures}
        tested = {(problem.space.key(dict(c)), f) for c, f in history.tested()}
        ran = tested - failed
        # Whichever configurations they are: measurements from elsewhere serve as well.
        missing = self._wanted(pool) - sum(all((key, f) in ran for f in fractions) for key in {key for key, _ in ran})
        if missing <= 0:
            return None
        for position in self._order(pool, seed):
            key = problem.space.key(pool.configuration(position))
            if any((key, fraction) in failed for fraction in fractions):
                continue
            left = tuple(fraction for fraction in fractions if (key, fraction) not in tested)
            if left and not problem.space.snapshots:
                return Step(position, left[0])
            if left and left[-1] == fractions[-1]:
                return Step(position, left[-1], left[:-1])
            missing -= bool(left)  # the run is made; what it did not report on the way is not worth another
            if missing <= 0:
                return None
        return None

    def _wanted(self, pool: Pool) -> int:
        return max(self.count, math.ceil(self.share * pool.lasting))

    def _order(self, pool: Pool, seed: int) -> Iterator[int]:
        """A Latin hypercube of one point is a random one."""
        wanted = self._wanted(pool)
        if wanted == 1:
            return iter(_random_order(pool.lasting, seed).tolist())
        return (position for position, _ in latin_order(pool, (1.0,), wanted, seed))


@dataclass(frozen=True)
class LatinHypercube:
    """Configurations spread evenly over every parameter, and over the fractions in play.

    It ends when so many have run, or when the initial budget is spent, whichever is asked for.
    """

    count: int | None = None  # trials that ran
    initial_budget: float | None = None  # USD
    budget_share: float = 0.1  # of the budget, where neither is given
    space_share: float = 0.03  # of the space, where there is no budget either (as Lynceus and CherryPick do)

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The next point that was not tested yet."""
        if self.is_complete(problem, pool, history):
            return None
        order = latin_order(pool, problem.space.fractions, self.count or _BLOCK, seed)
        return _first_untested(problem, pool, history, order)

    def is_complete(self, problem: Problem, pool: Pool, history: History) -> bool:
        """Whether what was asked for has run; not before something was measured."""
        return bool(history.measurements) and self._has_run(problem, pool, history)

    def _has_run(self, problem: Problem, pool: Pool, history: History) -> bool:
        ran = sum(outcome.failed is None for outcome in history.outcomes) + len(history.pending)
        if self.count is not None:
            return ran >= self.count
        made = sum(not outcome.is_forgotten for outcome in history.outcomes) + len(history.pending)
        if self.initial_budget is not None:
            return history.spent >= self.initial_budget and made >= _FEWEST
        if problem.budget is not None:
            return history.spent >= self.budget_share * problem.budget and made >= _FEWEST
        return ran >= max(2, math.ceil(self.space_share * pool.lasting * len(problem.space.fractions)))


@dataclass(frozen=True)
class AsLongAs:
    """Another design, for as long as a Latin hypercube would go on."""

    design: Design
    hypercube: LatinHypercube

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The other design's next trial."""
        if self.hypercube.is_complete(problem, pool, history):
            return None
        return self.design.next_step(problem, pool, history, seed)


@dataclass(frozen=True)
class RandomSearch:
    """Anything not yet tested, with equal chance, for ever."""

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """Nothing only when everything was tested."""
        fractions, count = problem.space.fractions, pool.lasting
        order = np.random.default_rng([seed, 79, history.next_number]).permutation(count * len(fractions)).tolist()
        steps = ((number % count, fractions[number // count]) for number in order)
        return _first_untested(problem, pool, history, steps)


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
        steps = ((position, fraction) for position in _cheap_order(pool, seed).tolist())
        return _first_untested(problem, pool, history, steps)


@dataclass(frozen=True)
class WhileCheap:
    """Another design, until its trials have taken ``share`` of what a limit allows one run on all of the data.

    Where small fractions save little, a start that is meant to be cheap would cost more than the answer.
    """

    design: Design
    share: float = 0.5

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The other design's next trial; nothing once so much was taken."""
        for limit in problem.limits_on_full_runs:
            taken = sum(one.metrics.get(limit.metric, 0.0) for one in history.measurements)
            if taken >= self.share * limit.limit:
                return None
        return self.design.next_step(problem, pool, history, seed)


def _first_untested(problem: Problem, pool: Pool, history: History, steps: Iterator[tuple[int, float]]) -> Step | None:
    tested = {(problem.space.key(dict(configuration)), fraction) for configuration, fraction in history.tested()}
    for position, fraction in steps:
        if (problem.space.key(pool.configuration(position)), fraction) not in tested:
            return Step(position, fraction)
    return None


def latin_order(pool: Pool, fractions: Sequence[float], block: int, seed: int) -> Iterator[tuple[int, float]]:
    """Every (configuration, fraction), in the order of Latin hypercubes of ``block`` points after one another.

    Each point stands for the nearest member of the pool that was not named before.
    """
    rows = pool.rows[: pool.lasting]
    low, spread = rows.min(axis=0), np.ptp(rows, axis=0)
    box = (rows - low) / np.where(spread > 0, spread, 1.0)
    is_open = np.ones((len(fractions), len(rows)), dtype=bool)
    generator = np.random.default_rng([seed, 78]).spawn(1)[0]
    while is_open.any():
        for point in latin_points(min(block, int(is_open.sum())), box.shape[1] + 1, generator):
            level = min(int(point[-1] * len(fractions)), len(fractions) - 1)
            if not is_open[level].any():
                continue
            distance = np.where(is_open[level], ((box - point[:-1]) ** 2).sum(axis=1), np.inf)
            position = int(distance.argmin())
            is_open[level, position] = False
            yield position, fractions[level]


def latin_points(count: int, dimension: int, generator: np.random.Generator) -> Floats:
    """A Latin hypercube (McKay, Beckman and Conover, 1979): in each column, one point in each of ``count`` slices.

    Those of ``scipy.stats.qmc``, to the last digit; to load that takes longer than all else that a run begins with.
    """
    within = generator.uniform(size=(count, dimension))
    slices = np.tile(np.arange(1, count + 1), (dimension, 1))
    for column in slices:
        generator.shuffle(column)
    return np.asarray((slices.T - within) / count)


def _random_order(count: int, seed: int) -> Positions:
    return np.random.default_rng([seed, 77]).permutation(count)


def _cheap_order(pool: Pool, seed: int) -> Positions:
    """The cheapest third in random order, then the rest."""
    order = _random_order(pool.lasting, seed)
    if pool.prices_per_hour is None:
        return order
    limit = np.quantile(pool.prices_per_hour[: pool.lasting], 1.0 / 3.0)
    is_cheap = pool.prices_per_hour[order] <= limit
    return np.concatenate([order[is_cheap], order[~is_cheap]])
