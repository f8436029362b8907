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
from trimtuner.engines.aws.fleet import Fleet
from trimtuner.engines.aws.keys import Keys, read_login_key
from trimtuner.engines.aws.machine import Login
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.order import RentalOrder
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.remote_command import READY, RemoteCommand
from trimtuner.engines.aws.remote_run import RemoteRun, Task
from trimtuner.engines.aws.renting import ELSEWHERE, Renting
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.aws.troubles import Troubles
from trimtuner.engines.aws.watch import Watch
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
        self._regions: dict[str, tuple[Ec2, Watch]] = {}
        self._runs: dict[str, tuple[RemoteRun, Future[None]]] = {}
        self._lock = threading.Lock()

    def start(self, launch: Launch) -> str:
        """Begin to look after the attempt, unless somebody does; renting goes on in the background."""
        check_launch(launch)
        mirror = self._mirror(launch.study, launch.trial, launch.attempt)
        if mirror.noted(_MACHINES) is None:
            check_secrets(launch)
            self._write_down(launch, mirror, _known(self._settings.region or usual_region()))
        region = str((mirror.noted(_RENTED_IN) or {})["region"])
        name = AttemptName(region, launch.study, launch.trial, launch.attempt)
        if mirror.end() is None:
            self._run(name)
        return name.handle

    def take_over(self, launch: Launch, handle: str) -> str:
        """By the tags of its machines, which are the same from everywhere."""
        name = AttemptName.of_handle(handle)
        mirror = self._mirror(name.study, name.trial, name.attempt)
        if mirror.noted(_MACHINES) is None:
            mirror.note(ELSEWHERE, {})  # first of all, or it could be taken for one that was never launched
            self._write_down(launch, mirror, name.region)
        if mirror.end() is None:
            self._run(name)
        return name.handle

    def poll(self, handle: str) -> AttemptState:
        """How it goes; an EngineTrouble while something is in the way, which is then tried again by itself."""
        name = AttemptName.of_handle(handle)
        mirror = self._mirror(name.study, name.trial, name.attempt)
        state = _since_launch(mirror)
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
        name = AttemptName.of_handle(handle)
        mirror = self._mirror(name.study, name.trial, name.attempt)
        if mirror.end() is not None:
            self._clear_leftovers(name)
            return
        mirror.ask_to_stop()
        run, deadline = self._run(name), time.monotonic() + self._pace.stopped_within
        begin(_try_again(run)).result()
        while mirror.end() is None:
            if run.troubles.text or time.monotonic() > deadline:
                words = run.troubles.text or "its machines are not gone yet"
                raise EngineTrouble(f"the end of {handle!r} is not confirmed; stop it again ({words})")
            time.sleep(_GLANCE_SECONDS)

    def find(self, study: str | None = None) -> list[Found]:
        """What carries our tags and is not gone, in every region we may look into; and what waits for machines."""
        found = {one.handle: one for one in self._waiting(study)}
        for region in self._where_to_look():
            for one in self._seen_in(region, study):
                name = _name_of(one, region)
                if name is not None and not one.is_gone:
                    is_running = one.is_alive or (name.handle in found and found[name.handle].is_running)
                    found[name.handle] = Found(name.study, name.trial, name.attempt, name.handle, is_running)
        return list(found.values())

    def _waiting(self, study: str | None) -> Iterator[Found]:
        """What was started from here and has not ended: none of its machines need be there yet."""
        for path in sorted(self._folder.glob(f"{study or '*'}/*/{_RENTED_IN}")):
            mirror = self._mirrors.at(path.parent)
            region, launch = mirror.noted(_RENTED_IN), _launch_in(mirror)
            if region is not None and launch is not None and mirror.end() is None:
                name = AttemptName(str(region["region"]), launch.study, launch.trial, launch.attempt)
                yield Found(name.study, name.trial, name.attempt, name.handle, is_running=False)

    def forget(self, handle: str) -> None:
        """Nothing is held but memory: an end is told only when the machines are gone."""
        with self._lock:
            self._runs.pop(handle, None)

    def _clear_leftovers(self, name: AttemptName) -> None:
        """Of an attempt whose end is told nothing should be left; make sure of it."""
        ec2, watch = self._region(name.region)
        fleet = Fleet(name, ec2, watch, self._pace, self._settings.billed_at_least)
        begin(fleet.clear_away(lambda _: True, math.inf)).result(self._pace.stopped_within)

    def _where_to_look(self) -> list[str]:
        home = self._settings.region or usual_region()
        if self._settings.look_in:
            return list(self._settings.look_in)
        return self._region(_known(home))[0].regions()

    def _seen_in(self, region: str, study: str | None) -> list[Instance]:
        tags = {naming.STUDY: ["*" if study is None else study]}
        try:
            return self._region(region)[0].instances(tags)
        except EngineTrouble as trouble:
            raise EngineTrouble(
                f"region {region} cannot be looked into, so something may still run there ({trouble}); "
                "name the regions that you use under engine.look_in"
            ) from None

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

    def _mirror(self, study: str, trial: int, attempt: int) -> Mirror:
        return self._mirrors.at(self._folder / study / attempt_name(trial, attempt))

    def _region(self, region: str) -> tuple[Ec2, Watch]:
        with self._lock:
            if region not in self._regions:
                ec2 = Ec2(region)
                self._regions[region] = (ec2, Watch(ec2, self._pace))
            return self._regions[region]

    def _run(self, name: AttemptName) -> RemoteRun:
        """Who looks after the attempt in this process; begun now if nobody does."""
        ec2, watch = self._region(name.region)
        with self._lock:
            run, running = self._runs.get(name.handle, (None, None))
            if run is None or running is None or running.done():
                run = self._new_run(name, ec2, watch)
                self._runs[name.handle] = (run, begin(run.see_through()))
            return run

    def _new_run(self, name: AttemptName, ec2: Ec2, watch: Watch) -> RemoteRun:
        mirror = self._mirror(name.study, name.trial, name.attempt)
        fleet = Fleet(name, ec2, watch, self._pace, self._settings.billed_at_least)
        troubles = Troubles(self._pace, ec2.renew)
        return RemoteRun(mirror, fleet, self._task(name, mirror, fleet, troubles), troubles, self._pace)

    def _task(self, name: AttemptName, mirror: Mirror, fleet: Fleet, troubles: Troubles) -> Task | None:
        launch = _launch_in(mirror)
        if launch is None or launch.machines is None:
            return None
        settings, keys = self._settings, Keys(self._folder)
        login = keys.for_login(name.study)
        authorized = login.public if settings.key_file is None else None
        order = RentalOrder(name, launch.machines, settings, keys.of_host(name.handle), authorized, launch.limit)
        key = login.imported() if settings.key_file is None else read_login_key(settings.key_file)
        how = Login(settings.user, key, settings.ssh_config, self._pace.connect)
        renting = Renting(order, fleet, mirror, self._pace)
        command = RemoteCommand(launch, order, how, fleet, mirror, self._pace, troubles.bear)
        return Task(renting, command)


