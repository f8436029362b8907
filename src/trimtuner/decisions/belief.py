"""What is believed about every configuration: one posterior a metric, read in the words of the problem.

The price of a configuration is known and only its time is not, so cost is never modelled as such where prices are
known: its model is that of the billed time, cost × 3600 / price, and the logarithm of the price is added.

Models and measurements are of runs that were left alone. Where machines may be taken away, time and cost are read with
what interruptions are expected to add: predictions at the posterior mean of the logarithm of the time, measurements at
the measured time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.failures import ChanceOfRunning
from trimtuner.decisions.inheritance import Inheritance
from trimtuner.decisions.interruptions import log_inflation
from trimtuner.errors import NoAnswer
from trimtuner.models.gaussian_process import GaussianProcess
from trimtuner.models.inherited import Inherited, weight_of
from trimtuner.models.posterior import Mixture, Prediction, Surrogate
from trimtuner.models.targets import Log, Logit, Transform, transform_for
from trimtuner.models.threads import one_thread
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import History, Measurement
from trimtuner.problem.pool import Pool
from trimtuner.problem.problem import COST, TIME, Constraint, Problem

TIME_GROWTH = 0.8  # time ~ fraction^0.8 before any evidence: most jobs have a fixed part, few grow faster than the data
_BILLED_TIME = "billed time"  # seconds: what the cost amounts to at the configuration's price


@dataclass(frozen=True)
class Places:
    """(configuration, fraction) pairs: positions in the pool, and a fraction for each."""

    pool: Pool
    positions: Positions
    fractions: Floats

    @classmethod
    def product(cls, pool: Pool, fractions: tuple[float, ...]) -> Places:
        """Every configuration at every fraction, fraction by fraction."""
        return cls(
            pool,
            np.tile(np.arange(len(pool)), len(fractions)),
            np.repeat(np.array(fractions), len(pool)),
        )

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def rows(self) -> Floats:
        """As the models take them."""
        return self.pool.rows_at(self.positions, self.fractions)

    def at(self, chosen: Positions) -> Places:
        """Some of them."""
        return Places(self.pool, self.positions[chosen], self.fractions[chosen])


@dataclass(frozen=True)
class Quantity:
    """One modelled quantity: its transform, what is known of it, and how it is known to grow with the data."""

    transform: Transform
    posterior: Mixture
    growth: float = 0.0  # the model is of departures from this times log(fraction), on the transformed scale
    weights: tuple[float, ...] = ()  # of earlier studies, one each: how much of the posterior stands on them


class _FittedWhenAsked(Mapping[str, Quantity]):
    """Quantities by name, each fitted when first read: who recommends a measurement needs no model."""

    def __init__(self, names: tuple[str, ...], fit: Callable[[str], Quantity]) -> None:
        self._names, self._fit = names, fit
        self._fitted: dict[str, Quantity] = {}

    def __getitem__(self, name: str) -> Quantity:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._fitted:
            self._fitted[name] = self._fit(name)
        return self._fitted[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Belief:
    """Everything the decisions need to know, as a value."""

    problem: Problem
    pool: Pool
    quantities: Mapping[str, Quantity]
    measurements: tuple[Measurement, ...]
    chance_of_running: ChanceOfRunning
    failed: frozenset[tuple[int, float]]
    spent: float  # USD, or seconds where no price is known

    @classmethod
    def learn(
        cls,
        problem: Problem,
        pool: Pool,
        history: History,
        surrogate: Surrogate,
        seed: int,
        quality_growth: float = 0.0,
        earlier: Sequence[Inheritance] = (),
    ) -> Belief:
        """A model of each quantity the problem speaks of; pending trials are imagined to come out as expected.

        ``quality_growth`` is how much the log odds of a share that should be large (an accuracy) are expected to rise,
        and the logarithm of a loss to fall, with the logarithm of the data.
        """
        measurements = history.measurements
        if not measurements:
            raise NoAnswer("nothing has been measured yet; run at least one trial and tell its result")
        places = _places_of(pool, [(m.configuration, m.fraction) for m in measurements])
        values = _values_to_model(problem, places, measurements)
        pending = _places_of(pool, [(trial.config, trial.fraction) for trial in history.pending])

        @one_thread
        def fit(name: str) -> Quantity:
            transform = _transform_of(problem, name, values[name])
            # Seeded without the step: a refit must change the belief because of evidence, not by other draws.
            generator = np.random.default_rng([seed, list(values).index(name)])
            growth = _usual_growth(problem, name, transform, quality_growth)
            targets = transform.forward(values[name]) - growth * np.log(places.fractions)
            inherited = _inherited(earlier, name, transform, growth, surrogate)
            said = [one for one in inherited if one is not None]
            posterior = (
                surrogate.fit_on(said, places.rows, targets, transform.scale, generator)
                if said and isinstance(surrogate, GaussianProcess)
                else surrogate.fit(places.rows, targets, transform.scale, generator)
            )
            weights = tuple(0.0 if one is None else weight_of(posterior, one) for one in inherited)
            if len(pending):
                posterior = posterior.condition(pending.rows, posterior.predict(pending.rows).mean)
            return Quantity(transform, posterior, growth, weights)

        quantities = _FittedWhenAsked(tuple(values), fit)
        failures = _places_of(pool, [(o.trial.config, o.trial.fraction) for o in history.failures])
        knows_money = pool.prices_per_hour is not None or COST in quantities
        return cls(
            problem,
            pool,
            quantities,
            measurements,
            ChanceOfRunning.from_trials(places.rows, failures.rows),
            frozenset(zip(failures.positions.tolist(), failures.fractions.tolist(), strict=True)),
            history.spent if knows_money else sum(outcome.time or 0.0 for outcome in history.outcomes),
        )

    @classmethod
    @one_thread
    def expect(
        cls,
        problem: Problem,
        pool: Pool,
        surrogate: GaussianProcess,
        quality_growth: float,
        earlier: Sequence[Inheritance],
    ) -> Belief | None:
        """What earlier studies alone let expect, before anything is measured; nothing where they leave a gap."""
        quantities: dict[str, Quantity] = {}
        for name in _names_to_model(problem, pool):
            values = [found for one in earlier if (found := one.values(name)) is not None]
            if not values:
                return None
            transform = _transform_of(problem, name, np.concatenate(values))
            growth = _usual_growth(problem, name, transform, quality_growth)
            said = [one for one in _inherited(earlier, name, transform, growth, surrogate) if one is not None]
            if not said:
                return None
            quantities[name] = Quantity(transform, Mixture(np.full(len(said), 1.0 / len(said)), said), growth)
        nowhere = _places_of(pool, [])
        running = ChanceOfRunning.from_trials(nowhere.rows, nowhere.rows)
        return cls(problem, pool, quantities, (), running, frozenset(), 0.0)

    def without_constraints(self) -> Belief:
        """The same belief about a problem without constraints."""
        return replace(self, problem=replace(self.problem, constraints=()))

    def elsewhere(self, configurations: Sequence[Configuration]) -> Belief:
        """The same models, read at configurations that have left the pool; the pool keeps all that were tested."""
        pool = self.problem.space.pool_of(configurations)
        return replace(self, pool=pool, measurements=(), failed=frozenset())

    @cached_property
    def undisturbed(self) -> Belief:
        """The same belief, were no run ever interrupted."""
        if self.pool.interruptions_per_hour is None:
            return self
        return replace(self, pool=self.pool.without_interruptions())

    def weights_of(self, earlier: int) -> dict[str, float]:
        """How much of each quantity's model stands on one of the earlier studies, by their order."""
        return {name: quantity.weights[earlier] for name, quantity in self.quantities.items() if quantity.weights}

    def quantity_of(self, metric: str) -> Quantity:
        """The modelled quantity that the metric is read from."""
        return self.quantities[self.quantity_name(metric)]

    def offset(self, metric: str, places: Places) -> Floats:
        """What is added to the quantity's model: usual growth with the data, the log price, and the interruptions."""
        known = self.quantity_of(metric).growth * np.log(places.fractions)
        if metric not in (COST, TIME):
            return known
        risk = self._risk(metric, places, known)
        if metric == COST and self.pool.prices_per_hour is not None:
            known = known + np.log(self.pool.prices_per_hour[places.positions] / 3600.0)
        return known if risk is None else known + risk

    def _risk(self, metric: str, places: Places, growth: Floats) -> Floats | None:
        """What interruptions are expected to add to the logarithm of the time; nothing where none are possible."""
        if self.pool.interruptions_per_hour is None:
            return None
        log_seconds = self.quantity_of(metric).posterior.predict(places.rows).mean + growth
        return log_inflation(self.pool.interruptions_per_hour[places.positions], log_seconds)

    def predict(self, metric: str, places: Places) -> Prediction:
        """The metric on its transformed scale."""
        prediction = self.quantity_of(metric).posterior.predict(places.rows)
        return Prediction(prediction.mean + self.offset(metric, places), prediction.variance)

    def expected(self, metric: str, places: Places) -> Floats:
        """The expected value of the metric in its own units."""
        return self.quantity_of(metric).transform.expectation(*self.predict(metric, places))

    @property
    def effort_metric(self) -> str:
        """What a trial is charged by: money where it is known, else time."""
        return COST if self.quantity_name(COST) in self.quantities else TIME

    def effort_at(self, effort: Prediction, confidence: float) -> Floats:
        """What trials with this predicted effort will cost at most, with that confidence."""
        quantity = self.quantity_of(self.effort_metric)
        spread = effort.variance + quantity.posterior.noise_variance
        return quantity.transform.inverse(effort.mean + ndtri(confidence) * np.sqrt(spread))

    def cautious_effort(self, places: Places) -> Floats:
        """What a trial there will cost at most, in nine cases of ten."""
        return self.effort_at(self.predict(self.effort_metric, places), 0.9)

    def chance(self, constraint: Constraint, prediction: Prediction) -> Floats:
        """The probability that the metric is within the limit, from its transformed prediction."""
        limit = self.transformed_limit(constraint)
        if not np.isfinite(limit):
            met = (limit > 0) == constraint.is_upper
            return np.full(np.shape(prediction.mean), 1.0 if met else 0.0)
        room = limit - prediction.mean if constraint.is_upper else prediction.mean - limit
        chance = ndtr(room / np.sqrt(np.maximum(prediction.variance, 1e-12)))
        # A measured value is within its limit or not, and on the limit is within.
        return np.where(prediction.variance > 0.0, chance, room >= 0.0)

    def transformed_limit(self, constraint: Constraint) -> float:
        """The limit on the scale of its quantity."""
        return float(self.quantity_of(constraint.metric).transform.forward(np.array(constraint.limit)))

    def chance_feasible(self, places: Places) -> Floats:
        """The probability that a trial there runs and meets every constraint."""
        chances = [self.chance(c, self.predict(c.metric, places)) for c in self.problem.constraints]
        return self.chance_of_running.at(places.rows) * self.chance_of_all(chances)

    def chance_of_all(self, chances: Sequence[Floats]) -> Floats | float:
        """The probability that all constraints hold, from that of each, in the problem's order.

        Quantities are taken as independent. Limits on one quantity from one side, such as a limit on the cost and one
        on the time of the same run, are met together or not: the tighter one decides.
        """
        tightest: dict[tuple[str, bool], Floats] = {}
        for constraint, chance in zip(self.problem.constraints, chances, strict=True):
            side = (self.quantity_name(constraint.metric), constraint.is_upper)
            tightest[side] = np.minimum(tightest[side], chance) if side in tightest else chance
        return math.prod(tightest.values())

    @cached_property
    def targets(self) -> Places:
        """Where goal and constraints are meant: what may be recommended."""
        return Places.product(self.pool, self.problem.target_fractions)

    def target_at(self, configuration: Configuration, fraction: float) -> int:
        """The number of the target at that configuration and fraction."""
        return self.problem.target_fractions.index(fraction) * len(self.pool) + self.pool.position(configuration)

    @cached_property
    def measured_targets(self) -> Mapping[int, Measurement]:
        """Targets that have been measured: there the measurement decides, not the model."""
        return {
            self.target_at(dict(m.configuration), m.fraction): self._with_risk(m)
            for m in self.measurements
            if m.fraction in self.problem.target_fractions
        }

    def _with_risk(self, measurement: Measurement) -> Measurement:
        """Time and cost as they are to be expected when the same is run again."""
        rates = self.pool.interruptions_per_hour
        if rates is None or TIME not in measurement.metrics:
            return measurement
        metrics = measurement.metrics
        rate = rates[self.pool.position(dict(measurement.configuration))]
        inflation = float(np.exp(log_inflation(rate, np.log(metrics[TIME]))))
        told = {name: metrics[name] * inflation for name in (TIME, COST) if name in metrics}
        return replace(measurement, metrics={**metrics, **told})

    @cached_property
    def goal_at_targets(self) -> Prediction:
        """The goal at each target on the transformed scale, larger is better; exact where measured."""
        goal = self.problem.goal
        mean, variance = self.predict(goal.metric, self.targets)
        mean, variance = goal.sign * mean, variance.copy()
        transform = self.quantity_of(goal.metric).transform
        for target, measurement in self.measured_targets.items():
            mean[target] = goal.sign * float(transform.forward(np.array(measurement.metrics[goal.metric])))
            variance[target] = 0.0
        return Prediction(mean, variance)

    @cached_property
    def floor(self) -> float:
        """What breaking a limit is worth: 0 for a maximised goal that is never negative, else the worst value seen."""
        goal = self.problem.goal
        if not self.measurements:
            return min(0.0, float((goal.sign * self.expected(goal.metric, self.targets)).min()))
        worst = min(goal.sign * self._with_risk(m).metrics[goal.metric] for m in self.measurements)
        return min(worst, 0.0) if goal.sign > 0 else worst

    def worth(self, goal: Prediction) -> Floats:
        """The expected goal in its own units, larger is better, above the floor (for accuracy: the accuracy)."""
        metric, sign = self.problem.goal.metric, self.problem.goal.sign
        expected = self.quantity_of(metric).transform.expectation(sign * goal.mean, goal.variance)
        return np.asarray(np.maximum(sign * expected - self.floor, 0.0))

    @cached_property
    def worth_at_targets(self) -> Floats:
        """The worth of each target, were it feasible."""
        return self.worth(self.goal_at_targets)

    @cached_property
    def chances_at_targets(self) -> Floats:
        """The probability of each constraint (one line each) at each target; 0 or 1 where measured."""
        chances = np.array(
            [self.chance(c, self.predict(c.metric, self.targets)) for c in self.problem.constraints]
        ).reshape(len(self.problem.constraints), len(self.targets))
        for target, measurement in self.measured_targets.items():
            for number, constraint in enumerate(self.problem.constraints):
                chances[number, target] = float(constraint.is_met(measurement.metrics[constraint.metric]))
        return chances

    @cached_property
    def running_at_targets(self) -> Floats:
        """The probability that each target runs at all; 0 or 1 where it was tried."""
        chance = self.chance_of_running.at(self.targets.rows)
        for target in self.measured_targets:
            chance[target] = 1.0
        order = {fraction: number for number, fraction in enumerate(self.problem.target_fractions)}
        for position, fraction in self.failed:
            if fraction in order:
                chance[order[fraction] * len(self.pool) + position] = 0.0
        return chance

    @cached_property
    def feasible_at_targets(self) -> Floats:
        """The probability that each target runs and meets every constraint."""
        return np.asarray(self.chance_of_all(list(self.chances_at_targets)) * self.running_at_targets)

    def chances_at(self, target: int) -> Floats:
        """The probability of each constraint at one target; read off where it was measured."""
        measurement = self.measured_targets.get(target)
        if measurement is None:
            return self.chances_at_targets[:, target]
        return np.array([float(c.is_met(measurement.metrics[c.metric])) for c in self.problem.constraints])

    def feasible_at(self, target: int) -> float:
        """The probability that one target runs and meets every constraint."""
        if target in self.measured_targets:
            return float(np.prod(self.chances_at(target)))
        return float(self.feasible_at_targets[target])

    def quantity_name(self, metric: str) -> str:
        """Which quantity the metric is read from: cost and time may share one."""
        if metric == COST and self.pool.prices_per_hour is not None:
            return _BILLED_TIME if _BILLED_TIME in self.quantities else TIME
        return metric


