"""View 6: which machines can do it. VM type by count: the chance that the best configuration there meets the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.problem.expressions import Value
from trimtuner.state import StudyState

NO_MACHINES = "This space has no machines to choose from."


@dataclass(frozen=True)
class Cell:
    """One choice of machines, and the best configuration on them."""

    vm_type: str
    vm_count: int
    market: str
    chance: float  # that it runs and meets every limit
    goal: float  # expected
    config: Mapping[str, Value]
    tested: int  # trials on these machines, at any share of the data
    is_recommended: bool


@dataclass(frozen=True)
class Machines:
    """All choices of machines, in the order of the space."""

    vm_types: tuple[str, ...]
    vm_counts: tuple[int, ...]
    markets: tuple[str, ...]
    cells: tuple[Cell, ...]


def machines(subject: StudyState) -> Machines | None:
    """The view; nothing where the space has no machines, or nothing was measured."""
    belief, recommendation = subject.belief, subject.recommendation
    if belief is None or recommendation is None or "vm_type" not in recommendation.config:
        return None
    score = belief.worth_at_targets * belief.feasible_at_targets
    chance = belief.feasible_at_targets
    order = np.lexsort((chance, score))[::-1]  # the best first; where all are worth nothing, the likeliest
    best: dict[tuple[str, int, str], int] = {}
    for target in order.tolist():
        place = _machines_of(belief.pool.configuration(int(belief.targets.positions[target])), subject)
        best.setdefault(place, target)
    tested: dict[tuple[str, int, str], int] = {}
    for trial in subject.trials:
        place = _machines_of(trial.config, subject)
        tested[place] = tested.get(place, 0) + 1
    own = _machines_of(recommendation.config, subject)
    goal = belief.expected(belief.problem.goal.metric, belief.targets)
    cells = [
        Cell(
            *place,
            chance=belief.feasible_at(target),
            goal=float(goal[target]),
            config=belief.pool.configuration(int(belief.targets.positions[target])),
            tested=tested.get(place, 0),
            is_recommended=place == own,
        )
        for place, target in best.items()
    ]
    return _arranged(cells, subject)


def _machines_of(config: Mapping[str, Value], subject: StudyState) -> tuple[str, int, str]:
    cloud = subject.problem.space.cloud
    usual = "on_demand" if cloud is None else cloud.markets[0]
    return str(config["vm_type"]), int(config.get("vm_count", 1)), str(config.get("market", usual))


def _arranged(cells: list[Cell], subject: StudyState) -> Machines:
    cloud = subject.problem.space.cloud
    types = tuple(dict.fromkeys(cell.vm_type for cell in cells)) if cloud is None else tuple(cloud.vms)
    counts = tuple(sorted({cell.vm_count for cell in cells}))
    markets = tuple(sorted({cell.market for cell in cells}))
    places = {(cell.vm_type, cell.vm_count, cell.market): cell for cell in cells}
    ordered = (
        places[(kind, count, market)]
        for market in markets
        for kind in types
        for count in counts
        if (kind, count, market) in places
    )
    return Machines(
        tuple(kind for kind in types if any(c.vm_type == kind for c in cells)), counts, markets, tuple(ordered)
    )
