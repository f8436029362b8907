"""Pictures of views 4, 5 and 6: what can be had, how it grows with the data, and on which machines."""

from __future__ import annotations

from zlib import crc32

from trimtuner.views.curves import Curves
from trimtuner.views.drawing.chart import Chart, across, cut, drawn, room_for, unit_of, up
from trimtuner.views.drawing.scales import kind_for
from trimtuner.views.drawing.svg import element, text, title
from trimtuner.views.machines import Cell, Machines
from trimtuner.views.tradeoff import FEASIBLE, Point, Tradeoff
from trimtuner.views.words import chance, configuration, metric, placed, share, times

_CELL_WIDTH, _CELL_HEIGHT, _NAME_LETTERS = 64, 34, 28


def tradeoff_picture(view: Tradeoff) -> str:
    """Points: round is tested, hollow is predicted, grey is unlikely to meet the limits, a diamond is recommended."""
    front = [point.on_front for point in view.front if point.on_front is not None]
    x = [point.x for point in view.points] + [limit for _, limit in view.x_limits] + [x for x, _ in front]
    y = [point.y for point in view.points] + [limit for _, limit in view.y_limits] + [y for _, y in front]
    chart = Chart(
        across(x, kind_for(x, 8.0)),
        up(y, from_zero=0.2, height=380),
        f"{view.x_metric}{unit_of(view.x_metric)}",
        f"{view.y_metric}{unit_of(view.y_metric)}",
        f"{view.y_metric} against {view.x_metric} of {len(view.points)} configurations",
        height=380,
    )
    for written, limit in view.x_limits:
        chart.upright(limit, "limit", written)
    for written, limit in view.y_limits:
        chart.level(limit, "limit", written)
    chart.steps(front, "front")
    for point in sorted(view.points, key=_weight):
        _add(chart, view, point)
    if view.knee is not None and view.knee.on_front is not None:
        chart.note(*view.knee.on_front, "front", "knee")
    return chart.svg()


def _weight(point: Point) -> int:
    """What matters more covers what matters less."""
    return 8 * point.is_recommended + 4 * point.is_tested + 2 * point.is_on_front + (point.chance >= FEASIBLE)


def _add(chart: Chart, view: Tradeoff, point: Point) -> None:
    kind = "tested" if point.is_tested else "predicted"
    told = (
        f"{placed(point.config, point.fraction)}: {view.y_metric} {metric(view.y_metric, point.y)}, {view.x_metric} "
        f"{metric(view.x_metric, point.x)}, P(limits) {chance(point.chance)}, {kind}"
    )
    classes = f"{kind} {'likely' if point.chance >= FEASIBLE else 'unlikely'}"
    pick = f"{crc32(placed(point.config, point.fraction).encode()):x}"  # the same point on a page that is drawn anew
    if point.is_recommended:
        chart.diamond(point.x, point.y, "recommended", f"recommended: {told}", pick)
    else:
        chart.dot(point.x, point.y, classes, told, 4.0 if point.is_tested else 2.6, pick)


def curves_picture(view: Curves) -> str:
    """A band and points for each configuration, over the share of the data."""
    values = [one for curve in view.curves for _, one in curve.measured]
    values += [band.mean for curve in view.curves for band in curve.band]
    values += [end for curve in view.curves[:1] for band in curve.band for end in (band.low, band.high)]
    fractions = [band.fraction for curve in view.curves for band in curve.band] or [0.1, 1.0]
    offered = sorted({fraction for curve in view.curves for fraction, _ in curve.measured} | {max(fractions)})
    chart = Chart(
        across(fractions, "log"),
        up(values, kind_for(values), height=300, from_zero=0.2),
        "share of the data",
        f"{view.metric}{unit_of(view.metric)}",
        f"{view.metric} over the share of the data, measured and predicted",
        height=300,
        x_ticks=[(fraction, share(fraction)) for fraction in offered],
    )
    for number, curve in enumerate(view.curves):
        low = [(band.fraction, band.low) for band in curve.band]
        high = [(band.fraction, band.high) for band in curve.band]
        if number == 0:
            chart.band(low, high, "series0")
        chart.line([(band.fraction, band.mean) for band in curve.band], f"series{number}")
    for number, curve in enumerate(view.curves):
        for fraction, value in curve.measured:
            told = f"{configuration(curve.config)} on {share(fraction)}: {view.metric} {metric(view.metric, value)}"
            chart.dot(fraction, value, f"series{number} tested", told)
    return chart.svg()


def machines_picture(view: Machines, market: str) -> str:
    """A cell for each VM type and count: its colour and its number are the chance of meeting the limits."""
    cells = [cell for cell in view.cells if cell.market == market]
    names_width = max(room_for(view.vm_types, _NAME_LETTERS), 70.0)
    width = names_width + _CELL_WIDTH * len(view.vm_counts) + 8
    height = 40 + _CELL_HEIGHT * len(view.vm_types)
    parts = [text("VM type", names_width - 8, 14, "label", "end"), text("how many", names_width, 14, "label")]
    for column, count in enumerate(view.vm_counts):
        parts.append(text(str(count), names_width + _CELL_WIDTH * (column + 0.5), 30, "tick", "middle"))
    for line, vm_type in enumerate(view.vm_types):
        name = cut(vm_type, _NAME_LETTERS)
        parts.append(text(name, names_width - 8, 34 + _CELL_HEIGHT * (line + 0.65), "tick", "end"))
    for cell in cells:
        left = names_width + _CELL_WIDTH * view.vm_counts.index(cell.vm_count)
        top = 34 + _CELL_HEIGHT * view.vm_types.index(cell.vm_type)
        parts.append(_cell(cell, left, top))
    name = f"Chance of meeting the limits by VM type and count, {market}"
    return drawn(max(width, names_width + 80), height, name, "".join(parts))


def _cell(cell: Cell, left: float, top: float) -> str:
    tested = f", tested {times(cell.tested)}"
    told = f"{cell.vm_count} x {cell.vm_type}: P(limits) {chance(cell.chance)}{tested}; {configuration(cell.config)}"
    level = min(int(cell.chance * 5), 4)
    square = {"x": left + 1, "y": top + 1, "width": _CELL_WIDTH - 2, "height": _CELL_HEIGHT - 2}
    parts = [title(told), element("rect", **square, class_=f"cell level{level}")]
    parts.append(text(chance(cell.chance), left + _CELL_WIDTH / 2, top + 23, f"celltext level{level}", "middle"))
    if cell.tested:
        parts.append(element("circle", cx=left + _CELL_WIDTH - 8, cy=top + 8, r=3, class_=f"mark level{level}"))
    if cell.is_recommended:
        parts.append(element("rect", **square, class_="chosen"))
    return element("g", *parts)


def legend_of(view: Curves) -> list[tuple[str, str]]:
    """(class, words) of each curve: what is recommended in full, of the others what differs."""
    own = view.curves[0].config
    found = [("line series0", f"recommended: {configuration(own)}")]
    for place, curve in enumerate(view.curves[1:], start=1):
        other = {name: value for name, value in curve.config.items() if own.get(name) != value}
        found.append((f"line series{place}", f"with {configuration(other)}"))
    return found
