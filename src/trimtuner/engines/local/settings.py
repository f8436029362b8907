"""The local engine, as a job file asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.checks import Check, Workload
from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine


@dataclass(frozen=True)
class LocalSettings:
    """Trials on this machine, which has no keys of its own."""

    @property
    def ended_within_seconds(self) -> float:
        """The supervisor's grace, after which all is ended."""
        return ENDED_WITHIN_SECONDS

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """An engine that looks for attempts in the folders of the studies."""
        from trimtuner.engines.local.engine import LocalEngine

        return LocalEngine(secret, [path for path in folder.glob("*") if path.is_dir()] if folder.exists() else [])

    def checks(self, work: Workload) -> Iterator[Check]:
        """The command, and whether this machine is as large as those it stands in for."""
        from trimtuner.engines.local.checks import checks_of

        return checks_of(work)
