"""What a model knows: means and covariances at any rows, and what they become after an imagined answer.

A row is a configuration's columns followed by its data fraction.

A, B   sets of rows            y   imagined answers at rows X
K      covariance of f         σ²  noise_variance of one measurement

Beside it, what every model needs: one thread for its matrices, whoever asks (``one_thread``), and the scale of a metric
on which its errors are even, with the way back in expectation (``Transform``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit
from threadpoolctl import ThreadpoolController

from trimtuner.arrays import Floats


class _OneThread(ContextDecorator):
    """The models' matrices are small: more threads only fight with each other, and with trainings under way.

    How many threads linear algebra has is one number for the whole process, and whoever sets it must put it back before
    another one reads it. So of the user's threads one is in here at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            self._limit = self._libraries.limit(limits=1)
            self._limit.__enter__()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._limit.__exit__(None, None, None)
        self._lock.release()

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        """Looked for once, when there is something to compute: those of numpy and scipy are loaded by then."""
        return ThreadpoolController().select(user_api="blas")


one_thread = _OneThread()


class Prediction(NamedTuple):
    """Mean and variance of the true value (without measurement noise) at each row."""

    mean: Floats
    variance: Floats


class Memo:
    """Results for the last few arrays, by identity: one ask reads the same rows many times over.

    Without it an ask takes a tenth to two fifths longer. An equal array that is another object is computed again; one
    that is changed in place would be answered as it was, so ``Places`` hands out none that can.
    """

    def __init__(self, size: int = 6) -> None:
        self._size = size
        self._kept: list[tuple[Floats, Floats]] = []

    def get(self, rows: Floats, compute: Callable[[Floats], Floats]) -> Floats:
        """The result for this very array, computed at most once while it is remembered."""
        for known, result in self._kept:
            if known is rows:
                return result
        result = compute(rows)
        self._kept = [*self._kept[-self._size + 1 :], (rows, result)]
        return result


class KnownNoise(NamedTuple):
    """What repeated runs tell of the noise of a measurement, on the scale of the targets."""

    deviation: float
    freedom: int  # how many differences it was worked out from


class Posterior(Protocol):
    """A joint distribution over the values at all rows, by its first two moments."""

    @property
    def noise_variance(self) -> float:
        """Variance of one measurement round the true value."""

    def predict(self, rows: Floats) -> Prediction:
        """Mean and variance at each row."""

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """Covariance between each of ``rows`` and each of ``others``."""


class Surrogate(Protocol):
    """A way of learning: from rows and targets to a mixture of posteriors."""

    takes_thousands: ClassVar[bool]  # whether somebody who waits for a page would wait for so many measurements

    def fit(self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator) -> Mixture:
        """Learn from measurements; ``scale`` is a prior guess of the targets' spread, where there is one."""


@dataclass(frozen=True)
class Conditioned:
    """A posterior after imagined answers: the standard conditioning formulas, whatever the model below; no refit."""

    base: Posterior
    rows: Floats
    answers: Floats

    @property
    def noise_variance(self) -> float:
        """The noise of the model below: an imagined answer tells nothing of it."""
        return self.base.noise_variance

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        covariance = self.base.covariance(self.rows, self.rows)
        noise = max(self.noise_variance, 1e-9 * float(np.trace(covariance)) / len(covariance), 1e-12)
        factor, is_lower = cho_factor(covariance + noise * np.eye(len(covariance)), lower=True)
        return factor, is_lower

    def predict(self, rows: Floats) -> Prediction:
        """K_AX (K_XX + σ²)⁻¹ applied to surprise and to covariance."""
        before = self.base.predict(rows)
        cross = self.base.covariance(rows, self.rows)
        gain = cho_solve(self._factor, cross.T).T
        surprise = self.answers - self.base.predict(self.rows).mean
        variance = before.variance - np.einsum("ij,ij->i", gain, cross)
        return Prediction(before.mean + gain @ surprise, np.maximum(variance, 0.0))

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """K_AB less what the answers explain."""
        gain = cho_solve(self._factor, self.base.covariance(rows, self.rows).T).T
        explained: Floats = gain @ self.base.covariance(self.rows, others)
        return self.base.covariance(rows, others) - explained


