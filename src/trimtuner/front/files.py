"""Files that a command writes for its user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.private import private


def write_new(path: Path, text: str) -> None:
    """Write a text file that others may read as far as the user's mask allows; never over one that is there."""
    _write_new(path, text, None)


def write_new_private(path: Path, text: str) -> None:
    """Write a text file for the user alone; never over one that is there."""
    _write_new(path, text, private)


def _write_new(path: Path, text: str, opener: Callable[[str, int], int] | None) -> None:
    try:
        with open(path, "x", encoding="utf-8", opener=opener) as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
