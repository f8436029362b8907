"""What every engine does: start a trial's command where it can be found again, tell how it goes, end it for sure.

Engines know commands, machines and clocks. They know nothing of goals or money, and never try again by themselves:
a silent retry is unaccounted money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trimtuner.errors import TrimTunerError

# Kinds of failure that an engine tells apart. What the metrics are worth is not its business.
EXIT = "exit"  # the command ended with a code other than 0
SIGNAL = "signal"  # something killed it
OUT_OF_MEMORY = "oom"
TIMEOUT = "timeout"
LOST = "lost"  # it vanished, and nobody saw its end
STOPPED = "stopped"  # we ended it

ENDED_WITHIN_SECONDS = 7.0  # of its limit, an attempt that ran into it is ended for sure: asked to, then killed


class EngineTrouble(TrimTunerError, RuntimeError):  # noqa: N818  (named by what the caller learns)
    """The engine could not do as asked, and neither input nor job is to blame; put it right and ask again."""


@dataclass(frozen=True)
class Launch:
    """One attempt at a trial, ready to start. Study, trial and attempt are the tags that it is found again by."""

    study: str  # an identifier that is safe in file names
    trial: int
    attempt: int
    command: tuple[str, ...]
    folder: Path  # of the study; what the engine writes is below it
    working_directory: Path
    environment: Mapping[str, str]  # set for the command
    secrets: tuple[str, ...]  # names of variables that are handed on from our environment, and written nowhere
    limit: float  # seconds after which it is ended, whether or not anybody still watches: the dead-man limit
    vcpus: int | None = None
    memory_bytes: int | None = None
    metrics_file: str | None = None  # JSON lines, in the working directory; None: ``::metric`` lines of the output


@dataclass(frozen=True)
class Report:
    """One line of metrics, as the job gave it: checked for being a flat JSON object of numbers, no more."""

    metrics: Mapping[str, float]
    seconds: float  # after the start, when it came


@dataclass(frozen=True)
class End:
    """How an attempt ended."""

    kind: str | None  # of failure; None: the command ended well
    detail: str  # for a person: the exit code, the signal, the limit that was passed
    seconds: float  # from start to confirmed end: what is charged


@dataclass(frozen=True)
class State:
    """How an attempt goes."""

    reports: tuple[Report, ...]
    bad_lines: tuple[str, ...]  # what looked like a metric and was none, shortened
    end: End | None  # None: still under way


@dataclass(frozen=True)
class Found:
    """Something of ours that runs, or has run and is not yet cleared away."""

    study: str
    trial: int
    attempt: int
    handle: str
    is_running: bool


class Engine(Protocol):
    """A place where commands run."""

    def start(self, launch: Launch) -> str:
        """Start the attempt, unless it was started already; the handle by which it is found again."""

    def poll(self, handle: str) -> State:
        """How it goes; never waits."""

    def stop(self, handle: str) -> None:
        """End it with everything it started, and return when that is confirmed."""

    def find(self, study: str | None = None) -> list[Found]:
        """What carries our tags, of one study or of all."""
