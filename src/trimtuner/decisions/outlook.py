"""How the belief about the targets would change with the answer of each candidate: one matrix a quantity.

c   candidate       r   target that may turn out best (a contender)      σ²  noise of one measurement
U   Cov(f_r, y_c) / sd(y_c): how far the mean at r moves when the answer at c is one deviation above its own.
    After the answer with deviation z the mean at r is μ_r + U_cr z, and its variance v_r - U_cr², whatever z.

The same step can be taken for real in the imagination: ``after`` is the outlook once a candidate has given an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from trimtuner.arrays import Booleans, Floats, Positions
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
    left: float = math.inf  # of the budget, USD (seconds where no price is known)
    confidence: float = 0.9  # with which a trial must fit what is left

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

    @cached_property
    def answered_names(self) -> tuple[str, ...]:
        """The quantities that a trial measures, what it costs always among them."""
        effort = self.belief.quantity_name(self.belief.effort_metric)
        names = (*self.quantity_names, *([effort] if effort in self.belief.quantities else []))
        return tuple(dict.fromkeys(names))

    # What is believed of the candidates themselves.

    def quantity_at_candidates(self, name: str) -> Prediction:
        """Mean and variance of a quantity's model at each candidate, without noise and offsets."""
        return self._at_candidates[name]

    def at_candidates(self, metric: str) -> Prediction:
        """Mean and variance of the metric at each candidate, on its transformed scale."""
        mean, variance = self.quantity_at_candidates(self.belief.quantity_name(metric))
        return Prediction(mean + self.offset(metric), variance)

    def offset(self, metric: str) -> Floats:
        """What is known beforehand of the metric at each candidate."""
        if metric not in self._offsets:
            self._offsets[metric] = self.belief.offset(metric, self.candidates)
        return self._offsets[metric]

    def candidate_prediction(self, metric: str) -> Prediction:
        """Mean and variance of the *answer* (noise included) at each candidate."""
        return self._answer(self.belief.quantity_name(metric))

    @cached_property
    def effort(self) -> Floats:
        """What each candidate is expected to cost: USD, or seconds where no price is known."""
        metric = self.belief.effort_metric
        return self.belief.quantity_of(metric).transform.expectation(*self.at_candidates(metric))

    @cached_property
    def running(self) -> Floats:
        """The chance that each candidate runs at all."""
        return self.belief.chance_of_running.at(self.candidates.rows)

    @property
    def chance_feasible(self) -> Floats:
        """The chance that each candidate runs and meets every constraint."""
        belief = self.belief
        chances = [belief.chance(c, self.at_candidates(c.metric)) for c in belief.problem.constraints]
        return np.asarray(self.running * belief.chance_of_all(chances))

    @property
    def is_predicted_feasible(self) -> Booleans:
        """Whether each candidate's predicted means comply with every constraint (Γ of the thesis's Algorithm 3)."""
        complies = self.running >= 0.5
        for constraint in self.belief.problem.constraints:
            mean, limit = self.at_candidates(constraint.metric).mean, self.belief.transformed_limit(constraint)
            complies = complies & (mean <= limit if constraint.is_upper else mean >= limit)
        return complies

    @cached_property
    def dearest(self) -> Floats:
        """What each candidate will cost at most, with the confidence that the budget is kept with."""
        return self._effort_at(self.confidence)

    @cached_property
    def cautious_effort(self) -> Floats:
        """What each candidate will cost at most, in nine cases of ten."""
        return self._effort_at(0.9)

    def _effort_at(self, confidence: float) -> Floats:
        metric = self.belief.effort_metric
        return self.belief.effort_at(self.at_candidates(metric), confidence)

    @property
    def is_affordable(self) -> Booleans:
        """Whether each candidate fits what is left of the budget."""
        if math.isinf(self.left):
            return np.ones(len(self.candidates), dtype=bool)
        return self.dearest <= self.left

    @cached_property
    def best_measured(self) -> float | None:
        """The best goal measured within all limits where the goal is meant; larger is better, transformed."""
        belief = self.belief
        proven = [t for t in belief.measured_targets if belief.feasible_at_targets[t] == 1.0]
        return max((float(belief.goal_at_targets.mean[t]) for t in proven), default=None)

    # What an answer would do to the contenders.

    def cross_covariance(self, metric: str) -> Floats:
        """Covariance of each candidate with each contender."""
        return self._cross_covariance(self.belief.quantity_name(metric))

    def contender_covariance(self, metric: str) -> Floats:
        """Covariance of the contenders; none with or among measured ones."""
        return self._contender_covariance(self.belief.quantity_name(metric))

    def movement(self, metric: str) -> Floats:
        """U: one line a candidate, one column a contender."""
        name = self.belief.quantity_name(metric)
        if name not in self._movements:
            self._movements[name] = self._cross_covariance(name) / np.sqrt(self._answer(name).variance)[:, None]
        return self._movements[name]

    def contender_prediction(self, metric: str) -> Prediction:
        """Mean and variance of the metric at each contender, on its transformed scale; exact where measured."""
        if metric not in self._contender_predictions:
            self._contender_predictions[metric] = self._predict_contenders(metric)
        return self._contender_predictions[metric]

    @cached_property
    def value_at_contenders(self) -> Floats:
        """Expected worth × P(feasible) of each contender: what recommending it is worth."""
        belief, goal = self.belief, self.belief.problem.goal
        mean, variance = self.contender_prediction(goal.metric)
        chances = [belief.chance(c, self.contender_prediction(c.metric)) for c in belief.problem.constraints]
        running = belief.running_at_targets[self.contenders]
        return belief.worth(Prediction(goal.sign * mean, variance)) * running * belief.chance_of_all(chances)

    # Other outlooks that follow from this one.

    def at(self, positions: Positions) -> Outlook:
        """The same with some of the candidates."""
        candidates, most = self.candidates.at(positions), self.contenders_at_most
        return _Selected(
            self.belief, candidates, self.seed, most, self.left, self.confidence, base=self, positions=positions
        )

    def after(self, candidate: int, deviations: Mapping[str, float]) -> Outlook:
        """The same once the candidate has given its answer: for each quantity, so many deviations above its mean."""
        metric = self.belief.effort_metric
        name = self.belief.quantity_name(metric)
        left = self.left
        if math.isfinite(left):
            mean, variance = self._answer(name)
            answer = mean[candidate] + deviations.get(name, 0.0) * math.sqrt(variance[candidate])
            left -= float(self.belief.quantity_of(metric).transform.inverse(answer + self.offset(metric)[candidate]))
        return _Imagined(
            self.belief,
            self.candidates,
            self.seed,
            self.contenders_at_most,
            left,
            self.confidence,
            base=self,
            candidate=candidate,
            deviations=deviations,
        )

    @cached_property
    def regardless_of_limits(self) -> Outlook:
        """The same for a problem without constraints."""
        return replace(self, belief=self.belief.without_constraints())

    def column(self, name: str, candidate: int) -> Floats:
        """Covariance of a quantity at every candidate with that at one of them."""
        if (name, candidate) not in self._columns:
            rows = self.candidates.rows
            posterior = self.belief.quantities[name].posterior
            self._columns[name, candidate] = posterior.covariance(rows, rows[[candidate]])[:, 0]
        return self._columns[name, candidate]

    def compute_columns(self, candidates: Positions) -> None:
        """Work out the columns of many candidates at once, which is faster than one by one."""
        rows = self.candidates.rows
        for name in self.answered_names:
            matrix = self.belief.quantities[name].posterior.covariance(rows, rows[candidates]).T.copy()
            self._columns.update(((name, candidate), matrix[i]) for i, candidate in enumerate(candidates.tolist()))

    def _answer(self, name: str) -> Prediction:
        if name not in self._answers:
            mean, variance = self.quantity_at_candidates(name)
            noise = max(self.belief.quantities[name].posterior.noise_variance, 1e-12)
            self._answers[name] = Prediction(mean, np.maximum(variance, 0.0) + noise)
        return self._answers[name]

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

    def _cross_covariance(self, name: str) -> Floats:
        return self._cross_covariances[name]

    def _contender_covariance(self, name: str) -> Floats:
        free, rows = 1.0 - self.is_measured, self.contender_places.rows
        return self.belief.quantities[name].posterior.covariance(rows, rows) * free[:, None] * free

    @cached_property
    def _cross_covariances(self) -> dict[str, Floats]:
        free = 1.0 - self.is_measured
        return {
            name: self.belief.quantities[name].posterior.covariance(self.candidates.rows, self.contender_places.rows)
            * free
            for name in self.quantity_names
        }

    @cached_property
    def _at_candidates(self) -> dict[str, Prediction]:
        rows = self.candidates.rows
        return {name: quantity.posterior.predict(rows) for name, quantity in self.belief.quantities.items()}

    @cached_property
    def _answers(self) -> dict[str, Prediction]:
        return {}

    @cached_property
    def _movements(self) -> dict[str, Floats]:
        return {}

    @cached_property
    def _contender_predictions(self) -> dict[str, Prediction]:
        return {}

    @cached_property
    def _offsets(self) -> dict[str, Floats]:
        return {}

    @cached_property
    def _columns(self) -> dict[tuple[str, int], Floats]:
        return {}

    def steps_from(self, candidate: int) -> Mapping[str, Floats]:
        """How far a deviation in the candidate's answer moves each candidate's mean, for each quantity."""
        if candidate not in self._steps:
            self._steps[candidate] = {
                name: self.column(name, candidate) / math.sqrt(self._answer(name).variance[candidate])
                for name in self.answered_names
            }
        return self._steps[candidate]

    @cached_property
    def _steps(self) -> dict[int, dict[str, Floats]]:
        return {}


