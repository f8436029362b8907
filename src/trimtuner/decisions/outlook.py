"""How the belief about the targets would change with the answer of each candidate: one matrix a quantity.

c   candidate       r   target that may turn out best (a contender)      σ²  noise of one measurement
U   Cov(f_r, y_c) / sd(y_c): how far the mean at r moves when the answer at c is one deviation above its own.
    After the answer with deviation z the mean at r is μ_r + U_cr z, and its variance v_r - U_cr², whatever z.

The same step can be taken for real in the imagination: ``after`` is the outlook once a candidate has given an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
from scipy.linalg import cholesky
from scipy.special import ndtr

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.belief import CAUTION, LIKELY, Belief, Places
from trimtuner.models.posterior import Prediction
from trimtuner.problem.problem import COST, TIME, Constraint

DEAR = 1 / 3  # of a run on all of the data: a smallest fraction that costs more saves too little (docs/decisions/0049)
CONTENDERS_AT_MOST = 96  # targets beyond these have next to no chance to be the best


@dataclass(frozen=True)
class Scene:
    """Candidates and contenders under one belief, before any answer: what every outlook on them starts from."""

    belief: Belief
    candidates: Places
    contenders_at_most: int = CONTENDERS_AT_MOST
    # By quantity and candidate. Paths through the candidates pass the same ones over and over.
    _columns: dict[tuple[str, int], Floats] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def contenders(self) -> Positions:
        """Targets most likely to be feasible and better than the best one believed in, that one included."""
        feasible = self.belief.feasible_at_targets
        mean, variance = self.belief.goal_at_targets
        believed = int(np.argmax(np.where(feasible >= min(LIKELY, feasible.max()), mean, -np.inf)))
        chance_better = ndtr((mean - mean[believed]) / np.sqrt(variance + variance[believed] + 1e-12))
        score = feasible * chance_better
        score[believed] = np.inf
        count = min(self.contenders_at_most, len(score))
        best = np.argpartition(-score, count - 1)[:count]
        return np.sort(best)

    @cached_property
    def contender_places(self) -> Places:
        """The configurations and fractions of the contenders."""
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
        return tuple(dict.fromkeys((*self.quantity_names, *([effort] if effort in self.belief.quantities else []))))

    @cached_property
    def predictions(self) -> Mapping[str, Prediction]:
        """Mean and variance of each quantity's model at each candidate, without noise and offsets."""
        rows = self.candidates.rows
        return {name: quantity.posterior.predict(rows) for name, quantity in self.belief.quantities.items()}

    @cached_property
    def offsets(self) -> Mapping[str, Floats]:
        """What is known beforehand of each metric at each candidate."""
        metrics = dict.fromkeys((*self.metrics, COST, TIME))
        return {name: self.belief.offset(name, self.candidates) for name in metrics if self.belief.knows(name)}

    @cached_property
    def running(self) -> Floats:
        """The chance that each candidate runs at all."""
        return self.belief.chance_of_running.at(self.candidates.rows)

    @cached_property
    def cross_covariances(self) -> Mapping[str, Floats]:
        """For each quantity the covariance of each candidate with each contender; none with measured ones."""
        free, rows, others = 1.0 - self.is_measured, self.candidates.rows, self.contender_places.rows
        return {
            name: self.belief.quantities[name].posterior.covariance(rows, others) * free for name in self.quantity_names
        }

    @cached_property
    def contender_covariances(self) -> Mapping[str, Floats]:
        """For each quantity the covariance of the contenders; none with or among measured ones."""
        free, rows = 1.0 - self.is_measured, self.contender_places.rows
        return {
            name: self.belief.quantities[name].posterior.covariance(rows, rows) * free[:, None] * free
            for name in self.quantity_names
        }

    @cached_property
    def contender_predictions(self) -> Mapping[str, Prediction]:
        """Mean and variance of each metric at each contender, on its transformed scale; exact where measured."""
        return {metric: self.belief.known_at(metric, self.contenders, self.contender_places) for metric in self.metrics}

    @cached_property
    def target_price(self) -> float:
        """What a trial at a target is expected to cost, in the mean over all targets, were no run interrupted.

        A machine that would be taken away over and over has no price that means anything.
        """
        belief = self.belief.undisturbed
        return float(belief.expected(belief.effort_metric, belief.targets).mean())

    @cached_property
    def smallest_costs(self) -> float:
        """The price of a trial on the smallest fraction, as a share of that at a target; 0 where it is one itself."""
        belief, smallest = self.belief.undisturbed, float(self.candidates.fractions.min())
        if smallest in belief.problem.target_fractions:
            return 0.0
        small = belief.expected(belief.effort_metric, Places.product(belief.pool, (smallest,)))
        return float(small.mean()) / self.target_price

    @cached_property
    def regardless_of_limits(self) -> Scene:
        """The same for a problem without constraints."""
        return replace(self, belief=self.belief.without_constraints())

    def column(self, name: str, candidate: int) -> Floats:
        """Covariance of a quantity at every candidate with that at one of them."""
        if (name, candidate) not in self._columns:
            self._compute_columns(name, np.array([candidate]))
        return self._columns[name, candidate]

    def compute_columns(self, candidates: Positions) -> None:
        """Work out the columns of these candidates for all that a trial measures."""
        for name in self.answered_names:
            self._compute_columns(name, candidates)

    def _compute_columns(self, name: str, candidates: Positions) -> None:
        rows = self.candidates.rows
        matrix = self.belief.quantities[name].posterior.covariance(rows, rows[candidates]).T.copy()
        self._columns.update(((name, candidate), matrix[i]) for i, candidate in enumerate(candidates.tolist()))


