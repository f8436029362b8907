"""SVG, written by hand: elements with escaped text, and no style but classes, so that a strict page may show them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

Attribute = str | int | float | None


def element(name: str, *children: str, **attributes: Attribute) -> str:
    """An element; an attribute that is None is left out, ``class_`` is class, and ``_`` in a name is ``-``."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def text(content: str, x: float, y: float, class_: str = "", anchor: str | None = None) -> str:
    """A text; whatever is in it is only text."""
    return element("text", escape(content), x=x, y=y, class_=class_ or None, text_anchor=anchor)


def title(content: str) -> str:
    """What a pointer that rests on the element is told."""
    return element("title", escape(content))


def path_of(points: Iterable[tuple[float, float]]) -> str:
    """Straight lines from point to point."""
    return "M" + "L".join(f"{_short(x)},{_short(y)}" for x, y in points)


def steps_of(points: list[tuple[float, float]]) -> str:
    """A value that holds until the next point."""
    return path_of(points[:1]) + "".join(f"H{_short(x)}V{_short(y)}" for x, y in points[1:])


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    name = "viewBox" if name == "viewbox" else name
    shown = _short(value) if isinstance(value, int | float) else escape(str(value), quote=True)
    return f' {name}="{shown}"'


def _short(number: float) -> str:
    """A tenth of a pixel is as fine as anybody sees."""
    shown = f"{number:.1f}"
    return shown.removesuffix(".0")
