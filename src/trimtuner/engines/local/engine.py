"""The engine that runs commands on this machine."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from trimtuner.engines.protocol import AttemptState, EngineTrouble, Found, Launch
from trimtuner.engines.supervising import fence, files, processes
from trimtuner.engines.supervising.attempt import WatchedAttempt
from trimtuner.engines.supervising.devices import VISIBLE, Lease, gpus_of, leased
from trimtuner.engines.supervising.environment import (
    check_launch,
    check_secrets,
    checkpoint_of,
    least_used_cores,
    nodes_here,
    record_of,
    secrets_and_tags,
)
from trimtuner.engines.supervising.fence import FencedAttempt
from trimtuner.engines.supervising.files import Folder
from trimtuner.engines.supervising.ports import HeldPorts, ports_here
from trimtuner.engines.supervising.processes import TaggedProcess
from trimtuner.engines.supervising.starting import CannotBegin, begin, has_begun
from trimtuner.engines.supervising.supervisor import GRACE_SECONDS
from trimtuner.errors import InputError
from trimtuner.files import make_private_folder

_PATIENCE_WITH_SUPERVISOR_SECONDS = GRACE_SECONDS + 5.0
_PATIENCE_WITH_KERNEL_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class LocalEngine:
    """Runs commands here. Any number of drivers, one after the other or at once, see the same.

    All that it remembers is how long it has itself seen an attempt run: whatever becomes of files, no less is told.
    """

    def __init__(self, secret: bytes, folders: Iterable[Path] = ()) -> None:
        """The study's secret, and the folders of studies in which ``find`` looks, besides the processes that run."""
        if sys.platform != "linux":
            raise InputError(f"the local engine watches processes as only Linux shows them; this is {sys.platform!r}")
        self._secret, self._folders = secret, tuple(folder.resolve() for folder in folders)
        self._attempts: dict[str, WatchedAttempt] = {}
        self._waiting: dict[str, Launch] = {}  # for GPUs that others have

    def start(self, launch: Launch) -> str:
        """Start the attempt, unless it was started already, or may have been and somebody removed its files.

        One that may have run is looked for among all that runs here: another driver may have another folder.
        """
        check_launch(launch)
        if launch.begun_below is not None:  # as that driver would have, if it were still there
            launch = replace(launch, folder=launch.begun_below)
            if not launch.folder.is_dir():  # of another machine, or removed
                return str(_folder_of(launch))
        elsewhere = self._where_it_runs(launch) if launch.may_have_run else None
        if elsewhere is not None:
            return elsewhere
        attempt = self._attempt(str(_folder_of(launch)))
        folder = attempt.folder
        before = time.monotonic()
        is_lost = launch.may_have_run and not folder.is_untouched()
        folder.make()
        try:
            with files.start_lock(folder.path) as lock:
                if not has_begun(folder):
                    if is_lost:
                        return str(folder.path)
                    if not _record_and_start(launch, folder, lock):
                        self._waiting[str(folder.path)] = replace(launch, may_have_run=False, begun_below=None)
                        return str(folder.path)
        except TimeoutError as error:
            raise EngineTrouble(str(error)) from None
        attempt.has_started(before)
        return str(folder.path)

    def take_over(self, launch: Launch, handle: str) -> str:
        """By its folder, if that is here under whatever path; else it runs on another machine, and is lost to us."""
        folder = self._attempt(str(_folder_of(launch))).folder
        if gpus_of(launch) and folder.is_untouched():  # it waited for devices, and was never started
            self._waiting[str(folder.path)] = launch
        elif folder.get(files.LAUNCH) is None:
            return handle
        return str(folder.path)

    def poll(self, handle: str) -> AttemptState:
        """How it goes; what it finds without a supervisor it kills, and tells as lost once that is confirmed."""
        launch = self._waiting.pop(handle, None)
        if launch is not None and not self._attempt(handle).folder.is_asked_to_stop():
            self.start(launch)
            if handle in self._waiting:
                return AttemptState((), (), None, f"for {gpus_of(launch)} GPUs, which others have")
        return self._attempt(handle).state()

    def stop(self, handle: str) -> None:
        """End it with everything it started, and return when that is confirmed."""
        attempt = self._attempt(handle)
        if attempt.end() is None:
            with suppress(OSError):  # a folder beyond use; a signal does as well
                attempt.folder.ask_to_stop()
            _signal_supervisor(attempt, signal.SIGTERM)
            if not _becomes_true(lambda: attempt.state().end is not None, _PATIENCE_WITH_SUPERVISOR_SECONDS):
                _signal_supervisor(attempt, signal.SIGKILL)  # it hangs; its command is then killed by its tags
        if not _becomes_true(
            lambda: attempt.state().end is not None and not attempt.kill_rest(), _PATIENCE_WITH_KERNEL_SECONDS
        ):
            raise EngineTrouble(f"the end of {handle!r} is not confirmed; look for its processes, then stop it again")

    def find(self, study: str | None = None) -> list[Found]:
        """Attempts in the folders, and others that run here."""
        running: dict[str, list[TaggedProcess]] = {}
        for tagged in processes.tagged_processes():
            running.setdefault(tagged.folder, []).append(tagged)
        held = {fenced.folder: fenced for fenced in fence.held_attempts()}
        found = {attempt.handle: attempt for attempt in self._find_in_folders(running, held.keys())}
        for handle, launch in self._waiting.items():
            found[handle] = Found(launch.study, launch.trial, launch.attempt, handle, is_running=True)
        alive: list[FencedAttempt | TaggedProcess] = [*held.values(), *(tagged for tagged, *_ in running.values())]
        for one in alive:
            found.setdefault(one.folder, Found(one.study, one.trial, one.attempt, one.folder, is_running=True))
        return [attempt for attempt in found.values() if study is None or attempt.study == study]

    def forget(self, handle: str) -> None:
        """Only what was seen of it; its folder stays, for whoever wants to read the log."""
        self._attempts.pop(handle, None)
        self._waiting.pop(handle, None)

    def _where_it_runs(self, launch: Launch) -> str | None:
        """The folder for which it runs on this machine; tags can be forged, but not the launch that is sealed there."""
        tags = (launch.study, launch.trial, launch.attempt)
        for one in self.find(launch.study):
            if one.is_running and (one.study, one.trial, one.attempt) == tags:
                sealed = self._attempt(one.handle).launch()
                if sealed is not None and (sealed["study"], sealed["trial"], sealed["attempt"]) == tags:
                    return one.handle
        return None

    def _attempt(self, handle: str) -> WatchedAttempt:
        if handle not in self._attempts:
            self._attempts[handle] = WatchedAttempt(files.folder_at(Path(handle), self._secret))
        return self._attempts[handle]

    def _find_in_folders(self, running: Mapping[str, list[TaggedProcess]], held: Collection[str]) -> Iterator[Found]:
        for path in sorted(path for folder in self._folders for path in folder.glob(f"*/{files.LAUNCH}")):
            attempt, handle = self._attempt(str(path.parent)), str(path.parent)
            launch = attempt.launch()
            if launch is not None:  # else it is of another record
                begun = attempt.begun()  # by a supervisor that may have written down the end and be about to leave
                others = [one for one in running.get(handle, []) if begun is None or one.process.pid != begun["pid"]]
                is_running = attempt.is_under_way() or handle in held or bool(others)
                yield Found(launch["study"], launch["trial"], launch["attempt"], handle, is_running)


