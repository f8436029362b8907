"""Bagged trees: plain ones, as the papers have them, and ours, which stand on a trend over the fraction.

T   trees (members)     D   members' predictions less their mean     τ²  what the trees leave unexplained

``PlainTrees`` is read by the mean and variance of its members, and nothing else (TrimTuner paper, III-A; thesis 2.2.2).

Trees alone cannot extrapolate to a fraction not yet tested, so in ``BaggedTrees`` (extremely randomised, Geurts, Ernst
and Wehenkel, 2006) each member fits a line over φ(s) first, on its own bootstrap sample, and its tree learns the
residuals. Covariance is taken over members, D Dᵀ / T. A configuration also has a part of its own: τ² while it is
untested, without which a test could teach nothing about it, and growth beyond the largest fraction it was tested at,
without which one small test would settle what it does on all of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.models.forest import Forest, OneThreshold, SplitRule, grow
from trimtuner.models.kernels import Basis, log_basis
from trimtuner.models.posterior import Memo, Mixture, Prediction, spread_of

_SLOPE_RIDGE = 0.02  # a line over the fraction needs some spread of fractions within a configuration
_PRIOR_WEIGHT = 3.0  # how many measurements the prior guess of the spread is worth
_GROWTH_SHARE = 0.5  # of the unexplained deviation, what a configuration's own slope over φ(s) may depart by
_NOISE_SHARE = 0.05  # of the unexplained variance, what is put down to measurement noise
_LEAST_SHARE = 1e-6  # of the targets' variance: where all plain trees agree, arithmetic still needs some


@dataclass(frozen=True)
class PlainTrees:
    """An ensemble of trees and no more: each on a sample of the measurements drawn with replacement.

    What the ensemble says of a place is a Gaussian with the mean and the variance of its members' predictions; it knows
    no noise, no trend over the fraction, and no doubt where its members agree.
    """

    rule: SplitRule
    count: int
    takes_thousands: ClassVar[bool] = True

    def fit(self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator) -> Mixture:  # noqa: ARG002
        """Draw a sample for each tree, as many as there are measurements, and grow it to the end."""
        keys = generator.integers(2**63, size=self.count, dtype=np.uint64)
        weights = generator.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=self.count).astype(float)
        forest = grow(rows, np.tile(targets, (self.count, 1)), weights, keys, self.rule)
        return Mixture(np.ones(1), [PlainTreesPosterior(forest, _LEAST_SHARE * spread_of(targets) ** 2)])


@dataclass(frozen=True)
class PlainTreesPosterior:
    """Mean and covariance over the members; ``least`` is what keeps a variance from being none."""

    forest: Forest
    least: float

    @property
    def noise_variance(self) -> float:
        """Next to nothing: the ensemble's spread is all the doubt there is."""
        return self.least

    def predict(self, rows: Floats) -> Prediction:
        """Mean and variance over members."""
        values = self._members(rows)
        return Prediction(values.mean(axis=0), values.var(axis=0) + self.least)

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """D_A D_Bᵀ / T, and the least variance where the rows are the same."""
        keys, other_keys = _configuration_keys(rows, others)
        is_same = (keys[:, None] == other_keys) & (rows[:, -1][:, None] == others[:, -1])
        return _covariance_of(self._members(rows), self._members(others)) + np.where(is_same, self.least, 0.0)

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _members(self, rows: Floats) -> Floats:
        return self._memo.get(rows, self.forest.predict)


@dataclass(frozen=True)
class BaggedTrees:
    """An ensemble of trees; its covariance needs more members than its mean."""

    count: int = 64
    basis: Basis = log_basis
    takes_thousands: ClassVar[bool] = True

    def fit(self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator) -> Mixture:
        """Bootstrap, fit each member's line, grow all trees on the residuals."""
        keys = generator.integers(2**63, size=self.count, dtype=np.uint64)
        weights = _bootstrap(self.count, len(rows), generator)
        lines = _lines(rows, targets, weights, self.basis)
        residuals = targets - _line_values(lines, self.basis(rows[:, -1]))
        forest = grow(rows, residuals, weights, keys, OneThreshold())
        unexplained = _unexplained(forest, rows, residuals, weights, scale, targets)
        return Mixture(np.ones(1), [TreesPosterior(forest, lines, self.basis, rows, unexplained)])


