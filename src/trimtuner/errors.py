"""What can go wrong, sorted by what the caller should do next.

TrimTunerError
├── InputError    fix the input; whatever was being changed is as it was before
├── NoAnswer      too little is known yet; measure more and ask again
└── SearchOver    stop: the budget is spent or nothing is left to test
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TrimTunerError(Exception):
    """The root of every error that trimtuner raises on purpose."""


class InputError(TrimTunerError, ValueError):
    """The input cannot be used; the message says what, where and what now."""


class NoAnswer(TrimTunerError, RuntimeError):  # noqa: N818  (named by what the caller learns)
    """Too little has been measured to answer."""


class SearchOver(TrimTunerError, RuntimeError):  # noqa: N818  (an ending, not a fault)
    """There is nothing more to ask."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ``; did you mean 'cost'?``, or nothing when no known word is near."""
    matches = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""
