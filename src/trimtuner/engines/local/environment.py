"""What a command finds in its environment, and on which cores it runs.

Handed on from the driver are only the variables below, because everything else there (cloud keys, tokens, passwords in
the addresses of proxies) is nobody's business but the user's; more is named in the job file, under environment or
secrets. In the order of growing force: those variables, one thread for each vCPU, what the launch sets, secrets, tags.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from trimtuner.engines.local import processes
from trimtuner.engines.protocol import Launch
from trimtuner.errors import InputError

# fmt: off
HANDED_ON = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
})
# fmt: on
HANDED_ON_PREFIXES = ("LC_", "PYTHON", "CUDA", "NVIDIA_")
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


def environment_of_minder(launch: Launch, folder: Path, cores: list[int]) -> dict[str, str]:
    """What may be handed on, secrets and tags; the command inherits it."""
    handed_on = {name: value for name, value in os.environ.items() if _is_handed_on(name)}
    return {**handed_on, **secrets_of(launch), **_tags_of(launch, folder, cores)}


def environment_of_launch(launch: Launch, folder: Path) -> dict[str, str]:
    """What is added for the command, and may be written down: nothing of it is a secret."""
    threads = {} if launch.vcpus is None else {name: str(launch.vcpus) for name in THREADS}
    # Without it Python keeps what is printed for itself until there are some kilobytes; a metric should come at once.
    added = {"PYTHONUNBUFFERED": "1", **threads, **launch.environment}
    reserved = {*launch.secrets, *_tags_of(launch, folder, [])}
    return {name: value for name, value in added.items() if name not in reserved}


def secrets_of(launch: Launch) -> dict[str, str]:
    """Names and values."""
    missing = [name for name in launch.secrets if name not in os.environ]
    if missing:
        raise InputError(f"the secret {missing[0]!r} is not set in the environment of this process; export it first")
    return {name: os.environ[name] for name in launch.secrets}


def least_used_cores(count: int) -> list[int]:
    """Cores for a command with so many vCPUs: those on which the fewest of our other attempts run."""
    use = Counter(core for cores in _cores_of_attempts().values() for core in cores)
    ranked = sorted(os.sched_getaffinity(0), key=lambda core: (use[core], core))
    return sorted(ranked[:count])


def _cores_of_attempts() -> Mapping[str, tuple[int, ...]]:
    return {tagged.folder: tagged.cores for tagged in processes.tagged_processes()}


def _is_handed_on(name: str) -> bool:
    return name in HANDED_ON or name.startswith(HANDED_ON_PREFIXES)


def _tags_of(launch: Launch, folder: Path, cores: list[int]) -> dict[str, str]:
    return {
        processes.STUDY: launch.study,
        processes.TRIAL: str(launch.trial),
        processes.ATTEMPT: str(launch.attempt),
        processes.FOLDER: str(folder),
        processes.CORES: ",".join(str(core) for core in cores),
    }