@dataclass(frozen=True)
class TreesPosterior:
    """The ensemble read as a Gaussian: mean over members, covariance over members."""

    forest: Forest
    lines: Floats
    basis: Basis
    tested_rows: Floats
    unexplained: float

    @property
    def noise_variance(self) -> float:
        """A share of what the trees leave unexplained."""
        return _NOISE_SHARE * self.unexplained

    def predict(self, rows: Floats) -> Prediction:
        """Mean and variance over members, and what is each configuration's own."""
        values = self._members(rows)
        level, growth = self._own_deviations(rows)
        return Prediction(values.mean(axis=0), values.var(axis=0) + level**2 + growth**2 + self._floor)

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """D_A D_Bᵀ / T, plus what the fractions of one configuration share of its own."""
        shared = _covariance_of(self._members(rows), self._members(others))
        keys, other_keys = _configuration_keys(rows, others)
        same = keys[:, None] == other_keys
        level, growth = self._own_deviations(rows)
        other_level, other_growth = self._own_deviations(others)
        own = np.outer(level, other_level) + np.outer(growth, other_growth)
        at_one_row = same & (rows[:, -1][:, None] == others[:, -1])
        return shared + np.where(same, own, 0.0) + np.where(at_one_row, self._floor, 0.0)

    @property
    def _floor(self) -> float:
        # Members may agree exactly; no prediction is certain.
        return 0.5 * self.noise_variance

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _members(self, rows: Floats) -> Floats:
        return self._memo.get(
            rows, lambda fresh: self.forest.predict(fresh) + _line_values(self.lines, self.basis(fresh[:, -1]))
        )

    def _own_deviations(self, rows: Floats) -> tuple[Floats, Floats]:
        """How far each row may depart on its own: its configuration's level, and its growth beyond what was tested.

        Both are deviations that all fractions of the configuration share. A test at a small fraction settles the
        level; how the configuration grows from there to more data stays open.
        """
        keys, tested_keys = _configuration_keys(rows, self.tested_rows)
        features = self.basis(rows[:, -1])
        reached = np.full(int(max(keys.max(), tested_keys.max())) + 1, -1.0)
        np.maximum.at(reached, tested_keys, self.tested_rows[:, -1])
        largest = reached[keys]
        is_tested = largest > 0
        beyond = features - self.basis(np.where(is_tested, largest, 1.0))
        beyond[is_tested & (rows[:, -1] <= largest)] = 0.0
        deviation = math.sqrt(self.unexplained)
        return np.where(is_tested, 0.0, deviation), _GROWTH_SHARE * deviation * beyond


def _covariance_of(left: Floats, right: Floats) -> Floats:
    """D_A D_Bᵀ / T, of the members' predictions at two sets of rows."""
    covariance: Floats = (left - left.mean(axis=0)).T @ (right - right.mean(axis=0)) / len(left)
    return covariance


def _bootstrap(count: int, size: int, generator: np.random.Generator) -> Floats:
    """How often each member draws each measurement: Poisson, as online bagging has it (Oza and Russell, 2001).

    Unlike draws with replacement, those of the earlier measurements stay when one more is added.
    """
    weights = generator.poisson(1.0, size=(size, count)).T.astype(float)
    weights[weights.sum(axis=1) == 0] = 1.0  # a member that drew nothing takes everything
    return weights


def _lines(rows: Floats, targets: Floats, weights: Floats, basis: Basis) -> Floats:
    """Intercept and slope over φ(s) of each member; the slope only from fractions of one configuration.

    Comparing fractions across configurations would mistake "only good ones were tested on much data" for a trend.
    """
    features = basis(rows[:, -1])
    _, group = np.unique(rows[:, :-1], axis=0, return_inverse=True)
    membership = np.eye(int(group.max()) + 1)[group.reshape(-1)]
    group_weight = np.maximum(weights @ membership, 1e-12)
    feature_mean = (weights * features) @ membership / group_weight @ membership.T
    target_mean = (weights * targets) @ membership / group_weight @ membership.T
    spread = (weights * (features - feature_mean) ** 2).sum(axis=1)
    slope = (weights * (features - feature_mean) * (targets - target_mean)).sum(axis=1) / (spread + _SLOPE_RIDGE)
    intercept = (weights * (targets - slope[:, None] * features)).sum(axis=1) / weights.sum(axis=1)
    return np.column_stack([intercept, slope])


def _line_values(lines: Floats, features: Floats) -> Floats:
    return lines[:, :1] + lines[:, 1:] * features


def _unexplained(
    forest: Forest, rows: Floats, residuals: Floats, weights: Floats, scale: float | None, targets: Floats
) -> float:
    """Squared error of the mean out of bag, shrunk to the prior guess while there is little to judge by.

    Of the mean, not of single trees: their spread is in the covariance already.
    """
    outside = weights == 0
    judged = outside.any(axis=0)
    errors = np.where(outside, forest.predict(rows) - residuals, 0.0).sum(axis=0)[judged] / outside.sum(axis=0)[judged]
    squares = float(errors @ errors)
    guess = scale if scale is not None else spread_of(targets)
    variance = (_PRIOR_WEIGHT * guess**2 + squares) / (_PRIOR_WEIGHT + float(judged.sum()))
    return max(variance, math.ulp(1.0))


def _configuration_keys(rows: Floats, others: Floats) -> tuple[Positions, Positions]:
    """A number for each distinct configuration, the same in both sets."""
    both = np.ascontiguousarray(np.vstack([rows[:, :-1], others[:, :-1]]))
    as_bytes = both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).reshape(-1)
    _, inverse = np.unique(as_bytes, return_inverse=True)
    inverse = inverse.reshape(-1)
    return inverse[: len(rows)], inverse[len(rows) :]
