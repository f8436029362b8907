"""Beliefs whose every number is known: Gaussians given by a mean vector and a covariance matrix over listed rows.

Places are numbered as ``Places.product`` has them, fraction by fraction: in a space of n configurations, number
k·n + i is configuration i at the k-th fraction. Means and covariances are listed in that order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.belief import Belief, ChanceOfRunning, Places, Quantity
from trimtuner.decisions.learning import TIME_GROWTH
from trimtuner.decisions.outlook import Outlook
from trimtuner.models.posterior import Identity, Logit, LogScale, Mixture, Prediction
from trimtuner.problem.history import History, Measurement, Outcome, Trial
from trimtuner.problem.problem import Constraint, Goal, Problem
from trimtuner.problem.space import Space

IDENTITY, LOG, LOGIT = Identity(), LogScale(), Logit()
FRACTIONS = (0.5, 1.0)
DEEP_FLOOR = -100.0  # a measured score so low that no clipping at the floor disturbs a linear calculation


@dataclass(frozen=True)
class KnownGaussian:
    """The joint normal of the values at listed rows, conditioned by the textbook's formulas."""

    rows: np.ndarray
    mean: np.ndarray
    matrix: np.ndarray
    noise_variance: float = 1e-6

    @cached_property
    def _numbers(self):
        return {row.tobytes(): number for number, row in enumerate(self.rows)}

    def _at(self, rows):
        return np.array([self._numbers[row.tobytes()] for row in np.ascontiguousarray(rows)], dtype=int)

    def predict(self, rows):
        at = self._at(rows)
        return Prediction(self.mean[at], np.diag(self.matrix)[at])

    def covariance(self, rows, others):
        return self.matrix[np.ix_(self._at(rows), self._at(others))]

    def condition(self, rows, answers):
        at = self._at(rows)
        seen = self.matrix[np.ix_(at, at)] + self.noise_variance * np.eye(len(at))
        gain = self.matrix[:, at] @ np.linalg.inv(seen)
        mean = self.mean + gain @ (answers - self.mean[at])
        return KnownGaussian(self.rows, mean, self.matrix - gain @ self.matrix[at], self.noise_variance)


@dataclass(frozen=True)
class SharedSlope:
    """f = level + w·ℓ(row) with one w ~ N(0, 1): a Gaussian over any number of rows without a matrix."""

    loading: Callable[[np.ndarray], np.ndarray]
    level: float = 0.0
    noise_variance: float = 1.0

    def predict(self, rows):
        return Prediction(np.full(len(rows), self.level), self.loading(rows) ** 2)

    def covariance(self, rows, others):
        return np.outer(self.loading(rows), self.loading(others))


@dataclass(frozen=True)
class KnownSurrogate:
    """Whatever was measured, the model is the same: one posterior for shares, one for what is above 0.

    They are told apart by the prior spread that the transforms hand to a fit.
    """

    share: object = None
    positive: object = None

    def fit(self, rows, targets, scale, generator):  # noqa: ARG002
        return mixture(self.share if scale == Logit.scale else self.positive)


@dataclass(frozen=True)
class LearningSurrogate:
    """A known prior, the same for every metric, conditioned on what was measured: a model that learns, yet is exact."""

    prior: KnownGaussian

    def fit(self, rows, targets, scale, generator):  # noqa: ARG002
        return mixture(self.prior.condition(rows, targets))


@dataclass(frozen=True)
class Given(Acquisition):
    """Scores by hand, one a candidate; it remembers the outlooks it was asked about."""

    function: Callable[[Outlook], np.ndarray]
    asked: list = None

    def score(self, outlook):
        if self.asked is not None:
            self.asked.append(outlook)
        return np.asarray(self.function(outlook), dtype=float)


def mixture(posterior) -> Mixture:
    return Mixture(np.ones(1), [posterior])


def space_of(count, prices=None, fractions=FRACTIONS, snapshots=False) -> Space:
    """Configurations x = 0 … count - 1."""
    configurations = [{"x": number} for number in range(count)]
    return Space.from_configs(configurations, price_per_hour=prices, fractions=fractions, snapshots=snapshots)


