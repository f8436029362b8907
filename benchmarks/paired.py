"""Whether a change of the default saves money: the same jobs and seeds with and without it, search by search.

``python -m benchmarks.paired own_method.py:RECIPE`` replays the recipe and the default on the jobs that are tuned on,
and prints the geometric mean of the ratio of money for good, with the standard error of its logarithm. A pair differs
by a factor of about e by chance alone: plan for a hundred and more, and look once more on seeds that nothing was chosen
on. Where the change comes late, so that both are one search up to there, fewer tell as much.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.floors import settled
from benchmarks.kept import Columns, Kept, load_table, options, ready_tables, run_missing, table_digest, unit_of
from benchmarks.papers.markdown import table
from benchmarks.peers.ratios import ORDER, TUNED_ON, family
from benchmarks.peers.search import BUDGET_UNITS
from benchmarks.tables.public_jobs import public_jobs
from trimtuner.errors import InputError
from trimtuner.study.replay import replay
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import recipe_named

DEFAULT = "trimtuner"
FIRST_SEED, SEEDS = 1200, 4
LEVELS = (0.90, 0.95, 0.97, 0.99)


@cache
def recipe_at(text: str) -> Recipe:
    """A method by its name, or ``file.py:NAME``, a recipe that a file defines."""
    file, colon, name = text.rpartition(":")
    if not file.endswith(".py"):
        return recipe_named(text)
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if not colon or spec is None or spec.loader is None or not Path(file).is_file():
        raise InputError(f"there is no file {file!r}")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their names
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not isinstance(found, Recipe):
        raise InputError(f"{file} has no recipe {name!r}")
    return found


@dataclass(frozen=True)
class Search:
    """One search of one method."""

    table: str
    method: str
    seed: int
    trials: int
    snapshots: bool = False  # runs report the smaller shares on their way, for nothing

    def identity(self) -> dict[str, object]:
        """As the file of results knows it: by the recipe itself, for what a file defines changes."""
        parts = json.dumps(recipe_at(self.method).described(), sort_keys=True)
        measured, passing = table_digest(self.table), {"snapshots": True} if self.snapshots else {}
        plain = {"table": self.table, "measured": measured, "parts": parts, "seed": self.seed, "trials": self.trials}
        return plain | passing


def run_search(search: Search) -> Columns:
    """After each trial: full runs' worth spent, how good the recommendation was, and the processor's seconds for it."""
    measured = load_table(search.table)
    run = replay(
        measured,
        recipe_at(search.method),
        search.seed,
        search.trials,
        BUDGET_UNITS,
        snapshots=search.snapshots,
        stop_at_limits=True,
    )
    unit = unit_of(measured)
    return {
        "spent": [float(f"{moment.spent / unit:.6g}") for moment in run.moments],
        "recommended": [float(f"{moment.quality:.6g}") for moment in run.moments],
        "asking": [float(f"{moment.ask_seconds:.4g}") for moment in run.moments],
    }


Pair = tuple[str, Columns, Columns]  # the job, with the change, without it


def report(pairs: Sequence[Pair]) -> str:
    """A row for each family, and one for all of them."""
    kinds = [name for name in ORDER if any(family(job) == name for job, *_ in pairs)]
    header = ["jobs", "pairs", *(f"{level:.0%}" for level in LEVELS), "mean of these", "CPU"]
    return table(header, [_row(name, pairs) for name in (*kinds, "all")])


def _row(name: str, pairs: Sequence[Pair]) -> list[str]:
    here = [(new, old) for job, new, old in pairs if name in ("all", family(job))]
    logs = [
        [math.log(settled(new, "recommended", level) / settled(old, "recommended", level)) for level in LEVELS]
        for new, old in here
    ]
    asking = [sum(value or 0.0 for one in side for value in one["asking"]) for side in zip(*here, strict=True)]
    columns = [*zip(*logs, strict=True), [statistics.fmean(one) for one in logs]]
    return [name, str(len(here)), *map(ratio_with_error, columns), f"{asking[0] / asking[1]:.2f}"]


def ratio_with_error(logs: Sequence[float]) -> str:
    """The geometric mean, and the standard error of its logarithm where there are two or more."""
    error = f" ± {statistics.stdev(logs) / math.sqrt(len(logs)):.2f}" if len(logs) > 1 else ""
    return f"{math.exp(statistics.fmean(logs)):.2f}{error}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__.splitlines()[0], "paired")
    parser.set_defaults(seeds=SEEDS, first_seed=FIRST_SEED, processes=2)
    parser.add_argument("changed", metavar="METHOD", help="the name of a method, or file.py:NAME of a recipe")
    parser.add_argument("--against", default=DEFAULT, metavar="METHOD")
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="its runs report smaller shares on their way; those of the other do not",
    )
    chosen = parser.parse_args(arguments)
    tables = ready_tables(chosen.tables) + ([] if chosen.tables else public_jobs())
    tables = [name for name in tables if chosen.tables or family(name) in TUNED_ON]
    places = [(name, seed) for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds) for name in tables]
    kept = Kept(chosen.cache)
    searches = {
        (name, seed): [
            Search(name, chosen.changed, seed, chosen.trials, chosen.snapshots),
            Search(name, chosen.against, seed, chosen.trials),
        ]
        for name, seed in places
    }
    if not chosen.report_only:
        run_missing(
            [one for both in searches.values() for one in both], run_search, kept, chosen.processes, chosen.again
        )
    found = [(name, *map(kept.find, both)) for (name, _), both in searches.items()]
    pairs = [(name, new, old) for name, new, old in found if new is not None and old is not None]
    print(report(pairs) if pairs else "no pair is finished yet")


if __name__ == "__main__":
    main()
