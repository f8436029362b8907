"""What a page needs that is not on every machine, and what its commands find in their environment because of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from postgres_server import NOT_HERE, PASSWORD, PostgresServer, find_binaries

POSTGRES = "postgres"

_MODULES: Mapping[str, tuple[str, ...]] = {
    POSTGRES: ("psycopg",),
    "aws": ("boto3", "asyncssh"),
    "dashboard": ("starlette", "uvicorn"),
    "keras": ("keras", "torch"),
    "lightning": ("lightning", "torch"),
    "mcp": ("mcp",),
    "mlflow": ("mlflow", "alembic"),
    "optuna": ("optuna",),
    "ray": ("ray",),
    "sklearn": ("sklearn",),
    "tensorboard": ("tensorboard",),
    "torch": ("torch",),
    "tune": ("ray", "pyarrow", "tensorboardX"),
    "wandb": ("wandb",),
}

# Credentials of nobody, and an address at which nothing listens: no request leaves the machine.
_NO_CLOUD = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_MAX_ATTEMPTS": "1",
}


def unknown(needs: Iterable[str]) -> list[str]:
    """Needs that no page may state, because nobody knows how to meet them."""
    return [need for need in needs if need not in _MODULES]


def missing(needs: Iterable[str]) -> str | None:
    """Why a page cannot run here, or None."""
    for need in needs:
        if need == POSTGRES and find_binaries() is None:
            return NOT_HERE
        for module in _MODULES.get(need, ()):
            if importlib.util.find_spec(module) is None:
                return f"the page needs {need}, and {module} is not installed"
    return None


def environment_of(
    needs: Iterable[str], base: Path, server: PostgresServer | None, programs: Path | None
) -> dict[str, str]:
    """A small environment of the page's own: nothing of the user's but the way to programs, ``programs`` first."""
    stand_ins, home, temporary = (base / name for name in ("bin", "home", "tmp"))
    for folder in (stand_ins, home, temporary):
        folder.mkdir()
    _write_pip(stand_ins)
    binaries = [str(found)] if POSTGRES in needs and (found := find_binaries()) else []
    first = [str(programs)] if programs is not None else []
    path = [*first, str(stand_ins), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), *binaries]
    environment = {
        "PATH": os.pathsep.join(path),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",  # standard output and error in the order in which they were written
        "PYTHONDONTWRITEBYTECODE": "1",  # a file that is replaced within the second is read anew
    }
    if "aws" in needs:
        environment.update(_NO_CLOUD)
    if server is not None:
        address = server.address(server.new_database(), password=None)
        environment.update(DATABASE=address, PGPASSWORD=PASSWORD)
    return environment


def _write_pip(folder: Path) -> None:
    """A pip that installs nothing, and fails where the page names an extra or a package that is not here."""
    program = folder / "pip"
    script = Path(__file__).with_name("pip_stand_in.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    program.chmod(0o755)