@dataclass(frozen=True, kw_only=True)
class _Derived(Outlook):
    """An outlook on the same contenders as another."""

    base: Outlook

    @cached_property
    def contenders(self) -> Positions:
        return self.base.contenders

    @cached_property
    def contender_places(self) -> Places:
        return self.base.contender_places

    @cached_property
    def is_measured(self) -> Floats:
        return self.base.is_measured

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        return self.base.metrics

    @cached_property
    def quantity_names(self) -> tuple[str, ...]:
        return self.base.quantity_names

    @cached_property
    def answered_names(self) -> tuple[str, ...]:
        return self.base.answered_names

    @cached_property
    def best_measured(self) -> float | None:
        return self.base.best_measured

    @cached_property
    def regardless_of_limits(self) -> Outlook:
        return replace(self, belief=self.belief.without_constraints(), base=self.base.regardless_of_limits)

    def _contender_covariance(self, name: str) -> Floats:
        return self.base._contender_covariance(name)

    def _predict_contenders(self, metric: str) -> Prediction:
        return self.base.contender_prediction(metric)


@dataclass(frozen=True, kw_only=True)
class _Selected(_Derived):
    """Some of another outlook's candidates."""

    positions: Positions

    @cached_property
    def running(self) -> Floats:
        return self.base.running[self.positions]

    def quantity_at_candidates(self, name: str) -> Prediction:
        mean, variance = self.base.quantity_at_candidates(name)
        return Prediction(mean[self.positions], variance[self.positions])

    def offset(self, metric: str) -> Floats:
        return self.base.offset(metric)[self.positions]

    def column(self, name: str, candidate: int) -> Floats:
        return self.base.column(name, int(self.positions[candidate]))[self.positions]

    def compute_columns(self, candidates: Positions) -> None:
        self.base.compute_columns(self.positions[candidates])

    def _cross_covariance(self, name: str) -> Floats:
        if name not in self._cross_covariances:
            self._cross_covariances[name] = self.base._cross_covariance(name)[self.positions]
        return self._cross_covariances[name]

    @cached_property
    def _cross_covariances(self) -> dict[str, Floats]:
        return {}


