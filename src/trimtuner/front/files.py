"""Files that a command writes for its user."""

from __future__ import annotations

from pathlib import Path

from trimtuner.errors import InputError


def write_new(path: Path, text: str) -> None:
    """Write a text file, never over one that is there."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
