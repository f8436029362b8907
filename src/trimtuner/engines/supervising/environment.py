"""What a command finds in its environment, and on which cores it runs.

In the order of growing force: what is handed on (see ``starting``), one thread for each vCPU, what the launch sets,
secrets, tags.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from trimtuner.engines.protocol import Launch
from trimtuner.engines.supervising import processes
from trimtuner.engines.supervising.files import LaunchRecord
from trimtuner.engines.supervising.output import SHORTEST_SECRET
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


def record_of(launch: Launch, folder: str, working_directory: str, cores: Sequence[int] = ()) -> LaunchRecord:
    """The launch as its supervisor reads it; ``folder`` is the attempt's, on the machine that runs it."""
    return LaunchRecord(
        study=launch.study,
        trial=launch.trial,
        attempt=launch.attempt,
        command=list(launch.command),
        working_directory=working_directory,
        environment=_added_environment(launch, folder),
        secrets=list(launch.secrets),
        limit=launch.limit,
        cores=list(cores),
        memory_bytes=launch.memory_bytes,
        metrics_file=launch.metrics_file,
    )


def check_launch(launch: Launch) -> None:
    """Refuse what no engine could do."""
    if not launch.command:
        raise InputError("the command is empty; it is a list of words, the program first")
    if not 0 < launch.limit < math.inf:
        raise InputError(f"a limit of {launch.limit} seconds cannot be kept; it must be above 0 and finite")
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


def addresses(workers: Sequence[str], helpers: Sequence[str]) -> dict[str, str]:
    """What the command is told of its machines, the first of which it runs on."""
    return {
        "TRIMTUNER_HEAD": workers[0],
        "TRIMTUNER_WORKERS": ",".join(workers),
        "TRIMTUNER_HELPERS": ",".join(helpers),
    }


def _tags_of(launch: Launch, folder: str, cores: Sequence[int]) -> dict[str, str]:
    return {
        processes.STUDY: launch.study,
        processes.TRIAL: str(launch.trial),
        processes.ATTEMPT: str(launch.attempt),
        processes.FOLDER: folder,
        processes.CORES: ",".join(str(core) for core in cores),
    }
