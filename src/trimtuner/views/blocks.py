"""What a view is made of: blocks of words, numbers and pictures, which every place shows in its own way.

Page and report show them as HTML here, ``markdown`` as Markdown, ``notebook`` and ``figures`` take the pictures out.
Whatever text is given stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from trimtuner.state import StudyState
from trimtuner.views.words import words_instead

Effort: TypeAlias = Literal["facts", "model", "checks"]  # reads the record; fits a model; fits it again and again
EFFORTS: tuple[Effort, ...] = ("facts", "model", "checks")


@dataclass(frozen=True)
class Heading:
    """A title within a view."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names with their values, side by side."""

    named: Mapping[str, str]


@dataclass(frozen=True)
class TextTable:
    """Heads, and lines of as many cells."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    kind: Literal["plain", "answer"] = "plain"  # how it looks


@dataclass(frozen=True)
class Code:
    """A command line to copy."""

    text: str


@dataclass(frozen=True)
class Picture:
    """An SVG with its legend, (class, words) of each mark, and words below."""

    svg: str
    legend: Sequence[tuple[str, str]] = ()
    caption: str = ""
    name: str | None = None  # of a file of its own; None: it is only shown among its view's other blocks
    picked: str | None = None  # what it shows, where its points can be picked by pointer or by arrow keys
    is_shown: bool = True  # False: it can only be had as a file


@dataclass(frozen=True)
class Folded:
    """What is shown when it is asked for, and in print."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Beside:
    """Blocks beside each other, where there is room."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Html:
    """Elements that no other block is made of, in which all text is escaped already."""

    text: str


@dataclass(frozen=True)
class Drawn:
    """What is drawn where pictures can be seen, and what is written in its place where there are only words."""

    drawn: Sequence[Block]
    written: Sequence[Block]


Block: TypeAlias = (
    str | Heading | Facts | TextTable | Code | Picture | Folded | Beside | Html | Drawn
)  # str: a paragraph
BlocksOf: TypeAlias = Callable[[StudyState], Sequence[Block]]


@dataclass(frozen=True)
class View:
    """One view: its name in addresses, its title, and its blocks."""

    name: str
    title: str
    effort: Effort
    blocks: BlocksOf
    in_report: BlocksOf | None = None  # where a file, which can ask nobody, must hold more than the page
    in_notebook: BlocksOf | None = None  # what is shown there, where there is little room; None: nothing
    is_drawn: bool = True  # whether it has pictures that can be had as files
    nothing: str = "There is nothing to draw yet."  # what is said where there is no block, or no picture

    def shown(self, subject: StudyState) -> Sequence[Block]:
        """The blocks, or why there are none."""
        return safely(self.blocks, subject) or [self.why_nothing(subject)]

    def shown_in_report(self, subject: StudyState) -> Sequence[Block]:
        """The blocks with all that a file must hold, or why there are none."""
        return safely(self.in_report or self.blocks, subject) or [self.why_nothing(subject)]

    def html(self, subject: StudyState) -> str:
        """The view as it is on the page."""
        return html_of(self.shown(subject))

    def why_nothing(self, subject: StudyState) -> str:
        """Why there is nothing to see: no model yet, where it takes one; else what the view itself says."""
        return (None if self.effort == "facts" else subject.why_no_model) or self.nothing


def safely(blocks: BlocksOf, subject: StudyState) -> Sequence[Block]:
    """The blocks, or why they cannot be shown: a view that fails takes nothing else with it."""
    try:
        return blocks(subject)
    except Exception as error:
        return [words_instead(error)]


def pictures_of(blocks: Sequence[Block]) -> Iterator[Picture]:
    """Every picture among the blocks, in their order."""
    for block in blocks:
        match block:
            case Picture():
                yield block
            case Folded(blocks=inside) | Beside(blocks=inside) | Drawn(drawn=inside):
                yield from pictures_of(inside)


def named_pictures(blocks: BlocksOf) -> BlocksOf:
    """Of a view's blocks, the pictures that can be had as files."""
    return lambda subject: [one for one in pictures_of(blocks(subject)) if one.name is not None]


def numbered(view: str, part: str, place: int) -> str:
    """The name of a picture: the first is the view's own, the others say what they are of."""
    return view if place == 0 else f"{view}-{part}"


def html_of(blocks: Sequence[Block]) -> str:
    """The blocks as HTML, one after the other."""
    return "".join(_html(block) for block in blocks if block)


def _html(block: Block) -> str:
    match block:
        case str():
            return f"<p>{escape(block)}</p>"
        case Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case Facts(named):
            items = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in named.items())
            return f"<dl class='facts'>{''.join(items)}</dl>"
        case TextTable():
            return _table(block)
        case Code(text):
            return f"<pre tabindex='0'><code>{escape(text)}</code></pre>"
        case Picture():
            return _figure(block) if block.is_shown else ""
        case Folded(summary, inside):
            return f"<details><summary>{escape(summary)}</summary>{html_of(inside)}</details>"
        case Beside(inside):
            return f"<div class='side'>{html_of(inside)}</div>"
        case Html(text):
            return text
        case Drawn(drawn=inside):
            return html_of(inside)


def _table(table: TextTable) -> str:
    """A table that scrolls by itself where it is too wide."""
    head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in table.heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in table.lines)
    inside = f"<table class='{table.kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='scroll'>{inside}</div>"


def _figure(picture: Picture) -> str:
    """Wider than a phone if need be, with its legend and words below; of one to be picked from, what is picked."""
    scroll, below = "<div class='scroll'>", ""
    if picture.picked is not None:
        keys = f"{escape(picture.picked, quote=True)}; the left and right arrow keys go from point to point"
        scroll = f"<div class='scroll pickable' tabindex='0' role='group' aria-label='{keys}'>"
        below = "<p class='picked' aria-live='polite'>No point is picked.</p>"
    items = "".join(f"<li>{_swatch(kind)}{escape(words)}</li>" for kind, words in picture.legend)
    legend = f"<ul class='legend'>{items}</ul>" if items else ""
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
    return f"<figure>{scroll}{picture.svg}</div>{legend}{caption}</figure>{below}"


def _swatch(kind: str) -> str:
    inside = {
        "dot": f"<circle cx='8' cy='7' r='4.5' class='{kind}'/>",
        "diamond": f"<path d='M8,1L14,7L8,13L2,7Z' class='{kind.replace('diamond', 'dot')}'/>",
        "line": f"<path d='M1,7L15,7' class='{kind}'/>",
    }.get(kind.split()[0], f"<rect x='1' y='2' width='14' height='10' class='{kind}'/>")
    return f"<svg class='swatch' viewBox='0 0 16 14' aria-hidden='true'>{inside}</svg>"
