"""How good the recommendation was, against the money and the time that had been spent by then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from trimtuner.decisions.belief import Belief
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import Goal
from trimtuner.problem.space import Key
from trimtuner.state import StudyState
from trimtuner.views.blocks import Block, Drawn, Folded, Picture, TextTable, View, named_pictures
from trimtuner.views.drawing.chart import Chart, across, time_unit, unit_of, up
from trimtuner.views.marking import key_of, mark_of
from trimtuner.views.words import BLOCKS, Signs, chance, changed, configuration, metric, seconds, usd

_LETTERS = 40  # of the line in a terminal
_MARKS = (("dot change likely", "another configuration"), ("dot change unlikely", "one unlikely to meet the limits"))


@dataclass(frozen=True)
class ProgressPoint:
    """What was recommended from here on, and what is believed of it now."""

    usd: float  # spent by then
    seconds: float  # since the first trial was asked
    trial: int  # the first that was asked with this recommendation
    config: Mapping[str, Value]
    goal: float  # as believed (or measured) by now, not then
    chance: float  # that it meets the limits, as believed now
    is_change: bool

    @property
    def after(self) -> str:
        """The money that had been spent, or the time that had passed where none was."""
        return usd(self.usd) if self.usd else seconds(self.seconds)


def progress(subject: StudyState) -> tuple[ProgressPoint, ...]:
    """What was recommended from when on, in order, each judged by what is known now; the last is now."""
    belief = subject.belief
    if belief is None or subject.recommendation is None:
        return ()
    recommendation = subject.recommendation
    found = [(trial.number, *trial.recommended) for trial in subject.trials if trial.recommended is not None]
    found = found or _best_measured(subject, belief)
    found.append((subject.history.next_number, recommendation.config, recommendation.fraction))
    at = _Clock(subject)
    key_of = belief.problem.space.key
    # What was recommended once is not kept in the pool for ever, where that is only a part of the space.
    left = {key_of(dict(config)): dict(config) for _, config, _ in found if dict(config) not in belief.pool}
    outside = belief.elsewhere(list(left.values())) if left else belief
    judged: dict[tuple[Key, float], tuple[float, float]] = {}
    points: list[ProgressPoint] = []
    for number, config, fraction in found:
        if fraction not in belief.problem.target_fractions:
            continue  # another method's, which aimed at another share of the data
        key = (key_of(dict(config)), fraction)
        if key not in judged:
            judged[key] = _judged(outside if key[0] in left else belief, dict(config), fraction)
        usd, seconds = at.asking(number)
        is_change = not points or dict(points[-1].config) != dict(config)
        points.append(ProgressPoint(usd, seconds, number, dict(config), *judged[key], is_change))
    return tuple(points)


def _best_measured(subject: StudyState, belief: Belief) -> list[tuple[int, Mapping[str, Value], float]]:
    """For a method that writes no recommendation down: the best measured within the limits, from the next trial on."""
    problem, best, found = belief.problem, -np.inf, []
    for outcome in sorted(subject.history.outcomes, key=lambda one: one.trial.number):
        for one in outcome.measurements:
            worth = problem.goal.sign * one.metrics[problem.goal.metric]
            is_within = all(c.is_met(one.metrics[c.metric]) for c in problem.constraints if c.metric in one.metrics)
            if one.fraction in problem.target_fractions and worth > best and is_within:
                best = worth
                found.append((outcome.trial.number + 1, one.configuration, one.fraction))
    return found


def _judged(belief: Belief, config: dict[str, Value], fraction: float) -> tuple[float, float]:
    """The goal and the chance of meeting the limits, as known now."""
    target = belief.target_at(config, fraction)
    name, measured = belief.problem.goal.metric, belief.measured_targets.get(target)
    if measured is not None:
        return measured.metrics[name], belief.feasible_at(target)
    return float(belief.expected(name, belief.targets.at(np.array([target])))[0]), belief.feasible_at(target)


class _Clock:
    """Money and time at the moment that a trial was asked."""

    def __init__(self, subject: StudyState) -> None:
        self._asked = {one.trial: one.asked_at for one in subject.attempts if one.attempt == 1}
        ends = sorted((one.ended_at, one.charge or 0.0) for one in subject.attempts if one.ended_at is not None)
        self._ends = [end for end, _ in ends]
        self._paid = [0.0, *accumulate(usd for _, usd in ends)]
        self._begin = min(self._asked.values(), default=0.0)
        # Of a search at rest, the hours since then are not its own.
        self._now = subject.now if subject.history.pending or not ends else ends[-1][0]
        self._outcomes = subject.history.outcomes

    def asking(self, number: int) -> tuple[float, float]:
        """USD spent and seconds passed."""
        if not self._asked:  # in memory, where one trial follows the other
            before = [outcome for outcome in self._outcomes if outcome.trial.number < number]
            return sum(one.cost for one in before), sum(one.time or 0.0 for one in before)
        at = self._asked.get(number, self._now)
        return self._paid[bisect_right(self._ends, at)], max(at - self._begin, 0.0)


def progress_line(points: Sequence[ProgressPoint], goal: Goal, signs: Signs = BLOCKS) -> str:
    """The quality of what was recommended, from the first cent to the last."""
    if not points:
        return "nothing was recommended yet"
    values = _resampled(points)
    low, high = min(values), max(values)
    top = len(signs.levels) - 1
    heights = [round(top * (one - low) / (high - low)) if high > low else top for one in values]
    line = "".join(signs.levels[height] for height in heights)
    last = points[-1]
    span = " to ".join(dict.fromkeys(metric(goal.metric, end) for end in (low, high)))
    now = metric(goal.metric, last.goal)
    return f"{goal.metric} [{line}] {span} over {last.after}; now {now}, {_how_often_changed(points)}"


def _how_often_changed(points: Sequence[ProgressPoint]) -> str:
    return changed(sum(point.is_change for point in points[1:]))


def _resampled(points: Sequence[ProgressPoint]) -> list[float]:
    """The value at even steps of money; where nothing was paid, of points."""
    values, paid = [point.goal for point in points], [point.usd for point in points]
    if paid[-1] <= 0:
        return values[-_LETTERS:]
    steps = (paid[-1] * (step + 1) / _LETTERS for step in range(_LETTERS))
    return [values[max(bisect_right(paid, step) - 1, 0)] for step in steps]


def _blocks(subject: StudyState) -> list[Block]:
    points, goal = progress(subject), subject.problem.goal
    if not points:
        return []
    now = points[-1]
    lead = (
        f"Now {goal.metric} {metric(goal.metric, now.goal)} after {now.after}; the recommendation "
        f"{_how_often_changed(points)}. Each value is what is known now of what was recommended then."
    )
    unit, name = time_unit(max(point.seconds for point in points))
    times, paid = [point.seconds / unit for point in points], [point.usd for point in points]
    changes = _changes(points, goal)
    over_time = _picture(points, goal, times, f"{name} since the first trial", "against the time passed")
    pictures: list[Block] = [
        Picture(over_time, _MARKS, name=None if now.usd else "progress", table=None if now.usd else changes)
    ]
    if now.usd:
        over_money = _picture(points, goal, paid, "USD spent", "against the money spent")
        pictures = [Picture(over_money, _MARKS, name="progress", table=changes), Folded("Against time", pictures)]
    return [Drawn([lead, *pictures], [progress_line(points, goal), changes])]


def _changes(points: Sequence[ProgressPoint], goal: Goal) -> TextTable:
    """The moments when the recommendation changed, by money, or by time where none was spent."""
    has_cost = any(one.usd for one in points)
    found = [one for one in points if one.is_change]
    lines = [
        [
            str(one.trial),
            usd(one.usd) if has_cost else seconds(one.seconds),
            metric(goal.metric, one.goal),
            chance(one.chance),
            configuration(one.config),
        ]
        for one in found
    ]
    heads = ["from trial", "spent" if has_cost else "after", goal.metric, "P(limits)", "configuration"]
    return TextTable(heads, lines, keys=[key_of(one.config) for one in found])


def _picture(points: Sequence[ProgressPoint], goal: Goal, at: list[float], x_label: str, name: str) -> str:
    """The quality of what was recommended, with a dot for each change."""
    values = [point.goal for point in points]
    chart = Chart(
        across([0.0, *at]),
        up(values, 280, from_zero=0.2),
        x_label,
        f"{goal.metric}{unit_of(goal.metric)}, as known now",
        f"{goal.metric} of what was recommended, {name}",
    )
    chart.steps(list(zip(at, values, strict=True)), "series0")
    for place, point in zip(at, points, strict=True):
        if point.is_change:
            kind = "likely" if point.chance >= 0.5 else "unlikely"
            told = f"{goal.metric} {metric(goal.metric, point.goal)}, P(limits) {chance(point.chance)}"
            mark = mark_of(point.config, f"recommended from trial {point.trial} on, after {point.after}", told)
            chart.dot(place, point.goal, f"change {kind}", mark)
    return chart.svg()


VIEW = View("progress", "What the money bought", "model", _blocks, in_notebook=named_pictures(_blocks))
