"""The command of an attempt on its rented machines: they are made ready, it is begun once, and followed to its end.

A lost line ends nothing: the supervisor goes on, and we call again. Only EC2 knows whether a machine is gone.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from trimtuner.engines.aws import equipping, naming
from trimtuner.engines.aws.background import all_of, first_of, in_thread
from trimtuner.engines.aws.ec2 import Instance
from trimtuner.engines.aws.equipping import Equipment
from trimtuner.engines.aws.fleet import Fleet, Over, UnpricedEnd
from trimtuner.engines.aws.machine import Line, LineLost, Login, connected
from trimtuner.engines.aws.machine_side import TOO_LARGE
from trimtuner.engines.aws.order import RentalOrder
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.protocol import LOST, UNAVAILABLE, EngineTrouble, Launch
from trimtuner.engines.supervising.environment import checkpoint_of, nodes_at, record_of, secrets_and_tags
from trimtuner.engines.supervising.mirror import Mirror, News
from trimtuner.engines.supervising.nodes import addresses
from trimtuner.engines.supervising.packing import pack
from trimtuner.engines.supervising.ports import port_of
from trimtuner.keys.quantities import memory_text

NOT_KEPT = "not-kept.json"  # what the command keeps for a retry could not be copied, with why
READY = "ready.json"  # the command has begun, so many seconds after the launch of the machines

T = TypeVar("T")
_EndAndOthers: TypeAlias = tuple[UnpricedEnd, Mapping[int, Instance]]  # these by rank


class RemoteCommand:
    """One attempt, its machines being rented."""

    def __init__(
        self,
        launch: Launch,
        order: RentalOrder,
        login: Login,
        fleet: Fleet,
        mirror: Mirror,
        pace: Pace,
        bear: Callable[[EngineTrouble | None], float],
    ) -> None:
        """``bear`` is told of trouble, and of its end; it says how long to wait."""
        self._launch, self._order, self._login = launch, order, login
        self._fleet, self._mirror, self._pace, self._bear = fleet, mirror, pace, bear
        self._since = fleet.ec2.clock.now()
        checkpoint = checkpoint_of(launch)
        # A parcel, as it came: it is the job's, and nothing of it is unpacked on this machine.
        self._kept = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.tar.gz")

    def equipment(self) -> Equipment | None:
        """What the machines are to be given, packed before any is rented; None when the command has begun long ago."""
        if self._mirror.noted(READY) is not None:
            return None
        settings = self._order.settings
        parcel = pack(self._launch.working_directory, settings.exclude)
        kept = self._kept.read_bytes() if self._kept is not None and self._kept.is_file() else None
        return Equipment(parcel, settings.setup, dict(self._launch.environment), self._mirror.key, kept)

    async def to_its_end(self, machines: Sequence[Instance], equipment: Equipment | None) -> UnpricedEnd:
        """How the command ended, or why it can go on no longer."""
        end, others = await first_of(self._run(machines, equipment), self._watch(machines))
        await self._hear_last_words(others)
        return end

    async def _run(self, machines: Sequence[Instance], equipment: Equipment | None) -> _EndAndOthers:
        machines = await self._running(machines)
        if equipment is not None:
            await self._make_ready(machines, equipment)
        others = {rank: one for rank, one in enumerate(machines) if 0 < rank < self._launch.node_count}
        end = await first_of(
            self._follow(machines[0]),
            *(self._follow_other(one, rank) for rank, one in others.items()),
            *([] if self._kept is None else [self._copy_checkpoint(machines[0], self._kept)]),
        )
        return end, others

    async def _watch(self, machines: Sequence[Instance]) -> _EndAndOthers:
        """Over as soon as one of the machines is gone; until then, trouble with AWS is borne."""
        lifetime = self._order.lifetime
        while True:
            try:
                await self._fleet.check(machines, lifetime)
                self._bear(None)
            except EngineTrouble as trouble:
                await asyncio.sleep(self._bear(trouble))
            if self._now() > machines[0].launched + lifetime + 2 * self._pace.longest_pause:
                raise Over(LOST, "no word came from it until its limit, and its machines have not ended themselves")

    async def _running(self, machines: Sequence[Instance]) -> list[Instance]:
        """The machines with their addresses."""
        ids = [one.id for one in self._by_rank(machines)]
        while True:
            seen = {one.id: one for one in await self._fleet.seen() if one.state == "running" and self._address(one)}
            if seen.keys() >= set(ids):
                return [seen[name] for name in ids]
            if self._now() > self._deadline(machines[0]):
                raise Over(UNAVAILABLE, f"not all machines ran within {self._order.settings.ready_within:.0f} s")

    async def _make_ready(self, machines: Sequence[Instance], equipment: Equipment) -> None:
        try:
            async with asyncio.timeout(max(self._deadline(machines[0]) - self._now(), 0.0) + self._pace.connect):
                age = await self._prepare_all(machines, equipment)
        except TimeoutError:
            within = self._order.settings.ready_within
            raise Over(UNAVAILABLE, f"boot, copy and setup took longer than {within:.0f} s") from None
        first = min(one.launched for one in machines)
        self._mirror.note(READY, {"seconds": max(self._now() - first - age, 0.0)})

    async def _prepare_all(self, machines: Sequence[Instance], equipment: Equipment) -> float:
        """Since how many seconds the command runs, having begun now or before."""
        ages = await all_of(*(self._prepare(one, rank, equipment) for rank, one in enumerate(machines)))
        age, *others = await all_of(
            *(self._begin_unless_begun(machines, rank, ages[rank]) for rank in range(self._launch.node_count))
        )
        return max([age, *others])

    async def _begin_unless_begun(self, machines: Sequence[Instance], rank: int, age: float | None) -> float:
        if age is not None:
            return age
        return await self._reach(machines[rank], lambda line: self._begin(line, machines, rank))

    async def _prepare(self, machine: Instance, rank: int, equipment: Equipment) -> float | None:
        return await self._reach(machine, lambda line: self._prepare_on(line, machine, rank, equipment))

    async def _prepare_on(self, line: Line, machine: Instance, rank: int, equipment: Equipment) -> float | None:
        """Since how many seconds the command runs there; None where it does not, and all is ready for it."""
        name = self._order.name
        await equipping.arm_timer(line, self._order.minutes_left(self._now() - machine.launched))
        age = await equipping.age_of_begun(line, name, self._mirror.of_node(rank).key)
        if age is None:
            await equipping.equip(line, name, equipment)
        return age

    async def _begin(self, line: Line, machines: Sequence[Instance], rank: int) -> float:
        launch, places = self._launch, [one.private_address or "" for one in machines]
        workers = self._order.machines.count
        record = record_of(launch, "", "")
        record["environment"] = {**record["environment"], **addresses(places[:workers], places[workers:])}
        record["nodes"] = [nodes_at(launch, places, port_of(launch))[rank]]
        record["checkpoint"] = None if self._kept is None else ""  # the machine itself knows where
        key = self._mirror.of_node(rank).key
        return await equipping.begin(line, self._order.name, record, secrets_and_tags(launch, ""), key)

    def _by_rank(self, machines: Sequence[Instance]) -> list[Instance]:
        """Workers, then helpers in the order in which they are named; they were rented type by type."""
        found: dict[str, list[Instance]] = {}
        for one in machines:
            found.setdefault(one.group, []).append(one)
        helpers = [found[naming.helpers_of(kind)].pop(0) for kind in self._order.machines.helpers]
        return [*found[naming.WORKERS], *helpers]

    async def _follow(self, head: Instance) -> UnpricedEnd:
        return await self._confirmed_end(await self._end_of(head, self._mirror))

    async def _follow_other(self, machine: Instance, rank: int) -> UnpricedEnd:
        """How another node than the head failed; one that ended well is not missed."""
        mirror = self._mirror.of_node(rank)
        mirror.make()
        end = await self._end_of(machine, mirror)
        if end.kind is None:
            await asyncio.Event().wait()
        return await self._confirmed_end(UnpricedEnd(end.kind, f"node {rank}: {end.detail}"))

    async def _hear_last_words(self, others: Mapping[int, Instance]) -> None:
        """What other nodes than the head have printed by now; not for long, since their machines are paid for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.connect):
                await all_of(*(self._hear(machine, rank) for rank, machine in others.items()))

    async def _hear(self, machine: Instance, rank: int) -> None:
        mirror = self._mirror.of_node(rank)
        with suppress(LineLost, ValueError, StopAsyncIteration):
            async with aclosing(self._news(machine, mirror)) as told:
                await in_thread(mirror.take, await anext(told))

    async def _copy_checkpoint(self, head: Instance, kept: Path) -> UnpricedEnd:
        """Fetch what the command keeps, whenever it has changed, for as long as it runs."""
        known = ""
        while True:
            await asyncio.sleep(self._pace.checkpoint)
            with suppress(LineLost, ValueError, KeyError):  # or it was being changed; the next copy will do
                async with self._line(head) as line:
                    words = equipping.keep_words(self._order.name, known, self._order.settings.checkpoint_limit)
                    async with aclosing(line.lines(words, b"", self._pace.copied)) as texts:
                        async for text in texts:
                            told = json.loads(text)
                            if "refused" in told:
                                self._note_refusal(str(told["refused"]))
                                continue
                            await in_thread(_replace_whole, kept, base64.b64decode(told["data"], validate=True))
                            known = str(told["digest"])

    def _note_refusal(self, why: str) -> None:
        """Once, and in our own words: a machine on which the job runs does not write what people are told."""
        if self._mirror.noted(NOT_KEPT) is None:
            limit = memory_text(self._order.settings.checkpoint_limit)
            words = f"holds more than {limit} (engine.checkpoint_limit)" if why == TOO_LARGE else "has a link out of it"
            after = "a retry goes on from the last copy, or from nothing"
            self._mirror.note(NOT_KEPT, {"text": f"its checkpoint was not copied, as the folder {words}; {after}"})

    async def _end_of(self, machine: Instance, mirror: Mirror) -> UnpricedEnd:
        """How the command ended on the machine, with all that it told in the mirror."""
        failures = 0
        while True:
            try:
                async with aclosing(self._news(machine, mirror)) as told:
                    async for news in told:
                        failures = 0
                        await in_thread(mirror.take, news)
                        if news.end is not None:
                            return UnpricedEnd(news.end["kind"], news.end["detail"])
            except (LineLost, ValueError):
                pass  # call again: the machine keeps what it has to tell
            failures += 1
            await asyncio.sleep(self._pace.pause_after(failures))

    async def _news(self, machine: Instance, mirror: Mirror) -> AsyncGenerator[News, None]:
        """What is new on the machine, beginning with all that the mirror has not."""
        async with self._line(machine) as line:
            words = equipping.follow_words(self._order.name, mirror.reports_size)
            async with aclosing(line.lines(words, mirror.key, self._pace.silence)) as texts:
                async for text in texts:
                    yield News.of_line(text)

    async def _confirmed_end(self, told: UnpricedEnd) -> UnpricedEnd:
        """What the supervisor told; but why a machine shuts down only EC2 knows, and shows after a while."""
        if told.kind == LOST:
            await asyncio.sleep(self._pace.appear)  # ``_watch`` is first, as soon as the machine is gone
        return told

    async def _reach(self, machine: Instance, use: Callable[[Line], Awaitable[T]]) -> T:
        """What comes of using a line to the machine; lost ones are tried again until it should long be ready."""
        failures = 0
        while True:
            try:
                async with self._line(machine) as line:
                    return await use(line)
            except LineLost as lost:
                words = str(lost)
            if self._now() > self._deadline(machine):
                within = self._order.settings.ready_within
                raise Over(UNAVAILABLE, f"the machine {machine.id} was not ready within {within:.0f} s: {words}")
            failures += 1
            await asyncio.sleep(self._pace.pause_after(failures))

    def _line(self, machine: Instance) -> AbstractAsyncContextManager[Line]:
        host_key = machine.tags.get(naming.HOST_KEY, self._order.host.public)
        return connected(self._address(machine), self._login, host_key)

    def _address(self, machine: Instance) -> str:
        is_public = self._order.settings.connect_to == "public"
        return (machine.public_address if is_public else machine.private_address) or ""

    def _deadline(self, machine: Instance) -> float:
        """By when it must be ready; who takes over from another driver has the time anew, within its lifetime."""
        begin = max(machine.launched, self._since)
        return min(begin + self._order.settings.ready_within, machine.launched + self._order.lifetime)

    def _now(self) -> float:
        return self._fleet.ec2.clock.now()


def _replace_whole(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{path.name}.new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
