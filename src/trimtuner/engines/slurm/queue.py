"""Slurm's own commands: what is in the queue, what became of it, one more, one less."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.supervising.files import attempt_name, numbers_in

PENDING = "PENDING"
COMPLETING = "COMPLETING"
# squeue(1), "JOB STATE CODES": what a job does not come back from.
FINAL = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
    )
)

# squeue(1), "JOB REASON CODES": why a job would wait for ever.
IN_VAIN = frozenset(
    (
        *("AccountNotAllowed", "BadConstraints", "InvalidAccount", "InvalidQOS", "QOSNotAllowed"),
        *("PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit"),
    )
)

_REFUSALS = ("configuration is not available", "Node count specification invalid", "Invalid feature specification")
_PREFIX = "trimtuner"
_FORMAT = "%i|%T|%S|%e|%N|%r|%k"  # the comment last: it may hold anything
_FIELDS = _FORMAT.count("|")
_OF_ACCOUNTING = "JobIDRaw,State,Start,End,NodeList,Reason,Comment"
_PATIENCE_SECONDS = 60.0  # with a command of Slurm's; a controller that is busy takes long to answer
_MOST_WORDS = 400
_UNKNOWN_TIMES = ("", "N/A", "NONE", "Unknown", "None", "0")


class NoSuchNodes(Exception):  # noqa: N818  (named by what the caller learns)
    """Slurm has no machines like those; the text is its own."""


@dataclass(frozen=True)
class JobTag:
    """Whose attempt a job is; what its name and its comment say."""

    study: str
    trial: int
    attempt: int
    folder: str  # of the attempt: the handle

    @classmethod
    def of_folder(cls, folder: Path) -> JobTag:
        """Of the attempt that has this folder."""
        return cls(folder.parent.name, *numbers_in(folder.name), str(folder))

    @classmethod
    def of_comment(cls, text: str) -> JobTag | None:
        """What a comment says; None where it is none of ours."""
        words = text.split(" ", 3)
        try:
            prefix, study, numbers, folder = words
            return cls(study, *numbers_in(numbers), folder) if prefix == _PREFIX else None
        except ValueError:
            return None

    @property
    def name(self) -> str:
        """Of the job, for people and to ask for it."""
        return f"{_PREFIX}-{self.study}-{attempt_name(self.trial, self.attempt)}"

    @property
    def comment(self) -> str:
        """Of the job: all there is to find it by."""
        return f"{_PREFIX} {self.study} {attempt_name(self.trial, self.attempt)} {self.folder}"


@dataclass(frozen=True)
class SlurmJob:
    """A job as Slurm tells it."""

    number: str
    state: str
    started: float | None  # seconds since 1970, by the cluster's clock
    ended: float | None
    nodes: str
    reason: str
    tag: JobTag

    @property
    def is_final(self) -> bool:
        """Whether it is over, and its nodes are given back."""
        return self.state in FINAL

    @property
    def seconds(self) -> float:
        """How long it had its nodes, if it ever had: what the cluster charges."""
        if self.started is None or self.state == PENDING:
            return 0.0
        until = self.ended if self.is_final and self.ended is not None else time.time()
        return max(until - self.started, 0.0)


class Queue:
    """What Slurm says of our jobs; one question for all of them, and not more often than need be."""

    def __init__(self) -> None:
        self._known: dict[str, list[SlurmJob]] = {}  # by the folder of the attempt
        self._asked: dict[str, float] = {}
        self._trouble: tuple[str, float] = ("", 0.0)

    def jobs(self, tag: JobTag, others: Iterable[JobTag], not_older_than: float) -> list[SlurmJob]:
        """The jobs of an attempt; those of others are asked for along with it."""
        now = time.monotonic()
        if now - self._asked.get(tag.folder, -not_older_than) >= not_older_than:
            self._ask({tag.folder: tag, **{one.folder: one for one in others}}.values(), not_older_than)
        return self._known.get(tag.folder, [])

    def forget(self, folder: str) -> None:
        """Hold nothing of it: what it is asked next, it is asked anew."""
        self._asked.pop(folder, None)
        self._known.pop(folder, None)

    def _ask(self, tags: Collection[JobTag], not_older_than: float) -> None:
        text, since = self._trouble
        if text and time.monotonic() - since < not_older_than:
            raise EngineTrouble(text)  # it was asked just now
        try:
            listed = _listed([f"--name={','.join(sorted(tag.name for tag in tags))}"])
        except EngineTrouble as trouble:
            self._trouble = (str(trouble), time.monotonic())
            raise
        self._trouble = ("", 0.0)
        for tag in tags:
            self._known[tag.folder] = [job for job in listed if job.tag.name == tag.name]
            self._asked[tag.folder] = time.monotonic()


def all_jobs() -> list[SlurmJob]:
    """Every job of ours that Slurm still knows."""
    return _listed([])


def submit(words: Sequence[str], script: str, environment: Mapping[str, str], lock: int) -> str:
    """Hand in a job; its number. While sbatch lives it holds the lock, whatever becomes of us."""
    done = _run(["sbatch", *words], script, environment, [lock])
    if done.returncode == 0:
        return done.stdout.strip().partition(";")[0]
    said = _said(done)
    if any(words in said for words in _REFUSALS):
        raise NoSuchNodes(said)
    raise EngineTrouble(f"sbatch: {said}; put it right (trimtuner doctor looks closer), then run again")


def try_out(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """What sbatch says of a job that is not handed in; an EngineTrouble with its words where it would be refused."""
    done = _run(["sbatch", "--test-only", *words], "#!/bin/sh\n", environment)
    if done.returncode != 0:
        raise EngineTrouble(_said(done))
    return _said(done).removeprefix("sbatch: ")


def cancel(job: str) -> None:
    """Have a job ended; one that is over stays as it is."""
    done = _run(["scancel", job])
    if done.returncode != 0 and "Invalid job id" not in _said(done):
        raise EngineTrouble(f"scancel {job}: {_said(done)}")


def cancel_pending(job: str) -> None:
    """Take a job out of the queue; one that has begun goes on."""
    _run(["scancel", "--state=PENDING", job])


def in_accounting(tag: JobTag) -> list[SlurmJob]:
    """What the accounting, where there is one, knows of jobs that the controller has forgotten."""
    words = ["sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-60days", f"--name={tag.name}"]
    try:
        done = _run([*words, f"--format={_OF_ACCOUNTING}"])
    except EngineTrouble:
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    found = (_job_of(line, tag) for line in lines)  # comments are kept there only if it is set so
    return [job for job in found if job is not None]


def ask(*words: str) -> str:
    """What one of Slurm's commands prints; an EngineTrouble with its words where it fails."""
    done = _run(words)
    if done.returncode != 0:
        raise EngineTrouble(
            f"{words[0]}: {_said(done)}; is the controller up, and is this a login node of the cluster?"
        )
    return done.stdout


