"""Target transforms: from a metric to the scale on which its errors are even, and back in expectation."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import expit, logit

from trimtuner.arrays import Floats

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
        return np.asarray(np.clip((expit(latent) - _EDGE) / (1.0 - 2.0 * _EDGE), 0.0, 1.0))

    def expectation(self, mean: Floats, variance: Floats) -> Floats:
        """By Gauss-Hermite quadrature: the logit-normal's mean has no closed form."""
        points = np.asarray(mean)[..., None] + np.sqrt(variance)[..., None] * _NODES
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
