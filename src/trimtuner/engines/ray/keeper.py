"""The keeper of a study: an actor that outlives drivers, hands attempts to Ray and holds what they told.

One for each study, detached and named, on the head of the cluster: what would take it down takes the cluster down.
Ray never tries again by itself: neither the keeper nor its tasks are restarted.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

import ray
from ray.exceptions import OutOfMemoryError, RayError, RayTaskError, RuntimeEnvSetupError
from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from trimtuner.engines.minding.files import EndRecord
from trimtuner.engines.minding.follow import News
from trimtuner.engines.protocol import LOST, OUT_OF_MEMORY, PREEMPTED, STOPPED, UNAVAILABLE
from trimtuner.engines.ray import node
from trimtuner.engines.ray.handing import apart, error_of, reserve, submit
from trimtuner.engines.ray.kept import Kept
from trimtuner.engines.ray.machines import Node, is_reachable, living_nodes, what_is_lacking
from trimtuner.engines.ray.orders import ACCEPTED, LACKS_PARCEL, LEAVING, Key, Order, Position, Told, Work
from trimtuner.engines.ray.own import end_soon

IDLE_SECONDS = 20.0  # with nothing to hold, it leaves after so long
_LOOK_SECONDS = 0.5
_FOLLOW_UP_SECONDS = 30.0


class Keeper:
    """What drivers and nodes ask of a keeper; everything runs in one event loop, so nothing needs a lock."""

    def __init__(self, study: str, users: str | None) -> None:
        """``users``: the file that says who still needs a cluster that we started; None for somebody else's."""
        self._study, self._users = study, users
        self._kept: dict[Key, Kept] = {}
        self._parcels: dict[str, ray.ObjectRef[bytes]] = {}
        self._seeing: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        self._idle_since = time.monotonic()
        self._watching: asyncio.Task[None] | None = None
        if users is not None:
            fcntl.flock(os.open(users, os.O_RDWR), fcntl.LOCK_SH)  # for as long as this process lives

    async def start(self, order: Order) -> str:
        """Accept an order, once for each attempt."""
        self._watching = self._watching or asyncio.create_task(self._watch())
        key = order["trial"], order["attempt"]
        if self._is_leaving:
            return LEAVING
        if key not in self._kept:
            if order["parcel"] is not None and order["parcel"] not in self._parcels:
                return LACKS_PARCEL
            self._kept[key] = Kept.of(self._study, order)
            seeing = asyncio.create_task(self._see_through(self._kept[key]))
            self._seeing.add(seeing)
            seeing.add_done_callback(self._seeing.discard)
        return ACCEPTED

    async def take_parcel(self, digest: str, data: bytes) -> None:
        """Keep a working directory for the nodes."""
        self._parcels[digest] = ray.put(data)

    async def news(self, wanted: Sequence[tuple[Key, Position]]) -> list[Told | None]:
        """What is new of each; None where it is not known here."""
        kept = [(self._kept.get((key[0], key[1])), Position(*position)) for key, position in wanted]
        return [None if one is None else one.told(position) for one, position in kept]

    async def stop(self, key: Key) -> None:
        """Have it ended; when it is, the news say so."""
        kept = self._kept.get(key)
        if kept is not None and kept.end is None:
            kept.ask_to_stop()
            if kept.is_waiting and kept.task is not None:
                ray.cancel(kept.task)

    async def known(self) -> list[tuple[Key, bool]]:
        """What is held, and whether it is under way."""
        return [(key, kept.end is None) for key, kept in self._kept.items()]

    async def forget(self, key: Key) -> None:
        """Drop what has ended."""
        kept = self._kept.get(key)
        if kept is not None and kept.end is not None:
            del self._kept[key]
            self._idle_since = time.monotonic()

    async def leave(self) -> None:
        """End this actor, if it holds nothing."""
        if not self._kept and not self._seeing:
            self._is_leaving = True
            if self._users is not None:
                end_soon(Path(self._users))
            ray.kill(ray.get_runtime_context().current_actor)  # to exit would wait for calls that never end

    async def begin(self, key: Key, node_id: str) -> Work | None:
        """What a node needs to run the attempt; None when it is no longer wanted."""
        kept = self._kept.get(key)
        if kept is None or not kept.is_waiting or kept.is_asked_to_stop or kept.reason is not None:
            return None
        kept.began, kept.nodes = time.monotonic(), kept.nodes or (node_id,)
        order, digest = kept.order, kept.order["parcel"]
        added = {**order["added"], **_addresses(await apart(living_nodes), kept)}
        order["added"] = {}  # secrets are not kept longer than they are needed
        parcel = [] if digest is None else [self._parcels[digest]]
        return Work(
            record=order["record"],
            added=added,
            place=kept.place,
            digest=digest or "",
            key=order["key"],
            parcel=parcel,
        )

    async def tell(self, key: Key, told: tuple[int, bytes, int, bytes, EndRecord | None]) -> None:
        """Keep what a node tells."""
        kept, news = self._kept.get(key), News(*told)
        if kept is None:
            return
        kept.take(news)
        if news.end is not None:
            if news.end["kind"] is not None and len(kept.nodes) > 1:
                await self._blame_lost_nodes(kept)  # a worker that was taken away may look like a fault of the command
            kept.finish(news.end["kind"], news.end["detail"], news.end["seconds"])

    async def stop_asked(self, key: Key) -> bool:
        """Whether it is to be ended: the answer waits until that is known."""
        kept = self._kept.get(key)
        if kept is None:
            return True
        await kept.changed.wait()
        return kept.end is None

    async def _see_through(self, kept: Kept) -> None:
        """Reserve, run, and conclude how it ended, whatever happens."""
        group: PlacementGroup | None = None
        try:
            group = await reserve(kept.order["demands"])
            error = await self._run(kept, group)
            if kept.end is None:
                await self._conclude(kept, error)
        except Exception as error:  # a fault of ours or of Ray's must not leave the attempt without an end
            logging.getLogger(__name__).exception("attempt %s of study %s", kept.key, self._study)
            kept.finish(LOST, f"it could not be seen through: {_said(error)}", kept.ran)
        finally:
            if group is not None:
                await apart(lambda: remove_placement_group(group))

    async def _run(self, kept: Kept, group: PlacementGroup | None) -> Exception | None:
        if kept.is_asked_to_stop:
            return None
        if group is not None:
            strategy = PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=False)
            kept.nodes = await self._nodes_when_ready(kept, group)
            if not kept.nodes:
                return None
        else:
            strategy = None
        kept.task = submit(node.run, kept.order["demands"][0], strategy, kept.key)
        return await error_of(kept.task)

    async def _nodes_when_ready(self, kept: Kept, group: PlacementGroup) -> tuple[str, ...]:
        """The nodes of the group; none if the attempt is given up before it is ready."""
        while kept.end is None and not kept.is_asked_to_stop and kept.reason is None:
            table = await apart(lambda: placement_group_table(group))
            if table["state"] == "CREATED":
                bundles: dict[int, str] = table["bundles_to_node_id"]
                return tuple(bundles[position] for position in sorted(bundles))
            await asyncio.sleep(_LOOK_SECONDS / 5)
        return ()

    async def _conclude(self, kept: Kept, error: Exception | None) -> None:
        if kept.began is None:
            kept.finish(*_end_before_begin(kept, error), 0.0)
            return
        if isinstance(error, OutOfMemoryError):
            kept.reason = OUT_OF_MEMORY, f"Ray ended it, its node being short of memory: {_said(error)}"
        elif isinstance(error, RayTaskError):
            kept.reason = LOST, f"what runs it on the node failed: {_said(error)}"
        if await self._is_alive(kept.nodes[0]):
            await self._follow_up(kept, error)
        if kept.end is None:
            kept.reason = None
            kept.finish(PREEMPTED, f"its node was lost: {_said(error)}", kept.ran)

    async def _follow_up(self, kept: Kept, error: Exception | None) -> None:
        """The task died but its node lives: the minder ends the command, and another task tells how."""
        kept.reason = kept.reason or (LOST, f"the Ray worker that ran it died: {_said(error)}")
        strategy = NodeAffinitySchedulingStrategy(kept.nodes[0], soft=False)
        task = submit(node.follow_up, {}, strategy, kept.key, kept.place, kept.order["key"])
        deadline = time.monotonic() + _FOLLOW_UP_SECONDS
        following = asyncio.ensure_future(error_of(task))
        while not following.done() and time.monotonic() < deadline:
            await asyncio.wait([following], timeout=2 * _LOOK_SECONDS)
            if not following.done() and not await self._is_alive(kept.nodes[0]):
                return

    async def _is_alive(self, node_id: str) -> bool:
        """Whether the node is there. The table of nodes learns of a loss only after many seconds, so we knock."""
        found = next((one for one in await apart(living_nodes) if one.identity == node_id), None)
        return found is not None and await is_reachable(found)

    async def _blame_lost_nodes(self, kept: Kept) -> None:
        for node_id in kept.nodes:
            if kept.reason is None and not await self._is_alive(node_id):
                kept.reason = PREEMPTED, f"the node {node_id[:12]} of its machines was lost"

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look()
            except (RayError, OSError, RuntimeError, ValueError):  # Ray out of reach for a moment: look again
                logging.getLogger(__name__).exception("keeper of study %s", self._study)

    async def _look(self) -> None:
        """Give up what cannot be placed, end what lost one of its machines, leave when there is nothing to do."""
        waiting = [kept for kept in self._kept.values() if kept.is_waiting and kept.reason is None]
        spread = [kept for kept in self._kept.values() if kept.end is None and kept.began and len(kept.nodes) > 1]
        if waiting:
            nodes = await apart(living_nodes)
            for kept in waiting:
                self._give_up_if_lacking(kept, nodes)
        for kept in spread:
            await self._blame_lost_nodes(kept)
            if kept.reason is not None:
                kept.changed.set()
        if not self._kept and not self._seeing and time.monotonic() - self._idle_since > IDLE_SECONDS:
            await self.leave()

    def _give_up_if_lacking(self, kept: Kept, nodes: Sequence[Node]) -> None:
        lacking = what_is_lacking(kept.order["demands"], nodes)
        if lacking is None:
            kept.lacking_since = None
            return
        kept.lacking_since = kept.lacking_since or time.monotonic()
        if time.monotonic() - kept.lacking_since >= kept.order["wait"]:
            kept.reason = UNAVAILABLE, lacking
            if kept.task is not None:
                ray.cancel(kept.task)


def _addresses(nodes: Sequence[Node], kept: Kept) -> dict[str, str]:
    """Where the attempt's machines are, for its command."""
    address_of = {one.identity: one.address for one in nodes}
    addresses = [address_of.get(identity, "") for identity in kept.nodes]
    workers = kept.order["workers"]
    return {
        "TRIMTUNER_HEAD": addresses[0],
        "TRIMTUNER_WORKERS": ",".join(addresses[:workers]),
        "TRIMTUNER_HELPERS": ",".join(addresses[workers:]),
    }


def _end_before_begin(kept: Kept, error: Exception | None) -> tuple[str, str]:
    if kept.is_asked_to_stop:
        return STOPPED, "ended on request before it began"
    if isinstance(error, (RayTaskError, RuntimeEnvSetupError)):
        return UNAVAILABLE, f"its node cannot run it; is trimtuner installed there? {_said(error)}"
    return PREEMPTED, f"it could not begin on its node: {_said(error)}"


def _said(error: Exception | None) -> str:
    """The heart of what Ray says, on one line."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    text = " ".join(str(cause).split()) or type(cause).__name__
    return text[:300]
