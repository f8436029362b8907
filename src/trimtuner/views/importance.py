"""Which parameters matter, for the goal, the cost and the time apart.

The share of the variance of the model's prediction on all of the data that a parameter explains by itself: its main
effect, Var(E[f | x]) / Var(f) (Sobol, 1993). What no parameter explains by itself is what they do together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.belief import Belief, Places
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View
from trimtuner.views.drawing.chart import WIDTH, cut, drawn, room_for
from trimtuner.views.drawing.svg import element, text, title
from trimtuner.views.words import sentence

Part: TypeAlias = Callable[[Floats, Positions], float]

_ASKED_AT_MOST = 20_000  # configurations
_BINS = 8  # of a parameter with more values than _MOST_VALUES
_MOST_VALUES = 24
_NAME_LETTERS = 28


@dataclass(frozen=True)
class Importance:
    """For one metric: each parameter's share, the largest first; and what is left to their interplay."""

    metric: str
    shares: tuple[tuple[str, float], ...]
    together: float


def importance(subject: StudyState) -> tuple[Importance, ...]:
    """How much each parameter explains of each metric, as the model sees it."""
    belief = subject.belief
    if belief is None:
        return ()
    names = dict.fromkeys((*belief.problem.metrics, COST, TIME))
    positions = np.unique(np.linspace(0, len(belief.pool) - 1, min(len(belief.pool), _ASKED_AT_MOST)).astype(np.int64))
    places = Places(belief.pool, positions, np.full(len(positions), 1.0))
    groups = _groups(belief, positions)
    is_whole = belief.problem.space.is_enumerable and len(positions) == len(belief.pool)
    part: Part = explained if is_whole else explained_of_sample
    return tuple(
        _importance(name, belief.predict(name, places).mean, groups, part)
        for name in names
        if belief.quantity_name(name) in belief.quantities
    )


def _importance(name: str, values: Floats, groups: dict[str, Positions], part: Part) -> Importance:
    """On the scale of the model, where effects of parts of a job add up."""
    total = float(values.var())
    if total <= 1e-18 or len(values) < 2:
        return Importance(name, tuple((one, 0.0) for one in groups), 0.0)
    shares = {one: part(values, group) / total for one, group in groups.items()}
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return Importance(name, tuple(ranked), max(1.0 - sum(shares.values()), 0.0))


def explained(values: Floats, group: Positions) -> float:
    """The variance of the groups' means."""
    counts = np.bincount(group)
    kept = counts > 0
    means = np.bincount(group, values)[kept] / counts[kept]
    return float(counts[kept] / len(values) @ (means - values.mean()) ** 2)


def explained_of_sample(values: Floats, group: Positions) -> float:
    """The same, less what as many groups of pure chance would show: a sample has the others of a group at random."""
    between, groups = explained(values, group), len(np.unique(group))
    spare = len(values) - groups
    by_chance = (float(values.var()) - between) * (groups - 1) / spare if spare > 0 else 0.0
    return max(between - by_chance, 0.0)


def _groups(belief: Belief, positions: Positions) -> dict[str, Positions]:
    """For each parameter that takes more than one value, which value (or bin of values) each configuration has."""
    configs = [belief.pool.configuration(int(position)) for position in positions]
    names = dict.fromkeys(name for config in configs for name in config)
    found: dict[str, Positions] = {}
    for name in names:
        group = _group([config.get(name) for config in configs])
        if group.max(initial=0) > 0:
            found[name] = group
    return found


def _group(values: Sequence[Hashable]) -> Positions:
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(distinct) <= _MOST_VALUES or len(numbers) < len(values):
        return np.array([distinct[value] for value in values])
    ranks = np.argsort(np.argsort(np.array(numbers, dtype=float), kind="stable"), kind="stable")
    return np.asarray(ranks * _BINS // len(numbers))


def _blocks(subject: StudyState) -> list[Block]:
    found = importance(subject)
    if not found:
        return []
    most = [
        f"{one.metric} depends most on {one.shares[0][0]} ({100 * one.shares[0][1]:.0f} %)"
        for one in found
        if one.shares and one.shares[0][1] > 0
    ]
    lead = (
        "The share of the variation between configurations, on all of the data, that each parameter explains by "
        "itself, as the model sees it; the rest they explain together."
    )
    said = sentence(f"{'; '.join(most)}.") if most else "As far as is known, no parameter matters."
    marks = [(f"bar series{place}", one.metric) for place, one in enumerate(found)]
    return [
        lead,
        said,
        Drawn([Picture(_picture(found), marks, name="importance", table=_table(found))], [_table(found)]),
    ]


def _table(found: tuple[Importance, ...]) -> TextTable:
    """A line for each parameter, a column for each metric."""
    names = dict.fromkeys(name for one in found for name, _ in one.shares)
    lines = [[name, *(f"{100 * dict(one.shares).get(name, 0.0):.0f} %" for one in found)] for name in names]
    lines.append(["(together)", *(f"{100 * one.together:.0f} %" for one in found)])
    return TextTable(["", *(one.metric for one in found)], lines)


def _picture(view: tuple[Importance, ...]) -> str:
    """A bar for each parameter and metric, with its share in words."""
    names = list(dict.fromkeys(name for one in view for name, _ in one.shares))
    line, gap, top, left = 15, 12, 10, room_for([*names, "(together)"], _NAME_LETTERS)
    height = top + len(names) * (line * len(view) + gap) + line * len(view) + 10
    room = WIDTH - left - room_for((one.metric for one in view), 20) - 40
    parts = []
    y = float(top)
    for name in (*names, None):
        parts.append(
            text(cut(name or "(together)", _NAME_LETTERS), left - 8, y + line * len(view) / 2 + 4, "tick", "end")
        )
        for number_of, one in enumerate(view):
            value = one.together if name is None else dict(one.shares).get(name, 0.0)
            told = title(f"{name or 'what no parameter explains by itself'}: {100 * value:.0f} % of {one.metric}")
            size = {"x": left, "y": y + 1, "width": max(room * min(value, 1.0), 1.0), "height": line - 3}
            parts.append(element("rect", told, **size, class_=f"bar series{number_of}"))
            shown = f"{100 * value:.0f} % {cut(one.metric, 20)}"
            parts.append(text(shown, left + size["width"] + 5, y + 11, "tick"))
            y += line
        y += gap
    return drawn(WIDTH, height, "Share of the variation that each parameter explains", "".join(parts))


VIEW = View("importance", "What matters", "model", _blocks)
