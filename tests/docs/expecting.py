"""What a console block shows: its commands, and the output that each must have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ANYTHING = "…"

_EXIT = re.compile(r"#\s*exit (\d+)\s*$")


@dataclass(frozen=True)
class Command:
    """What is typed at one prompt, its exit code, and its output (None: not shown, so anything)."""

    offset: int  # in lines, from the first one of the block
    text: str
    exit_code: int = 0
    output: tuple[str, ...] | None = None


def commands_of(text: str) -> tuple[Command, ...]:
    """The commands of a console block; a ``ValueError`` where it does not begin with one."""
    return tuple(_commands(text.splitlines()))


def _commands(lines: list[str]) -> Iterator[Command]:
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    before = lines[: starts[0]] if starts else lines
    if not starts or any(line.strip() for line in before):
        raise ValueError("a console block begins with a command: '$ trimtuner …'")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        typed = [lines[start].removeprefix("$ ")]
        rest = lines[start + 1 : end]
        while rest and (rest[0].startswith("> ") or rest[0] == ">"):
            typed.append(rest.pop(0)[2:])
        code = _EXIT.search(typed[-1])
        shown = tuple(_without_blank_ends(rest))
        yield Command(start, "\n".join(typed), int(code[1]) if code else 0, shown or None)


def is_as_expected(expected: tuple[str, ...], output: str) -> bool:
    """Whether the output is what the page shows, where … stands for anything and alone on a line for any lines."""
    came = "".join(f"{line}\n" for line in _without_blank_ends(output.splitlines()))
    pattern = "".join(_line_pattern(line) for line in expected)
    return re.fullmatch(pattern, came) is not None


def _line_pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:[^\n]*\n)*"
    parts = (re.escape(part) for part in line.rstrip().split(ANYTHING))
    return r"[^\n]*".join(parts) + r"[ \t]*\n"


def _without_blank_ends(lines: list[str]) -> list[str]:
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return lines[first:last]
