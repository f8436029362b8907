"""View 4: accuracy against cost where it counts: what was tested there, what is predicted, and the Pareto front.

Forecasts are shown at their medians, where with even chances they lie on a limit; on the front they count with the
unfavourable ends of their intervals (see decisions.pareto).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.belief import LIKELY as FEASIBLE
from trimtuner.decisions.belief import Belief
from trimtuner.decisions.pareto import Outline, kept_values
from trimtuner.problem.expressions import Value
from trimtuner.state import StudyState
from trimtuner.tuning.pareto import outline_named

NOTHING_TO_TRADE = "There is only one number to each configuration: nothing to trade."
_SHOWN_AT_MOST = 1200
_BEST_SHOWN = 300

__all__ = ["FEASIBLE", "NOTHING_TO_TRADE", "Point", "Tradeoff", "tradeoff"]


@dataclass(frozen=True)
class Point:
    """A configuration at the fraction that it would be trained on."""

    config: Mapping[str, Value]
    fraction: float
    x: float
    y: float
    chance: float  # that it runs and meets every limit
    is_tested: bool  # at this very fraction: then x and y are measurements
    on_front: tuple[float, float] | None  # x and y as they count there; None: another beats it in both
    is_knee: bool
    is_recommended: bool

    @property
    def is_on_front(self) -> bool:
        """Whether it cannot be had better without paying more."""
        return self.on_front is not None


@dataclass(frozen=True)
class Tradeoff:
    """The points, with the names of the axes and the limits that lie on them."""

    x_metric: str
    y_metric: str
    points: tuple[Point, ...]
    left_out: int  # of the least interesting
    x_limits: tuple[tuple[str, float], ...]  # constraint as written, its limit
    y_limits: tuple[tuple[str, float], ...]

    @property
    def front(self) -> tuple[Point, ...]:
        """The points on the front, the cheapest first."""
        return tuple(sorted((one for one in self.points if one.on_front), key=lambda one: one.on_front or (0.0, 0.0)))

    @property
    def knee(self) -> Point | None:
        """Where the front turns, if there is one."""
        return next((point for point in self.points if point.is_knee), None)


def tradeoff(subject: StudyState) -> Tradeoff | None:
    """The view; nothing before something was measured, or where only one metric is known."""
    belief = subject.belief
    if belief is None:
        return None
    front = outline_named(subject.recipe, belief)
    if front is None:
        return None
    x_metric, y_metric = front.axes.price, front.axes.quality
    x, y = kept_values(belief, x_metric, 0.0), kept_values(belief, y_metric, 0.0)
    shown = _interesting(belief, front.targets, subject.recommended_target)
    points = tuple(_point(belief, one, x, y, front, subject.recommended_target) for one in shown.tolist())
    limits = {
        metric: tuple((c.text, c.limit) for c in subject.problem.constraints if c.metric == metric)
        for metric in (x_metric, y_metric)
    }
    return Tradeoff(x_metric, y_metric, points, len(x) - len(points), limits[x_metric], limits[y_metric])


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


def _point(belief: Belief, target: int, x: Floats, y: Floats, front: Outline, recommended: int | None) -> Point:
    place = next(iter(np.nonzero(front.targets == target)[0].tolist()), None)
    position, fraction = int(belief.targets.positions[target]), float(belief.targets.fractions[target])
    return Point(
        config=belief.pool.configuration(position),
        fraction=fraction,
        x=float(x[target]),
        y=float(y[target]),
        chance=belief.feasible_at(target),
        is_tested=target in belief.measured_targets,
        on_front=None if place is None else (float(front.prices[place]), float(front.qualities[place])),
        is_knee=place is not None and place == front.knee,
        is_recommended=target == recommended,
    )
