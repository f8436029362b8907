"""What benchmarks by replay share: tables that are ready, finished searches on disk, and the processes that run them.

A finished search is a line of JSON; what was done stays done, and a search whose table or method has changed since is
another search. A change of the arithmetic alone is not seen: run with ``--again``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.papers.cache import ends_with_newline
from benchmarks.papers.jobs import digest
from benchmarks.papers.runner import progress, workers
from benchmarks.tables.public_jobs import public_jobs, read_public_job
from trimtuner import __version__
from trimtuner.engines.table import Table, known_tables
from trimtuner.errors import InputError
from trimtuner.problem.problem import Constraint
from trimtuner.tuning.recipes import recipe_named

FOLDER = Path(".trimtuner-bench")
REPORTS = Path("docs/results")
PLOTS = "plots"
FIRST_SEED, SEEDS = 7000, 20  # nothing was chosen on these
MOST_TRIALS = 100
PAPERS = ("cnn", "rnn")

Columns = dict[str, list[float | None]]  # one entry for each trial, in order; None for what is not known


class Search(Protocol):
    """One search of a benchmark."""

    def identity(self) -> dict[str, object]:
        """Everything that determines it, in plain values."""


AnySearch = TypeVar("AnySearch", bound=Search)


class Kept:
    """Finished searches in a file; of two lines for one search the later counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[str, Columns] = {}
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
                self._results[_canonical(entry["key"])] = entry["result"]
            except (ValueError, KeyError, TypeError):
                continue  # half a line, of a run that was killed

    def find(self, search: Search) -> Columns | None:
        """What came out of it, if it is finished."""
        return self._results.get(_canonical(search.identity()))

    def add(self, search: Search, result: Columns) -> None:
        """On the disk when this returns."""
        key = search.identity()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "result": result}, separators=(",", ":"))
        with self._path.open("ab") as file:
            torn = file.tell() > 0 and not ends_with_newline(self._path)
            file.write(("\n" if torn else "").encode() + line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._results[_canonical(key)] = result


def run_missing(
    searches: Sequence[AnySearch],
    run: Callable[[AnySearch], Columns],
    kept: Kept,
    processes: int,
    is_again: bool = False,
) -> None:
    """Run, in this order, the searches without a result, or all again; those that raise are told of at the end."""
    missing = [one for one in searches if is_again or kept.find(one) is None]
    if not missing:
        return
    failures: list[str] = []
    with progress(len(searches) - len(missing), len(searches)) as show, workers(processes) as pool:
        futures: dict[Future[Columns], AnySearch] = {pool.submit(run, one): one for one in missing}
        for future in as_completed(futures):
            search, error = futures.pop(future), future.exception()
            if error is None:
                kept.add(search, future.result())
            else:
                failures.append(f"{search}: {error!r}")
            show(len(searches) - len(futures))
    if failures:
        raise SystemExit(f"{len(failures)} of {len(missing)} searches failed; the first: {failures[0]}")


def options(description: str, name: str) -> argparse.ArgumentParser:
    """The options that every such benchmark has; ``name`` is that of its file of results."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, metavar="S")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="all that can be found, unless named")
    parser.add_argument("--trials", type=int, default=MOST_TRIALS, metavar="N", help="of a search, at most")
    parser.add_argument("--processes", type=int, default=1, metavar="P")
    parser.add_argument("--cache", type=Path, default=FOLDER / f"{name}.jsonl", help="the file of finished searches")
    parser.add_argument("--out", type=Path, default=REPORTS, help="the folder that gets the report and its plots")
    parser.add_argument("--again", action="store_true", help="run finished searches again")
    parser.add_argument("--report-only", action="store_true", help="run nothing, report what is finished")
    return parser


def ready_tables(names: Sequence[str] | None) -> list[str]:
    """Those named, or all known, the papers' first; others that are not completely measured are left out, and named."""
    if names is not None:
        for name in names:
            if trouble := trouble_with(load_table(name)):
                raise InputError(f"table {name!r} {trouble}")
        return list(names)
    found = []
    for name in sorted(known_tables(), key=lambda name: (name not in PAPERS, name)):
        if trouble := trouble_with(load_table(name)):
            print(f"table {name!r} {trouble}: left out", file=sys.stderr)
        else:
            found.append(name)
    return found


def trouble_with(table: Table) -> str | None:
    """Why a table cannot be replayed, if it cannot."""
    missing = len(table.configurations) * len(table.space.fractions) - len(table.cells)
    if missing:
        return f"lacks {missing} measurements"
    try:
        for text in table.constraints:
            Constraint.parse(text)
    except InputError as error:
        return f"has a limit that is none ({error})"
    return None


@cache
def load_table(name: str) -> Table:
    """Read once in each process: one that ships, or a public job of the benchmarks."""
    return read_public_job(name) if name in public_jobs() else Table.find(name)


def unit_of(table: Table) -> float:
    """USD of a mean run on full data: the unit of money."""
    costs = table.full_run_costs()
    return sum(costs) / len(costs)


@cache
def table_digest(name: str) -> str:
    """A short name for all that was measured."""
    return digest(load_table(name))


@cache
def method_digest(method: str) -> str:
    """A short name for the parts that a method is made of, now."""
    parts = re.sub(r" at 0x[0-9a-f]+", "", repr(recipe_named(method)))
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


def identity_of(table: str, method: str, seed: int, trials: int) -> dict[str, object]:
    """The part of an identity that all benchmarks have."""
    return {
        "version": __version__,
        "table": table,
        "measured": table_digest(table),
        "method": method,
        "parts": method_digest(method),
        "seed": seed,
        "trials": trials,
    }


def write_page(folder: Path, name: str, paragraphs: Sequence[str]) -> Path:
    """A report in Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    return path


def _canonical(key: object) -> str:
    return json.dumps(key, sort_keys=True)
