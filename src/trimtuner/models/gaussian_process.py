"""Exact Gaussian-process regression, and its hyper-parameters: the most likely ones, or samples of their posterior.

n   measurements      K = k(X, X) + σ² I = L Lᵀ      α = K⁻¹ y      θ   kernel's hyper-parameters, then log σ
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from trimtuner.arrays import Floats, Positions
from trimtuner.models.inherited import Inherited, InheritedCovariance, OnInherited
from trimtuner.models.kernels import Kernel, Prior
from trimtuner.models.posterior import KnownNoise, Memo, Mixture, Posterior, Prediction, spread_of

_REACH = 4.0  # prior deviations that the search may leave the prior mean by


@dataclass(frozen=True)
class MostLikely:
    """The θ with the highest joint density, climbed to from the prior mean."""

    steps: int = 30

    def choose(self, evidence: Evidence, generator: np.random.Generator) -> tuple[Sequence[Floats], float]:  # noqa: ARG002
        """One θ; its log joint density is what the kernel is weighed by."""
        theta, log_joint = climb(evidence, self.steps)
        return [theta], log_joint


@dataclass(frozen=True)
class Sampled:
    """θ drawn from their posterior by elliptical slice sampling (Murray, Adams and MacKay, 2010).

    The priors are Gaussian, which is all that the method asks; it has no step size to tune.
    """

    count: int = 12
    thinning: int = 8

    def choose(self, evidence: Evidence, generator: np.random.Generator) -> tuple[Sequence[Floats], float]:
        """A chain from the most likely θ; the kernel's weight is the joint density there."""
        theta, log_joint = climb(evidence, steps=30)
        log_likelihood = evidence.log_likelihood(theta)
        samples = []
        for _ in range(self.count):
            for _ in range(self.thinning):
                theta, log_likelihood = _slice_step(evidence, theta, log_likelihood, generator)
            samples.append(theta)
        return samples, log_joint


def climb(evidence: Evidence, steps: int) -> tuple[Floats, float]:
    """The most likely θ near the prior, and the log joint density there."""
    from scipy.optimize import minimize  # a third of what scipy takes to load; who fits no process need not

    prior = evidence.prior

    def descend(theta: Floats) -> tuple[float, Floats]:
        value, gradient = evidence.log_joint_and_gradient(theta)
        return -value, -gradient

    bounds = np.column_stack([prior.mean - _REACH * prior.deviation, prior.mean + _REACH * prior.deviation])
    found = minimize(
        descend, prior.mean, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "ftol": 1e-5}
    )
    return np.asarray(found.x), -float(found.fun)


def _slice_step(
    evidence: Evidence, theta: Floats, log_likelihood: float, generator: np.random.Generator
) -> tuple[Floats, float]:
    prior = evidence.prior
    here = theta - prior.mean
    direction = generator.normal(size=len(theta)) * prior.deviation
    threshold = log_likelihood + math.log(generator.uniform(1e-300, 1.0))
    angle = generator.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    while True:
        proposal = prior.mean + here * math.cos(angle) + direction * math.sin(angle)
        proposed = evidence.log_likelihood(proposal)
        if proposed > threshold:
            return proposal, proposed
        if angle < 0:
            low = angle
        else:
            high = angle
        if high - low < 1e-9:  # the bracket has closed on the current θ, which is always acceptable
            return theta, log_likelihood
        angle = generator.uniform(low, high)


_JITTER = 1e-8
_NOISE_PRIOR = Prior(np.array([math.log(0.05)]), np.array([1.0]))  # of σ, in units of the targets' spread
_LEAST_NOISE = 1e-3  # of the spread: runs that agree to the last digit are no proof that all will
_SCALE_WEIGHT = 3.0  # how many measurements the prior guess of the spread is worth
_LEVEL_WEIGHT = 0.3  # how many measurements the guess that an earlier study's level is this one's is worth
_DIFFERENCE = 0.3  # of the spread that an earlier study met, what this one is expected to differ from it by
_EARLIER_ODDS = 0.25  # that earlier studies are of use, before any evidence: while a cold start knows nothing, enough
_FADING = 0.2  # nats: by so much an earlier study must foresee each new measurement better to keep its weight
_FIT_AT_MOST = 300  # measurements that choose the hyper-parameters; all of them enter the posterior


