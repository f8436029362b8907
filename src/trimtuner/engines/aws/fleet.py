"""The machines of one attempt that are there: seen, followed, and cleared away for sure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.background import in_thread
from trimtuner.engines.aws.ec2 import Ec2, Instance
from trimtuner.engines.aws.losses import Over, why_gone
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.refusals import Credentials, Passing
from trimtuner.engines.aws.watch import Watch
from trimtuner.engines.protocol import EngineTrouble


class Fleet:
    """What carries the tags of the attempt, whoever rented it."""

    def __init__(self, name: AttemptName, ec2: Ec2, watch: Watch, pace: Pace, billed_at_least: float) -> None:
        self.name, self.ec2, self._watch, self._pace = name, ec2, watch, pace
        self._billed_at_least = billed_at_least
        self._known: dict[str, tuple[Instance, float]] = {}  # each as it was last seen, and when
        self._ends: dict[str, float] = {}  # when each was first known to be ended or ending, by AWS's clock

    def rented(self, machines: Iterable[Instance]) -> None:
        """Machines that EC2 may show only after a while."""
        for one in machines:
            self._known.setdefault(one.id, (one, time.monotonic()))

    async def seen(self) -> list[Instance]:
        """All of them, the oldest first, in whatever state. One that EC2 does not show for a moment is not yet gone."""
        shown = await self._watch.instances(self.name)
        now = time.monotonic()
        self._known |= {one.id: (one, now) for one in shown}
        return self._lately_seen()

    def _lately_seen(self) -> list[Instance]:
        now = time.monotonic()
        lately = [one for one, since in self._known.values() if now - since < self._pace.appear]
        return sorted(lately, key=lambda one: (one.launched, one.index, one.id))

    async def check(self, machines: Sequence[Instance], lifetime: float) -> None:
        """Nothing, as long as all of the machines are there; else why the attempt is over."""
        ids = {one.id for one in machines}
        seen = [one for one in await self.seen() if one.id in ids]
        if len(seen) < len(ids) or not all(one.is_alive for one in seen):
            raise await self.loss_of(seen, lifetime)

    async def loss_of(self, machines: Sequence[Instance], lifetime: float) -> Over:
        """Why the attempt is over, some of its machines being gone."""
        statuses = await self._spot_ends([one for one in machines if not one.is_alive])
        codes = {request: code for request, (code, _) in statuses.items()}
        for one in machines:
            if one.spot_request in statuses and not one.is_alive:
                self._ends[one.id] = statuses[one.spot_request][1]
        return why_gone(machines, codes, self.ec2.clock.now(), lifetime)

    async def _spot_ends(self, gone: Sequence[Instance]) -> dict[str, tuple[str, float]]:
        requests = [one.spot_request for one in gone if one.spot_request is not None]
        if not requests:
            return {}
        try:
            return await in_thread(self.ec2.spot_ends, requests)
        except (Passing, Credentials):
            raise
        except EngineTrouble:  # it may not be asked; what the machines themselves say must do
            return {}

    async def mark_stopped(self) -> None:
        """Leave word on the machines, for a driver elsewhere, that they were ended on request."""
        machines = self._lately_seen() or await self.seen()
        ids = [one.id for one in machines if one.is_alive and naming.STOP not in one.tags]
        if ids:
            await in_thread(self.ec2.tag, ids, {naming.STOP: "yes"})

    async def terminate_known(self) -> None:
        """Ask to terminate what was last seen alive: until the next look, every second costs."""
        ids = [one.id for one in self._lately_seen() if one.is_alive]
        if ids:
            await self._terminate(ids)

    async def clear_away(self, is_meant: Callable[[int], bool], lifetime: float) -> float:
        """Terminate the machines of the rounds that are meant, wait until they are gone; the seconds to be charged."""
        while True:
            seen = [one for one in await self.seen() if is_meant(one.round)]
            self._note_ends(seen, lifetime)
            alive = [one.id for one in seen if one.is_alive]
            if alive:
                await self._terminate(alive)
            if all(one.is_gone for one in seen):
                rounds = {one.round for one in seen}
                return sum(self._seconds([one for one in seen if one.round == number]) for number in rounds)

    async def _terminate(self, ids: Sequence[str]) -> None:
        """Ask, and ask again at the next look if it does not take."""
        states = await in_thread(self.ec2.terminate, ids)
        for name, state in states.items():
            if state in ("shutting-down", "terminated"):
                self._ends.setdefault(name, self.ec2.clock.now())

    def _note_ends(self, machines: Iterable[Instance], lifetime: float) -> None:
        now = self.ec2.clock.now()
        for one in machines:
            if one.is_alive:
                self._ends.pop(one.id, None)  # it was said to end, and did not
                continue
            told = math.inf if one.ended is None else one.ended + 1.0  # told in whole seconds
            self._ends[one.id] = min(self._ends.get(one.id, math.inf), told, now, one.launched + lifetime)

    def _seconds(self, machines: Sequence[Instance]) -> float:
        """From the first launch to when the last machine was on its way out, which is when AWS stops to charge."""
        end = max(self._ends[one.id] for one in machines)
        return self.charged(end - min(one.launched for one in machines))

    def charged(self, seconds: float) -> float:
        """What AWS charges for so many."""
        return max(seconds, self._billed_at_least, 0.0)
