"""Choosing the hyper-parameters of a process: the most likely ones, or samples of their posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from trimtuner.arrays import Floats
from trimtuner.models.gaussian_process import Evidence

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
