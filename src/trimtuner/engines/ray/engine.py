"""The engine that runs trials on a Ray cluster. What it knows is in the study's actor, and mirrored below a folder."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from trimtuner.engines.protocol import (
    ENDED_WITHIN_SECONDS,
    LOST,
    PREEMPTED,
    STOPPED,
    AttemptState,
    EngineTrouble,
    Found,
    Launch,
)
from trimtuner.engines.ray.connection import ActorGone, StudyActors, check_head, connect
from trimtuner.engines.ray.orders import AttemptOrder, Key, Position, Told, demands_here, demands_of
from trimtuner.engines.ray.own import OwnCluster, find_or_start_own, find_own, use_token_of
from trimtuner.engines.ray.scheduling import Rescue, rescue_here
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.supervising.devices import devices_here
from trimtuner.engines.supervising.environment import (
    check_launch,
    check_secrets,
    checkpoint_of,
    nodes_here,
    record_of,
    secrets_and_tags,
)
from trimtuner.engines.supervising.files import EndRecord, attempt_name, numbers_in
from trimtuner.engines.supervising.mirror import Mirror, Mirrors, News
from trimtuner.engines.supervising.packing import Packer
from trimtuner.engines.supervising.ports import port_of
from trimtuner.errors import InputError
from trimtuner.files import make_private_folder

_ACCEPTED = "accepted.json"  # the actor has the order: it is never given again
_BEGAN = "began.json"  # when, by this machine's clock; for an attempt that is lost together with its actor
_FRESH_SECONDS = 0.05  # one question for all attempts of a study: the next ones are answered from it
_STOPPED_WITHIN_SECONDS = 45.0
_LOOK_SECONDS = 0.02

_Open: TypeAlias = dict[Key, Position]


class RayEngine:
    """Runs commands on a cluster. Other drivers, on other machines too, see the same through the study's actor."""

    def __init__(self, folder: Path, secret: bytes, settings: RaySettings) -> None:
        """The folder holds one for each study. The cluster is joined, or started, when it is first needed."""
        if settings.address is not None and settings.address.startswith("ray://"):
            raise InputError(f"{settings.address!r} is for Ray Client; run trimtuner on a node and give host:port")
        self._folder, self._settings = folder.resolve(), settings
        self._mirrors = Mirrors(secret)
        self._actors: StudyActors | None = None
        self._packer = Packer([f"{folder.name.removesuffix('.trials')}*"])
        self._open: dict[str, _Open] = {}
        self._asked: dict[str, float] = {}
        self._rescues: dict[str, Rescue] = {}
        self._to_forget: list[str] = []

    def start(self, launch: Launch) -> str:
        """Give the attempt to the study's actor, unless it has it or had it; study, trial and attempt."""
        check_launch(launch)
        if launch.folder.resolve() != self._folder / launch.study:
            raise InputError(f"the folder of study {launch.study!r} must be {str(self._folder / launch.study)!r}")
        mirror = self._mirrors.of(launch)
        if mirror.end() is None and mirror.noted(_ACCEPTED) is None:
            check_secrets(launch)
            self._order(launch, mirror)
            mirror.note(_ACCEPTED, {})
        return _handle(launch.study, (launch.trial, launch.attempt))

    def take_over(self, launch: Launch, handle: str) -> str:  # noqa: ARG002
        """From the study's actor, which is the same from everywhere: what it has, it does not start again."""
        mirror = self._mirrors.of(launch)
        if mirror.end() is None and mirror.noted(_ACCEPTED) is None:
            mirror.open(record_of(launch, str(mirror.folder), str(launch.working_directory.resolve())))
            mirror.note(_ACCEPTED, {})  # by whoever started it; an actor that has lost it must not begin it anew
        return _handle(launch.study, (launch.trial, launch.attempt))

    def poll(self, handle: str) -> AttemptState:
        """How it goes, by what the actor has heard."""
        mirror = self._mirror(handle)
        if mirror.end() is None:
            self._freshen(handle)
        return mirror.state()

    def stop(self, handle: str) -> None:
        """End it with everything it started, and return when that is confirmed."""
        if self.poll(handle).end is not None:
            return
        deadline = time.monotonic() + _STOPPED_WITHIN_SECONDS
        self._ask(handle, "stop")
        while self.poll(handle).end is None:
            if time.monotonic() > deadline:
                raise EngineTrouble(f"the end of {handle!r} is not confirmed; is its node alive? Then stop it again")
            time.sleep(_LOOK_SECONDS)

    def find(self, study: str | None = None) -> list[Found]:
        """What the actors of studies hold, ended or not."""
        actors = self._joined()
        names = [] if actors is None else actors.studies()
        return [
            Found(name, *key, _handle(name, key), is_running)
            for name in names
            if actors is not None and study in (None, name)
            for key, is_running in actors.known(name)
        ]

    def forget(self, handle: str) -> None:
        """The actor drops it; its mirror stays, for whoever wants to read the log."""
        self._to_forget.append(handle)
        self._mirrors.forget(self._folder / handle)
        with suppress(EngineTrouble):  # then it is asked for again with the next poll
            self._ask_to_forget()

    def _mirror(self, handle: str) -> Mirror:
        return self._mirrors.at(self._folder / handle)

    def _order(self, launch: Launch, mirror: Mirror) -> None:
        actors = self._actors = self._joined() or _actors_of_own(find_or_start_own(self._folder))
        record = record_of(launch, str(mirror.folder), str(launch.working_directory.resolve()))
        checkpoint = checkpoint_of(launch)
        if checkpoint is not None:
            make_private_folder(checkpoint)
            record["checkpoint"] = str(checkpoint)
        parcel = self._packer.parcel_of(launch.working_directory) if self._settings.copies else None
        is_own = self._settings.address is None
        if launch.nodes == "all":  # of a cluster, each machine learns it when all of them are known
            record["nodes"] = nodes_here(launch, [], port_of(launch)) if is_own else []
        order = AttemptOrder(
            trial=launch.trial,
            attempt=launch.attempt,
            record=record,
            added=secrets_and_tags(launch, str(mirror.folder)),
            demands=demands_here(launch, len(os.sched_getaffinity(0)), len(devices_here()))
            if is_own
            else demands_of(launch),
            workers=1 if is_own or launch.machines is None else launch.machines.count,
            ranks=1 if is_own else launch.node_count,
            port=port_of(launch),
            parcel=None if parcel is None else parcel.digest,
            wait=self._settings.wait,
            key=mirror.key,
        )
        mirror.open(record)
        actors.order(launch.study, order, parcel)

    def _ask_to_forget(self) -> None:
        while self._to_forget:
            self._ask(self._to_forget[-1], "forget")
            self._to_forget.pop()

    def _ask(self, handle: str, method: str) -> None:
        """Ask the study's actor something of the attempt; where it is gone, what it held is, or is being rescued."""
        actors, (study, key) = self._joined(), _parsed(handle)
        if actors is not None:
            with suppress(ActorGone):
                actors.ask(study, method, key)

    def _freshen(self, handle: str) -> None:
        """Bring the mirrors of the study up to date, this one's at least."""
        study, key = _parsed(handle)
        opened = self._open.setdefault(study, {})
        is_fresh = time.monotonic() - self._asked.get(study, 0.0) < _FRESH_SECONDS
        if key in opened and is_fresh:
            return
        opened.setdefault(key, Position(self._mirror(handle).reports_size))
        self._ask_to_forget()
        told = self._news(study, opened)
        self._asked[study] = time.monotonic()
        for one in list(opened):
            self._take(study, one, told.get(one))

    def _news(self, study: str, opened: _Open) -> dict[Key, Told]:
        """What the actor knows of each; nothing where there is no actor."""
        actors, wanted = self._joined(), list(opened.items())
        if actors is None:
            return {}
        try:
            answers = actors.news(study, wanted)
        except ActorGone:
            return {}
        return {key: told for (key, _), told in zip(wanted, answers, strict=True) if told is not None}

    def _take(self, study: str, key: Key, told: Told | None) -> None:
        handle = _handle(study, key)
        mirror = self._mirror(handle)
        if told is None and mirror.end() is not None:
            del self._open[study][key]  # another driver was first
            return
        if told is None:
            self._rescue(handle)
            return
        mirror.make()  # it was started from another machine
        mirror.take(News(told.reports_from, told.reports, told.log_from, told.log, None))
        reports, log = told.reports_from + len(told.reports), told.log_from + len(told.log)
        self._open[study][key] = Position(reports, told.generation, log)
        if told.end is not None:
            for rank, text in told.node_logs.items():
                mirror.keep_node_log(rank, text)
            self._close(handle, told.end)
        elif told.ran is not None and mirror.noted(_BEGAN) is None:
            mirror.note(_BEGAN, {"at": time.time() - told.ran})

    def _rescue(self, handle: str) -> None:
        """The actor does not have it: end what is left of it, and close it with what it had told."""
        study, key = _parsed(handle)
        if self._joined() is None:
            self._close_rescued(handle, rescue_here(study, key, self._mirror(handle).key))
            return
        if handle not in self._rescues:
            check_head()
            self._rescues[handle] = Rescue(study, key, self._mirror(handle).key)
        if self._rescues[handle].is_over():
            # Taken out first: where a look went wrong, the next poll looks again.
            self._close_rescued(handle, self._rescues.pop(handle).found())

    def _close_rescued(self, handle: str, news: News | None) -> None:
        mirror = self._mirror(handle)
        if news is not None:
            mirror.take(news)
        self._close(handle, _end_of_rescued(mirror, None if news is None else news.end))

    def _close(self, handle: str, end: EndRecord) -> None:
        study, key = _parsed(handle)
        self._mirror(handle).close(end)
        self._open.get(study, {}).pop(key, None)
        self._rescues.pop(handle, None)

    def _joined(self) -> StudyActors | None:
        """The actors; None when they would be in a cluster of our own, and that does not run."""
        if self._actors is None and self._settings.address is not None:
            connect(self._settings.address)
            self._actors = StudyActors(None)
        elif self._actors is None:
            own = find_own(self._folder)
            self._actors = None if own is None else _actors_of_own(own)
        return self._actors


