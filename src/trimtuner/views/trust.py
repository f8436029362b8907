"""Can the model be trusted? Every measurement is predicted by a model that has not seen its trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from trimtuner.decisions.belief import Belief, Places
from trimtuner.errors import SearchOver, TrimTunerError
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import History, Outcome
from trimtuner.problem.problem import COST
from trimtuner.state import StudyState
from trimtuner.tuning import tuner
from trimtuner.tuning.recommendation import Estimate
from trimtuner.views.blocks import Beside, Block, Drawn, Heading, Picture, TextTable, View, numbered
from trimtuner.views.curves import predicted
from trimtuner.views.drawing.chart import BOTTOM, LEFT, RIGHT, TOP, Chart, unit_of, up
from trimtuner.views.drawing.marks import Mark
from trimtuner.views.drawing.scales import Scale, kind_for
from trimtuner.views.drawing.svg import text
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import cell, count_of, estimate, metric, number, sentence, share

_ALONE_AT_MOST = 20  # trials that are left out one by one; of more, a tenth at once
_GROUPS = 10
_TRIALS_AT_LEAST = 4
_MEASUREMENTS_AT_MOST = 1_500  # beyond, fitting twenty models takes longer than anybody waits
_SIZE = 300  # of pictures that stand beside each other
BINS = ((0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0))


@dataclass(frozen=True)
class TrustCheck:
    """One measurement, and what was predicted without it."""

    trial: int
    config: Mapping[str, Value]
    fraction: float
    measured: float
    expected: Estimate

    @property
    def is_inside(self) -> bool:
        """Whether the interval held it."""
        return self.expected.low <= self.measured <= self.expected.high


@dataclass(frozen=True)
class Calibration:
    """How often a limit held when its probability was said to be in this range."""

    low: float
    high: float
    count: int
    said: float  # the mean
    held: float  # the share


@dataclass(frozen=True)
class Trust:
    """The checks of each metric, the probabilities of the limits, and what the stop rule says."""

    checks: dict[str, tuple[TrustCheck, ...]]
    calibration: tuple[Calibration, ...]
    stop: str
    note: str  # where there is nothing to show, why

    def coverage(self, name: str) -> float:
        """The share of the measurements of a metric that the 90 % intervals held."""
        return sum(one.is_inside for one in self.checks[name]) / len(self.checks[name])


def trust(subject: StudyState) -> Trust:
    """Every measurement beside its prediction, and what the stop rule says."""
    told = [outcome for outcome in subject.history.outcomes if outcome.measurements]
    measured = sum(len(outcome.measurements) for outcome in told)
    note = ""
    if len(told) < _TRIALS_AT_LEAST:
        note = f"It takes {_TRIALS_AT_LEAST} measured trials to check the model; there are {len(told)}."
    elif measured > _MEASUREMENTS_AT_MOST:
        note = (
            f"With {measured:,} measurements it would take long to fit the model again and again; it is checked up to "
            f"{_MEASUREMENTS_AT_MOST:,}."
        )
    if note:
        return Trust({}, (), stop_state(subject), note)
    checks: dict[str, list[TrustCheck]] = {}
    chances: list[tuple[float, bool]] = []
    groups = len(told) if len(told) <= _ALONE_AT_MOST else _GROUPS
    for group in range(groups):
        left_out = told[group::groups]
        belief = _without(subject, left_out)
        if belief is not None:
            for outcome in left_out:
                _check(belief, outcome, checks, chances)
    found = {name: tuple(sorted(made, key=lambda one: one.trial)) for name, made in checks.items()}
    return Trust(found, _calibration(chances), stop_state(subject), "")


def stop_state(subject: StudyState) -> str:
    """Whether the search would go on, and if not, why."""
    if subject.history.measurements and subject.belief is None:
        return "Whether the search goes on is for the run to say."
    try:
        tuner.ask(subject.problem, subject.recipe, subject.history, subject.seed, subject.belief)
    except SearchOver as over:
        return sentence(f"{over}.")
    return "The search goes on: no stop rule says that it is enough."


def _without(subject: StudyState, left_out: list[Outcome]) -> Belief | None:
    numbers = {outcome.trial.number for outcome in left_out}
    kept = tuple(outcome for outcome in subject.history.outcomes if outcome.trial.number not in numbers)
    history = History(kept, (), subject.history.next_number)
    try:
        belief = tuner.believe(subject.problem, subject.recipe, history, subject.seed)
    except TrimTunerError:
        return None  # what is left cannot carry a model
    return belief.undisturbed  # a measurement is of a run that got through


def _check(
    belief: Belief, outcome: Outcome, checks: dict[str, list[TrustCheck]], chances: list[tuple[float, bool]]
) -> None:
    problem = belief.problem
    names = dict.fromkeys((*problem.metrics, COST))
    for measurement in outcome.measurements:
        if measurement.fraction not in problem.space.fractions:
            continue
        try:
            position = belief.pool.position(dict(measurement.configuration))
        except (KeyError, TrimTunerError):
            continue  # in a pool that is drawn, the configuration left with its trial
        place = Places(belief.pool, np.array([position]), np.array([measurement.fraction]))
        for name in names:
            if name in measurement.metrics and belief.quantity_name(name) in belief.quantities:
                (expected,) = predicted(belief, name, place)
                config, measured = dict(measurement.configuration), measurement.metrics[name]
                check = TrustCheck(outcome.trial.number, config, measurement.fraction, measured, expected)
                checks.setdefault(name, []).append(check)
        for constraint in problem.constraints:
            if constraint.metric in measurement.metrics:
                said = float(belief.told_chance(constraint, place)[0])
                chances.append((said, constraint.is_met(measurement.metrics[constraint.metric])))


def _calibration(chances: list[tuple[float, bool]]) -> tuple[Calibration, ...]:
    found = []
    for low, high in BINS:
        inside = [(said, held) for said, held in chances if low <= said < high or (high == 1.0 and said == 1.0)]
        if inside:
            said, held = (float(np.mean([one[i] for one in inside])) for i in (0, 1))
            found.append(Calibration(low, high, len(inside), said, held))
    return tuple(found)


def _blocks(subject: StudyState) -> list[Block]:
    view = trust(subject)
    blocks: list[Block] = [Heading("Stop rule"), view.stop, Heading("Predicted against measured")]
    if view.note:
        return [*blocks, view.note]
    lead = (
        "Each measurement is predicted by a model that has not seen its trial; on the line is right, bars are 90 % "
        "intervals, and hollow is outside its interval."
    )
    held = [
        f"The 90 % intervals of {name} held {100 * view.coverage(name):.0f} % of "
        f"{count_of(len(checks), 'measurement')}."
        for name, checks in view.checks.items()
    ]
    pictures = [
        Picture(_checks_picture(name, checks), (), words, numbered("trust", name, place), _checks_table(name, checks))
        for place, ((name, checks), words) in enumerate(zip(view.checks.items(), held, strict=True))
    ]
    blocks.append(Drawn([lead, Beside(pictures)], held))
    if view.calibration:
        words = "How often a limit held, by the probability that was said; on the line is right."
        table = _calibration_table(view)
        picture = Picture(_calibration_picture(view), caption=words, table=table)
        blocks += [Heading("Calibration of the limits"), Drawn([picture], [words, table])]
    return blocks


def _calibration_table(view: Trust) -> TextTable:
    """How often a limit held, by the probability that was said."""
    lines = [
        [f"{one.low:g} to {one.high:g}", str(one.count), f"{one.said:.2f}", f"{one.held:.2f}"]
        for one in view.calibration
    ]
    return TextTable(["probability said", "cases", "mean said", "share that held"], lines)


def _checks_picture(name: str, checks: tuple[TrustCheck, ...]) -> str:
    """Predicted against measured; on the line is right. A filled point lies in its 90 % interval."""
    values = [one.measured for one in checks] + [one.expected.mean for one in checks]
    y = up(values, _SIZE, kind_for(values), from_zero=0.2)
    x = replace(y, begin=LEFT, end=_SIZE + 30 - RIGHT)
    words = f"{name}: predicted without the trial, against measured"
    chart = Chart(x, y, f"measured {name}{unit_of(name)}", f"predicted {name}{unit_of(name)}", words)
    chart.line([(y.low, y.low), (y.high, y.high)], "axis")
    for one in checks:
        chart.whisker(one.measured, one.expected.low, one.expected.high, "whisker")
    for one in checks:
        mark = mark_of(
            one.config,
            f"trial {one.trial} on {share(one.fraction)} of the data: {name}",
            f"measured {metric(name, one.measured)}, predicted {estimate(name, one.expected)}",
            "inside its interval" if one.is_inside else "outside its interval",
            trial=one.trial,
        )
        chart.dot(one.measured, one.expected.mean, "tested likely" if one.is_inside else "outside", mark)
    return chart.svg()


def _checks_table(name: str, checks: tuple[TrustCheck, ...]) -> TextTable:
    """Every check that is drawn."""
    lines = [
        [cell(value) for value in (one.trial, one.fraction, one.measured, *_interval(one.expected))] for one in checks
    ]
    unit = unit_of(name)
    heads = ["trial", "share of the data", f"measured{unit}", f"predicted{unit}", "at least", "at most"]
    return TextTable(heads, lines, "data", [key_of(one.config) for one in checks])


def _interval(expected: Estimate) -> tuple[float, float, float]:
    return expected.mean, expected.low, expected.high


def _calibration_picture(view: Trust) -> str:
    """How often a limit held, against the probability that it would; on the line is right."""
    x, y = Scale(0.0, 1.0, LEFT, _SIZE + 30 - RIGHT), Scale(0.0, 1.0, _SIZE - BOTTOM, TOP)
    chart = Chart(x, y, "probability said", "share that held", "Calibration of the probabilities of the limits")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "axis")
    for one in view.calibration:
        told = f"said {number(one.said)} in {one.count} cases, held in {100 * one.held:.0f} %"
        chart.dot(one.said, one.held, "tested likely", Mark(told), min(3.0 + one.count**0.5, 12.0))
        above = y(one.held) - 14 if one.held < 0.9 else y(one.held) + 24
        chart.marks.append(text(str(one.count), x(one.said), above, "tick", "middle"))
    return chart.svg()


VIEW = View("trust", "Can the model be trusted", "checks", _blocks, size="wide")
