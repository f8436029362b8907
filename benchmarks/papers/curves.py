"""Searches with several seeds as one curve, and what it took them to get to a level, with the spread.

A level that a search never reaches costs it infinitely much. Percentiles, the median among them, are the usual ones:
linear between two neighbours, and infinite where one of the two is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.papers.searches import Trace
from trimtuner.arrays import Floats

RESAMPLES = 1000
INTERVAL = (5.0, 95.0)  # percentiles of the resamples: a 90 % interval


class Axis(StrEnum):
    """What a search uses up."""

    COST = "exploration cost (USD)"
    TIME = "exploration time (h)"
    NUMBER = "number of trials"
    TOTAL_TIME = "exploration time + time to ask (h)"


Value = Callable[[Trace], Floats]  # how good the recommendation is after each trial


def used(trace: Trace, axis: Axis) -> Floats:
    """How much of it was used after each trial."""
    if axis is Axis.COST:
        return np.array(trace.spent)
    if axis is Axis.TIME:
        return np.array(trace.seconds) / 3600.0
    if axis is Axis.TOTAL_TIME:
        return np.array(trace.total_seconds) / 3600.0
    return np.arange(1.0, len(trace.spent) + 1.0)


def share_of_best(trace: Trace) -> Floats:
    """Accuracy_C of Eq. 7 (TrimTuner): scaled down where the recommendation breaks the limit; a share of the best."""
    return np.array(trace.quality)


def share_or_zero(trace: Trace) -> Floats:
    """Accuracy_C of Eq. 7.1 (thesis): zero where the recommendation breaks the limit; a share of the best."""
    return np.where(trace.feasible, trace.quality, 0.0)


def normalised_cost(scale: float) -> Value:
    """CNO of Eq. 6.1, infinite until something feasible is recommended.

    ``scale`` is the cost of the best in the method's own space over that of the best of all.
    """

    def value(trace: Trace) -> Floats:
        quality = np.where(trace.feasible, trace.quality, 0.0)
        with np.errstate(divide="ignore"):
            return scale / quality

    return value


@dataclass(frozen=True)
class Steps:
    """The values of several searches at the same places of an axis: a row for each search."""

    places: Floats
    rows: Floats

    @property
    def mean(self) -> Floats:
        """The mean over the searches."""
        return np.asarray(self.rows.mean(axis=0))

    @property
    def deviation(self) -> Floats:
        """Standard deviation over the searches; 0 for one."""
        return np.asarray(self.rows.std(axis=0, ddof=1 if len(self.rows) > 1 else 0))

    @property
    def error(self) -> Floats:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(len(self.rows))

    def percentile(self, percent: float) -> Floats:
        """Over the searches, at each place."""
        return percentiles(self.rows.T, percent)


def steps(traces: Sequence[Trace], axis: Axis, value: Value, before: float, places: Floats | None = None) -> Steps:
    """Each search's value as a step function: ``before`` until its first trial ends, its last value after its end."""
    at = np.unique(np.concatenate([used(trace, axis) for trace in traces])) if places is None else places
    rows = np.empty((len(traces), len(at)))
    for row, trace in zip(rows, traces, strict=True):
        with_start = np.concatenate([[before], value(trace)])
        row[:] = with_start[np.searchsorted(used(trace, axis), at, side="right")]
    return Steps(at, rows)


def places_for(groups: Sequence[Sequence[Trace]], axis: Axis, is_log: bool, count: int = 160) -> Floats:
    """Places from where the first search knows something to where the typical longest line ends."""
    first = min(used(trace, axis)[0] for traces in groups for trace in traces)
    last = max(float(np.median([used(trace, axis)[-1] for trace in traces])) for traces in groups)
    if axis is Axis.NUMBER:
        return np.unique(np.round(np.geomspace(1.0, last, count) if is_log else np.arange(1.0, last + 1.0)))
    return np.geomspace(first, last, count) if is_log else np.linspace(0.0, last, count)


def first_reached(trace: Trace, axis: Axis, value: Value, level: float) -> float:
    """What was used when the level was first reached; infinite if it never was."""
    reached = np.flatnonzero(value(trace) >= level)
    return float(used(trace, axis)[reached[0]]) if len(reached) else math.inf


def settled(trace: Trace, axis: Axis, value: Value, level: float) -> float:
    """What was used when the level was reached for good; infinite if the search ended below it."""
    below = np.flatnonzero(value(trace) < level)
    first = int(below[-1]) + 1 if len(below) else 0
    return float(used(trace, axis)[first]) if first < len(trace.spent) else math.inf


