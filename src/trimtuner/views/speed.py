"""How quickly machines work through the data, where trials count it: tokens per second, and per dollar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, TextTable, View
from trimtuner.views.words import machines, placed

COUNTED = ("tokens", "samples", "images")  # what a trial may report that it has worked through


@dataclass(frozen=True)
class Rate:
    """How much of something a trial worked through in a second, and for a dollar where it cost any."""

    counted: str
    measurement: Measurement
    per_second: float
    per_usd: float | None


def rates(subject: StudyState) -> tuple[Rate, ...]:
    """The rates of every trial that counted something, its start and end included: they are paid for too."""
    return tuple(rate for outcome in subject.history.outcomes for rate in _rates_of(outcome.measurements[-1:]))


def _rates_of(measurements: tuple[Measurement, ...]) -> Iterator[Rate]:
    for one in measurements:
        seconds, usd = one.metrics.get(TIME, 0.0), one.metrics.get(COST, 0.0)
        for counted in COUNTED:
            if counted in one.metrics and seconds > 0:
                count = one.metrics[counted]
                yield Rate(counted, one, count / seconds, count / usd if usd > 0 else None)


def _blocks(subject: StudyState) -> list[Block]:
    found = rates(subject)
    lead = "Over the whole time of a trial, its start and end included, since that is what is paid for."
    tables = [_table(subject, [rate for rate in found if rate.counted == counted]) for counted in COUNTED]
    return [lead, *(table for table in tables if table.lines)] if found else []


def _table(subject: StudyState, found: list[Rate]) -> TextTable:
    """A line for each choice of machines, and one for what is recommended, if it counted."""
    counted = found[0].counted if found else ""
    by_machines: dict[str, list[Rate]] = {}
    for rate in found:
        by_machines.setdefault(machines(rate.measurement.configuration) or "here", []).append(rate)
    lines = [[*_median(one), f"{name}, median of {len(one)}"] for name, one in by_machines.items()]
    quickest = max(found, key=lambda rate: rate.per_second, default=None)
    cheapest = max((one for one in found if one.per_usd), key=lambda rate: rate.per_usd or 0.0, default=None)
    lines += [_named("most per second", quickest)] if quickest is not None else []
    lines += [_named("most per USD", cheapest)] if cheapest is not None else []
    best = subject.recommendation
    own = [one for one in found if best is not None and dict(one.measurement.configuration) == dict(best.config)]
    lines += [_named("recommended", max(own, key=lambda rate: rate.measurement.fraction))] if own else []
    return TextTable([f"{counted} per second", f"{counted} per USD", "of"], lines)  # what is wide comes last


def _named(name: str, rate: Rate) -> list[str]:
    where = placed(rate.measurement.configuration, rate.measurement.fraction)
    return [_number(rate.per_second), _number(rate.per_usd), f"{name}: {where}"]


def _median(found: list[Rate]) -> list[str]:
    paid = [rate.per_usd for rate in found if rate.per_usd is not None]
    return [_number(median(rate.per_second for rate in found)), _number(median(paid) if paid else None)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


VIEW = View(
    "speed",
    "Speed",
    "model",  # of which only what is recommended
    _blocks,
    is_drawn=False,
    nothing="No trial counts what it has worked through; one that reports tokens, samples or images does.",
)
