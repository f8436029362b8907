"""What stands in the way of the default: its searches, had it known something that it has to find out.

``python -m benchmarks.floors`` writes docs/results/floors.md in about half a CPU hour. Beside the default as it is:

- ``recommending``: had it always recommended the best of what it had tested so far, on whatever share of the data. Of
  the same searches, so that only the choice among what was tested differs.
- ``time known``: the default with a model of time, and so of cost, that knows every run beforehand.

Neither is to be had. They say where money is to be saved, and how much at most.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from benchmarks.kept import (
    Columns,
    Kept,
    identity_of,
    load_table,
    options,
    ready_tables,
    run_missing,
    unit_of,
    write_page,
)
from benchmarks.papers.markdown import number, table
from benchmarks.peers.ratios import ORDER, family
from benchmarks.scoring import Scorer
from benchmarks.tables.public_jobs import public_jobs
from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Places
from trimtuner.engines.table import Table
from trimtuner.models.posterior import Mixture, Prediction
from trimtuner.problem.problem import TIME
from trimtuner.study.replay import tell_from_table
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import TRIMTUNER

PAGE, NAME = "floors.md", "floors"
LEVELS = (0.95, 0.99)
UNITS, TRIALS = 20.0, 100
AS_IT_IS, TIME_KNOWN = "as it is", "time known"
NEXT_TO_NOTHING = 1e-12


@dataclass(frozen=True)
class KnownTimes:
    """A model that learns nothing, since it knows: the logarithm of the time of each row."""

    takes_thousands: ClassVar[bool] = True
    rows: tuple[bytes, ...]
    log_seconds: tuple[float, ...]
    noise_variance: float = NEXT_TO_NOTHING

    @classmethod
    def of(cls, measured: Table) -> KnownTimes:
        """What a table says; a run that fails takes no time that anybody could plan with."""
        pool = measured.space.pool()
        places = Places.product(pool, measured.space.fractions)
        cells = [
            measured.cell(pool.configuration(int(position)), float(fraction))
            for position, fraction in zip(places.positions, places.fractions, strict=True)
        ]
        seconds = [max(cell.metrics.get(TIME, 1.0), NEXT_TO_NOTHING) for cell in cells]
        return cls(tuple(row.tobytes() for row in places.rows), tuple(math.log(one) for one in seconds))

    def fit(self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator) -> Mixture:  # noqa: ARG002
        """The same, whatever was measured."""
        return Mixture(np.ones(1), [self])

    def predict(self, rows: Floats) -> Prediction:
        """What is known, with next to no doubt."""
        known = np.array([self._by_row[row.tobytes()] for row in np.ascontiguousarray(rows)])
        return Prediction(known, np.full(len(rows), NEXT_TO_NOTHING))

    @cached_property
    def _by_row(self) -> dict[bytes, float]:
        return dict(zip(self.rows, self.log_seconds, strict=True))

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """No run tells anything about another."""
        return np.zeros((len(rows), len(others)))


@dataclass(frozen=True)
class Search:
    """One search, by the default or with what it cannot know."""

    table: str
    way: str
    seed: int

    def identity(self) -> dict[str, object]:
        """As the file of results knows it."""
        return identity_of(self.table, "trimtuner", self.seed, TRIALS) | {"way": self.way}


def run_search(search: Search) -> Columns:
    """After each trial: money spent, how good the recommendation was, and how good the best of the tested."""
    measured = load_table(search.table)
    recipe = TRIMTUNER
    if search.way == TIME_KNOWN:
        recipe = recipe.but(time_surrogate=KnownTimes.of(measured), time_growth=0.0)
    study = Study(
        measured.space.with_snapshots(False),
        maximize=measured.maximize,
        constraints=measured.constraints,
        method=recipe,
        seed=search.seed,
    )
    scorer, unit = Scorer(measured), unit_of(measured)
    columns: Columns = {"spent": [], "recommended": [], "tested": []}
    best = 0.0
    for trial in study.in_turn(lambda trial: tell_from_table(study, measured, trial), TRIALS):
        best = max(best, scorer.quality(trial.config))
        named = scorer.quality(study.recommend().config) if study.history.measurements else 0.0
        for column, value in (("spent", study.spent / unit), ("recommended", named), ("tested", best)):
            columns[column].append(float(f"{value:.6g}"))
        if study.spent >= UNITS * unit:
            break
    return columns


def settled(found: Columns, column: str, level: float) -> float:
    """Full runs until it was that good for good; the whole budget for never."""
    below = [place for place, value in enumerate(found[column]) if (value or 0.0) < level]
    first = below[-1] + 1 if below else 0
    spent = found["spent"]
    return min(UNITS, spent[first] or 0.0) if first < len(spent) else UNITS


def report(found: Sequence[tuple[Search, Columns]], seeds: range) -> list[str]:
    """Geometric means over the searches of a family; ratios to the default as it is."""
    kinds = [name for name in ORDER if any(family(one.table) == name for one, _ in found)]
    rows = [row for name in (*kinds, "all") for row in _rows(name, found)]
    return [
        "# What stands in the way",
        f"Written by `python -m benchmarks.floors`, seeds from {seeds.start}, {len(seeds)} on each job. Full runs "
        "until the recommendation is within 5 and 1 % of the best for good, geometric means over searches; one that "
        f"does not get there counts as the whole budget of {UNITS:g}. *Recommending*: had the same searches always "
        "recommended the best of what they had tested so far, on any share of the data. *Time known*: the default, "
        "were the time (and so the cost) of every run known beforehand. Nobody can have either; in brackets what they "
        "would save. No run is stopped here for being over a limit.",
        table(["jobs", "searches", "level", "as it is", "recommending", "time known"], rows),
    ]


def _rows(name: str, found: Sequence[tuple[Search, Columns]]) -> list[list[str]]:
    here = [(one, columns) for one, columns in found if name in ("all", family(one.table))]
    plain = [columns for one, columns in here if one.way == AS_IT_IS]
    knowing = [columns for one, columns in here if one.way == TIME_KNOWN]
    rows = []
    for level in LEVELS:
        base = _mean(plain, "recommended", level)
        others = (_mean(plain, "tested", level), _mean(knowing, "recommended", level))
        cells = [f"{number(one, 2)} (x {number(one / base, 2)})" for one in others]
        rows.append([name, str(len(plain)), f"{level:.0%}", number(base, 2), *cells])
    return rows


def _mean(found: Sequence[Columns], column: str, level: float) -> float:
    return statistics.geometric_mean(settled(one, column, level) for one in found)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__.splitlines()[0], NAME)
    parser.set_defaults(seeds=1)
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    tables = ready_tables(chosen.tables) + ([] if chosen.tables else public_jobs())
    kept = Kept(chosen.cache)
    searches = [Search(name, way, seed) for seed in seeds for name in tables for way in (AS_IT_IS, TIME_KNOWN)]
    if not chosen.report_only:
        run_missing(searches, run_search, kept, chosen.processes, chosen.again)
    found = [(one, columns) for one in searches if (columns := kept.find(one)) is not None]
    print(write_page(chosen.out, PAGE, report(found, seeds)))


if __name__ == "__main__":
    main()
