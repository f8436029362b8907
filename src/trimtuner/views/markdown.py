"""The views as Markdown: for a terminal, a pull request or a note. No picture says what is not written here."""

from __future__ import annotations

from collections.abc import Sequence

from trimtuner.state import StudyState
from trimtuner.views import every
from trimtuner.views.blocks import Beside, Block, Code, Drawn, Facts, Folded, Heading, Meters, TextTable, Warned
from trimtuner.views.document import goal_text


def markdown(subject: StudyState) -> str:
    """The whole report: every view in words."""
    parts = [f"# {_text(subject.name)}", _text(goal_text(subject))]
    for view in every.VIEWS:
        parts += [f"## {_text(view.title)}", *_written(view.shown(subject))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _written(blocks: Sequence[Block]) -> list[str]:
    """Paragraphs; of what is drawn, what says the same in words."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case str():
                parts.append(_text(block))
            case Heading(text):
                parts.append(f"### {_text(text)}")
            case Facts(named):
                parts.append("\n".join(f"- {_text(name)}: {_text(value)}" for name, value in named.items()))
            case TextTable(heads, lines):
                rule = " | ".join("---" for _ in heads)
                parts.append("\n".join([_row(heads), f"| {rule} |", *(_row(line) for line in lines)]))
            case Meters(meters):
                parts.append("\n".join(f"- {_text(one.name)}: {_text(one.words)}" for one in meters))
            case Warned(text):
                parts.append(f"**{_text(text)}**")
            case Code(text):
                parts.append(_fenced(text))
            case Folded(blocks=inside) | Beside(blocks=inside) | Drawn(written=inside):
                parts += _written(inside)
    return parts


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _fenced(text: str) -> str:
    """As code, behind a fence that the text does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _text(text: str) -> str:
    """Words that stay words, whatever a name or a value holds."""
    for sign in "\\`*_[]<>|#&":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
