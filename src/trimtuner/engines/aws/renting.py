"""Renting the machines of an attempt: all of them or none, and once, however often it is begun.

What was asked is noted before EC2 is asked, and a launch that is repeated carries the same token. So a driver may die
at any instant: the next one finds by tags what was rented, and goes on from the notes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from functools import partial
from operator import eq

from trimtuner.engines.aws.background import in_thread
from trimtuner.engines.aws.ec2 import Instance
from trimtuner.engines.aws.fleet import Fleet, Over
from trimtuner.engines.aws.order import Group, RentalOrder
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.refusals import Passing, Refused
from trimtuner.engines.protocol import LOST, UNAVAILABLE, EngineTrouble
from trimtuner.engines.supervising.mirror import Mirror

ELSEWHERE = "elsewhere.json"  # another machine launched it, and this one must not
_REFUSED, _CLEARED = "refused-{}.json", "cleared-{}.json"  # of a round: AWS's words; what it cost all the same
_ASKED, _RENTED = "asked-{}-{}.json", "rented-{}-{}.json"  # of a round and a group: when; the machines


class Renting:
    """Rents what the order says."""

    def __init__(self, order: RentalOrder, fleet: Fleet, mirror: Mirror, pace: Pace) -> None:
        self._order, self._fleet, self._mirror, self._pace = order, fleet, mirror, pace
        self._launching: asyncio.Task[None] | None = None
        self._denied: set[tuple[int, str]] = set()  # launches that had no effect for sure

    async def rent(self) -> list[Instance]:
        """All the machines, the head first: those that are there, or new ones. Waits while there are none to be had."""
        if self._mirror.noted(ELSEWHERE) is not None:
            await self._note_rounds_of_elsewhere()
        await self._clear_refused_rounds()
        while True:
            number = self._refusals()
            try:
                return await self._complete(number)
            except Refused as refused:
                self._mirror.note(_REFUSED.format(number), {"detail": str(refused)})
                await self._clear_refused_rounds()
                await self._wait_or_give_up(str(refused))

    async def _note_rounds_of_elsewhere(self) -> None:
        """Go on where another machine came to: of its rounds, all but the last were refused."""
        deadline = time.monotonic() + self._pace.appear
        while not (seen := await self._fleet.seen()):
            if time.monotonic() > deadline:
                raise Over(LOST, "it was started from another machine, and no machine of it is to be seen")
        for number in range(max(one.round for one in seen)):
            self._mirror.note(_REFUSED.format(number), {"detail": "refused elsewhere"})

    async def settle(self) -> None:
        """Return when no launch of ours can still take effect without being seen."""
        if self._launching is not None:
            await asyncio.wait([self._launching])
            self._launching.exception()
        await self._wait_to_be_shown(self._asked())

    async def _wait_to_be_shown(self, groups: set[tuple[int, str]]) -> bool:
        """Whether machines of all these rounds and groups are to be seen; EC2 may need a while to show them."""
        deadline = time.monotonic() + self._pace.appear
        while not groups <= {(one.round, one.group) for one in await self._fleet.seen()}:
            if time.monotonic() > deadline:
                return False
        return True

    async def clear_away(self) -> float:
        """Terminate all machines, and return when they are gone; the seconds to be charged."""
        cleared = self._cleared_rounds()
        seconds = await self._fleet.clear_away(lambda number: number not in cleared, self._order.lifetime)
        return sum(cleared.values()) + (seconds or self._seconds_out_of_sight(cleared))

    def _seconds_out_of_sight(self, cleared: Collection[int]) -> float:
        """What to charge when EC2 has long forgotten the machines: as long as they can have run."""
        notes = [self._mirror.noted(_RENTED.format(*one)) for one in self._asked() if one[0] not in cleared]
        launched = [float(str(note["launched"])) for note in notes if note is not None]
        if not launched:
            return 0.0
        return self._fleet.charged(min(self._fleet.ec2.clock.now() - min(launched), self._order.lifetime))

    def _cleared_rounds(self) -> dict[int, float]:
        """What is charged for launches that were refused in part, and are cleared away."""
        notes = {number: self._mirror.noted(_CLEARED.format(number)) for number in range(self._refusals())}
        return {number: float(str(note["seconds"])) for number, note in notes.items() if note is not None}

    def _refusals(self) -> int:
        number = 0
        while self._mirror.noted(_REFUSED.format(number)) is not None:
            number += 1
        return number

    async def _clear_refused_rounds(self) -> None:
        for number in range(self._refusals()):
            if self._mirror.noted(_CLEARED.format(number)) is None:
                seconds = await self._fleet.clear_away(partial(eq, number), self._order.lifetime)
                self._mirror.note(_CLEARED.format(number), {"seconds": seconds})

    async def _wait_or_give_up(self, words: str) -> None:
        settings, number = self._order.settings, self._refusals()
        pause = self._pace.pause_after(number)
        first = self._mirror.noted(_ASKED.format(0, self._order.groups[0].name)) or {}
        waited = time.time() - float(str(first.get("at", time.time())))
        if waited + pause > settings.wait or sum(self._cleared_rounds().values()) > settings.ready_within:
            raise Over(UNAVAILABLE, f"no machines were to be had for {waited:.0f} s: {words}")
        await asyncio.sleep(pause)

    async def _complete(self, number: int) -> list[Instance]:
        """The machines of the round; groups that were never asked for are rented now."""
        seen = await self._seen_in(number)
        missing = [group for group in self._order.groups if group.name not in {one.group for one in seen}]
        for group in missing:
            await self._launch(group, number)
        if missing:
            seen = await self._seen_in(number)  # somebody else may have launched it at the same time
        chosen: list[Instance] = []
        for group in self._order.groups:
            chosen += await self._choose(group, [one for one in seen if one.group == group.name])
        return chosen

    async def _seen_in(self, number: int) -> list[Instance]:
        return [one for one in await self._fleet.seen() if one.round == number]

    async def _choose(self, group: Group, found: list[Instance]) -> list[Instance]:
        """The oldest so many; more than were asked for are ended."""
        alive = [one for one in found if one.is_alive]
        if len(alive) < group.count:
            raise await self._fleet.loss_of(found, self._order.lifetime)
        surplus = [one.id for one in alive[group.count :]]
        if surplus:
            await in_thread(self._fleet.ec2.terminate, surplus)
        return alive[: group.count]

    async def _launch(self, group: Group, number: int) -> None:
        """Rent a group; not broken off halfway when the attempt is stopped meanwhile."""
        if self._mirror.noted(_RENTED.format(number, group.name)) is not None:
            if await self._wait_to_be_shown({(number, group.name)}):
                return
            raise Over(LOST, "its machines are gone, and no longer to be seen")
        self._launching = asyncio.create_task(self._launch_whole(group, number))
        await asyncio.shield(self._launching)

    async def _launch_whole(self, group: Group, number: int) -> None:
        request = await in_thread(self._request, group, number)
        self._denied.discard((number, group.name))
        await in_thread(self._mirror.note, _ASKED.format(number, group.name), {"at": time.time()})
        try:
            machines = await in_thread(self._fleet.ec2.run, request)
        except Passing:
            raise  # it may have taken effect all the same
        except EngineTrouble:
            self._denied.add((number, group.name))
            raise
        self._fleet.rented(machines)
        rented = {"ids": [one.id for one in machines], "launched": min(one.launched for one in machines)}
        await in_thread(self._mirror.note, _RENTED.format(number, group.name), rented)

    def _request(self, group: Group, number: int) -> dict[str, object]:
        settings, ec2 = self._order.settings, self._fleet.ec2
        image = settings.image or ec2.newest_image(group.vm_type)
        root_device = None if settings.disk_gib is None else ec2.root_device(image)
        return self._order.request(group, number, image, root_device)

    def _asked(self) -> set[tuple[int, str]]:
        """Rounds and groups of which machines should be seen, or may come to be."""
        every = ((number, group.name) for number in range(self._refusals() + 1) for group in self._order.groups)
        return {
            (number, name)
            for number, name in every
            if self._mirror.noted(_ASKED.format(number, name)) is not None
            and self._mirror.noted(_REFUSED.format(number)) is None
            and (number, name) not in self._denied
        }
