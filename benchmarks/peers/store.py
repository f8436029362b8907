"""A search of the comparison, how it is run, and the finished ones, which are kept as one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from benchmarks.kept import Columns, load_table, unit_of
from benchmarks.papers.searches import Trace
from benchmarks.peers.entrants import entrant_named
from benchmarks.variants import make_variant


@dataclass(frozen=True)
class Search:
    """What determines a search; ``measured`` and ``version`` say on which measurements and by which code."""

    table: str
    variant: str
    peer: str
    seed: int
    trials: int
    measured: str
    version: str

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Where it goes in the report, whoever ran it and when."""
        return self.table, self.variant, self.peer, self.seed

    def identity(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Finished:
    """A search with its trace, money in units of a mean full-data run."""

    search: Search
    trace: Trace


def run_one(search: Search) -> Columns:
    """The search, in columns; money in units, so that a report needs no table."""
    run_search = entrant_named(search.peer).load()
    variant = make_variant(search.variant, load_table(search.table), search.seed)
    trace = Trace.of(run_search(variant, search.seed, search.trials).moments)
    unit = unit_of(variant.measured)
    return replace(trace, spent=tuple(float(f"{usd / unit:.6g}") for usd in trace.spent)).as_plain()


def read_finished(path: Path) -> list[Finished]:
    """The last one for each place in the report, whichever version ran it."""
    return list({one.search.place: one for one in _lines_of(path)}.values())


def _lines_of(path: Path) -> Iterator[Finished]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
            search = Search(**{field.name: entry["key"][field.name] for field in fields(Search)})
            yield Finished(search, Trace.from_plain(entry["result"]))
        except (ValueError, KeyError, TypeError):
            continue  # half a line, of a run that was killed
