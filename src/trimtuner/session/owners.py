"""Which process watches a trial, and whether it still lives."""

from __future__ import annotations

import os
import socket
import time
import uuid
from pathlib import Path

from trimtuner.records import Owner

HEARTBEAT_SECONDS = 5.0
_SILENT_SECONDS = 60.0  # after which a process on another machine is taken for dead


def this_process() -> Owner:
    """An owner for this process."""
    return Owner(uuid.uuid4().hex, socket.gethostname() or "localhost", os.getpid(), _started(os.getpid()) or "unknown")


def is_alive(owner: Owner) -> bool:
    """Whether the process still runs: by the system's own word here, by its heartbeat elsewhere."""
    if owner.host == (socket.gethostname() or "localhost"):
        return _started(owner.pid) == owner.pid_started
    return owner.heartbeat_at is not None and time.time() - owner.heartbeat_at < _SILENT_SECONDS


def _started(pid: int) -> str | None:
    """When the process started, in the kernel's ticks since the machine did: numbers of processes come again."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    after_name = stat.rpartition(")")[2].split()
    return None if after_name[0] in ("Z", "X") else f"{boot}:{after_name[19]}"
