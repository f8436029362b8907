"""What holds all that a command starts, however it hides: a control group, else a PID namespace, else nothing but tags.

Both are named after the attempt's folder, by the kernel and not in a file, so that whoever knows the folder finds what
is left of an attempt although its supervisor is dead and its files are gone. Run as a program, this module tries on a
process of its own what holds here, and says it: ``doctor`` asks it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from trimtuner.engines.supervising import processes
from trimtuner.engines.supervising.processes import Process

CONTROL_GROUP, PID_NAMESPACE, TAGS_ONLY = "cgroup v2", "PID namespace", "tags only"

_PREFIX = "trimtuner-"
_FENCED = "user.trimtuner"  # attribute of a control group: whose attempt it holds
_SET_NAME = 15  # linux/prctl.h
_NEW_MOUNTS, _NEW_PROCESS_NUMBERS = 0x00020000, 0x20000000  # linux/sched.h
_NO_SETUID_DEVICES_PROGRAMS, _RECURSIVE, _FOLLOWING = 2 | 4 | 8, 1 << 14, 1 << 19  # linux/mount.h


class FencedAttempt(NamedTuple):
    """The attempt that a fence is for."""

    study: str
    trial: int
    attempt: int
    folder: str


class Fence(Protocol):
    """What holds the processes of one attempt."""

    @property
    def kind(self) -> str:
        """In a word or two."""

    def enter(self) -> None:
        """Take the calling process, which is about to become the command, inside."""

    def join(self) -> None:
        """Take one more process inside, about to become a command too, after the first has entered."""

    def kill(self) -> bool:
        """Kill all that is inside; whether there was anything. What is empty is removed."""

    def code_of_command(self, code: int) -> int:
        """How the command ended, when the process that was started and entered has ended with this code."""


def make(fenced: FencedAttempt) -> Fence:
    """The best fence that may be made here, for a command that the calling process starts next."""
    made = (way(fenced) for way in WAYS)
    return next((fence for fence in made if fence is not None), _NoFence())


def kill(folder: str) -> bool:
    """Kill what the fence of an attempt holds, whoever made it; whether there was anything."""
    name = _name_of_group(folder)
    held = [_ControlGroup(path).kill() for path in _groups() if os.path.basename(path) == name]
    return any([*held, _kill_first_processes(_name_of_first_process(folder))])


def held_attempts() -> list[FencedAttempt]:
    """Attempts of which control groups of this machine hold a living process; a namespace ends with its supervisor."""
    found = (_fenced_attempt(path) for path in _groups() if _is_populated(path))
    return [fenced for fenced in found if fenced is not None]


def kind_here() -> str:
    """What holds commands on this machine: tried out, in a process of its own."""
    words = [sys.executable, "-P", "-m", __name__]
    done = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603  (ourselves)
    return done.stdout.strip() or TAGS_ONLY  # what cannot even be tried holds nothing


class _NoFence(NamedTuple):
    """Where neither may be made: what is left behind is known by its parents and by the tags in its environment."""

    kind: str = TAGS_ONLY

    def enter(self) -> None:
        pass

    def join(self) -> None:
        pass

    def kill(self) -> bool:
        return False

    def code_of_command(self, code: int) -> int:
        return code


class _ControlGroup(NamedTuple):
    """A control group below the supervisor's own, so that whatever limits the supervisor limits the command too."""

    path: str
    kind: str = CONTROL_GROUP

    def enter(self) -> None:
        # What cannot be entered is no reason not to train; doctor tries the same, and tells.
        with contextlib.suppress(OSError):
            _write(f"{self.path}/cgroup.procs", b"0")

    def join(self) -> None:
        self.enter()

    def kill(self) -> bool:
        if not _is_populated(self.path):
            return not _remove(self.path)
        with contextlib.suppress(OSError):  # not ours to kill: whoever waits for the end will see that it lives
            _write(f"{self.path}/cgroup.kill", b"1")  # all at once: nobody can fork faster than we look
        return True

    def code_of_command(self, code: int) -> int:
        return code


class _PidNamespace(NamedTuple):
    """A PID namespace: when its first process ends, which is ours, the kernel kills all others, and lets it go last."""

    name: bytes
    reading: int
    writing: int
    kind: str = PID_NAMESPACE

    def enter(self) -> None:
        _show_own_processes()
        _libc.prctl(_SET_NAME, self.name, 0, 0, 0)
        command = os.fork()
        if command != 0:
            _be_first_process(command, self.writing)

    def join(self) -> None:
        _show_own_processes()  # it is inside from its birth, as is every child of who made the namespace

    def kill(self) -> bool:
        return _kill_first_processes(self.name)

    def code_of_command(self, code: int) -> int:
        with contextlib.suppress(BlockingIOError):  # nothing was told: the first process was killed
            return os.waitstatus_to_exitcode(int(os.read(self.reading, 16)))
        return code


def make_control_group(fenced: FencedAttempt) -> Fence | None:
    """A control group of version 2 as the kernel has it since 5.14; None where none may be made."""
    own = _own_group()
    if own is None or not os.access(f"{own}/cgroup.procs", os.W_OK):  # out of which the command moves
        return None
    path = f"{own}/{_name_of_group(fenced.folder)}"
    try:
        with contextlib.suppress(FileExistsError):  # left by a supervisor that was killed before it began
            os.mkdir(path)
    except OSError:
        return None
    try:
        os.setxattr(path, _FENCED, json.dumps(fenced).encode())
        is_usable = os.access(f"{path}/cgroup.kill", os.W_OK)
    except OSError:
        is_usable = False
    if is_usable:
        return _ControlGroup(path)
    _remove(path)
    return None