@dataclass(frozen=True)
class ImaginedAnswer:
    """What a candidate is imagined to have answered, and how far that moved the others."""

    candidate: int  # of the scene
    deviations: Mapping[str, float]  # of each quantity's answer from its mean
    spreads: Mapping[str, float]  # how much a deviation is, in each quantity's units
    steps: Mapping[str, Floats]  # how far a deviation moves each candidate of the scene, for each quantity
    told: Mapping[str, float]  # each metric of goal and constraints, transformed


@dataclass(frozen=True)
class Outlook:
    """The candidates to score, seen against the contenders for the recommendation, after some imagined answers."""

    scene: Scene
    seed: tuple[int, ...]  # of the random numbers that samples are made of
    predictions: Mapping[str, Prediction]  # each quantity's model at each candidate, without noise and offsets
    chosen: Positions | None = None  # which of the scene's candidates these are; None: all
    answers: tuple[ImaginedAnswer, ...] = ()
    left: float = math.inf  # of the budget, USD (seconds where no price is known)
    confidence: float = CAUTION  # with which a trial must fit what is left

    @classmethod
    def of(
        cls, belief: Belief, candidates: Places, seed: tuple[int, ...], contenders_at_most: int = CONTENDERS_AT_MOST
    ) -> Outlook:
        """On these candidates, before any answer."""
        scene = Scene(belief, candidates, contenders_at_most)
        return cls(scene, seed, scene.predictions)

    # Other outlooks that follow from this one.

    def at(self, positions: Positions) -> Outlook:
        """The same with some of the candidates."""
        some = {
            name: Prediction(mean[positions], variance[positions])
            for name, (mean, variance) in self.predictions.items()
        }
        return replace(self, predictions=some, chosen=positions if self.chosen is None else self.chosen[positions])

    def after(self, candidate: int, deviations: Mapping[str, float]) -> Outlook:
        """The same once the candidate has given its answer: for each quantity, so many deviations above its mean."""
        answer = self._answer_of(candidate, deviations)
        moved = dict(self.predictions)
        for name, step in answer.steps.items():
            (mean, variance), here = moved[name], self._chosen_of(step)
            moved[name] = Prediction(mean + deviations.get(name, 0.0) * here, np.maximum(variance - here**2, 0.0))
        left = self.left
        if math.isfinite(left):
            metric = self.belief.effort_metric
            left -= float(self.belief.quantity_of(metric).transform.inverse(np.array(answer.told[metric])))
        return replace(self, predictions=moved, answers=(*self.answers, answer), left=left)

    def believing(self, belief: Belief) -> Outlook:
        """The same candidates under another belief, before any answer."""
        other = Outlook.of(belief, self.candidates, self.seed, self.scene.contenders_at_most)
        return replace(other, left=self.left, confidence=self.confidence)

    @property
    def regardless_of_limits(self) -> Outlook:
        """The same for a problem without constraints."""
        return replace(self, scene=self.scene.regardless_of_limits)

    def compute_columns(self, candidates: Positions) -> None:
        """Prepare ``after`` for many candidates at once, which is faster than one by one."""
        self.scene.compute_columns(candidates if self.chosen is None else self.chosen[candidates])

    # What is believed of the candidates themselves.

    @property
    def belief(self) -> Belief:
        """What is believed before any imagined answer."""
        return self.scene.belief

    @cached_property
    def candidates(self) -> Places:
        """The configurations and fractions to score."""
        return self.scene.candidates if self.chosen is None else self.scene.candidates.at(self.chosen)

    @property
    def running(self) -> Floats:
        """The chance that each candidate runs at all."""
        return self._chosen_of(self.scene.running)

    def at_candidates(self, metric: str) -> Prediction:
        """Mean and variance of the metric at each candidate, on its transformed scale."""
        mean, variance = self.predictions[self.belief.quantity_name(metric)]
        return Prediction(mean + self._chosen_of(self.scene.offsets[metric]), variance)

    def answer_at_candidates(self, name: str) -> Prediction:
        """Mean and variance of the *answer* (noise included) of a quantity at each candidate."""
        mean, variance = self.predictions[name]
        return Prediction(mean, np.maximum(variance, 0.0) + self._noise_of(name))

    def _noise_of(self, name: str) -> float:
        return max(self.belief.quantities[name].posterior.noise_variance, 1e-12)

    @property
    def effort(self) -> Floats:
        """What each candidate is expected to cost: USD, or seconds where no price is known."""
        metric = self.belief.effort_metric
        return self.belief.quantity_of(metric).transform.expectation(*self.at_candidates(metric))

    def effort_at_most(self, confidence: float) -> Floats:
        """What each candidate will cost at most, with that confidence."""
        return self.belief.effort_at_most(self.at_candidates(self.belief.effort_metric), confidence)

    @property
    def is_affordable(self) -> Booleans:
        """Whether each candidate fits what is left of the budget."""
        if math.isinf(self.left):
            return np.ones(len(self.candidates), dtype=bool)
        return self.effort_at_most(self.confidence) <= self.left

    @property
    def chance_feasible(self) -> Floats:
        """The chance that each candidate runs and meets every constraint."""
        belief = self.belief
        chances = [belief.chance(c, self.at_candidates(c.metric)) for c in belief.problem.constraints]
        return np.asarray(self.running * belief.chance_of_all(chances))

    @property
    def is_predicted_feasible(self) -> Booleans:
        """Whether each candidate's predicted means comply with every constraint (Γ of the thesis's Algorithm 3)."""
        complies = self.running >= LIKELY
        for constraint in self.belief.problem.constraints:
            mean, limit = self.at_candidates(constraint.metric).mean, self.belief.transformed_limit(constraint)
            complies = complies & (mean <= limit if constraint.is_upper else mean >= limit)
        return complies

    @property
    def best_measured(self) -> float | None:
        """The best goal measured, or imagined, within all limits where it is meant; larger is better, transformed."""
        belief, goal = self.belief, self.belief.problem.goal
        proven = [goal.sign * answer.told[goal.metric] for answer in self.answers if self._is_proven(answer)]
        return max([*([] if belief.best_measured is None else [belief.best_measured]), *proven], default=None)

    # What an answer would do to the contenders.

    @property
    def contenders(self) -> Positions:
        """Targets most likely to be feasible and better than the best one believed in, that one included."""
        return self.scene.contenders

    def cross_covariance(self, metric: str) -> Floats:
        """Covariance of each candidate with each contender."""
        return self._cross_covariances[self.belief.quantity_name(metric)]

    def contender_covariance(self, metric: str) -> Floats:
        """Covariance of the contenders; none with or among measured ones."""
        name = self.belief.quantity_name(metric)
        covariance = self.scene.contender_covariances[name]
        for shift in self._shifts:
            covariance = covariance - np.outer(shift[name], shift[name])
        return covariance

    def movement(self, metric: str) -> Floats:
        """U: one line a candidate, one column a contender."""
        return self._movements[self.belief.quantity_name(metric)]

    def goal_after(self, part: slice, deviation: float) -> Prediction:
        """The goal at each contender (larger is better) after each candidate's answer of that deviation."""
        goal = self.belief.problem.goal
        after = self._contenders_after(goal.metric, part, deviation)
        return Prediction(goal.sign * after.mean, after.variance)

    def chance_after(self, constraint: Constraint, part: slice, deviation: float) -> Floats:
        """The probability of the constraint at each contender after each candidate's answer of that deviation."""
        return self.belief.chance(constraint, self._contenders_after(constraint.metric, part, deviation))

    def _contenders_after(self, metric: str, part: slice, deviation: float) -> Prediction:
        mean, variance = self.contender_prediction(metric)
        movement = self.movement(metric)[part]
        return Prediction(mean + movement * deviation, np.maximum(variance - movement**2, 0.0))

    def contender_prediction(self, metric: str) -> Prediction:
        """Mean and variance of the metric at each contender, on its transformed scale; exact where measured."""
        name = self.belief.quantity_name(metric)
        mean, variance = self.scene.contender_predictions[metric]
        for answer, shift in zip(self.answers, self._shifts, strict=True):
            mean = mean + answer.deviations.get(name, 0.0) * shift[name]
            variance = np.maximum(variance - shift[name] ** 2, 0.0)
        return Prediction(mean, variance)

    @cached_property
    def value_at_contenders(self) -> Floats:
        """Expected worth × P(feasible) of each contender: what recommending it is worth."""
        belief, goal = self.belief, self.belief.problem.goal
        mean, variance = self.contender_prediction(goal.metric)
        chances = [belief.chance(c, self.contender_prediction(c.metric)) for c in belief.problem.constraints]
        running = belief.running_at_targets[self.contenders]
        return belief.worth(Prediction(goal.sign * mean, variance)) * running * belief.chance_of_all(chances)

    # The arithmetic of one answer.

    def _chosen_of(self, values: Floats) -> Floats:
        """Of values at the scene's candidates, those at these."""
        return values if self.chosen is None else values[self.chosen]

    def _answer_of(self, candidate: int, deviations: Mapping[str, float]) -> ImaginedAnswer:
        place = candidate if self.chosen is None else int(self.chosen[candidate])
        spreads, steps, answered = {}, {}, {}
        for name in self.scene.answered_names:
            mean, variance = self.predictions[name]
            spreads[name] = math.sqrt(max(variance[candidate], 0.0) + self._noise_of(name))
            answered[name] = mean[candidate] + deviations.get(name, 0.0) * spreads[name]
            column = self.scene.column(name, place)
            for before in self.answers:
                column = column - before.steps[name] * before.steps[name][place]
            steps[name] = column / spreads[name]
        told = {
            metric: float(answered[name] + offset[place])
            for metric, offset in self.scene.offsets.items()
            if (name := self.belief.quantity_name(metric)) in answered
        }
        return ImaginedAnswer(place, deviations, spreads, steps, told)

    def _is_proven(self, answer: ImaginedAnswer) -> bool:
        """Whether an imagined answer is within all limits, where the goal is meant."""
        problem, limits = self.belief.problem, self.belief.transformed_limit
        return self.scene.candidates.fractions[answer.candidate] in problem.target_fractions and all(
            answer.told[c.metric] <= limits(c) if c.is_upper else answer.told[c.metric] >= limits(c)
            for c in problem.constraints
        )

    @cached_property
    def _shifts(self) -> tuple[Mapping[str, Floats], ...]:
        """U of each imagined answer, for each quantity: how far a deviation in it moved each contender's mean."""
        shifts: list[Mapping[str, Floats]] = []
        for answer in self.answers:
            shift = {}
            for name in self.scene.quantity_names:
                line = self.scene.cross_covariances[name][answer.candidate]
                for before, known in zip(self.answers, shifts, strict=False):
                    line = line - before.steps[name][answer.candidate] * known[name]
                shift[name] = line / answer.spreads[name]
            shifts.append(shift)
        return tuple(shifts)

    @cached_property
    def _cross_covariances(self) -> Mapping[str, Floats]:
        crossed = {name: self._chosen_of(cross) for name, cross in self.scene.cross_covariances.items()}
        for answer, shift in zip(self.answers, self._shifts, strict=True):
            for name in crossed:
                crossed[name] = crossed[name] - np.outer(self._chosen_of(answer.steps[name]), shift[name])
        return crossed

    @cached_property
    def _movements(self) -> Mapping[str, Floats]:
        return {
            name: cross / np.sqrt(self.answer_at_candidates(name).variance)[:, None]
            for name, cross in self._cross_covariances.items()
        }


