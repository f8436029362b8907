"""View 5: learning curves. What was measured on shares of the data, and what the model makes of it up to all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Belief, Places
from trimtuner.problem.expressions import Value
from trimtuner.problem.pool import Key
from trimtuner.problem.problem import COST, TIME
from trimtuner.state import StudyState

SHOWN = 6
_STEPS = 25
_DEVIATIONS = 1.6449  # of a normal: a band that should hold 90 % of measurements


@dataclass(frozen=True)
class Band:
    """What the model expects at one share of the data."""

    fraction: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """One configuration."""

    config: Mapping[str, Value]
    measured: tuple[tuple[float, float], ...]  # fraction, value
    band: tuple[Band, ...]


@dataclass(frozen=True)
class Curves:
    """The curves of one metric; the first is of what is recommended."""

    metric: str
    curves: tuple[Curve, ...]


def curves(subject: StudyState) -> tuple[Curves, ...]:
    """The view: of the goal, and of what a run costs."""
    if subject.belief is None or subject.recommendation is None:
        return ()
    belief, recommendation = subject.belief.undisturbed, subject.recommendation  # as the points are: of whole runs
    goal = belief.problem.goal.metric
    names = dict.fromkeys((goal, *(c.metric for c in belief.problem.constraints), belief.effort_metric))
    shown = _worth_showing(subject, dict(recommendation.config))
    # The cost of a run follows from its time; one of the two tells it all.
    kept = [name for name in names if name != TIME or COST not in names]
    return tuple(
        Curves(name, tuple(_curve(belief, name, config) for config in shown))
        for name in kept
        if belief.quantity_name(name) in belief.quantities
    )


def _worth_showing(subject: StudyState, recommended: dict[str, Value]) -> list[dict[str, Value]]:
    """The recommended one, then those that were measured at the most fractions, the best of them first."""
    goal = subject.problem.goal
    key = subject.problem.space.key
    count = Counter(key(dict(m.configuration)) for m in subject.history.measurements)
    best: dict[Key, tuple[float, dict[str, Value]]] = {}
    for m in subject.history.measurements:
        one, value = key(dict(m.configuration)), goal.sign * m.metrics[goal.metric]
        if one not in best or value > best[one][0]:
            best[one] = (value, dict(m.configuration))
    ranked = sorted(best, key=lambda one: (count[one], best[one][0]), reverse=True)
    others = [best[one][1] for one in ranked if one != key(recommended)]
    return [recommended, *others[: SHOWN - 1]]


def _curve(belief: Belief, metric: str, config: dict[str, Value]) -> Curve:
    fractions = _fractions(belief.problem.space.fractions)
    position = belief.pool.position(config)
    places = Places(belief.pool, np.full(len(fractions), position, dtype=np.int64), fractions)
    quantity = belief.quantity_of(metric)
    prediction = belief.predict(metric, places)
    deviation = np.sqrt(prediction.variance + quantity.posterior.noise_variance)
    low = quantity.transform.inverse(prediction.mean - _DEVIATIONS * deviation)
    high = quantity.transform.inverse(prediction.mean + _DEVIATIONS * deviation)
    mean = belief.expected(metric, places)
    measured = sorted(
        (m.fraction, m.metrics[metric])
        for m in belief.measurements
        if metric in m.metrics and dict(m.configuration) == config
    )
    band = (Band(*map(float, row)) for row in zip(fractions, mean, low, high, strict=True))
    return Curve(config, tuple(measured), tuple(band))


def _fractions(offered: tuple[float, ...]) -> Floats:
    between = np.geomspace(min(offered), 1.0, _STEPS)
    between[-1] = 1.0
    return np.unique(np.concatenate([between, offered]))
