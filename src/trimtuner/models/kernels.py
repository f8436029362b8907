"""Kernels over rows (configuration columns, then fraction), composed by ``*`` and ``+``.

θ   hyper-parameters of a kernel, all real, with a Gaussian prior      r   scaled distance
φ   basis of the fraction s, (1, φ(s)); Θ = L Lᵀ its covariance        W   weights of a pull-back

Where ``others is rows``, the very same array, half of the work is saved; an equal copy gives the same matrix.

Every kernel gives its matrix and, for a symmetric W, the gradient of Σ W∘K: reverse-mode differentiation by hand, so
that a product or a sum costs one pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Floats

Basis: TypeAlias = Callable[[Floats], Floats]

_ROOT5 = math.sqrt(5.0)
_BLOCK_CELLS = 32_768
_LARGE_BLOCK_CELLS = 262_144
_OWN_LOG_LENGTH = math.log(0.1)


def quadratic_basis(s: Floats) -> Floats:
    """(1 - s)²: how accuracy nears its full-data value (FABOLAS, the TrimTuner paper)."""
    return (1.0 - s) ** 2


def linear_basis(s: Floats) -> Floats:
    """1 - s, which with the constant spans the papers' (1, s) for cost."""
    return 1.0 - s


def log_basis(s: Floats) -> Floats:
    """log s, 0 at full data and -1 at a hundredth of it: power laws of time, steady gains of accuracy."""
    return np.asarray(np.log10(s) / 2.0)


def log_quadratic_basis(s: Floats) -> Floats:
    """(1 - u)², u the fraction on a log scale: 1 for all of the data, 0 for a hundredth of it."""
    return np.asarray(log_basis(s) ** 2)


@dataclass(frozen=True)
class Prior:
    """An independent Gaussian for each hyper-parameter."""

    mean: Floats
    deviation: Floats

    def __add__(self, other: Prior) -> Prior:
        return Prior(np.concatenate([self.mean, other.mean]), np.concatenate([self.deviation, other.deviation]))


class Kernel(ABC):
    """A covariance function with hyper-parameters θ, with ``*`` and ``+`` to compose them."""

    @abstractmethod
    def prior(self, column_count: int) -> Prior:
        """The prior of θ for rows with so many configuration columns."""

    @abstractmethod
    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """Covariance of each of ``rows`` with each of ``others``."""

    @abstractmethod
    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """The variance at each row: the diagonal of the matrix, without the rest."""

    @abstractmethod
    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """The gradient of Σ W∘K(rows, rows) with respect to θ, for symmetric W."""

    def __mul__(self, other: Kernel) -> Kernel:
        return Product(self, other)

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other)


