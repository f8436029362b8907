"""What a job says of itself, which is untrusted text: lines of bounded length, read as flat JSON objects of numbers."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NoReturn

from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.files import Folder

PREFIX = b"::metric"
LINE_BYTES = 64 * 1024
MOST_REPORTS = 10_000
MOST_BAD_LINES = 100
MOST_NAMES = 1000  # of metrics, in all reports together
MOST_BYTES = 4 * 1024 * 1024  # of all reports together, since whoever polls holds them all
MOST_FILE_BYTES = 2 * MOST_BYTES  # with the last report, and what was not understood
_SHOWN_CHARACTERS = 200

_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'\\/]))")
# A progress bar ends its lines with a carriage return only.
_LINE_ENDS = re.compile(rb"[\r\n]")


class Lines:
    """Bytes as they come, cut into lines. Of a line that is too long the beginning is given, once."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        first, *others = _LINE_ENDS.split(data)
        pieces = [b"" if self._is_skipping else self._rest + first, *others]
        self._is_skipping = self._is_skipping and not others
        *complete, self._rest = pieces
        if len(self._rest) > LINE_BYTES:
            complete.append(self._rest)
            self._rest, self._is_skipping = b"", True
        return complete

    def finish(self) -> list[bytes]:
        """What came last, without an end of line."""
        return self.feed(b"\n")


def metrics_of_output(line: bytes) -> bytes | None:
    """What follows ``::metric`` in a line of the output; None for every other line."""
    return line[len(PREFIX) :].strip() if line.startswith(PREFIX) else None


def metrics_of_file(line: bytes) -> bytes | None:
    """The whole line; None for a blank one."""
    return line.strip() or None


def parse_metrics(text: bytes) -> dict[str, float]:
    """A flat JSON object of finite numbers; a ValueError says what else it is."""
    if len(text) > LINE_BYTES:
        raise ValueError(f"longer than {LINE_BYTES} bytes")
    try:
        found: object = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict) or not found:
        raise ValueError("not a JSON object with at least one metric")
    return {name: _finite_number(name, value) for name, value in found.items()}


class Reports:
    """The file of reports: however much a job says, it stays bounded. What a full disk does not take is held back."""

    def __init__(self, folder: Folder, redacted: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._redacted = redacted  # hides secrets in what JSON's escapes stand for
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        self._descriptor = os.open(folder.path / files.REPORTS, flags, 0o600)
        self._good = self._bad = self._bytes = 0
        self._names: set[str] = set()
        self._held = b""

    def add(self, texts: Iterable[bytes], seconds: float) -> None:
        """Write down these metrics, or why they are none; durably, unless the disk is full."""
        self._held += b"".join(self._entry(text, seconds) for text in texts)
        with suppress(OSError):  # tried again with the next, and at the end
            self.write_held()

    def write_held(self) -> None:
        """Write what is held back, durably."""
        while self._held:
            self._held = self._held[os.write(self._descriptor, self._held) :]
            if not self._held:
                os.fsync(self._descriptor)

    def _entry(self, text: bytes, seconds: float) -> bytes:
        if self._good >= MOST_REPORTS or self._bytes >= MOST_BYTES:
            return self._complaint(f"left out, after {self._good} reports", text)
        try:
            metrics = parse_metrics(text)
            self._take_names(metrics)
        except ValueError as error:
            return self._complaint(self._shown(str(error)), text)
        self._good += 1
        metrics = {self._redacted(name): value for name, value in metrics.items()}
        entry = self._sealed({"metrics": metrics, "seconds": seconds})
        self._bytes += len(entry)
        return entry

    def _take_names(self, metrics: dict[str, float]) -> None:
        names = self._names | metrics.keys()
        if len(names) > MOST_NAMES:
            raise ValueError(f"more than {MOST_NAMES} names of metrics in one trial")
        self._names = names

    def _sealed(self, entry: dict[str, object]) -> bytes:
        return self._folder.sealed(files.REPORTS, {**entry, "number": self._good + self._bad})

    def _complaint(self, reason: str, text: bytes) -> bytes:
        self._bad += 1
        if self._bad > MOST_BAD_LINES:
            return b""
        shown = self._shown(text.decode("utf-8", "replace"))
        more = " (more of such lines are not kept)" if self._bad == MOST_BAD_LINES else ""
        return self._sealed({"bad": f"{reason}: {shown}{more}"})

    def _shown(self, text: str) -> str:
        return _printable(self._redacted(_unescaped(text)))


def _printable(text: str) -> str:
    shown = "".join(character if character.isprintable() else "�" for character in text[:_SHOWN_CHARACTERS])
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown}…"


def _unescaped(text: str) -> str:
    """The characters that JSON's escapes in a text stand for, whether or not the rest of it is JSON."""
    written = _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _finite_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name!r} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name!r} is too large")
    return number
