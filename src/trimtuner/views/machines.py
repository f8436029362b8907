"""Which machines can do it. VM type by count: the chance that the best configuration there meets the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.problem.expressions import Value
from trimtuner.problem.values import number_in
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View, numbered
from trimtuner.views.drawing.chart import cut, drawn, room_for
from trimtuner.views.drawing.svg import element, text, title
from trimtuner.views.words import chance, configuration, times

_CELL_WIDTH, _CELL_HEIGHT, _NAME_LETTERS = 64, 34, 28


@dataclass(frozen=True)
class MachineCell:
    """One choice of machines, and the best configuration on them."""

    vm_type: str
    vm_count: int
    market: str
    chance: float  # that it runs and meets every limit
    config: Mapping[str, Value]
    tested: int  # trials on these machines, at any share of the data
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
        MachineCell(*place, belief.feasible_at(target), configs[target], tested[place], place == own)
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
        "The number in a cell, and its colour, is the chance that the best configuration on these machines meets the "
        "limits; a dot means that they were tested, the frame is what is recommended."
    )
    written = (
        "The chance that the best configuration on so many machines of a type meets the limits; * is tested, < is "
        "recommended."
    )
    captions = [market.replace("_", " ") if len(view.markets) > 1 else "" for market in view.markets]
    pictures = [
        Picture(_picture(view, market), caption=caption, name=numbered("machines", market, place))
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
    for cell in (one for one in view.cells if one.market == market):
        left = names_width + _CELL_WIDTH * view.vm_counts.index(cell.vm_count)
        top = 34 + _CELL_HEIGHT * view.vm_types.index(cell.vm_type)
        parts.append(_cell_picture(cell, left, top))
    name = f"Chance of meeting the limits by VM type and count, {market}"
    return drawn(max(width, names_width + 80), height, name, "".join(parts))


def _cell_picture(cell: MachineCell, left: float, top: float) -> str:
    tested = f", tested {times(cell.tested)}"
    told = f"{cell.vm_count} x {cell.vm_type}: P(limits) {chance(cell.chance)}{tested}; {configuration(cell.config)}"
    level = min(int(cell.chance * 5), 4)
    square = {"x": left + 1, "y": top + 1, "width": _CELL_WIDTH - 2, "height": _CELL_HEIGHT - 2}
    parts = [title(told), element("rect", **square, class_=f"cell level{level}")]
    parts.append(text(chance(cell.chance), left + _CELL_WIDTH / 2, top + 23, f"celltext level{level}", "middle"))
    if cell.tested:
        parts.append(element("circle", cx=left + _CELL_WIDTH - 8, cy=top + 8, r=3, class_=f"mark level{level}"))
    if cell.is_recommended:
        parts.append(element("rect", **square, class_="chosen"))
    return element("g", *parts)


VIEW = View("machines", "Machines", "model", _blocks, nothing="This space has no machines to choose from.")