@dataclass(frozen=True)
class Mixture:
    """Several posteriors, each believed with its weight: bases averaged by evidence, or sampled hyper-parameters."""

    weights: Floats
    members: Sequence[Posterior]

    @cached_property
    def noise_variance(self) -> float:
        """The mean of the members' noise, by their weights."""
        return float(self.weights @ [member.noise_variance for member in self.members])

    @one_thread
    def predict(self, rows: Floats) -> Prediction:
        """Mean and variance of the mixture, the members' disagreement included."""
        predictions = [member.predict(rows) for member in self.members]
        means = np.array([prediction.mean for prediction in predictions])
        variances = np.array([prediction.variance for prediction in predictions])
        mean = self.weights @ means
        return Prediction(mean, self.weights @ (variances + (means - mean) ** 2))

    @one_thread
    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """Covariance within members, plus what their means disagree about together."""
        left = np.array([member.predict(rows).mean for member in self.members])
        right = np.array([member.predict(others).mean for member in self.members])
        left, right = left - self.weights @ left, right - self.weights @ right
        between: Floats = (left * self.weights[:, None]).T @ right
        for weight, member in zip(self.weights, self.members, strict=True):
            between = between + weight * member.covariance(rows, others)
        return between

    def condition(self, rows: Floats, answers: Floats) -> Mixture:
        """The same after imagined answers; weights stay, for an imagined answer is no evidence between members."""
        return Mixture(self.weights, [Conditioned(member, rows, answers) for member in self.members])


_EDGE = 0.002  # keeps the logit of a share of exactly 0 or 1 finite; below what separates good configurations
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Transform(Protocol):
    """A strictly increasing map from a metric's values to the real line."""

    scale: float | None  # prior guess of the spread of transformed values; None where there is none

    def forward(self, values: Floats) -> Floats:
        """Values to the model's scale."""

    def inverse(self, latent: Floats) -> Floats:
        """From the model's scale back to values."""

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """The expected value when the transformed value is Gaussian."""


class Identity:
    """The metric as it is."""

    scale: float | None = None

    def forward(self, values: Floats) -> Floats:
        """The values as they are."""
        return np.asarray(values, dtype=float)

    def inverse(self, latent: Floats) -> Floats:
        """The values as they were."""
        return latent

    def expectation(self, mean: Floats, variance: Floats) -> Floats:  # noqa: ARG002
        """The mean itself, whatever the variance."""
        return mean


class LogScale:
    """Logarithms, for what is above 0 and varies by factors: time, cost, latency, loss."""

    scale: float | None = 1.0

    def forward(self, values: Floats) -> Floats:
        """log y; minus infinity for what is not above 0, as a limit that nothing can meet."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.asarray(values) > 0, np.log(np.maximum(values, 1e-300)), -np.inf)

    def inverse(self, latent: Floats) -> Floats:
        """exp z, within the range of numbers."""
        return np.asarray(np.exp(np.clip(latent, -700.0, 700.0)))

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """exp(μ + σ²/2), the log-normal's mean."""
        return self.inverse(mean + 0.5 * variance)


class Logit:
    """Log odds, for shares: from 0.98 to 0.99 is as far as from 0.50 to 0.67."""

    scale: float | None = 1.5

    def forward(self, values: Floats) -> Floats:
        """logit of a share pulled a little off 0 and 1; limits outside [0, 1] are always or never met."""
        shares = np.asarray(values, dtype=float)
        inside = logit(_EDGE + (1.0 - 2.0 * _EDGE) * np.clip(shares, 0.0, 1.0))
        return np.where(shares > 1.0, np.inf, np.where(shares < 0.0, -np.inf, inside))

    def inverse(self, latent: Floats) -> Floats:
        """The share that has these log odds."""
        shares = np.asarray(expit(latent))
        shares -= _EDGE  # in place: an ask spends a fifth of its time here
        shares /= 1.0 - 2.0 * _EDGE
        return np.clip(shares, 0.0, 1.0, out=shares)

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """By Gauss-Hermite quadrature: the logit-normal's mean has no closed form."""
        points = np.sqrt(variance)[..., None] * _NODES
        points += np.asarray(mean)[..., None]
        result: Floats = self.inverse(points) @ _WEIGHTS
        return result


def transform_for(values: Floats, *, is_positive: bool, more_is_better: bool) -> Transform:
    """The transform that suits what was measured (and the limits set on it).

    ``is_positive`` is for metrics that are above 0 by their nature. What should be large and lies within [0, 1] is a
    share; what should be small and lies there, a latency in seconds say, may yet pass 1.
    """
    if is_positive:
        return LogScale()
    if more_is_better and values.min() >= 0.0 and values.max() <= 1.0:
        return Logit()
    if values.min() > 0.0:
        return LogScale()
    return Identity()


def spread_of(values: Floats) -> float:
    """The values' deviation; a guess from their size where they differ by rounding alone, for that is no spread."""
    deviation, size = float(values.std()), float(np.abs(values).max())
    return deviation if deviation > 1e-12 * size else max(size, 1.0)
