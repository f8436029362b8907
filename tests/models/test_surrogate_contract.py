"""What every surrogate promises, whatever it is made of: one suite over all of them.

A mixture of several Gaussians is not one Gaussian: the textbook formulas hold for each of its members, and the moments
of the mixture follow from theirs by the law of total variance. An imagined answer may even set members at odds where
they agreed, so that variance never grows is a promise about the variance within members.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtuner.models.forest import OneThreshold, SomeColumns
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely, Sampled
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
from trimtuner.models.trees import BaggedTrees, PlainTrees

COLUMNS = 3
FRACTIONS = (0.05, 0.1, 0.25, 0.5)


def _kernels(*bases):
    return tuple(Sum(FractionKernel(basis), Product(Matern52(), FractionKernel(basis))) for basis in bases)


PROCESSES = {
    "process": GaussianProcess(_kernels(log_basis), MostLikely()),
    "averaged-processes": GaussianProcess(_kernels(log_basis, quadratic_basis, linear_basis), MostLikely()),
    "sampled-process": GaussianProcess(_kernels(log_basis), Sampled(count=3, thinning=2)),
}
DOUBTING = {
    **PROCESSES,
    "trees": BaggedTrees(),
}
# As the papers have them: where their members agree they know no doubt, and they cannot extrapolate.
PLAIN = {"extra-trees": PlainTrees(OneThreshold(), 64), "random-trees": PlainTrees(SomeColumns(), 5)}
SURROGATES = {**DOUBTING, **PLAIN}

every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES)
every_doubting = pytest.mark.parametrize("surrogate", DOUBTING.values(), ids=DOUBTING)
every_process = pytest.mark.parametrize("surrogate", PROCESSES.values(), ids=PROCESSES)
seeds = st.integers(0, 10_000)


def _measurements(count=16, seed=0):
    """Configurations in the unit cube at mixed fractions; smooth, with a little noise."""
    generator = np.random.default_rng(seed)
    rows = np.column_stack([generator.random((count, COLUMNS)), generator.choice(FRACTIONS, count)])
    return rows, _truth(rows) + generator.normal(scale=0.05, size=count)


def _truth(rows):
    return np.sin(4.0 * rows[:, 0]) + rows[:, 1] + 0.5 * np.log10(rows[:, -1])


def _fit(surrogate, rows, targets, scale=None, seed=3):
    return surrogate.fit(rows, targets, scale, np.random.default_rng(seed))


def _queries(seed, count=8):
    """Tested rows, tested configurations at full data, and new configurations: all distinct."""
    generator = np.random.default_rng([seed, 1])
    tested = _measurements()[0][generator.permutation(16)[:2]]
    at_full_data = tested.copy()
    at_full_data[:, -1] = 1.0
    fresh = np.column_stack([generator.random((count - 4, COLUMNS)), generator.choice([*FRACTIONS, 1.0], count - 4)])
    return np.vstack([tested, at_full_data, fresh])


def _answers(posterior, rows, seed):
    prediction = posterior.predict(rows)
    surprise = np.random.default_rng([seed, 2]).uniform(-3.0, 3.0, len(rows))
    return prediction.mean + surprise * np.sqrt(prediction.variance)


@pytest.fixture(scope="module", params=SURROGATES.values(), ids=SURROGATES)
def posterior(request):
    rows, targets = _measurements()
    return _fit(request.param, rows, targets)


def test_averaging_over_bases_and_sampling_do_keep_several_members():
    """Without this the suite would test three times the same."""
    rows, targets = _measurements()
    for name in ("averaged-processes", "sampled-process"):
        assert len(_fit(PROCESSES[name], rows, targets).members) > 1


# What predict and covariance say together


@given(seeds)
def test_every_row_gets_a_finite_mean_and_a_variance_that_is_not_negative(posterior, seed):
    queries = _queries(seed)
    mean, variance = posterior.predict(queries)
    assert mean.shape == variance.shape == (len(queries),)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance >= 0).all()


@given(seeds)
def test_the_variance_is_the_diagonal_of_the_covariance(posterior, seed):
    queries = _queries(seed)
    np.testing.assert_allclose(
        posterior.predict(queries).variance, np.diagonal(posterior.covariance(queries, queries)), rtol=1e-6, atol=1e-9
    )


@given(seeds)
def test_the_covariance_is_symmetric_and_positive_semi_definite(posterior, seed):
    queries = _queries(seed, count=12)
    covariance = posterior.covariance(queries, queries)
    size = np.abs(covariance).max()
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-10 * size)
    assert np.linalg.eigvalsh(0.5 * (covariance + covariance.T)).min() > -1e-9 * size


@given(seeds)
def test_covariance_between_two_sets_is_a_block_of_the_covariance_of_both(posterior, seed):
    queries = _queries(seed, count=10)
    block = posterior.covariance(queries[:4], queries[4:])
    assert block.shape == (4, 6)
    np.testing.assert_allclose(block, posterior.covariance(queries, queries)[:4, 4:], atol=1e-9)


@given(seeds)
def test_a_row_is_predicted_the_same_in_any_company(posterior, seed):
    queries = _queries(seed)
    alone = np.concatenate([posterior.predict(queries[[position]]).mean for position in range(len(queries))])
    np.testing.assert_allclose(alone, posterior.predict(queries).mean, atol=1e-9)


def test_the_noise_is_positive_and_below_the_spread_of_the_targets(posterior):
    assert 0.0 < posterior.noise_variance < _measurements()[1].var()


@every_doubting
def test_a_tested_row_is_surer_than_a_new_configuration_at_full_data(surrogate):
    posterior = _fit(surrogate, *_measurements())
    tested = _measurements()[0][:1]
    fresh = np.array([[0.01, 0.99, 0.99, 1.0]])
    assert posterior.predict(tested).variance[0] < posterior.predict(fresh).variance[0]


def test_measurements_are_followed(posterior):
    """The error left at the tested rows is below half of the targets' spread."""
    rows, targets = _measurements()
    left = posterior.predict(rows).mean - targets
    assert np.sqrt((left**2).mean()) < 0.5 * targets.std()


