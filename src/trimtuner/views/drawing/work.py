"""Pictures of views 7, 9 and 10: when trials ran, what matters, and whether the model can be trusted."""

from __future__ import annotations

from trimtuner.problem.history import PREEMPTED
from trimtuner.views.drawing.chart import LEFT, RIGHT, WIDTH, Chart, across, cut, drawn, room_for, unit_of, up
from trimtuner.views.drawing.money import time_unit
from trimtuner.views.drawing.scales import Scale, kind_for, tick_text
from trimtuner.views.drawing.svg import element, path_of, text, title
from trimtuner.views.importance import Importance
from trimtuner.views.trials import DONE, Bar
from trimtuner.views.trust import Check, Trust
from trimtuner.views.words import metric, number, seconds, usd

BARS_SHOWN = 60  # the last ones
_LINE, _TOP = 16, 10
_WORDS_LETTERS, _NAME_LETTERS = 44, 28


def timeline_picture(bars: tuple[Bar, ...]) -> str:
    """A line for each attempt, the last ones; the words beside it say what its colour says."""
    shown = bars[-BARS_SHOWN:]
    first = 0.0 if len(shown) == len(bars) else min(bar.begin for bar in shown)
    last = max(bar.end for bar in shown)
    unit, name = time_unit(last)
    room = 300  # for the words at the right
    scale = Scale(first, max(last, first + 1e-9), LEFT, WIDTH - room)
    height = _TOP + _LINE * len(shown) + 40
    ticks = Scale(first / unit, max(last, first + 1e-9) / unit, LEFT, WIDTH - room).ticks(5)
    parts = []
    for tick in ticks:
        at = scale(tick * unit)
        parts.append(element("path", d=path_of([(at, _TOP - 4), (at, height - 36)]), class_="grid"))
        parts.append(text(tick_text(tick, ticks), at, height - 22, "tick", "middle"))
    parts.append(text(f"{name} since the first trial", (LEFT + WIDTH - room) / 2, height - 6, "label", "middle"))
    parts += [_bar(bar, scale, _TOP + _LINE * line) for line, bar in enumerate(shown)]
    return drawn(WIDTH, height, f"The last {len(shown)} attempts at trials over time", "".join(parts))


def _bar(bar: Bar, scale: Scale, top: float) -> str:
    kind = "running" if bar.is_running else {DONE: "done", PREEMPTED: "preempted"}.get(bar.state, "failed")
    begin, end = scale(bar.begin), scale(bar.end)
    again = f" (attempt {bar.attempt})" if bar.attempt > 1 else ""
    paid = f"{usd(bar.usd)}{' reserved' if bar.is_running else ''}" if bar.usd else ""
    where, lasted = bar.machines or "this machine", seconds(bar.end - bar.begin)
    told = ", ".join(part for part in (f"trial {bar.trial}{again}: {bar.state}", lasted, paid, f"on {where}") if part)
    words = cut(", ".join(part for part in (bar.state, paid, bar.machines) if part), _WORDS_LETTERS)
    return element(
        "g",
        title(told),
        text(f"{bar.trial}{'*' * (bar.attempt - 1)}", LEFT - 6, top + 11, "tick", "end"),
        element("rect", x=begin, y=top + 1, width=max(end - begin, 2.0), height=_LINE - 4, class_=f"bar {kind}"),
        text(words, max(end, begin + 2.0) + 5, top + 11, "tick"),
        data_trial=str(bar.trial),
    )


def importance_picture(view: tuple[Importance, ...]) -> str:
    """A bar for each parameter and metric, with its share in words."""
    names = list(dict.fromkeys(name for one in view for name, _ in one.shares))
    line, gap, top, left = 15, 12, 10, room_for([*names, "(together)"], _NAME_LETTERS)
    height = top + len(names) * (line * len(view) + gap) + line * len(view) + 10
    room = WIDTH - left - room_for((one.metric for one in view), 20) - 40
    parts = []
    y = float(top)
    for name in (*names, None):
        parts.append(
            text(cut(name or "(together)", _NAME_LETTERS), left - 8, y + line * len(view) / 2 + 4, "tick", "end")
        )
        for number_of, one in enumerate(view):
            value = one.together if name is None else dict(one.shares).get(name, 0.0)
            told = title(f"{name or 'what no parameter explains by itself'}: {100 * value:.0f} % of {one.metric}")
            size = {"x": left, "y": y + 1, "width": max(room * min(value, 1.0), 1.0), "height": line - 3}
            parts.append(element("rect", told, **size, class_=f"bar series{number_of}"))
            shown = f"{100 * value:.0f} % {cut(one.metric, 20)}"
            parts.append(text(shown, left + size["width"] + 5, y + 11, "tick"))
            y += line
        y += gap
    return drawn(WIDTH, height, "Share of the variation that each parameter explains", "".join(parts))


def checks_picture(name: str, checks: tuple[Check, ...]) -> str:
    """Predicted against measured; on the line is right. A filled point lies in its 90 % interval."""
    values = [one.measured for one in checks] + [one.predicted for one in checks]
    kind = kind_for(values)
    size = 300
    axis = across(values, kind, size + 30)
    chart = Chart(
        across(values, kind, size + 30),
        up(values, kind, size, from_zero=0.2),
        f"measured {name}{unit_of(name)}",
        f"predicted {name}{unit_of(name)}",
        f"{name}: predicted without the trial, against measured",
        width=size + 30,
        height=size,
    )
    chart.x = Scale(chart.y.low, chart.y.high, axis.begin, axis.end, kind)
    chart.line([(chart.y.low, chart.y.low), (chart.y.high, chart.y.high)], "axis")
    for one in checks:
        chart.whisker(one.measured, one.low, one.high, "whisker")
    for one in checks:
        inside = "inside its interval" if one.is_inside else "outside its interval"
        told = (
            f"trial {one.trial} on {100 * one.fraction:.3g} % of the data: measured {metric(name, one.measured)}, "
            f"predicted {metric(name, one.predicted)} ({metric(name, one.low)} to {metric(name, one.high)}), {inside}"
        )
        chart.dot(one.measured, one.predicted, "tested likely" if one.is_inside else "outside", told)
    return chart.svg()


def calibration_picture(view: Trust) -> str:
    """How often a limit held, against the probability that it would; on the line is right."""
    size = 300
    chart = Chart(
        Scale(0.0, 1.0, LEFT, size + 20 - RIGHT),
        up([0.0, 1.0], height=size),
        "probability said",
        "share that held",
        "Calibration of the probabilities of the limits",
        width=size + 30,
        height=size,
    )
    chart.y = Scale(0.0, 1.0, chart.y.begin, chart.y.end)
    chart.line([(0.0, 0.0), (1.0, 1.0)], "axis")
    for one in view.calibration:
        told = f"said {number(one.said)} in {one.count} cases, held in {100 * one.held:.0f} %"
        chart.dot(one.said, one.held, "tested likely", told, min(3.0 + one.count**0.5, 12.0))
        above = chart.y(one.held) - 14 if one.held < 0.9 else chart.y(one.held) + 24
        chart.marks.append(text(str(one.count), chart.x(one.said), above, "tick", "middle"))
    return chart.svg()
