"""Learning: from a history, or from earlier studies alone, to a belief; reading it is the belief's own affair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import BILLED_TIME, Belief, ChanceOfRunning, Places, Quantity
from trimtuner.errors import NoAnswer
from trimtuner.models.inherited import Heir, Inherited, Legacy, weight_of
from trimtuner.models.posterior import (
    KnownNoise,
    Logit,
    LogScale,
    Mixture,
    Surrogate,
    Transform,
    one_thread,
    transform_for,
)
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import History, Measurement, Outcome
from trimtuner.problem.problem import COST, TIME, Constraint, Problem
from trimtuner.problem.space import Pool, Space

TIME_GROWTH = 0.8  # time ~ fraction^0.8 before any evidence: most jobs have a fixed part, few grow faster than the data
_OF_TIME = (TIME, COST, BILLED_TIME)


class Inheritance:
    """An earlier study in the rows of a new space; each quantity is fitted when first asked for, and kept."""

    def __init__(self, earlier: Earlier, space: Space) -> None:
        self.earlier = earlier
        self._translation = earlier.rows_in(space)
        self._fitted: dict[tuple[str, type, float, Heir], Legacy | None] = {}

    def __len__(self) -> int:
        return len(self._translation.placed)

    def of(self, metric: str, transform: Transform, growth: float, surrogate: Heir) -> Inherited | None:
        """Its posterior of a metric on the new study's scale; nothing where it did not measure it."""
        key = (metric, type(transform), growth, surrogate)
        if key not in self._fitted:
            self._fitted[key] = self._fit(metric, transform, growth, surrogate)
        fitted = self._fitted[key]
        if fitted is None:
            return None
        # A copy, so that what is remembered about a pool goes with the belief that asked.
        return Inherited(fitted.afresh(), self._translation.columns, fitted.spread)

    def values(self, metric: str) -> Floats | None:
        """What it measured, as far as that can be placed; nothing where it did not measure the metric everywhere."""
        return self.earlier.values(metric, self._translation.placed)

    def _fit(self, metric: str, transform: Transform, growth: float, surrogate: Heir) -> Legacy | None:
        values = self.values(metric)
        targets = None if values is None else transform.forward(values)
        if targets is None or not np.isfinite(targets).all():
            return None
        rows = self._translation.rows
        departures = targets - growth * np.log(rows[:, -1])
        return surrogate.fit_likeliest(rows, departures, transform.scale, np.random.default_rng(0))


@dataclass(frozen=True)
class WithinLimits:
    """Time grows like fraction^``usual`` before any evidence, or as slowly as limits on a run's cost or time call for.

    Nobody sets a limit that nothing can keep. So when trials on 3 % of the data take half of what a run on all of it
    may take, small fractions save little on this job; by the usual growth every run would break the limit.
    """

    usual: float = TIME_GROWTH


@dataclass(frozen=True)
class Way:
    """How a method learns: which model each quantity has, and how it expects the quantity to grow with the data.

    ``quality_growth`` is how much the log odds of a share that should be large (an accuracy) are expected to rise,
    and the logarithm of a loss to fall, with the logarithm of the data; ``time_growth`` that of time and cost.
    """

    surrogate: Surrogate
    time_surrogate: Surrogate | None = None  # None: time and cost are learnt as everything else
    quality_growth: float = 0.0
    time_growth: float | WithinLimits = TIME_GROWTH

    def surrogate_of(self, name: str) -> Surrogate:
        """The model of a quantity."""
        return self.surrogate if self.time_surrogate is None or name not in _OF_TIME else self.time_surrogate

    def usual_growth(self, problem: Problem, name: str, transform: Transform) -> float:
        """How a quantity grows with the data when nothing is known: a model that has seen one fraction starts there."""
        if name in _OF_TIME:
            return self.time_growth.usual if isinstance(self.time_growth, WithinLimits) else self.time_growth
        if isinstance(transform, Logit):
            return self.quality_growth
        is_loss = name == problem.goal.metric and problem.goal.sign < 0
        return -self.quality_growth if is_loss and isinstance(transform, LogScale) else 0.0


