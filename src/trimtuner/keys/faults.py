"""What is wrong with a job file: each fault with its line, all of them told in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from trimtuner.errors import InputError

_LONGEST_TEXT = 500  # of one fault, so that a strange value cannot flood the terminal
_MOST_TOLD = 20  # beyond these, the first ones are likely the cause


class JobFileError(InputError):
    """The job file cannot be used: one line ``mnist.yaml:12: what is wrong; what to do`` for each fault."""

    def __init__(self, message: str, lines: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class Fault(InputError):  # noqa: N818  (one of several, gathered into the error)
    """One thing that is wrong, at one line (counted from 1)."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


class Faults:
    """Faults found so far in a file: reading goes on after one, so that independent ones are told together.

    ``homes`` are the keys of each section, to say of a misplaced one where it belongs.
    """

    def __init__(self, path: Path = Path(), homes: Mapping[str, Sequence[str]] | None = None) -> None:
        self.path = path.absolute()
        self.homes = homes or {}
        self._found: dict[tuple[int, str], None] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, line: int, text: str) -> None:
        """Note what is wrong at a line."""
        self._found[(line, one_printable_line(text))] = None

    @contextmanager
    def collecting(self, line: int) -> Iterator[None]:
        """Note what is raised inside; an error that does not know its line is at the one given."""
        try:
            yield
        except Fault as fault:
            self.add(fault.line, str(fault))
        except InputError as error:
            self.add(line, str(error))

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """What is noted inside is raised again at the end, so that a part is not taken for the whole."""
        before = len(self._found)
        yield
        for line, text in islice(self._found, before, None):
            raise Fault(line, text)

    def error(self, path: Path) -> JobFileError:
        """All faults in the order of the file."""
        ordered = sorted(self._found)
        name = one_printable_line(str(path))
        told = [f"{name}:{line}: {text}" for line, text in ordered[:_MOST_TOLD]]
        if len(ordered) > _MOST_TOLD:
            told.append(f"{name}:{ordered[_MOST_TOLD][0]}: and {len(ordered) - _MOST_TOLD} more faults")
        return JobFileError("\n".join(told), tuple(line for line, _ in ordered))


def one_printable_line(text: str) -> str:
    """The text without line breaks or control characters, and not too long."""
    short = text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in short)