def _inherited(
    earlier: Sequence[Inheritance], name: str, transform: Transform, growth: float, surrogate: Surrogate
) -> list[Inherited | None]:
    """What each earlier study says about a quantity; nothing where it did not measure it."""
    if not isinstance(surrogate, GaussianProcess):
        return []
    metric = TIME if name == _BILLED_TIME else name  # prices of before say nothing about bills to come
    return [one.of(metric, transform, growth, surrogate) for one in earlier]


def _usual_growth(problem: Problem, name: str, transform: Transform, quality_growth: float) -> float:
    """How a quantity grows with the data when nothing is known: a model that has seen one fraction starts there."""
    if name in (TIME, COST, _BILLED_TIME):
        return TIME_GROWTH
    if isinstance(transform, Logit):
        return quality_growth
    is_loss = name == problem.goal.metric and problem.goal.sign < 0
    return -quality_growth if is_loss and isinstance(transform, Log) else 0.0


def _transform_of(problem: Problem, name: str, values: Floats) -> Transform:
    limiting = [constraint for constraint in problem.constraints if constraint.metric == name]
    is_wanted_large = (
        problem.goal.sign > 0 if name == problem.goal.metric else any(not limit.is_upper for limit in limiting)
    )
    return transform_for(
        np.concatenate([values, [constraint.limit for constraint in limiting]]),
        is_positive=name in (TIME, COST, _BILLED_TIME),
        more_is_better=is_wanted_large,
    )


def _places_of(pool: Pool, pairs: list[tuple[Mapping[str, Value], float]]) -> Places:
    positions = [pool.position(dict(configuration)) for configuration, _ in pairs]
    return Places(pool, np.array(positions, dtype=np.int64), np.array([f for _, f in pairs], dtype=float))


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
                values[_BILLED_TIME] = billed
    return values
