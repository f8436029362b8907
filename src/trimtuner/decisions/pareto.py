"""The front: what cannot be had better without paying more, and its knee.

On the front that is recommended, a forecast counts with the unfavourable ends of its 90 % intervals: the price it stays
within, and the quality it reaches, in 95 % of cases each. A measurement counts as measured. So a forecast pushes a
measurement from the front only when it is better beyond doubt, and what is named for a limit on the price very likely
keeps it. With forecasts at their medians, half of them would break the limits just above them (docs/results/pareto.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.belief import LIKELY, Belief, interval_deviations
from trimtuner.problem.problem import COST, TIME

CONFIDENCE = 0.95  # with which a forecast keeps to each of the figures that it is recommended by
EVEN_CHANCES = 0.5  # forecasts at their medians: where a search looks for better
_GOLDEN = (5**0.5 - 1) / 2
_BEYOND = 0.15  # of the front's length: its dearest is a forecast, and has even chances to cost more


@dataclass(frozen=True)
class Axes:
    """What is paid, what one gets for it, and whether more of that is better (+1) or less (-1)."""

    price: str
    quality: str
    sign: float


@dataclass(frozen=True)
class Outline:
    """Targets on the front, from the cheapest to the best; both figures rise strictly (quality: as the sign says)."""

    axes: Axes
    targets: Positions
    prices: Floats
    qualities: Floats  # in their own units

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def knee(self) -> int:
        """The place of the knee among the targets; see ``knee_of``."""
        return knee_of(self.prices, self.axes.sign * self.qualities)


def axes_of(belief: Belief) -> Axes | None:
    """What the goal trades; for one goal money (else time) is paid, and for the least cost what must be good enough."""
    goal = belief.problem.goal
    if goal.against is not None:
        return Axes(goal.against, goal.metric, goal.sign)
    if goal.metric not in (COST, TIME):
        paid = belief.effort_metric
        return Axes(paid, goal.metric, goal.sign) if belief.quantity_name(paid) in belief.quantities else None
    limited = [c for c in belief.problem.constraints if c.metric not in (COST, TIME)]
    return Axes(goal.metric, limited[0].metric, -1.0 if limited[0].is_upper else 1.0) if limited else None


def outline(belief: Belief, axes: Axes, may_be: Booleans, confidence: float) -> Outline:
    """The front among the targets that may be named and are likely to run and to meet every limit."""
    deviations = interval_deviations(2.0 * confidence - 1.0)  # of the interval that leaves as much beyond either end
    prices = kept_values(belief, axes.price, deviations)
    qualities = kept_values(belief, axes.quality, -axes.sign * deviations)
    is_open = (belief.feasible_at_targets >= LIKELY) & may_be
    targets = undominated(prices, axes.sign * qualities, is_open)
    return Outline(axes, targets, prices[targets], qualities[targets])


def kept_values(belief: Belief, metric: str, deviations: float) -> Floats:
    """The metric at each target: as measured, else so many deviations of what a run would measure above its median."""
    mean, variance = belief.predict(metric, belief.targets)
    quantity = belief.quantity_of(metric)
    deviation = np.sqrt(variance + quantity.posterior.noise_variance)
    values = quantity.transform.inverse(mean + deviations * deviation).copy()
    for target, measurement in belief.measured_targets.items():
        if metric in measurement.metrics:
            values[target] = measurement.metrics[metric]
    return values


def undominated(prices: Floats, worths: Floats, is_open: Booleans) -> Positions:
    """Of the open ones, those that no other beats in both, the cheapest first; of equals, the first."""
    candidates = np.nonzero(is_open & np.isfinite(prices) & np.isfinite(worths))[0]
    order = candidates[np.lexsort((-worths[candidates], prices[candidates]))]
    before = np.maximum.accumulate(np.r_[-np.inf, worths[order]])[:-1]
    return np.asarray(order[worths[order] > before])


def knee_of(prices: Floats, worths: Floats) -> int:
    """Where a front turns: up to there a little more money buys much, beyond it much more money buys little.

    With the price in logarithms (where all are above 0) and both axes scaled to run from 0 to 1, it is the point
    farthest above the straight line from the cheapest to the best. A front of one or two points, or one that never
    rises above that line, has no turn: then the best counts, for nothing speaks for less.
    """
    last = len(prices) - 1
    if last < 2:
        return last
    x = _scaled(_evened(prices))
    height = _scaled(worths) - x
    farthest = int(np.argmax(height))
    return farthest if height[farthest] > 1e-9 else last


def prices_along(found: Outline, shares: Floats) -> Floats:
    """Prices that lie so far along the front (0: the cheapest, 1: the dearest), evenly in logarithms."""
    low, high = found.prices[0], found.prices[-1]
    if low > 0:
        return np.asarray(low * (high / low) ** shares)
    return np.asarray(low + shares * (high - low))


def price_of_step(found: Outline, number: int) -> float:
    """The price at which the trial of that number looks: steps of the golden ratio leave no part out for long."""
    share = (number * _GOLDEN) % 1.0
    return float(prices_along(found, np.array([share * (1.0 + _BEYOND)]))[0])


def belief_within(belief: Belief, price: float) -> Belief:
    """The same belief about the problem of the best for that price."""
    return replace(belief, problem=belief.problem.within(price))


def _evened(prices: Floats) -> Floats:
    return np.log(prices) if prices[0] > 0 else prices


def _scaled(values: Floats) -> Floats:
    return np.asarray((values - values[0]) / (values[-1] - values[0]))
