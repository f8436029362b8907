"""Ray clusters of our own, each on this machine alone: sets of processes that outlive the driver, so that trials do.

Whoever needs one, driver or actor, holds a shared lock on its file of users; who leaves and finds nobody else ends it.
Run as a module with the folder of a cluster, it ends that as soon as nobody uses it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray.surroundings import TOKEN_FILE
from trimtuner.engines.supervising import processes

TAG = "TRIMTUNER_RAY"  # in the environment of every process of a cluster of ours: its folder
_NOTE, _LOCK = "ray.json", "ray.lock"  # in the folder of trials: where the cluster is; who looks or starts
_TOKEN, _USERS, _RAYS = "token", "users", "r"  # in the folder of the cluster
_OBJECT_STORE_BYTES = 256 * 1024 * 1024
_STARTED_WITHIN_SECONDS = 120.0
_PATIENCE_WITH_USERS_SECONDS = 20.0  # who is about to leave, a process that ends


class OwnCluster(NamedTuple):
    """A cluster of our own, on this machine."""

    folder: Path
    address: str

    @property
    def users(self) -> Path:
        """The file that its users lock."""
        return self.folder / _USERS


def find_own(folder: Path) -> OwnCluster | None:
    """The running cluster of the folder of trials, held for this process; None when there is none."""
    if not (folder / _NOTE).exists():
        return None
    with _locked(folder):
        return _find_and_hold(folder)


def find_or_start_own(folder: Path) -> OwnCluster:
    """The same, started if need be."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder):
        found = _find_and_hold(folder)
        if found is not None:
            return found
        started = _start()
        _hold(started)
        draft = folder / f"{_NOTE}.new"
        draft.write_text(json.dumps({"folder": str(started.folder), "address": started.address}), encoding="utf-8")
        draft.replace(folder / _NOTE)
        return started


def use_token_of(cluster: OwnCluster) -> None:
    """Have this process show the cluster's token."""
    os.environ[TOKEN_FILE] = str(cluster.folder / _TOKEN)


def end_if_unused(folder: Path) -> bool:
    """End a cluster of ours with all of its processes, if nobody uses it any more; whether that was so."""
    try:
        users = os.open(folder / _USERS, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while running := _processes_of(folder):
            processes.kill(running)
            time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(users)
    return True


def end_soon(users: Path) -> None:
    """Have another process end the cluster when those who are about to leave have left."""
    environment = {name: value for name, value in os.environ.items() if name != TAG}  # else it would end itself
    subprocess.run(  # noqa: S603  (our own module, and no shell)
        [sys.executable, "-P", "-m", "trimtuner.engines.ray.own", str(users.parent)],
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )


def _find_and_hold(folder: Path) -> OwnCluster | None:
    try:
        noted = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    cluster = OwnCluster(Path(noted["folder"]), noted["address"])
    if str(cluster.folder) in _held:
        return cluster
    if not cluster.users.exists() or not _is_listening(cluster.address):
        end_if_unused(cluster.folder)  # what is left of it
        return None
    _hold(cluster)
    return cluster if cluster.users.exists() else None  # whoever was ending it has done so by now


def _start() -> OwnCluster:
    # Short, since the names of sockets below it must not be longer than 107 letters.
    folder = Path(tempfile.mkdtemp(prefix="trimtuner-ray-"))
    (folder / _USERS).touch(mode=0o600)
    with open(os.open(folder / _TOKEN, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
    started = subprocess.run(  # noqa: S603  (Ray's own command line, and no shell)
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--port=0", *_options(folder)],
        env={**os.environ, TOKEN_FILE: str(folder / _TOKEN), TAG: str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_STARTED_WITHIN_SECONDS,
        check=False,
        start_new_session=True,
    )
    if started.returncode:
        end_if_unused(folder)
        raise EngineTrouble(f"no Ray cluster could be started here: {started.stdout.strip().rpartition(chr(10))[2]}")
    return OwnCluster(folder, (folder / _RAYS / "ray_current_cluster").read_text(encoding="ascii").strip())


def _options(folder: Path) -> list[str]:
    return [
        "--node-ip-address=127.0.0.1",
        f"--num-cpus={len(os.sched_getaffinity(0))}",
        f"--object-store-memory={_OBJECT_STORE_BYTES}",
        f"--temp-dir={folder / _RAYS}",  # which Ray opens for everybody, so it is inside of what is closed
        "--include-dashboard=false",
        "--include-log-monitor=false",
        "--no-monitor",
        "--disable-usage-stats",
    ]


_held: dict[str, int] = {}  # folder of a cluster of ours: the lock that says that this process uses it


def _hold(cluster: OwnCluster) -> None:
    users = os.open(cluster.users, os.O_RDWR)
    fcntl.flock(users, fcntl.LOCK_SH)
    _held[str(cluster.folder)] = users
    atexit.register(_let_go, cluster)


def _let_go(cluster: OwnCluster) -> None:
    os.close(_held.pop(str(cluster.folder)))
    end_if_unused(cluster.folder)


def _processes_of(folder: Path) -> list[processes.Process]:
    tag = f"{TAG}={folder}".encode()
    return [one for one in processes.all_processes() if one.is_alive and tag in _environment(one.pid).split(b"\0")]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=5.0):
        return True
    return False


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with open(os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # Ray ends the children of an actor with it, but does not know of grandchildren
    left, deadline = Path(sys.argv[1]), time.monotonic() + _PATIENCE_WITH_USERS_SECONDS
    while not end_if_unused(left) and time.monotonic() < deadline and left.exists():
        time.sleep(0.1)
