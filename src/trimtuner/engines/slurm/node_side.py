"""What runs on the nodes of a job: ``python3 machine.pyz VERB FOLDER``, each under a supervisor of its own.

The head is given the key of the attempt in a variable, and hands to the other nodes what they need by the input of
``srun``. The folder is on the shared file system, and all that is told is told by its files. Standard library only, and
Python 3.9: nothing is installed on the nodes.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from trimtuner.engines.supervising.files import EndRecord, Folder, LaunchRecord
    from trimtuner.engines.supervising.nodes import Meeting

KEY = "TRIMTUNER_KEY"  # which the job is given by sbatch, and the command is not
ORDER = "order.json"  # what a driver leaves in the folder for the head
FAILED_NODE = "failed-node.json"  # which other node failed, for which the head was ended
RUN = "run"
_NODE, _SUPERVISE = "node", "supervise"
_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # linux/prctl.h
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 5.0  # in which what another node has written is seen here
_OTHERS_END_SECONDS = 12.0  # their grace, and the way of the request to them
_LOST = "lost"  # the word of engines.protocol


class Order(TypedDict):
    """A launch, and how many machines it has."""

    record: LaunchRecord
    workers: int
    helpers: int
    port: int  # at which they meet


class _NodeOrder(TypedDict):
    """What the other nodes are told; the key of each is of no use in another's folder."""

    record: LaunchRecord
    places: list[str]
    workers: int
    port: int
    keys: list[str]


def main() -> None:
    """Do what the arguments say."""
    verb, folder, *rest = sys.argv[1:]
    _VERBS[verb](Path(folder), *rest)


def supervise(folder: Path, *descriptors: str) -> None:
    """Be the supervisor of an attempt on this node."""
    from trimtuner.engines.supervising import supervisor

    supervisor.main(folder, *map(int, descriptors))


def run(path: Path) -> None:
    """Be the head: run the command of the order in the folder, unless it was begun, to its end."""
    from trimtuner.engines.supervising.files import Folder

    _close_memory()
    folder = Folder(path, bytes.fromhex(os.environ.pop(KEY)))
    order = cast("Order | None", folder.get(ORDER))
    if order is None:
        sys.exit(f"{folder.path} has no order of ours; is it on a file system that this node shares?")
    told = _told_to_nodes(folder, order)
    count = len(told["places"]) if order["record"]["starts_on"] == "all" else 1
    others = [folder.of_node(rank) for rank in range(1, count)]
    with _Step(path, told, len(others)) as step:
        if _begin(folder, 0, told, step.start):
            sys.exit(0 if _sees_good_end(folder, others, step) else 1)


def run_node(path: Path) -> None:
    """Be another node, by what comes as input: run the command there to its end."""
    from trimtuner.engines.supervising.files import Folder

    _close_memory()
    told: _NodeOrder = json.load(sys.stdin)
    rank = int(os.environ["SLURM_PROCID"]) + 1
    folder = Folder(path / f"node-{rank:d}", bytes.fromhex(told["keys"][rank - 1]))
    folder.make()
    if _begin(folder, rank, told, lambda: None):
        _wait_for_end(folder, lambda: None)  # how it ended is in the folder: Slurm need not end the others for it


class _Step:
    """The other nodes of the job, under ``srun``; none where there are none."""

    def __init__(self, path: Path, told: _NodeOrder, count: int) -> None:
        self._path, self._told, self._count = path, told, count
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_at: float | None = None

    def __enter__(self) -> _Step:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self.is_running():
            self._process.terminate()
            self._process.wait()

    def start(self) -> None:
        """Have each begin; before the command does on the head, which could look for what it is not to know."""
        if not self._count:
            return
        cpus = os.environ.get("SLURM_CPUS_PER_TASK")
        words = ["srun", f"--nodes={self._count}", f"--ntasks={self._count}", "--ntasks-per-node=1", "--relative=1"]
        words += [
            "--cpu-bind=none",
            "--mpi=none",
            "--kill-on-bad-exit=0",
            *([f"--cpus-per-task={cpus}"] if cpus else []),
        ]
        words += [sys.executable, "-I", "-S", sys.argv[0], _NODE, str(self._path)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE)  # noqa: S603  (Slurm's own, and no shell)
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(self._told).encode())
            self._process.stdin.close()

    def is_running(self) -> bool:
        """Whether any of the nodes is at it."""
        return self._process is not None and self._process.poll() is None

    def is_settled(self) -> bool:
        """Whether all have left, for long enough that all they wrote is seen here."""
        if self.is_running():
            return False
        self._ended_at = self._ended_at or time.monotonic()
        return time.monotonic() - self._ended_at >= _SETTLE_SECONDS


