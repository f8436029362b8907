"""The figures of ``calibration.py``: how true chances and intervals are, and what a stop rule does to searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.calibration_searches import COLUMNS, COST_GOAL, Search
from benchmarks.kept import Kept, load_table, unit_of
from benchmarks.papers.curves import percentile
from trimtuner.arrays import Booleans, Floats
from trimtuner.decisions.belief import interval_deviations

EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)  # of P(feasible)
RESAMPLES = 1000
FEWEST_SEARCHES = 5  # resampling fewer says nothing about the spread
GOOD = 0.95  # of the best: decision 12 asks how often searches are ended short of it


@dataclass(frozen=True)
class Finished:
    """A finished search: its columns as arrays, not a number where not known."""

    search: Search
    columns: dict[str, Floats]

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    @property
    def trials(self) -> Floats:
        """How many were made, at each row."""
        return np.arange(1.0, len(self["spent"]) + 1.0)

    def part(self, rows: slice) -> Finished:
        """Some of its rows."""
        return Finished(self.search, {name: values[rows] for name, values in self.columns.items()})

    @property
    def says(self) -> Booleans:
        """Rows whose recommendation is a forecast: where it was measured there is nothing to be calibrated."""
        return np.asarray(np.isfinite(self["chance"]) & (self["measured"] == 0.0))


def finished_of(searches: Sequence[Search], kept: Kept) -> list[Finished]:
    """Those that have a result."""
    found = []
    for search in searches:
        columns = kept.find(search)
        if columns is not None:
            arrays = {name: np.array([math.nan if v is None else v for v in columns[name]]) for name in COLUMNS}
            found.append(Finished(search, arrays))
    return found


@dataclass(frozen=True)
class Share:
    """How often something is so, with a 95 % interval over searches."""

    value: float
    low: float
    high: float
    count: int  # rows
    searches: int  # that they come from

    def __str__(self) -> str:
        if not self.count:
            return "-"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share_of(hits: Sequence[Floats]) -> Share:
    """The mean of rows given search by search; whole searches are resampled, since rows of one are not independent."""
    sums = np.array([values.sum() for values in hits])
    counts = np.array([len(values) for values in hits], dtype=float)
    if not counts.sum():
        return Share(math.nan, math.nan, math.nan, 0, 0)
    value, searches = float(sums.sum() / counts.sum()), int((counts > 0).sum())
    if value in (0.0, 1.0):
        # Resampling knows no other value; with one in forty chance so many independent searches would all agree.
        doubt = 0.025 ** (1.0 / searches)
        low, high = (0.0, 1.0 - doubt) if value == 0.0 else (doubt, 1.0)
    elif searches < FEWEST_SEARCHES:
        low, high = 0.0, 1.0
    else:
        # Searches without such rows are drawn too: how many have any is part of the chance.
        drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
        totals = counts[drawn].sum(axis=1)
        means = sums[drawn].sum(axis=1)[totals > 0] / totals[totals > 0]
        low, high = (percentile(means, percent) for percent in (2.5, 97.5))
    return Share(value, low, high, int(counts.sum()), searches)


@dataclass(frozen=True)
class Bin:
    """Recommendations that say about the same chance."""

    low: float
    high: float
    said: float  # the mean of what they say
    feasible: Share


def reliability(searches: Sequence[Finished]) -> list[Bin]:
    """Of the recommendations that say P(feasible) = p, what share is; an edge belongs to the bin above it."""
    bins = []
    for low, high in pairwise(EDGES):
        is_last = high == EDGES[-1]
        chosen = [one.says & (one["chance"] >= low) & ((one["chance"] < high) | is_last) for one in searches]
        said = np.concatenate([one["chance"][rows] for one, rows in zip(searches, chosen, strict=True)])
        hits = [one["feasible"][rows] for one, rows in zip(searches, chosen, strict=True)]
        bins.append(Bin(low, high, float(said.mean()) if len(said) else math.nan, share_of(hits)))
    return bins


def brier(searches: Sequence[Finished]) -> tuple[float, float]:
    """Mean squared error of the chances of forecasts, and that of always saying the overall share."""
    said = np.concatenate([one["chance"][one.says] for one in searches])
    true = np.concatenate([one["feasible"][one.says] for one in searches])
    if not len(said):
        return math.nan, math.nan
    return float(((said - true) ** 2).mean()), float(true.var())


def coverage(searches: Sequence[Finished], column: str, level: float) -> Share:
    """How often the truth lies within the interval that should hold it with this chance."""
    width = interval_deviations(level)
    return share_of([(np.abs(z[np.isfinite(z)]) <= width).astype(float) for z in (one[column] for one in searches)])


def stopping_row(one: Finished, worth: float, fewest_trials: int) -> int | None:
    """The first row after which NotWorthItsPrice(worth) would end the search; worth in USD for a unit of the goal."""
    with np.errstate(invalid="ignore"):
        ends = (one["gain"] * worth <= one["price"]) & (one.trials >= fewest_trials)
    rows = np.flatnonzero(ends)
    return int(rows[0]) if len(rows) else None


def worth_in_usd(search: Search, worth: float) -> float:
    """For least cost, how often the run is made; else one hundredth of accuracy is worth so many mean full runs."""
    return worth if search.goal == COST_GOAL else 100.0 * worth * unit_of(load_table(search.table))


@dataclass(frozen=True)
class Ending:
    """A search that the rule ended, and how it would have gone on; money in units."""

    trials: int
    spent: float
    spent_at_end: float
    quality: float
    quality_at_end: float
    is_feasible: bool

    @property
    def saved(self) -> float:
        """As a share of what the whole search spends."""
        return 1.0 - self.spent / self.spent_at_end

    @property
    def lost(self) -> float:
        """Of the recommendation's worth; below 0 where the end is worse."""
        return self.quality_at_end - self.quality


def endings(searches: Sequence[Finished], worth: float, fewest_trials: int = 1) -> list[Ending]:
    """Of those searches that the rule would end, in their order."""
    found = []
    for one in searches:
        row = stopping_row(one, worth_in_usd(one.search, worth), fewest_trials)
        if row is not None:
            unit = unit_of(load_table(one.search.table))
            spent, quality = one["spent"] / unit, one["quality"]
            found.append(
                Ending(
                    row + 1,
                    float(spent[row]),
                    float(spent[-1]),
                    float(quality[row]),
                    float(quality[-1]),
                    bool(one["feasible"][row] == 1.0),
                )
            )
    return found
