"""Files and folders for nobody but their user; what is there already stays as its owner has set it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from trimtuner.errors import unwritable


def write_private(path: Path, content: bytes) -> None:
    """Write a file, also over another."""
    is_new = not path.exists()
    try:
        if is_new:
            path.touch(mode=0o600)
        path.write_bytes(content)
    except OSError as error:
        if is_new:
            remove_half_written(path)
        raise unwritable(path, error) from None


def make_private_folder(folder: Path) -> None:
    """Make the folder, and with it those above that are missing."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def remove_half_written(path: Path) -> None:
    """Leave nothing that looks as if it were whole; where nothing can be written, there is nothing."""
    with suppress(OSError):
        path.unlink()
