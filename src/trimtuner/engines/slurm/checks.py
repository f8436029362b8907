"""A Slurm cluster: whether it answers, takes such jobs, and keeps to itself what it is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from trimtuner.engines.checks import Check, Workload, failed, fine, unknown, warning
from trimtuner.engines.protocol import EngineTrouble, Launch, Machines
from trimtuner.engines.slurm import queue
from trimtuner.engines.slurm.settings import SlurmSettings
from trimtuner.engines.slurm.submission import surroundings, words_of
from trimtuner.errors import InputError

# What a machine has for itself alone: mount(8) has the names.
_OF_ONE_MACHINE = frozenset({"btrfs", "ext2", "ext3", "ext4", "overlay", "ramfs", "tmpfs", "xfs", "zfs"})
_LONGEST_ENDING_SECONDS = 60  # of what is reserved for Slurm's own way to an end


def checks_of(work: Workload, settings: SlurmSettings) -> Iterator[Check]:
    """The controller, its nodes as the job asks for them, the file system, and what is kept of secrets."""
    try:
        version = queue.ask("sinfo", "--version").strip()
        nodes = dict(line.split() for line in queue.ask("sinfo", "--noheader", "--Node", "--format=%N %n").splitlines())
    except EngineTrouble as trouble:
        yield failed("slurm", str(trouble), "run trimtuner where sbatch works, while the controller is up")
        return
    yield fine("slurm", f"{version}; the controller answers, and has {len(nodes)} nodes")
    yield from _check_types(work, settings)
    yield from _check_shared(work.working_directory, set(nodes.values()))
    yield from check_configuration(queue.ask("scontrol", "show", "config"))


def _check_types(work: Workload, settings: SlurmSettings) -> Iterator[Check]:
    """Whether Slurm would take the largest trial of each VM type; nothing is handed in."""
    cloud = work.cloud
    if cloud is None:
        yield _would_take("a job", None, work, settings)
        return
    for name, vm in cloud.vms.items():
        most = max((one.vm_count for one in cloud.clusters if one.vm_type == name), default=0)
        if most:
            machines = Machines(name, most, vcpus=vm.vcpus, gpus=vm.gpus, helpers=cloud.helpers_of(name))
            yield _would_take(name, machines, work, settings)


def _would_take(name: str, machines: Machines | None, work: Workload, settings: SlurmSettings) -> Check:
    count = 1 if machines is None else machines.count + len(machines.helpers)
    folder = Path("/doctor/0-1")
    launch = Launch("doctor", 0, 1, (work.program,), folder.parent, folder, {}, (), work.limit, machines=machines)
    try:
        said = queue.try_out(words_of(launch, settings, folder), surroundings())
    except (EngineTrouble, InputError) as trouble:
        advice = "put engine.partition, account, options or vm_types right, or offer fewer and other machines"
        return failed(name, f"a trial on {count} of them would be refused: {trouble}", advice)
    return fine(name, f"a trial on {count} of them would be taken ({said})")


def _check_shared(folder: Path, nodes: set[str]) -> Iterator[Check]:
    """Whether the nodes can see what is here; from here it can only be guessed."""
    if nodes <= {socket.gethostname(), socket.gethostname().partition(".")[0], "localhost"}:
        return
    kind = _kind_of_file_system(folder)
    if kind in _OF_ONE_MACHINE:
        advice = "put the job file, its record and its data on a file system that all nodes share"
        yield warning("file system", f"{folder} is on {kind}, which nodes do not see as a rule", advice)
    else:
        yield unknown("file system", f"{folder} is on {kind}; whether the nodes share it can only be told there")


def _kind_of_file_system(folder: Path) -> str:
    path, found = os.path.realpath(folder), ("", "unknown")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            mounted = before.split()[4]
            if len(mounted) >= len(found[0]) and (path + "/").startswith(mounted.rstrip("/") + "/"):
                found = mounted, after.split()[0]
    return found[1]


def check_configuration(text: str) -> Iterator[Check]:
    """What the cluster is set to that changes what we promise."""
    pairs = (line.partition("=") for line in text.splitlines())
    told = {name.strip(): value.strip() for name, _, value in pairs}
    if "job_env" in told.get("AccountingStoreFlags", ""):
        kept = "the accounting keeps the environment of every job, and with it the values of run.secrets"
        yield warning("secrets", kept, "give the command its secrets in another way, or ask for job_env to be left out")
    over, wait = told.get("OverTimeLimit", "0").split()[0], told.get("KillWait", "30").split()[0]
    if over not in ("0", "") or (wait.isdigit() and int(wait) > _LONGEST_ENDING_SECONDS):
        text = (
            f"OverTimeLimit is {over} and KillWait {wait}: a job whose supervisor hangs runs on past what is reserved"
        )
        yield warning(
            "time limit", text, "its own supervisor ends a trial in time; the cluster's limit is the second net"
        )
    else:
        yield fine("time limit", "a job whose supervisor hangs is ended by the cluster, within what is reserved")