# What an imagined answer changes


@given(seeds, st.sampled_from([-1.0, 1.0]))
def test_an_imagined_answer_draws_the_mean_towards_it_but_not_beyond(posterior, seed, side):
    for row in _queries(seed)[:, None, :]:
        means = np.array([member.predict(row).mean[0] for member in posterior.members])
        answer = (side * means).max() * side + side * 3.0  # beyond what any member expects
        before, after = (
            posterior.predict(row).mean[0],
            posterior.condition(row, np.array([answer])).predict(row).mean[0],
        )
        assert side * (after - before) > 0.0
        assert side * (answer - after) > 0.0


@given(seeds, st.integers(1, 4))
def test_an_imagined_answer_raises_no_variance_anywhere(posterior, seed, count):
    rows, queries = _queries(seed)[-count:], _queries(seed + 1_000_003, count=20)
    for member in posterior.members:
        after = Conditioned(member, rows, _answers(posterior, rows, seed)).predict(queries).variance
        before = member.predict(queries).variance
        assert (after <= before * (1.0 + 1e-9) + 1e-12).all()


@given(seeds, st.integers(1, 4))
def test_conditioning_each_member_is_the_textbook_formula(posterior, seed, count):
    """μ + K_AX (K_XX + σ²I)⁻¹ (y - μ_X) and K_AB - K_AX (K_XX + σ²I)⁻¹ K_XB."""
    rows, queries = _queries(seed)[-count:], _queries(seed + 1_000_003, count=10)
    answers = _answers(posterior, rows, seed)
    for member in posterior.members:
        noisy = member.covariance(rows, rows) + member.noise_variance * np.eye(count)
        cross = member.covariance(queries, rows)
        mean = member.predict(queries).mean + cross @ np.linalg.solve(noisy, answers - member.predict(rows).mean)
        covariance = member.covariance(queries, queries) - cross @ np.linalg.solve(noisy, cross.T)
        conditioned = Conditioned(member, rows, answers)
        np.testing.assert_allclose(conditioned.predict(queries).mean, mean, atol=1e-6)
        np.testing.assert_allclose(conditioned.predict(queries).variance, np.diagonal(covariance), atol=1e-7)
        np.testing.assert_allclose(conditioned.covariance(queries, queries), covariance, atol=1e-7)


