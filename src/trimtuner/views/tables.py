"""Views as tables of words: the same on the page, in the report and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtuner.problem.problem import Goal
from trimtuner.views.answer import Answers
from trimtuner.views.curves import Curves
from trimtuner.views.importance import Importance
from trimtuner.views.machines import Machines
from trimtuner.views.progress import Progress
from trimtuner.views.tradeoff import FEASIBLE, Tradeoff
from trimtuner.views.trials import Row, state_words
from trimtuner.views.trust import Trust
from trimtuner.views.words import (
    chance,
    configuration,
    estimate,
    metric,
    number,
    placed,
    seconds,
    share,
    usd,
    value_text,
)


@dataclass(frozen=True)
class Table:
    """Heads, and lines of as many cells."""

    heads: list[str]
    lines: list[list[str]]


def answer_table(view: Answers) -> Table:
    """View 2: what is recommended beside the runner-up."""
    columns = [one for one in (view.best, view.runner_up) if one is not None]
    word = "recommended" if columns and columns[0].chance_feasible >= FEASIBLE else "least infeasible"
    names = dict.fromkeys(name for one in columns for name in one.config)
    metrics = dict.fromkeys(name for one in columns for name in one.estimates)
    limits = dict.fromkeys(limit for one in columns for limit in one.chances)
    lines = [
        [name, *(value_text(one.config[name]) if name in one.config else "-" for one in columns)] for name in names
    ]
    lines.append(["data", *(share(one.fraction) for one in columns)])
    lines.append(["figures are", *("measured" if one.is_measured else "predicted" for one in columns)])
    lines += [[name, *(estimate(name, one.estimates.get(name)) for one in columns)] for name in metrics]
    lines += [[f"P({limit})", *(chance(one.chances[limit]) for one in columns)] for limit in limits]
    lines.append(["P(runs, all limits)", *(chance(one.chance_feasible) for one in columns)])
    return Table(["", word, view.beside][: len(columns) + 1], lines)


def changes_table(view: Progress, goal: Goal) -> Table:
    """View 3: the moments when the recommendation changed, by money, or by time where none was spent."""
    has_cost = any(one.usd for one in view.moments)
    lines = [
        [
            str(one.trial),
            usd(one.usd) if has_cost else seconds(one.seconds),
            metric(goal.metric, one.goal),
            chance(one.chance),
            configuration(one.config),
        ]
        for one in view.moments
        if one.is_change
    ]
    return Table(["from trial", "spent" if has_cost else "after", goal.metric, "P(limits)", "configuration"], lines)


def front_table(view: Tradeoff) -> Table:
    """View 4: the Pareto front, the cheapest first."""
    lines = [
        [
            metric(view.x_metric, point.on_front[0]),
            metric(view.y_metric, point.on_front[1]),
            chance(point.chance),
            "measured" if point.is_tested else "predicted",
            "knee" if point.is_knee else "",
            placed(point.config, point.fraction),
        ]
        for point in view.front
        if point.on_front is not None
    ]
    return Table([view.x_metric, view.y_metric, "P(limits)", "figures are", "", "configuration"], lines)


def curve_table(view: Curves, fractions: tuple[float, ...]) -> Table:
    """View 5: of what is recommended, what is predicted and what was measured at each share of the data."""
    own = view.curves[0]
    measured = dict(own.measured)
    lines = [
        [
            share(band.fraction),
            estimate(view.metric, (band.mean, band.low, band.high)),
            metric(view.metric, measured[band.fraction]) if band.fraction in measured else "-",
        ]
        for band in own.band
        if band.fraction in fractions
    ]
    return Table(["data", f"predicted {view.metric}", "measured"], lines)


def machines_table(view: Machines, market: str) -> Table:
    """View 6: the chance for each VM type and count; ``*`` is tested, ``<`` is recommended."""
    cells = {(cell.vm_type, cell.vm_count): cell for cell in view.cells if cell.market == market}
    lines = []
    for vm_type in view.vm_types:
        line = [vm_type]
        for count in view.vm_counts:
            cell = cells.get((vm_type, count))
            marks = "" if cell is None else f"{' *' if cell.tested else ''}{' <' if cell.is_recommended else ''}"
            line.append("" if cell is None else f"{chance(cell.chance)}{marks}")
        lines.append(line)
    return Table([market.replace("_", " "), *map(str, view.vm_counts)], lines)


def importance_table(found: tuple[Importance, ...]) -> Table:
    """View 9."""
    names = dict.fromkeys(name for one in found for name, _ in one.shares)
    lines = [[name, *(f"{100 * dict(one.shares).get(name, 0.0):.0f} %" for one in found)] for name in names]
    lines.append(["(together)", *(f"{100 * one.together:.0f} %" for one in found)])
    return Table(["", *(one.metric for one in found)], lines)


def calibration_table(view: Trust) -> Table:
    """View 10: how often a limit held, by the probability that was said."""
    lines = [
        [f"{one.low:g} to {one.high:g}", str(one.count), f"{one.said:.2f}", f"{one.held:.2f}"]
        for one in view.calibration
    ]
    return Table(["probability said", "cases", "mean said", "share that held"], lines)


def trials_table(metrics: Sequence[str], shown: Sequence[Row]) -> Table:
    """View 8, in one line each; without a column of costs where nothing cost anything."""
    has_cost = any(row.cost for row in shown)
    lines = [
        [
            str(row.trial),
            share(row.fraction),
            *(number(row.metrics.get(name)) for name in metrics),
            *(["-" if row.cost is None else usd(row.cost)] if has_cost else []),
            "-" if row.time is None else seconds(row.time),
            state_words(row),
            configuration(row.config),
        ]
        for row in shown
    ]
    return Table(["trial", "data", *metrics, *(["cost"] if has_cost else []), "time", "state", "configuration"], lines)
