"""How the belief about the targets would change with the answer of each candidate: one matrix a quantity.

c   candidate       r   target that may turn out best (a contender)      σ²  noise of one measurement
U   Cov(f_r, y_c) / sd(y_c): how far the mean at r moves when the answer at c is one deviation above its own.
    After the answer with deviation z the mean at r is μ_r + U_cr z, and its variance v_r - U_cr², whatever z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.belief import Belief, Places
from trimtuner.models.posterior import Prediction

CONTENDERS_AT_MOST = 96  # targets beyond these have next to no chance to be the best


@dataclass(frozen=True)
class Outlook:
    """The candidates to score, seen against the contenders for the recommendation."""

    belief: Belief
    candidates: Places
    seed: tuple[int, ...]  # of the random numbers that samples are made of
    contenders_at_most: int = CONTENDERS_AT_MOST

    @cached_property
    def contenders(self) -> Positions:
        """Targets most likely to be feasible and better than the best one believed in, that one included."""
        feasible = self.belief.feasible_at_targets
        mean, variance = self.belief.goal_at_targets
        believed = int(np.argmax(np.where(feasible >= min(0.5, feasible.max()), mean, -np.inf)))
        chance_better = ndtr((mean - mean[believed]) / np.sqrt(variance + variance[believed] + 1e-12))
        score = feasible * chance_better
        score[believed] = np.inf
        count = min(self.contenders_at_most, len(score))
        best = np.argpartition(-score, count - 1)[:count]
        return np.sort(best)

    @cached_property
    def contender_places(self) -> Places:
        """Where they are."""
        return self.belief.targets.at(self.contenders)

    @cached_property
    def is_measured(self) -> Floats:
        """1 for contenders whose own value is measured, which no answer can move; else 0."""
        return np.isin(self.contenders, list(self.belief.measured_targets)).astype(float)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the goal and the constraints, the goal's first."""
        problem = self.belief.problem
        return tuple(dict.fromkeys((problem.goal.metric, *(c.metric for c in problem.constraints))))

    @cached_property
    def quantity_names(self) -> tuple[str, ...]:
        """The quantities behind those metrics: what an imagined answer is imagined of."""
        return tuple(dict.fromkeys(self.belief.quantity_name(metric) for metric in self.metrics))

    def cross_covariance(self, metric: str) -> Floats:
        """Covariance of each candidate with each contender."""
        return self._cross_covariances[self.belief.quantity_name(metric)]

    def candidate_prediction(self, metric: str) -> Prediction:
        """Mean and variance of the *answer* (noise included) at each candidate."""
        return self._answers[self.belief.quantity_name(metric)]

    def movement(self, metric: str) -> Floats:
        """U: one line a candidate, one column a contender."""
        return self._movements[self.belief.quantity_name(metric)]

    def contender_prediction(self, metric: str) -> Prediction:
        """Mean and variance of the metric at each contender, on its transformed scale; exact where measured."""
        if metric not in self._contender_predictions:
            self._contender_predictions[metric] = self._predict_contenders(metric)
        return self._contender_predictions[metric]

    @cached_property
    def _contender_predictions(self) -> dict[str, Prediction]:
        return {}

    @cached_property
    def _movements(self) -> dict[str, Floats]:
        return {
            name: self._cross_covariances[name] / np.sqrt(self._answers[name].variance)[:, None]
            for name in self.quantity_names
        }

    def _predict_contenders(self, metric: str) -> Prediction:
        belief, places = self.belief, self.contender_places
        mean, variance = belief.predict(metric, places)
        mean, variance = mean.copy(), variance.copy()
        transform = belief.quantity_of(metric).transform
        for column, target in enumerate(self.contenders):
            measurement = belief.measured_targets.get(int(target))
            if measurement is not None:
                mean[column] = float(transform.forward(np.array(measurement.metrics[metric])))
                variance[column] = 0.0
        return Prediction(mean, variance)

    @cached_property
    def _cross_covariances(self) -> dict[str, Floats]:
        free = 1.0 - self.is_measured
        return {
            name: self.belief.quantities[name].posterior.covariance(self.candidates.rows, self.contender_places.rows)
            * free
            for name in self.quantity_names
        }

    @cached_property
    def _answers(self) -> dict[str, Prediction]:
        answers = {}
        for name in self.quantity_names:
            posterior = self.belief.quantities[name].posterior
            mean, variance = posterior.predict(self.candidates.rows)
            answers[name] = Prediction(mean, np.maximum(variance, 0.0) + max(posterior.noise_variance, 1e-12))
        return answers


def quadrature(roots: int, dimensions: int) -> tuple[Floats, Floats]:
    """Gauss-Hermite points (one line each) and weights for independent standard normals; one root is the mean."""
    points, weights = np.polynomial.hermite_e.hermegauss(roots)
    weights = weights / weights.sum()
    grids = np.meshgrid(*[points] * dimensions, indexing="ij")
    products = np.meshgrid(*[weights] * dimensions, indexing="ij")
    return (
        np.stack([grid.ravel() for grid in grids], axis=1),
        np.prod([product.ravel() for product in products], axis=0),
    )
