"""Beginning an attempt in its folder: once, however often and by however many it is begun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.files import Folder, LaunchRecord

# Handed on are only these variables, because everything else (cloud keys, tokens, passwords in the addresses of
# proxies) is nobody's business but the user's; more is named in the job file, under environment or secrets. These are
# whole names, no beginnings of names: NVIDIA_API_KEY begins as harmless variables do.
# fmt: off
HANDED_ON = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
    "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONPLATLIBDIR",
    "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONHASHSEED", "PYTHONOPTIMIZE",
    "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONFAULTHANDLER",
    "PYTHONMALLOC", "PYTHONTRACEMALLOC", "PYTHONASYNCIODEBUG", "PYTHONINTMAXSTRDIGITS",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VERSION",
    "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_CACHE_PATH",
    "CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_REQUIRE_CUDA", "NVIDIA_TF32_OVERRIDE",
})
# fmt: on


class CannotBegin(RuntimeError):  # noqa: N818  (named by what the caller learns)
    """The process that supervises an attempt could not begin; the text says why."""


def handed_on() -> dict[str, str]:
    """What of this process's environment a command may see."""
    return {name: value for name, value in os.environ.items() if name in HANDED_ON}


def has_begun(folder: Folder) -> bool:
    """Whether the attempt was begun, and maybe ended."""
    return folder.get(files.BEGUN) is not None or folder.get(files.END) is not None


def begin(
    record: LaunchRecord,
    folder: Folder,
    lock: int,
    added: Mapping[str, str],
    lifeline: int | None = None,
    held: Sequence[int] = (),
) -> None:
    """Write down what is to be done and start its supervisor; the caller holds the start lock.

    ``added`` (secrets, tags) joins what is handed on from here, and is written nowhere. When the other end of
    ``lifeline`` is closed, the supervisor ends the attempt. What is ``held`` is held by it as long as it lives.
    """
    folder.put_launch(record)
    _start_supervisor(folder, lock, {**handed_on(), **added}, lifeline, held)


def _start_supervisor(
    folder: Folder, lock: int, environment: dict[str, str], lifeline: int | None, held: Sequence[int]
) -> None:
    """Start the supervisor and wait until it has begun.

    It inherits the lock, so that nobody starts a second one even if we die right now. It closes its output when it has
    begun.
    """
    kept = [lock] if lifeline is None else [lock, lifeline]
    starter = subprocess.run(  # noqa: S603  (our own module, and no shell)
        [*_program(), str(folder.path), *map(str, kept)],
        input=folder.key,
        capture_output=True,
        check=False,
        cwd="/",
        env=environment,
        pass_fds=[*kept, *held],
        start_new_session=True,
    )
    if starter.stdout != b"begun":
        reason = starter.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise CannotBegin(
            f"the process that supervises {str(folder.path)!r} could not begin: {reason}; mend that, then run again"
        )


def _program() -> list[str]:
    """The supervisor's words. No module of the working directory can take the place of one of ours."""
    home = Path(__file__).parents[3]  # of the package: a folder, or the archive that was sent to a rented machine
    if home.is_file():
        return [sys.executable, str(home), "supervise"]
    return [sys.executable, "-P", "-m", "trimtuner.engines.supervising.supervisor"]
