"""Learning curves: what was measured on shares of the data, and what the model makes of it up to all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Belief, Places
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.space import Key
from trimtuner.state import StudyState
from trimtuner.tuning.recommendation import Estimate
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View, numbered
from trimtuner.views.drawing.chart import Chart, across, unit_of, up
from trimtuner.views.drawing.scales import kind_for
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import cell, configuration, estimate, metric, share

Configs: TypeAlias = list[dict[str, Value]]

_SHOWN = 6
_OTHERS = 60  # of which only what was measured is drawn, thin
_STEPS = 25


@dataclass(frozen=True)
class Curve:
    """What was measured of one configuration, and what the model expects, by share of the data."""

    config: Mapping[str, Value]
    measured: tuple[tuple[float, float], ...]  # fraction, value
    band: tuple[tuple[float, Estimate], ...]  # fraction, what a run there would measure


@dataclass(frozen=True)
class Curves:
    """The curves of one metric; the first is of what is recommended."""

    metric: str
    curves: tuple[Curve, ...]
    others: tuple[Curve, ...] = ()  # only measured, on several shares of the data


def curves(subject: StudyState) -> tuple[Curves, ...]:
    """The curves of the goal, of what is limited, and of what a run costs."""
    if subject.belief is None or subject.recommendation is None:
        return ()
    belief, recommendation = subject.belief.undisturbed, subject.recommendation  # as the points are: of whole runs
    goal = belief.problem.goal.metric
    names = dict.fromkeys((goal, *(c.metric for c in belief.problem.constraints), belief.effort_metric))
    shown, others = _worth_showing(subject, dict(recommendation.config))
    # The cost of a run follows from its time; one of the two tells it all.
    kept = [name for name in names if name != TIME or COST not in names]
    return tuple(
        Curves(
            name,
            tuple(_curve(belief, name, config) for config in shown),
            tuple(Curve(config, _measured(belief, name, config), ()) for config in others),
        )
        for name in kept
        if belief.quantity_name(name) in belief.quantities
    )


def _worth_showing(subject: StudyState, recommended: dict[str, Value]) -> tuple[Configs, Configs]:
    """The recommended one, then those that were measured at the most fractions, the best of them first; and others."""
    goal, key = subject.problem.goal, subject.problem.space.key
    measured: dict[Key, list[Measurement]] = {}
    for one in subject.history.measurements:
        measured.setdefault(key(dict(one.configuration)), []).append(one)
    measured.pop(key(recommended), None)
    values = {name: [goal.sign * one.metrics[goal.metric] for one in found] for name, found in measured.items()}
    ranked = sorted(measured, key=lambda name: (len(values[name]), max(values[name])), reverse=True)
    found = [dict(measured[name][0].configuration) for name in ranked if len(values[name]) > 1]
    alone = [dict(measured[name][0].configuration) for name in ranked if len(values[name]) == 1]
    first = (found + alone)[: _SHOWN - 1]
    return [recommended, *first], [one for one in found if one not in first][:_OTHERS]


def _curve(belief: Belief, name: str, config: dict[str, Value]) -> Curve:
    fractions = _fractions(belief.problem.space.fractions)
    position = belief.pool.position(config)
    places = Places(belief.pool, np.full(len(fractions), position, dtype=np.int64), fractions)
    band = tuple(zip(fractions.tolist(), predicted(belief, name, places), strict=True))
    return Curve(config, _measured(belief, name, config), band)


def _measured(belief: Belief, name: str, config: dict[str, Value]) -> tuple[tuple[float, float], ...]:
    found = (m for m in belief.measurements if name in m.metrics and dict(m.configuration) == config)
    return tuple(sorted((m.fraction, m.metrics[name]) for m in found))


def predicted(belief: Belief, name: str, places: Places) -> list[Estimate]:
    """What a run at each place would measure, with intervals that should hold it in 90 % of cases."""
    expected, (low, high) = belief.expected(name, places), belief.interval(name, places)
    return [Estimate(*row) for row in zip(expected.tolist(), low, high, strict=True)]


def _fractions(offered: tuple[float, ...]) -> Floats:
    between = np.geomspace(min(offered), 1.0, _STEPS)
    between[-1] = 1.0
    return np.unique(np.concatenate([between, offered]))


def _blocks(subject: StudyState) -> list[Block]:
    found = curves(subject)
    if not found:
        return []
    lead = "Points are measured; lines are the model's mean, and the band its 90 % interval for what is recommended."
    pictures = [
        Picture(
            _picture(view),
            _marks(view) if view is found[-1] else (),
            name=numbered("curves", view.metric, place),
            table=_data(view),
        )
        for place, view in enumerate(found)
    ]
    return [Drawn([lead, *pictures], [_table(view, subject.problem.space.fractions) for view in found])]


def _table(view: Curves, fractions: tuple[float, ...]) -> TextTable:
    """Of what is recommended, what is predicted and what was measured at each share of the data."""
    own = view.curves[0]
    measured = dict(own.measured)
    lines = [
        [
            share(fraction),
            estimate(view.metric, expected),
            metric(view.metric, measured[fraction]) if fraction in measured else "-",
        ]
        for fraction, expected in own.band
        if fraction in fractions
    ]
    return TextTable(["data", f"predicted {view.metric}", "measured"], lines)


def _data(view: Curves) -> TextTable:
    """Everything measured that is drawn."""
    all_curves = (*view.curves, *view.others)
    lines = [
        [configuration(curve.config), cell(fraction), cell(value)]
        for curve in all_curves
        for fraction, value in curve.measured
    ]
    keys = [key_of(curve.config) for curve in all_curves for _ in curve.measured]
    return TextTable(
        ["configuration", "share of the data", f"{view.metric}{unit_of(view.metric)}"], lines, "data", keys
    )


def _marks(view: Curves) -> list[tuple[str, str]]:
    """(class, words) of each curve: what is recommended in full, of the others what differs."""
    own = view.curves[0].config
    found = [("line series0", f"recommended: {configuration(own)}")]
    for place, curve in enumerate(view.curves[1:], start=1):
        other = {name: value for name, value in curve.config.items() if own.get(name) != value}
        found.append((f"line series{place}", f"with {configuration(other)}"))
    return [*found, ("line other", "others, as measured")] if view.others else found


def _picture(view: Curves) -> str:
    """A line and points for each configuration, over the share of the data; a band for what is recommended."""
    values = [one for curve in (*view.curves, *view.others) for _, one in curve.measured]
    values += [expected.mean for curve in view.curves for _, expected in curve.band]
    values += [end for _, expected in view.curves[0].band for end in (expected.low, expected.high)]
    fractions = [fraction for curve in view.curves for fraction, _ in curve.band]
    offered = sorted({fraction for curve in view.curves for fraction, _ in curve.measured} | {max(fractions)})
    chart = Chart(
        across(fractions, "log"),
        up(values, 300, kind_for(values), from_zero=0.2),
        "share of the data",
        f"{view.metric}{unit_of(view.metric)}",
        f"{view.metric} over the share of the data, measured and predicted",
        x_ticks=[(fraction, share(fraction)) for fraction in offered],
    )
    own = view.curves[0].band
    chart.band([(at, one.low) for at, one in own], [(at, one.high) for at, one in own], "series0")
    for curve in view.others:
        chart.line(list(curve.measured), "other", mark_of(curve.config))
    for number, curve in enumerate(view.curves):
        expected = [(fraction, one.mean) for fraction, one in curve.band]
        chart.line(expected, f"series{number}", mark_of(curve.config, "as the model expects it"))
    drawn = [*((curve, "other") for curve in view.others)]
    drawn += [(curve, f"series{number} tested") for number, curve in enumerate(view.curves)]
    for curve, kind in drawn:
        for fraction, value in curve.measured:
            told = f"{view.metric} {metric(view.metric, value)} on {share(fraction)} of the data"
            chart.dot(fraction, value, kind, mark_of(curve.config, told), 2.5 if kind == "other" else 4.0)
    return chart.svg()


VIEW = View("curves", "Learning curves", "model", _blocks)
