"""What is believed about every configuration: one posterior a metric, read in the words of the problem.

The price of a configuration is known and only its time is not, so cost is never modelled as such where prices are
known: its model is that of the billed time, cost × 3600 / price, and the logarithm of the price is added.

Models and measurements are of runs that were left alone. Where machines may be taken away, time and cost are read with
what interruptions are expected to add: predictions at the posterior mean of the logarithm of the time, measurements at
the measured time. Where jobs fail, the chance that a configuration runs at all is read from the trials near it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.interruptions import log_inflation
from trimtuner.models.posterior import Mixture, Prediction, Transform, one_thread
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME, Constraint, Problem
from trimtuner.problem.space import Pool

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


LIKELY = 0.5  # more likely than not: what may be believed in runs and meets every limit with at least this chance
CAUTION = 0.9  # of cases: how surely a cost "at most" is kept to, unless a method says otherwise
INTERVAL = 0.9  # of cases that an interval should hold
BILLED_TIME = "billed time"  # seconds: what the cost amounts to at the configuration's price


def interval_deviations(share: float) -> float:
    """How many deviations either way hold that share of cases, by Student's t with two degrees of freedom.

    A spread that is learnt from few trials is itself in doubt: with a normal's, intervals held the truth in 71 % of
    cases for 90 % (docs/decisions/0045).
    """
    return share * math.sqrt(2.0 / (1.0 - share**2))


def share_below(deviations: Floats) -> Floats:
    """The share of cases up to so many deviations above the mean, by the law of the intervals."""
    return np.asarray(0.5 + 0.5 * deviations / np.sqrt(2.0 + deviations**2))


@dataclass(frozen=True)
class Places:
    """(configuration, fraction) pairs: positions in the pool, and a fraction for each."""

    pool: Pool
    positions: Positions
    fractions: Floats
    levels: tuple[float, ...] = ()  # the fractions that every configuration is at, in order; none where they are listed

    @classmethod
    def product(cls, pool: Pool, fractions: tuple[float, ...]) -> Places:
        """Every configuration at every fraction, fraction by fraction."""
        positions = np.tile(np.arange(len(pool)), len(fractions))
        return cls(pool, positions, np.repeat(np.array(fractions), len(pool)), fractions)

    @classmethod
    def listed(cls, pool: Pool, pairs: Sequence[tuple[Mapping[str, Value], float]]) -> Places:
        """These configurations, each at its fraction."""
        positions = [pool.position(dict(configuration)) for configuration, _ in pairs]
        return cls(pool, np.array(positions, dtype=np.int64), np.array([f for _, f in pairs], dtype=float))

    def number_of(self, position: int, fraction: float) -> int:
        """Where in a product that configuration is at that fraction, which must be one of its levels."""
        return self.levels.index(fraction) * len(self.pool) + position

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def rows(self) -> Floats:
        """What the models take: a line of columns for each, the fraction last.

        One array for good, that nobody can change: models remember what they know of it by its identity (``Memo``).
        """
        rows = self.pool.rows_at(self.positions, self.fractions)
        rows.flags.writeable = False
        return rows

    def at(self, chosen: Positions) -> Places:
        """Those of these numbers, in their order."""
        return Places(self.pool, self.positions[chosen], self.fractions[chosen])


@dataclass(frozen=True)
class Quantity:
    """One modelled quantity: its transform, what is known of it, and how it is known to grow with the data."""

    transform: Transform
    posterior: Mixture
    growth: float = 0.0  # the model is of departures from this times log(fraction), on the transformed scale
    weights: tuple[float, ...] = ()  # of earlier studies, one each: how much of the posterior stands on them


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
    spent_over_limit: float = 0.0  # of it, on trials at targets that were stopped for breaking a limit

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

    def interval(self, metric: str, places: Places) -> tuple[Floats, Floats]:
        """Between what values a run at each place would measure the metric in nine cases of ten, noise included."""
        quantity, (mean, variance) = self.quantity_of(metric), self.predict(metric, places)
        reach = interval_deviations(INTERVAL) * np.sqrt(variance + quantity.posterior.noise_variance)
        return quantity.transform.inverse(mean - reach), quantity.transform.inverse(mean + reach)

    @property
    def effort_metric(self) -> str:
        """What a trial is charged by: money where it is known, else time."""
        return COST if self.knows(COST) else TIME

    def effort_at_most(self, effort: Prediction, confidence: float) -> Floats:
        """What trials with this predicted effort will cost at most, with that confidence."""
        quantity = self.quantity_of(self.effort_metric)
        spread = effort.variance + quantity.posterior.noise_variance
        return quantity.transform.inverse(effort.mean + ndtri(confidence) * np.sqrt(spread))

    def chance(self, constraint: Constraint, prediction: Prediction, law: Callable[[Floats], Floats] = ndtr) -> Floats:
        """The probability that the metric is within the limit, from its transformed prediction."""
        limit = self.transformed_limit(constraint)
        if not np.isfinite(limit):
            met = (limit > 0) == constraint.is_upper
            return np.full(np.shape(prediction.mean), 1.0 if met else 0.0)
        room = limit - prediction.mean if constraint.is_upper else prediction.mean - limit
        chance = law(room / np.sqrt(np.maximum(prediction.variance, 1e-12)))
        # A measured value is within its limit or not, and on the limit is within.
        return np.where(prediction.variance > 0.0, chance, room >= 0.0)

    def told_chance(self, constraint: Constraint, places: Places) -> Floats:
        """The probability that a run at each place keeps the limit, as a user is told: by the law of the intervals.

        So an interval that reaches beyond a limit and a chance to keep it say the same. What chooses trials and
        recommendations goes by the normal law (docs/decisions/0051).
        """
        mean, variance = self.predict(constraint.metric, places)
        noise = self.quantity_of(constraint.metric).posterior.noise_variance
        return self.chance(constraint, Prediction(mean, variance + noise), share_below)

    def transformed_limit(self, constraint: Constraint) -> float:
        """The limit on the scale of its quantity."""
        if constraint not in self._transformed_limits:
            transform = self.quantity_of(constraint.metric).transform
            self._transformed_limits[constraint] = float(transform.forward(np.array(constraint.limit)))
        return self._transformed_limits[constraint]

    @cached_property
    def _transformed_limits(self) -> dict[Constraint, float]:
        """Those asked for so far: lookahead asks for the same ones at each of its many thousand steps."""
        return {}

    def chance_feasible(self, places: Places) -> Floats:
        """The probability that a trial there runs and meets every constraint, as a user is told."""
        chances = [self.told_chance(c, places) for c in self.problem.constraints]
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

    def target_at(self, configuration: Mapping[str, Value], fraction: float) -> int:
        """The number of the target at that configuration and fraction."""
        return self.targets.number_of(self.pool.position(dict(configuration)), fraction)

    @cached_property
    def measured_targets(self) -> Mapping[int, Measurement]:
        """Targets that have been measured: there the measurement decides, not the model."""
        return {
            self.target_at(m.configuration, m.fraction): self._with_risk(m)
            for m in self.measurements
            if m.fraction in self.targets.levels
        }

    @property
    def spent_at_targets(self) -> float:
        """What trials at targets have cost that ran as long as they could: to their end, or to a limit."""
        measured = sum(m.metrics.get(self.effort_metric, 0.0) for m in self.measured_targets.values())
        return self.spent_over_limit + measured

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

    def known_at(self, metric: str, targets: Positions, places: Places) -> Prediction:
        """The metric at some targets and the places that they are, transformed; exact where measured."""
        mean, variance = (moment.copy() for moment in self.predict(metric, places))
        transform = self.quantity_of(metric).transform
        for target, measurement in self.measured_targets.items():
            mean[targets == target] = float(transform.forward(np.array(measurement.metrics[metric])))
            variance[targets == target] = 0.0
        return Prediction(mean, variance)

    @cached_property
    def goal_at_targets(self) -> Prediction:
        """The goal at each target on the transformed scale, larger is better; exact where measured."""
        goal = self.problem.goal
        mean, variance = self.known_at(goal.metric, np.arange(len(self.targets)), self.targets)
        return Prediction(goal.sign * mean, variance)

    @cached_property
    def proven(self) -> tuple[int, ...]:
        """Targets measured within all limits."""
        return tuple(target for target in self.measured_targets if self.feasible_at_targets[target] == 1.0)

    @cached_property
    def best_measured(self) -> float | None:
        """The best goal measured within all limits where the goal is meant; larger is better, transformed."""
        return max((float(self.goal_at_targets.mean[target]) for target in self.proven), default=None)

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
        chance[list(self.measured_targets)] = 1.0
        chance[[self.targets.number_of(*failed) for failed in self.failed if failed[1] in self.targets.levels]] = 0.0
        return chance

    @cached_property
    def feasible_at_targets(self) -> Floats:
        """The probability that each target runs and meets every constraint."""
        return np.asarray(self.chance_of_all(list(self.chances_at_targets)) * self.running_at_targets)

    def chances_at(self, target: int) -> Floats:
        """The probability of each constraint at one target, as a user is told; read off where it was measured.

        Where the least cost (or time) is sought, a target is looked at because it seems to keep limits that its price
        speaks against, and seems so by mistake more often than others: its chance counts twice (docs/decisions/0053).
        """
        measurement = self.measured_targets.get(target)
        if measurement is not None:
            return np.array([float(c.is_met(measurement.metrics[c.metric])) for c in self.problem.constraints])
        place = self.targets.at(np.array([target]))
        told = np.array([float(self.told_chance(c, place)[0]) for c in self.problem.constraints])
        return told**2 if self.problem.goal.metric in (COST, TIME) else told

    def feasible_at(self, target: int) -> float:
        """The probability that one target runs and meets every constraint, as a user is told."""
        if target in self.measured_targets:
            return float(np.prod(self.chances_at(target)))
        return float(self.chance_of_all(list(self.chances_at(target))) * self.running_at_targets[target])

    def quantity_name(self, metric: str) -> str:
        """Which quantity the metric is read from: cost and time may share one."""
        if metric == COST and self.pool.prices_per_hour is not None:
            return BILLED_TIME if BILLED_TIME in self.quantities else TIME
        return metric

    def knows(self, metric: str) -> bool:
        """Whether there is a model to read the metric from."""
        return self.quantity_name(metric) in self.quantities
