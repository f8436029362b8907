"""What a new study takes over from an earlier one: a posterior of each quantity, in the rows of the new space."""

from __future__ import annotations

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.models.inherited import Heir, Inherited, Legacy
from trimtuner.models.targets import Transform
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.space import Space


class Inheritance:
    """An earlier study in the rows of a new space; each quantity is fitted when first asked for, and kept."""

    def __init__(self, earlier: Earlier, space: Space) -> None:
        self.earlier = earlier
        self._translation = earlier.rows_in(space)
        self._fitted: dict[tuple[str, type, float, Heir], Legacy | None] = {}

    def __len__(self) -> int:
        return len(self._translation.placed)

    def of(self, metric: str, transform: Transform, growth: float, surrogate: Heir) -> Inherited | None:
        """Its posterior of a metric on the new study's scale; nothing where it did not measure it."""
        key = (metric, type(transform), growth, surrogate)
        if key not in self._fitted:
            self._fitted[key] = self._fit(metric, transform, growth, surrogate)
        fitted = self._fitted[key]
        if fitted is None:
            return None
        # A copy, so that what is remembered about a pool goes with the belief that asked.
        return Inherited(fitted.afresh(), self._translation.columns, fitted.spread)

    def values(self, metric: str) -> Floats | None:
        """What it measured, as far as that can be placed; nothing where it did not measure the metric everywhere."""
        return self.earlier.values(metric, self._translation.placed)

    def _fit(self, metric: str, transform: Transform, growth: float, surrogate: Heir) -> Legacy | None:
        values = self.values(metric)
        targets = None if values is None else transform.forward(values)
        if targets is None or not np.isfinite(targets).all():
            return None
        rows = self._translation.rows
        departures = targets - growth * np.log(rows[:, -1])
        return surrogate.fit_likeliest(rows, departures, transform.scale, np.random.default_rng(0))
