"""The replay engine, as a job file asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine


@dataclass(frozen=True)
class ReplaySettings:
    """Trials from a table, by its name or the path of its CSV."""

    table: str
    pace: float = 1000.0  # seconds of a trial that pass in one of ours

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