def quadrature(roots: int, dimensions: int) -> tuple[Floats, Floats]:
    """Gauss-Hermite points (one line each) and weights for independent standard normals; one root is the mean."""
    return mixed_quadrature((roots,) * dimensions)


@cache  # a path asks for the same few rules a thousand times
def mixed_quadrature(roots: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The same with a number of roots for each dimension."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in roots]
    grids = np.meshgrid(*[points for points, _ in rules], indexing="ij")
    products = np.meshgrid(*[weights / weights.sum() for _, weights in rules], indexing="ij")
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    together = np.prod([product.ravel() for product in products], axis=0)
    points.flags.writeable = together.flags.writeable = False  # they are shared
    return points, together


def draw_contenders(outlook: Outlook, metric: str, count: int) -> tuple[Floats, Floats, Floats, np.random.Generator]:
    """Joint samples at the contenders (one line each), the normals and factor they come from, and the generator."""
    free = 1.0 - outlook.scene.is_measured
    covariance = outlook.contender_covariance(metric)
    # A measured contender has no variance left; the jitter keeps the factor defined, and is not for its sample.
    scale = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    factor = cholesky(covariance + 1e-6 * scale * np.eye(len(covariance)), lower=True)
    # Seeded by the quantity, so that cost and time read from one model are one sample.
    generator = np.random.default_rng([*outlook.seed, _number_of(outlook, metric)])
    normal = generator.normal(size=(count, len(covariance)))
    return outlook.contender_prediction(metric).mean + normal @ factor.T * free, normal, factor, generator


def draw_running(outlook: Outlook, samples: int) -> Booleans | None:
    """In which samples each contender runs at all; nothing as long as nothing has failed."""
    chance = outlook.belief.running_at_targets[outlook.contenders]
    if chance.all() and (chance == 1.0).all():
        return None
    generator = np.random.default_rng([*outlook.seed, 1_000_003])
    return generator.random((samples, len(chance))) < chance


def _number_of(outlook: Outlook, metric: str) -> int:
    return list(outlook.belief.quantities).index(outlook.belief.quantity_name(metric))
