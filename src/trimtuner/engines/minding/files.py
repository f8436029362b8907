"""The folder of an attempt: which file says what, and how it is written so that a crash leaves all or none of it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

LAUNCH = "launch.json"  # what is to be done; written first, and without the values of secrets
LOCK = "lock"  # held from before the minder is started until it has begun
BEGUN = "begun.json"  # the minder's first act, before it runs the command
ALIVE = "alive"  # seconds after the start, written anew every BEAT_SECONDS
REPORTS = "reports.jsonl"
LOG = "log.txt"
STOP = "stop"  # its presence asks the minder to end the command
END = "end.json"
MINDER_ERRORS = "minder.txt"  # empty unless the minder itself fails

BEAT_SECONDS = 1.0


class LaunchRecord(TypedDict):
    """launch.json."""

    study: str
    trial: int
    attempt: int
    command: list[str]
    working_directory: str
    environment: dict[str, str]
    secrets: list[str]  # names
    limit: float
    cores: list[int]  # empty: all
    memory_bytes: int | None
    metrics_file: str | None


class BegunRecord(TypedDict):
    """begun.json: which process minds the attempt, and since when."""

    host: str
    boot: str
    pid: int
    started_ticks: int
    monotonic: float


class EndRecord(TypedDict):
    """end.json."""

    kind: str | None
    detail: str
    seconds: float


def write_once(path: Path, content: Mapping[str, object]) -> None:
    """Write a JSON file durably and whole; when it is there already, the first one stays."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, it never replaces what somebody else has written meanwhile
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # where a disk is full, the system does not say
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def read_text(path: Path) -> str | None:
    """The file's text, or None when there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_beat(folder: Path, seconds: float) -> None:
    """Say that the attempt lived this long; of constant length, so that a reader never sees half of it."""
    descriptor = os.open(folder / ALIVE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, b"%020.6f\n" % seconds, 0)
    finally:
        os.close(descriptor)


@contextmanager
def start_lock(folder: Path) -> Iterator[int]:
    """Wait for the right to start the attempt, and hold it."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def start_lock_if_free(folder: Path) -> Iterator[bool]:
    """Hold the right to start the attempt if nobody else does; whether we hold it."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield try_lock(descriptor)
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process if nobody else has; whether it is ours."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
