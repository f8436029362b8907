"""What follows from the measurements alone, without a search: counts, optima, initial samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.papers import COMBINATIONS
from benchmarks.papers.searches import LEAST_ACCURACY, MOST_SECONDS
from trimtuner.arrays import Floats
from trimtuner.engines.table import Table

CLOSE_TO_BEST = 0.95  # Table II: accuracy "no more than 5 % lower" than the best feasible one
DRAWS = 2000


@dataclass(frozen=True)
class Cells:
    """The table as arrays: a row for each configuration, a column for each fraction; what failed is not a number."""

    fractions: tuple[float, ...]
    accuracy: Floats
    cost: Floats
    time: Floats

    @classmethod
    def of(cls, table: Table) -> Cells:
        """All measurements of a table."""
        fractions = table.space.fractions

        def column(metric: str) -> Floats:
            return np.array(
                [[table.cell(one, s).metrics.get(metric, np.nan) for s in fractions] for one in table.configurations]
            )

        return cls(fractions, column("accuracy"), column("cost"), column("time"))

    @property
    def is_quick(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Within the thesis's limit on time."""
        return self.time <= MOST_SECONDS

    @property
    def is_accurate(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Within its limit on accuracy."""
        return self.accuracy >= LEAST_ACCURACY

    def best_cost(self, least_accuracy: float, most_seconds: float) -> Floats:
        """The cheapest that meets the limits at each fraction; infinite where none does."""
        allowed = (self.accuracy >= least_accuracy) & (self.time <= most_seconds)
        return np.asarray(np.where(allowed, self.cost, np.inf).min(axis=0))


def feasible_and_close(cells: Cells, cost_limit: float) -> tuple[int, int]:
    """Table II: within the cost limit at full data, and those of them close to the best."""
    accuracy = cells.accuracy[cells.cost[:, -1] <= cost_limit, -1]
    return len(accuracy), int((accuracy >= CLOSE_TO_BEST * accuracy.max()).sum())


def best_accuracy(cells: Cells, cost_limit: float) -> float:
    """The best at full data within the cost limit."""
    return float(cells.accuracy[cells.cost[:, -1] <= cost_limit, -1].max())


def meeting_both(cells: Cells) -> tuple[int, int]:
    """Table 6.2: accurate and quick enough, at any fraction and at full data."""
    both = cells.is_accurate & cells.is_quick
    return int(both.sum()), int(both[:, -1].sum())


def cross_table(cells: Cells, fraction: float) -> tuple[tuple[int, ...], ...]:
    """Tables 6.3 to 6.5: which limits configurations meet at full data (rows) and at a fraction (columns)."""
    column = int(np.argmin(np.abs(np.array(cells.fractions) - fraction)))
    meets = [
        list(zip(cells.is_quick[:, place].tolist(), cells.is_accurate[:, place].tolist(), strict=True))
        for place in (-1, column)
    ]
    counts = Counter(zip(*meets, strict=True))
    return tuple(tuple(counts[(row, other)] for other in COMBINATIONS) for row in COMBINATIONS)


def within_cost_and_accurate(cells: Cells, cost_limit: float) -> tuple[int, int, int]:
    """Table 7.1: within the cost limit, accurate, both; at full data."""
    is_cheap, is_accurate = cells.cost[:, -1] <= cost_limit, cells.accuracy[:, -1] > LEAST_ACCURACY
    return int(is_cheap.sum()), int(is_accurate.sum()), int((is_cheap & is_accurate).sum())


def cheaper_with_less_data(cells: Cells) -> tuple[float, float]:
    """How many times dearer the best at full data is than the best at any fraction, and that fraction."""
    best = cells.best_cost(LEAST_ACCURACY, MOST_SECONDS)
    place = int(np.argmin(best))
    return float(best[-1] / best[place]), cells.fractions[place]


def reduction_map(cells: Cells, accuracies: Sequence[float], seconds: Sequence[float]) -> Floats:
    """Fig. 6.8, Eq. 6.2: cost saved by less data, a row for each time limit; not a number where nothing is feasible.

    Where only the smaller fractions have something feasible, the full-data optimum does not exist: saved is all.
    """
    result = np.full((len(seconds), len(accuracies)), np.nan)
    for row, most_seconds in enumerate(seconds):
        for column, least_accuracy in enumerate(accuracies):
            best = cells.best_cost(least_accuracy, most_seconds)
            if np.isfinite(best.min()):
                result[row, column] = 1.0 if np.isinf(best[-1]) else 1.0 - best.min() / best[-1]
    return result


def trials_within(costs: Floats, budget: float, seed: int = 0) -> Floats:
    """How many trials, drawn at random without repetition, an initial budget buys; the last one may pass it.

    A Latin hypercube draws every trial equally often, so its mean is that of drawing at random.
    """
    generator = np.random.default_rng(seed)
    flat = costs.ravel()
    counts = np.empty(DRAWS)
    for draw in range(DRAWS):
        spent = np.cumsum(generator.permutation(flat))
        counts[draw] = min(int(np.searchsorted(spent, budget)) + 1, len(flat))
    return counts