@dataclass(frozen=True, kw_only=True)
class _Imagined(_Derived):
    """Another outlook after the imagined answer of one candidate: everything moves by a rank-one step."""

    candidate: int
    deviations: Mapping[str, float]

    @cached_property
    def running(self) -> Floats:
        return self.base.running

    @cached_property
    def best_measured(self) -> float | None:
        """The answer may itself be the best so far."""
        before, belief, goal = self.base.best_measured, self.belief, self.belief.problem.goal
        if self.candidates.fractions[self.candidate] not in belief.problem.target_fractions:
            return before
        for constraint in belief.problem.constraints:
            answer, limit = self._answered(constraint.metric), belief.transformed_limit(constraint)
            if not (answer <= limit if constraint.is_upper else answer >= limit):
                return before
        answer = goal.sign * self._answered(goal.metric)
        return answer if before is None else max(before, answer)

    def quantity_at_candidates(self, name: str) -> Prediction:
        if name not in self._at_candidates:
            mean, variance = self.base.quantity_at_candidates(name)
            step = self.base.steps_from(self.candidate).get(name)
            if step is None:
                return Prediction(mean, variance)
            moved = mean + self.deviations.get(name, 0.0) * step
            self._at_candidates[name] = Prediction(moved, np.maximum(variance - step**2, 0.0))
        return self._at_candidates[name]

    def offset(self, metric: str) -> Floats:
        return self.base.offset(metric)

    def column(self, name: str, candidate: int) -> Floats:
        step = self.base.steps_from(self.candidate)[name]
        return np.asarray(self.base.column(name, candidate) - step * step[candidate])

    def _answered(self, metric: str) -> float:
        """What the candidate is imagined to have measured, transformed."""
        mean, variance = self.base.candidate_prediction(metric)
        deviation = self.deviations.get(self.belief.quantity_name(metric), 0.0)
        answer = mean[self.candidate] + deviation * math.sqrt(variance[self.candidate])
        return float(answer + self.offset(metric)[self.candidate])

    def _cross_covariance(self, name: str) -> Floats:
        if name not in self._cross_covariances:
            step = self.base.steps_from(self.candidate)[name]
            shift = self._shift(name)
            self._cross_covariances[name] = self.base._cross_covariance(name) - np.outer(step, shift)
        return self._cross_covariances[name]

    def _contender_covariance(self, name: str) -> Floats:
        shift = self._shift(name)
        return self.base._contender_covariance(name) - np.outer(shift, shift)

    def _predict_contenders(self, metric: str) -> Prediction:
        name = self.belief.quantity_name(metric)
        mean, variance = self.base.contender_prediction(metric)
        shift = self._shift(name)
        moved = mean + self.deviations.get(name, 0.0) * shift
        return Prediction(moved, np.maximum(variance - shift**2, 0.0))

    def _shift(self, name: str) -> Floats:
        """U of the candidate: how far a deviation in its answer moves each contender's mean."""
        spread = math.sqrt(self.base._answer(name).variance[self.candidate])
        return np.asarray(self.base._cross_covariance(name)[self.candidate] / spread)

    @cached_property
    def _at_candidates(self) -> dict[str, Prediction]:
        return {}

    @cached_property
    def _cross_covariances(self) -> dict[str, Floats]:
        return {}


def quadrature(roots: int, dimensions: int) -> tuple[Floats, Floats]:
    """Gauss-Hermite points (one line each) and weights for independent standard normals; one root is the mean."""
    return mixed_quadrature((roots,) * dimensions)


def mixed_quadrature(roots: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The same with a number of roots for each dimension."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in roots]
    grids = np.meshgrid(*[points for points, _ in rules], indexing="ij")
    products = np.meshgrid(*[weights / weights.sum() for _, weights in rules], indexing="ij")
    return (
        np.stack([grid.ravel() for grid in grids], axis=1),
        np.prod([product.ravel() for product in products], axis=0),
    )