def learn(
    problem: Problem,
    pool: Pool,
    history: History,
    way: Way,
    seed: int,
    earlier: Sequence[Inheritance] = (),
) -> Belief:
    """A model of each quantity the problem speaks of; pending trials are imagined to come out as expected."""
    measurements = history.measurements
    if not measurements:
        raise NoAnswer("nothing has been measured yet; run at least one trial and tell its result")
    places = Places.listed(pool, [(m.configuration, m.fraction) for m in measurements])
    values = _values_to_model(problem, places, measurements)
    pending = Places.listed(pool, [(trial.config, trial.fraction) for trial in history.pending])
    failures = Places.listed(pool, [(o.trial.config, o.trial.fraction) for o in history.failures])
    broken = Places.listed(pool, [(o.trial.config, o.trial.fraction) for o in history.failures if not o.is_over_limit])
    repeated = tuple(one for one in measurements if one.runs > 1)
    knows_money = pool.prices_per_hour is not None or COST in values
    return Belief(
        problem,
        pool,
        FittedWhenRead(
            Lesson(problem, places, values, pending, way, seed, tuple(earlier), repeated, Stopped.of(pool, history))
        ),
        measurements,
        ChanceOfRunning.from_trials(places.rows, broken.rows),
        frozenset(zip(failures.positions.tolist(), failures.fractions.tolist(), strict=True)),
        sum(_charge(outcome, knows_money) for outcome in history.outcomes),
        sum(
            _charge(outcome, knows_money)
            for outcome in history.outcomes
            if outcome.is_over_limit and outcome.trial.fraction in problem.target_fractions
        ),
    )


def _charge(outcome: Outcome, knows_money: bool) -> float:
    """What a trial took of what trials are charged by: USD, or seconds where no price is known."""
    return outcome.cost if knows_money else outcome.time or 0.0


@one_thread
def expect(problem: Problem, pool: Pool, way: Way, earlier: Sequence[Inheritance]) -> Belief | None:
    """What earlier studies alone let expect, before anything is measured; nothing where they leave a gap."""
    quantities: dict[str, Quantity] = {}
    for name in _names_to_model(problem, pool):
        values = [found for one in earlier if (found := one.values(name)) is not None]
        if not values:
            return None
        transform = _transform_of(problem, name, np.concatenate(values))
        growth = way.usual_growth(problem, name, transform)
        surrogate = way.surrogate_of(name)
        if not isinstance(surrogate, Heir):
            return None
        said = [one for one in _inherited(earlier, name, transform, growth, surrogate) if one is not None]
        if not said:
            return None
        quantities[name] = Quantity(transform, Mixture(np.full(len(said), 1.0 / len(said)), said), growth)
    nowhere = Places.listed(pool, []).rows
    return Belief(problem, pool, quantities, (), ChanceOfRunning.from_trials(nowhere, nowhere), frozenset(), 0.0)


@dataclass(frozen=True)
class Stopped:
    """Trials that were stopped for breaking a limit: where, and how long they had taken by then."""

    places: Places
    seconds: Floats

    @classmethod
    def of(cls, pool: Pool, history: History) -> Stopped:
        """Those of a history, in the order they ended."""
        found = [outcome for outcome in history.outcomes if outcome.is_over_limit]
        places = Places.listed(pool, [(one.trial.config, one.trial.fraction) for one in found])
        return cls(places, np.array([one.time for one in found], dtype=float))

    def heard_by(self, posterior: Mixture, growth: float) -> Mixture:
        """The posterior of log time, told that each took longer than this: as long as is then to be expected.

        E[f | f > b] of a Gaussian: μ + σ φ(z) / (1 - Φ(z)), z = (b - μ) / σ. How much longer nobody saw.
        """
        bound = np.log(self.seconds) - growth * np.log(self.places.fractions)
        mean, variance = posterior.predict(self.places.rows)
        deviation = np.sqrt(variance + posterior.noise_variance)
        z = (bound - mean) / deviation
        hazard = np.exp(-0.5 * z * z - log_ndtr(-z)) / np.sqrt(2.0 * np.pi)
        return posterior.condition(self.places.rows, mean + deviation * hazard)


