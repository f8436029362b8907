"""Harder forms of a table, on which a method must not fail either. Nothing here needs the peers' packages.

``tight``            the cost limit is the 25th percentile of the cost at full data
``half``             a random half of the configurations, another for each seed
``noise``            accuracies with normal noise of the measured standard deviations, anew for each seed (cnn and rnn,
                     whose files have them); recommendations are judged by the accuracies without it
``three-fractions``  only 0.1, 0.5 and 1 of the data; elsewhere the smallest fraction, a middle one and 1
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

# Private, but of this repository: the noise needs a column that tables do not keep.
from trimtuner.engines.table import Cell, ConfigurationKey, Table, _find_csv, _find_description
from trimtuner.errors import InputError
from trimtuner.problem.problem import COST, Constraint
from trimtuner.problem.space import Space

PLAIN = "plain"
NOISE = "noise"
TIGHT_PERCENTILE = 25.0
FEW_FRACTIONS = (0.1, 0.5, 1.0)
DEVIATION_COLUMN = "standard deviation accuarcy"  # as the files spell it


@dataclass(frozen=True)
class Variant:
    """What a search measures, and what its recommendations are judged by."""

    measured: Table
    truth: Table


def make_variant(name: str, table: Table, seed: int) -> Variant:
    """A table in one of the forms above, or as it is."""
    if name == PLAIN:
        return Variant(table, table)
    if name not in CHANGES:
        raise InputError(f"there is no variant {name!r}; known are {', '.join(VARIANTS)}")
    changed = CHANGES[name](table, seed)
    return Variant(changed, table if name == NOISE else changed)


def tighten(table: Table, seed: int) -> Table:  # noqa: ARG001 (every change has the same form)
    """The same table with a limit on cost that a quarter of its configurations meet."""
    limit = float(np.percentile(table.full_run_costs(), TIGHT_PERCENTILE))
    others = tuple(text for text in table.constraints if Constraint.parse(text).metric != COST)
    return replace(table, constraints=(f"{COST} <= {limit:.9g}", *others))


def halve(table: Table, seed: int) -> Table:
    """A random half of the configurations."""
    count = len(table.configurations)
    chosen = sorted(np.random.default_rng([seed, 1]).choice(count, size=count // 2, replace=False))
    kept = [table.configurations[position] for position in chosen]
    keys = {tuple(one.items()) for one in kept}
    space = Space.from_configs(
        kept,
        price_per_hour=[table.space.price_per_hour(dict(one)) or 0.0 for one in kept],
        fractions=table.space.fractions,
        snapshots=table.space.snapshots,
    )
    cells = {place: cell for place, cell in table.cells.items() if place[0] in keys}
    return replace(table, space=space, configurations=kept, cells=cells)


def disturb(table: Table, seed: int) -> Table:
    """Accuracies as they would have come out on another day."""
    deviations = _accuracy_deviations(table.name)
    generator = np.random.default_rng([seed, 2])
    metric = table.maximize or ""
    cells: dict[tuple[ConfigurationKey, float], Cell] = {}
    for place, cell in table.cells.items():
        noise = deviations[place] * float(generator.standard_normal())
        if cell.failed is None:
            value = min(max(cell.metrics[metric] + noise, 0.0), 1.0)
            cell = replace(cell, metrics={**cell.metrics, metric: value})
        cells[place] = cell
    return replace(table, cells=cells)


def keep_few_fractions(table: Table, seed: int) -> Table:  # noqa: ARG001
    """Three of the fractions."""
    fractions = table.space.fractions
    kept = tuple(one for one in fractions if any(math.isclose(one, few) for few in FEW_FRACTIONS))
    if len(kept) < len(FEW_FRACTIONS):
        kept = tuple(sorted({fractions[0], fractions[len(fractions) // 2], 1.0}))
    cells = {place: cell for place, cell in table.cells.items() if place[1] in kept}
    return replace(table, space=table.space.with_fractions(kept), cells=cells)


CHANGES: dict[str, Callable[[Table, int], Table]] = {
    "tight": tighten,
    "half": halve,
    NOISE: disturb,
    "three-fractions": keep_few_fractions,
}
VARIANTS = (PLAIN, *CHANGES)


def _accuracy_deviations(name: str) -> Mapping[tuple[ConfigurationKey, float], float]:
    source = _find_csv(name)
    rows = list(csv.DictReader(io.StringIO(source.read_text(encoding="utf-8-sig"))))
    description = dict(_find_description(source))
    if DEVIATION_COLUMN not in rows[0]:
        raise InputError(f"table {name!r} has no column {DEVIATION_COLUMN!r}: its noise is not known")
    description["metrics"] = {**dict(description["metrics"]), "deviation": DEVIATION_COLUMN}  # type: ignore[call-overload]
    cells = Table.read(name, rows, description).cells
    return {place: cell.metrics.get("deviation", 0.0) for place, cell in cells.items()}
