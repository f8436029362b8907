"""A chart: axes with words, and the marks on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtuner.problem.problem import COST, TIME
from trimtuner.views.drawing.marks import NOTHING, Mark
from trimtuner.views.drawing.scales import Kind, Scale, scale_for, tick_text
from trimtuner.views.drawing.svg import element, path_of, steps_of, text

WIDTH, HEIGHT = 700, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 32, 44
_LETTER, _WIDE_LETTER = 6.8, 7.6  # width of a letter of the ticks, and of one where none may be cut off
_AIR = 13  # around the axes, where a mark may stand out


@dataclass
class Chart:
    """Marks are added in the order in which they cover each other."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    name: str  # for who cannot see it
    x_ticks: list[tuple[float, str]] | None = None  # instead of round numbers
    y_ticks: list[tuple[float, str]] | None = None
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # words that nothing covers

    def line(self, points: list[tuple[float, float]], class_: str, mark: Mark = NOTHING) -> None:
        """A line from point to point."""
        if len(points) > 1:
            self.marks.append(mark.drawn("path", d=path_of(self._placed(points)), class_=f"line {class_}"))

    def steps(self, points: list[tuple[float, float]], class_: str) -> None:
        """A value that holds until the next point."""
        if points:
            self.marks.append(element("path", d=steps_of(self._placed(points)), class_=f"line {class_}"))

    def band(self, low: list[tuple[float, float]], high: list[tuple[float, float]], class_: str) -> None:
        """The area between two lines."""
        outline = [*self._placed(low), *reversed(self._placed(high))]
        self.marks.append(element("path", d=f"{path_of(outline)}Z", class_=f"band {class_}"))

    def dot(self, x: float, y: float, class_: str, mark: Mark, radius: float = 4.0) -> None:
        """A point that says what it is."""
        place = {"cx": self.x(x), "cy": self.y(y), "r": radius}
        self.marks.append(mark.drawn("circle", **place, class_=f"dot {class_}"))

    def diamond(self, x: float, y: float, class_: str, mark: Mark) -> None:
        """A point of another shape, for who sees no colours."""
        place = f"translate({self.x(x):.1f},{self.y(y):.1f})"
        self.marks.append(mark.drawn("path", d="M0,-8L8,0L0,8L-8,0Z", transform=place, class_=f"dot {class_}"))

    def bar(self, begin: float, end: float, y: float, height: float, class_: str, mark: Mark) -> None:
        """A bar from one x to another, so many units of the page high, at one y."""
        left = self.x(begin)
        size = {"x": left, "y": self.y(y) - height / 2, "width": max(self.x(end) - left, 1.5), "height": height}
        self.marks.append(mark.drawn("rect", **size, class_=f"bar {class_}"))

    def whisker(self, x: float, low: float, high: float, class_: str) -> None:
        """An interval at one place."""
        at = self.x(x)
        self.marks.append(element("path", d=path_of([(at, self.y(low)), (at, self.y(high))]), class_=f"line {class_}"))

    def upright(self, x: float, class_: str, told: str) -> None:
        """A line across the chart at one x, with its words at the top."""
        at = self.x(x)
        ends = path_of([(at, TOP), (at, self.y.begin)])
        self.marks.append(Mark(told).drawn("path", d=ends, class_=f"line {class_}"))
        is_far_right = at + _LETTER * len(told) > self.x.end
        anchor, shift = ("end", -5) if is_far_right else ("start", 5)
        self.notes.append(text(told, at + shift, TOP + 10, f"note {class_}", anchor))

    def note(self, x: float, y: float, class_: str, told: str) -> None:
        """Words below and to the right of a place."""
        self.notes.append(text(told, self.x(x) + 8, self.y(y) + 16, f"note {class_}"))

    def level(self, y: float, class_: str, told: str) -> None:
        """A line across the chart at one y, with its words at the right."""
        at = self.y(y)
        ends = path_of([(self.x.begin, at), (self.x.end, at)])
        self.marks.append(Mark(told).drawn("path", d=ends, class_=f"line {class_}"))
        self.notes.append(text(told, self.x.end - 4, at - 5, f"note {class_}", "end"))

    def svg(self) -> str:
        """The picture with its axes, marks and notes."""
        left, top = self.x.begin - _AIR, min(self.y.begin, self.y.end) - _AIR
        width, height = self.x.end - left + _AIR, self._bottom - top + _AIR
        size = {"x": left, "y": top, "width": width, "height": height}
        box = f"{left:g} {top:g} {width:g} {height:g}"
        plot = element("svg", "".join([*self.marks, *self.notes]), **size, viewbox=box, class_="plot")
        axes = element("g", self._grid(), class_="axes")
        x = f"{self.x.written}{'' if self.x_ticks is None else ' named'}"
        y = self.y.written if self.y_ticks is None else None
        return drawn(self.x.end + RIGHT, self._bottom + BOTTOM, self.name, axes + self._labels() + plot, x, y)

    @property
    def _bottom(self) -> float:
        return max(self.y.begin, self.y.end)

    def _placed(self, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in points]

    def _grid(self) -> str:
        left, bottom, parts = self.x.begin, self._bottom, []
        for value, words in self.y_ticks or _ticks(self.y, 5):
            at = self.y(value)
            parts.append(element("path", d=path_of([(left, at), (self.x.end, at)]), class_="grid y"))
            parts.append(text(words, left - 6, at + 4, "tick y", "end"))
        for value, words in _apart(self.x_ticks or _ticks(self.x, 7), self.x):
            at = self.x(value)
            parts.append(element("path", d=path_of([(at, bottom), (at, bottom + 4)]), class_="axis x"))
            parts.append(text(words, at, bottom + 17, "tick x", "middle"))
        return "".join(parts)

    def _labels(self) -> str:
        left, bottom = self.x.begin, self._bottom
        parts = [element("path", d=path_of([(left, bottom), (self.x.end, bottom)]), class_="axis")]
        parts.append(text(self.x_label, (left + self.x.end) / 2, bottom + BOTTOM - 8, "label", "middle"))
        parts.append(text(self.y_label, 4, 14, "label"))
        return "".join(parts)


def drawn(width: float, height: float, name: str, content: str, x: str | None = None, y: str | None = None) -> str:
    """The picture around its content, no larger than it was meant; with the axes along which it can be zoomed."""
    return element(
        "svg",
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewbox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_label=name,
        class_="chart",
        data_x=x,
        data_y=y,
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