@dataclass(frozen=True)
class Lesson:
    """What the models learn from, and how."""

    problem: Problem
    places: Places
    values: Mapping[str, Floats]  # of each quantity, as measured at the places
    pending: Places
    way: Way
    seed: int
    earlier: tuple[Inheritance, ...]
    repeated: tuple[Measurement, ...]  # those that are the mean of several runs
    stopped: Stopped

    @one_thread
    def fit(self, name: str) -> Quantity:
        """The model of one quantity: this is where the time of an ask goes."""
        transform = _transform_of(self.problem, name, self.values[name])
        # Seeded without the step: a refit must change the belief because of evidence, not by other draws.
        generator = np.random.default_rng([self.seed, list(self.values).index(name)])
        growth = self._growth_of(name, transform)
        surrogate = self.way.surrogate_of(name)
        rows, targets = self.places.rows, transform.forward(self.values[name]) - growth * np.log(self.places.fractions)
        heir = surrogate if isinstance(surrogate, Heir) else None
        usual = self.way.usual_growth(self.problem, name, transform)
        inherited = [] if heir is None else _inherited(self.earlier, name, transform, usual, heir, growth)
        said = [one for one in inherited if one is not None]
        noise = noise_of_repeats(self.repeated, name, transform)
        posterior = (
            surrogate.fit(rows, targets, transform.scale, generator)
            if heir is None or not (said or noise)
            else heir.fit_on(said, rows, targets, transform.scale, generator, noise)
        )
        weights = tuple(0.0 if one is None else weight_of(posterior, one) for one in inherited)
        if len(self.stopped.places) and name in (TIME, BILLED_TIME):
            posterior = self.stopped.heard_by(posterior, growth)
        if len(self.pending):
            posterior = posterior.condition(self.pending.rows, posterior.predict(self.pending.rows).mean)
        return Quantity(transform, posterior, growth, weights)

    def _growth_of(self, name: str, transform: Transform) -> float:
        """The usual growth, or less where limits say so."""
        usual = self.way.usual_growth(self.problem, name, transform)
        if name in _OF_TIME and isinstance(self.way.time_growth, WithinLimits):
            values, stopped = self.values[name], len(self.stopped.places)
            return min(usual, growth_to_keep_limits(self.problem, name, self.places, values, stopped))
        return usual


def growth_to_keep_limits(problem: Problem, quantity: str, places: Places, values: Floats, stopped: int) -> float:
    """The growth with the data by which half of the trials would just keep every limit on a full run; never below 0.

    Infinite where there is no such limit, or no trial on less than all of the data; and where more runs were
    ``stopped`` for breaking one than there are such trials and full runs that keep them all: limits do not speak then.
    """
    known = [
        limit
        for constraint in problem.limits_on_full_runs
        if (limit := _limit_on(constraint, quantity, places)) is not None
    ]
    is_below = places.fractions < 1.0
    if not known or not is_below.any():
        return np.inf
    room = np.log(np.min(known, axis=0)) - np.log(values)
    if stopped > (is_below | (room >= 0.0)).sum():
        return np.inf
    return max(0.0, float(np.median(room[is_below] / -np.log(places.fractions[is_below]))))


def _limit_on(constraint: Constraint, quantity: str, places: Places) -> Floats | None:
    """The limit at each place in the units of the quantity, seconds or USD; None where it says nothing about it."""
    if (constraint.metric == COST) == (quantity == COST):
        return np.full(len(places), constraint.limit)
    prices = places.pool.prices_per_hour
    if constraint.metric == TIME or prices is None:
        return None
    return np.asarray(constraint.limit * 3600.0 / prices[places.positions])


