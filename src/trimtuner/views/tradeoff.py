"""Accuracy against cost where it counts: what was tested there, what is predicted, and the Pareto front.

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
from trimtuner.views.blocks import Block, Drawn, Folded, Picture, TextTable, View, named_pictures
from trimtuner.views.drawing.chart import Chart, across, unit_of, up
from trimtuner.views.drawing.scales import kind_for
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import cell, chance, count_of, metric, placed, sentence, share

_KEPT = "what is predicted counts with the unfavourable ends of its 90 % intervals"
_MARKS = (
    ("diamond recommended", "recommended (diamond)"),
    ("dot tested likely", "measured, meets the limits"),
    ("dot predicted likely", "predicted, likely to (hollow)"),
    ("dot tested unlikely", "measured, breaks one (grey)"),
    ("dot predicted unlikely", "predicted, unlikely to (grey, hollow)"),
    ("line front", "Pareto front"),
)
_SHOWN_AT_MOST = 1200
_BEST_SHOWN = 300


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
    def knee(self) -> tuple[float, float] | None:
        """Where the front turns, if there is one."""
        return next((point.on_front for point in self.points if point.is_knee), None)


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
        name: tuple((c.text, c.limit) for c in subject.problem.constraints if c.metric == name)
        for name in (x_metric, y_metric)
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


def _blocks(subject: StudyState) -> list[Block]:
    view = tradeoff(subject)
    if view is None:
        return []
    feasible = sum(point.chance >= FEASIBLE for point in view.points)
    likely = "are likely to meet the limits" if subject.problem.constraints else "are likely to run"
    lead = (
        f"{feasible:,} of the {count_of(len(view.points), 'configuration')} shown {likely}; of these, "
        f"{len(view.front):,} cannot be beaten in both by another{_knee(view)}."
    )
    left_out = f" {view.left_out:,} of less interest are not drawn." if view.left_out else ""
    elsewhere = [c.text for c in subject.problem.constraints if c.metric not in (view.x_metric, view.y_metric)]
    left_out += f" Neither axis shows {' and '.join(elsewhere)}, but it counts." if elsewhere else ""
    picture = Picture(_picture(view), _MARKS, name="tradeoff", table=_table(view))
    front, turn = _front(view), "At the knee the front turns: what is paid beyond it buys less."
    drawn: list[Block] = [lead + left_out, picture, Folded("The front as a table", [front])]
    return [Drawn(drawn, [front, f"{sentence(_KEPT)}. {turn}"])]


def _knee(view: Tradeoff) -> str:
    """Such as ``; the knee is at cost 0.03 USD and accuracy 0.95``."""
    if view.knee is None:
        return ""
    price, quality = view.knee
    told = f"{view.x_metric} {metric(view.x_metric, price)} and {view.y_metric} {metric(view.y_metric, quality)}"
    return f" ({_KEPT}); the knee is at {told}"


def _front(view: Tradeoff) -> TextTable:
    """The Pareto front, the cheapest first."""
    lines = [
        [
            metric(view.x_metric, point.on_front[0]),
            metric(view.y_metric, point.on_front[1]),
            chance(point.chance),
            "measured" if point.is_tested else "predicted",
            "knee" if point.is_knee else "",
            placed(point.config, point.fraction),
        ]
        for point in view.front
        if point.on_front is not None
    ]
    return TextTable([view.x_metric, view.y_metric, "P(limits)", "figures are", "", "configuration"], lines)


def _table(view: Tradeoff) -> TextTable:
    """Every point that is drawn, with its configuration."""
    names = dict.fromkeys(name for point in view.points for name in point.config)
    axes = [f"{name}{unit_of(name)}" for name in (view.y_metric, view.x_metric)]
    lines = [
        [
            *(cell(point.config.get(name)) for name in names),
            *(cell(point.fraction), cell(point.y), cell(point.x), f"{point.chance:.4g}"),
            "measured" if point.is_tested else "predicted",
        ]
        for point in view.points
    ]
    keys = [key_of(point.config) for point in view.points]
    return TextTable([*names, "share of the data", *axes, "P(limits)", "figures are"], lines, "data", keys)


def _picture(view: Tradeoff) -> str:
    """Points: round is tested, hollow is predicted, grey is unlikely to meet the limits, a diamond is recommended."""
    front = [point.on_front for point in view.front if point.on_front is not None]
    x = [point.x for point in view.points] + [limit for _, limit in view.x_limits] + [x for x, _ in front]
    y = [point.y for point in view.points] + [limit for _, limit in view.y_limits] + [y for _, y in front]
    chart = Chart(
        across(x, kind_for(x, 8.0)),
        up(y, 380, from_zero=0.2),
        f"{view.x_metric}{unit_of(view.x_metric)}",
        f"{view.y_metric}{unit_of(view.y_metric)}",
        f"{view.y_metric} against {view.x_metric} of {len(view.points)} configurations",
    )
    for written, limit in view.x_limits:
        chart.upright(limit, "limit", written)
    for written, limit in view.y_limits:
        chart.level(limit, "limit", written)
    chart.steps(front, "front")
    for point in sorted(view.points, key=_weight):
        _add(chart, view, point)
    if view.knee is not None:
        chart.note(*view.knee, "front", "knee")
    return chart.svg()


def _weight(point: Point) -> int:
    """What matters more covers what matters less."""
    return 8 * point.is_recommended + 4 * point.is_tested + 2 * point.is_on_front + (point.chance >= FEASIBLE)


def _add(chart: Chart, view: Tradeoff, point: Point) -> None:
    kind = "tested" if point.is_tested else "predicted"
    word = "recommended, measured" if point.is_tested else "recommended, predicted"
    mark = mark_of(
        point.config,
        word if point.is_recommended else "measured" if point.is_tested else "predicted",
        f"{view.y_metric} {metric(view.y_metric, point.y)}, {view.x_metric} {metric(view.x_metric, point.x)}",
        f"P(limits) {chance(point.chance)}, on {share(point.fraction)} of the data",
    )
    if point.is_recommended:
        chart.diamond(point.x, point.y, "recommended", mark)
    else:
        likely = "likely" if point.chance >= FEASIBLE else "unlikely"
        chart.dot(point.x, point.y, f"{kind} {likely}", mark, 4.0 if point.is_tested else 2.6)


VIEW = View(
    "tradeoff",
    "What can be had",
    "model",
    _blocks,
    in_notebook=named_pictures(_blocks),
    nothing="There is only one number to each configuration: nothing to trade.",
)
