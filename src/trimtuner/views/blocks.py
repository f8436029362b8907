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

# What the first screen needs of the record; the rest of what it tells; what fits a model; what fits it again and again.
Effort: TypeAlias = Literal["glance", "facts", "model", "checks"]
EFFORTS: tuple[Effort, ...] = ("glance", "facts", "model", "checks")
READING: tuple[Effort, ...] = ("glance", "facts")  # without a model


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
    kind: Literal["plain", "answer", "data"] = "plain"  # how it looks
    keys: Sequence[str] = ()  # of the configuration of each line, where all lines have one


@dataclass(frozen=True)
class Meter:
    """How much of a whole: a name, a share from 0 to 1 (None: not known), and the words behind it."""

    name: str
    share: float | None
    words: str
    kind: Literal["plain", "good", "bad"] = "plain"
    trial: int | None = None


@dataclass(frozen=True)
class Meters:
    """Several meters, a line for each of them."""

    meters: Sequence[Meter]


@dataclass(frozen=True)
class Warned:
    """Words that must not be overlooked."""

    text: str


@dataclass(frozen=True)
class Code:
    """A command line to copy."""

    text: str


@dataclass(frozen=True)
class Picture:
    """An SVG with its legend, (class, words) of each mark, words below, and the same in numbers."""

    svg: str
    legend: Sequence[tuple[str, str]] = ()
    caption: str = ""
    name: str | None = None  # of a file of its own; None: it is only shown among its view's other blocks
    table: TextTable | None = None  # what is drawn, for who cannot see it, and to be taken along as CSV
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
    str | Heading | Facts | TextTable | Meters | Warned | Code | Picture | Folded | Beside | Html | Drawn
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
    at_once: BlocksOf | None = None  # what the record says already, until the model is fitted
    size: Literal["half", "wide"] = "half"  # of the page, where there is room
    is_drawn: bool = True  # whether it has pictures that can be had as files
    nothing: str = "There is nothing to draw yet."  # what is said where there is no block, or no picture

    @property
    def is_first(self) -> bool:
        """Whether it belongs to the first screen, and has something to say at once."""
        return self.effort == "glance" or self.at_once is not None

    def shown(self, subject: StudyState) -> Sequence[Block]:
        """The blocks, or why there are none."""
        return safely(self.blocks, subject) or [self.why_nothing(subject)]

    def shown_in_report(self, subject: StudyState) -> Sequence[Block]:
        """The blocks with all that a file must hold, or why there are none."""
        return safely(self.in_report or self.blocks, subject) or [self.why_nothing(subject)]

    def html(self, subject: StudyState) -> str:
        """The view as it is on the page."""
        return html_of(self.shown(subject))

    def html_at_once(self, subject: StudyState) -> str | None:
        """What can be said before a model is fitted; nothing where that is nothing."""
        return None if self.at_once is None else html_of(safely(self.at_once, subject))

    def why_nothing(self, subject: StudyState) -> str:
        """Why there is nothing to see: no model yet, where it takes one; else what the view itself says."""
        return (None if self.effort in READING else subject.why_no_model) or self.nothing


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
        case Meters(meters):
            return f"<ul class='meters'>{''.join(map(_meter, meters))}</ul>"
        case Warned(text):
            return f"<p class='warned'>{escape(text)}</p>"
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
    head = "".join(f"<th scope='col'>{escape(one)}</th>" if one else "<td></td>" for one in table.heads)
    keys = [f" data-c='{escape(key, quote=True)}'" for key in table.keys] or [""] * len(table.lines)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in table.lines)
    body = "".join(f"<tr{key}>{line}</tr>" for key, line in zip(keys, cells, strict=True))
    inside = f"<table class='{table.kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='scroll' tabindex='0'>{inside}</div>"


def _meter(meter: Meter) -> str:
    value = "" if meter.share is None else f" value='{min(max(meter.share, 0.0), 1.0):.4f}'"
    trial = "" if meter.trial is None else f" data-t='{meter.trial:d}'"
    name = escape(meter.name, quote=True)
    bar = f"<progress max='1'{value} class='{meter.kind}' aria-label='{name}'></progress>"
    return f"<li{trial}><span class='name'>{name}</span>{bar}<span>{escape(meter.words)}</span></li>"


def _figure(picture: Picture) -> str:
    """The picture, wider than a phone if need be, with its legend, its words, and its numbers as a table."""
    items = "".join(f"<li>{_swatch(kind)}{escape(words)}</li>" for kind, words in picture.legend)
    legend = f"<ul class='legend'>{items}</ul>" if items else ""
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
    table = _html(Folded("As a table", [picture.table])) if picture.table is not None else ""
    name = f" data-name='{escape(picture.name, quote=True)}'" if picture.name is not None else ""
    return f"<figure{name}><div class='scroll'>{picture.svg}</div>{legend}{caption}{table}</figure>"


def _swatch(kind: str) -> str:
    inside = {
        "dot": f"<circle cx='8' cy='7' r='4.5' class='{kind}'/>",
        "diamond": f"<path d='M8,1L14,7L8,13L2,7Z' class='{kind.replace('diamond', 'dot')}'/>",
        "line": f"<path d='M1,7L15,7' class='{kind}'/>",
    }.get(kind.split()[0], f"<rect x='1' y='2' width='14' height='10' class='{kind}'/>")
    return f"<svg class='swatch' viewBox='0 0 16 14' aria-hidden='true'>{inside}</svg>"