@given(seeds)
def test_the_moments_after_an_answer_are_those_of_the_mixture_of_conditioned_members(posterior, seed):
    """Law of total variance: the mean of the variances, and the variance of the means."""
    row, queries = _queries(seed)[-1:], _queries(seed + 1_000_003)
    answers = _answers(posterior, row, seed)
    conditioned = posterior.condition(row, answers)
    predictions = [Conditioned(member, row, answers).predict(queries) for member in posterior.members]
    mean = sum(weight * one.mean for weight, one in zip(posterior.weights, predictions, strict=True))
    second = sum(
        weight * (one.variance + one.mean**2) for weight, one in zip(posterior.weights, predictions, strict=True)
    )
    np.testing.assert_allclose(conditioned.predict(queries).mean, mean, atol=1e-9)
    np.testing.assert_allclose(conditioned.predict(queries).variance, second - mean**2, atol=1e-9)
    np.testing.assert_allclose(
        np.diagonal(conditioned.covariance(queries, queries)), second - mean**2, rtol=1e-6, atol=1e-9
    )


@given(seeds)
def test_two_answers_at_once_equal_one_after_the_other(posterior, seed):
    rows, queries = _queries(seed)[-2:], _queries(seed + 1_000_003, count=10)
    answers = _answers(posterior, rows, seed)
    at_once = posterior.condition(rows, answers)
    in_turn = posterior.condition(rows[:1], answers[:1]).condition(rows[1:], answers[1:])
    reversed_turn = posterior.condition(rows[1:], answers[1:]).condition(rows[:1], answers[:1])
    for other in (in_turn, reversed_turn):
        np.testing.assert_allclose(other.predict(queries).mean, at_once.predict(queries).mean, atol=1e-7)
        np.testing.assert_allclose(other.predict(queries).variance, at_once.predict(queries).variance, atol=1e-7)
        np.testing.assert_allclose(other.covariance(queries, queries), at_once.covariance(queries, queries), atol=1e-7)


@given(seeds)
def test_the_expected_answer_moves_no_mean_of_a_member(posterior, seed):
    rows, queries = _queries(seed)[-2:], _queries(seed + 1_000_003)
    for member in posterior.members:
        after = Conditioned(member, rows, member.predict(rows).mean).predict(queries).mean
        np.testing.assert_allclose(after, member.predict(queries).mean, atol=1e-9)


def test_conditioning_leaves_the_posterior_its_weights_and_its_noise_as_they_were(posterior):
    queries = _queries(0)
    before = posterior.predict(queries)
    conditioned = posterior.condition(queries[:2], np.array([5.0, -5.0]))
    conditioned.predict(queries)
    np.testing.assert_array_equal(posterior.predict(queries).mean, before.mean)
    np.testing.assert_array_equal(conditioned.weights, posterior.weights)
    assert conditioned.noise_variance == posterior.noise_variance


def test_testing_a_new_configuration_cheaply_teaches_about_its_full_data(posterior):
    cheap, full = np.array([[0.4, 0.9, 0.1, 0.25]]), np.array([[0.4, 0.9, 0.1, 1.0]])
    for member in posterior.members:
        after = Conditioned(member, cheap, member.predict(cheap).mean)
        assert after.predict(full).variance[0] < 0.9 * member.predict(full).variance[0]


# What a fit depends on, and what not


@every_surrogate
def test_the_same_seed_gives_the_same_posterior(surrogate):
    rows, targets = _measurements()
    one, other = _fit(surrogate, rows, targets), _fit(surrogate, rows, targets)
    queries = _queries(0)
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))
    np.testing.assert_array_equal(one.covariance(queries, queries), other.covariance(queries, queries))


