"""What a check finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["ok", "warning", "failed", "unknown"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    outcome: Outcome
    text: str  # what was found
    advice: str = ""  # what to do about it

    def as_json(self) -> dict[str, str]:
        """For scripts."""
        told = {"name": self.name, "outcome": str(self.outcome), "text": self.text, "advice": self.advice}
        return {key: value for key, value in told.items() if value}


Looking: TypeAlias = Callable[[], Iterator[Check]]


def fine(name: str, text: str) -> Check:
    """All is well."""
    return Check(name, "ok", text)


def failed(name: str, text: str, advice: str) -> Check:
    """Trials cannot run like this."""
    return Check(name, "failed", text, advice)


def warning(name: str, text: str, advice: str) -> Check:
    """Trials run, but maybe not as meant."""
    return Check(name, "warning", text, advice)


def unknown(name: str, text: str, advice: str = "") -> Check:
    """It could not be found out."""
    return Check(name, "unknown", text, advice)
