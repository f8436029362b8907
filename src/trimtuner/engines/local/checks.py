"""This machine: whether the command is here, and whether it is as large as the machines that it stands in for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from trimtuner.engines.checks import Check, Workload, failed, fine, warning
from trimtuner.engines.supervising.checks import check_fence
from trimtuner.engines.supervising.devices import devices_here

_GIB = 2**30


def checks_of(work: Workload) -> Iterator[Check]:
    """The command, the size of the machine, and what holds the processes of a trial."""
    yield from _check_command(work)
    yield from _check_size(work)
    yield from check_fence()


def _check_command(work: Workload) -> Iterator[Check]:
    """Whether the program of the command is here."""
    program, folder = work.program, work.working_directory
    if "{" in program:
        return
    if not folder.is_dir():
        advice = "put run.working_directory right; it is seen from the folder of the job file"
        yield failed("working directory", f"there is no folder {folder}", advice)
        return
    place = str(folder / program) if "/" in program else program
    if shutil.which(place) is None:
        yield failed("command", f"there is no program {program!r}", "install it, or give its path in run.command")
    else:
        yield fine("command", f"{program} is {shutil.which(place)}")


def _check_size(work: Workload) -> Iterator[Check]:
    """Whether this machine is as large as the machines that it stands in for."""
    cloud = work.cloud
    if cloud is None:
        return
    cores, memory = os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    most = max(cloud.vms[one.vm_type].vcpus * one.vm_count for one in cloud.clusters)
    largest = max(cloud.vms[one.vm_type].memory_gib for one in cloud.clusters)
    yield _compared("cores", cores, most * work.parallel, "vCPUs")
    yield _compared("memory", memory, largest * work.parallel, "GiB")
    gpus = max(cloud.vms[one.vm_type].gpus * one.vm_count for one in cloud.clusters)
    if gpus:
        yield _compared("gpus", len(devices_here()), gpus, "GPUs")


def _compared(name: str, here: float, wanted: float, unit: str) -> Check:
    text = f"{here:.0f} {unit} here; trials side by side may ask for {wanted:.0f} {unit} in all"
    if here >= wanted:
        return fine(name, text)
    return warning(name, text, "larger choices are measured as slow as this machine; offer smaller ones, or rent them")
