"""Least cost within a deadline where only machines are chosen: CNO after so many full runs, and broken deadlines.

``python -m benchmarks.machines_only`` replays the nine workloads of ``benchmarks/tables/machines`` in a few CPU minutes
and writes docs/results/machines-only.md. The default was changed by looking at the workloads on Spark alone.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from benchmarks.kept import REPORTS, write_page
from benchmarks.papers.markdown import table
from trimtuner.engines.table import Table
from trimtuner.study.replay import ReplayRun, replay

PAGE = "machines-only.md"
WORKLOADS = Path(__file__).parent / "tables" / "machines"
FIRST_SEED, SEEDS = 520, 12  # nothing was chosen on these
TRIALS = 24
RUNS = (1, 2, 3, 5, 8, 12)  # mean full runs of money, after which the recommendation is looked at
HIGHEST_CNO = 10.0  # also what a recommendation counts that breaks the deadline, or is not there yet
METHODS = ("trimtuner", "eic", "eic-usd", "cherrypick:stop_below=0", "random")
FAMILIES = {"Spark, looked at while the default was changed": "spark", "Hadoop, not looked at": "hadoop"}


def load(path: Path) -> Table:
    """A workload with its usual problem: the least cost within the median time."""
    with path.open(newline="") as file:
        rows = [
            row | {"share": "1", "price": str(float(row["price_per_hour"]) * int(row["vm_count"]))}
            for row in csv.DictReader(file)
        ]
    deadline = median(float(row["time"]) for row in rows)
    description: Mapping[str, object] = {
        "title": path.stem,
        "configuration": {name: name for name in ("vm_type", "vm_count", "vcpus", "memory_gib")},
        "fraction": {"column": "share", "full": 1.0},
        "metrics": {"time": "time"},
        "price_per_hour": {"column": "price"},
        "problem": {"minimize": "cost", "constraints": [f"time <= {deadline:.6g}"]},
    }
    return Table.read(path.stem, rows, description)


@dataclass(frozen=True)
class Score:
    """Of the searches of one method: what is recommended after each amount of ``RUNS``."""

    cno: tuple[float, ...]  # means; HIGHEST_CNO where the deadline is broken
    broken: tuple[int, ...]  # how many recommend what breaks it, or nothing yet


def score(searches: Sequence[tuple[float, ReplayRun]]) -> Score:
    """From searches, each with what a full run costs on average."""
    found = [[_cno(run, runs * unit) for unit, run in searches] for runs in RUNS]
    return Score(tuple(map(fmean, found)), tuple(sum(one == HIGHEST_CNO for one in line) for line in found))


def _cno(run: ReplayRun, usd: float) -> float:
    reached = [moment for moment in run.moments if moment.spent <= usd]
    if not reached or not reached[-1].is_feasible:
        return HIGHEST_CNO
    return min(1.0 / reached[-1].quality, HIGHEST_CNO)


def searches_of(method: str, tables: Sequence[Table], seeds: Sequence[int]) -> list[tuple[float, ReplayRun]]:
    """One for each workload and seed, with the unit of its money."""
    return [
        (fmean(one.full_run_costs()), replay(one, method, seed, TRIALS, max(RUNS))) for one in tables for seed in seeds
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, default=REPORTS)
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    paragraphs = [
        "# Only machines are chosen: least cost within a deadline",
        f"Written by `python -m benchmarks.machines_only`, seeds {seeds[0]} to {seeds[-1]}. Nine workloads (Scout's "
        "measurements), 64 to 69 pairs of type and number of machines each, no smaller share of the data; the deadline "
        "is the median time. Cells: mean CNO of what is recommended (its cost over that of the cheapest within the "
        f"deadline; {HIGHEST_CNO:g} where it breaks the deadline or nothing is recommended yet), and in brackets how "
        "many searches recommend such a thing. Money is in mean full runs.",
    ]
    for family, part in FAMILIES.items():
        tables = [load(path) for path in sorted(WORKLOADS.glob("*.csv")) if part in path.stem]
        lines = []
        for method in METHODS:
            found = score(searches_of(method, tables, seeds))
            cells = [f"{cno:.2f} ({broken})" for cno, broken in zip(found.cno, found.broken, strict=True)]
            lines.append([f"`{method}`", *cells])
        header = ["method", *(f"after {runs}" for runs in RUNS)]
        paragraphs += [
            f"## {family}: {len(tables)} workloads, {len(tables) * len(seeds)} searches",
            table(header, lines),
        ]
    print(write_page(chosen.out, PAGE, paragraphs))


if __name__ == "__main__":
    main()
