"""The part of this package that a machine without it runs: one file, which its Python can run as it is."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import cache
from importlib import resources
from typing import NamedTuple

_SENT = ("errors.py", "files.py", "engines/protocol.py")
_SENT_FOLDER = "engines/supervising"
_LONG_AGO = (2020, 1, 1, 0, 0, 0)


class Archive(NamedTuple):
    """A zip of sources; the same sources give the same bytes."""

    name: str
    data: bytes


@cache
def archive_of(module: str) -> Archive:
    """All that supervises a command, and a module of an engine whose ``main`` is run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in sorted(_contents(module).items()):
            file.writestr(zipfile.ZipInfo(name, _LONG_AGO), text, zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    # Named by its content: one that a running supervisor still reads from is never replaced by another.
    return Archive(f"machine-{hashlib.sha256(data).hexdigest()[:16]}.pyz", data)


def _contents(module: str) -> dict[str, bytes]:
    package = resources.files("trimtuner")
    folder = [one for one in (package / _SENT_FOLDER).iterdir() if one.name.endswith(".py")]
    path = module.replace(".", "/").removeprefix("trimtuner/") + ".py"
    empty = ("trimtuner", "trimtuner/engines", f"trimtuner/{path.rpartition('/')[0]}")  # their own import more
    return {
        "__main__.py": f"from {module} import main\n\nmain()\n".encode(),
        **{f"{name}/__init__.py": b"" for name in empty},
        **{f"trimtuner/{name}": (package / name).read_bytes() for name in (*_SENT, path)},
        **{f"trimtuner/{_SENT_FOLDER}/{one.name}": one.read_bytes() for one in folder},
    }
