"""Which candidates are worth the acquisition function: all, or a share β by a heuristic (Table IV of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.acquisition import ConstrainedExpectedAccuracy
from trimtuner.decisions.belief import CAUTION
from trimtuner.decisions.entropy import ConstrainedAccuracyOfIncumbent
from trimtuner.decisions.outlook import DEAR, Outlook

ScoreOf: TypeAlias = Callable[[Positions], Floats]  # the acquisition at some of the outlook's candidates


class Filter(Protocol):
    """A way to choose the candidates that are scored."""

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:
        """Positions of the kept candidates, none twice; at least one."""


@dataclass(frozen=True)
class KeepAll:
    """Every candidate is worth the acquisition function."""

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """The positions of all candidates."""
        return np.arange(len(outlook.candidates))


@dataclass(frozen=True)
class ClimbAsEarned:
    """Candidates that very likely cost at most a share of what was spent so far, or not much more than the least.

    The search starts on small fractions and climbs as it earns it: no single early guess can cost more than the
    search up to then. What counts is not the expected cost but the one that is kept to in nine cases of ten, so that a
    trial whose price is a guess waits until it is less of one. Where even the smallest fraction costs more than
    ``dear`` of a run on all of the data there is nothing to climb: waiting would be paid for with trials as dear.
    """

    share: float
    times_cheapest: float = 4.0  # where the smallest fraction saves little, the next one must be in reach
    dear: float = DEAR

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """Candidates within either limit, the cheapest always; all of them where small fractions are dear."""
        if outlook.scene.smallest_costs > self.dear:
            return np.arange(len(outlook.candidates))
        cost = outlook.effort_at_most(CAUTION)
        limit = max(self.share * outlook.belief.spent, self.times_cheapest * float(cost.min()))
        return np.nonzero(cost <= limit)[0]


@dataclass(frozen=True)
class KeepRandom:
    """A random share of the candidates."""

    share: float

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """The share, drawn without replacement."""
        return np.sort(generator.permutation(len(outlook.candidates))[: _count(self.share, len(outlook.candidates))])


@dataclass(frozen=True)
class HighestConstrainedAccuracy:
    """The share with the highest CEA (Eq. 6), a rough and cheap stand-in for α_T."""

    share: float

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """Highest first; ties broken at random, for on a flat belief the first would always win."""
        scores = ConstrainedExpectedAccuracy().score(outlook)
        order = np.lexsort((generator.random(len(scores)), -scores))
        return np.sort(order[: _count(self.share, len(outlook.candidates))])


@dataclass(frozen=True)
class BestIncumbentToCome:
    """The share of the *configurations* with the highest CEA of the next incumbent: Γ of the thesis (4.2.2, Eq. 4.5).

    A configuration counts by the fraction at which testing it promises most, and is kept at all of its fractions
    (Algorithm 5, lines 3 and 4).
    """

    share: float
    incumbent: ConstrainedAccuracyOfIncumbent

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """Highest first; ties, which are many where a trial would change nothing, broken at random."""
        configurations, which = np.unique(outlook.candidates.positions, return_inverse=True)
        promise = np.full(len(configurations), -np.inf)
        np.maximum.at(promise, which, self.incumbent.score(outlook))
        order = np.lexsort((generator.random(len(promise)), -promise))
        return np.nonzero(np.isin(which, order[: _count(self.share, len(configurations))]))[0]


@dataclass(frozen=True)
class SearchByDirect:
    """DIRECT (Jones, Perttunen and Stuckman, 1993) over the unit box, each point standing for its nearest candidate."""

    share: float

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """The candidates that the search looked at, until it has looked at the share."""
        from scipy.optimize import direct

        visited = _Visited(outlook, score_of, _count(self.share, len(outlook.candidates)))
        dimension = visited.box.shape[1]
        with suppress(StopIteration):  # scipy passes on what the callback raises
            direct(
                visited.cost_at,
                [(0.0, 1.0)] * dimension,
                maxfun=20 * visited.allowed,
                maxiter=10_000,
                locally_biased=False,
                vol_tol=0.0,
                len_tol=0.0,
                callback=visited.stop_when_full,
            )
        return visited.positions


@dataclass(frozen=True)
class SearchByCMAES:
    """CMA-ES (Hansen's tutorial, rank-one and rank-µ updates) over the unit box, each point its nearest candidate."""

    share: float

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:
        """The candidates that the search looked at, until it has looked at the share."""
        visited = _Visited(outlook, score_of, _count(self.share, len(outlook.candidates)))
        while not visited.is_full():
            if not _evolve(visited, generator):
                break
        return visited.positions


class _Visited:
    """The acquisition as a function on the unit box, remembering which candidates it was asked about."""

    def __init__(self, outlook: Outlook, score_of: ScoreOf, allowed: int) -> None:
        rows = outlook.candidates.rows.copy()
        rows[:, -1] = 1.0 + 0.5 * np.log10(rows[:, -1])  # fractions evenly, as the models see them
        low, spread = rows.min(axis=0), np.ptp(rows, axis=0)
        self.box = (rows - low) / np.where(spread > 0, spread, 1.0)
        self.allowed = allowed
        self._score_of = score_of
        self._scores: dict[int, float] = {}

    @property
    def positions(self) -> Positions:
        return np.array(sorted(self._scores), dtype=np.int64)

    def is_full(self) -> bool:
        return len(self._scores) >= self.allowed

    def stop_when_full(self, _: Floats) -> None:
        if self.is_full():
            raise StopIteration

    def cost_at(self, point: Floats) -> float:
        return float(self.costs_at(point[None, :])[0])

    def costs_at(self, points: Floats) -> Floats:
        """Minus the acquisition; a candidate is never scored twice, nor beyond the allowance."""
        squared = (self.box**2).sum(axis=1) - 2.0 * points @ self.box.T
        nearest = squared.argmin(axis=1).tolist()
        fresh = [p for p in dict.fromkeys(nearest) if p not in self._scores][: self.allowed - len(self._scores)]
        if fresh:
            self._scores.update(zip(fresh, self._score_of(np.array(fresh)).tolist(), strict=True))
        return np.array([-self._scores.get(p, -math.inf) for p in nearest])


def _evolve(visited: _Visited, generator: np.random.Generator) -> bool:
    """One run of CMA-ES from a random start until it converges; whether it found any candidate not seen before.

    Notation of Hansen's tutorial: m mean, C covariance, σ step, λ offspring, µ parents, p_c and p_σ paths.
    """
    n = visited.box.shape[1]
    seen_before = len(visited.positions)
    offspring = 4 + int(3 * math.log(n))
    parents = offspring // 2
    weights = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weights /= weights.sum()
    mu_eff = 1.0 / float((weights**2).sum())
    c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
    d_sigma = 1 + c_sigma + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1)
    c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
    c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff))
    expected_length = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))

    mean, sigma, covariance = generator.random(n), 0.3, np.eye(n)
    path_c, path_sigma = np.zeros(n), np.zeros(n)
    for _ in range(200):
        values, vectors = np.linalg.eigh(covariance)
        deviations = np.sqrt(np.maximum(values, 1e-14))
        normal = generator.normal(size=(offspring, n))
        steps = normal * deviations @ vectors.T
        points = np.clip(mean + sigma * steps, 0.0, 1.0)
        order = np.argsort(visited.costs_at(points), kind="stable")[:parents]
        if visited.is_full() or sigma * deviations.max() < 0.02:
            break
        step = weights @ steps[order]
        mean = np.clip(mean + sigma * step, 0.0, 1.0)
        whitened = vectors @ ((vectors.T @ step) / deviations)
        path_sigma = (1 - c_sigma) * path_sigma + math.sqrt(c_sigma * (2 - c_sigma) * mu_eff) * whitened
        length = float(np.linalg.norm(path_sigma))
        is_short = length < (1.4 + 2 / (n + 1)) * expected_length
        path_c = (1 - c_c) * path_c + is_short * math.sqrt(c_c * (2 - c_c) * mu_eff) * step
        covariance = (
            (1 - c_1 - c_mu) * covariance
            + c_1 * np.outer(path_c, path_c)
            + c_mu * (steps[order].T * weights) @ steps[order]
        )
        sigma *= math.exp(min(1.0, (c_sigma / d_sigma) * (length / expected_length - 1)))
    return len(visited.positions) > seen_before


def _count(share: float, number: int) -> int:
    exact = round(share * number, 9)  # 0.07 × 100 is 7, not a little more
    return max(1, min(number, math.ceil(exact)))
