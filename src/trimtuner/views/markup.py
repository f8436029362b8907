"""Pieces of HTML that views are put together from; whatever text is given stays text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape


def sentences(*texts: str) -> str:
    """A paragraph for each."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def facts(named: Mapping[str, str]) -> str:
    """Names with their values, side by side."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in named.items())
    return f"<dl class='facts'>{items}</dl>"


def table(heads: Iterable[str], lines: Iterable[Iterable[str]], class_: str = "plain") -> str:
    """A table that scrolls by itself where it is too wide."""
    head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return (
        f"<div class='scroll'><table class='{class_}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(picture: str, legend: str = "", caption: str = "") -> str:
    """A picture, wider than a phone if need be, with its legend and words below."""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><div class='scroll'>{picture}</div>{legend}{words}</figure>"


def pickable(picture: str, name: str, legend: str) -> str:
    """A picture whose points can be picked, by pointer or by arrow keys; what is picked is said below."""
    keys = f"{escape(name, quote=True)}; the left and right arrow keys go from point to point"
    return (
        f"<figure><div class='scroll pickable' tabindex='0' role='group' aria-label='{keys}'>{picture}</div>{legend}"
        "</figure><p class='picked' aria-live='polite'>No point is picked.</p>"
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """(class, words) of each mark."""
    items = "".join(f"<li>{_swatch(kind)}{escape(words)}</li>" for kind, words in entries)
    return f"<ul class='legend'>{items}</ul>"


def code(text: str) -> str:
    """A command line to copy."""
    return f"<pre tabindex='0'><code>{escape(text)}</code></pre>"


def folded(summary: str, content: str) -> str:
    """What is shown when it is asked for, and in print."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def _swatch(kind: str) -> str:
    inside = {
        "dot": f"<circle cx='8' cy='7' r='4.5' class='{kind}'/>",
        "diamond": f"<path d='M8,1L14,7L8,13L2,7Z' class='{kind.replace('diamond', 'dot')}'/>",
        "line": f"<path d='M1,7L15,7' class='{kind}'/>",
    }.get(kind.split()[0], f"<rect x='1' y='2' width='14' height='10' class='{kind}'/>")
    return f"<svg class='swatch' viewBox='0 0 16 14' aria-hidden='true'>{inside}</svg>"
