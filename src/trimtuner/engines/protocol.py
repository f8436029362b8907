"""What every engine does: start a trial's command where it can be found again, tell how it goes, end it for sure.

A command that starts on several machines is one attempt: it ends when the process on the head ends, and fails when any
of them fails; then the others are ended. The head alone reports. ``supervising.nodes`` says what each is told.

Engines know commands, machines and clocks. They know nothing of goals or money, and never try again by themselves:
a silent retry is unaccounted money. Only the standard library here: rented machines read this file too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from trimtuner.errors import TrimTunerError

if TYPE_CHECKING:
    from trimtuner.engines.checks import Check, Workload
    from trimtuner.problem.expressions import Value

# Kinds of failure that an engine tells apart. What the metrics are worth is not its business.
EXIT = "exit"  # the command ended with a code other than 0
SIGNAL = "signal"  # something killed it
OUT_OF_MEMORY = "oom"
TIMEOUT = "timeout"
LOST = "lost"  # it vanished, and nobody saw its end
STOPPED = "stopped"  # we ended it
PREEMPTED = "preempted"  # its machines were taken away
UNAVAILABLE = "unavailable"  # no such machines were to be had, or none that became ready; the command never ran

ENDED_WITHIN_SECONDS = 7.0  # of its limit, a command that ran into it is ended for sure: asked to, then killed


# What is known only where a command starts. Each stands in its words between two NULs, which no word can hold itself.
OF_NODES = ("node_rank", "node_role", "world_size", "master_address", "master_port")
CHECKPOINT = "checkpoint"
REPEAT = "repeat"


class EngineTrouble(TrimTunerError, RuntimeError):  # noqa: N818  (named by what the caller learns)
    """The engine could not do as asked, and neither input nor job is to blame; put it right and ask again."""


@dataclass(frozen=True)
class Machines:
    """What to rent for an attempt. The first of the workers is the head: the command runs there, or on all of them."""

    vm_type: str
    count: int = 1
    market: str = "on_demand"  # or "spot"
    vcpus: int = 1  # of one of them
    memory_gib: float = 0.0
    gpus: int = 0
    helpers: tuple[str, ...] = ()  # VM types, one on-demand machine each
    price_per_hour: float | None = None  # of one worker, USD: what is reserved, so more must not be bid


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
    machines: Machines | None = None
    nodes: Literal["head", "all"] = "head"  # of the machines, on which the command starts
    repeat: int = 1  # which of the runs that the trial is the mean of
    configuration: Mapping[str, Value] = field(default_factory=dict)  # what is tested, and
    fraction: float = 1.0  # at which share of the data, reporting which smaller ones on the way: for engines that
    snapshots: tuple[float, ...] = ()  # play a job instead of running it
    may_have_run: bool = False  # a driver that is gone may have started it, and not come to write that down
    begun_below: Path | None = None  # where that driver had its folder of the study, which may be of another machine

    @property
    def node_count(self) -> int:
        """On how many machines the command starts: ranks go from the head, which is 0, over workers to helpers."""
        if self.nodes == "head" or self.machines is None:
            return 1
        return self.machines.count + len(self.machines.helpers)

    @property
    def keeps_checkpoint(self) -> bool:
        """Whether the command asks for a folder that survives: then a retry goes on where the last attempt came to."""
        return any(later(CHECKPOINT) in word for word in self.command)


def later(name: str) -> str:
    """What stands in a command for something that is known only where it starts."""
    return f"\0{name}\0"


@dataclass(frozen=True)
class Report:
    """One line of metrics, as the job gave it: checked for being a flat JSON object of numbers, no more."""

    metrics: Mapping[str, float]
    seconds: float  # after the start, when it came


@dataclass(frozen=True)
class End:
    """How an attempt ended, in a word and in words, and how long it is charged for."""

    kind: str | None  # of failure; None: the command ended well
    detail: str  # for a person: the exit code, the signal, the limit that was passed
    seconds: float  # from start to confirmed end: what is charged


@dataclass(frozen=True)
class AttemptState:
    """How an attempt goes: what it has reported so far, and its end if it has come to one."""

    reports: tuple[Report, ...]
    bad_lines: tuple[str, ...]  # what looked like a metric and was none, shortened
    end: End | None  # None: still under way
    waiting: str = ""  # for what, where it is known not to have begun: that is neither time nor cost
    notes: tuple[str, ...] = ()  # what whoever watches should know besides, in our own words


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
        """Start the attempt, unless it was started already; the handle by which it is found again.

        One that may have run, where what would tell is gone, is not started a second time: it is told as lost.
        """

    def take_over(self, launch: Launch, handle: str) -> str:
        """Look after an attempt that another driver started, maybe from another machine; the handle from here on.

        It is never started a second time: one that cannot be seen from here is told as lost.
        """

    def poll(self, handle: str) -> AttemptState:
        """How it goes; never waits."""

    def stop(self, handle: str) -> None:
        """End it with everything it started, and return when that is confirmed."""

    def find(self, study: str | None = None) -> list[Found]:
        """What carries our tags, of one study or of all."""

    def forget(self, handle: str) -> None:
        """Its end is in the record: give back what is held only to tell it. Until then, nothing is given back."""


class Settings(Protocol):
    """Which engine, and how: a class that declares the keys of a job file; nothing heavy is imported for it."""

    @property
    def ended_within_seconds(self) -> float:
        """At most so long after its limit is an attempt ended, machines and all; charged, and so reserved."""

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """The engine; what it writes down of its attempts is below the folder, in one of each study.

        The secret is the study's own, and no command's: what is written down is sealed with it.
        """

    def checks(self, work: Workload) -> Iterator[Check]:
        """What ``trimtuner doctor`` finds of whether the job can run there; nothing is spent for it."""


def reap(engine: Engine, study: str, known: Iterable[tuple[int, int]]) -> list[Found]:
    """End what runs for the study although its record does not know the (trial, attempt); what was ended."""
    spared = set(known)
    unknown = [one for one in engine.find(study) if one.is_running and (one.trial, one.attempt) not in spared]
    for one in unknown:
        engine.stop(one.handle)
    return unknown
