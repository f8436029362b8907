"""The replay engine, as a job file asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.checks import Check, Workload
from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine
from trimtuner.keys.declared import key, required
from trimtuner.keys.fields import Field
from trimtuner.keys.kinds import TEXT, Kind, number


def _table(field: Field) -> str:
    found = field.text("the name of a table, or the path of its CSV")
    return str(field.folder / found) if found.lower().endswith(".csv") else found


@dataclass(frozen=True)
class ReplaySettings:
    """Trials from a table, by its name or the path of its CSV."""

    table: str = required(
        Kind(_table, TEXT),
        "The table of measurements to play trials from, which a replay needs: its name (see `trimtuner tables`), or "
        "the path of its CSV.",
        write="table: digits (see 'trimtuner tables')",
        examples=["digits", "my.csv"],
    )
    pace: float = key(  # seconds of a trial that pass in one of ours
        number("how many times faster", above=0, most=1e9),
        "How many times faster than in earnest trials pass.",
        default=1000.0,
    )

    @property
    def ended_within_seconds(self) -> float:
        """As on this machine, so that a rehearsal reserves what the performance will."""
        return ENDED_WITHIN_SECONDS

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """The engine, with the table read."""
        from trimtuner.engines.replay.engine import ReplayEngine
        from trimtuner.engines.replay.script import scripts_of
        from trimtuner.engines.table import Table

        return ReplayEngine(folder, secret, scripts_of(Table.find(self.table)), self.pace)

    def checks(self, work: Workload) -> Iterator[Check]:  # noqa: ARG002  (which every engine is given)
        """Nothing: a rehearsal needs no machines and no command."""
        return iter(())
