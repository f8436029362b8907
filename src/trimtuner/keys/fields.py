"""A tree read field by field: the right type, or a fault that says what to write; unknown keys name the nearest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trimtuner.errors import InputError, cut, nearest
from trimtuner.keys.faults import Fault, Faults
from trimtuner.problem.expressions import Scalar, Value

_LONGEST_TEXT = 100_000  # characters; one argument of a Linux command holds little more
_LONGEST_SHOWN = 60
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

ROOT = "the job file"

# Our words, and those of neighbouring tools for the same thing.
_OTHER_WORDS = {
    "scale": ("distribution",),
    "working_directory": ("cwd", "workdir"),
    "environment": ("env", "envs"),
    "vm_type": ("instance_type", "instance_types"),
    "vm_count": ("num_nodes",),
    "market": ("use_spot",),
    "goal": ("metric", "objective"),
    "fractions": ("sizes",),
    "trials": ("max_tests", "max_trials", "run_cap"),
    "money": ("usd", "cost"),
    "parallel": ("workers",),
    "values": ("choices",),
    "min": ("low",),
    "max": ("high",),
    "when": ("if",),
}


@dataclass(frozen=True)
class ScalarNode:
    """A single value; ``text`` is how it was written, and ``value`` what YAML 1.2 takes it for."""

    line: int
    text: str
    value: Scalar


@dataclass(frozen=True)
class ListNode:
    """Several values, in their order."""

    line: int
    items: tuple[Node, ...]
    count: int  # of all nodes in it, itself included


@dataclass(frozen=True)
class MappingNode:
    """Values by key, with the line of each key."""

    line: int
    entries: Mapping[str, Node]
    key_lines: Mapping[str, int]
    count: int


Node: TypeAlias = ScalarNode | ListNode | MappingNode


@dataclass(frozen=True)
class Field:
    """One value of the job file: where it stands, and what it may be read as."""

    node: Node
    where: str
    line: int  # from 1
    faults: Faults

    @property
    def folder(self) -> Path:
        """The folder of the job file, from which paths are meant."""
        return self.faults.path.parent

    @property
    def value(self) -> Scalar:
        """What YAML takes a single value for; None where it is empty, a list or a mapping."""
        return self.node.value if isinstance(self.node, ScalarNode) else None

    def fault(self, text: str) -> Fault:
        """What is wrong with this field, at its line."""
        return Fault(self.line, f"{self.where}: {text}")

    def note(self, text: str) -> None:
        """Note what is wrong with this field, and go on."""
        self.faults.add(self.line, f"{self.where}: {text}")

    def wrong(self, wanted: str) -> Fault:
        """The fault of a field that is not what was wanted."""
        return self.fault(f"{_shown(self.node)} is not {wanted}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What the problem's own checks refuse inside is a fault of this field."""
        try:
            yield
        except Fault:
            raise
        except InputError as error:
            raise self.fault(str(error)) from None

    def any_value(self) -> Value:
        """What a parameter may be: a number, a text, true/false, null or a list of these."""
        if isinstance(self.node, ListNode):
            return tuple(item._scalar_or_null() for item in self.items(""))
        return self._scalar_or_null()

    def _scalar_or_null(self) -> Scalar:
        # An empty item is rather a slip than a value.
        is_null = isinstance(self.node, ScalarNode) and self.node.value is None and self.node.text != ""
        return None if is_null else self.scalar()

    def scalar(self) -> Scalar:
        """A number, a text or true/false."""
        value = self.value
        if value is None:
            raise self.wrong("a number, a text or true/false")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong("a finite number of at most 64 bits")
        return self.text("a text") if isinstance(value, str) else value

    def text(self, wanted: str) -> str:
        """A text on one line, as it is."""
        text = self.as_written(wanted)
        if not isinstance(self.value, str):
            raise self.fault(f'{cut(text)} is no text to YAML; put it in quotes: "{cut(text)}"')
        if _CONTROL.search(text):
            raise self.fault("the text has a line break or control character; remove it")
        return text

    def as_written(self, wanted: str) -> str:
        """A single value as its text, number or not: words of a command, values of variables."""
        if not isinstance(self.node, ScalarNode) or self.node.value is None:
            raise self.wrong(wanted)
        if "\0" in self.node.text or len(self.node.text) > _LONGEST_TEXT:
            raise self.fault(f"a text with a null character, or of more than {_LONGEST_TEXT} characters")
        return self.node.text

    def items(self, wanted: str) -> list[Field]:
        """The fields of a list, in order."""
        if not isinstance(self.node, ListNode):
            raise self.wrong(wanted)
        return [
            Field(node, f"{self.where}, item {number}", node.line, self.faults)
            for number, node in enumerate(self.node.items, start=1)
        ]

    def one_or_more(self, wanted: str) -> list[Field]:
        """The fields of a list, or the field itself where it is a single value."""
        return [self] if isinstance(self.node, ScalarNode) else self.items(wanted)

    # Of a mapping

    def mapping(self, wanted: str) -> Field:
        """This field, if it is a mapping."""
        if not isinstance(self.node, MappingNode):
            raise self.wrong(wanted)
        return self

    def section(self, keys: Sequence[str], wanted: str) -> Field:
        """This field, if it is a mapping; keys that it does not know are noted."""
        for key in self.mapping(wanted).keys:
            if key not in keys:
                hint = _hint_for(key, keys, self.faults.homes)
                self.faults.add(self.line_of(key), f"unknown key {shortened(key)} in {self.where}{hint}")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """Those that are written, in their order; none where it is no mapping."""
        return tuple(self.node.entries) if isinstance(self.node, MappingNode) else ()

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def __iter__(self) -> Iterator[tuple[str, Field]]:
        return ((key, self.field(key)) for key in self.keys)

    def line_of(self, key: str) -> int:
        """Where the key stands, or the field itself where it does not."""
        return self.node.key_lines.get(key, self.line) if isinstance(self.node, MappingNode) else self.line

    def field(self, key: str) -> Field:
        """The field of a key that is written."""
        if not isinstance(self.node, MappingNode):
            raise self.wrong("a mapping")
        place = key if self.where == ROOT else f"{self.where}.{cut(key)}"
        node = self.node.entries[key]
        # Lists and mappings may begin a line below their key, where nobody would look.
        line = node.line if isinstance(node, ScalarNode) else self.line_of(key)
        return Field(node, place, line, self.faults)


def shortened(value: object) -> str:
    """How a value is shown in a message."""
    return cut(repr(value))


def _shown(node: Node) -> str:
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    if node.value is None:
        return "nothing"
    return shortened(node.value) if isinstance(node.value, str) else node.text[:_LONGEST_SHOWN]


def _hint_for(key: str, keys: Sequence[str], homes: Mapping[str, Sequence[str]]) -> str:
    if key == "<<":
        return "; YAML 1.2 has no merge keys, write the values out"
    for ours, theirs in _OTHER_WORDS.items():
        if key in theirs and ours in keys:
            return f"; here it is called {ours!r}"
    near = nearest(key, keys)
    home = next((section for section, known in homes.items() if key in known and set(known) != set(keys)), None)
    if near or home is None:
        return near or f"; it knows {', '.join(keys)}"
    return f"; it belongs {'at the left edge' if home == ROOT else f'under {home}:'}"
