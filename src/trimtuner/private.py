"""Files for nobody but their user; the mode of a file that is there already stays as its owner set it."""

from __future__ import annotations

import os
from pathlib import Path


def private(path: str, flags: int) -> int:
    """For ``open(…, opener=private)``."""
    return os.open(path, flags, 0o600)


def write_private(path: Path, content: bytes) -> None:
    """Write a file, also over another."""
    with open(path, "wb", opener=private) as file:
        file.write(content)
