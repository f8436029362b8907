"""Information about which configuration is the best feasible one: α_T of the TrimTuner paper (Eq. 5), in two factors.

M   joint samples of the contenders      p_opt   share of samples in which a contender is the feasible best

Samples are drawn once. For a candidate c and an imagined answer y they are conditioned by Matheron's rule,
f' = f + Cov(f, y_c) / Var(y_c) · (y - y_c), where y_c is what the same sample says the answer would be, so the entropy
of all candidates is one array computation. What is scored is the *gain*, the expected fall of the entropy of p_opt by
the trial, not its absolute distance from uniform: a candidate that tells nothing scores exactly 0.

``ValueOfRecommendation`` asks instead what the trial is expected to add to the worth of the recommendation (the
knowledge gradient, constraints included): for each candidate and each imagined answer the contenders' means and chances
move along their lines (see outlook), the recommendation is the contender with the highest expected worth × P(feasible),
and its value is averaged over answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from trimtuner.arrays import AnyFloats, Booleans, Floats
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.incumbents import FEASIBLE_ENOUGH, Trust, trust_in_proportion
from trimtuner.decisions.outlook import Outlook, draw_contenders, draw_running, quadrature
from trimtuner.models.posterior import Prediction

_CELLS_AT_A_TIME = 400_000  # (candidate, sample, contender) cells: small enough for the processor's cache
_NEVER = np.float32(-np.inf)


@dataclass(frozen=True)
class InformationAboutBest(Acquisition):
    """Expected fall of the entropy of p_opt at full data, feasibility included (lines 2 and 3 of Eq. 5)."""

    samples: int = 128
    roots: int = 1

    def score(self, outlook: Outlook) -> Floats:
        """Never below 0: no information is free, but less than none does not exist."""
        best = _SampledBest.of(outlook, self.samples)
        before = best.entropy
        return np.asarray(np.maximum(best.expect_after_trial(self.roots, lambda entropy: before - entropy), 0.0))


@dataclass(frozen=True)
class DivergenceFromUniform(Acquisition):
    """Expected divergence of p_opt at full data from the uniform distribution after the trial, as Eq. 2, 3 and 5 print.

    That is log n less the entropy, n the number of targets: what is known after the trial, and not by the trial.
    """

    samples: int = 128
    roots: int = 1

    def score(self, outlook: Outlook) -> Floats:
        """Between 0, where all targets are equally likely to be the best, and log n, where one is for sure."""
        most = math.log(len(outlook.belief.targets))
        best = _SampledBest.of(outlook, self.samples)
        return best.expect_after_trial(self.roots, lambda entropy: np.maximum(most - entropy, 0.0))  # it is an estimate


@dataclass(frozen=True)
class ChanceIncumbentFeasible(Acquisition):
    """P(the incumbent after the trial meets every constraint), first line of Eq. 5."""

    confidence: float = FEASIBLE_ENOUGH
    roots: int = 1
    trust: Trust = trust_in_proportion

    def score(self, outlook: Outlook) -> Floats:
        """For each imagined answer: the new means, the new incumbent, its new probability."""
        belief = outlook.belief
        if not belief.problem.constraints and (belief.running_at_targets == 1.0).all():
            return np.ones(len(outlook.candidates))
        return _expect_incumbent(self, outlook, lambda _, feasible: feasible)


@dataclass(frozen=True)
class ConstrainedAccuracyOfIncumbent(Acquisition):
    """CEA of the incumbent after the trial (Eq. 4.5 of the thesis): its predicted goal times its P(feasible)."""

    confidence: float = 0.99
    roots: int = 1
    trust: Trust = trust_in_proportion

    def score(self, outlook: Outlook) -> Floats:
        """For each imagined answer: the new means, the new incumbent, its worth and new probability."""
        return _expect_incumbent(self, outlook, lambda worth, feasible: feasible * worth)


def _expect_incumbent(
    asked: ChanceIncumbentFeasible | ConstrainedAccuracyOfIncumbent,
    outlook: Outlook,
    value: Callable[[Floats, Floats], Floats],
) -> Floats:
    """A value of worth and P(feasible) of the incumbent after each candidate's answer, averaged over answers."""
    belief = outlook.belief
    points, weights = quadrature(asked.roots, len(outlook.scene.quantity_names))
    total = np.zeros(len(outlook.candidates))
    running, everything = belief.running_at_targets[outlook.contenders], slice(None)
    for point, weight in zip(points, weights, strict=True):
        deviation = dict(zip(outlook.scene.quantity_names, point.tolist(), strict=True))
        chances = [
            outlook.chance_after(constraint, everything, deviation[belief.quantity_name(constraint.metric)])
            for constraint in belief.problem.constraints
        ]
        feasible = np.broadcast_to(running * belief.chance_of_all(chances), (len(total), len(running)))
        goal = outlook.goal_after(everything, deviation[belief.quantity_name(belief.problem.goal.metric)])
        worth = belief.worth(Prediction(goal.mean, np.zeros_like(goal.mean)))
        chosen = (worth * asked.trust(feasible, asked.confidence)).argmax(axis=1)  # as the incumbent's rule has it
        each = np.arange(len(total))
        total += weight * value(worth[each, chosen], feasible[each, chosen])
    return total


