"""A chart: axes with words, and the marks on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtuner.problem.problem import COST, TIME
from trimtuner.views.drawing.scales import Kind, Scale, scale_for, tick_text
from trimtuner.views.drawing.svg import element, path_of, steps_of, text, title

WIDTH, HEIGHT = 700, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 32, 44
_LETTER, _WIDE_LETTER = 6.8, 7.6  # width of a letter of the ticks, and of one where none may be cut off


@dataclass
class Chart:
    """Marks are added in the order in which they cover each other."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    name: str  # for who cannot see it
    x_ticks: list[tuple[float, str]] | None = None  # instead of round numbers
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # words that nothing covers

    def line(self, points: list[tuple[float, float]], class_: str) -> None:
        """A line from point to point."""
        if len(points) > 1:
            self.marks.append(element("path", d=path_of(self._placed(points)), class_=f"line {class_}"))

    def steps(self, points: list[tuple[float, float]], class_: str) -> None:
        """A value that holds until the next point."""
        if points:
            self.marks.append(element("path", d=steps_of(self._placed(points)), class_=f"line {class_}"))

    def band(self, low: list[tuple[float, float]], high: list[tuple[float, float]], class_: str) -> None:
        """The area between two lines."""
        outline = [*self._placed(low), *reversed(self._placed(high))]
        self.marks.append(element("path", d=f"{path_of(outline)}Z", class_=f"band {class_}"))

    def dot(self, x: float, y: float, class_: str, told: str, radius: float = 4.0, pick: str | None = None) -> None:
        """A point that says what it is."""
        place = {"cx": self.x(x), "cy": self.y(y), "r": radius}
        self.marks.append(element("circle", title(told), **place, class_=f"dot {class_}", data_pick=pick))

    def diamond(self, x: float, y: float, class_: str, told: str, pick: str | None = None) -> None:
        """A point of another shape, for who sees no colours."""
        left, top, size = self.x(x), self.y(y), 8.0
        corners = [(left, top - size), (left + size, top), (left, top + size), (left - size, top)]
        self.marks.append(
            element("path", title(told), d=f"{path_of(corners)}Z", class_=f"dot {class_}", data_pick=pick)
        )

    def whisker(self, x: float, low: float, high: float, class_: str) -> None:
        """An interval at one place."""
        at = self.x(x)
        self.marks.append(element("path", d=path_of([(at, self.y(low)), (at, self.y(high))]), class_=f"line {class_}"))

    def upright(self, x: float, class_: str, told: str) -> None:
        """A line across the chart at one x, with its words at the top."""
        at = self.x(x)
        ends = path_of([(at, TOP), (at, self.y.begin)])
        self.marks.append(element("path", title(told), d=ends, class_=f"line {class_}"))
        is_far_right = at + _LETTER * len(told) > self.x.end
        anchor, shift = ("end", -5) if is_far_right else ("start", 5)
        self.notes.append(text(told, at + shift, TOP + 10, f"note {class_}", anchor))

    def note(self, x: float, y: float, class_: str, told: str) -> None:
        """Words below and to the right of a place."""
        self.notes.append(text(told, self.x(x) + 8, self.y(y) + 16, f"note {class_}"))

    def level(self, y: float, class_: str, told: str) -> None:
        """A line across the chart at one y, with its words at the right."""
        at = self.y(y)
        ends = path_of([(LEFT, at), (self.x.end, at)])
        self.marks.append(element("path", title(told), d=ends, class_=f"line {class_}"))
        self.notes.append(text(told, self.x.end - 4, at - 5, f"note {class_}", "end"))

    def svg(self) -> str:
        """The picture with its axes, marks and notes."""
        content = self._grid() + "".join([*self.marks, *self.notes])
        return drawn(self.x.end + RIGHT, self.y.begin + BOTTOM, self.name, content)

    def _placed(self, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in points]

    def _grid(self) -> str:
        bottom = self.y.begin
        parts = []
        for value, words in _ticks(self.y, 5):
            at = self.y(value)
            parts.append(element("path", d=path_of([(LEFT, at), (self.x.end, at)]), class_="grid"))
            parts.append(text(words, LEFT - 6, at + 4, "tick", "end"))
        for value, words in _apart(self.x_ticks or _ticks(self.x, 7), self.x):
            at = self.x(value)
            parts.append(element("path", d=path_of([(at, bottom), (at, bottom + 4)]), class_="axis"))
            parts.append(text(words, at, bottom + 17, "tick", "middle"))
        parts.append(element("path", d=path_of([(LEFT, bottom), (self.x.end, bottom)]), class_="axis"))
        parts.append(text(self.x_label, (LEFT + self.x.end) / 2, self.y.begin + BOTTOM - 8, "label", "middle"))
        parts.append(text(self.y_label, 4, 14, "label"))
        return "".join(parts)


def drawn(width: float, height: float, name: str, content: str) -> str:
    """The picture around its content; no larger than it was meant."""
    return element(
        "svg",
        title(name),
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewbox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_label=name,
        class_="chart",
    )


def across(values: list[float], kind: Kind = "linear", width: int = WIDTH) -> Scale:
    """A horizontal axis for these values, in a picture of that width."""
    return scale_for(values, LEFT, width - RIGHT, kind)


def up(values: list[float], height: int = HEIGHT, kind: Kind = "linear", from_zero: float = 0.5) -> Scale:
    """A vertical axis for these values, in a picture of that height."""
    return scale_for(values, height - BOTTOM, TOP, kind, from_zero)


def unit_of(name: str) -> str:
    """The unit of a metric, to be put behind its name."""
    return {COST: " (USD)", TIME: " (s)"}.get(name, "")


def time_unit(longest: float) -> tuple[float, str]:
    """Seconds of the unit that suits so long a time, and its name."""
    for unit, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest >= 2 * unit:
            return unit, name
    return 1.0, "seconds"


def cut(words: str, most: int) -> str:
    """No longer than there is room for."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def room_for(names: Iterable[str], most: int) -> float:
    """The width of a column of names that are cut at so many letters."""
    return _WIDE_LETTER * min(max(map(len, names), default=0), most) + 14


def _apart(ticks: list[tuple[float, str]], scale: Scale) -> list[tuple[float, str]]:
    """Those that do not run into each other, from the last one on."""
    kept: list[tuple[float, str]] = []
    for value, words in sorted(ticks, reverse=True):
        room = _LETTER * (len(words) + len(kept[-1][1]) if kept else 0) / 2 + 6
        if not kept or scale(kept[-1][0]) - scale(value) >= room:
            kept.append((value, words))
    return kept


def _ticks(scale: Scale, about: int) -> list[tuple[float, str]]:
    values = scale.ticks(about)
    return [(value, tick_text(value, values)) for value in values]
