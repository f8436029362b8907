"""A Markdown page as the tests see it: what it needs, and its fenced blocks in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

_FENCE = re.compile(r"(?P<indent>\s*)(?P<marks>`{3,}|~{3,})\s*(?P<info>[^`]*)")
_INFO = re.compile(r"(?P<language>[\w+-]*)\s*(?P<options>(?:\w+=\"[^\"]*\"\s*)*)")
_OPTION = re.compile(r"(\w+)=\"([^\"]*)\"")
_KNOWN_OPTIONS = {"title", "skip"}
_KNOWN_KEYS = {"needs", "slow"}


class PageFault(AssertionError):  # noqa: N818  (named by what it is to a writer)
    """What is wrong with a page, and where: ``docs/start.md:41: …``."""

    def __init__(self, page: str, line: int, text: str) -> None:
        super().__init__(f"{page}:{line}: {text}")
        self.line = line


@dataclass(frozen=True)
class Block:
    """The text between two fences; its line is that of the opening fence."""

    line: int
    language: str
    text: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def title(self) -> str | None:
        """The file that it is."""
        return self.options.get("title")

    @property
    def skip(self) -> str | None:
        """Why it is not run."""
        return self.options.get("skip")


@dataclass(frozen=True)
class Page:
    """A page, read."""

    name: str
    blocks: tuple[Block, ...]
    needs: tuple[str, ...] = ()
    is_slow: bool = False


def read_page(path: Path, name: str) -> Page:
    """The page in a file; the name is for messages."""
    return parse_page(path.read_text(encoding="utf-8"), name)


def parse_page(text: str, name: str) -> Page:
    """The page of that text. Fences inside HTML comments count like any other: that is how a page hides them."""
    lines = text.splitlines()
    heading, body_from = _front_matter(lines, name)
    for key in heading.keys() - _KNOWN_KEYS:
        raise PageFault(name, 1, f"the front matter says {key!r}; known are {', '.join(sorted(_KNOWN_KEYS))}")
    needs = heading.get("needs", ())
    if not isinstance(needs, list | tuple) or not all(isinstance(one, str) for one in needs):
        raise PageFault(name, 1, f"needs: {needs!r}; write a list such as [postgres]")
    return Page(name, tuple(_blocks(lines, body_from, name)), tuple(needs), heading.get("slow") is True)


def _front_matter(lines: list[str], name: str) -> tuple[dict[str, object], int]:
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), None)
    if end is None:
        raise PageFault(name, 1, "the front matter is not closed by a line ---")
    try:
        found = YAML(typ="safe").load("\n".join(lines[1:end])) or {}
    except YAMLError as error:
        raise PageFault(name, 1, f"the front matter is not YAML: {error}") from None
    if not isinstance(found, dict):
        raise PageFault(name, 1, "the front matter is no mapping of keys")
    return found, end + 1


def _blocks(lines: list[str], start: int, name: str) -> Iterator[Block]:
    position = start
    while position < len(lines):
        opening = _FENCE.fullmatch(lines[position])
        if opening is None:
            position += 1
            continue
        end = _closing(lines, position, opening["marks"], name)
        inside = [_without(line, len(opening["indent"])) for line in lines[position + 1 : end]]
        language, options = _read_info(opening["info"], name, position + 1)
        yield Block(position + 1, language, "".join(f"{line}\n" for line in inside), options)
        position = end + 1


def _closing(lines: list[str], opening: int, marks: str, name: str) -> int:
    pattern = re.compile(rf"\s*{marks[0]}{{{len(marks)},}}\s*")
    for position in range(opening + 1, len(lines)):
        if pattern.fullmatch(lines[position]):
            return position
    raise PageFault(name, opening + 1, f"this fence is not closed by a line {marks}")


def _without(line: str, indent: int) -> str:
    """A line of a block that stands in a list, as if it did not."""
    return line[min(indent, len(line) - len(line.lstrip())) :]


def _read_info(info: str, name: str, line: int) -> tuple[str, Mapping[str, str]]:
    found = _INFO.fullmatch(info.strip())
    if found is None:
        raise PageFault(
            name, line, f'{info.strip()!r} after a fence; write a language, then title="FILE" or skip="WHY"'
        )
    options = dict(_OPTION.findall(found["options"]))
    for option in options.keys() - _KNOWN_OPTIONS:
        raise PageFault(name, line, f"{option}= after a fence; known are title= and skip=")
    if options.get("skip") == "":
        raise PageFault(name, line, "skip= must say why the block cannot run")
    return found["language"], MappingProxyType(options)
