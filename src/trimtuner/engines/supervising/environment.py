"""What a command finds in its environment, and on which cores it runs.

In the order of growing force: what is handed on (see ``starting``), one thread for each vCPU, what the launch sets,
secrets, tags.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePath

from trimtuner.engines.protocol import CHECKPOINT, OF_NODES, Launch, later
from trimtuner.engines.supervising import processes
from trimtuner.engines.supervising.files import LaunchRecord, NodeRecord
from trimtuner.engines.supervising.nodes import Meeting, head_alone
from trimtuner.engines.supervising.output import SHORTEST_SECRET
from trimtuner.engines.supervising.ports import LOOPBACK
from trimtuner.errors import InputError

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def secrets_and_tags(launch: Launch, folder: str, cores: Sequence[int] = ()) -> dict[str, str]:
    """What the supervisor is given beside what is handed on, and written nowhere; the command inherits it."""
    return {**secrets_of(launch), **_tags_of(launch, folder, cores)}


def record_of(launch: Launch, folder: str, working_directory: str) -> LaunchRecord:
    """The launch as its supervisor reads it; ``folder`` is the attempt's, on the machine that runs it.

    Which nodes the supervisor starts, and where a checkpoint is kept, is for whoever knows the machine to put in.
    """
    return LaunchRecord(
        study=launch.study,
        trial=launch.trial,
        attempt=launch.attempt,
        command=list(launch.command),
        working_directory=working_directory,
        environment=_added_environment(launch, folder),
        secrets=list(launch.secrets),
        limit=launch.limit,
        memory_bytes=launch.memory_bytes,
        metrics_file=launch.metrics_file,
        starts_on=launch.nodes,
        nodes=[head_alone()],
        repeat=launch.repeat,
        checkpoint=None,
    )


def nodes_at(launch: Launch, places: Sequence[str], port: int) -> list[NodeRecord]:
    """The nodes on which the command starts, of machines at these addresses: workers first, then helpers."""
    if launch.nodes == "head":
        return [head_alone()]
    workers = 1 if launch.machines is None else launch.machines.count
    meeting = Meeting(tuple(places[:workers]), tuple(places[workers:]), port)
    return [meeting.node(rank) for rank in range(len(places))]


def nodes_here(launch: Launch, cores: Sequence[int], port: int) -> list[NodeRecord]:
    """All of the nodes on this machine, which stands in for theirs; each has cores of its own where there are enough.

    A command on the head alone has all of the cores.
    """
    if launch.nodes == "head":
        return [head_alone(cores)]
    nodes = nodes_at(launch, [LOOPBACK] * launch.node_count, port)
    for node in nodes if cores else ():
        node["cores"] = _share_of(cores, node["rank"], launch.vcpus or 1)
    return nodes


def checkpoint_of(launch: Launch) -> Path | None:
    """The folder below that of the study which the attempts at a run share, where the command asks for one."""
    if not launch.keeps_checkpoint:
        return None
    again = "" if launch.repeat == 1 else f"-{launch.repeat:d}"
    return launch.folder.resolve() / f"{launch.trial:d}-{CHECKPOINT}{again}"


def _share_of(cores: Sequence[int], rank: int, count: int) -> list[int]:
    return sorted({cores[(rank * count + step) % len(cores)] for step in range(count)})


def check_launch(launch: Launch) -> None:
    """Refuse what no engine could do."""
    if not launch.command:
        raise InputError("the command is empty; it is a list of words, the program first")
    if not 0 < launch.limit < math.inf:
        raise InputError(f"a limit of {launch.limit} seconds cannot be kept; it must be above 0 and finite")
    if launch.nodes == "head" and any(later(name) in word for word in launch.command for name in OF_NODES):
        raise InputError("the command asks for its rank or for a meeting place, and starts on the head alone")
    file = PurePath("metrics" if launch.metrics_file is None else launch.metrics_file)
    if file.is_absolute() or ".." in file.parts or not file.name:
        raise InputError(f"the file of metrics {launch.metrics_file!r} must lie inside the working directory")


def check_secrets(launch: Launch) -> None:
    """Refuse a secret that would be written down after all."""
    written = (*launch.command, *launch.environment.values())
    for name, value in secrets_of(launch).items():
        if len(value) >= SHORTEST_SECRET and any(value in text for text in written):
            raise InputError(f"the command or its environment holds the value of the secret {name!r}; use its name")


def _added_environment(launch: Launch, folder: str) -> dict[str, str]:
    """What is added for the command, and may be written down: nothing of it is a secret."""
    threads = {} if launch.vcpus is None else {name: str(launch.vcpus) for name in THREADS}
    # Without it Python keeps what is printed for itself until there are some kilobytes; a metric should come at once.
    added = {"PYTHONUNBUFFERED": "1", **threads, **launch.environment}
    reserved = {*launch.secrets, *_tags_of(launch, folder, [])}
    return {name: value for name, value in added.items() if name not in reserved}


def secrets_of(launch: Launch) -> dict[str, str]:
    """The secrets of the launch with their values, from the environment of this process."""
    missing = [name for name in launch.secrets if name not in os.environ]
    if missing:
        raise InputError(f"the secret {missing[0]!r} is not set in the environment of this process; export it first")
    return {name: os.environ[name] for name in launch.secrets}


def least_used_cores(count: int) -> list[int]:
    """Cores for a command with so many vCPUs: those on which the fewest of our other attempts run."""
    cores_of = {tagged.folder: tagged.cores for tagged in processes.tagged_processes()}
    use = Counter(core for cores in cores_of.values() for core in cores)
    ranked = sorted(os.sched_getaffinity(0), key=lambda core: (use[core], core))
    return sorted(ranked[:count])


def _tags_of(launch: Launch, folder: str, cores: Sequence[int]) -> dict[str, str]:
    return {
        processes.STUDY: launch.study,
        processes.TRIAL: str(launch.trial),
        processes.ATTEMPT: str(launch.attempt),
        processes.FOLDER: folder,
        processes.CORES: ",".join(str(core) for core in cores),
    }
