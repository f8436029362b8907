"""Parallel coordinates: every trial as a line through its parameters, its share of the data and what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.values import is_number, number_in
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View
from trimtuner.views.drawing.chart import cut, drawn, unit_of
from trimtuner.views.drawing.scales import kind_for, scale_for, tick_text
from trimtuner.views.drawing.svg import element, path_of, text
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.trials import Row, rows_of
from trimtuner.views.words import cell, metric, share, value_text

DATA = "share of the data"
_SHOWN = 300  # the last ones
_TOP, _BOTTOM, _SIDE, _LEAST_GAP = 34.0, 300.0, 70.0, 120.0
_WIDTH = 1300.0
_LEVELS = 5
_MOST_WORDS = 12  # of an axis
_LETTERS = 13


@dataclass(frozen=True)
class ParallelAxis:
    """One axis: where each of its values lies, and the words beside it."""

    name: str
    place: Callable[[Value], float]
    ticks: tuple[tuple[float, str], ...]  # place, words


@dataclass(frozen=True)
class ParallelLine:
    """One trial: its value on each axis that it has one on, and how good it is among the others, from 0 to 1."""

    row: Row
    values: Mapping[str, Value]
    rank: float | None  # None: it failed


def parallel_lines(subject: StudyState) -> tuple[ParallelLine, ...]:
    """The last trials that ended; ranked by the goal among those on as much of the data."""
    goal = subject.problem.goal
    ended = rows_of(subject, [one for one in subject.trials if one not in subject.history.pending][-_SHOWN:])
    worth = {row.trial: goal.sign * row.metrics[goal.metric] for row in ended if goal.metric in row.metrics}
    return tuple(ParallelLine(row, _values(subject, row), _rank(row, ended, worth)) for row in ended)


def _values(subject: StudyState, row: Row) -> dict[str, Value]:
    names = dict.fromkeys((*subject.problem.metrics, *((COST,) if subject.counts_money else ()), TIME))
    return {**row.config, DATA: row.fraction, **{name: row.metrics[name] for name in names if name in row.metrics}}


def _rank(row: Row, others: Sequence[Row], worth: Mapping[int, float]) -> float | None:
    """Its place among those on as much of the data, from 0, the worst, to 1."""
    if row.trial not in worth:
        return None
    beside = [worth[one.trial] for one in others if one.fraction == row.fraction and one.trial in worth]
    return sum(value < worth[row.trial] for value in beside) / max(len(beside) - 1, 1)


def parallel_axes(lines: Sequence[ParallelLine]) -> tuple[ParallelAxis, ...]:
    """An axis for everything that some line has a value of, if there are several."""
    names = dict.fromkeys(name for line in lines for name in line.values)
    found = {name: [line.values[name] for line in lines if name in line.values] for name in names}
    return tuple(_axis(name, values) for name, values in found.items() if len(set(values)) > 1)


def _axis(name: str, values: Sequence[Value]) -> ParallelAxis:
    numbers = [float(one) for one in values if is_number(one)]
    if len(numbers) < len(values):
        return _axis_of_words(name, list(dict.fromkeys(values)))
    scale = scale_for(numbers, _BOTTOM, _TOP, kind_for(numbers, 8.0), from_zero=0.0)
    distinct = sorted(set(numbers))
    ticks = scale.ticks(5) if len(distinct) > _MOST_WORDS // 2 else distinct
    words = [share(one) if name == DATA else tick_text(one, ticks) for one in ticks]
    return ParallelAxis(name, lambda value: scale(number_in(value)), tuple(zip(map(scale, ticks), words, strict=True)))


def _axis_of_words(name: str, values: Sequence[Value]) -> ParallelAxis:
    step = (_BOTTOM - _TOP) / max(len(values) - 1, 1)
    places = {value: _BOTTOM - step * number for number, value in enumerate(values)}
    ticks = tuple((places[value], value_text(value)) for value in values[:: -(-len(values) // _MOST_WORDS)])
    return ParallelAxis(name, lambda value: places[value], ticks)


def _blocks(subject: StudyState) -> list[Block]:
    lines = parallel_lines(subject)
    axes = parallel_axes(lines)
    if len(axes) < 2:
        return []
    lead = (
        "Each line is a trial; the darker, the better among those on as much of the data. Drag over an axis to leave "
        "only the lines that cross it there."
    )
    goal = subject.problem.goal.metric
    marks = [(f"line level{_LEVELS - 1}", f"best {goal}"), ("line level0", "worst"), ("line parallel failed", "failed")]
    picture = Picture(_picture(lines, axes), marks, name="parallel", table=_table(lines, axes))
    return [Drawn([lead, picture], [_table(lines[-20:], axes)])]


def _table(lines: Sequence[ParallelLine], axes: Sequence[ParallelAxis]) -> TextTable:
    """The lines in numbers."""
    written = [[str(one.row.trial), *(cell(one.values.get(axis.name)) for axis in axes)] for one in lines]
    heads = ["trial", *(f"{axis.name}{unit_of(axis.name)}" for axis in axes)]
    return TextTable(heads, written, "data", [key_of(one.row.config) for one in lines])


def _picture(lines: Sequence[ParallelLine], axes: Sequence[ParallelAxis]) -> str:
    gap = max((_WIDTH - 2 * _SIDE) / (len(axes) - 1), _LEAST_GAP)
    at = {axis.name: _SIDE + gap * number for number, axis in enumerate(axes)}
    parts = []
    for axis in axes:
        left = at[axis.name]
        parts.append(element("path", d=path_of([(left, _TOP), (left, _BOTTOM)]), class_="axis"))
        parts.append(text(cut(axis.name, _LETTERS + 3), left, _TOP - 16, "label", "middle"))
    # The best lie above the others.
    for line in sorted(lines, key=lambda one: -1.0 if one.rank is None else one.rank):
        points = [(at[axis.name], axis.place(line.values[axis.name])) for axis in axes if axis.name in line.values]
        parts.append(_line(line, points))
    for axis in axes:
        parts += [text(cut(words, _LETTERS), at[axis.name] + 5, y + 4, "note ink") for y, words in axis.ticks]
    return drawn(2 * _SIDE + gap * (len(axes) - 1), _BOTTOM + 20, "Trials in parallel coordinates", "".join(parts))


def _line(line: ParallelLine, points: list[tuple[float, float]]) -> str:
    row = line.row
    kind = "failed" if line.rank is None else f"level{min(int(np.floor(line.rank * _LEVELS)), _LEVELS - 1)}"
    measured = ", ".join(f"{name} {metric(name, value)}" for name, value in row.metrics.items())
    mark = mark_of(
        row.config,
        f"trial {row.trial} on {share(row.fraction)} of the data: {row.state}",
        *([measured] if measured else []),
        trial=row.trial,
    )
    return mark.drawn("path", d=path_of(points), class_=f"line parallel {kind}")


VIEW = View("parallel", "Trials at a glance", "facts", _blocks, size="wide", nothing="It takes two trials to compare.")