def make_pid_namespace(fenced: FencedAttempt) -> Fence | None:
    """A namespace of which the next child of the calling process is the first process; None where it may not be made.

    Without a user namespace, in which the command would be somebody else: no setuid program works there.
    """
    if not _may_show_own_processes() or _libc.unshare(_NEW_PROCESS_NUMBERS) != 0:
        return None
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    return _PidNamespace(_name_of_first_process(fenced.folder), reading, writing)


WAYS: tuple[Callable[[FencedAttempt], Fence | None], ...] = (make_control_group, make_pid_namespace)


def _digest(folder: str) -> str:
    # A container may have the same folder, and be seen from here: it has other numbers of processes.
    numbers = os.stat("/proc/self/ns/pid").st_ino
    return hashlib.sha256(f"{numbers} {folder}".encode("utf-8", "surrogateescape")).hexdigest()


def _name_of_group(folder: str) -> str:
    return f"{_PREFIX}{_digest(folder)[:24]}"


def _name_of_first_process(folder: str) -> bytes:
    return f"tt-{_digest(folder)[:12]}".encode()  # the kernel keeps 15 letters


def _hierarchy() -> tuple[str, str] | None:
    """Where control groups of version 2 are mounted, and which of them is at the top there."""
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            place, _, source = line.partition(" - ")
            if source.startswith("cgroup2 "):
                return place.split()[4], place.split()[3]
    return None


def _own_group() -> str | None:
    """The folder of the control group that this process is in."""
    hierarchy = _hierarchy()
    if hierarchy is None:
        return None
    mounted, top = hierarchy
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        own = next((line[3:].rstrip("\n") for line in file if line.startswith("0::/")), None)
    inside = ".." if own is None else os.path.relpath(own, top)
    return None if inside.startswith("..") else os.path.normpath(f"{mounted}/{inside}")


def _groups() -> Iterator[str]:
    """Control groups of attempts, wherever in the tree their supervisors were."""
    hierarchy = _hierarchy()
    for parent, names, _ in os.walk(hierarchy[0]) if hierarchy else ():
        yield from (f"{parent}/{name}" for name in names if name.startswith(_PREFIX))


def _fenced_attempt(path: str) -> FencedAttempt | None:
    try:
        study, trial, attempt, folder = json.loads(os.getxattr(path, _FENCED))
        fenced = FencedAttempt(str(study), int(trial), int(attempt), str(folder))
        is_true = os.path.basename(path) == _name_of_group(fenced.folder)
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):  # removed meanwhile, or not written by us
        return None
    return fenced if is_true else None


def _is_populated(path: str) -> bool:
    """Whether a process lives in the group or in one below it."""
    try:
        with open(f"{path}/cgroup.events", "rb") as file:
            return b"populated 1" in file.read()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):  # removed meanwhile, so it was empty
            return False
        raise


def _write(path: str, text: bytes) -> None:
    """Without a file object, whose making may import: it is done between fork and exec, too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def _remove(path: str) -> bool:
    """Remove a group with those that the command has made below it; whether that went."""
    for parent, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(parent)
            except OSError:
                return not _is_populated(path)  # not ours to remove, and empty: nothing is left of the attempt
    return True


def _kill_first_processes(name: bytes) -> bool:
    """Kill namespaces; whether one was there. Its name stays with a dying one that waits for the others to die."""
    found = [one for one in processes.all_processes() if one.name == name and one.is_alive and _is_ours(one)]
    processes.kill(found)
    return bool(found)


def _is_ours(process: Process) -> bool:
    try:
        return os.stat(f"/proc/{process.pid}").st_uid == os.geteuid()
    except OSError:
        return False


def _be_first_process(command: int, writing: int) -> None:
    """Collect the dead of the namespace until the command is among them, tell how it ended, and end all others."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # from which the kernel spares a first process
        os.closerange(0, writing)
        os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
        ended, status = 0, 0
        while ended != command:
            ended, status = os.wait()
        os.write(writing, str(status).encode())
    finally:
        os._exit(0)


def _may_show_own_processes() -> bool:
    """Tried in a child, since it cannot be undone."""
    child = os.fork()
    if child == 0:
        try:
            _show_own_processes()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _show_own_processes() -> None:
    """See in /proc, from now on, the processes of the namespace by their numbers there."""
    _check(_libc.unshare(_NEW_MOUNTS))
    _check(_libc.mount(b"none", b"/", None, _RECURSIVE | _FOLLOWING, None))
    _check(_libc.mount(b"proc", b"/proc", b"proc", _NO_SETUID_DEVICES_PROGRAMS, None))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _try_out() -> str:
    """The kind of a fence that held a process which had left its session and its environment."""
    fenced = FencedAttempt("doctor", 0, 0, f"doctor {os.getpid()} {time.monotonic_ns()}")
    fence = make(fenced)
    words = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(words, env={}, start_new_session=True, preexec_fn=fence.enter) as one:  # noqa: S603
        is_held = fence.kill()
        while fence.kill():
            time.sleep(0.001)
        one.kill()  # which may have stayed outside
    return fence.kind if is_held else TAGS_ONLY


_libc = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    print(_try_out())
