"""What a model knows: means and covariances at any rows, and what they become after an imagined answer.

A row is a configuration's columns followed by its data fraction.

A, B   sets of rows            y   imagined answers at rows X
K      covariance of f         σ²  noise_variance of one measurement
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from trimtuner.arrays import Floats
from trimtuner.models.threads import one_thread


class Prediction(NamedTuple):
    """Mean and variance of the true value (without measurement noise) at each row."""

    mean: Floats
    variance: Floats


class Memo:
    """Results for the last few arrays, by identity: one ask reads the same rows many times over.

    Without it an ask takes a tenth longer, with trees or earlier studies a third. An equal array that is another object
    is computed again; one that is changed in place would be answered as it was, so ``Places`` hands out none that can.
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

    @property
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