@dataclass(frozen=True)
class Evidence:
    """The log joint density of targets and hyper-parameters, with its gradient: what a fit climbs."""

    kernel: Kernel
    rows: Floats
    targets: Floats
    noise: KnownNoise | None = None  # in the targets' units

    @cached_property
    def prior(self) -> Prior:
        """The prior of θ, the noise last."""
        return self.kernel.prior(self.rows.shape[1] - 1) + _noise_prior(self.noise)

    def log_likelihood(self, theta: Floats) -> float:
        """log p(y | X, θ); minus infinity where K is not positive definite."""
        try:
            factor = _factor(self.kernel, theta, self.rows)
        except LinAlgError:
            return -math.inf
        return self._log_likelihood(factor, solve_triangular(factor, self.targets, lower=True))

    def log_joint_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """log p(y, θ | X) and its gradient, ½ tr((ααᵀ - K⁻¹) ∂K) less the prior's pull."""
        standardised = (theta - self.prior.mean) / self.prior.deviation
        try:
            factor = _factor(self.kernel, theta, self.rows)
        except LinAlgError:
            return -1e10, np.zeros_like(theta)
        whitened = solve_triangular(factor, self.targets, lower=True)
        alpha = solve_triangular(factor, whitened, lower=True, trans=1)
        weights = 0.5 * (np.outer(alpha, alpha) - _inverse(factor))
        noise_gradient = 2.0 * math.exp(2.0 * theta[-1]) * np.trace(weights)
        gradient = np.append(self.kernel.pull_back(theta[:-1], self.rows, weights), noise_gradient)
        value = self._log_likelihood(factor, whitened) - 0.5 * float(standardised @ standardised)
        return value, gradient - standardised / self.prior.deviation

    def _log_likelihood(self, factor: Floats, whitened: Floats) -> float:
        logarithms = float(np.log(np.diagonal(factor)).sum())
        return -0.5 * float(whitened @ whitened) - logarithms - 0.5 * len(whitened) * math.log(2.0 * math.pi)


class HyperParameters(Protocol):
    """How θ is found: the most likely, or several sampled ones."""

    def choose(self, evidence: Evidence, generator: np.random.Generator) -> tuple[Sequence[Floats], float]:
        """One or more θ, and the log weight that the kernel deserves against others."""


@dataclass(frozen=True)
class GaussianProcess:
    """A process for each kernel, weighed by its evidence: no single shape over the fraction is taken for granted."""

    kernels: tuple[Kernel, ...]
    hyper_parameters: HyperParameters
    takes_thousands: ClassVar[bool] = False  # its work grows with the cube of their number

    def fit(self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator) -> Mixture:
        """Standardise, fit each kernel, keep those that the evidence does not rule out."""
        return self.fit_on((), rows, targets, scale, generator)

    def fit_likeliest(
        self, rows: Floats, targets: Floats, scale: float | None, generator: np.random.Generator
    ) -> ProcessPosterior:
        """The one member that the evidence speaks for most."""
        fitted = self._fit(rows, targets, *_centre_and_spread(targets, scale), generator, self.kernels)
        return fitted.members[int(np.argmax(fitted.log_weights))]

    def fit_on(
        self,
        earlier: Sequence[Inherited],
        rows: Floats,
        targets: Floats,
        scale: float | None,
        generator: np.random.Generator,
        noise: KnownNoise | None = None,
    ) -> Mixture:
        """The same, and members that stand on earlier posteriors, weighed by how well those foresee the targets."""
        cold = self._fit(rows, targets, *_centre_and_spread(targets, scale), generator, self.kernels, noise)
        members: list[Posterior] = list(cold.members)
        log_weights = [cold.log_weights]
        for one in earlier:
            fitted = one.fitted_to(rows, targets)
            warm = self._fit_difference(fitted, rows, targets, generator, noise)
            members += [OnInherited(member, fitted) for member in warm.members]
            faded = math.log(_EARLIER_ODDS / len(earlier)) - _FADING * len(rows)
            log_weights.append(warm.log_weights + faded)
        return _mixture(members, np.concatenate(log_weights))

    def _fit_difference(
        self,
        earlier: Inherited,
        rows: Floats,
        targets: Floats,
        generator: np.random.Generator,
        noise: KnownNoise | None,
    ) -> _Fitted:
        difference = targets - earlier.predict(rows).mean
        # Another job is as a rule faster or slower, easier or harder, throughout.
        centre = float(difference.sum()) / (_LEVEL_WEIGHT + len(difference))
        spread = _shrunk_spread(difference - centre, _DIFFERENCE * earlier.spread)
        kernels = tuple(kernel + InheritedCovariance(earlier, spread) for kernel in self.kernels)
        return self._fit(rows, difference, centre, spread, generator, kernels, noise)

    def _fit(
        self,
        rows: Floats,
        targets: Floats,
        centre: float,
        spread: float,
        generator: np.random.Generator,
        kernels: tuple[Kernel, ...],
        noise: KnownNoise | None = None,
    ) -> _Fitted:
        standardised = (targets - centre) / spread
        known = None if noise is None else noise._replace(deviation=noise.deviation / spread)
        chosen = _subset(len(rows), generator)
        members: list[ProcessPosterior] = []
        log_weights: list[float] = []
        for kernel in kernels:
            evidence = Evidence(kernel, rows[chosen], standardised[chosen], known)
            thetas, log_weight = self.hyper_parameters.choose(evidence, generator)
            for theta in thetas:
                members.append(ProcessPosterior(kernel, theta, rows, standardised, centre, spread))
                log_weights.append(log_weight - math.log(len(thetas)))
        # In the targets' own units, so that it can be compared with other spreads; the centre is one number learnt.
        return _Fitted(members, np.array(log_weights) - (len(chosen) - 1) * math.log(spread))


