"""From what Slurm and the supervisor say of an attempt to how it ended."""

from __future__ import annotations

from trimtuner.engines.protocol import (
    LOST,
    OUT_OF_MEMORY,
    PREEMPTED,
    STOPPED,
    TIMEOUT,
    UNAVAILABLE,
    End,
)
from trimtuner.engines.slurm.queue import SlurmJob
from trimtuner.engines.supervising.files import BEAT_SECONDS

# States in which the job did not end by itself, whatever its processes made of the signal that told them to.
_TAKEN = {
    "PREEMPTED": (PREEMPTED, "it was pre-empted"),
    "NODE_FAIL": (PREEMPTED, "a node of it failed"),
    "BOOT_FAIL": (PREEMPTED, "a node of it did not boot"),
    "LAUNCH_FAILED": (PREEMPTED, "it could not be launched on its nodes"),
    "RECONFIG_FAIL": (PREEMPTED, "a node of it could not be set up"),
    "REVOKED": (PREEMPTED, "it was taken back"),
    "TIMEOUT": (TIMEOUT, "it was ended at its time limit"),
    "DEADLINE": (TIMEOUT, "it was ended at its deadline"),
    "CANCELLED": (STOPPED, "it was cancelled"),
}


def end_of(job: SlurmJob, written: End | None, has_begun: bool, last_beat: float, said: str) -> End:
    """How an attempt ended whose job is over; charged for as long as the job had its nodes."""
    seconds = max(job.seconds, 0.0 if written is None else written.seconds, last_beat)
    kind, detail = _kind_of(job, written, has_begun, said)
    return End(kind, detail, seconds)


def end_without_job(written: End | None, has_begun: bool, last_beat: float) -> End:
    """How an attempt ended whose job Slurm no longer knows."""
    if written is not None:
        return written
    if has_begun:
        return End(LOST, "Slurm no longer knows its job, and nobody saw how it ended", last_beat + BEAT_SECONDS)
    return End(PREEMPTED, "Slurm no longer knows its job, which never began", 0.0)


def _kind_of(job: SlurmJob, written: End | None, has_begun: bool, said: str) -> tuple[str | None, str]:
    where = f"job {job.number} on {job.nodes or 'no node'}"
    if written is not None and (job.state == "COMPLETED" or (written.kind == STOPPED and job.state == "CANCELLED")):
        return written.kind, written.detail
    if job.state in _TAKEN:
        kind, detail = _TAKEN[job.state]
        return kind, f"{detail} ({where}, {job.state}{_because(job)})"
    if job.state == OUT_OF_MEMORY_STATE and (written is None or written.kind is not None):
        return OUT_OF_MEMORY, f"it was killed above the memory of its allocation ({where})"
    if written is not None:
        return written.kind, written.detail
    if has_begun:
        return LOST, f"{where} is over ({job.state}), and nobody saw how its command ended"
    return UNAVAILABLE, f"{where} could not begin the command ({job.state}): {said or 'it said nothing'}"


OUT_OF_MEMORY_STATE = "OUT_OF_MEMORY"


def _because(job: SlurmJob) -> str:
    return "" if job.reason in ("", "None", job.state) else f", {job.reason}"
