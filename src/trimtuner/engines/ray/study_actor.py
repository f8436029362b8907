"""The Ray actor of a study, which outlives drivers: it hands attempts to Ray and holds what they told.

One for each study, detached and named, on the head of the cluster: what would take it down takes the cluster down.
Ray never tries again by itself: neither the actor nor its tasks are restarted.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import ray
from ray.exceptions import OutOfMemoryError, RayError, RayTaskError, RuntimeEnvSetupError
from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from trimtuner.engines.protocol import LOST, OUT_OF_MEMORY, PREEMPTED, STOPPED, UNAVAILABLE
from trimtuner.engines.ray import node
from trimtuner.engines.ray.held_attempt import HeldAttempt
from trimtuner.engines.ray.orders import (
    ACCEPTED,
    LACKS_PARCEL,
    LEAVING,
    AttemptOrder,
    Handle,
    Key,
    Position,
    Told,
    Work,
)
from trimtuner.engines.ray.own import end_soon
from trimtuner.engines.ray.scheduling import (
    Node,
    apart,
    error_of,
    is_reachable,
    living_nodes,
    reserve,
    submit,
    what_is_lacking,
)
from trimtuner.engines.supervising.files import EndRecord, LaunchRecord
from trimtuner.engines.supervising.mirror import News
from trimtuner.engines.supervising.nodes import Meeting, addresses

IDLE_SECONDS = 20.0  # with nothing to hold, it leaves after so long
_LOOK_SECONDS = 0.5
_FOLLOW_UP_SECONDS = 30.0


class StudyActor:
    """What drivers and nodes ask of an actor; everything runs in one event loop, so nothing needs a lock."""

    def __init__(self, study: str, users: str | None) -> None:
        """``users``: the file that says who still needs a cluster that we started; None for somebody else's."""
        self._study, self._users = study, users
        self._held: dict[Key, HeldAttempt] = {}
        self._parcels: dict[str, ray.ObjectRef[bytes]] = {}
        self._seeing: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        self._idle_since = time.monotonic()
        self._watching: asyncio.Task[None] | None = None
        if users is not None:
            fcntl.flock(os.open(users, os.O_RDWR), fcntl.LOCK_SH)  # for as long as this process lives

    async def start(self, order: AttemptOrder) -> str:
        """Accept an order, once for each attempt."""
        self._watching = self._watching or asyncio.create_task(self._watch())
        key = order["trial"], order["attempt"]
        if self._is_leaving:
            return LEAVING
        if key not in self._held:
            if order["parcel"] is not None and order["parcel"] not in self._parcels:
                return LACKS_PARCEL
            self._held[key] = HeldAttempt.of(self._study, order)
            seeing = asyncio.create_task(self._see_through(self._held[key]))
            self._seeing.add(seeing)
            seeing.add_done_callback(self._seeing.discard)
        return ACCEPTED

    async def take_parcel(self, digest: str, data: bytes) -> None:
        """Keep a working directory for the nodes."""
        self._parcels[digest] = ray.put(data)

    async def news(self, wanted: Sequence[tuple[Key, Position]]) -> list[Told | None]:
        """What is new of each; None where it is not known here."""
        held = [(self._held.get((key[0], key[1])), Position(*position)) for key, position in wanted]
        return [None if one is None else one.told(position) for one, position in held]

    async def stop(self, key: Key) -> None:
        """Have it ended; when it is, the news say so."""
        held = self._held.get(key)
        if held is not None and held.end is None:
            held.ask_to_stop()
            if held.is_waiting:
                _cancel(held)

    async def known(self) -> list[tuple[Key, bool]]:
        """What is held, and whether it is under way."""
        return [(key, held.end is None) for key, held in self._held.items()]

    async def forget(self, key: Key) -> None:
        """Drop an attempt that has ended: its end is in the record."""
        held = self._held.get(key)
        if held is not None and held.end is not None:
            del self._held[key]
            self._idle_since = time.monotonic()

    async def leave(self) -> None:
        """End this actor, if it holds nothing."""
        if not self._held and not self._seeing:
            self._is_leaving = True
            if self._users is not None:
                end_soon(Path(self._users))
            ray.kill(_myself())  # to exit would wait for calls that never end

    async def begin(self, key: Key, rank: int, node_id: str) -> Work | None:
        """What a node needs to run its part of the attempt; None when it is no longer wanted."""
        held = self._held.get(key)
        if held is None or not held.may_begin(rank):
            return None
        held.began, held.nodes = held.began or time.monotonic(), held.nodes or (node_id,)
        held.begun.add(rank)
        order, digest = held.order, held.order["parcel"]
        address_of = {one.identity: one.address for one in await apart(living_nodes)}
        there = [address_of.get(identity, "") for identity in held.nodes]
        meeting = Meeting(tuple(there[: order["workers"]]), tuple(there[order["workers"] :]), order["port"])
        added = {**order["added"], **addresses(meeting.workers, meeting.helpers)}
        if len(held.begun) == order["ranks"]:
            order["added"] = {}  # secrets are not kept longer than they are needed
        record = LaunchRecord(**order["record"])
        record["nodes"] = record["nodes"] or [meeting.node(rank)]
        return Work(
            record=record,
            added=added,
            place=held.place_of(rank),
            digest=digest or "",
            key=held.key_of(rank),
            parcel=[] if digest is None else [self._parcels[digest]],
        )

    async def tell(self, key: Key, rank: int, told: tuple[int, bytes, int, bytes, EndRecord | None]) -> None:
        """Keep what a node tells."""
        held, news = self._held.get(key), News(*told)
        if held is None:
            return
        if rank == 0:
            held.take(news)
        else:
            held.take_log(rank, news)
        if news.end is not None:
            if news.end["kind"] is not None and len(held.nodes) > 1:
                await self._blame_lost_nodes(held)  # a worker that was taken away may look like a fault of the command
            held.note_end(rank, news.end["kind"], news.end["detail"], news.end["seconds"])

    async def stop_asked(self, key: Key) -> bool:
        """Whether it is to be ended: the answer waits until that is known."""
        held = self._held.get(key)
        if held is None:
            return True
        await held.changed.wait()
        return held.end is None

    async def _see_through(self, held: HeldAttempt) -> None:
        """Reserve, run, and conclude how it ended, whatever happens."""
        group: PlacementGroup | None = None
        try:
            group = await reserve(held.order["demands"])
            await self._run(held, group)
            if held.end is None:
                held.finish(*_end_before_begin(held, None), held.ran)
        except Exception as error:  # a fault of ours or of Ray's must not leave the attempt without an end
            logging.getLogger(__name__).exception("attempt %s of study %s", held.key, self._study)
            held.finish(LOST, f"it could not be seen through: {_said(error)}", held.ran)
        finally:
            if group is not None:
                await apart(lambda: remove_placement_group(group))

    async def _run(self, held: HeldAttempt, group: PlacementGroup | None) -> None:
        """The command on its head, or on each of its machines, until it has ended on all of them."""
        if held.is_asked_to_stop:
            return
        if group is not None:
            held.nodes = await self._nodes_when_ready(held, group)
            if not held.nodes:
                return
        await asyncio.gather(*(self._run_node(held, rank, group) for rank in range(held.order["ranks"])))

    async def _run_node(self, held: HeldAttempt, rank: int, group: PlacementGroup | None) -> None:
        strategy = None
        if group is not None:
            strategy = PlacementGroupSchedulingStrategy(group, rank, placement_group_capture_child_tasks=False)
        task = submit(node.run, held.order["demands"][rank], strategy, _myself(), held.key, rank)
        held.tasks.append(task)
        error = await error_of(task)
        if held.end is None and rank not in held.ended:
            await self._conclude(held, rank, error)

    async def _nodes_when_ready(self, held: HeldAttempt, group: PlacementGroup) -> tuple[str, ...]:
        """The nodes of the group; none if the attempt is given up before it is ready."""
        while held.end is None and not held.is_asked_to_stop and held.reason is None:
            table = await apart(lambda: placement_group_table(group))
            if table["state"] == "CREATED":
                bundles: dict[int, str] = table["bundles_to_node_id"]
                return tuple(bundles[position] for position in sorted(bundles))
            await asyncio.sleep(_LOOK_SECONDS / 5)
        return ()

    async def _conclude(self, held: HeldAttempt, rank: int, error: Exception | None) -> None:
        if rank not in held.begun:
            held.note_end(rank, *_end_before_begin(held, error), 0.0 if held.began is None else held.ran)
            return
        if isinstance(error, OutOfMemoryError):
            held.reason = OUT_OF_MEMORY, f"Ray ended it, its node being short of memory: {_said(error)}"
        elif isinstance(error, RayTaskError):
            held.reason = LOST, f"what runs it on the node failed: {_said(error)}"
        if await self._is_alive(held.nodes[rank]):
            await self._follow_up(held, rank, error)
        if rank not in held.ended:
            held.reason = None
            held.note_end(rank, PREEMPTED, f"its node was lost: {_said(error)}", held.ran)

    async def _follow_up(self, held: HeldAttempt, rank: int, error: Exception | None) -> None:
        """The task died but its node lives: the supervisor ends the command, and another task tells how."""
        held.reason = held.reason or (LOST, f"the Ray worker that ran it died: {_said(error)}")
        strategy = NodeAffinitySchedulingStrategy(held.nodes[rank], soft=False)
        place, key = held.place_of(rank), held.key_of(rank)
        task = submit(node.follow_up, {}, strategy, _myself(), held.key, rank, place, key)
        deadline = time.monotonic() + _FOLLOW_UP_SECONDS
        following = asyncio.ensure_future(error_of(task))
        while not following.done() and time.monotonic() < deadline:
            await asyncio.wait([following], timeout=2 * _LOOK_SECONDS)
            if not following.done() and not await self._is_alive(held.nodes[rank]):
                return

    async def _is_alive(self, node_id: str) -> bool:
        """Whether the node is there. The table of nodes learns of a loss only after many seconds, so we knock."""
        found = next((one for one in await apart(living_nodes) if one.identity == node_id), None)
        return found is not None and await is_reachable(found)

    async def _blame_lost_nodes(self, held: HeldAttempt) -> None:
        for node_id in held.nodes:
            if held.reason is None and not await self._is_alive(node_id):
                held.reason = PREEMPTED, f"the node {node_id[:12]} of its machines was lost"

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look()
            except (RayError, OSError, RuntimeError, ValueError):  # Ray out of reach for a moment: look again
                logging.getLogger(__name__).exception("actor of study %s", self._study)

    async def _look(self) -> None:
        """Give up what cannot be placed, end what lost one of its machines, leave when there is nothing to do."""
        waiting = [held for held in self._held.values() if held.is_waiting and held.reason is None]
        spread = [held for held in self._held.values() if held.end is None and held.began and len(held.nodes) > 1]
        if waiting:
            nodes = await apart(living_nodes)
            for held in waiting:
                self._give_up_if_lacking(held, nodes)
        for held in spread:
            await self._blame_lost_nodes(held)
            if held.reason is not None:
                held.changed.set()
        if not self._held and not self._seeing and time.monotonic() - self._idle_since > IDLE_SECONDS:
            await self.leave()

    def _give_up_if_lacking(self, held: HeldAttempt, nodes: Sequence[Node]) -> None:
        lacking = what_is_lacking(held.order["demands"], nodes)
        if lacking is None:
            held.lacking_since = None
            return
        held.lacking_since = held.lacking_since or time.monotonic()
        if time.monotonic() - held.lacking_since >= held.order["wait"]:
            held.reason = UNAVAILABLE, lacking
            _cancel(held)


def _cancel(held: HeldAttempt) -> None:
    """What was handed to Ray and has not begun."""
    for task in held.tasks:
        ray.cancel(task)


def _myself() -> Handle:
    return cast("Handle", ray.get_runtime_context().current_actor)


def _end_before_begin(held: HeldAttempt, error: Exception | None) -> tuple[str, str]:
    if held.is_asked_to_stop:
        return STOPPED, "ended on request before it began"
    if isinstance(error, (RayTaskError, RuntimeEnvSetupError)):
        return UNAVAILABLE, f"its node cannot run it; is trimtuner installed there? {_said(error)}"
    return PREEMPTED, f"it could not begin on its node: {_said(error)}"


def _said(error: Exception | None) -> str:
    """The heart of what Ray says, on one line."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    text = " ".join(str(cause).split()) or type(cause).__name__
    return text[:300]