def _folder_of(launch: Launch) -> Path:
    return launch.folder.resolve() / files.attempt_name(launch.trial, launch.attempt)


def _record_and_start(launch: Launch, folder: Folder, lock: int) -> bool:
    """Start it, unless it has to wait for GPUs; whether it was started."""
    check_secrets(launch)
    with leased(gpus_of(launch)) as lease, ports_here(launch) as ports:
        if lease is None:
            return False
        _start_with(launch, folder, lock, lease, ports)
    return True


def _start_with(launch: Launch, folder: Folder, lock: int, lease: Lease, ports: HeldPorts) -> None:
    cores = [] if launch.vcpus is None else least_used_cores(launch.vcpus * launch.node_count)
    record = record_of(launch, str(folder.path), str(launch.working_directory.resolve()))
    record["nodes"] = nodes_here(launch, cores, ports.first)
    for node in record["nodes"] if lease.devices else ():
        node["environment"][VISIBLE] = lease.share_of(node["rank"], launch.node_count)
    checkpoint = checkpoint_of(launch)
    if checkpoint is not None:
        make_private_folder(checkpoint)
        record["checkpoint"] = str(checkpoint)
    held = [*lease.descriptors, *ports.descriptors]
    try:
        begin(record, folder, lock, secrets_and_tags(launch, str(folder.path), cores), held=held)
    except CannotBegin as reason:
        raise EngineTrouble(str(reason)) from None


def _signal_supervisor(attempt: WatchedAttempt, number: signal.Signals) -> None:
    supervisor = attempt.supervisor()
    if supervisor is not None:
        processes.send(supervisor, number)


def _becomes_true(is_true: Callable[[], bool], within_seconds: float) -> bool:
    deadline = time.monotonic() + within_seconds
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
