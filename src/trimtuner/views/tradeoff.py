"""View 4: accuracy against cost where it counts: what was tested there, what is predicted, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.belief import Belief
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME
from trimtuner.views.subject import Subject

_SHOWN_AT_MOST = 1200
_BEST_SHOWN = 300
FEASIBLE = 0.5  # more likely than not


@dataclass(frozen=True)
class Point:
    """A configuration at the fraction that it would be trained on."""

    config: Mapping[str, Value]
    fraction: float
    x: float
    y: float
    chance: float  # that it runs and meets every limit
    is_tested: bool  # at this very fraction: then x and y are measurements
    is_on_front: bool
    is_recommended: bool


@dataclass(frozen=True)
class Tradeoff:
    """The points, with the names of the axes and the limits that lie on them."""

    x_metric: str
    y_metric: str
    points: tuple[Point, ...]
    left_out: int  # of the least interesting
    x_limits: tuple[tuple[str, float], ...]  # constraint as written, its limit
    y_limits: tuple[tuple[str, float], ...]


def tradeoff(subject: Subject) -> Tradeoff | None:
    """The view; nothing before something was measured, or where only one metric is known."""
    belief = subject.belief
    if belief is None:
        return None
    goal = subject.problem.goal
    axes = _axes(belief)
    if axes is None:
        return None
    x_metric, y_metric = axes
    x, y = _values(belief, x_metric), _values(belief, y_metric)
    chance = belief.feasible_at_targets
    y_sign = goal.sign if y_metric == goal.metric else 1.0
    front = _front(x, y_sign * y, chance >= FEASIBLE)
    shown = _interesting(belief, front, subject.recommended_target)
    on_front = frozenset(front.tolist())
    points = tuple(_point(belief, one, x, y, on_front, subject.recommended_target) for one in shown.tolist())
    limits = {
        metric: tuple((c.text, c.limit) for c in subject.problem.constraints if c.metric == metric)
        for metric in (x_metric, y_metric)
    }
    return Tradeoff(x_metric, y_metric, points, len(x) - len(points), limits[x_metric], limits[y_metric])


def _axes(belief: Belief) -> tuple[str, str] | None:
    """What is paid, and what one gets: for the least cost, the metric that must be good enough."""
    goal = belief.problem.goal.metric
    paid = COST if belief.quantity_name(COST) in belief.quantities else TIME
    if goal not in (COST, TIME):
        return (paid, goal) if belief.quantity_name(paid) in belief.quantities else None
    limited = [c.metric for c in belief.problem.constraints if c.metric not in (COST, TIME)]
    return (goal, limited[0]) if limited else None


def _values(belief: Belief, metric: str) -> Floats:
    """What was measured, else the median of what is predicted: with even chances it lies on its limit."""
    values = belief.quantity_of(metric).transform.inverse(belief.predict(metric, belief.targets).mean).copy()
    for target, measurement in belief.measured_targets.items():
        if metric in measurement.metrics:
            values[target] = measurement.metrics[metric]
    return values


def _front(x: Floats, y: Floats, is_feasible: Booleans) -> Positions:
    """Of the feasible ones, those that no other beats in both: from the cheapest on, whatever is better than before."""
    candidates = np.nonzero(is_feasible & np.isfinite(x) & np.isfinite(y))[0]
    order = candidates[np.lexsort((-y[candidates], x[candidates]))]
    best = np.maximum.accumulate(y[order]) if len(order) else y[order]
    is_better = np.r_[True, y[order][1:] > best[:-1]] if len(order) else np.zeros(0, dtype=bool)
    return np.asarray(order[is_better])


def _interesting(belief: Belief, front: Positions, recommended: int | None) -> Positions:
    """All where there are few; else the tested, the front, the best, and an even share of the rest."""
    count = len(belief.targets)
    if count <= _SHOWN_AT_MOST:
        return np.arange(count)
    score = belief.worth_at_targets * belief.feasible_at_targets
    best = np.argsort(-score, kind="stable")[:_BEST_SHOWN]
    rest = np.linspace(0, count - 1, _SHOWN_AT_MOST - _BEST_SHOWN).astype(int)
    tested = np.array(sorted(belief.measured_targets), dtype=int)
    own = np.array([] if recommended is None else [recommended], dtype=int)
    return np.unique(np.concatenate([front, best, tested, own, rest]))


def _point(
    belief: Belief, target: int, x: Floats, y: Floats, on_front: frozenset[int], recommended: int | None
) -> Point:
    position, fraction = int(belief.targets.positions[target]), float(belief.targets.fractions[target])
    return Point(
        config=belief.pool.configuration(position),
        fraction=fraction,
        x=float(x[target]),
        y=float(y[target]),
        chance=belief.feasible_at(target),
        is_tested=target in belief.measured_targets,
        is_on_front=target in on_front,
        is_recommended=target == recommended,
    )
