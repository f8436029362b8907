"""``trimtuner doctor``: whether a job can run, found out before a cent is spent."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from trimtuner import __version__
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.checks import Check, Workload, failed, fine, warning
from trimtuner.engines.supervising.checks import check_fence
from trimtuner.errors import InputError, TrimTunerError
from trimtuner.jobs.engines import ENGINES
from trimtuner.jobs.job import Job
from trimtuner.records.addresses import Address
from trimtuner.records.restoring import soundness_of
from trimtuner.records.sidecar import Sidecar
from trimtuner.records.sqlite_files import refuse_lost
from trimtuner.records.store import open_to_read

_MARKS = {"ok": "ok", "warning": "WARNING", "failed": "FAILED", "unknown": "unknown"}
_EMPTY = "is empty"  # what a record says of itself before its first study


def examine(job: Job | None) -> list[Check]:
    """Everything that can be looked at without spending anything."""
    return [*_check_python(), *_check_extras(), *(check_fence() if job is None else _checks_of_job(job))]


def is_ready(checks: list[Check]) -> bool:
    """Whether nothing is in the way for sure."""
    return not any(check.outcome == "failed" for check in checks)


def doctor_text(checks: list[Check]) -> str:
    """A line for each check, with what to do below it."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{_MARKS[check.outcome]:<8} {check.name:<{width}}  {check.text}")
        if check.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {check.advice}")
    return "\n".join(lines)


def policy_of(job: Job | None) -> dict[str, object]:
    """The smallest IAM policy for a job; without one, for the usual settings."""
    from trimtuner.engines.aws.policy import policy

    settings = AwsSettings() if job is None else job.engine.settings
    if not isinstance(settings, AwsSettings):
        raise InputError("a policy is for trials on AWS; this job has another engine (see 'engine' in its file)")
    cloud = None if job is None else job.space.cloud
    return policy(settings, uses_spot=cloud is None or "spot" in cloud.markets)


def _checks_of_job(job: Job) -> Iterator[Check]:
    yield from _check_record(job)
    run = job.run
    work = Workload(job.space.cloud, job.engine.parallel, run.command[0], run.working_directory, run.timeout)
    yield from job.engine.settings.checks(work)


def _check_python() -> Iterator[Check]:
    """The interpreter and the system."""
    version = platform.python_version()
    yield fine("python", f"{version} at {sys.executable}, trimtuner {__version__}")
    if sys.platform == "linux":
        yield fine("platform", platform.platform())
    else:
        advice = "run trials on Linux, on a Ray cluster or on AWS; on Windows, WSL is a Linux"
        yield warning("platform", f"{sys.platform}; the local engine needs Linux", advice)


def _check_extras() -> Iterator[Check]:
    """What can be installed on top: for engines, and for records on a server."""
    extras = {name: one.modules for name, one in ENGINES.items() if one.modules} | {"postgres": ("psycopg",)}
    for extra, modules in extras.items():
        is_missing = any(importlib.util.find_spec(name) is None for name in modules)
        how = f"not installed; pip install 'trimtuner[{extra}]' if you want it"
        yield fine(extra, how if is_missing else "installed")


def _check_record(job: Job) -> Iterator[Check]:
    """Whether the study can be written down."""
    storage = job.storage
    if isinstance(storage, Address):
        yield _check_server(storage)
    elif storage.exists():
        yield _check_file(storage)
    elif Sidecar(storage).path.exists():
        yield _check_lost(storage)
    elif os.access(_nearest_folder(storage), os.W_OK):
        yield fine("record", f"{storage} will be made")
    else:
        yield failed("record", f"{storage.parent} cannot be written to", "choose another place under storage")


def _check_file(storage: Path) -> Check:
    try:
        open_to_read(storage).close()
    except TrimTunerError as error:
        return failed("record", str(error), "move it away, or name another under storage")
    faults = soundness_of(storage).faults
    if faults:
        return failed("record", f"{storage} is damaged: {faults[0]}", "trimtuner verify JOB lists all, and what now")
    if not os.access(storage, os.W_OK) or not os.access(storage.parent, os.W_OK):
        return failed("record", f"{storage} or its folder cannot be written to", "change their permissions")
    if storage.stat().st_mode & 0o077:
        return warning("record", f"{storage} can be opened by others", f"chmod 600 {storage}, unless you share it")
    return fine("record", f"{storage} is there, sound, and can be written to")


def _check_lost(storage: Path) -> Check:
    try:
        refuse_lost(storage)
    except TrimTunerError as error:
        return failed("record", str(error), "trimtuner restore JOB")
    return fine("record", f"{storage} will be made")


def _check_server(address: Address) -> Check:
    try:
        open_to_read(address).close()
    except TrimTunerError as error:
        if _EMPTY in str(error):
            return fine("record", f"{address} answers, and is empty yet")
        return failed("record", str(error), "see docs/postgres.md")
    faults = soundness_of(address).faults
    if faults:
        return failed("record", f"{address} is damaged: {faults[0]}", "restore a backup of the database")
    return fine("record", f"{address} answers, and is sound")


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in path.absolute().parents if folder.exists())
