"""View 10: can the model be trusted? Every measurement is predicted by a model that has not seen its trial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtuner.decisions.belief import Belief, Places
from trimtuner.errors import SearchOver, TrimTunerError
from trimtuner.problem.history import History, Outcome
from trimtuner.problem.problem import COST
from trimtuner.state import StudyState
from trimtuner.tuning import tuner
from trimtuner.views.words import sentence

_DEVIATIONS = 1.6449  # of a normal: an interval that should hold 90 % of measurements
_ALONE_AT_MOST = 20  # trials that are left out one by one; of more, a tenth at once
_GROUPS = 10
_TRIALS_AT_LEAST = 4
_MEASUREMENTS_AT_MOST = 1_500  # beyond, fitting twenty models takes longer than anybody waits
BINS = ((0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0))


@dataclass(frozen=True)
class Check:
    """One measurement, and what was predicted without it."""

    trial: int
    fraction: float
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        """Whether the interval held it."""
        return self.low <= self.measured <= self.high


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

    checks: dict[str, tuple[Check, ...]]
    calibration: tuple[Calibration, ...]
    stop: str
    note: str  # where there is nothing to show, why

    def coverage(self, metric: str) -> float | None:
        """The share of measurements that the 90 % intervals held."""
        found = self.checks.get(metric, ())
        return sum(one.is_inside for one in found) / len(found) if found else None


def trust(subject: StudyState) -> Trust:
    """The view."""
    told = [outcome for outcome in subject.history.outcomes if outcome.measurements]
    measured = sum(len(outcome.measurements) for outcome in told)
    if len(told) < _TRIALS_AT_LEAST:
        note = f"It takes {_TRIALS_AT_LEAST} measured trials to check the model; there are {len(told)}."
        return Trust({}, (), stop_state(subject), note)
    if measured > _MEASUREMENTS_AT_MOST:
        note = (
            f"With {measured:,} measurements it would take long to fit the model again and again; it is checked up to "
            f"{_MEASUREMENTS_AT_MOST:,}."
        )
        return Trust({}, (), stop_state(subject), note)
    checks: dict[str, list[Check]] = {}
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


def _check(belief: Belief, outcome: Outcome, checks: dict[str, list[Check]], chances: list[tuple[float, bool]]) -> None:
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
                value = measurement.metrics[name]
                made = _predicted(belief, name, place)
                checks.setdefault(name, []).append(Check(outcome.trial.number, measurement.fraction, value, *made))
        for constraint in problem.constraints:
            if constraint.metric in measurement.metrics:
                said = float(belief.chance(constraint, belief.predict(constraint.metric, place))[0])
                chances.append((said, constraint.is_met(measurement.metrics[constraint.metric])))


def _predicted(belief: Belief, metric: str, place: Places) -> tuple[float, float, float]:
    quantity = belief.quantity_of(metric)
    prediction = belief.predict(metric, place)
    deviation = np.sqrt(prediction.variance + quantity.posterior.noise_variance)
    mean = float(belief.expected(metric, place)[0])
    low = float(quantity.transform.inverse(prediction.mean - _DEVIATIONS * deviation)[0])
    high = float(quantity.transform.inverse(prediction.mean + _DEVIATIONS * deviation)[0])
    return mean, low, high


def _calibration(chances: list[tuple[float, bool]]) -> tuple[Calibration, ...]:
    found = []
    for low, high in BINS:
        inside = [(said, held) for said, held in chances if low <= said < high or (high == 1.0 and said == 1.0)]
        if inside:
            said, held = (float(np.mean([one[i] for one in inside])) for i in (0, 1))
            found.append(Calibration(low, high, len(inside), said, held))
    return tuple(found)
