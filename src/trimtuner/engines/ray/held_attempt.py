"""What an actor knows of one attempt."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import ray

from trimtuner.engines.protocol import LOST, STOPPED
from trimtuner.engines.ray.node import node_place, place_of
from trimtuner.engines.ray.orders import AttemptOrder, Key, Position, Told
from trimtuner.engines.supervising.files import EndRecord, Folder
from trimtuner.engines.supervising.mirror import News

_MOST_NODE_LOG_BYTES = 256 * 1024


@dataclass
class HeldAttempt:
    """One attempt, from its order until it is forgotten."""

    order: AttemptOrder
    place: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # it was asked to stop, or is over
    is_asked_to_stop: bool = False
    tasks: list[ray.ObjectRef[None]] = field(default_factory=list)  # that were handed to Ray, one for each rank
    begun: set[int] = field(default_factory=set)  # ranks
    ended: set[int] = field(default_factory=set)
    decided: tuple[str | None, str] | None = None  # how it ends, while other nodes are still being ended
    began: float | None = None  # by our clock
    nodes: tuple[str, ...] = ()  # identities; the head first
    lacking_since: float | None = None  # no node offers what it needs
    reason: tuple[str, str] | None = None  # kind and detail of an end that is not the command's own doing
    end: EndRecord | None = None
    reports: bytearray = field(default_factory=bytearray)
    log: bytearray = field(default_factory=bytearray)
    generation: int = 0
    node_logs: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, study: str, order: AttemptOrder) -> HeldAttempt:
        """Of a new order; its folder gets a name that no earlier attempt can have left behind."""
        return cls(order, f"{place_of(study, (order['trial'], order['attempt']))}-{os.urandom(6).hex()}")

    @property
    def key(self) -> Key:
        """Its trial and attempt, which it is known by."""
        return self.order["trial"], self.order["attempt"]

    def place_of(self, rank: int) -> str:
        """The name of the folder of a node, where it runs."""
        return node_place(self.place, rank)

    def key_of(self, rank: int) -> bytes:
        """With which the supervisor of that node seals what it tells."""
        folder = Folder(Path(self.place), self.order["key"])
        return folder.of_node(rank).key if rank else folder.key

    @property
    def is_waiting(self) -> bool:
        """Whether it has not begun."""
        return self.began is None and self.end is None

    def may_begin(self, rank: int) -> bool:
        """Whether that node is still wanted, and has not begun."""
        is_over = self.end is not None or self.decided is not None or self.is_asked_to_stop or self.reason is not None
        return not is_over and rank not in self.begun

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

    def take_log(self, rank: int, news: News) -> None:
        """Keep what another node than the head prints: the end of it, since there may be many."""
        before = b"" if news.log_from == 0 else self.node_logs.get(rank, b"")
        self.node_logs[rank] = (before + news.log)[-_MOST_NODE_LOG_BYTES:]

    def note_end(self, rank: int, kind: str | None, detail: str, seconds: float) -> None:
        """Of one node: the head's end is the attempt's, and so is a failure of any; all must have ended for it."""
        self.ended.add(rank)
        if self.decided is None and (rank == 0 or kind is not None):
            self.decided = kind, detail if rank == 0 or kind == STOPPED else f"node {rank}: {detail}"
            self.changed.set()
        if self.decided is not None and len(self.ended) == self.order["ranks"]:
            self.finish(*self.decided, seconds if self.order["ranks"] == 1 else max(seconds, self.ran))

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
            node_logs={} if self.end is None else dict(self.node_logs),
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
