"""Clean environments: made by any Python that is at hand, given what is to be tested, and thrown away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 1800
_SPEAKING = ("WARNING: Location", "WARNING: Skipping")  # of pip, about indexes that are not there


class Failed(Exception):  # noqa: N818  (named by what happened)
    """A command that was to succeed; the message has the end of what it printed."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @classmethod
    def made_by(cls, python: str, folder: Path) -> Environment:
        """A new one, with nothing in it: the pip of this environment installs there."""
        run([python, "-m", "venv", "--without-pip", folder])
        return cls(folder)

    @property
    def programs(self) -> Path:
        """Where its programs are."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.programs / "python"

    @property
    def _pip(self) -> tuple[object, ...]:
        return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python)

    def install(self, *wanted: object) -> None:
        """Install from the package index, or from the files named."""
        run([*self._pip, "install", "--quiet", "--no-compile", *wanted], seconds=INSTALL_SECONDS)

    def installed(self) -> dict[str, str]:
        """The version of everything that is installed."""
        listed = run([*self._pip, "list", "--format=freeze"])
        pairs = (line.split("==", 1) for line in listed.splitlines() if "==" in line)
        return {name.lower().replace("_", "-"): version for name, version in pairs}


def has_index(environment: Environment) -> bool:
    """Whether there is a package index at hand."""
    try:
        environment.install("--dry-run", "--no-deps", "threadpoolctl")
    except Failed:
        return False
    return True


def find_python(version: str) -> str | None:
    """The interpreter of that version that works: on the path, or one of pyenv's."""
    named = shutil.which(f"python{version}")
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    candidates = [*([named] if named else []), *map(str, kept)]
    return next((one for one in candidates if _is_working(one, version)), None)


def run(words: Iterable[object], folder: Path | None = None, seconds: float = 600) -> str:
    """Run a command that must succeed; what it prints."""
    command = [str(word) for word in words]
    try:
        done = subprocess.run(  # noqa: S603  (our own words)
            command, cwd=folder, env=_environment(), capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(str(error)) from None
    if done.returncode:
        told = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(_SPEAKING)]
        raise Failed("\n".join([f"{' '.join(command)} left with {done.returncode}", *told[-40:]]))
    return done.stdout


def _is_working(python: str, version: str) -> bool:
    """Whether it is that version and can make environments: a shim of pyenv may be neither."""
    said = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        return run([python, "-c", said]).strip() == version
    except (Failed, OSError):
        return False


def _environment() -> dict[str, str]:
    away = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in away}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