async def _try_again(run: RemoteRun) -> None:
    """What was in the way may be so no longer."""
    run.troubles.bear(None)
    run.wake()


def _launch_in(mirror: Mirror) -> Launch | None:
    """The launch as it was written down."""
    record, machines = mirror.launch(), mirror.noted(_MACHINES)
    if record is None or machines is None:
        return None
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
        machines=_machines_in(json.dumps(machines)),
    )


def _machines_in(text: str) -> Machines:
    told = json.loads(text)
    return Machines(**{**told, "helpers": tuple(told["helpers"])})


def _since_launch(mirror: Mirror) -> AttemptState:
    """As it was told, with times that begin where the charge begins: at the launch of the machines."""
    state, ready = mirror.state(), mirror.noted(READY)
    if ready is None:
        return state
    before = float(str(ready["seconds"]))
    last = float("inf") if state.end is None else state.end.seconds
    reports = tuple(replace(one, seconds=min(one.seconds + before, last)) for one in state.reports)
    return replace(state, reports=reports)


def _name_of(one: Instance, region: str) -> AttemptName | None:
    trial, attempt = one.tags.get(naming.TRIAL, ""), one.tags.get(naming.ATTEMPT, "")
    if not (trial.isdigit() and attempt.isdigit()):
        return None
    return AttemptName(region, one.tags[naming.STUDY], int(trial), int(attempt))


def _known(region: str | None) -> str:
    if region is None:
        raise InputError("no AWS region is set; write engine.region in the job file, or set AWS_DEFAULT_REGION")
    return region