def _listed(which: Sequence[str]) -> list[SlurmJob]:
    told = ask("squeue", "--me", "--noheader", "--states=all", f"--format={_FORMAT}", *which)
    found = (_job_of(line, None) for line in told.splitlines())
    return [job for job in found if job is not None]


def _job_of(line: str, known: JobTag | None) -> SlurmJob | None:
    parts = line.split("|", _FIELDS)
    if len(parts) != _FIELDS + 1:
        return None
    number, state, started, ended, nodes, reason, comment = parts
    tag = known or JobTag.of_comment(comment)
    if tag is None or not state:
        return None
    return SlurmJob(number, state.split()[0], _time(started), _time(ended), nodes, reason, tag)


def _time(text: str) -> float | None:
    return None if text.strip() in _UNKNOWN_TIMES else float(text)


def _run(
    words: Sequence[str], script: str = "", environment: Mapping[str, str] | None = None, kept: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    asked = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
    try:
        return subprocess.run(  # noqa: S603  (Slurm's own programs, and no shell)
            words,
            input=script,
            env={**os.environ, **asked} if environment is None else environment,
            pass_fds=kept,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            start_new_session=True,  # an interrupt is for us
        )
    except FileNotFoundError:
        raise EngineTrouble(
            f"there is no program {words[0]!r} here; run trimtuner on a login node of the cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineTrouble(f"{words[0]} does not answer; is the controller of the cluster up?") from None


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """The heart of what a command complains about, on one line."""
    lines = (line.partition(": error: ")[2] or line for line in (done.stderr or done.stdout).splitlines())
    return " ".join(" ".join(lines).split())[-_MOST_WORDS:] or f"exit code {done.returncode}"
