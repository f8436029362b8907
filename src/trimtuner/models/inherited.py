"""A prior that an earlier study leaves: its posterior, and a difference from it that the new measurements tell.

m, C   mean and covariance of the earlier posterior      y = b f + d,  f ~ N(m, C),  d ~ N(level, k)
b      how much of what the earlier study saw between configurations there is to be seen here
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from trimtuner.arrays import Booleans, Floats
from trimtuner.models.kernels import Kernel, Prior
from trimtuner.models.posterior import KnownNoise, Memo, Mixture, Posterior, Prediction

_LEAST_FACTOR = 0.05


class Legacy(Posterior, Protocol):
    """A posterior that a later study can stand on."""

    @property
    def spread(self) -> float:
        """The spread of the targets that it learnt from."""

    def afresh(self) -> Legacy:
        """The same, without what it remembers of rows it was read at."""


@runtime_checkable
class Heir(Protocol):
    """A way of learning that can leave its knowledge to a later study, and stand on that of earlier ones."""

    def fit_likeliest(
        self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator
    ) -> Legacy:
        """The one posterior that the measurements speak for most."""

    def fit_on(
        self,
        earlier: Sequence[Inherited],
        rows: Floats,
        targets: Floats,
        scale: float | None,
        generator: np.random.Generator,
        noise: KnownNoise | None = None,
    ) -> Mixture:
        """Learn from measurements and from what earlier studies left; ``noise`` where repeated runs tell of it."""


@dataclass(frozen=True)
class Inherited:
    """An earlier posterior, read at rows of the new study through the columns about which it says something."""

    posterior: Posterior
    columns: Booleans
    spread: float  # of what it learnt from, times the factor
    slope: float = 0.0  # with log(fraction), by which it was taken to grow faster than the new targets are
    factor: float = 1.0  # b

    def fitted_to(self, rows: Floats, targets: Floats) -> Inherited:
        """The same times b, the slope of targets over what it says there, which is expected to be 1.

        Another job may have the same good configurations and differences half as large. That expectation counts as
        much as one measurement at a distance of the spread from the others; a past that is upside down is none.
        """
        said = self.factor * self.posterior.predict(self._seen(rows)).mean
        told = targets - self.slope * np.log(rows[:, -1])
        said, told, expected = said - said.mean(), told - told.mean(), self.spread**2
        factor = max(float(said @ told + expected) / float(said @ said + expected), _LEAST_FACTOR)
        return replace(self, factor=factor * self.factor, spread=factor * self.spread)

    @property
    def noise_variance(self) -> float:
        """The noise that the earlier study met."""
        return self.factor**2 * self.posterior.noise_variance

    def predict(self, rows: Floats) -> Prediction:
        """What it says at rows of the new study."""
        mean, variance = self.posterior.predict(self._seen(rows))
        return Prediction(self.factor * mean + self.slope * np.log(rows[:, -1]), self.factor**2 * variance)

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """C at rows of the new study."""
        return self.factor**2 * self.posterior.covariance(self._seen(rows), self._seen(others))

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _seen(self, rows: Floats) -> Floats:
        return self._memo.get(rows, lambda fresh: fresh[:, self.columns])


@dataclass(frozen=True)
class InheritedCovariance(Kernel):
    """C in units of the new targets' spread: where the earlier study knew nothing, its mean is no knowledge."""

    inherited: Inherited
    spread: float

    def prior(self, column_count: int) -> Prior:  # noqa: ARG002
        """It has nothing to choose."""
        return Prior(np.zeros(0), np.zeros(0))

    def matrix(self, theta: Floats, rows: Floats, others: Floats) -> Floats:  # noqa: ARG002
        """C / spread², the same whatever θ."""
        if others is not rows:
            return self.inherited.covariance(rows, others) / self.spread**2
        # A fit asks for the same matrix at every step.
        return self._memo.get(rows, lambda fresh: self.inherited.covariance(fresh, fresh) / self.spread**2)

    def diagonal(self, theta: Floats, rows: Floats) -> Floats:  # noqa: ARG002
        """The earlier variance at each row, over spread²."""
        return self.inherited.predict(rows).variance / self.spread**2

    def pull_back(self, theta: Floats, rows: Floats, weights: Floats) -> Floats:  # noqa: ARG002
        """An empty gradient: there is no θ to climb along."""
        return np.zeros(0)

    @cached_property
    def _memo(self) -> Memo:
        return Memo(1)


@dataclass(frozen=True)
class OnInherited:
    """A posterior of the difference, with the earlier mean added back."""

    difference: Posterior
    inherited: Inherited

    @property
    def noise_variance(self) -> float:
        """The noise that the new measurements show."""
        return self.difference.noise_variance

    def predict(self, rows: Floats) -> Prediction:
        """m and what the difference adds."""
        mean, variance = self.difference.predict(rows)
        return Prediction(mean + self.inherited.predict(rows).mean, variance)

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """The difference's; its kernel has C in it."""
        return self.difference.covariance(rows, others)


def weight_of(mixture: Mixture, inherited: Inherited) -> float:
    """How much of a mixture stands on one earlier study."""
    pairs = zip(mixture.weights.tolist(), mixture.members, strict=True)
    return math.fsum(
        weight
        for weight, one in pairs
        if isinstance(one, OnInherited) and one.inherited.posterior is inherited.posterior
    )
