"""Which machines can do it. VM type by count: the chance that the best configuration there meets the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.values import number_in
from trimtuner.state import StudyState
from trimtuner.tuning.recommendation import Estimate, recommendation_from
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View, numbered
from trimtuner.views.drawing.chart import cut, drawn, room_for, unit_of
from trimtuner.views.drawing.svg import element, text
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import cell, chance, estimate, metric, times

_CELL_WIDTH, _CELL_HEIGHT, _NAME_LETTERS = 92, 58, 28


@dataclass(frozen=True)
class MachineCell:
    """One choice of machines, and the best configuration on them."""

    vm_type: str
    vm_count: int
    market: str
    chance: float  # that it runs and meets every limit
    config: Mapping[str, Value]
    tested: int  # trials on these machines, at any share of the data
    expected: Mapping[str, Estimate]  # of that configuration, where it counts
    is_recommended: bool


@dataclass(frozen=True)
class MachineMap:
    """All choices of machines, in the order of the space."""

    vm_types: tuple[str, ...]
    vm_counts: tuple[int, ...]
    markets: tuple[str, ...]
    cells: tuple[MachineCell, ...]


def machines(subject: StudyState) -> MachineMap | None:
    """The view; nothing where the space has no machines, or nothing was measured."""
    belief, recommendation = subject.belief, subject.recommendation
    if belief is None or recommendation is None or "vm_type" not in recommendation.config:
        return None
    score = belief.worth_at_targets * belief.feasible_at_targets
    # The best first; where all are worth nothing, the likeliest.
    order = np.lexsort((belief.feasible_at_targets, score))[::-1].tolist()
    configs = {target: belief.pool.configuration(int(belief.targets.positions[target])) for target in order}
    best: dict[tuple[str, int, str], int] = {}
    for target, config in configs.items():
        best.setdefault(_machines_of(config, subject), target)
    tested = Counter(_machines_of(trial.config, subject) for trial in subject.trials)
    own = _machines_of(recommendation.config, subject)
    cells = [
        MachineCell(
            *(*place, belief.feasible_at(target), configs[target], tested[place]),
            expected=recommendation_from(belief, target).estimates,
            is_recommended=place == own,
        )
        for place, target in best.items()
    ]
    return _arranged(cells, subject)


def _machines_of(config: Mapping[str, Value], subject: StudyState) -> tuple[str, int, str]:
    cloud = subject.problem.space.cloud
    usual = "on_demand" if cloud is None else cloud.markets[0]
    return str(config["vm_type"]), int(number_in(config.get("vm_count", 1))), str(config.get("market", usual))


def _arranged(cells: list[MachineCell], subject: StudyState) -> MachineMap:
    cloud, seen = subject.problem.space.cloud, dict.fromkeys(cell.vm_type for cell in cells)
    types = tuple(seen) if cloud is None else tuple(kind for kind in cloud.vms if kind in seen)
    counts = tuple(sorted({cell.vm_count for cell in cells}))
    markets = tuple(sorted({cell.market for cell in cells}))
    ordered = sorted(cells, key=lambda cell: (cell.market, types.index(cell.vm_type), cell.vm_count))
    return MachineMap(types, counts, markets, tuple(ordered))


def _blocks(subject: StudyState) -> list[Block]:
    view = machines(subject)
    if view is None:
        return []
    lead = (
        "In each cell the best configuration on these machines: the chance that it meets the limits, which is also the "
        "colour, and what a run would cost and take. A dot: tested there; the frame: recommended."
    )
    written = (
        "The chance that the best configuration on so many machines of a type meets the limits; * is tested, < is "
        "recommended."
    )
    captions = [market.replace("_", " ") if len(view.markets) > 1 else "" for market in view.markets]
    pictures = [
        Picture(_picture(view, market), (), caption, numbered("machines", market, place), _data(view, market))
        for place, (market, caption) in enumerate(zip(view.markets, captions, strict=True))
    ]
    return [Drawn([lead, *pictures], [written, *(_table(view, market) for market in view.markets)])]


def _table(view: MachineMap, market: str) -> TextTable:
    """The chance for each VM type and count; ``*`` is tested, ``<`` is recommended."""
    cells = {(cell.vm_type, cell.vm_count): cell for cell in view.cells if cell.market == market}
    words = {
        place: f"{chance(cell.chance)}{' *' if cell.tested else ''}{' <' if cell.is_recommended else ''}"
        for place, cell in cells.items()
    }
    lines = [[kind, *(words.get((kind, count), "") for count in view.vm_counts)] for kind in view.vm_types]
    return TextTable([market.replace("_", " "), *map(str, view.vm_counts)], lines)


def _data(view: MachineMap, market: str) -> TextTable:
    """Every cell with the best configuration on its machines, and all that is expected of it."""
    cells = [one for one in view.cells if one.market == market]
    names = dict.fromkeys(name for one in cells for name in one.config)
    metrics = dict.fromkeys(name for one in cells for name in one.expected)
    lines = [
        [
            *(cell(one.config.get(name)) for name in names),
            *(cell(one.expected[name].mean if name in one.expected else None) for name in metrics),
            *(f"{one.chance:.4g}", cell(one.tested)),
        ]
        for one in cells
    ]
    heads = [*names, *(f"{name}{unit_of(name)}" for name in metrics), "P(limits)", "trials there"]
    return TextTable(heads, lines, "data", [key_of(one.config) for one in cells])


def _picture(view: MachineMap, market: str) -> str:
    """A cell for each VM type and count: its colour and its number are the chance of meeting the limits."""
    names_width = max(room_for(view.vm_types, _NAME_LETTERS), 70.0)
    width = names_width + _CELL_WIDTH * len(view.vm_counts) + 8
    height = 40 + _CELL_HEIGHT * len(view.vm_types)
    parts = [text("VM type", names_width - 8, 14, "label", "end"), text("how many", names_width, 14, "label")]
    for column, count in enumerate(view.vm_counts):
        parts.append(text(str(count), names_width + _CELL_WIDTH * (column + 0.5), 30, "tick", "middle"))
    for line, vm_type in enumerate(view.vm_types):
        name = cut(vm_type, _NAME_LETTERS)
        parts.append(text(name, names_width - 8, 34 + _CELL_HEIGHT * (line + 0.65), "tick", "end"))
    for one in (one for one in view.cells if one.market == market):
        left = names_width + _CELL_WIDTH * view.vm_counts.index(one.vm_count)
        top = 34 + _CELL_HEIGHT * view.vm_types.index(one.vm_type)
        parts.append(_cell_picture(one, left, top))
    name = f"Chance of meeting the limits by VM type and count, {market}"
    return drawn(max(width, names_width + 80), height, name, "".join(parts))


def _cell_picture(shown: MachineCell, left: float, top: float) -> str:
    figures = [metric(name, shown.expected[name].mean) for name in (COST, TIME) if name in shown.expected]
    others = [f"{name} {estimate(name, one)}" for name, one in shown.expected.items()]
    tested = f"P(limits) {chance(shown.chance)}, tested {times(shown.tested)}"
    mark = mark_of(shown.config, f"{shown.vm_count} x {shown.vm_type}", tested, *others)
    level = min(int(shown.chance * 5), 4)
    square = {"x": left + 1, "y": top + 1, "width": _CELL_WIDTH - 2, "height": _CELL_HEIGHT - 2}
    parts = [element("rect", **square, class_=f"cell level{level}")]
    for line, words in enumerate((chance(shown.chance), *figures)):
        class_ = f"celltext level{level}{' first' if line == 0 else ''}"
        parts.append(text(words, left + _CELL_WIDTH / 2, top + 18 + 16 * line, class_, "middle"))
    if shown.tested:
        parts.append(element("circle", cx=left + _CELL_WIDTH - 9, cy=top + 9, r=3, class_=f"spot level{level}"))
    if shown.is_recommended:
        parts.append(element("rect", **square, class_="chosen"))
    return mark.drawn("g", *parts)


VIEW = View("machines", "Machines", "model", _blocks, nothing="This space has no machines to choose from.")
