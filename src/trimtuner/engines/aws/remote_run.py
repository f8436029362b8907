"""The life of one attempt, from renting its machines to their confirmed end.

Every step may be repeated, and what was done is seen from the outside: by the tags on EC2, by the folder on the head
machine, by the notes in the mirror. So a run that meets trouble begins anew, and so does one in another process.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from trimtuner.engines.aws.background import first_of, in_thread
from trimtuner.engines.aws.fleet import Fleet, Over, UnpricedEnd
from trimtuner.engines.aws.pace import Pace, Troubles
from trimtuner.engines.aws.remote_command import RemoteCommand
from trimtuner.engines.aws.renting import Renting
from trimtuner.engines.protocol import STOPPED, EngineTrouble
from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.files import EndRecord
from trimtuner.engines.supervising.mirror import Mirror
from trimtuner.errors import InputError

_DECIDED = "decided.json"  # how it ended; its machines may still be there
_LOCK = "pilot.lock"  # held by the one process of this machine that looks after the attempt
_GLANCE_SECONDS = 0.2  # between looks at files


class NothingHere(EngineTrouble):
    """There is nothing that this process could look after."""


class RemoteRun:
    """Looks after one attempt; only one does so at a time on this machine."""

    def __init__(
        self, mirror: Mirror, fleet: Fleet, task: tuple[Renting, RemoteCommand] | None, troubles: Troubles, pace: Pace
    ) -> None:
        """Without a task, the attempt was started elsewhere, and all that can be done is to end it."""
        self._mirror, self._fleet, self._task, self._pace = mirror, fleet, task, pace
        self.troubles = troubles
        self._woken = asyncio.Event()

    async def try_again(self) -> None:
        """Wait no longer for better times: what was in the way may be so no longer."""
        self.troubles.bear(None)
        self._woken.set()

    async def see_through(self) -> None:
        """Until the end is in the mirror."""
        async with self._alone():
            while self._mirror.end() is None:
                try:
                    await self._advance()
                except NothingHere as nothing:
                    self.troubles.bear(nothing)
                    return
                except EngineTrouble as trouble:
                    await self._wait_after(trouble)
                except InputError as error:
                    await self._wait_after(EngineTrouble(str(error)))
                except Exception as error:
                    # A fault of ours must not leave machines alone: it is told, and all is begun anew.
                    await self._wait_after(EngineTrouble(f"{type(error).__name__}: {error}"))

    async def _wait_after(self, trouble: EngineTrouble) -> None:
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.troubles.bear(trouble)):
                await self._woken.wait()

    async def _advance(self) -> None:
        end = self._decided()
        if end is None:
            end = await first_of(self._wait_for_stop(), self._run_to_end())
            self._mirror.note(_DECIDED, {"kind": end.kind, "detail": end.detail})
        await self._close(self._decided() or end)

    async def _run_to_end(self) -> UnpricedEnd:
        if self._task is None:
            raise NothingHere("it was started on another machine; start it again here to take it over")
        renting, command = self._task
        try:
            equipment = await in_thread(command.equipment)
            machines = await renting.rent()
            self.troubles.bear(None)
            return await command.to_its_end(machines, equipment)
        except Over as over:
            return over.end

    async def _wait_for_stop(self) -> UnpricedEnd:
        while not self._mirror.is_asked_to_stop():
            await asyncio.sleep(_GLANCE_SECONDS)
        return UnpricedEnd(STOPPED, "ended on request")

    async def _close(self, end: UnpricedEnd) -> None:
        """Clear the machines away, and only then tell the end."""
        if end.kind == STOPPED:
            await self._fleet.mark_stopped()
        await self._fleet.terminate_known()
        if self._task is not None:
            renting, _ = self._task
            await renting.settle()
            seconds = await renting.clear_away()
        else:
            seconds = await self._clear_away_from_elsewhere()
        self.troubles.bear(None)
        self._mirror.close(EndRecord(kind=end.kind, detail=end.detail, seconds=seconds))

    async def _clear_away_from_elsewhere(self) -> float:
        if not await self._fleet.seen():
            raise NothingHere(
                "it was not started from here, and no machine of it is to be seen; if it is being launched from "
                "elsewhere, stop it again in a minute"
            )
        return await self._fleet.clear_away(lambda _: True, math.inf)

    def _decided(self) -> UnpricedEnd | None:
        note = self._mirror.noted(_DECIDED)
        if note is None:
            return None
        return UnpricedEnd(None if note["kind"] is None else str(note["kind"]), str(note["detail"]))

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock. Wait while another does, but not for ever when the attempt is to be stopped."""
        descriptor = os.open(self._mirror.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            asked_to_stop = math.inf
            while not files.try_lock(descriptor) and self._mirror.end() is None:
                if self._mirror.is_asked_to_stop():
                    asked_to_stop = min(asked_to_stop, time.monotonic())
                if time.monotonic() - asked_to_stop > self._pace.lock:
                    break
                await asyncio.sleep(_GLANCE_SECONDS)
            yield
        finally:
            os.close(descriptor)
