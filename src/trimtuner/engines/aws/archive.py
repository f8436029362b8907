"""The part of this package that a rented machine runs: one file of Python, built from the sources here."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

_MAIN = "from trimtuner.engines.aws.machine_side import main\n\nmain()\n"
_EMPTY = ("trimtuner", "trimtuner/engines", "trimtuner/engines/aws")  # their own files import more than is sent
_SENT = ("errors.py", "files.py", "engines/protocol.py", "engines/aws/machine_side.py")
_SENT_FOLDER = "engines/supervising"
_LONG_AGO = (2020, 1, 1, 0, 0, 0)


class Archive(NamedTuple):
    """A zip that Python runs; the same sources give the same bytes."""

    name: str
    data: bytes


@cache
def archive() -> Archive:
    """What is sent to every machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in sorted(_contents().items()):
            file.writestr(zipfile.ZipInfo(name, _LONG_AGO), text, zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    # Named by its content: one that a running supervisor still reads from is never replaced by another.
    return Archive(f"machine-{hashlib.sha256(data).hexdigest()[:16]}.pyz", data)


def _contents() -> dict[str, bytes]:
    package = resources.files("trimtuner")
    contents = {"__main__.py": _MAIN.encode()}
    contents |= {f"{folder}/__init__.py": b"" for folder in _EMPTY}
    contents |= {f"trimtuner/{name}": (package / name).read_bytes() for name in _SENT}
    contents |= {f"trimtuner/{_SENT_FOLDER}/{one.name}": one.read_bytes() for one in _sources(package / _SENT_FOLDER)}
    return contents


def _sources(folder: Traversable) -> list[Traversable]:
    return [one for one in folder.iterdir() if one.name.endswith(".py")]
