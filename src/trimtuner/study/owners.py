"""Which process watches a trial, and whether it still lives."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

from trimtuner.engines.supervising import processes
from trimtuner.records import Owner, StudyView

HEARTBEAT_SECONDS = 5.0
_SILENT_SECONDS = 60.0  # after which a process that cannot be seen from here is taken for dead


def this_process() -> Owner:
    """An owner for this process."""
    return Owner(uuid.uuid4().hex, socket.gethostname() or "localhost", os.getpid(), _started(os.getpid()) or "unknown")


def is_alive(owner: Owner) -> bool:
    """Whether the process still runs: by the system's own word where it can be seen, by its heartbeat elsewhere."""
    where = processes.numbering()
    if where is not None and owner.pid_started.startswith(f"{where}:"):
        return _started(owner.pid) == owner.pid_started
    return owner.silent_seconds is not None and owner.silent_seconds < _SILENT_SECONDS


def alive_owners(record: StudyView) -> set[str]:
    """The ids of the processes that still look after trials of a study."""
    return {owner.id for owner in record.owners() if is_alive(owner)}


def _started(pid: int) -> str | None:
    """When the process started, in the kernel's ticks, and where it has its number: numbers of processes come again."""
    where = processes.numbering()
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    after_name = stat.rpartition(")")[2].split()
    return None if where is None or after_name[0] in ("Z", "X") else f"{where}:{after_name[19]}"
