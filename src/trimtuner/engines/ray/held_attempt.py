"""What an actor knows of one attempt."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field

import ray

from trimtuner.engines.protocol import LOST, STOPPED
from trimtuner.engines.ray.node import place_of
from trimtuner.engines.ray.orders import AttemptOrder, Key, Position, Told
from trimtuner.engines.supervising.files import EndRecord
from trimtuner.engines.supervising.mirror import News


@dataclass
class HeldAttempt:
    """One attempt, from its order until it is forgotten."""

    order: AttemptOrder
    place: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # it was asked to stop, or is over
    is_asked_to_stop: bool = False
    task: ray.ObjectRef[None] | None = None  # once it is handed to Ray
    began: float | None = None  # by our clock
    nodes: tuple[str, ...] = ()  # identities; the head first
    lacking_since: float | None = None  # no node offers what it needs
    reason: tuple[str, str] | None = None  # kind and detail of an end that is not the command's own doing
    end: EndRecord | None = None
    reports: bytearray = field(default_factory=bytearray)
    log: bytearray = field(default_factory=bytearray)
    generation: int = 0

    @classmethod
    def of(cls, study: str, order: AttemptOrder) -> HeldAttempt:
        """Of a new order; its folder gets a name that no earlier attempt can have left behind."""
        return cls(order, f"{place_of(study, (order['trial'], order['attempt']))}-{os.urandom(6).hex()}")

    @property
    def key(self) -> Key:
        """Its trial and attempt, which it is known by."""
        return self.order["trial"], self.order["attempt"]

    @property
    def is_waiting(self) -> bool:
        """Whether it has not begun."""
        return self.began is None and self.end is None

    @property
    def ran(self) -> float:
        """Seconds since its command began; 0 before that."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    def take(self, news: News) -> None:
        """Keep what a node tells, except for an end."""
        if self.end is not None:
            return
        self.reports[news.reports_from :] = news.reports
        if news.log and news.log_from == 0 and self.log:
            self.generation += 1
            self.log.clear()
        self.log[news.log_from :] = news.log

    def told(self, position: Position) -> Told:
        """What is new for whoever has heard so far."""
        log_from = position.log if position.generation == self.generation else 0
        return Told(
            reports_from=position.reports,
            reports=bytes(self.reports[position.reports :]),
            generation=self.generation,
            log_from=log_from,
            log=bytes(self.log[log_from:]),
            ran=None if self.began is None else self.ran,
            end=self.end,
        )

    def ask_to_stop(self) -> None:
        """Let whoever runs it know."""
        self.is_asked_to_stop = True
        self.changed.set()

    def finish(self, kind: str | None, detail: str, seconds: float) -> None:
        """Keep how it ended, once; a known reason goes before what it looked like from within."""
        if self.end is not None:
            return
        if self.reason is not None and kind is not None:
            kind, detail = self.reason
        elif self.is_asked_to_stop and kind == LOST:
            kind = STOPPED
        self.end = EndRecord(kind=kind, detail=detail, seconds=seconds)
        self.order["added"] = {}  # secrets are not kept longer than they are needed
        self.changed.set()
