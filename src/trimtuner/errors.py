"""What can go wrong, sorted by what the caller should do next.

TrimTunerError
├── InputError    fix the input; whatever was being changed is as it was before
├── NoAnswer      too little is known yet; measure more and ask again
└── SearchOver    stop: the budget is spent or nothing is left to test
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path


class TrimTunerError(Exception):
    """The root of every error that trimtuner raises on purpose."""


class InputError(TrimTunerError, ValueError):
    """The input cannot be used; the message says what, where and what now."""


class NoAnswer(TrimTunerError, RuntimeError):  # noqa: N818  (named by what the caller learns)
    """Too little has been measured to answer."""


class SearchOver(TrimTunerError, RuntimeError):  # noqa: N818  (an ending, not a fault)
    """There is nothing more to ask."""


_ADVICE = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT), "make room, then give the same command again: a study goes on where it was"
    ),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make it writable for you, or give another place"),
}


def words_of(error: OSError) -> str:
    """What the system said, of which file, and what now."""
    said = error.strerror or str(error) or type(error).__name__
    where = f"{error.filename}: {said}" if error.filename is not None else said
    return f"{where}{_advice(error)}"


def unwritable(path: Path, error: OSError) -> InputError:
    """That a file cannot be written, why, and what now; where a disk is full, the system does not name the file."""
    return InputError(f"{path} cannot be written ({error.strerror}){_advice(error)}")


def _advice(error: OSError) -> str:
    return f"; {_ADVICE[error.errno]}" if error.errno in _ADVICE else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ``; did you mean 'cost'?``, or nothing when no known word is near."""
    matches = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def cut(text: str, most: int = 60) -> str:
    """The text as a message shows it: of a long one, the beginning."""
    return text if len(text) <= most else f"{text[:most]}…"
