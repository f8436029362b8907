"""How launch files are written: YAML that old and new readers take alike, and lines for a shell.

Every value stays a value.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

Tree: TypeAlias = "str | int | bool | Sequence[Tree] | Mapping[str, Tree] | None"

STRICT = "set -euo pipefail"  # the first line of every script
_WIDTH = 1_000_000  # no line is broken: a broken one reads the same, but not to people


def yaml_text(comment: Sequence[str], *documents: Mapping[str, Tree]) -> str:
    """The documents, with a comment of so many lines above the first."""
    writer = YAML()
    writer.width = _WIDTH
    writer.indent(mapping=2, sequence=4, offset=2)
    trees = [_quoted_values(document) for document in documents]
    if any(comment) and isinstance(trees[0], CommentedMap):
        trees[0].yaml_set_start_comment("\n".join(comment))
    stream = io.StringIO()
    writer.dump_all(trees, stream)
    return stream.getvalue()


def quoted(text: str) -> str:
    """The text in double quotes, also where it is a key."""
    marked: str = DoubleQuotedScalarString(text)
    return marked


def _quoted_values(tree: Tree) -> object:
    """Every text in quotes: SkyPilot and Kubernetes read YAML 1.1, in which a bare ``no`` or ``1:30`` is no text."""
    if isinstance(tree, Mapping):
        return CommentedMap((key, _quoted_values(value)) for key, value in tree.items())
    if isinstance(tree, str):
        return LiteralScalarString(tree) if _is_script(tree) else quoted(tree)
    return [_quoted_values(item) for item in tree] if isinstance(tree, Sequence) else tree


def _is_script(text: str) -> bool:
    """Whether it reads better in lines of its own, and reads back the same: the writer does not check that."""
    *lines, end = text.split("\n")
    return bool(lines) and not end and all(line.isprintable() and line.strip() == line != "" for line in lines)


def start_line(words: Sequence[str]) -> str:
    """The line that becomes the command; ``exec`` so that a first word such as ``a=b`` or ``if`` is a program too."""
    return f"exec -- {shlex.join(words)}"


def export_line(name: str, value: str) -> str:
    """The line that sets a variable for the command."""
    return f"export {name}={shlex.quote(value)}"


def demand_line(name: str) -> str:
    """The line that hands a secret on, and ends the script where there is none."""
    return f': "${{{name}:?is a secret of this job; set it in the environment first}}"; export {name}'
