"""Gaussian processes against the plain formulas, and the choice among shapes over the fraction by evidence."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from trimtuner.models.gaussian_process import Evidence, GaussianProcess, MostLikely, ProcessPosterior
from trimtuner.models.kernels import (
    FractionKernel,
    Matern52,
    Product,
    Sum,
    linear_basis,
    log_basis,
    quadratic_basis,
)
from trimtuner.models.posterior import Conditioned

COLUMNS = 2
FRACTIONS = (1 / 64, 1 / 16, 1 / 4, 1 / 2)


def _trend_and_departure(basis):
    return Sum(FractionKernel(basis), Product(Matern52(), FractionKernel(basis)))


KERNEL = _trend_and_departure(log_basis)


def _rows(seed, count):
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.random((count, COLUMNS)), generator.uniform(0.02, 1.0, count)])


def _targets(seed, count):
    return np.random.default_rng([seed, 1]).normal(size=count)


def _theta(seed):
    """Hyper-parameters drawn from their prior, with noise large enough for plain formulas to be accurate."""
    prior = Evidence(KERNEL, _rows(0, 2), np.zeros(2)).prior
    return prior.mean + prior.deviation * np.random.default_rng([seed, 2]).uniform(-1.5, 1.5, len(prior.mean))


def _noisy_covariance(theta, rows):
    return KERNEL.matrix(theta[:-1], rows, rows) + math.exp(2.0 * theta[-1]) * np.eye(len(rows))


def _posterior(seed, count=12, centre=0.0, spread=1.0):
    return ProcessPosterior(KERNEL, _theta(seed), _rows(seed, count), _targets(seed, count), centre, spread)


seeds = st.integers(0, 10_000)


@given(seeds)
def test_the_log_likelihood_is_that_of_a_multivariate_normal(seed):
    rows, targets, theta = _rows(seed, 9), _targets(seed, 9), _theta(seed)
    expected = multivariate_normal(np.zeros(9), _noisy_covariance(theta, rows)).logpdf(targets)
    assert Evidence(KERNEL, rows, targets).log_likelihood(theta) == pytest.approx(expected, rel=1e-4, abs=1e-3)


@given(seeds)
def test_the_log_joint_is_the_log_likelihood_and_the_squared_distance_from_the_prior_mean(seed):
    evidence, theta = Evidence(KERNEL, _rows(seed, 9), _targets(seed, 9)), _theta(seed)
    standard = (theta - evidence.prior.mean) / evidence.prior.deviation
    expected = evidence.log_likelihood(theta) - 0.5 * float(standard @ standard)
    assert evidence.log_joint_and_gradient(theta)[0] == pytest.approx(expected, rel=1e-9)


@given(seeds)
def test_the_gradient_of_the_log_joint_equals_finite_differences(seed):
    evidence, theta = Evidence(KERNEL, _rows(seed, 9), _targets(seed, 9)), _theta(seed)
    step = 1e-5

    def log_joint(at):
        return evidence.log_joint_and_gradient(at)[0]

    expected = [
        (log_joint(theta + step * one) - log_joint(theta - step * one)) / (2 * step) for one in np.eye(len(theta))
    ]
    computed = evidence.log_joint_and_gradient(theta)[1]
    # Differences lose digits with the size of the whole: a steep direction blurs the flat ones.
    np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-6 * (1.0 + np.abs(expected).max()))


def test_the_prior_of_the_noise_comes_last():
    kernel_prior = KERNEL.prior(COLUMNS)
    prior = Evidence(KERNEL, _rows(0, 3), _targets(0, 3)).prior
    np.testing.assert_array_equal(prior.mean[:-1], kernel_prior.mean)
    assert len(prior.mean) == len(kernel_prior.mean) + 1


@given(seeds, st.floats(-5.0, 5.0), st.floats(0.1, 10.0))
def test_mean_variance_and_covariance_are_the_plain_formulas(seed, centre, spread):
    posterior = _posterior(seed, centre=centre, spread=spread)
    queries, theta = _rows([seed, 3], 6), posterior.theta
    K = _noisy_covariance(theta, posterior.rows)
    cross = KERNEL.matrix(theta[:-1], queries, posterior.rows)
    mean = centre + spread * cross @ np.linalg.solve(K, posterior.standardised)
    covariance = spread**2 * (KERNEL.matrix(theta[:-1], queries, queries) - cross @ np.linalg.solve(K, cross.T))
    prediction = posterior.predict(queries)
    np.testing.assert_allclose(prediction.mean, mean, atol=1e-3 * spread)
    np.testing.assert_allclose(prediction.variance, np.diagonal(covariance), atol=1e-4 * spread**2)
    np.testing.assert_allclose(posterior.covariance(queries, queries), covariance, atol=1e-4 * spread**2)


def test_without_noise_the_mean_passes_through_every_measurement():
    theta = KERNEL.prior(COLUMNS).mean
    rows, targets = _rows(4, 8), _targets(4, 8)
    posterior = ProcessPosterior(KERNEL, np.append(theta, math.log(1e-6)), rows, targets, centre=0.0, spread=1.0)
    prediction = posterior.predict(rows)
    np.testing.assert_allclose(prediction.mean, targets, atol=1e-4)
    assert (prediction.variance < 1e-4).all()


def test_far_from_all_measurements_the_prior_returns():
    """A short length forgets within the cube; without a shared trend, mean and variance are then the prior's."""
    kernel = Product(Matern52(), FractionKernel(log_basis))
    theta = np.array([math.log(0.01), math.log(0.01), math.log(1.5), 0.0, 0.0, math.log(0.1)])
    rows = np.array([[0.0, 0.0, 1.0], [0.1, 0.1, 0.5]])
    posterior = ProcessPosterior(kernel, theta, rows, np.array([2.0, -1.0]), centre=10.0, spread=3.0)
    prediction = posterior.predict(np.array([[1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(prediction.mean, [10.0], atol=1e-9)
    np.testing.assert_allclose(prediction.variance, [9.0 * 2.25], rtol=1e-9)


@given(seeds, st.integers(1, 3))
def test_conditioning_equals_having_measured(seed, count):
    """At given hyper-parameters an imagined answer does what a measurement would have done."""
    posterior = _posterior(seed)
    new_rows, answers, queries = (
        _rows(seed + 1_000_003, count),
        _targets(seed + 1_000_003, count),
        _rows(seed + 2_000_003, 7),
    )
    measured = ProcessPosterior(
        KERNEL,
        posterior.theta,
        np.vstack([posterior.rows, new_rows]),
        np.concatenate([posterior.standardised, answers]),
        centre=0.0,
        spread=1.0,
    )
    conditioned = Conditioned(posterior, new_rows, answers)
    np.testing.assert_allclose(conditioned.predict(queries).mean, measured.predict(queries).mean, atol=1e-6)
    np.testing.assert_allclose(
        conditioned.covariance(queries, queries), measured.covariance(queries, queries), atol=1e-6
    )


@given(seeds, st.integers(1, 5))
def test_repeating_a_measurement_raises_no_variance_and_lowers_its_own(seed, repeats):
    once = _posterior(seed)
    again = ProcessPosterior(
        KERNEL,
        once.theta,
        np.vstack([once.rows, np.repeat(once.rows[:1], repeats, axis=0)]),
        np.concatenate([once.standardised, np.repeat(once.standardised[:1], repeats)]),
        centre=0.0,
        spread=1.0,
    )
    queries = np.vstack([once.rows, _rows([seed, 6], 10)])
    before, after = once.predict(queries).variance, again.predict(queries).variance
    assert (after <= before + 1e-9).all()
    assert after[0] < before[0]


@given(seeds)
@settings(max_examples=10)
def test_many_repeats_leave_the_variance_of_a_mean_of_measurements(seed):
    """With n measurements of one row alone, the posterior variance is 1 / (1/k + n/σ²)."""
    theta, row, count = _theta(seed), _rows(seed, 1), 20
    posterior = ProcessPosterior(KERNEL, theta, np.repeat(row, count, axis=0), np.zeros(count), centre=0.0, spread=1.0)
    prior_variance, noise = KERNEL.diagonal(theta[:-1], row)[0], math.exp(2.0 * theta[-1])
    expected = 1.0 / (1.0 / prior_variance + count / noise)
    assert posterior.predict(row).variance[0] == pytest.approx(expected, rel=1e-3)


def test_the_noise_is_reported_in_the_targets_units():
    posterior = ProcessPosterior(
        KERNEL, np.append(KERNEL.prior(2).mean, math.log(0.2)), _rows(0, 2), np.zeros(2), 5.0, 3.0
    )
    assert posterior.noise_variance == pytest.approx((0.2 * 3.0) ** 2, rel=1e-6)


def _curves(shape):
    """Twelve configurations at four fractions: each its own level and its own growth along a shape, faint noise."""
    generator = np.random.default_rng(11)
    configurations = generator.random((12, COLUMNS))
    rows = np.array([[*configuration, fraction] for configuration in configurations for fraction in FRACTIONS])
    level = np.sin(3.0 * rows[:, 0])
    growth = 1.0 + rows[:, 1]
    return rows, level + growth * shape(rows[:, -1]) + generator.normal(scale=0.01, size=len(rows))


@pytest.mark.parametrize(
    ("shape", "position"),
    [(np.log10, 0), (lambda s: -((1.0 - s) ** 2), 1), (lambda s: s, 2)],
    ids=["log", "quadratic", "linear"],
)
def test_the_evidence_prefers_the_basis_that_the_data_came_from(shape, position):
    kernels = tuple(_trend_and_departure(basis) for basis in (log_basis, quadratic_basis, linear_basis))
    rows, targets = _curves(shape)
    mixture = GaussianProcess(kernels, MostLikely()).fit(rows, targets, None, np.random.default_rng(0))
    heaviest = mixture.members[int(np.argmax(mixture.weights))]
    assert heaviest.kernel is kernels[position]


def test_weights_are_positive_and_sum_to_one():
    kernels = tuple(_trend_and_departure(basis) for basis in (log_basis, quadratic_basis, linear_basis))
    mixture = GaussianProcess(kernels, MostLikely()).fit(_rows(1, 4), _targets(1, 4), None, np.random.default_rng(0))
    assert (mixture.weights > 0).all()
    assert mixture.weights.sum() == pytest.approx(1.0)
    assert len(mixture.weights) == len(mixture.members)


def test_equal_kernels_share_the_weight():
    twins = (_trend_and_departure(log_basis), _trend_and_departure(log_basis))
    mixture = GaussianProcess(twins, MostLikely()).fit(_rows(1, 10), _targets(1, 10), None, np.random.default_rng(0))
    np.testing.assert_allclose(mixture.weights, [0.5, 0.5])


def test_the_weights_of_two_kernels_are_in_the_ratio_of_their_joint_densities():
    kernels = (_trend_and_departure(quadratic_basis), _trend_and_departure(linear_basis))
    rows, targets = _rows(2, 8), _targets(2, 8)
    mixture = GaussianProcess(kernels, MostLikely()).fit(rows, targets, None, np.random.default_rng(0))
    log_joints = [
        Evidence(member.kernel, rows, member.standardised).log_joint_and_gradient(member.theta)[0]
        for member in mixture.members
    ]
    assert len(mixture.members) == 2
    assert math.log(mixture.weights[0] / mixture.weights[1]) == pytest.approx(log_joints[0] - log_joints[1], abs=1e-6)


def test_few_targets_are_standardised_by_a_spread_between_their_own_and_the_guess():
    """Three measurements' worth of a guess of 2, and two measurements 0 and 0.2: (3·4 + 0.02) / 5."""
    surrogate = GaussianProcess((KERNEL,), MostLikely())
    member = surrogate.fit(_rows(0, 2), np.array([0.0, 0.2]), 2.0, np.random.default_rng(0)).members[0]
    assert member.centre == pytest.approx(0.1)
    assert member.spread == pytest.approx(math.sqrt((3.0 * 4.0 + 0.02) / 5.0))


def test_six_hundred_measurements_all_enter_the_posterior():
    """Hyper-parameters are chosen on 300 of them; the posterior is exact on all 600."""
    generator = np.random.default_rng(8)
    rows = np.column_stack([generator.random((600, COLUMNS)), generator.choice(FRACTIONS, 600)])

    def truth(at):
        return np.sin(3.0 * at[:, 0]) + at[:, 1] ** 2 + 0.5 * np.log10(at[:, -1])

    noise = 0.02
    targets = truth(rows) + generator.normal(scale=noise, size=600)
    mixture = GaussianProcess((KERNEL,), MostLikely()).fit(rows, targets, None, generator)
    queries = np.column_stack([generator.uniform(0.1, 0.9, (50, COLUMNS)), generator.choice(FRACTIONS, 50)])
    prediction = mixture.predict(queries)
    member = mixture.members[0]
    K = _noisy_covariance(member.theta, rows) + 1e-8 * np.eye(600)
    cross = KERNEL.matrix(member.theta[:-1], queries, rows)
    exact = targets.mean() + targets.std() * cross @ np.linalg.solve(K, (targets - targets.mean()) / targets.std())
    np.testing.assert_allclose(prediction.mean, exact, atol=1e-6)
    assert np.isfinite(prediction.variance).all()
    assert np.abs(prediction.mean - truth(queries)).max() < 2.0 * noise  # 600 measurements average the noise out
