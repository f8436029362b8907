"""Curves within trials: what each reported on its way, as time passed; of those that run, as far as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Outcome, Trial
from trimtuner.problem.problem import TIME
from trimtuner.records import Attempt
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Picture, TextTable, View
from trimtuner.views.drawing.chart import Chart, across, time_unit, unit_of, up
from trimtuner.views.drawing.scales import kind_for
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import cell, metric, seconds, share

_SHOWN = 24  # the last that reported several times
_LOOKED_AT = 100  # the last trials, among which they are looked for
_POINTS = 200


@dataclass(frozen=True)
class OwnCurve:
    """What one trial reported of the goal, as time passed."""

    trial: int
    config: Mapping[str, Value]
    fraction: float
    points: tuple[tuple[float, float], ...]  # seconds since its start, value
    is_running: bool


def ways(subject: StudyState) -> tuple[OwnCurve, ...]:
    """The last trials that reported several times, in the order of their numbers."""
    outcomes = {one.trial.number: one for one in subject.history.outcomes}
    last = {one.trial: one for one in subject.attempts}
    found: list[OwnCurve] = []
    for trial in subject.trials[: -_LOOKED_AT - 1 : -1]:
        outcome = outcomes.get(trial.number)
        points = _reported(subject, trial, last.get(trial.number)) or _snapshots(subject, outcome)
        if len(points) > 1:
            found.append(OwnCurve(trial.number, trial.config, trial.fraction, tuple(points), outcome is None))
        if len(found) == _SHOWN:
            break
    return tuple(reversed(found))


def _reported(subject: StudyState, trial: Trial, attempt: Attempt | None) -> Sequence[tuple[float, float]]:
    if attempt is None or subject.reports_of is None:
        return ()
    goal = subject.problem.goal.metric
    reports = subject.reports_of(trial.number, attempt.attempt)
    points = [(one.seconds, one.metrics[goal]) for one in reports if goal in one.metrics]
    return [*points[: -1 : -(-len(points) // _POINTS)], points[-1]] if points else ()


def _snapshots(subject: StudyState, outcome: Outcome | None) -> Sequence[tuple[float, float]]:
    goal = subject.problem.goal.metric
    measured = () if outcome is None else outcome.measurements
    return sorted((one.metrics[TIME], one.metrics[goal]) for one in measured if {TIME, goal} <= one.metrics.keys())


def _blocks(subject: StudyState) -> list[Block]:
    found = ways(subject)
    if not found:
        return []
    goal = subject.problem.goal.metric
    running = sum(one.is_running for one in found)
    lead = f"{goal} as each trial reported it on its way; the last {len(found)} that did so several times"
    marks = [("line series0", "ended"), ("line series1", "running")]
    picture = Picture(_picture(found, goal), marks, name="within", table=_table(found, goal))
    return [Drawn([f"{lead}, {running} of them running." if running else f"{lead}.", picture], [_table(found, goal)])]


def _table(found: tuple[OwnCurve, ...], goal: str) -> TextTable:
    lines = [[str(one.trial), cell(one.fraction), cell(at), cell(value)] for one in found for at, value in one.points]
    keys = [key_of(one.config) for one in found for _ in one.points]
    return TextTable(["trial", "share of the data", "seconds", f"{goal}{unit_of(goal)}"], lines, "data", keys)


def _picture(found: tuple[OwnCurve, ...], goal: str) -> str:
    times = [at for one in found for at, _ in one.points]
    values = [value for one in found for _, value in one.points]
    unit, name = time_unit(max(times))
    places = [at / unit for at in times]
    chart = Chart(
        across(places, kind_for(places, 50.0)),
        up(values, 300, from_zero=0.2),
        f"{name} since its start",
        f"{goal}{unit_of(goal)}",
        f"{goal} within trials, over time",
    )
    for one in found:
        kind = "series1" if one.is_running else "series0"
        told = f"trial {one.trial} on {share(one.fraction)} of the data{', running' if one.is_running else ''}"
        points = [(at / unit, value) for at, value in one.points]
        chart.line(points, f"{kind} thin", mark_of(one.config, told, trial=one.trial))
        for at, value in one.points:
            said = f"{goal} {metric(goal, value)} after {seconds(at)}"
            chart.dot(at / unit, value, kind, mark_of(one.config, told, said, trial=one.trial), 2.2)
    return chart.svg()


VIEW = View(
    "within",
    "Within trials",
    "facts",
    _blocks,
    nothing="No trial reported more than once yet: what a job prints on its way is drawn here.",
)
