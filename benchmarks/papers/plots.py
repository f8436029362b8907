"""Plots as small PNG files. matplotlib is imported when a plot is drawn, and comes with the extra dev."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as MatplotlibAxis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; the yellow is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000", "#E69F00", "#7F7F7F", "#8C564B")
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*", "<")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.", ":", "-")
SHORT_DASHES = (0, (2.5, 1.5))
GREY = "#606060"
DOTS_PER_INCH = 80
PANEL_INCHES = (4.8, 3.6)
DECADES_WITH_PLAIN_TICKS = 2.2
LEGEND_INCHES, LEGEND_INCHES_A_LETTER = 0.6, 0.085  # of one entry
MARKS_ON_A_LINE = 7


@dataclass(frozen=True)
class Curve:
    """A line, and bars (or a thin second line) that show the spread; infinite values are not drawn."""

    label: str
    x: Floats
    y: Floats
    error: Floats | None = None  # bars of this length on both sides, at a few places of the line's own
    thin: Floats | None = None
    initial: float = 0.0  # where on the x axis the initial phase ends


class Initial(StrEnum):
    """How the end of the initial phase is shown."""

    UNSEEN = ""
    DASHED = "dashed: initial phase"
    CIRCLE = "circle: end of the initial samples"


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its curves and points."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    is_log_x: bool = False
    is_log_y: bool = False
    y_limits: tuple[float, float] | None = None
    level: float | None = None  # a horizontal line to look for
    initial: Initial = Initial.UNSEEN
    thin_label: str = ""
    thick_label: str = ""


@dataclass(frozen=True)
class Bars:
    """Groups of bars; a missing bar is not a number, and ``errors`` are the ends of its interval."""

    title: str
    y_label: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    errors: Mapping[str, Sequence[tuple[float, float]]]
    is_log_y: bool = False


def require_matplotlib() -> None:
    """Before hours of searches, not after: an error that says what to install."""
    if find_spec("matplotlib") is None:
        raise InputError("the report has plots, which need matplotlib; install it with: pip install matplotlib")


def draw_panels(path: Path, panels: Sequence[Panel]) -> None:
    """Panels side by side, one legend for all."""
    figure, axes = _figure(len(panels))
    styles = {label: place for place, label in enumerate(dict.fromkeys(c.label for p in panels for c in p.curves))}
    for panel, place in zip(panels, axes, strict=True):
        _draw_panel(place, panel, styles)
    _legend(figure, axes)
    _save(figure, path)


def draw_bars(path: Path, charts: Sequence[Bars]) -> None:
    """Bar charts side by side, one legend for all."""
    figure, axes = _figure(len(charts))
    for chart, place in zip(charts, axes, strict=True):
        _draw_bars(place, chart)
    _legend(figure, axes)
    _save(figure, path)


def draw_heat_maps(path: Path, maps: Mapping[str, Floats], x: Sequence[float], y: Sequence[float]) -> None:
    """Fig. 6.8: cost reduction over the limits on accuracy and time; grey where nothing is feasible."""
    import matplotlib as mpl

    figure, axes = _figure(len(maps))
    colours = mpl.colormaps["viridis"].with_extremes(bad="#C0C0C0")
    for (title, values), place in zip(maps.items(), axes, strict=True):
        mesh = place.pcolormesh(np.array(x), np.array(y), values, cmap=colours, vmin=0.0, vmax=1.0, shading="nearest")
        place.set_title(title)
        place.set_xlabel("least accuracy")
        place.set_ylabel("most time (s)")
        place.plot([0.85], [300.0], marker="x", color="white", markersize=9, markeredgewidth=2)
    figure.colorbar(mesh, ax=axes, label="cost saved (share)")
    _save(figure, path)


def _draw_panel(place: Axes, panel: Panel, styles: Mapping[str, int]) -> None:
    for curve in panel.curves:
        style = styles[curve.label] % len(COLOURS)
        _draw_curve(place, curve, style, panel.initial)
        if curve.error is not None:
            _draw_bars_of(place, curve, curve.error, style)
        if curve.thin is not None:
            thin = np.where(np.isfinite(curve.thin), curve.thin, np.nan)
            place.plot(curve.x, thin, color=COLOURS[style], linewidth=0.8, alpha=0.75, drawstyle="steps-post")
    if panel.level is not None:
        place.axhline(panel.level, color="#7F7F7F", linewidth=0.8, linestyle=(0, (1, 3)))
    _explain(place, panel)
    _label(place, panel)


def _draw_curve(place: Axes, curve: Curve, style: int, initial: Initial) -> None:
    finite = np.where(np.isfinite(curve.y), curve.y, np.nan)
    every = max(1, len(curve.x) // MARKS_ON_A_LINE)
    place.plot(
        curve.x,
        np.where(curve.x >= curve.initial, finite, np.nan) if initial is Initial.DASHED else finite,
        label=curve.label,
        color=COLOURS[style],
        linestyle=DASHES[style] if initial is Initial.UNSEEN else "-",
        marker=MARKERS[style],
        markersize=4.5,
        markevery=(style * every // len(COLOURS), every),
        linewidth=1.6,
        drawstyle="steps-post",
    )
    if initial is Initial.DASHED:
        # One place more than is dashed, so that the two meet.
        until = np.concatenate([[True], curve.x[:-1] < curve.initial])
        place.plot(
            curve.x,
            np.where(until, finite, np.nan),
            color=COLOURS[style],
            linestyle=SHORT_DASHES,
            linewidth=1.6,
            drawstyle="steps-post",
        )
    if initial is Initial.CIRCLE and len(curve.x):
        at = max(int(np.searchsorted(curve.x, curve.initial, side="right")) - 1, 0)
        place.plot([curve.x[at]], [finite[at]], "o", markersize=11, fillstyle="none", color=COLOURS[style],
                   markeredgewidth=1.8)  # fmt: skip


def _draw_bars_of(place: Axes, curve: Curve, error: Floats, style: int) -> None:
    """At places that no other line has, so that bars of different lines do not hide each other."""
    every = max(1, len(curve.x) // MARKS_ON_A_LINE)
    at = np.arange(style * every // len(COLOURS), len(curve.x), every)
    low, high = (np.clip(curve.y[at] + side * error[at], 0.0, 1.0) for side in (-1.0, 1.0))
    place.vlines(curve.x[at], low, high, color=COLOURS[style], linewidth=1.0)


def _explain(place: Axes, panel: Panel) -> None:
    """What is told by the form of a line goes to the legend too."""
    if panel.thin_label:
        place.plot([], [], linewidth=1.6, label=panel.thick_label, color=GREY)
        place.plot([], [], linewidth=0.8, label=panel.thin_label, color=GREY)
    if panel.initial is Initial.DASHED:
        place.plot([], [], linestyle=SHORT_DASHES, linewidth=1.6, label=panel.initial.value, color=GREY)
    if panel.initial is Initial.CIRCLE:
        place.plot([], [], "o", markersize=9, fillstyle="none", label=panel.initial.value, color=GREY)
    if any(curve.error is not None for curve in panel.curves):
        place.plot([], [], "|", markersize=11, label="bar: standard error of the mean", color=GREY)


def _label(place: Axes, panel: Panel) -> None:
    place.set_title(panel.title)
    place.set_xlabel(panel.x_label)
    place.set_ylabel(panel.y_label)
    if panel.y_limits is not None:
        place.set_ylim(*panel.y_limits)
    if panel.is_log_x:
        place.set_xscale("log")
        _plain_ticks(place.xaxis)
    if panel.is_log_y:
        place.set_yscale("log")
        _plain_ticks(place.yaxis)
    place.grid(alpha=0.25, linewidth=0.6)


def _plain_ticks(axis: MatplotlibAxis) -> None:
    """0.1, 0.2, 0.5, 1 instead of powers, where the range is short enough for that."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if math.log10(high / low) < DECADES_WITH_PLAIN_TICKS:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_bars(place: Axes, chart: Bars) -> None:
    width = 0.8 / len(chart.series)
    for number, (label, values) in enumerate(chart.series.items()):
        x = np.arange(len(chart.groups)) + (number - (len(chart.series) - 1) / 2) * width
        heights = np.array([value if math.isfinite(value) else np.nan for value in values])
        foot = 1.0 if chart.is_log_y else 0.0  # a ratio of 1 is no difference
        place.bar(
            x, heights - foot, width * 0.92, foot, label=label, color=COLOURS[number], edgecolor="black", linewidth=0.5
        )
        tops = np.fmax(heights, foot)
        if label in chart.errors:
            ends = np.array(chart.errors[label])
            reach = np.abs(np.where(np.isfinite(ends), ends, heights[:, None]) - heights[:, None])
            place.errorbar(x, heights, yerr=reach.T, fmt="none", ecolor="black", elinewidth=0.9, capsize=2.5)
            tops = np.fmax(tops, heights + reach[:, 1])
        for left, value, top in zip(x, values, tops, strict=True):
            text = f"{value:.3g}" if math.isfinite(value) else "never"
            place.annotate(text, (left, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=8)
    place.margins(y=0.12)
    place.set_xticks(range(len(chart.groups)), chart.groups)
    place.set_title(chart.title)
    place.set_ylabel(chart.y_label)
    if chart.is_log_y:
        place.set_yscale("log")
        _plain_ticks(place.yaxis)
        place.axhline(1.0, color="black", linewidth=0.8)
    place.grid(axis="y", alpha=0.25, linewidth=0.6)


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    """A figure without a window system: made directly, not through pyplot's global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    columns = min(panels, 3) if panels != 4 else 2
    rows = -(-panels // columns)
    width, height = PANEL_INCHES
    figure = NewFigure(figsize=(width * columns, height * rows + 0.5), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    places = [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]
    return figure, places


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    handles: dict[str, Artist] = {}
    for place in axes:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    entry = LEGEND_INCHES + LEGEND_INCHES_A_LETTER * max(map(len, handles), default=0)
    columns = max(1, min(len(handles), int(figure.get_figwidth() // entry)))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No software version or date within: the same numbers give the same file.
    figure.savefig(path, metadata={"Software": None})
