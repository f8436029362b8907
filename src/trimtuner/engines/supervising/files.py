"""The folder of an attempt: which file says what, and how it is written so that a crash leaves all or none of it.

The command can write into the folder too. So everything that its supervisor, or whoever closes the attempt, writes
there carries a seal, made with a key that the command is never given; what has none is not read. Nothing but ordinary
files of bounded size is opened, and never through a link.
"""

from __future__ import annotations

import errno
import fcntl
import hmac
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypedDict

from trimtuner.files import make_private_folder

LAUNCH = "launch.json"  # what is to be done; written first, and without the values of secrets
LOCK = "lock"  # held from before the supervisor is started until it has begun
BEGUN = "begun.json"  # the supervisor's first act, before it runs the command
ALIVE = "alive"  # seconds after the start, written anew every BEAT_SECONDS
REPORTS = "reports.jsonl"
LOG = "log.txt"
STOP = "stop"  # its presence asks the supervisor to end the command
END = "end.json"
SUPERVISOR_ERRORS = "minder.txt"  # empty unless the supervisor itself fails

_OF_SUPERVISOR = (ALIVE, BEGUN, SUPERVISOR_ERRORS, LOG, REPORTS, END)  # all that a supervisor makes
BEAT_SECONDS = 1.0
KEY_BYTES = 32
_SEAL_CHARACTERS = 64
_MOST_BYTES = 8 * 1024 * 1024  # of any file but reports and log
_PATIENCE_WITH_LOCK_SECONDS = 60.0
_LOOK_SECONDS = 0.02


class NodeRecord(TypedDict):
    """One machine of an attempt, or what stands in for one: what the command that starts there is told of it."""

    rank: int  # 0: the head, which alone reports
    values: dict[str, str]  # of placeholders that are known only now
    environment: dict[str, str]
    cores: list[int]  # empty: all


class LaunchRecord(TypedDict):
    """launch.json: what is to be run, where, and how long at most."""

    study: str
    trial: int
    attempt: int
    command: list[str]
    working_directory: str
    environment: dict[str, str]
    secrets: list[str]  # names
    limit: float
    memory_bytes: int | None  # of each node
    metrics_file: str | None
    starts_on: Literal["head", "all"]
    nodes: list[NodeRecord]  # the processes of one supervisor: all of the attempt, or the one of its machine
    repeat: int  # which of the runs of the trial
    checkpoint: str | None  # the folder that a retry gets back, on the machine that runs the command


class BegunRecord(TypedDict):
    """begun.json: which process supervises the attempt, and since when."""

    numbering: str  # what gives processes their numbers: see ``processes.numbering``
    pid: int
    started_ticks: int
    monotonic: float


class EndRecord(TypedDict):
    """end.json: how the attempt ended, and how long it ran."""

    kind: str | None
    detail: str
    seconds: float


def attempt_name(trial: int, attempt: int) -> str:
    """What the folder of an attempt is called; its key is made of that too."""
    return f"{trial:d}-{attempt:d}"


def numbers_in(name: str) -> tuple[int, int]:
    """Trial and attempt, as the name of a folder says; a ValueError where it is no attempt's."""
    trial, _, attempt = name.partition("-")
    return int(trial), int(attempt)


def folder_at(path: Path, secret: bytes) -> Folder:
    """The folder of an attempt; its key follows from its name, and from the secret that its study has in the record."""
    return Folder(path, hmac.digest(secret, path.name.encode(), "sha256"))


def log_of(study: Path, trial: int, attempt: int) -> Path:
    """Where the output of an attempt is kept, below the folder of its study."""
    return study / attempt_name(trial, attempt) / LOG


