"""The engine that runs commands on this machine."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from trimtuner.engines.local import files, processes
from trimtuner.engines.local.attempt import Attempt
from trimtuner.engines.local.environment import (
    environment_of_launch,
    environment_of_minder,
    least_used_cores,
    secrets_of,
)
from trimtuner.engines.local.files import LaunchRecord
from trimtuner.engines.local.minder import GRACE_SECONDS
from trimtuner.engines.local.output import SHORTEST_SECRET
from trimtuner.engines.local.processes import Tagged
from trimtuner.engines.protocol import EngineTrouble, Found, Launch, State
from trimtuner.errors import InputError

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
        _check(launch)
        folder = launch.folder.resolve() / f"{launch.trial:d}-{launch.attempt:d}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.start_lock(folder) as lock:
            if not (folder / files.BEGUN).exists() and not (folder / files.END).exists():
                _record_and_start(launch, folder, lock)
        return str(folder)

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

    def reap(self, study: str, known: Iterable[tuple[int, int]]) -> list[Found]:
        """End what runs for the study although its record does not know the (trial, attempt); what was ended."""
        spared = set(known)
        unknown = [one for one in self.find(study) if one.is_running and (one.trial, one.attempt) not in spared]
        for one in unknown:
            self.stop(one.handle)
        return unknown

    def _find_in_folders(self, running: Mapping[str, list[Tagged]]) -> Iterator[Found]:
        for path in sorted(path for folder in self._folders for path in folder.glob(f"*/{files.LAUNCH}")):
            attempt, handle = Attempt(path.parent), str(path.parent)
            launch = attempt.launch()
            if launch is not None:
                is_running = attempt.is_under_way() or _has_more_than_minder(attempt, running.get(handle, []))
                yield Found(launch["study"], launch["trial"], launch["attempt"], handle, is_running)


def _check(launch: Launch) -> None:
    if not launch.command:
        raise InputError("the command is empty; it is a list of words, the program first")
    if not 0 < launch.limit < math.inf:
        raise InputError(f"a limit of {launch.limit} seconds cannot be kept; it must be above 0 and finite")
    if launch.metrics_file is not None and not _stays_inside(PurePath(launch.metrics_file)):
        raise InputError(f"the file of metrics {launch.metrics_file!r} must lie inside the working directory")


def _check_secrets(launch: Launch) -> None:
    written = (*launch.command, *launch.environment.values())
    for name, value in secrets_of(launch).items():
        if len(value) >= SHORTEST_SECRET and any(value in text for text in written):
            raise InputError(f"the command or its environment holds the value of the secret {name!r}; use its name")


def _stays_inside(path: PurePath) -> bool:
    return not path.is_absolute() and ".." not in path.parts and path.name != ""


def _record_and_start(launch: Launch, folder: Path, lock: int) -> None:
    _check_secrets(launch)
    cores = [] if launch.vcpus is None else least_used_cores(launch.vcpus)
    files.write_once(folder / files.LAUNCH, {**_record(launch, folder, cores)})
    for parent in (folder.parent, folder.parent.parent):
        files.sync_folder(parent)
    _start_minder(folder, lock, environment_of_minder(launch, folder, cores))


def _record(launch: Launch, folder: Path, cores: list[int]) -> LaunchRecord:
    return LaunchRecord(
        study=launch.study,
        trial=launch.trial,
        attempt=launch.attempt,
        command=list(launch.command),
        working_directory=str(launch.working_directory.resolve()),
        environment=environment_of_launch(launch, folder),
        secrets=list(launch.secrets),
        limit=launch.limit,
        cores=cores,
        memory_bytes=launch.memory_bytes,
        metrics_file=launch.metrics_file,
    )


def _start_minder(folder: Path, lock: int, environment: dict[str, str]) -> None:
    """Start the minder and wait until it has begun.

    It inherits the lock, so that nobody starts a second one even if we die right now. It closes its output when it has
    begun. -P and the root folder: no module of the working directory can take the place of one of ours.
    """
    starter = subprocess.run(  # noqa: S603  (our own module, and no shell)
        [sys.executable, "-P", "-m", "trimtuner.engines.local.minder", str(folder), str(lock)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd="/",
        env=environment,
        pass_fds=[lock],
        start_new_session=True,
    )
    if starter.stdout != b"begun":
        reason = starter.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise EngineTrouble(f"the process that minds {str(folder)!r} could not begin: {reason}")


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