@dataclass(frozen=True)
class _SampledBest:
    """p_opt by joint samples of the contenders: as it is, and after the answer of each candidate."""

    outlook: Outlook
    draws: Mapping[str, _Draws]
    limits: list[tuple[str, bool, np.float32]]
    running: Booleans | None

    @classmethod
    def of(cls, outlook: Outlook, samples: int) -> _SampledBest:
        draws = {metric: _Draws.of(outlook, metric, samples) for metric in outlook.scene.metrics}
        return cls(outlook, draws, _limits(outlook), draw_running(outlook, samples))

    @property
    def entropy(self) -> float:
        """That of p_opt as it is."""
        return float(self._entropies({metric: draws.values[None] for metric, draws in self.draws.items()})[0])

    def expect_after_trial(self, roots: int, worth: Callable[[Floats], Floats]) -> Floats:
        """For each candidate the mean, over its answers, of what the entropy of p_opt after them is worth."""
        outlook = self.outlook
        points, weights = quadrature(roots, len(outlook.scene.quantity_names))
        total = np.zeros(len(outlook.candidates))
        cells = self.draws[outlook.belief.problem.goal.metric].values.size
        chunk = max(1, _CELLS_AT_A_TIME // cells)
        for start in range(0, len(outlook.candidates), chunk):
            part = slice(start, start + chunk)
            for point, weight in zip(points, weights, strict=True):
                deviation = dict(zip(outlook.scene.quantity_names, point.tolist(), strict=True))
                moved = {
                    metric: draws.after_answer(part, deviation[outlook.belief.quantity_name(metric)])
                    for metric, draws in self.draws.items()
                }
                # Root by root, for weights that sum to 1 but for rounding would make something of nothing.
                total[part] += weight * worth(self._entropies(moved))
        return total

    def _entropies(self, values: dict[str, AnyFloats]) -> Floats:
        return _entropy_of_best(_best(self.outlook, values, self.limits, self.running))


@dataclass(frozen=True)
class _Draws:
    """Joint samples of one metric at the contenders, and what they say of each candidate's answer."""

    values: AnyFloats  # (samples, contenders)
    movement: AnyFloats  # (candidates, contenders): U
    surprise: AnyFloats  # (candidates, samples): the sample's own answer, in deviations from the mean

    @classmethod
    def of(cls, outlook: Outlook, metric: str, count: int) -> _Draws:
        """Draw samples, and each candidate's answer given the sample: f_c | f_r needs one triangular solve."""
        values, normal, factor, generator = draw_contenders(outlook, metric, count)
        explained = solve_triangular(factor, outlook.cross_covariance(metric).T, lower=True).T
        variance = outlook.answer_at_candidates(outlook.belief.quantity_name(metric)).variance
        rest = np.sqrt(np.maximum(variance - (explained**2).sum(axis=1), 0.0))
        answers = explained @ normal.T + rest[:, None] * generator.normal(size=count)
        return cls(
            values.astype(np.float32),
            outlook.movement(metric).astype(np.float32),
            (answers / np.sqrt(variance)[:, None]).astype(np.float32),
        )

    def after_answer(self, part: slice, deviation: float) -> AnyFloats:
        """The samples conditioned on each candidate's answer: (candidates, samples, contenders)."""
        step = np.float32(deviation) - self.surprise[part]
        moved: AnyFloats = step[:, :, None] * self.movement[part][:, None, :]
        moved += self.values
        return moved


def _limits(outlook: Outlook) -> list[tuple[str, bool, np.float32]]:
    belief = outlook.belief
    return [(c.metric, c.is_upper, np.float32(belief.transformed_limit(c))) for c in belief.problem.constraints]


def _best(
    outlook: Outlook,
    values: dict[str, AnyFloats],
    limits: list[tuple[str, bool, np.float32]],
    running: Booleans | None,
) -> Floats:
    """How often each contender is the feasible best; the last column for "none is feasible": (candidates, R + 1)."""
    goal = outlook.belief.problem.goal
    objective = values[goal.metric] if goal.sign > 0 else -values[goal.metric]
    feasible: Booleans | None = running
    for metric, is_upper, limit in limits:
        within = values[metric] <= limit if is_upper else values[metric] >= limit
        feasible = within if feasible is None else feasible & within
    if feasible is not None:
        objective = np.where(feasible, objective, _NEVER)
    best = objective.argmax(axis=-1)
    count = objective.shape[-1]
    found = np.take_along_axis(objective, best[..., None], axis=-1)[..., 0] > _NEVER
    best = np.where(found, best, count)
    cells = best + np.arange(len(best))[:, None] * (count + 1)
    return np.bincount(cells.ravel(), minlength=len(best) * (count + 1)).reshape(len(best), count + 1).astype(float)


def _entropy_of_best(counts: Floats) -> Floats:
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1))


