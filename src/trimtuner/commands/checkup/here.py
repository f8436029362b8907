"""This machine: Python, what is installed, whether the command and the record can be used."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from trimtuner import __version__
from trimtuner.commands.checkup.checks import Check, failed, fine, warning
from trimtuner.errors import TrimTunerError
from trimtuner.jobs.job import GIB, Job
from trimtuner.records.addresses import Address
from trimtuner.records.restoring import soundness_of
from trimtuner.records.sidecar import Sidecar
from trimtuner.records.sqlite_files import refuse_lost
from trimtuner.records.store import open_to_read

_EXTRAS = {"ray": ("ray",), "aws": ("boto3", "asyncssh"), "postgres": ("psycopg",)}
_EMPTY = "is empty"  # what a record says of itself before its first study


def check_python() -> Iterator[Check]:
    """The interpreter and the system."""
    version = platform.python_version()
    yield fine("python", f"{version} at {sys.executable}, trimtuner {__version__}")
    if sys.platform == "linux":
        yield fine("platform", platform.platform())
    else:
        advice = "run trials on Linux, on a Ray cluster or on AWS; on Windows, WSL is a Linux"
        yield warning("platform", f"{sys.platform}; the local engine needs Linux", advice)


def check_extras() -> Iterator[Check]:
    """What can be installed on top."""
    for extra, modules in _EXTRAS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            yield Check(extra, "ok", f"not installed; pip install 'trimtuner[{extra}]' if you want it")
        else:
            yield fine(extra, "installed")


def check_record(job: Job) -> Iterator[Check]:
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


def check_command(job: Job) -> Iterator[Check]:
    """Whether the program of the command is here."""
    program = job.run.command[0]
    if "{" in program:
        return
    folder = job.run.working_directory
    if not folder.is_dir():
        advice = "put run.working_directory right; it is seen from the folder of the job file"
        yield failed("working directory", f"there is no folder {folder}", advice)
        return
    place = str(folder / program) if "/" in program else program
    if shutil.which(place) is None:
        yield failed("command", f"there is no program {program!r}", "install it, or give its path in run.command")
    else:
        yield fine("command", f"{program} is {shutil.which(place)}")


def check_fence() -> Iterator[Check]:
    """What holds the processes of a trial on this machine, in case their supervisor is killed."""
    if sys.platform != "linux":
        return
    from trimtuner.engines.minding import fence  # which needs Linux to be imported

    kind = fence.kind_here()
    if kind == fence.TAGS_ONLY:
        lost = "a child that leaves its session and environment survives a killed supervisor"
        advice = "run under 'systemd-run --user --scope -p Delegate=yes', or where cgroup v2 can be written to"
        yield warning("fence", f"trials are fenced by {kind}: {lost}", advice)
    else:
        kept = "what they start ends with them, also when their supervisor is killed"
        yield fine("fence", f"trials are fenced by a {kind}: {kept}")


def check_size(job: Job) -> Iterator[Check]:
    """Whether this machine is as large as the machines that it stands in for."""
    cloud = job.space.cloud
    if cloud is None:
        return
    cores, memory = os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    most = max(cloud.vms[one.vm_type].vcpus * one.vm_count for one in cloud.clusters)
    largest = max(cloud.vms[one.vm_type].memory_gib for one in cloud.clusters)
    yield _compared("cores", cores, most * job.engine.parallel, "vCPUs")
    yield _compared("memory", memory, largest * job.engine.parallel, "GiB")


def _compared(name: str, here: float, wanted: float, unit: str) -> Check:
    text = f"{here:.0f} {unit} here; trials side by side may ask for {wanted:.0f} {unit} in all"
    if here >= wanted:
        return fine(name, text)
    return warning(name, text, "larger choices are measured as slow as this machine; offer smaller ones, or rent them")


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