def noise_of_repeats(repeated: Sequence[Measurement], name: str, transform: Transform) -> KnownNoise | None:
    """How far measurements of a quantity lie from the truth, by the spread of runs that were repeated; None without.

    Pooled over all trials: three runs tell a deviation to within half of it, twenty trials of three to a tenth.
    """
    metric = TIME if name in (BILLED_TIME, COST) else name
    told = [(one.metrics[metric], one.spread[metric], one.runs) for one in repeated if metric in one.spread]
    if not told:
        return None
    values, deviations, runs = (np.array(column, dtype=float) for column in zip(*told, strict=True))
    step = 1e-4 * np.maximum(np.abs(values), 1e-9)
    slopes = (transform.forward(values + step) - transform.forward(values - step)) / (2.0 * step)
    variances, freedom = (slopes * deviations) ** 2, runs - 1.0
    is_usable = np.isfinite(variances)
    if not is_usable.any():
        return None
    pooled = np.average((variances / runs)[is_usable], weights=freedom[is_usable])
    return KnownNoise(float(np.sqrt(pooled)), int(freedom[is_usable].sum()))


class FittedWhenRead(Mapping[str, Quantity]):
    """The quantities of a lesson by name, each fitted when first read: who recommends a measurement needs no model."""

    def __init__(self, lesson: Lesson) -> None:
        self._lesson = lesson
        self._fitted: dict[str, Quantity] = {}

    def __getitem__(self, name: str) -> Quantity:
        if name not in self._fitted:
            self._fitted[name] = self._lesson.fit(name)
        return self._fitted[name]

    def __contains__(self, name: object) -> bool:
        return name in self._lesson.values

    def __iter__(self) -> Iterator[str]:
        return iter(self._lesson.values)

    def __len__(self) -> int:
        return len(self._lesson.values)


def _inherited(
    earlier: Sequence[Inheritance],
    name: str,
    transform: Transform,
    usual: float,
    surrogate: Heir,
    growth: float | None = None,
) -> list[Inherited | None]:
    """What each earlier study says about a quantity; nothing where it did not measure it.

    It is fitted once, by the ``usual`` growth, and read as departures from this study's ``growth``.
    """
    metric = TIME if name == BILLED_TIME else name  # prices of before say nothing about bills to come
    found = [one.of(metric, transform, usual, surrogate) for one in earlier]
    slope = 0.0 if growth is None else usual - growth
    return [None if one is None else replace(one, slope=slope) for one in found]


def _transform_of(problem: Problem, name: str, values: Floats) -> Transform:
    limiting = [constraint for constraint in problem.constraints if constraint.metric == name]
    is_wanted_large = (
        problem.goal.sign > 0 if name == problem.goal.metric else any(not limit.is_upper for limit in limiting)
    )
    return transform_for(
        np.concatenate([values, [constraint.limit for constraint in limiting]]),
        is_positive=name in _OF_TIME,
        more_is_better=is_wanted_large,
    )


def _names_to_model(problem: Problem, pool: Pool) -> tuple[str, ...]:
    """The quantities that goal and limits are read from, as long as no bill says otherwise."""
    named = (*problem.reported_metrics, problem.goal.metric, *(c.metric for c in problem.constraints))
    is_billed = pool.prices_per_hour is not None
    return tuple(dict.fromkeys(TIME if name == COST and is_billed else name for name in named))


def _values_to_model(problem: Problem, places: Places, measurements: tuple[Measurement, ...]) -> dict[str, Floats]:
    """A column of measured values for each quantity that the problem, or the price of a trial, depends on."""
    named = dict.fromkeys((*problem.reported_metrics, problem.goal.metric, *(c.metric for c in problem.constraints)))
    prices = places.pool.prices_per_hour
    values = {name: np.array([m.metrics[name] for m in measurements]) for name in named if name not in (COST, TIME)}
    if all(TIME in m.metrics for m in measurements):
        values[TIME] = np.array([m.metrics[TIME] for m in measurements])
    if all(COST in m.metrics for m in measurements):
        cost = np.array([m.metrics[COST] for m in measurements])
        if prices is None:
            values[COST] = cost
        else:
            billed = cost * 3600.0 / prices[places.positions]
            if not np.allclose(billed, values[TIME], rtol=1e-9):
                values[BILLED_TIME] = billed
    return values
