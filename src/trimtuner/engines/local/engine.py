"""The engine that runs commands on this machine."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from trimtuner.engines.minding import files, processes
from trimtuner.engines.minding.attempt import Attempt
from trimtuner.engines.minding.environment import (
    check_launch,
    check_secrets,
    least_used_cores,
    record_of,
    secrets_and_tags,
)
from trimtuner.engines.minding.minder import GRACE_SECONDS
from trimtuner.engines.minding.processes import Tagged
from trimtuner.engines.minding.starting import CannotBegin, begin, has_begun
from trimtuner.engines.protocol import EngineTrouble, Found, Launch, State
from trimtuner.errors import InputError
from trimtuner.private import make_private_folder

_PATIENCE_WITH_MINDER_SECONDS = GRACE_SECONDS + 5.0
_PATIENCE_WITH_KERNEL_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class LocalEngine:
    """Runs commands here. It holds no state: any number of drivers, one after the other or at once, see the same."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        """The folders of studies in which ``find`` looks, besides the processes that run."""
        if sys.platform != "linux":
            raise InputError(f"the local engine watches processes as only Linux shows them; this is {sys.platform!r}")
        self._folders = tuple(folder.resolve() for folder in folders)

    def start(self, launch: Launch) -> str:
        """Start the attempt, unless it was started already; its folder."""
        check_launch(launch)
        folder = _folder_of(launch)
        make_private_folder(folder)
        with files.start_lock(folder) as lock:
            if not has_begun(folder):
                _record_and_start(launch, folder, lock)
        return str(folder)

    def take_over(self, launch: Launch, handle: str) -> str:
        """By its folder, if that is here under whatever path; else it runs on another machine, and is lost to us."""
        folder = _folder_of(launch)
        return str(folder) if (folder / files.LAUNCH).exists() else handle

    def poll(self, handle: str) -> State:
        """How it goes; what it finds without a minder it kills, and tells as lost once that is confirmed."""
        return Attempt(Path(handle)).state()

    def stop(self, handle: str) -> None:
        """End it with everything it started, and return when that is confirmed."""
        attempt = Attempt(Path(handle))
        if attempt.end() is None:
            _ask_to_end(attempt)
        if not _becomes_true(lambda: _is_confirmed(attempt), _PATIENCE_WITH_KERNEL_SECONDS):
            raise EngineTrouble(f"the end of {handle!r} is not confirmed; look for its processes, then stop it again")

    def find(self, study: str | None = None) -> list[Found]:
        """Attempts in the folders, and others that run here."""
        running: dict[str, list[Tagged]] = {}
        for tagged in processes.tagged_processes():
            running.setdefault(tagged.folder, []).append(tagged)
        found = {one.handle: one for one in self._find_in_folders(running)}
        for handle, (tagged, *_) in running.items():
            one = Found(tagged.study, tagged.trial, tagged.attempt, handle, is_running=True)
            found.setdefault(handle, one)
        return [one for one in found.values() if study is None or one.study == study]

    def forget(self, handle: str) -> None:
        """Nothing is held for it; its folder stays, for whoever wants to read the log."""

    def _find_in_folders(self, running: Mapping[str, list[Tagged]]) -> Iterator[Found]:
        for path in sorted(path for folder in self._folders for path in folder.glob(f"*/{files.LAUNCH}")):
            attempt, handle = Attempt(path.parent), str(path.parent)
            launch = attempt.launch()
            if launch is not None:
                is_running = attempt.is_under_way() or _has_more_than_minder(attempt, running.get(handle, []))
                yield Found(launch["study"], launch["trial"], launch["attempt"], handle, is_running)


def _folder_of(launch: Launch) -> Path:
    return launch.folder.resolve() / f"{launch.trial:d}-{launch.attempt:d}"


def _record_and_start(launch: Launch, folder: Path, lock: int) -> None:
    check_secrets(launch)
    cores = [] if launch.vcpus is None else least_used_cores(launch.vcpus)
    record = record_of(launch, str(folder), str(launch.working_directory.resolve()), cores)
    try:
        begin(record, folder, lock, secrets_and_tags(launch, str(folder), cores))
    except CannotBegin as reason:
        raise EngineTrouble(str(reason)) from None


def _ask_to_end(attempt: Attempt) -> None:
    if attempt.folder.exists():
        (attempt.folder / files.STOP).touch()
    _signal_minder(attempt, signal.SIGTERM)
    if not _becomes_true(lambda: attempt.state().end is not None, _PATIENCE_WITH_MINDER_SECONDS):
        _signal_minder(attempt, signal.SIGKILL)  # it hangs; what it minded is then killed by its tags


def _is_confirmed(attempt: Attempt) -> bool:
    return attempt.state().end is not None and not attempt.kill_rest()


def _signal_minder(attempt: Attempt, number: signal.Signals) -> None:
    minder = attempt.minder()
    if minder is not None:
        processes.send(minder, number)


def _has_more_than_minder(attempt: Attempt, tagged: list[Tagged]) -> bool:
    """Whether there is more than a minder that has written down the end and is about to leave."""
    begun = attempt.begun()
    return any(begun is None or one.process.pid != begun["pid"] for one in tagged)


def _becomes_true(is_true: Callable[[], bool], within_seconds: float) -> bool:
    deadline = time.monotonic() + within_seconds
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
