"""YAML 1.2 as a tree of plain nodes that know their lines.

Built from the parser's events, so that nothing is constructed that the job file could choose: tags are refused,
aliases are counted, and plain words become numbers by the core schema of YAML 1.2 only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from trimtuner.keys.faults import Fault, Faults
from trimtuner.keys.fields import ListNode, MappingNode, Node, ScalarNode
from trimtuner.problem.expressions import Scalar

_DEEPEST = 20  # levels; a job file needs six
_MOST_NODES = 50_000  # after aliases are written out
_MOST_WHOLE = 2**63 - 1

# What YAML 1.2 leaves out, and the line breaks that editors do not count.
_REFUSED = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A tag, which is refused at any length; for long ones, the parser's time grows with the square of it.
_LONG_TAG = re.compile(r"![^\s\"{}]{255}")
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

# What the parser says, by a piece of it, and what helps a person.
_SYNTAX = (
    ("character '\\t'", "a tab where YAML wants spaces; indent by spaces only"),
    ("but got '{'", 'a brace inside a bare word; put the word in quotes: "--lr={learning_rate}"'),
    ("cannot start any token", "a character that cannot begin a bare word (such as @ ` %); put the text in quotes"),
    ("mapping values are not allowed here", "a second ':' or a wrong indentation; put texts with ': ' in quotes"),
    ("expected <block end>", "this line does not fit the lines above; check indentation and dashes"),
    ("<document start>", "this line does not fit the lines above; check indentation and dashes"),
    ("expected the node content", "a value is missing here, or a bracket or sign too many stands here"),
    ("could not find expected ':'", "a key without ':'; write 'key: value'"),
    ("unexpected end of stream", "a quote is opened and never closed"),
    ("expected ',' or", "a comma is missing, or a bracket or brace is opened and not closed"),
)


def tree_of(text: str, faults: Faults) -> Node | None:
    """The tree of the one document in the text; nothing, and a fault, where it cannot be read as YAML."""
    lines = text.replace("\r\n", "\n")
    _refuse(lines, _REFUSED, "the character U+{:04X} is not allowed in a job file; remove it")
    long = "more than 255 characters without a blank follow a '!'; put a blank between them, or remove them"
    _refuse(lines, _LONG_TAG, long)
    return _Builder(_events(lines), faults).document()


def plain_scalar(text: str) -> Scalar:
    """What the core schema of YAML 1.2 takes a bare word for: ``no`` is a text, ``1e-3`` a number."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text[0] in "tT"
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return _whole_number(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", "").lower())
    return text


def _whole_number(text: str, base: int) -> int | float:
    """The number; as infinite beyond 64 bits, where no one means it."""
    if len(text) > 30:
        return float("inf")
    number = int(text.removeprefix("0o").removeprefix("0x"), base)
    return number if abs(number) <= _MOST_WHOLE else float("inf")


def _refuse(text: str, pattern: re.Pattern[str], why: str) -> None:
    """A fault at the first place that the pattern matches, with its first character where it is told."""
    match = pattern.search(text)
    if match is not None:
        raise Fault(text.count("\n", 0, match.start()) + 1, why.format(ord(match[0][0])))


def _events(text: str) -> Iterator[Event]:
    """The parser's events; whatever it stumbles over is a fault of the text."""
    line = 1
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            line = _line(event)
            yield event
    except MarkedYAMLError as error:
        raise _syntax_fault(error, line) from None
    except Exception:  # the parser lets faults of odd escapes and directives through as they come
        raise Fault(line, "this cannot be read as YAML; look for an odd escape, directive or bracket") from None


def _syntax_fault(error: MarkedYAMLError, line: int) -> Fault:
    """At the line where it shows; what is never closed is at the line where it was opened."""
    shown, opened = error.problem_mark, error.context_mark
    problem = str(error.problem)
    if opened is not None and ("end of stream" in problem or "<stream end>" in problem):
        return Fault(opened.line + 1, _syntax_help(problem))
    since = f" (line {opened.line + 1})" if opened is not None and "expected ',' or" in problem else ""
    return Fault(line if shown is None else shown.line + 1, _syntax_help(problem) + since)


def _syntax_help(problem: str) -> str:
    for piece, help_text in _SYNTAX:
        if piece in problem:
            return help_text
    # Only the parser's own words: what it quotes of the file might be a secret.
    return f"not YAML: {_QUOTED.sub('…', problem)}"


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1


class _Builder:
    """Makes nodes of events, one document only."""

    def __init__(self, events: Iterator[Event], faults: Faults) -> None:
        self._events = events
        self._faults = faults
        self._anchored: dict[str, Node] = {}
        self._count = 0

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent) and root is not None:
                raise Fault(_line(event), "a second document begins here ('---'); a job file holds one")
            if isinstance(event, ScalarEvent | AliasEvent | SequenceStartEvent | MappingStartEvent):
                root = self._node(event, 1)
            elif isinstance(event, StreamEndEvent):
                break
        return root

    def _node(self, event: Event, depth: int) -> Node:
        if depth > _DEEPEST:
            raise Fault(_line(event), f"nested more than {_DEEPEST} levels deep")
        if isinstance(event, AliasEvent):
            return self._aliased(event)
        if not isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent):
            raise Fault(_line(event), "a value is missing here")
        if event.tag is not None:
            raise Fault(
                _line(event), "tags ('!' or '!!') are refused in a job file; remove it, or put the text in quotes"
            )
        self._spend(event, 1)
        node: Node
        if isinstance(event, ScalarEvent):
            node = _scalar(event)
        else:
            node = self._list(event, depth) if isinstance(event, SequenceStartEvent) else self._mapping(event, depth)
        if event.anchor is not None:
            self._anchored[event.anchor] = node
        return node

    def _aliased(self, event: AliasEvent) -> Node:
        node = self._anchored.get(event.anchor)
        if node is None:
            raise Fault(
                _line(event),
                "this alias ('*') has no finished anchor ('&') above it; quote a text that begins with '*'",
            )
        self._spend(event, 1 if isinstance(node, ScalarNode) else node.count)
        return node

    def _spend(self, event: Event, nodes: int) -> None:
        self._count += nodes
        if self._count > _MOST_NODES:
            raise Fault(_line(event), f"more than {_MOST_NODES} values, aliases written out; make the file smaller")

    def _list(self, start: SequenceStartEvent, depth: int) -> ListNode:
        before = self._count
        items: list[Node] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._node(event, depth + 1))
        return ListNode(_line(start), tuple(items), self._count - before + 1)

    def _mapping(self, start: MappingStartEvent, depth: int) -> MappingNode:
        before = self._count
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._node(event, depth + 1)
            value = _at_key_if_empty(self._node(next(self._events), depth + 1), _line(event))
            if not isinstance(key, ScalarNode):
                self._faults.add(_line(event), "a key is one word, not a list or mapping; quote a word with braces")
            elif key.text in entries:
                self._faults.add(_line(event), f"the key {key.text!r} stands here again; line {lines[key.text]} has it")
            else:
                entries[key.text], lines[key.text] = value, _line(event)
        return MappingNode(_line(start), entries, lines, self._count - before + 1)


def _at_key_if_empty(node: Node, key_line: int) -> Node:
    """The parser finds an empty value only on the next line."""
    return replace(node, line=key_line) if isinstance(node, ScalarNode) and node.text == "" else node


def _scalar(event: ScalarEvent) -> ScalarNode:
    text = str(event.value)
    if _SURROGATE.search(text):
        raise Fault(_line(event), "half of a surrogate pair is no character; write the character itself")
    is_bare = event.style is None or event.style == ""
    return ScalarNode(_line(event), text, plain_scalar(text) if is_bare else text)
