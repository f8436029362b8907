"""The engine that rents the machines of a trial on EC2.

All that is known of an attempt is in the tags of its machines, in the folder on its head machine, and in the mirror
below the engine's folder: any driver can take over from any other.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.background import begin
from trimtuner.engines.aws.ec2 import Ec2, Instance, usual_region
from trimtuner.engines.aws.fleet import Fleet, Watch
from trimtuner.engines.aws.keys import Keys, read_login_key
from trimtuner.engines.aws.machine import Login
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.order import RentalOrder
from trimtuner.engines.aws.pace import Pace, Troubles
from trimtuner.engines.aws.remote_command import NOT_KEPT, READY, RemoteCommand
from trimtuner.engines.aws.remote_run import RemoteRun
from trimtuner.engines.aws.renting import ELSEWHERE, Renting
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.protocol import AttemptState, EngineTrouble, Found, Launch, Machines
from trimtuner.engines.supervising.environment import check_launch, check_secrets, record_of
from trimtuner.engines.supervising.files import attempt_name
from trimtuner.engines.supervising.mirror import Mirror, Mirrors
from trimtuner.errors import InputError

_RENTED_IN = "region.json"  # where its machines are; a job file may name another region by now
_MACHINES = "machines.json"  # which ones
_GLANCE_SECONDS = 0.02


class AwsEngine:
    """Runs every attempt on machines of its own, which are gone when its end is told."""

    def __init__(self, folder: Path, secret: bytes, settings: AwsSettings, pace: Pace | None = None) -> None:
        self._folder, self._settings, self._pace = folder.resolve(), settings, pace or Pace()
        self._mirrors = Mirrors(secret)
        self._watches: dict[str, Watch] = {}  # by region
        self._runs: dict[str, tuple[RemoteRun, Future[None]]] = {}
        self._lock = threading.Lock()

    def start(self, launch: Launch) -> str:
        """Begin to look after the attempt, unless somebody does; renting goes on in the background."""
        check_launch(launch)
        mirror = self._mirrors.at(self._folder / launch.study / attempt_name(launch.trial, launch.attempt))
        if mirror.noted(_MACHINES) is None:
            check_secrets(launch)
            self._write_down(launch, mirror, self._home())
        region = str((mirror.noted(_RENTED_IN) or {})["region"])
        name = AttemptName(region, launch.study, launch.trial, launch.attempt)
        if mirror.end() is None:
            self._run(name)
        return name.handle

    def take_over(self, launch: Launch, handle: str) -> str:
        """By the tags of its machines, which are the same from everywhere."""
        name, mirror = self._at(handle)
        if mirror.noted(_MACHINES) is None:
            mirror.note(ELSEWHERE, {})  # first of all, or it could be taken for one that was never launched
            self._write_down(launch, mirror, name.region)
        if mirror.end() is None:
            self._run(name)
        return name.handle

    def poll(self, handle: str) -> AttemptState:
        """How it goes; an EngineTrouble while something is in the way, which is then tried again by itself."""
        name, mirror = self._at(handle)
        state = replace(_since_launch(mirror), notes=_notes(mirror))
        if state.end is not None:
            return state
        if mirror.noted(_MACHINES) is None:
            raise EngineTrouble(f"{handle!r} was not started from here; start it again to take it over")
        run = self._run(name)
        if run.troubles.text:
            raise EngineTrouble(run.troubles.text)
        return state

    def stop(self, handle: str) -> None:
        """End it, and return when its machines are confirmed to be gone."""
        name, mirror = self._at(handle)
        if mirror.end() is not None:  # then nothing should be left of it; make sure of that
            begin(self._fleet(name).clear_away(lambda _: True, math.inf)).result(self._pace.stopped_within)
            return
        mirror.ask_to_stop()
        run, deadline = self._run(name), time.monotonic() + self._pace.stopped_within
        begin(run.try_again()).result()
        while mirror.end() is None:
            if run.troubles.text or time.monotonic() > deadline:
                words = run.troubles.text or "its machines are not gone yet"
                raise EngineTrouble(f"the end of {handle!r} is not confirmed; stop it again ({words})")
            time.sleep(_GLANCE_SECONDS)

    def find(self, study: str | None = None) -> list[Found]:
        """What carries our tags and is not gone, in every region we may look into; and what waits for machines."""
        found = dict.fromkeys(self._waiting(study), False)
        for region in self._settings.look_in or self._watch(self._home()).ec2.regions():
            for one in self._seen_in(region, study):
                name = _name_of(one, region)
                if name is not None and not one.is_gone:
                    found[name] = found.get(name, False) or one.is_alive
        return [
            Found(name.study, name.trial, name.attempt, name.handle, is_running) for name, is_running in found.items()
        ]

    def forget(self, handle: str) -> None:
        """Nothing is held but memory: an end is told only when the machines are gone."""
        with self._lock:
            self._runs.pop(handle, None)

    def _waiting(self, study: str | None) -> Iterator[AttemptName]:
        """What was started from here and has not ended: none of its machines need be there yet."""
        for path in sorted(self._folder.glob(f"{study or '*'}/*/{_RENTED_IN}")):
            mirror = self._mirrors.at(path.parent)
            region, launch = mirror.noted(_RENTED_IN), _launch_in(mirror)
            if region is not None and launch is not None and mirror.end() is None:
                yield AttemptName(str(region["region"]), launch.study, launch.trial, launch.attempt)

    def _seen_in(self, region: str, study: str | None) -> list[Instance]:
        try:
            return self._watch(region).ec2.instances({naming.STUDY: ["*" if study is None else study]})
        except EngineTrouble as trouble:
            raise EngineTrouble(
                f"region {region} cannot be looked into, so something may still run there ({trouble}); "
                "name the regions that you use under engine.look_in"
            ) from None

    def _home(self) -> str:
        region = self._settings.region or usual_region()
        if region is None:
            raise InputError("no AWS region is set; write engine.region in the job file, or set AWS_DEFAULT_REGION")
        return region

    def _write_down(self, launch: Launch, mirror: Mirror, region: str) -> None:
        """All that a run needs, whoever begins it."""
        machines = launch.machines
        if machines is None:
            raise InputError("the aws engine rents machines, and the job names none; add a section 'cloud' to it")
        # The machines are their own: threads are for one of them, not for all workers together.
        own = replace(launch, vcpus=None if launch.vcpus is None else machines.vcpus)
        mirror.open(record_of(own, str(mirror.folder), str(launch.working_directory.resolve())))
        mirror.note(_RENTED_IN, {"region": region})
        mirror.note(_MACHINES, asdict(machines))

    def _at(self, handle: str) -> tuple[AttemptName, Mirror]:
        name = AttemptName.of_handle(handle)
        return name, self._mirrors.at(self._folder / name.study / name.short)

    def _watch(self, region: str) -> Watch:
        with self._lock:
            if region not in self._watches:
                self._watches[region] = Watch(Ec2(region), self._pace)
            return self._watches[region]

    def _fleet(self, name: AttemptName) -> Fleet:
        return Fleet(name, self._watch(name.region), self._pace, self._settings.billed_at_least)

    def _run(self, name: AttemptName) -> RemoteRun:
        """Who looks after the attempt in this process; begun now if nobody does."""
        fleet = self._fleet(name)
        with self._lock:
            run, running = self._runs.get(name.handle, (None, None))
            if run is None or running is None or running.done():
                run = self._new_run(name, fleet)
                self._runs[name.handle] = (run, begin(run.see_through()))
            return run

    def _new_run(self, name: AttemptName, fleet: Fleet) -> RemoteRun:
        _, mirror = self._at(name.handle)
        troubles, launch, settings = Troubles(self._pace, fleet.ec2.renew), _launch_in(mirror), self._settings
        if launch is None or launch.machines is None:
            return RemoteRun(mirror, fleet, None, troubles, self._pace)
        keys = Keys(self._folder)
        login = keys.for_login(name.study)
        authorized = login.public if settings.key_file is None else None
        order = RentalOrder(name, launch.machines, settings, keys.of_host(name.handle), authorized, launch.limit)
        key = login.imported() if settings.key_file is None else read_login_key(settings.key_file)
        how = Login(settings.user, key, settings.ssh_config, self._pace.connect)
        command = RemoteCommand(launch, order, how, fleet, mirror, self._pace, troubles.bear)
        return RemoteRun(mirror, fleet, (Renting(order, fleet, mirror, self._pace), command), troubles, self._pace)


def _launch_in(mirror: Mirror) -> Launch | None:
    """The launch as it was written down."""
    record, machines = mirror.launch(), mirror.noted(_MACHINES)
    if record is None or machines is None:
        return None
    told = json.loads(json.dumps(machines))
    return Launch(
        study=record["study"],
        trial=record["trial"],
        attempt=record["attempt"],
        command=tuple(record["command"]),
        folder=mirror.folder.parent,
        working_directory=Path(record["working_directory"]),
        environment=record["environment"],
        secrets=tuple(record["secrets"]),
        limit=record["limit"],
        memory_bytes=record["memory_bytes"],
        metrics_file=record["metrics_file"],
        machines=Machines(**{**told, "helpers": tuple(told["helpers"])}),
        nodes=record.get("starts_on", "head"),  # which earlier versions did not write
        repeat=record.get("repeat", 1),
    )


def _notes(mirror: Mirror) -> tuple[str, ...]:
    refused = mirror.noted(NOT_KEPT)
    return () if refused is None else (str(refused["text"]),)


def _since_launch(mirror: Mirror) -> AttemptState:
    """As it was told, with times that begin where the charge begins: at the launch of the machines."""
    state, ready = mirror.state(), mirror.noted(READY)
    if ready is None:
        return state
    before = float(str(ready["seconds"]))
    last = math.inf if state.end is None else state.end.seconds
    reports = tuple(replace(one, seconds=min(one.seconds + before, last)) for one in state.reports)
    return replace(state, reports=reports)


def _name_of(one: Instance, region: str) -> AttemptName | None:
    trial, attempt = one.tags.get(naming.TRIAL, ""), one.tags.get(naming.ATTEMPT, "")
    if not (trial.isdigit() and attempt.isdigit()):
        return None
    return AttemptName(region, one.tags[naming.STUDY], int(trial), int(attempt))
