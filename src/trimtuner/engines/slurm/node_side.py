"""What runs on the nodes of a job: ``python3 machine.pyz VERB FOLDER``, with the key of the attempt in a variable.

The folder is on the shared file system, and all that is told is told by its files. Standard library only, and Python
3.9: nothing is installed on the nodes.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from trimtuner.engines.supervising.files import Folder, LaunchRecord

KEY = "TRIMTUNER_KEY"  # which the job is given by sbatch, and the command is not
RUN = "run"
_SUPERVISE = "supervise"
_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # linux/prctl.h
_LOOK_SECONDS = 0.1


def main() -> None:
    """Do what the arguments say."""
    verb, folder, *rest = sys.argv[1:]
    if verb == _SUPERVISE:
        from trimtuner.engines.supervising import supervisor

        supervisor.main(Path(folder), *map(int, rest))
    else:
        sys.exit(run(Path(folder)))


def run(path: Path) -> int:
    """Run the command of the launch in the folder, unless it was begun, to its end; 0 if that was a good one."""
    from trimtuner.engines.supervising.files import Folder

    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # before anything of the user's runs: the key cannot be read in our memory
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the supervisor stays below us, where Slurm counts and ends it
    folder = Folder(path, bytes.fromhex(os.environ.pop(KEY)))
    # A job that is ended is signalled with all its processes: the supervisor sees to the end, and we wait for it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    lifeline, _held = os.pipe()  # when we are killed, the supervisor ends the command
    return _wait_for_end(folder) if _begin(folder, lifeline) else 0


def _begin(folder: Folder, lifeline: int) -> bool:
    """Begin the command; False where another job has, or where it is no longer wanted."""
    from trimtuner.engines.supervising import files
    from trimtuner.engines.supervising.starting import CannotBegin, begin, has_begun

    record = cast("LaunchRecord | None", folder.get(files.LAUNCH))
    if record is None:
        sys.exit(f"{folder.path} has no launch of ours; is it on a file system that this node shares?")
    with files.start_lock(folder.path) as lock:
        if has_begun(folder) or folder.is_asked_to_stop():
            return False
        try:
            begin(record, folder, lock, _added(record, folder), lifeline)
        except CannotBegin as reason:
            sys.exit(str(reason))
    return True


def _added(record: LaunchRecord, folder: Folder) -> dict[str, str]:
    """What the command finds beside what is handed on: secrets, what Slurm says of the job, our tags."""
    from trimtuner.engines.supervising import processes

    given = {name: value for name, value in os.environ.items() if name in record["secrets"] or name[:6] == "SLURM_"}
    return {
        **given,
        processes.STUDY: record["study"],
        processes.TRIAL: str(record["trial"]),
        processes.ATTEMPT: str(record["attempt"]),
        processes.FOLDER: str(folder.path),
    }


def _wait_for_end(folder: Folder) -> int:
    """Until the end is written down: by the supervisor, or by us where that is gone."""
    from trimtuner.engines.supervising.attempt import WatchedAttempt

    attempt = WatchedAttempt(folder)
    while (end := attempt.settled_end()) is None:
        _collect_dead()
        time.sleep(_LOOK_SECONDS)
    return 0 if end["kind"] is None else 1


def _collect_dead() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
