"""The climb ends at a top of the joint density; the sampler draws from the posterior it claims."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.optimize import minimize

from trimtuner.models.gaussian_process import Evidence, MostLikely, Sampled, climb
from trimtuner.models.kernels import FractionKernel, Matern52, Prior, Product, Sum, log_basis

KERNEL = Sum(FractionKernel(log_basis), Product(Matern52(), FractionKernel(log_basis)))
REACH = 4.0  # prior deviations: the box of the search


@dataclass(frozen=True)
class BowlEvidence:
    """A fake with known answers: in prior deviations, a Gaussian likelihood about ``pull`` for each of four θ."""

    pull: float
    deviation: float
    prior: Prior = field(default_factory=lambda: Prior(np.array([-1.0, 0.0, 2.0, 5.0]), np.array([0.5, 1.0, 2.0, 3.0])))

    def log_likelihood(self, theta):
        return (
            -0.5
            * float((((theta - self.prior.mean) / self.prior.deviation - self.pull) ** 2).sum())
            / self.deviation**2
        )

    def log_joint_and_gradient(self, theta):
        standard = (theta - self.prior.mean) / self.prior.deviation
        value = self.log_likelihood(theta) - 0.5 * float(standard @ standard)
        return value, (-(standard - self.pull) / self.deviation**2 - standard) / self.prior.deviation


def _smooth_evidence(seed, count=20):
    """Targets that follow the configuration and the fraction, standardised as a fit would."""
    generator = np.random.default_rng(seed)
    rows = np.column_stack([generator.random((count, 2)), generator.choice([0.05, 0.1, 0.25, 0.5, 1.0], count)])
    targets = np.sin(4.0 * rows[:, 0]) + 0.4 * np.log10(rows[:, -1]) + generator.normal(scale=0.1, size=count)
    return Evidence(KERNEL, rows, (targets - targets.mean()) / targets.std())


def _standardised(evidence, theta):
    return (theta - evidence.prior.mean) / evidence.prior.deviation


@pytest.mark.parametrize("seed", range(5))
def test_the_climb_is_not_worse_than_its_start(seed):
    evidence = _smooth_evidence(seed)
    _, log_joint = climb(evidence, steps=30)
    assert log_joint >= evidence.log_joint_and_gradient(evidence.prior.mean)[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_climb_reports_the_density_of_the_point_it_returns(seed):
    evidence = _smooth_evidence(seed)
    theta, log_joint = climb(evidence, steps=30)
    assert log_joint == pytest.approx(evidence.log_joint_and_gradient(theta)[0])


@pytest.mark.parametrize("seed", range(5))
def test_where_the_climb_ends_the_gradient_is_small_or_pushes_against_the_box(seed):
    """Small: in prior deviations, a step of the gradient's length would gain less than a tenth of a nat."""
    evidence = _smooth_evidence(seed)
    theta, _ = climb(evidence, steps=200)
    slope = evidence.log_joint_and_gradient(theta)[1] * evidence.prior.deviation
    standard = _standardised(evidence, theta)
    pushes_out = (np.abs(standard) > REACH - 1e-6) & (slope * standard > 0)
    assert np.linalg.norm(slope[~pushes_out]) < math.sqrt(0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_longer_search_from_where_the_climb_ends_gains_little(seed):
    evidence = _smooth_evidence(seed)
    theta, log_joint = climb(evidence, steps=30)
    deviation, mean = evidence.prior.deviation, evidence.prior.mean
    further = minimize(
        lambda at: -evidence.log_joint_and_gradient(mean + deviation * at)[0],
        _standardised(evidence, theta),
        method="L-BFGS-B",
        bounds=[(-REACH, REACH)] * len(theta),
    )
    assert -further.fun - log_joint < 0.1  # nats; weights of kernels are then right within a tenth


def test_the_climb_stays_within_four_prior_deviations_however_the_data_pull():
    """Targets without any noise, all equal: the likelihood alone would send every deviation to zero."""
    rows = np.column_stack([np.linspace(0.0, 1.0, 30), np.full(30, 0.5), np.full(30, 0.5)])
    evidence = Evidence(KERNEL, rows, np.zeros(30))
    theta, _ = climb(evidence, steps=200)
    assert (np.abs(_standardised(evidence, theta)) <= REACH + 1e-9).all()


@pytest.mark.parametrize("pull", [0.0, 1.0, -2.5])
def test_the_climb_finds_the_top_of_a_bowl(pull):
    """Prior N(0, 1) and a Gaussian likelihood about ``pull`` with deviation 1: the top is half way."""
    evidence = BowlEvidence(pull, deviation=1.0)
    theta, log_joint = climb(evidence, steps=30)
    np.testing.assert_allclose(_standardised(evidence, theta), np.full(4, 0.5 * pull), atol=1e-3)
    assert log_joint == pytest.approx(-4 * 0.25 * pull**2, abs=1e-4)


def test_a_top_outside_the_box_ends_the_climb_at_its_wall():
    evidence = BowlEvidence(100.0, deviation=1.0)
    theta, _ = climb(evidence, steps=30)
    np.testing.assert_allclose(_standardised(evidence, theta), np.full(4, REACH))


def test_the_most_likely_choice_is_one_theta_and_needs_no_luck():
    evidence = _smooth_evidence(0)
    [one], weight = MostLikely().choose(evidence, np.random.default_rng(1))
    [other], other_weight = MostLikely().choose(evidence, np.random.default_rng(2))
    np.testing.assert_array_equal(one, other)
    assert weight == other_weight


def test_noise_is_recovered_where_there_is_nothing_else():
    """Sixty repeats at one row with deviation 0.3: the noise is found within three standard errors, 1/√(2·59) each."""
    targets = np.random.default_rng(3).normal(scale=0.3, size=60)
    targets = 0.3 * (targets - targets.mean()) / targets.std()
    evidence = Evidence(KERNEL, np.full((60, 3), 0.5), targets)
    theta, _ = climb(evidence, steps=200)
    assert math.exp(theta[-1]) == pytest.approx(0.3, rel=3.0 / math.sqrt(2 * 59))


def test_without_data_samples_have_the_mean_and_deviation_of_the_prior():
    """Steps turn by a uniform angle, so samples eight steps apart are as good as independent; 4.5 standard errors."""
    evidence, count = BowlEvidence(0.0, deviation=math.inf), 4000
    samples, _ = Sampled(count=count, thinning=8).choose(evidence, np.random.default_rng(0))
    standard = np.array([_standardised(evidence, theta) for theta in samples])
    assert np.abs(standard.mean(axis=0)).max() < 4.5 / math.sqrt(count)
    assert np.abs(standard.std(axis=0) - 1.0).max() < 4.5 / math.sqrt(2 * count)


@pytest.mark.parametrize(("pull", "deviation"), [(1.5, 1.0), (-2.0, 0.5)])
def test_with_a_gaussian_likelihood_samples_have_the_moments_of_the_exact_posterior(pull, deviation):
    """N(0, 1) times N(pull, d²) has variance 1 / (1 + 1/d²) and mean variance · pull / d²."""
    evidence, count, batches = BowlEvidence(pull, deviation), 4000, 40
    samples, _ = Sampled(count=count, thinning=8).choose(evidence, np.random.default_rng(1))
    standard = np.array([_standardised(evidence, theta) for theta in samples])
    variance = 1.0 / (1.0 + deviation**-2)
    departures = standard - variance * pull / deviation**2
    squares = departures**2 - variance
    for moment in (departures, squares):
        # A chain's standard error from the means of long batches, whatever its memory.
        means = moment.reshape(batches, -1, moment.shape[1]).mean(axis=1)
        error = means.std(axis=0, ddof=1) / math.sqrt(batches)
        assert (np.abs(moment.mean(axis=0)) < 5.0 * error).all()
        assert (error < 0.1 * variance).all()  # the check has force


def test_the_same_seed_draws_the_same_samples_and_another_seed_others():
    evidence = _smooth_evidence(0, count=8)
    draws = [Sampled(count=3, thinning=2).choose(evidence, np.random.default_rng(seed))[0] for seed in (5, 5, 6)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_as_many_samples_as_asked_for_each_with_a_finite_likelihood():
    evidence = _smooth_evidence(1, count=8)
    samples, weight = Sampled(count=4, thinning=2).choose(evidence, np.random.default_rng(0))
    assert len(samples) == 4
    assert all(math.isfinite(evidence.log_likelihood(theta)) for theta in samples)
    assert weight == climb(evidence, steps=30)[1]
