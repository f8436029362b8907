"""What a record tells about a study: plain values. Times are seconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Trial
from trimtuner.records.codec import Json
from trimtuner.records.money import money_left, to_usd

EntryKind: TypeAlias = Literal["charge", "release", "reserve"]

# What the record itself logs; others may log in their own words.
CREATED = "created"
LEARNS = "learns from"  # once for each earlier study, with all that was taken over from it
ASKED = "asked"
STARTED = "started"
WAITING = "waiting"  # of an attempt that was handed in and has not begun: STARTED is logged again when it has
RETRIED = "retried"
REPEATED = "repeated"  # how an attempt ended that measured, at a trial that is the mean of several
NOTED = "noted"  # of a trial: what a person should know of it, besides how it ended
FINISHED = "finished"
FAILED = "failed"
ADOPTED = "adopted"
IMPORTED = "imported"
ENQUEUED = "enqueued"  # a configuration and a fraction that a user wants next
FORGOTTEN = "forgotten"  # of a failed trial: from then on it only cost its money
BUDGET_CHANGED = "budget changed"
GROWN = "grown"  # the space, with what was added; what was measured before is said in its words
RESTATED = "restated"  # the definition: the same study, in the words of this version
STOP_REQUESTED = "stop requested"
OVER = "over"  # for a run, which says why it asks for nothing more


@dataclass(frozen=True)
class Owner:
    """The process that watches trials, with what it takes to know whether it still runs."""

    id: str
    host: str
    pid: int
    pid_started: str  # numbers of processes come again, with another start
    heartbeat_at: float | None = None  # None: not registered yet
    silent_seconds: float | None = None  # since then, by the clock that the heartbeat is of


@dataclass(frozen=True)
class TimeCap:
    """How long machines may be at work for a study in all: a trial is charged for each of its machines."""

    seconds: float
    worst_seconds: float  # of a trial, which is reserved on each of its machines while it is under way
    machines_in: Callable[[Mapping[str, Value]], int]  # of a configuration


@dataclass(frozen=True)
class OpenTrial:
    """A trial under way: its last attempt, what that may cost at worst, and who watches it."""

    trial: Trial
    attempt: int
    handle: str | None  # None: not known to have started
    reserve: float
    owner: str
    asked_at: float
    started_at: float | None


@dataclass(frozen=True)
class Attempt:
    """One run of a trial, from when it was asked to its end."""

    trial: int
    attempt: int
    asked_at: float
    started_at: float | None
    ended_at: float | None
    failed: str | None
    reserve: float  # USD
    charge: float | None  # USD; None: under way


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    sequence: int  # entries of one change share it, and belong together
    at: float
    trial: int
    attempt: int
    kind: EntryKind
    nanos: int  # billionths of a dollar: these add up exactly

    @property
    def usd(self) -> float:
        """The amount in USD, the float nearest to it."""
        return to_usd(self.nanos)


@dataclass(frozen=True)
class Event:
    """Something that happened to the study."""

    sequence: int
    at: float
    kind: str
    trial: int | None
    detail: Mapping[str, Json]


@dataclass(frozen=True)
class Status:
    """Where the study stands, all of one instant."""

    version: int
    changed_at: float
    budget: float | None
    spent: float
    reserved: float
    open: int
    succeeded: int
    failed: int
    forgotten: int = 0  # failed ones that are taken back; not among the failed

    @property
    def left(self) -> float | None:
        """What may still be spent or reserved, in USD; None where there is no budget."""
        return money_left(self.budget, self.spent, self.reserved)
