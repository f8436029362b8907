"""A launch in the words of ``sbatch``."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Launch, Machines
from trimtuner.engines.slurm.node_side import KEY, RUN, Order
from trimtuner.engines.slurm.queue import JobTag
from trimtuner.engines.slurm.settings import READY_WITHIN_SECONDS, SlurmSettings
from trimtuner.engines.supervising.environment import checkpoint_of, record_of, secrets_of
from trimtuner.engines.supervising.ports import port_of
from trimtuner.engines.supervising.starting import handed_on
from trimtuner.errors import InputError
from trimtuner.files import make_private_folder

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


def order_of(launch: Launch, folder: Path) -> Order:
    """The launch, as the head of the job takes it."""
    machines = launch.machines
    # The nodes are its own: threads are for one of them, not for all workers together.
    own = launch if machines is None or launch.vcpus is None else replace(launch, vcpus=machines.vcpus)
    record = record_of(own, str(folder), str(launch.working_directory.resolve()))
    checkpoint = checkpoint_of(launch)
    if checkpoint is not None:
        make_private_folder(checkpoint)
        record["checkpoint"] = str(checkpoint)
    workers, helpers = (1, 0) if machines is None else (machines.count, len(machines.helpers))
    return Order(record=record, workers=workers, helpers=helpers, port=port_of(launch))


def script_of(archive: Path, settings: SlurmSettings, folder: Path) -> str:
    """What the job runs on its first node."""
    # Isolated: nothing in the node's environment can take the place of a module.
    return f"#!/bin/sh\nexec {shlex.join([settings.python, '-I', '-S', str(archive), RUN, str(folder)])}\n"


def environment_of(launch: Launch, key: bytes) -> Mapping[str, str]:
    """What sbatch is given, and Slurm keeps for the job: what is handed on to every command, secrets, and the key."""
    return {**surroundings(), **secrets_of(launch), KEY: key.hex()}


def surroundings() -> dict[str, str]:
    """What sbatch finds: nothing of its own variables, which would change jobs unseen, but where the cluster is."""
    found = {name: os.environ[name] for name in (_CONFIGURATION,) if name in os.environ}
    return {**handed_on(), **found}


def _words_of_machines(launch: Launch, settings: SlurmSettings) -> list[str]:
    machines = launch.machines
    if machines is None:
        return ["--nodes=1", "--ntasks-per-node=1", f"--cpus-per-task={launch.vcpus or 1}"]
    _refuse_unknown_ways(machines, settings)
    return [
        f"--nodes={machines.count + len(machines.helpers):d}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={machines.vcpus:d}",
        *([f"--gres=gpu:{machines.gpus:d}"] if machines.gpus else []),
        *settings.words_of(machines.vm_type),
    ]


def _refuse_unknown_ways(machines: Machines, settings: SlurmSettings) -> None:
    if machines.market != "on_demand":
        raise InputError(
            "Slurm has no spot market; name a VM type for the partition whose jobs are pre-empted, with its own price"
        )
    asked = settings.words_of(machines.vm_type)
    other = [name for name in machines.helpers if settings.words_of(name) != asked]
    if other:
        raise InputError(
            f"the helper {other[0]!r} is asked for in another way than its workers ({machines.vm_type!r}), and all "
            "nodes of a job are asked for in one; give both the same options under engine.vm_types, or leave it out"
        )


def _literal(path: Path) -> str:
    """A path in which Slurm replaces nothing: a percent sign, doubled, is one."""
    return str(path).replace("%", "%%")
