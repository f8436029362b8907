"""What is looked at before a cent is spent: the words of ``trimtuner doctor``, and what it asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from trimtuner.problem.cloud import Cloud

Outcome: TypeAlias = Literal["ok", "warning", "failed", "unknown"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do about it."""

    name: str
    outcome: Outcome
    text: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """The same for scripts, without what is empty."""
        told = {"name": self.name, "outcome": str(self.outcome), "text": self.text, "advice": self.advice}
        return {key: value for key, value in told.items() if value}


@dataclass(frozen=True)
class Workload:
    """What a job asks of its engine."""

    cloud: Cloud | None
    parallel: int  # trials side by side
    program: str  # the first word of the command
    working_directory: Path
    limit: float  # seconds of a trial


def fine(name: str, text: str) -> Check:
    """The check of what is as it should be."""
    return Check(name, "ok", text)


def failed(name: str, text: str, advice: str) -> Check:
    """The check of what keeps trials from running."""
    return Check(name, "failed", text, advice)


def warning(name: str, text: str, advice: str) -> Check:
    """The check of what lets trials run, but maybe not as meant."""
    return Check(name, "warning", text, advice)


def unknown(name: str, text: str, advice: str = "") -> Check:
    """The check of what could not be found out."""
    return Check(name, "unknown", text, advice)
