"""Commands with placeholders: plain substitution in each word. No shell, no formats, no attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtuner.errors import InputError, nearest

_TOKENS = re.compile(r"(?P<literal>\{\{|\}\}|[^{}]+)|\{(?P<name>[^{}]*)\}|(?P<stray>[{}])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL_BRACES = {"{{": "{", "}}": "}"}


@dataclass(frozen=True)
class Word:
    """One word of a command: texts, and between them the names of what is put in."""

    pieces: tuple[tuple[str, str | None], ...]  # a text, and the name that follows it, if any

    @classmethod
    def parse(cls, text: str) -> Word:
        """Read ``--lr={learning_rate}``; ``{{`` and ``}}`` stand for braces."""
        pieces: list[tuple[str, str | None]] = []
        before = ""
        for match in _TOKENS.finditer(text):
            if match["stray"]:
                raise InputError(f"a single {match['stray']!r}; write {match['stray'] * 2!r} for the brace itself")
            if match["name"] is None:
                before += _LITERAL_BRACES.get(match["literal"], match["literal"])
                continue
            pieces.append((before, _checked_name(match["name"])))
            before = ""
        return cls((*pieces, (before, None)) if before or not pieces else tuple(pieces))

    @property
    def names(self) -> frozenset[str]:
        """The names of its placeholders."""
        return frozenset(name for _, name in self.pieces if name is not None)

    def require_names(self, known: Iterable[str]) -> None:
        """Refuse a placeholder that will never have a value."""
        listed = sorted(known)
        for name in sorted(self.names - frozenset(listed)):
            hint = nearest(name, listed) or f"; known are {', '.join(listed)}"
            raise InputError(f"unknown placeholder {{{name}}}{hint}")

    def filled(self, values: Mapping[str, str]) -> str | None:
        """The word with the values put in; nothing where one of its names has no value."""
        if not self.names <= values.keys():
            return None
        return "".join(text + ("" if name is None else values[name]) for text, name in self.pieces)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            "what stands in braces must be a plain name such as {learning_rate}; write {{ and }} for literal braces"
        )
    return name
