"""Files that are written for the user: whole or not at all, and those that tell of a study for nobody else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from trimtuner.errors import InputError, unwritable

FOR_ALL, FOR_USER = 0o666, 0o600  # who may read a new file: all that the user's mask allows, or the user alone


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a text file, never over one that is there."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except FileExistsError:
        raise InputError(f"{path} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        remove_half_written(path)
        raise unwritable(path, error) from None


def replace_whole(path: Path, text: str) -> None:
    """Write a text file, also over another: whoever reads it meanwhile, or if we are ended, has the old one."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        remove_half_written(part)
        raise unwritable(path, error) from None


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