@every_surrogate
def test_neither_fit_nor_predict_writes_into_what_it_is_given(surrogate):
    rows, targets = _measurements()
    queries, answers = _queries(0), np.zeros(8)
    arrays = (rows, targets, queries, answers)
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    _fit(surrogate, rows, targets).condition(queries, answers).predict(queries)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_process
@given(order=st.permutations(range(10)))
@settings(max_examples=5)
def test_the_order_of_measurements_does_not_matter_to_a_process(surrogate, order):
    """Up to rounding, which a climb and a chain may amplify."""
    rows, targets = _measurements(10)
    queries = _queries(0)
    one, other = _fit(surrogate, rows, targets), _fit(surrogate, rows[list(order)], targets[list(order)])
    np.testing.assert_allclose(other.predict(queries).mean, one.predict(queries).mean, atol=1e-4 * targets.std())
    np.testing.assert_allclose(other.predict(queries).variance, one.predict(queries).variance, rtol=1e-3)


@every_process
def test_repeating_a_measurement_makes_a_process_no_less_sure_of_it(surrogate):
    rows, targets = _measurements()
    variances = []
    for repeats in (0, 2, 6):
        more_rows = np.vstack([rows, np.repeat(rows[:1], repeats, axis=0)])
        more_targets = np.concatenate([targets, np.repeat(targets[:1], repeats)])
        variances.append(_fit(surrogate, more_rows, more_targets).predict(rows[:1]).variance[0])
    assert variances[0] >= variances[1] >= variances[2]


@every_surrogate
@pytest.mark.parametrize("scale", [None, 1.5])
@pytest.mark.parametrize("value", [0.0, 0.1, -40.0])
def test_a_constant_target_is_predicted_as_constant(surrogate, value, scale):
    rows, _ = _measurements(7)
    mean, variance = _fit(surrogate, rows, np.full(7, value), scale).predict(_queries(0))
    np.testing.assert_allclose(mean, value, atol=1e-9)
    assert np.isfinite(variance).all()


@every_doubting
def test_equal_answers_leave_doubt_whether_or_not_their_mean_rounds(surrogate):
    """The mean of three times 0.1 is not 0.1 in floating point, that of 0.25 is; the doubt must be the same."""
    rows, _ = _measurements(3)
    rounded, exact = (_fit(surrogate, rows, np.full(3, value)).predict(_queries(0)).variance for value in (0.1, 0.25))
    np.testing.assert_allclose(rounded, exact, rtol=1e-6)
    assert (exact[4:] > 1e-4).all()  # new configurations


@every_surrogate
@pytest.mark.parametrize("scale", [None, 1.5])
def test_one_measurement_is_enough(surrogate, scale):
    row = np.array([[0.2, 0.5, 0.8, 0.1]])
    posterior = _fit(surrogate, row, np.array([0.7]), scale)
    assert posterior.predict(row).mean[0] == pytest.approx(0.7)
    mean, variance = posterior.predict(_queries(0))
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    np.testing.assert_allclose(posterior.condition(row, np.array([0.7])).predict(row).mean, [0.7])


@every_surrogate
def test_one_row_measured_several_times_is_predicted_at_about_their_mean(surrogate):
    rows = np.repeat([[0.2, 0.5, 0.8, 0.1]], 8, axis=0)
    targets = np.array([0.9, 1.1, 0.8, 1.2, 1.0, 1.0, 0.95, 1.05])
    mean, variance = _fit(surrogate, rows, targets).predict(rows[:1])
    assert mean[0] == pytest.approx(targets.mean(), abs=targets.std())
    assert variance[0] > 0


@every_surrogate
def test_duplicates_that_disagree_among_other_rows_do_no_harm(surrogate):
    rows, targets = _measurements(10)
    posterior = _fit(surrogate, np.vstack([rows, rows[:3]]), np.concatenate([targets, targets[:3] + 0.2]))
    mean, variance = posterior.predict(np.vstack([rows, rows]))
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert (mean[:3] > targets[:3] - 0.5).all()
    assert (mean[:3] < targets[:3] + 0.7).all()


