"""Processes as Linux shows them in /proc: who descends from whom, who carries our tags, and how to signal just one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trimtuner.engines.supervising.files import numbers_in

STUDY, TRIAL, ATTEMPT = "TRIMTUNER_STUDY", "TRIMTUNER_TRIAL", "TRIMTUNER_ATTEMPT"
FOLDER = "TRIMTUNER_FOLDER"  # of the attempt: tells apart studies of one name in different places
CORES = "TRIMTUNER_CORES"
# What goes before the folder in a supervisor's arguments; the last two in versions that called it a minder.
SUPERVISOR_WORDS = ("trimtuner.engines.supervising.supervisor", "supervise", "trimtuner.engines.minding.minder", "mind")

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GONE = (FileNotFoundError, ProcessLookupError)


class Process(NamedTuple):
    """A process; pid and start together name it once for the whole time that the machine is up."""

    pid: int
    parent: int
    started_ticks: int
    is_alive: bool
    name: bytes = b""


class TaggedProcess(NamedTuple):
    """A living process of ours, with what its environment says."""

    process: Process
    study: str
    trial: int
    attempt: int
    folder: str
    cores: tuple[int, ...]


def read_process(pid: int) -> Process | None:
    """The process that has this number now."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except _GONE:
        return None
    # The name, in brackets, may itself hold brackets and blanks.
    fields = text[text.rindex(b")") + 2 :].split()
    state, threads = fields[0], int(fields[17])
    # A main thread may end before the others; then the process looks like a zombie and still works.
    is_alive = state not in (b"Z", b"X") or threads > 1
    return Process(pid, int(fields[1]), int(fields[19]), is_alive, text[text.index(b"(") + 1 : text.rindex(b")")])


def parent_seen_from_proc() -> int:
    """Who has started the calling process, also where that is outside of its namespace and ``getppid`` is 0."""
    myself = read_process(int(os.readlink("/proc/self")))
    return 0 if myself is None else myself.parent


def all_processes() -> list[Process]:
    """Every process that we can see, zombies too."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def living_descendants(ancestors: Iterable[int]) -> list[Process]:
    """What the ancestors started, and what that started, and so on; without the ancestors."""
    children: dict[int, list[Process]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    found: dict[int, Process] = {}
    pending = list(ancestors)
    while pending:
        for child in children.get(pending.pop(), []):
            if child.pid not in found:
                found[child.pid] = child
                pending.append(child.pid)
    return [process for process in found.values() if process.is_alive]


def tagged_processes() -> list[TaggedProcess]:
    """Every living process whose environment, as it was started with, carries our tags."""
    found = (_read_tags(process) for process in all_processes() if process.is_alive)
    return [tagged for tagged in found if tagged is not None]


def living_processes_of(folder: str) -> list[Process]:
    """What carries the tags of one attempt, and its descendants, which may have dropped them."""
    tagged = [one.process for one in tagged_processes() if one.folder == folder]
    more = living_descendants(process.pid for process in tagged)
    return list({process.pid: process for process in (*tagged, *more)}.values())


def send(process: Process, number: signal.Signals) -> None:
    """Signal this very process: if it is gone and its number given to another one, nobody is hit."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = read_process(process.pid)
        if now is not None and now.started_ticks == process.started_ticks:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone meanwhile; or it changed its user, and whoever waits for its end will see that it lives
    finally:
        os.close(descriptor)


def kill(those: Iterable[Process]) -> None:
    """Kill each of them, and nobody else."""
    for process in those:
        send(process, signal.SIGKILL)


def hold_more_than(limit_bytes: int, processes: Sequence[Process]) -> bool:
    """Whether they use more memory, pages that several share counted once.

    That is slow for large processes, since the kernel walks their pages; so it is asked only where they are over the
    limit as each of them sees it.
    """
    resident = sum(_resident_bytes(process.pid) for process in processes)
    return resident > limit_bytes and sum(_proportional_bytes(process.pid) for process in processes) > limit_bytes


def numbering() -> str | None:
    """What tells the numbers of processes apart: the start of the kernel, and the namespace, as in containers.

    Names of hosts say nothing about that: machines are cloned with theirs, and containers are given the same one.
    None where the processes that are shown are numbered for others than us.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        is_ours = os.readlink("/proc/self") == str(os.getpid())
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None
    return f"{boot}:{namespace}" if is_ours else None


def kernel_memory_kills() -> int:
    """How often the kernel has killed for want of memory since the machine started."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:  # hidden in some containers; then such a kill is told as a signal
        return 0


def _read_tags(process: Process) -> TaggedProcess | None:
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            content = file.read()
    except PermissionError:  # not ours to see: a supervisor, which shows its memory to nobody, or not ours at all
        return _read_supervisor_tags(process)
    except _GONE:
        return None
    if f"{FOLDER}=".encode() not in content:
        return None
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    values = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    try:
        cores = tuple(int(core) for core in values.get(CORES, "").split(",") if core)
        return TaggedProcess(process, values[STUDY], int(values[TRIAL]), int(values[ATTEMPT]), values[FOLDER], cores)
    except (KeyError, ValueError):  # not written by us
        return None


def _read_supervisor_tags(process: Process) -> TaggedProcess | None:
    """By its arguments, which everybody may see: the last of its words are its folder and some descriptors."""
    try:
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")]
        with open(f"/proc/{process.pid}/status", "rb") as file:
            is_ours = b"\nUid:\t%d\t" % os.getuid() in file.read()
    except _GONE:
        return None
    marks = [place for place, word in enumerate(words) if word in SUPERVISOR_WORDS]
    if not is_ours or not marks or marks[-1] + 1 >= len(words):
        return None
    folder = words[marks[-1] + 1]
    try:
        study, name = folder.split("/")[-2:]
        return TaggedProcess(process, study, *numbers_in(name), folder, ())
    except ValueError:  # not started by us
        return None


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except _GONE:
        return 0


def _proportional_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
    except PermissionError:
        return _resident_bytes(pid)
    except _GONE:
        return 0