class Folder:
    """The folder of one attempt, and the key to what is sealed in it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self.key = path, key

    def is_there(self) -> bool:
        """Whether it is a folder, and no link to one."""
        try:
            return stat.S_ISDIR(os.lstat(self.path).st_mode)
        except OSError:
            return False

    def is_untouched(self) -> bool:
        """Whether it is as a starter leaves it, and no supervisor has written anything into it yet.

        The lock tells it from one that was removed, and made anew by its supervisor to tell the end.
        """
        names = set(os.listdir(self.path)) if self.is_there() else set()
        return LOCK in names and names.isdisjoint(_OF_SUPERVISOR)

    def make(self) -> None:
        """Make it, unless it is there; a file, link or pipe of its name is removed."""
        if not self.is_there():
            # Not renamed: another process may have made the folder by now, and that cannot be unlinked.
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                os.unlink(self.path)
            make_private_folder(self.path)

    def put(self, name: str, content: Mapping[str, object]) -> None:
        """Write a file durably and whole. A sealed one that is there already stays, anything else is put aside."""
        try:
            self._put(name, content)
        except PermissionError:
            os.chmod(self.path, 0o700)  # it is ours; the command may have closed it
            self._put(name, content)

    def put_launch(self, record: LaunchRecord) -> None:
        """Write down what is to be done, so that a crash of the machine leaves it, and the folder itself."""
        self.put(LAUNCH, {**record})
        for parent in (self.path.parent, self.path.parent.parent):
            with suppress(PermissionError):  # a parent that is not ours was not made by us
                sync_folder(parent)

    def get(self, name: str) -> dict[str, object] | None:
        """What a file says; None where there is none, or none of ours."""
        content = read_regular(self.path / name, _MOST_BYTES)
        return None if content is None else self.unsealed(name, content.removesuffix(b"\n"))

    def sealed(self, name: str, content: Mapping[str, object]) -> bytes:
        """One line that nobody can write who does not have the key."""
        return self._line(name, json.dumps(content, allow_nan=False).encode())

    def unsealed(self, name: str, line: bytes) -> dict[str, object] | None:
        """What a sealed line says, without its end; None for any other."""
        text = self._text(name, line)
        content: dict[str, object] | None = None if text is None else json.loads(text)
        return content

    def beat(self, seconds: float) -> None:
        """Say that the attempt lived this long; of constant length, so that a reader never sees half of it."""
        descriptor = os.open(self.path / ALIVE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            os.pwrite(descriptor, self._line(ALIVE, b"%020.6f" % seconds), 0)
        finally:
            os.close(descriptor)

    def last_beat(self) -> float:
        """How long it is known to have lived; 0 where nothing says so."""
        line = (read_regular(self.path / ALIVE, _MOST_BYTES) or b"").removesuffix(b"\n")
        return float(self._text(ALIVE, line) or 0.0)

    def of_node(self, rank: int) -> Folder:
        """That of another node than the head; its seals are no use in any other folder."""
        name = f"node-{rank:d}"
        return Folder(self.path / name, hmac.digest(self.key, name.encode(), "sha256"))

    def ask_to_stop(self) -> None:
        """Ask the supervisor to end the command."""
        if self.is_there():
            self.put(STOP, {})

    def is_asked_to_stop(self) -> bool:
        """Whether somebody did who may."""
        return self.get(STOP) is not None

    def _line(self, name: str, text: bytes) -> bytes:
        return self._seal(name, text) + b" " + text + b"\n"

    def _text(self, name: str, line: bytes) -> bytes | None:
        seal, text = line[:_SEAL_CHARACTERS], line[_SEAL_CHARACTERS + 1 :]
        return text if hmac.compare_digest(seal, self._seal(name, text)) else None

    def _seal(self, name: str, text: bytes) -> bytes:
        return hmac.new(self.key, name.encode() + b"\n" + text, "sha256").hexdigest().encode()

    def _put(self, name: str, content: Mapping[str, object]) -> None:
        path = self.path / name
        draft = path.with_name(f"{name}.{os.urandom(8).hex()}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(draft, flags, 0o600), "wb") as file:
                file.write(self.sealed(name, content))
                file.flush()
                os.fsync(file.fileno())
            self._give_name(draft, path)
        except OSError as error:  # where a disk is full, the system does not say
            raise type(error)(error.errno, error.strerror, str(path)) from None
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(self.path)

    def _give_name(self, draft: Path, path: Path) -> None:
        """Unlike a rename, a link never replaces what somebody else has written meanwhile."""
        while True:
            try:
                return os.link(draft, path)
            except FileExistsError:
                if self.get(path.name) is not None:
                    return None
                _put_aside(path)


def read_regular(path: Path, most_bytes: int, begin: int = 0) -> bytes | None:
    """An ordinary file's content, from a place on, as far as it may be; None for whatever else has the name.

    Opening a pipe could take for ever, reading a device all memory, and a link may lead to what is not ours to show.
    """
    descriptor = open_regular(path)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as file:
        file.seek(begin)
        return file.read(most_bytes)


def open_regular(path: Path) -> int | None:
    """An ordinary file, open to be read; None for whatever else has the name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.EIO):  # then it may well be there
            raise
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def start_lock(folder: Path, patience_seconds: float = _PATIENCE_WITH_LOCK_SECONDS) -> Iterator[int]:
    """Wait for the right to start the attempt, and hold it; a TimeoutError where somebody keeps it for longer."""
    descriptor = _open_lock(folder)
    try:
        deadline = time.monotonic() + patience_seconds
        while not try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"another process holds {str(folder / LOCK)!r}; end it, or remove the folder")
            time.sleep(_LOOK_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process if nobody else has; whether it is ours."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(folder: Path) -> int:
    path = folder / LOCK
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            _put_aside(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _put_aside(path: Path) -> None:
    """Give what has taken the name of a file of ours another one: it may be looked at, and is in nobody's way."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.rename(path.with_name(f"{path.name}.not-ours-{os.urandom(4).hex()}"))
