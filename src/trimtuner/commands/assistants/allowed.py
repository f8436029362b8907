"""The studies that an assistant may work on, as they were when its user allowed them, and what it may do with each.

A study is named by the name in its job file: no path comes from an assistant. The file is read once, when it is
allowed; what becomes of it later is not started.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trimtuner.errors import InputError, NoAnswer, TrimTunerError, nearest, unwritable
from trimtuner.jobs.job import Job
from trimtuner.jobs.load import load_job
from trimtuner.jobs.studies import JobStudy
from trimtuner.jobs.validation import Findings
from trimtuner.records import Record, Records
from trimtuner.study.driver import stop_now

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class AllowedStudy:
    """A job file that its user has allowed, with its content at that time."""

    job: Job
    digest: str

    @classmethod
    def at(cls, path: Path) -> AllowedStudy:
        """The job file as it is now."""
        path = path.absolute()
        return cls(unchanged_job(path, digest := digest_of(path)), digest)

    @property
    def study(self) -> JobStudy:
        """The study as its record has it by now."""
        return JobStudy(self.job)

    @property
    def record(self) -> Record:
        """The record of a study that there is, for one who changes it and runs nothing of it."""
        self.study.open_to_read()  # an error where there is none: nothing is made to be stopped
        return Records(self.job.storage).open(self.job.name)

    @property
    def is_changed(self) -> bool:
        """Whether the file says something else by now, or is gone."""
        try:
            return digest_of(self.job.path) != self.digest
        except InputError:
            return True

    @property
    def runs(self) -> int:
        """How many processes run it now; none where it was never started."""
        try:
            return self.study.runs()
        except (
            TrimTunerError
        ):  # there is no record, or one that is being made; whoever runs it says what is wrong with it
            return 0


@dataclass(frozen=True)
class AllowedStudies:
    """All that an assistant may work on, by name."""

    by_name: dict[str, AllowedStudy]
    _starting: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def at(cls, paths: Iterable[Path]) -> AllowedStudies:
        """The studies of these job files; an error where two have the same name."""
        found: dict[str, AllowedStudy] = {}
        for path in paths:
            one = AllowedStudy.at(path)
            other = found.setdefault(one.job.name, one)
            if other is not one:
                raise InputError(f"{one.job.path} and {other.job.path} are both named {one.job.name!r}; rename one")
        return cls(found)

    def named(self, name: str) -> AllowedStudy:
        """One of them; an error names those that there are."""
        if name not in self.by_name:
            allowed = ", ".join(self.by_name)
            raise InputError(
                f"the study {name[:80]!r} is not allowed here; these are: {allowed}{nearest(name, self.by_name)}"
            )
        return self.by_name[name]

    def start(self, name: str) -> int:
        """Run the study in a process of its own, which outlives this one; its id, once it is at work."""
        allowed = self.named(name)
        with self._starting:
            _require_startable(allowed)
            return _started(allowed)

    def stop(self, name: str) -> None:
        """Ask every run of the study to start nothing more."""
        self.named(name).record.request_stop()

    def stop_now(self, name: str) -> list[int]:
        """The same, and end the running trials; which were ended."""
        self.stop(name)
        record = self.named(name).record
        return stop_now(record, self.named(name).study.engine(record))


def digest_of(path: Path) -> str:
    """Of what the file says."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def unchanged_job(path: Path, digest: str) -> Job:
    """The job of a file that says what it said when it was allowed; an error where it says something else."""
    job = load_job(path)
    if digest_of(path) != digest:
        raise InputError(
            f"{path} has changed since it was allowed; whoever allowed it looks at it, and starts 'trimtuner mcp' anew"
        )
    return job


def _require_startable(allowed: AllowedStudy) -> None:
    """What must hold before money is spent: a hard cap, the file that was allowed, and nobody at it already."""
    job = allowed.job
    if job.budget.money is None:
        raise InputError(
            f"{job.name} has no cap on money, and is not started without one; whoever allowed it writes "
            "'budget: {money: 5 USD}' into its job file, and starts 'trimtuner mcp' anew"
        )
    unchanged_job(job.path, allowed.digest)
    errors = Findings.of(job).errors
    if errors:
        raise InputError("\n".join(errors))
    if allowed.runs:
        raise InputError(f"{job.name} is running already; see its status")


def _started(allowed: AllowedStudy) -> int:
    log = _log_of(allowed)
    # Without the folder that we are in among the places of modules: what lies there is not ours to run.
    command = [sys.executable, "-P", "-m", "trimtuner.commands.assistants.run_allowed"]
    try:
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as told:
            run = subprocess.Popen(  # noqa: S603  (our own module; path and digest are those that were allowed)
                [*command, str(allowed.job.path), allowed.digest],
                stdin=subprocess.DEVNULL,
                stdout=told,  # our own is the assistant's
                stderr=told,
                start_new_session=True,
            )
    except OSError as error:
        raise unwritable(log, error) from None
    while run.poll() is None and not allowed.runs:
        time.sleep(_LOOK_SECONDS)
    if run.returncode not in (None, 0):
        raise NoAnswer(f"the run ended at once; whoever allowed it finds what it said in {log}")
    return run.pid


def _log_of(allowed: AllowedStudy) -> Path:
    """What a run that was started here says, beside the logs of its trials."""
    folder = allowed.study.folder
    return folder.with_name(f"{folder.name.removesuffix('.trials')}.mcp.log")