_CHUNK_CELLS = 60_000  # (candidate, contender) cells at a time, to stay in the processor's cache
_ROUNDING = 1e-9  # of the worth: less is the error of the arithmetic and of the transforms' own quadrature


@dataclass(frozen=True)
class ValueOfRecommendation(Acquisition):
    """Expected rise, by the trial, of worth × P(feasible) of what would be recommended; in the goal's units."""

    roots: int = 3

    def score(self, outlook: Outlook) -> Floats:
        """Never below 0: knowing more cannot make the best choice worse. A trial that fails teaches nothing of it."""
        chunk = max(1, _CHUNK_CELLS // len(outlook.contenders))
        parts = [slice(start, start + chunk) for start in range(0, len(outlook.candidates), chunk)]
        rise = np.concatenate([self._rise(outlook, part) for part in parts]) * outlook.running
        # What numerical error alone would leave is no value: 1e-12 over the cost must not choose the trial.
        return np.where(rise > _ROUNDING * float(outlook.value_at_contenders.max()), rise, 0.0)

    def _rise(self, outlook: Outlook, part: slice) -> Floats:
        """How much the best contender is expected to beat the present one after the answer of each candidate.

        Both are valued under the same answers: with few roots the mean of a curved value is not the value at the mean,
        and the difference of the two would count as a gain.
        """
        belief, names = outlook.belief, outlook.scene.quantity_names
        points, weights = quadrature(self.roots, 1)
        deviations = points[:, 0].tolist()
        worths = [belief.worth(outlook.goal_after(part, deviation)) for deviation in deviations]
        chances = [
            [outlook.chance_after(constraint, part, deviation) for deviation in deviations]
            for constraint in belief.problem.constraints
        ]
        goal_axis = names.index(belief.quantity_name(belief.problem.goal.metric))
        axes = [names.index(belief.quantity_name(constraint.metric)) for constraint in belief.problem.constraints]
        running = belief.running_at_targets[outlook.contenders]
        present = int(outlook.value_at_contenders.argmax())
        total = np.zeros(len(worths[0]))
        for roots in itertools.product(range(self.roots), repeat=len(names)):
            met = belief.chance_of_all([chance[roots[axis]] for chance, axis in zip(chances, axes, strict=True)])
            value = worths[roots[goal_axis]] * running * met
            total += float(np.prod(weights[list(roots)])) * (value.max(axis=1) - value[:, present])
        return total


def value_of_knowing_everything(outlook: Outlook, samples: int = 512) -> float:
    """E[max v] - max E[v] over the contenders: what perfect knowledge of them would add to the recommendation."""
    belief, goal = outlook.belief, outlook.belief.problem.goal
    drawn = {metric: draw_contenders(outlook, metric, samples)[0] for metric in outlook.scene.metrics}
    # Unlike the expected worth, a sample's is not cut off at the floor: that would hide what the doubtful may lose.
    value = goal.sign * belief.quantity_of(goal.metric).transform.inverse(drawn[goal.metric]) - belief.floor
    running = draw_running(outlook, samples)
    if running is not None:
        value = value * running
    for constraint in belief.problem.constraints:
        limit = belief.transformed_limit(constraint)
        within = drawn[constraint.metric] <= limit if constraint.is_upper else drawn[constraint.metric] >= limit
        value = value * within
    # The same samples on both sides: what chance alone puts into the greatest mean is then in both.
    known = np.maximum(value.max(axis=1), 0.0).mean()
    return float(max(known - max(value.mean(axis=0).max(), 0.0), 0.0))