def problem_of(space, *constraints, maximize="score", minimize=None, budget=None, against=None) -> Problem:
    goal = Goal(minimize, "minimize") if minimize else Goal(maximize, "maximize", against)
    return Problem(space, goal, tuple(Constraint.parse(text) for text in constraints), budget)


def gaussian_over(space, mean, covariance=1.0, noise=1e-6) -> KnownGaussian:
    """Over every place of the space; a number for the mean or the variances means the same everywhere."""
    rows = Places.product(space.pool(), space.fractions).rows
    covariance = np.asarray(covariance, dtype=float)
    matrix = covariance if covariance.ndim == 2 else np.diag(np.broadcast_to(covariance, len(rows)).astype(float))
    return KnownGaussian(rows, np.broadcast_to(np.asarray(mean, dtype=float), len(rows)).copy(), matrix, noise)


def gaussian_of_times(space, seconds, covariance=0.0, noise=1e-14) -> KnownGaussian:
    """Over every place, such that a belief reads these seconds as the median time there.

    A belief adds the usual growth with the data to what its model says, so that is taken off first.
    """
    everywhere = Places.product(space.pool(), space.fractions)
    growth = belief_of(problem_of(space), {"time": (LOG, gaussian_over(space, 0.0))}).offset("time", everywhere)
    return gaussian_over(space, np.log(seconds) - growth, covariance, noise)


def random_covariance(count, generator) -> np.ndarray:
    factor = generator.normal(size=(count, count))
    return factor @ factor.T / count + 0.05 * np.eye(count)


def measurement(position, fraction, **metrics) -> Measurement:
    return Measurement({"x": position}, fraction, metrics)


def trial(number, position, fraction, snapshots=()) -> Trial:
    return Trial(number, {"x": position}, fraction, snapshots)


def ran(number, position, fraction, **metrics) -> Outcome:
    """A trial that ran and reported."""
    told = (measurement(position, fraction, **metrics),)
    return Outcome(trial(number, position, fraction), told, None, metrics.get("cost", 0.0), metrics.get("time"))


def failed(number, position, fraction, kind="oom", time=1.0) -> Outcome:
    return Outcome(trial(number, position, fraction), (), kind, 0.0, time)


def history_of(*outcomes: Outcome, pending: Sequence[Trial] = ()) -> History:
    return History(tuple(outcomes), tuple(pending), next_number=len(outcomes) + len(pending))


def belief_of(
    problem,
    quantities: dict[str, tuple[object, object]],
    measurements=None,
    failures: Sequence[tuple[int, float]] = (),
    spent=1.0,
) -> Belief:
    """A belief from (transform, posterior) pairs; the one measurement there is when none are given is of no target."""
    pool = problem.space.pool()
    if measurements is None:
        measurements = [measurement(0, 0.5, score=DEEP_FLOOR, time=1.0)]

    def rows(pairs):
        return pool.rows_at(np.array([p for p, _ in pairs], dtype=int), np.array([f for _, f in pairs], dtype=float))

    ran_at = [(pool.position(dict(m.configuration)), m.fraction) for m in measurements]
    return Belief(
        problem,
        pool,
        {
            name: Quantity(transform, mixture(posterior), TIME_GROWTH if name in ("time", "cost") else 0.0)
            for name, (transform, posterior) in quantities.items()
        },
        tuple(measurements),
        ChanceOfRunning.from_trials(rows(ran_at), rows(failures)),
        frozenset(failures),
        spent,
    )


def outlook_of(belief, positions=None, seed=(0, 0, 1), contenders_at_most=96) -> Outlook:
    """On all places of the space, or on those numbered."""
    everywhere = Places.product(belief.pool, belief.problem.space.fractions)
    chosen = np.arange(len(everywhere)) if positions is None else np.array(positions)
    return Outlook.of(belief, everywhere.at(chosen), seed, contenders_at_most)