def _actors_of_own(cluster: OwnCluster) -> StudyActors:
    use_token_of(cluster)
    connect(cluster.address)
    return StudyActors(str(cluster.users))


def _end_of_rescued(mirror: Mirror, end: EndRecord | None) -> EndRecord:
    """Its own end, if it came to one; else it was taken from it."""
    if end is not None and end["kind"] not in (LOST, STOPPED):
        return end
    detail = "the actor of its study was lost"
    if end is not None:
        return EndRecord(kind=PREEMPTED, detail=detail, seconds=end["seconds"])
    began, launch = mirror.noted(_BEGAN), mirror.launch()
    if began is None or launch is None:
        return EndRecord(kind=PREEMPTED, detail=f"{detail}, and no node knows of it", seconds=0.0)
    # Nobody saw it end, but its supervisor has ended it at its limit.
    most = launch["limit"] + ENDED_WITHIN_SECONDS
    seconds = min(max(time.time() - float(str(began["at"])), 0.0), most)
    return EndRecord(kind=PREEMPTED, detail=f"{detail}, and the node with it", seconds=seconds)


def _handle(study: str, key: Key) -> str:
    return f"{study}/{attempt_name(*key)}"


def _parsed(handle: str) -> tuple[str, Key]:
    study, _, name = handle.rpartition("/")
    return study, numbers_in(name)