@dataclass(frozen=True)
class Matern52(Kernel):
    """Matérn 5/2 over the configuration's columns, a length scale for each; θ = log length scales."""

    def prior(self, column_count: int) -> Prior:
        """Lengths about the typical distance in the unit cube: in doubt a parameter matters, smoothly."""
        typical = math.log(0.5 * math.sqrt(max(column_count, 1)))
        return Prior(np.full(column_count, typical), np.full(column_count, 1.0))

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """(1 + √5 r + 5r²/3) exp(-√5 r), block by block: each block stays in the processor's cache."""
        result = np.empty((len(rows), len(others)))
        block = max(1, _BLOCK_CELLS // max(len(others), 1))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            scaled = _scaled_squared_distance(theta, rows if block >= len(rows) else rows[part], others)
            np.sqrt(scaled, out=scaled)
            scaled *= _ROOT5
            cells = result[part]
            np.multiply(scaled, 1.0 / 3.0, out=cells)
            cells += 1.0
            cells *= scaled
            cells += 1.0
            np.negative(scaled, out=scaled)
            cells *= np.exp(scaled, out=scaled)
        return result

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:  # noqa: ARG002
        """One: the variance is the same everywhere."""
        return np.ones(len(rows))

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """∂k/∂log ℓ = (5/3)(1 + √5 r) exp(-√5 r) d²/ℓ², summed without forming d² for each column."""
        scaled = _ROOT5 * np.sqrt(_scaled_squared_distance(theta, rows, rows))
        inner = weights * (5.0 / 3.0) * (1.0 + scaled) * np.exp(-scaled)
        columns = rows[:, :-1] / np.exp(theta)
        result: Floats = 2.0 * (inner.sum(axis=1) @ columns**2 - np.einsum("ij,ij->j", columns, inner @ columns))
        return result


@dataclass(frozen=True)
class FractionKernel(Kernel):
    """(1, φ(s)) Θ (1, φ(s'))ᵀ; θ = (log L₁₁, L₂₁, log L₂₂). The first entry is the variance at full data."""

    basis: Basis
    level: float = 1.0  # prior median of the deviation at full data
    slope: float = 1.0  # prior median of the deviation of the coefficient of φ

    def prior(self, column_count: int) -> Prior:  # noqa: ARG002
        """Deviations about ``level`` and ``slope``, no correlation preferred."""
        return Prior(np.array([math.log(self.level), 0.0, math.log(self.slope)]), np.array([0.7, self.slope, 0.7]))

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """Φ L Lᵀ Φ'ᵀ, the features weighed by Θ."""
        factor = _factor(theta)
        left = self._features(rows) @ factor
        right = left if others is rows else self._features(others) @ factor
        result: Floats = left @ right.T
        return result

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """The squared length of φL at each row."""
        return np.asarray(((self._features(rows) @ _factor(theta)) ** 2).sum(axis=1))

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """∂/∂L Σ W∘(ΦLLᵀΦᵀ) = 2 Φᵀ W Φ L."""
        features, factor = self._features(rows), _factor(theta)
        gradient = 2.0 * features.T @ (weights @ features) @ factor
        return np.array([gradient[0, 0] * factor[0, 0], gradient[1, 0], gradient[1, 1] * factor[1, 1]])

    def _features(self, rows: Floats) -> Floats:
        features = np.ones((len(rows), 2))
        features[:, 1] = self.basis(rows[:, -1])
        return features


@dataclass(frozen=True)
class FractionWalk(Kernel):
    """Brownian motion over the logarithm of the fraction, away from full data; θ = log size.

    What no basis foresees: a curve may bend anywhere on its way, and the farther a fraction is from all of the data,
    the less it says. Its size is how far sub-samples of this job can be trusted.
    """

    size: float = 0.5  # prior median of the deviation at a hundredth of the data

    def prior(self, column_count: int) -> Prior:  # noqa: ARG002
        """A size about ``size``, within a factor of two either way."""
        return Prior(np.array([math.log(self.size)]), np.array([0.7]))

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """size² min(u, u'), u the distance from full data."""
        return np.asarray(math.exp(2.0 * theta[0]) * np.minimum.outer(_from_full(rows), _from_full(others)))

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """size² u: none at full data, and more the farther from it."""
        return math.exp(2.0 * theta[0]) * _from_full(rows)

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """∂k/∂log size = 2k, weighed and summed."""
        return np.array([2.0 * float((weights * self.matrix(theta, rows, rows)).sum())])


@dataclass(frozen=True)
class OwnDeparture(Kernel):
    """What sets a configuration apart from its neighbours; θ = (log size, log walk).

    A part that is the same at every fraction, and a walk of its own: a single curve may jump, in time above all, and
    that must not be taken for the way of the whole job.
    """

    size: float = 0.2  # prior median of the deviation at full data
    walk: float = 1.0  # prior median of what a hundredth of the data adds to it

    def prior(self, column_count: int) -> Prior:  # noqa: ARG002
        """Deviations about ``size`` and ``walk``, within a factor of two."""
        return Prior(np.log([self.size, self.walk]), np.array([0.7, 0.7]))

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """(size² + walk² min(u, u')) exp(-d²/2ℓ²), with an ℓ shorter than the step of most grids."""
        size, walk = np.exp(2.0 * theta)
        near, far = _from_full(rows), _from_full(others)
        result = np.empty((len(rows), len(others)))
        block = max(1, _LARGE_BLOCK_CELLS // max(len(others), 1))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            cells = np.minimum.outer(near[part], far, out=result[part])
            cells *= walk
            cells += size
            cells *= _closeness(rows if block >= len(rows) else rows[part], others)
        return result

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """size² + walk² u at each row."""
        return math.exp(2.0 * theta[0]) + math.exp(2.0 * theta[1]) * _from_full(rows)

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """Twice each part of the kernel, weighed and summed."""
        weighed, distance = weights * _closeness(rows, rows), _from_full(rows)
        steps = float((weighed * np.minimum.outer(distance, distance)).sum())
        return np.array([2.0 * math.exp(2.0 * theta[0]) * float(weighed.sum()), 2.0 * math.exp(2.0 * theta[1]) * steps])


@dataclass(frozen=True)
class Product(Kernel):
    """The product of two kernels."""

    left: Kernel
    right: Kernel

    def prior(self, column_count: int) -> Prior:
        """The priors of both kernels, the left one's first."""
        return self.left.prior(column_count) + self.right.prior(column_count)

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """K₁ ∘ K₂, cell by cell."""
        one, two = _split(self.left, theta, rows)
        return self.left.matrix(one, rows, others) * self.right.matrix(two, rows, others)

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """The product of the variances."""
        one, two = _split(self.left, theta, rows)
        return self.left.diagonal(one, rows) * self.right.diagonal(two, rows)

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """Each factor weighed by the other."""
        one, two = _split(self.left, theta, rows)
        left, right = self.left.matrix(one, rows, rows), self.right.matrix(two, rows, rows)
        return np.concatenate(
            [self.left.pull_back(one, rows, weights * right), self.right.pull_back(two, rows, weights * left)]
        )


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of two kernels."""

    left: Kernel
    right: Kernel

    def prior(self, column_count: int) -> Prior:
        """The priors of both kernels, the left one's first."""
        return self.left.prior(column_count) + self.right.prior(column_count)

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:
        """K₁ + K₂, cell by cell."""
        one, two = _split(self.left, theta, rows)
        return self.left.matrix(one, rows, others) + self.right.matrix(two, rows, others)

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:
        """The sum of the variances."""
        one, two = _split(self.left, theta, rows)
        return self.left.diagonal(one, rows) + self.right.diagonal(two, rows)

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:
        """The same weights for both."""
        one, two = _split(self.left, theta, rows)
        return np.concatenate([self.left.pull_back(one, rows, weights), self.right.pull_back(two, rows, weights)])


def _closeness(rows: Floats, others: Floats) -> Floats:
    """1 for a configuration and itself, next to 0 for any two others of most grids."""
    squared = _scaled_squared_distance(np.full(rows.shape[1] - 1, _OWN_LOG_LENGTH), rows, others)
    squared *= -0.5
    return np.exp(squared, out=squared)


def _from_full(rows: Floats) -> Floats:
    """0 at full data, 1 at a hundredth of it."""
    return -log_basis(rows[:, -1])


def _split(left: Kernel, theta: Floats, rows: Floats) -> tuple[Floats, Floats]:
    count = len(left.prior(rows.shape[1] - 1).mean)
    return theta[:count], theta[count:]


def _scaled_squared_distance(theta: Floats, rows: Floats, others: Floats) -> Floats:
    lengths = np.exp(theta)
    left = rows[:, :-1] / lengths
    right = left if others is rows else others[:, :-1] / lengths
    squared: Floats = left @ (-2.0 * right.T)
    squared += np.einsum("ij,ij->i", left, left)[:, None]
    squared += np.einsum("ij,ij->i", right, right)
    # Rounding may leave a tiny negative distance, and on the diagonal a tiny positive one.
    return np.maximum(squared, 0.0, out=squared)


def _factor(theta: Floats) -> Floats:
    return np.array([[math.exp(theta[0]), 0.0], [theta[1], math.exp(theta[2])]])
