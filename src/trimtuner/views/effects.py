"""What each parameter does: the goal over its values, with the model's band, and the two that matter most together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.belief import INTERVAL, Belief, Places, interval_deviations
from trimtuner.problem.expressions import Value
from trimtuner.problem.values import is_number
from trimtuner.state import StudyState
from trimtuner.views.blocks import Beside, Block, Drawn, Picture, TextTable, View, numbered
from trimtuner.views.drawing.chart import Chart, cut, drawn, room_for, unit_of, up
from trimtuner.views.drawing.marks import Mark
from trimtuner.views.drawing.scales import scale_for
from trimtuner.views.drawing.svg import element, text
from trimtuner.views.importance import importance
from trimtuner.views.words import cell, metric, value_text

_SHOWN = 4  # parameters, those that matter most
_ASKED_AT_MOST = 4_000  # configurations
_BINS, _MOST_VALUES = 8, 12
_WIDTH, _HEIGHT, _LEFT, _LETTERS = 330, 220, 56, 12
_CELL, _ROW = 66, 26


@dataclass(frozen=True)
class Effect:
    """The goal over the values of one parameter, averaged over all others; rows are value, mean, low and high."""

    parameter: str
    points: tuple[tuple[str, float, float, float], ...]


@dataclass(frozen=True)
class Interaction:
    """The mean goal for each pair of values of two parameters; None: no configuration has both."""

    across: str
    down: str
    across_values: tuple[str, ...]
    down_values: tuple[str, ...]
    means: tuple[tuple[float | None, ...], ...]  # a line for each value down


@dataclass(frozen=True)
class Effects:
    """What the parameters that matter most do to the goal, on all of the data, as the model sees it."""

    metric: str
    effects: tuple[Effect, ...]
    together: Interaction | None


def effects(subject: StudyState) -> Effects | None:
    """The view; nothing before something was measured."""
    belief, goal = subject.belief, subject.problem.goal.metric
    ranked = next((one.shares for one in importance(subject) if one.metric == goal), ())
    names = [name for name, _ in ranked[:_SHOWN]]
    if belief is None or not names:
        return None
    count = min(len(belief.pool), _ASKED_AT_MOST)
    positions = np.unique(np.linspace(0, len(belief.pool) - 1, count).astype(np.int64))
    configs = [belief.pool.configuration(int(position)) for position in positions]
    groups = {name: _grouped([config.get(name) for config in configs]) for name in names}
    prediction = belief.predict(goal, Places(belief.pool, positions, np.ones(len(positions))))
    found = [_effect(belief, name, *groups[name], prediction.mean, prediction.variance) for name in names]
    pair = _interaction(belief, names[0], names[1], groups, prediction.mean) if len(names) > 1 else None
    return Effects(goal, tuple(found), pair)


def _grouped(values: list[Value | None]) -> tuple[Positions, tuple[str, ...]]:
    """Which value (or range of values) each configuration has, and what these are called, in order."""
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) == len(values) and len(set(numbers)) > _MOST_VALUES:
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _BINS + 1)))
        group = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
        return group, tuple(f"{low:.2g} to {high:.2g}" for low, high in itertools.pairwise(edges))
    present = list(dict.fromkeys(values))
    order = sorted(present, key=_order)
    place = {value: number for number, value in enumerate(order)}
    return np.array([place[one] for one in values]), tuple("-" if one is None else value_text(one) for one in order)


def _order(value: Value | None) -> tuple[bool, float, bool, str]:
    """Numbers first, by size; then words; what there is none of last."""
    return (False, value, False, "") if is_number(value) else (True, 0.0, value is None, str(value))


def _effect(
    belief: Belief, name: str, group: Positions, words: tuple[str, ...], mean: Floats, variance: Floats
) -> Effect:
    inverse = belief.quantity_of(belief.problem.goal.metric).transform.inverse
    points = []
    for number, word in enumerate(words):
        own = group == number
        if not own.any():
            continue
        centre, deviation = float(mean[own].mean()), float(np.sqrt(variance[own].mean()))
        reach = interval_deviations(INTERVAL) * deviation
        ends = inverse(np.array([centre, centre - reach, centre + reach]))
        points.append((word, float(ends[0]), float(ends[1]), float(ends[2])))
    return Effect(name, tuple(points))


def _interaction(
    belief: Belief, across: str, down: str, groups: dict[str, tuple[Positions, tuple[str, ...]]], mean: Floats
) -> Interaction:
    (columns, across_words), (lines, down_words) = groups[across], groups[down]
    inverse = belief.quantity_of(belief.problem.goal.metric).transform.inverse

    def middle(line: int, column: int) -> float | None:
        own = (lines == line) & (columns == column)
        return float(inverse(np.array([mean[own].mean()]))[0]) if own.any() else None

    means = tuple(tuple(middle(line, column) for column in range(len(across_words))) for line in range(len(down_words)))
    return Interaction(across, down, across_words, down_words, means)


def _blocks(subject: StudyState) -> list[Block]:
    view = effects(subject)
    if view is None:
        return []
    lead = (
        f"{view.metric} on all of the data over the values of the parameters that matter most, averaged over all "
        "others, as the model sees it; the band is its 90 % interval."
    )
    values = [value for one in view.effects for point in one.points for value in point[1:]]
    pictures: list[Block] = [
        Picture(
            _picture(view.metric, one, values), (), "", numbered("effects", one.parameter, place), _table(view, one)
        )
        for place, one in enumerate(view.effects)
    ]
    written: list[Block] = [_table(view, one) for one in view.effects]
    if view.together is not None:
        words = f"{view.metric} for each pair of {view.together.across} and {view.together.down}"
        grid = _grid_table(view.together)
        pictures.append(Picture(_grid(view.together, view.metric), (), words, "effects-together", grid))
        written += [f"{words}:", grid]
    return [Drawn([lead, Beside(pictures)], written)]


def _table(view: Effects, one: Effect) -> TextTable:
    lines = [[word, *(cell(value) for value in values)] for word, *values in one.points]
    return TextTable([one.parameter, f"{view.metric}{unit_of(view.metric)}", "at least", "at most"], lines)


def _picture(name: str, one: Effect, all_values: list[float]) -> str:
    count = len(one.points)
    x = scale_for([-0.5, count - 0.5], _LEFT, _WIDTH - 12)
    ticks = [(float(place), cut(point[0], _LETTERS)) for place, point in enumerate(one.points)]
    label = f"{name}{unit_of(name)}"
    chart = Chart(
        x, up(all_values, _HEIGHT, from_zero=0.2), one.parameter, label, f"{name} over {one.parameter}", ticks
    )
    low = [(float(place), point[2]) for place, point in enumerate(one.points)]
    high = [(float(place), point[3]) for place, point in enumerate(one.points)]
    chart.band(low, high, "series0")
    chart.line([(float(place), point[1]) for place, point in enumerate(one.points)], "series0")
    for place, (word, middle, least, most) in enumerate(one.points):
        told = f"{one.parameter} {word}\n{name} {metric(name, middle)} ({metric(name, least)} to {metric(name, most)})"
        chart.dot(float(place), middle, "series0", Mark(told))
    return chart.svg()


def _grid_table(pair: Interaction) -> TextTable:
    lines = [[word, *(cell(one) for one in line)] for word, line in zip(pair.down_values, pair.means, strict=True)]
    return TextTable([f"{pair.down} / {pair.across}", *pair.across_values], lines)


def _grid(pair: Interaction, name: str) -> str:
    known = [one for line in pair.means for one in line if one is not None]
    low, high = min(known), max(known)
    left = max(room_for(pair.down_values, _LETTERS), 60.0)
    parts = [text(f"{cut(pair.down, 10)} / {cut(pair.across, 20)}", 4, 14, "label")]
    for column, word in enumerate(pair.across_values):
        parts.append(text(cut(word, 9), left + _CELL * (column + 0.5), 32, "tick", "middle"))
    for line, word in enumerate(pair.down_values):
        top = 38 + _ROW * line
        parts.append(text(cut(word, _LETTERS), left - 6, top + 17, "tick", "end"))
        for column, value in enumerate(pair.means[line]):
            if value is not None:
                level = min(int(5 * (value - low) / (high - low or 1.0)), 4)
                told = f"{pair.across} {pair.across_values[column]}, {pair.down} {word}\n{name} {metric(name, value)}"
                parts.append(_grid_cell(left + _CELL * column, top, level, metric(name, value), told))
    size = left + _CELL * len(pair.across_values) + 8, 46.0 + _ROW * len(pair.down_values)
    return drawn(*size, f"{name} for each pair of {pair.across} and {pair.down}", "".join(parts))


def _grid_cell(left: float, top: float, level: int, words: str, told: str) -> str:
    square = element("rect", x=left + 1, y=top + 1, width=_CELL - 2, height=_ROW - 2, class_=f"cell level{level}")
    written = text(words, left + _CELL / 2, top + 17, f"celltext level{level}", "middle")
    return Mark(told).drawn("g", square, written)


VIEW = View("effects", "What each parameter does", "model", _blocks, size="wide")
