"""View 3: how good the recommendation was, against the money and the time that had been spent by then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from trimtuner.decisions.belief import Belief
from trimtuner.problem.expressions import Value
from trimtuner.problem.pool import Key
from trimtuner.state import StudyState
from trimtuner.views.words import seconds, usd


@dataclass(frozen=True)
class Moment:
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


@dataclass(frozen=True)
class Progress:
    """The moments in order; the last is now."""

    moments: tuple[Moment, ...]

    @property
    def changes(self) -> int:
        """How often another configuration was recommended."""
        return sum(moment.is_change for moment in self.moments[1:])


def progress(subject: StudyState) -> Progress:
    """The view."""
    belief = subject.belief
    if belief is None or subject.recommendation is None:
        return Progress(())
    found = [(trial.number, *trial.recommended) for trial in subject.trials if trial.recommended is not None]
    recommendation = subject.recommendation
    found = found or _best_measured(subject, belief)
    found.append((subject.history.next_number, recommendation.config, recommendation.fraction))
    at = _Clock(subject)
    key_of = belief.problem.space.key
    # What was recommended once is not kept in the pool for ever, where that is only a part of the space.
    left = {key_of(dict(config)): dict(config) for _, config, _ in found if dict(config) not in belief.pool}
    outside = belief.elsewhere(list(left.values())) if left else belief
    judged: dict[tuple[Key, float], tuple[float, float]] = {}
    moments: list[Moment] = []
    for number, config, fraction in found:
        if fraction not in belief.problem.target_fractions:
            continue  # another method's, which aimed at another share of the data
        key = (key_of(dict(config)), fraction)
        if key not in judged:
            judged[key] = _judged(outside if key[0] in left else belief, dict(config), fraction)
        usd, seconds = at.asking(number)
        is_change = not moments or dict(moments[-1].config) != dict(config)
        moments.append(Moment(usd, seconds, number, dict(config), *judged[key], is_change))
    return Progress(tuple(moments))


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
    metric = belief.problem.goal.metric
    measured = belief.measured_targets.get(target)
    goal = (
        measured.metrics[metric]
        if measured is not None
        else float(belief.expected(metric, belief.targets.at(np.array([target])))[0])
    )
    return goal, belief.feasible_at(target)


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
