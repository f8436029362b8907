"""A launch in the words of ``sbatch``."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Launch, Machines
from trimtuner.engines.slurm.node_side import KEY, RUN
from trimtuner.engines.slurm.queue import JobTag
from trimtuner.engines.slurm.settings import READY_WITHIN_SECONDS, SlurmSettings
from trimtuner.engines.supervising.environment import secrets_of
from trimtuner.engines.supervising.starting import handed_on
from trimtuner.errors import InputError

OUTPUT = "slurm.txt"  # what the job itself says; empty unless something is wrong with its node
_CONFIGURATION = "SLURM_CONF"


def words_of(launch: Launch, settings: SlurmSettings, folder: Path) -> list[str]:
    """The options of the job. Ours come last and win; none of them can be said in the job file."""
    tag = JobTag.of_folder(folder)
    seconds = READY_WITHIN_SECONDS + launch.limit + ENDED_WITHIN_SECONDS
    return [
        *([] if settings.partition is None else [f"--partition={settings.partition}"]),
        *([] if settings.account is None else [f"--account={settings.account}"]),
        *settings.options,
        *_words_of_machines(launch, settings),
        "--parsable",
        "--no-requeue",
        f"--job-name={tag.name}",
        f"--comment={tag.comment}",
        f"--time={math.ceil(seconds / 60):d}",
        f"--output={_literal(folder / OUTPUT)}",
        "--open-mode=append",
        "--input=/dev/null",
        "--chdir=/",
        "--export=ALL",  # of what we give it, which is little
    ]


def script_of(archive: Path, settings: SlurmSettings, folder: Path) -> str:
    """What the job runs on its first node."""
    # Isolated: nothing in the node's environment can take the place of a module.
    return f"#!/bin/sh\nexec {shlex.join([settings.python, '-I', '-S', str(archive), RUN, str(folder)])}\n"


def environment_of(launch: Launch, key: bytes) -> Mapping[str, str]:
    """What sbatch is given, and Slurm keeps for the job: what is handed on to every command, secrets, and the key."""
    found = {name: os.environ[name] for name in (_CONFIGURATION,) if name in os.environ}
    return {**handed_on(), **found, **secrets_of(launch), KEY: key.hex()}


def _words_of_machines(launch: Launch, settings: SlurmSettings) -> list[str]:
    machines = launch.machines
    if machines is None:
        return ["--nodes=1", "--ntasks-per-node=1", f"--cpus-per-task={launch.vcpus or 1}"]
    _refuse_unknown_ways(machines)
    chosen = settings.vm_types.get(machines.vm_type, (f"--constraint={machines.vm_type}",))
    return [
        f"--nodes={machines.count + len(machines.helpers):d}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={machines.vcpus:d}",
        *([f"--gres=gpu:{machines.gpus:d}"] if machines.gpus else []),
        *chosen,
    ]


def _refuse_unknown_ways(machines: Machines) -> None:
    if machines.market != "on_demand":
        raise InputError(
            "Slurm has no spot market; name a VM type for the partition whose jobs are pre-empted, with its own price"
        )
    other = [name for name in machines.helpers if name != machines.vm_type]
    if other:
        raise InputError(f"the helper {other[0]!r} is of another type than its workers; one job has nodes of one type")


def _literal(path: Path) -> str:
    """A path in which Slurm replaces nothing: a percent sign, doubled, is one."""
    return str(path).replace("%", "%%")
