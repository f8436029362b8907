"""What runs on the nodes, as Ray tasks: an attempt under its supervisor, news of it to the actor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
import time
from glob import escape
from pathlib import Path
from typing import cast

import ray
from ray.exceptions import RayError

from trimtuner.engines.ray.orders import Handle, Key, Work
from trimtuner.engines.supervising import files, processes
from trimtuner.engines.supervising.attempt import WatchedAttempt
from trimtuner.engines.supervising.files import Folder, LaunchRecord
from trimtuner.engines.supervising.mirror import News, follow
from trimtuner.engines.supervising.output import MOST_LOG_BYTES
from trimtuner.engines.supervising.packing import unpack
from trimtuner.engines.supervising.ports import meeting_here
from trimtuner.engines.supervising.starting import begin
from trimtuner.files import make_private_folder

_ENDED_AFTER_STOP_SECONDS = 75.0  # after a restart of the node, silence alone tells that a supervisor is gone
_UNUSED_FOR_SECONDS = 7 * 24 * 3600.0
_LOOK_SECONDS = 0.05
_RESCUE_LOCK = "rescue.lock"
_NODE = ".node-"


def run(actor: Handle, key: Key, rank: int) -> None:
    """Run a node of the attempt, unless the actor wants it no more, and tell the actor all of it."""
    node = ray.get_runtime_context().get_node_id()
    work = cast("Work | None", ray.get(actor.begin.remote(key, rank, node)))
    if work is None:
        return
    folder = Folder(_folder(work["place"]), work["key"])
    folder.path.mkdir(mode=0o700, parents=True)
    # Held by this process alone: when it dies, or its node with it, the supervisor notices and ends the command.
    lifeline, held = os.pipe()
    try:
        _begin(work, folder, lifeline)
        hand_on(actor, key, rank, folder)
    finally:
        os.close(held)


def follow_up(actor: Handle, key: Key, rank: int, place: str, seal_key: bytes) -> None:
    """Tell the actor the rest of an attempt whose task died on this node; its supervisor ends it."""
    hand_on(actor, key, rank, Folder(_folder(place), seal_key))


def hand_on(actor: Handle, key: Key, rank: int, folder: Folder) -> None:
    """Tell the actor what is new until the end, and clear away when it has heard all."""
    threading.Thread(target=_stop_when_asked, args=(actor, key, folder), daemon=True).start()
    for news in follow(folder, 0):
        try:
            if news.end is not None:
                _hand_on_logs(actor, key, folder)
            ray.get(actor.tell.remote(key, rank, tuple(news)))
        except RayError:
            _ask_to_end(folder)  # without an actor nobody would learn of the end; what is here, a driver may fetch
            return
    shutil.rmtree(folder.path, ignore_errors=True)


def _hand_on_logs(actor: Handle, key: Key, folder: Folder) -> None:
    """What other nodes printed that this machine stood in for."""
    for path in sorted(folder.path.glob(f"node-*/{files.LOG}")):
        rank, text = path.parent.name.removeprefix("node-"), files.read_regular(path, MOST_LOG_BYTES)
        if text is not None and rank.isdigit():
            ray.get(actor.tell.remote(key, int(rank), tuple(News(0, b"", 0, text, None))))


def rescue(study: str, key: Key, seal_key: bytes) -> list[News]:
    """End what runs here of an attempt that has lost its actor; all that it told, if it was here."""
    places = _folder(f"{escape(place_of(study, key))}-*")
    found = [
        (is_head, _rescued_alone(folder))
        for path in sorted(places.parent.glob(places.name))
        for is_head, folder in [_as_sealed(path, seal_key)]
    ]
    return [news for is_head, news in found if is_head and news is not None]


def place_of(study: str, key: Key) -> str:
    """How the names of an attempt's folders begin."""
    return f"{study}-{files.attempt_name(*key)}"


def node_place(place: str, rank: int) -> str:
    """The name of the folder of one of an attempt's nodes; that of the head is the attempt's."""
    return f"{place}{_NODE}{rank:d}" if rank else place


def _as_sealed(path: Path, seal_key: bytes) -> tuple[bool, Folder]:
    """Whether it is the head's, and the folder with its own key."""
    _, mark, rank = path.name.partition(_NODE)
    head = Folder(path, seal_key)
    return not mark, Folder(path, head.of_node(int(rank)).key) if mark and rank.isdigit() else head


def _begin(work: Work, folder: Folder, lifeline: int) -> None:
    os.environ.pop("PYTHONBREAKPOINT", None)  # Ray's own debugger; commands would inherit it
    record, added = work["record"], {**work["added"], processes.FOLDER: str(folder.path)}
    if work["digest"]:
        record["working_directory"] = str(_unpacked(work))
    if record["checkpoint"] is not None:
        make_private_folder(Path(record["checkpoint"]))  # it is there already, where the file system is shared
    try:
        with files.start_lock(folder.path) as lock, meeting_here(record["nodes"]) as (nodes, held):
            begin(cast("LaunchRecord", {**record, "nodes": nodes}), folder, lock, added, lifeline, held)
    finally:
        os.close(lifeline)


def _unpacked(work: Work) -> Path:
    """The working directory as it was sent: once for each content, and shared by the attempts on this node."""
    folder = _private_root() / "sent" / work["digest"]
    if not folder.exists():
        _drop_what_is_unused()
        unpack(ray.get(work["parcel"][0]), folder)
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder)
    return folder


def _drop_what_is_unused() -> None:
    """What was sent long ago, and what attempts left here that lost their actor with nobody to fetch it."""
    old = [path for path in _private_root().glob("*/*") if time.time() - path.stat().st_mtime > _UNUSED_FOR_SECONDS]
    for path in old:
        if not processes.living_processes_of(str(path)):
            shutil.rmtree(path, ignore_errors=True)


def _stop_when_asked(actor: Handle, key: Key, folder: Folder) -> None:
    try:
        is_asked = bool(ray.get(actor.stop_asked.remote(key)))
    except RayError:
        is_asked = True  # nobody is left who could ask
    if is_asked:
        _ask_to_end(folder)


def _ask_to_end(folder: Folder) -> None:
    with contextlib.suppress(FileNotFoundError):  # it has ended, and all is told
        folder.ask_to_stop()


def _rescued_alone(folder: Folder) -> News | None:
    """One at a time: a machine with several nodes has several looking. Nothing where another has cleared away."""
    try:
        descriptor = os.open(folder.path / _RESCUE_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    with open(descriptor, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _rescued(folder) if (folder.path / _RESCUE_LOCK).exists() else None


def _rescued(folder: Folder) -> News:
    _ask_to_end(folder)
    attempt, deadline = WatchedAttempt(folder), time.monotonic() + _ENDED_AFTER_STOP_SECONDS
    while (end := attempt.settled_end()) is None or attempt.kill_rest():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{str(folder.path)!r} does not end; look for its processes")
        time.sleep(_LOOK_SECONDS)
    news = [*follow(folder, 0)]
    reports, log = (b"".join(getattr(one, name) for one in news) for name in ("reports", "log"))
    shutil.rmtree(folder.path, ignore_errors=True)
    return News(0, reports, 0, log, end)


def _folder(place: str) -> Path:
    return _private_root() / "attempts" / place


def _private_root() -> Path:
    """A folder of this node that only we may read, and that nobody else can have put there."""
    root = Path(tempfile.gettempdir()) / f"trimtuner-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise RuntimeError(f"{str(root)!r} is not a private folder of ours; remove it")
    return root
