"""The machines of one attempt: seen, followed, cleared away for sure; and where some are gone, why."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.background import in_thread
from trimtuner.engines.aws.ec2 import Ec2, Instance
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.refusals import Credentials, Passing
from trimtuner.engines.protocol import LOST, PREEMPTED, STOPPED, TIMEOUT, UNAVAILABLE, EngineTrouble

_TAKEN = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")
_REQUEST_TAKEN = ("instance-terminated-by-price", "instance-terminated-no-capacity", "marked-for-termination")
_BY_ITSELF = "Client.InstanceInitiatedShutdown"
_NEVER_RAN = ("Server.InsufficientInstanceCapacity", "Client.VolumeLimitExceeded", "Client.InternalError")
_MOST_VALUES = 200  # of one filter, as EC2 takes it


class UnpricedEnd(NamedTuple):
    """How an attempt ended, before the money is counted."""

    kind: str | None
    detail: str


class Over(Exception):  # noqa: N818  (an ending, not a fault)
    """The attempt is over; only its machines are to be cleared away."""

    def __init__(self, kind: str | None, detail: str) -> None:
        super().__init__(detail)
        self.end = UnpricedEnd(kind, detail)


class Watch:
    """Looks when somebody asks, but not more often than the pace: whoever asks meanwhile shares the next look."""

    def __init__(self, ec2: Ec2, pace: Pace) -> None:
        self.ec2, self._pace = ec2, pace
        self._wanted: set[AttemptName] = set()
        self._next: asyncio.Task[list[Instance]] | None = None
        self._last = 0.0

    async def instances(self, name: AttemptName) -> list[Instance]:
        """The machines of the attempt, as they are after this was asked."""
        self._wanted.add(name)
        if self._next is None:
            self._next = asyncio.create_task(self._look_in_time())
            # Whoever asked may be gone by then; a failure that nobody waits for is nobody's.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        found = await asyncio.shield(self._next)
        return [one for one in found if name.tags.items() <= one.tags.items()]

    async def _look_in_time(self) -> list[Instance]:
        await asyncio.sleep(self._last + self._pace.look - time.monotonic())
        wanted, self._wanted = self._wanted, set()
        self._next, self._last = None, time.monotonic()
        return await in_thread(self._look, sorted({one.study for one in wanted}), sorted({one.trial for one in wanted}))

    def _look(self, studies: Sequence[str], trials: Sequence[int]) -> list[Instance]:
        """By trial too: AWS goes on to show what was terminated for an hour, and a study may have had hundreds."""
        found: list[Instance] = []
        for begin in range(0, len(trials), _MOST_VALUES):
            some = [str(trial) for trial in trials[begin : begin + _MOST_VALUES]]
            found += self.ec2.instances({naming.STUDY: studies, naming.TRIAL: some})
        return found


class Fleet:
    """What carries the tags of the attempt, whoever rented it."""

    def __init__(self, name: AttemptName, watch: Watch, pace: Pace, billed_at_least: float) -> None:
        self.name, self.ec2, self._watch, self._pace = name, watch.ec2, watch, pace
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


def why_gone(machines: Sequence[Instance], spot_codes: Mapping[str, str], now: float, lifetime: float) -> Over:
    """Why the attempt cannot go on, from those of its machines that are gone."""
    gone = [one for one in machines if not one.is_alive]
    if any(naming.STOP in one.tags for one in machines):
        return Over(STOPPED, "ended on request")
    for one in gone:
        code = spot_codes.get(one.spot_request or "", "")
        if one.reason in _TAKEN or code in _REQUEST_TAKEN:
            return Over(PREEMPTED, f"the spot machine {one.id} was taken back ({one.reason or code})")
    for one in gone:
        if one.reason in _NEVER_RAN:
            return Over(UNAVAILABLE, f"the machine {one.id} never ran ({one.reason})")
        if one.reason == _BY_ITSELF and (one.ended or now) >= one.launched + lifetime - 60.0:
            return Over(TIMEOUT, f"the machine {one.id} ended itself after {lifetime:.0f} s, as it was told to")
    if not gone:
        return Over(LOST, "its machines are gone, and no longer to be seen")
    one = gone[0]
    how = "shut itself down" if one.reason == _BY_ITSELF else "was terminated, and not by us"
    return Over(LOST, f"the machine {one.id} {how} ({one.reason or 'no reason given'})")
