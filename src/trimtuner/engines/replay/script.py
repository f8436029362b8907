"""What a played job says, when, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from trimtuner.engines.protocol import End, Launch, Report
from trimtuner.engines.table import Cell, Table
from trimtuner.errors import InputError
from trimtuner.problem.problem import COST, TIME

_FRACTION = "fraction"


@dataclass(frozen=True)
class Script:
    """A job as it goes when nobody disturbs it; one that never ends by itself has an end after math.inf seconds."""

    reports: tuple[Report, ...]
    end: End

    def as_json(self) -> dict[str, object]:
        """The script in values that a JSON file can hold."""
        return {
            "reports": [{"metrics": {**report.metrics}, "seconds": report.seconds} for report in self.reports],
            "kind": self.end.kind,
            "detail": self.end.detail,
            "seconds": None if self.end.seconds == math.inf else self.end.seconds,
        }

    @classmethod
    def of_json(cls, found: dict[str, object]) -> Script:
        """The script that ``as_json`` wrote."""
        reports: list[dict[str, object]] = found["reports"]  # type: ignore[assignment]
        seconds = found["seconds"]
        return cls(
            tuple(Report(one["metrics"], float(one["seconds"])) for one in reports),  # type: ignore[arg-type]
            End(found["kind"], str(found["detail"]), math.inf if seconds is None else float(seconds)),  # type: ignore[arg-type]
        )


ScriptOf: TypeAlias = Callable[[Launch], Script]


def scripts_of(table: Table) -> ScriptOf:
    """The job that the table measured: at every configuration and fraction that it has."""
    names = tuple(table.configurations[0])

    def script_of(launch: Launch) -> Script:
        missing = [name for name in names if name not in launch.configuration]
        if missing:
            raise InputError(f"the table {table.name!r} tells jobs apart by {missing[0]!r}, which is no parameter here")
        configuration = {name: launch.configuration[name] for name in names}
        cell, passed = table.told(configuration, launch.fraction, launch.snapshots if table.space.snapshots else ())
        told = passed if cell.failed is not None else {**passed, launch.fraction: cell}
        reports = tuple(_report(one, fraction) for fraction, one in told.items())
        return Script(reports, End(cell.failed, "as the table says", cell.metrics[TIME]))

    return script_of


def _report(cell: Cell, fraction: float) -> Report:
    told = {name: value for name, value in cell.metrics.items() if name not in (COST, TIME)}
    return Report({**told, _FRACTION: fraction}, cell.metrics[TIME])