def mean_crossing(curve: Steps, level: float) -> float:
    """Where the mean over the searches first reaches the level."""
    reached = np.flatnonzero(curve.mean >= level)
    return float(curve.places[reached[0]]) if len(reached) else math.inf


def percentiles(rows: Floats, percent: float) -> Floats:
    """The usual percentile of each row: linear between two neighbours, infinite where one of the two is."""
    ordered = np.sort(rows, axis=-1)
    place = round(percent / 100.0 * (ordered.shape[-1] - 1), 9)
    below, weight = int(place), place - int(place)
    lower, upper = ordered[..., below], ordered[..., math.ceil(place)]
    with np.errstate(invalid="ignore"):
        between = lower + weight * (upper - lower)
    return np.asarray(np.where(np.isinf(upper), upper, between))


def percentile(values: Sequence[float] | Floats, percent: float) -> float:
    """The usual percentile."""
    return float(percentiles(np.asarray(values, dtype=float), percent))


def median(values: Sequence[float] | Floats) -> float:
    """The middle value; half-way between the middle two."""
    return percentile(values, 50.0)


@dataclass(frozen=True)
class Estimate:
    """A figure with its 90 % bootstrap interval over seeds."""

    value: float
    low: float
    high: float

    @classmethod
    def of_draws(cls, value: float, draws: Floats) -> Estimate:
        """Draws in which the figure is not known (nobody got there) are left out."""
        known = draws[~np.isnan(draws)]
        if not len(known):
            return cls(value, math.nan, math.nan)
        return cls(value, percentile(known, INTERVAL[0]), percentile(known, INTERVAL[1]))

    def map(self, change: Callable[[float], float]) -> Estimate:
        """The same estimate in other units."""
        ends = sorted((change(self.low), change(self.high)))
        return Estimate(change(self.value), ends[0], ends[1])


def quotient(numerator: float, denominator: float) -> float:
    """Infinite where only the numerator is, zero where only the denominator is, unknown where both are."""
    return float(_quotients(np.array([numerator]), np.array([denominator]))[0])


def ratio(numerators: Sequence[float], denominators: Sequence[float], percent: float = 50.0) -> Estimate:
    """The ratio of a percentile (the median) of two sets of searches."""

    def statistic(rows: Floats) -> Floats:
        return percentiles(rows, percent)

    return _ratio_of(statistic, numerators, denominators)


def mean_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """The ratio of the means of two sets of searches."""

    def statistic(rows: Floats) -> Floats:
        return np.asarray(rows.mean(axis=1))

    return _ratio_of(statistic, numerators, denominators)


def mean_estimate(values: Sequence[float]) -> Estimate:
    """The mean of a set of searches."""
    found = np.array(values, dtype=float)
    drawn = found[_resampled(len(found), np.random.default_rng(0))].mean(axis=1)
    return Estimate.of_draws(float(found.mean()), drawn)


def crossing_ratio(
    numerators: Sequence[Trace], denominators: Sequence[Trace], axis: Axis, value: Value, level: float
) -> Estimate:
    """The ratio of what two sets of searches use until their mean curve first reaches a level."""
    generator = np.random.default_rng(0)
    found, drawn = [], []
    for traces in (numerators, denominators):
        curve = steps(traces, axis, value, before=0.0)
        means = curve.rows[_resampled(len(traces), generator)].mean(axis=1)
        found.append(mean_crossing(curve, level))
        drawn.append(_first_places(curve.places, means >= level))
    return Estimate.of_draws(quotient(found[0], found[1]), _quotients(drawn[0], drawn[1]))


def _ratio_of(
    statistic: Callable[[Floats], Floats], numerators: Sequence[float], denominators: Sequence[float]
) -> Estimate:
    generator = np.random.default_rng(0)
    top, bottom = np.array(numerators, dtype=float), np.array(denominators, dtype=float)
    value = quotient(float(statistic(top[None])[0]), float(statistic(bottom[None])[0]))
    drawn = [statistic(values[_resampled(len(values), generator)]) for values in (top, bottom)]
    return Estimate.of_draws(value, _quotients(drawn[0], drawn[1]))


def _resampled(size: int, generator: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Positions of as many searches as there are, drawn with repetition: a row for each resample."""
    return generator.integers(size, size=(RESAMPLES, size))


def _first_places(places: Floats, reached: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    return np.where(reached.any(axis=1), places[reached.argmax(axis=1)], np.inf)


def _quotients(numerators: Floats, denominators: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = numerators / denominators
    return np.where(denominators == 0.0, np.nan, quotients)