@every_surrogate
def test_sixty_measurements_of_a_smooth_truth_are_learnt(surrogate):
    rows, targets = _measurements(60)
    fresh = np.column_stack([np.random.default_rng(9).uniform(0.1, 0.9, (40, COLUMNS)), np.resize(FRACTIONS, 40)])
    prediction = _fit(surrogate, rows, targets).predict(fresh)
    error = prediction.mean - _truth(fresh)
    assert np.sqrt((error**2).mean()) < 0.5 * targets.std()
    # Honest: no more than one in five beyond two claimed deviations, where a Gaussian would have one in twenty.
    assert (np.abs(error) > 2.0 * np.sqrt(prediction.variance + 0.05**2)).mean() < 0.2


@every_surrogate
@pytest.mark.parametrize(("shift", "factor"), [(7.0, 1.0), (0.0, 1000.0), (-3.0, 0.02)])
def test_shifting_and_scaling_the_targets_shifts_and_scales_the_predictions(surrogate, shift, factor):
    rows, targets = _measurements()
    queries = _queries(0)
    plain, mapped = _fit(surrogate, rows, targets), _fit(surrogate, rows, shift + factor * targets)
    unit = factor * targets.std()
    np.testing.assert_allclose(
        mapped.predict(queries).mean, shift + factor * plain.predict(queries).mean, atol=1e-4 * unit
    )
    np.testing.assert_allclose(mapped.predict(queries).variance, factor**2 * plain.predict(queries).variance, rtol=1e-3)
    assert mapped.noise_variance == pytest.approx(factor**2 * plain.noise_variance, rel=1e-3)


@every_doubting
def test_a_guess_of_the_spread_matters_while_there_is_little_data_and_fades(surrogate):
    """With two equal answers, twenty times the guess is a far larger doubt; with sixty it is nearly forgotten."""
    queries = _queries(0)[4:]
    ratios = []
    for count in (2, 60):
        rows, targets = _measurements(count)
        targets = np.ones(count) if count == 2 else targets
        wide, narrow = (_fit(surrogate, rows, targets, scale).predict(queries).variance for scale in (2.0, 0.1))
        ratios.append(float(np.median(wide / narrow)))
    assert ratios[0] > 100.0
    assert ratios[1] < 10.0


# Why it is done: full data from small shares


@every_doubting
@pytest.mark.parametrize("growth", [0.6, -1.0])
def test_log_linear_growth_measured_on_small_shares_is_extrapolated_to_full_data(surrogate, growth):
    """To within a quarter of the step still to come; a model that repeats the last value errs by all of it."""
    generator = np.random.default_rng(2)
    configurations = generator.random((10, COLUMNS))
    rows = np.array([[*configuration, s] for configuration in configurations for s in (0.02, 0.05, 0.1, 0.25)])

    def truth(at):
        return np.sin(3.0 * at[:, 0]) + growth * np.log10(at[:, -1])

    at_full_data = np.column_stack([configurations, np.ones(10)])
    error = _fit(surrogate, rows, truth(rows)).predict(at_full_data).mean - truth(at_full_data)
    step = abs(growth * np.log10(0.25))
    assert np.abs(error).max() < 0.25 * step


@every_process
def test_a_process_extrapolates_each_configuration_by_its_own_growth(surrogate):
    """Growth between 0.2 and 1.2 as a column tells; to within a quarter of the smallest step still to come."""
    generator = np.random.default_rng(2)
    configurations = generator.random((12, COLUMNS))
    rows = np.array([[*configuration, s] for configuration in configurations for s in (0.02, 0.05, 0.1, 0.25)])

    def truth(at):
        return np.sin(3.0 * at[:, 0]) + (0.2 + at[:, 1]) * np.log10(at[:, -1])

    at_full_data = np.column_stack([configurations, np.ones(12)])
    error = _fit(surrogate, rows, truth(rows)).predict(at_full_data).mean - truth(at_full_data)
    assert np.abs(error).max() < 0.25 * 0.2 * abs(np.log10(0.25))


@every_doubting
def test_the_full_data_of_a_configuration_tested_on_small_shares_is_less_sure_than_what_was_tested(surrogate):
    rows, targets = _measurements()
    posterior = _fit(surrogate, rows, targets)
    at_full_data = np.column_stack([rows[:, :-1], np.ones(len(rows))])
    assert posterior.predict(at_full_data).variance.mean() > posterior.predict(rows).variance.mean()