class _Fitted(NamedTuple):
    members: Sequence[ProcessPosterior]
    log_weights: Floats


@dataclass(frozen=True)
class ProcessPosterior:
    """A process with given hyper-parameters after measurements; all results in the targets' own units."""

    kernel: Kernel
    theta: Floats
    rows: Floats
    standardised: Floats
    centre: float
    spread: float

    def afresh(self) -> ProcessPosterior:
        """The same, without what it remembers of rows it was read at."""
        return replace(self)

    @property
    def noise_variance(self) -> float:
        """σ² in the targets' units."""
        return (math.exp(2.0 * self.theta[-1]) + _JITTER) * self.spread**2

    @cached_property
    def _factor(self) -> Floats:
        return _factor(self.kernel, self.theta, self.rows)

    @cached_property
    def _whitened(self) -> Floats:
        whitened: Floats = solve_triangular(self._factor, self.standardised, lower=True)
        return whitened

    def predict(self, rows: Floats) -> Prediction:
        """Mean and variance by the usual formulas."""
        explained = self._explained(rows)
        mean = self.centre + self.spread * (self._whitened @ explained)
        variance = self.kernel.diagonal(self.theta[:-1], rows) - np.einsum("ij,ij->j", explained, explained)
        return Prediction(mean, self.spread**2 * np.maximum(variance, 1e-12))

    def covariance(self, rows: Floats, others: Floats) -> Floats:
        """k(A, B) - k(A, X) K⁻¹ k(X, B)."""
        prior = self.kernel.matrix(self.theta[:-1], rows, others)
        return self.spread**2 * (prior - self._explained(rows).T @ self._explained(others))

    @cached_property
    def _memo(self) -> Memo:
        return Memo()

    def _explained(self, rows: Floats) -> Floats:
        return self._memo.get(rows, self._whiten)

    def _whiten(self, rows: Floats) -> Floats:
        cross = self.kernel.matrix(self.theta[:-1], self.rows, rows)
        explained: Floats = solve_triangular(self._factor, cross, lower=True, check_finite=False)
        return explained


def _noise_prior(known: KnownNoise | None) -> Prior:
    """What is expected of log σ; where runs were repeated, together with what they tell.

    The logarithm of a deviation of ν differences has a variance of about 1 / 2ν.
    """
    if known is None:
        return _NOISE_PRIOR
    usual, told = _NOISE_PRIOR.deviation**-2, 2.0 * known.freedom
    mean = (usual * _NOISE_PRIOR.mean + told * math.log(max(known.deviation, _LEAST_NOISE))) / (usual + told)
    return Prior(mean, (usual + told) ** -0.5)


def _factor(kernel: Kernel, theta: Floats, rows: Floats) -> Floats:
    """L of K = L Lᵀ."""
    covariance = kernel.matrix(theta[:-1], rows, rows)
    covariance[np.diag_indices_from(covariance)] += math.exp(2.0 * theta[-1]) + _JITTER
    factor: Floats = cholesky(covariance, lower=True, check_finite=False)
    return factor


def _inverse(factor: Floats) -> Floats:
    lower, failed = dpotri(factor, lower=1)
    if failed:
        raise LinAlgError("the covariance has no inverse")
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _centre_and_spread(targets: Floats, scale: float | None) -> tuple[float, float]:
    """Mean and deviation, the latter shrunk to the prior guess: the spread of two first outcomes is no scale."""
    centre = float(targets.mean())
    if scale is None:
        return centre, spread_of(targets)
    return centre, _shrunk_spread(targets - centre, scale)


def _shrunk_spread(departures: Floats, scale: float) -> float:
    squares = float((departures**2).sum())
    return math.sqrt((_SCALE_WEIGHT * scale**2 + squares) / (_SCALE_WEIGHT + len(departures)))


def _subset(count: int, generator: np.random.Generator) -> Positions:
    """All measurements, or a random subset where choosing hyper-parameters on all would cost n³ many times over."""
    if count <= _FIT_AT_MOST:
        return np.arange(count)
    return np.sort(generator.permutation(count)[:_FIT_AT_MOST])


def _mixture(members: Sequence[Posterior], log_weights: Floats) -> Mixture:
    weights = np.exp(log_weights - log_weights.max())
    weights = weights / weights.sum()
    kept = weights > 0.02 / len(weights)
    return Mixture(weights[kept] / weights[kept].sum(), [m for m, keep in zip(members, kept, strict=True) if keep])