def _close_memory() -> None:
    """Before anything of the user's runs: no key can be read there, and what is started stays where Slurm counts it."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A job that is ended is signalled with all its processes: the supervisor sees to the end, and we wait for it.
    signal.signal(signal.SIGTERM, lambda *_: None)


def _told_to_nodes(folder: Folder, order: Order) -> _NodeOrder:
    places = _places() if order["workers"] + order["helpers"] > 1 else ["127.0.0.1"]
    keys = [folder.of_node(rank).key.hex() for rank in range(1, len(places))]
    return _NodeOrder(record=order["record"], places=places, workers=order["workers"], port=order["port"], keys=keys)


def _places() -> list[str]:
    """The addresses of the job's nodes, in the order in which Slurm counts them."""
    names = _asked("scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]).split()
    told = _asked("scontrol", "--oneliner", "show", "node", os.environ["SLURM_JOB_NODELIST"])
    nodes = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in told.splitlines())
    addresses = {node.get("NodeName"): node.get("NodeAddr") for node in nodes}
    return [addresses.get(name) or name for name in names]


def _asked(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: S603  (no shell)


def _begin(folder: Folder, rank: int, told: _NodeOrder, prepare: Callable[[], None]) -> bool:
    """Begin the command; False where another job has, or where it is no longer wanted."""
    from trimtuner.engines.supervising import files
    from trimtuner.engines.supervising.nodes import Meeting
    from trimtuner.engines.supervising.starting import CannotBegin, begin, has_begun

    record, workers = told["record"], told["workers"]
    meeting = Meeting(tuple(told["places"][:workers]), tuple(told["places"][workers:]), told["port"])
    if record["starts_on"] == "all":
        record = cast("LaunchRecord", {**record, "nodes": [meeting.node(rank)]})
    lifeline, _held = os.pipe()  # when we are killed, the supervisor ends the command
    with files.start_lock(folder.path) as lock:
        if has_begun(folder) or folder.is_asked_to_stop():
            return False
        prepare()
        try:
            begin(record, folder, lock, _added(record, folder, meeting), lifeline)
        except CannotBegin as reason:
            sys.exit(str(reason))
    return True


def _added(record: LaunchRecord, folder: Folder, meeting: Meeting) -> dict[str, str]:
    """What the command finds beside what is handed on: secrets, what Slurm says of the job, machines, our tags."""
    from trimtuner.engines.supervising import processes
    from trimtuner.engines.supervising.nodes import addresses

    given = {
        name: value for name, value in os.environ.items() if name in record["secrets"] or name.startswith("SLURM_")
    }
    is_alone = len(meeting.workers) + len(meeting.helpers) == 1
    return {
        **given,
        **({} if is_alone else addresses(meeting.workers, meeting.helpers)),
        processes.STUDY: record["study"],
        processes.TRIAL: str(record["trial"]),
        processes.ATTEMPT: str(record["attempt"]),
        processes.FOLDER: str(folder.path),
    }


def _sees_good_end(folder: Folder, others: Sequence[Folder], step: _Step) -> bool:
    """Wait for the end on the head, which comes when another node fails, too; then that of the others."""
    from trimtuner.engines.supervising import files

    def look_at_others() -> None:
        failed = _failed_node(others, step)
        if failed is not None and folder.get(FAILED_NODE) is None:
            folder.put(FAILED_NODE, {**failed})
            folder.ask_to_stop()

    end = _wait_for_end(folder, look_at_others)
    deadline = time.monotonic() + _OTHERS_END_SECONDS
    for one in others:
        one.ask_to_stop()
    while step.is_running() and time.monotonic() < deadline and not all(one.get(files.END) for one in others):
        time.sleep(_LOOK_SECONDS)
    return end["kind"] is None and folder.get(FAILED_NODE) is None


def _failed_node(others: Sequence[Folder], step: _Step) -> EndRecord | None:
    """How another node failed, if one has; one that ended well is not missed."""
    from trimtuner.engines.supervising import files
    from trimtuner.engines.supervising.files import EndRecord

    for rank, one in enumerate(others, 1):
        end = cast("EndRecord | None", one.get(files.END))
        if end is not None and end["kind"] is not None:
            return EndRecord(kind=end["kind"], detail=f"node {rank:d}: {end['detail']}", seconds=end["seconds"])
        if end is None and step.is_settled():
            return EndRecord(kind=_LOST, detail=f"node {rank:d}: what supervised it is gone", seconds=0.0)
    return None


def _wait_for_end(folder: Folder, look: Callable[[], None]) -> EndRecord:
    """Until the end is written down: by the supervisor, or by us where that is gone."""
    from trimtuner.engines.supervising.attempt import WatchedAttempt

    attempt = WatchedAttempt(folder)
    while (end := attempt.settled_end()) is None:
        _collect_dead()
        look()
        time.sleep(_LOOK_SECONDS)
    return end


def _collect_dead() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


_VERBS: dict[str, Callable[..., None]] = {RUN: run, _NODE: run_node, _SUPERVISE: supervise}
