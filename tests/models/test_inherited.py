"""Standing on an earlier posterior: it leads where it foresees the new targets, and fades where it does not."""

from dataclasses import replace

import numpy as np
import pytest

from trimtuner.models.gaussian_process import GaussianProcess, MostLikely
from trimtuner.models.inherited import Inherited, InheritedCovariance, weight_of
from trimtuner.models.kernels import FractionKernel, Matern52, log_basis

SURROGATE = GaussianProcess((FractionKernel(log_basis) + Matern52() * FractionKernel(log_basis),), MostLikely())
ALL = np.array([True, True, True])


def rows_of(count, seed):
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.random((count, 2)), generator.choice([0.1, 0.5, 1.0], count)])


def truth(rows):
    return 2.0 * np.sin(5.0 * rows[:, 0]) + rows[:, 1] + 0.3 * np.log10(rows[:, -1])


def inherited_from(targets_of, count=60, columns=ALL):
    rows = rows_of(count, seed=1)
    fitted = SURROGATE.fit_likeliest(rows[:, columns], targets_of(rows), 1.0, np.random.default_rng(0))
    return Inherited(fitted, columns, fitted.spread)


def fit_on(inherited, rows, targets):
    return SURROGATE.fit_on([inherited], rows, targets, 1.0, np.random.default_rng(0))


NEW = rows_of(12, seed=2)
ELSEWHERE = rows_of(200, seed=3)


def test_an_earlier_study_of_the_same_job_tells_what_three_measurements_cannot():
    same = inherited_from(truth)
    warm = fit_on(same, NEW[:3], truth(NEW[:3]))
    cold = SURROGATE.fit(NEW[:3], truth(NEW[:3]), 1.0, np.random.default_rng(0))
    warm_error, cold_error = (np.abs(one.predict(ELSEWHERE).mean - truth(ELSEWHERE)).mean() for one in (warm, cold))
    assert warm_error < 0.5 * cold_error
    assert weight_of(warm, same) > 0.5


def test_with_more_measurements_a_perfect_earlier_study_is_believed_all_but_alone():
    same = inherited_from(truth)
    assert weight_of(fit_on(same, NEW, truth(NEW)), same) > 0.95


def test_a_level_of_its_own_is_no_reason_to_doubt_the_earlier_study():
    same = inherited_from(truth)
    moved = fit_on(same, NEW, truth(NEW) + 1.5)
    assert weight_of(moved, same) > 0.9
    assert np.abs(moved.predict(ELSEWHERE).mean - truth(ELSEWHERE) - 1.5).mean() < 0.3


@pytest.mark.parametrize("times", [0.3, 3.0])
def test_an_earlier_job_with_the_same_good_configurations_and_other_differences_between_them_is_of_use(times):
    """As other data often are: what was better by 1 there is better by 0.3 here, or by 3."""
    related = inherited_from(truth)
    warm = fit_on(related, NEW, times * truth(NEW) + 5.0)
    assert weight_of(warm, related) > 0.9
    error = np.abs(warm.predict(ELSEWHERE).mean - times * truth(ELSEWHERE) - 5.0).mean()
    assert error < 0.1 * times * truth(ELSEWHERE).std()


def test_the_factor_is_the_slope_of_what_is_told_over_what_was_said():
    """Least squares with one more point, at a distance of the spread and on the line of slope 1."""
    same = inherited_from(truth)
    said = same.predict(NEW).mean
    departures = said - said.mean()
    by_hand = (0.25 * departures @ departures + same.spread**2) / (departures @ departures + same.spread**2)
    fitted = same.fitted_to(NEW, 0.25 * said + 7.0)
    assert fitted.factor == pytest.approx(by_hand)
    assert fitted.spread == pytest.approx(by_hand * same.spread)
    mean, variance = fitted.predict(ELSEWHERE)
    np.testing.assert_allclose(mean, by_hand * same.predict(ELSEWHERE).mean)
    np.testing.assert_allclose(variance, by_hand**2 * same.predict(ELSEWHERE).variance)
    assert same.fitted_to(NEW[:1], np.array([3.0])).factor == 1.0  # of one measurement there is no slope


def test_a_past_that_is_upside_down_is_not_turned_over():
    same = inherited_from(truth)
    assert 0.0 < same.fitted_to(NEW, -same.predict(NEW).mean).factor < 0.1


def test_targets_that_are_departures_from_another_growth_are_read_so():
    """What grew by 0.8 and is now held against 0.3 departs from it by half of log(fraction)."""
    same = inherited_from(truth)
    slower = replace(same, slope=0.5)
    gap = slower.predict(ELSEWHERE).mean - same.predict(ELSEWHERE).mean
    np.testing.assert_allclose(gap, 0.5 * np.log(ELSEWHERE[:, -1]))
    # The growth is no part of what configurations differ by, so the factor does not see it.
    told = 0.25 * same.predict(NEW).mean
    assert slower.fitted_to(NEW, told + 0.5 * np.log(NEW[:, -1])).factor == pytest.approx(
        same.fitted_to(NEW, told).factor
    )


@pytest.mark.parametrize("seed", range(3))
def test_pure_noise_fades_and_leaves_the_belief_as_it_would_have_been(seed):
    noise = inherited_from(lambda rows: 2.0 * np.random.default_rng(seed + 10).normal(size=len(rows)))
    warm = fit_on(noise, NEW, truth(NEW))
    cold = SURROGATE.fit(NEW, truth(NEW), 1.0, np.random.default_rng(0))
    assert weight_of(warm, noise) < 0.5
    difference = np.abs(warm.predict(ELSEWHERE).mean - cold.predict(ELSEWHERE).mean).mean()
    assert difference < 0.25 * truth(ELSEWHERE).std()


def test_an_earlier_study_that_says_the_contrary_fades():
    contrary = inherited_from(lambda rows: -truth(rows))
    assert weight_of(fit_on(contrary, NEW, truth(NEW)), contrary) < 0.05


def test_of_two_earlier_studies_the_one_that_foresees_counts():
    same, contrary = inherited_from(truth), inherited_from(lambda rows: -truth(rows))
    both = SURROGATE.fit_on([contrary, same], NEW, truth(NEW), 1.0, np.random.default_rng(0))
    assert weight_of(both, same) > 0.9
    assert weight_of(both, contrary) < 0.05


def test_no_earlier_study_is_a_cold_start():
    cold = SURROGATE.fit(NEW, truth(NEW), 1.0, np.random.default_rng(0)).predict(ELSEWHERE)
    alone = SURROGATE.fit_on([], NEW, truth(NEW), 1.0, np.random.default_rng(0)).predict(ELSEWHERE)
    np.testing.assert_array_equal(alone.mean, cold.mean)
    np.testing.assert_array_equal(alone.variance, cold.variance)


def test_where_the_earlier_study_knew_nothing_its_mean_is_no_knowledge():
    near = inherited_from(truth)
    covariance = InheritedCovariance(near, spread=2.0)
    known = rows_of(60, seed=1)
    far = known.copy()
    far[:, :2] += 30.0
    theta = np.zeros(0)
    assert covariance.diagonal(theta, far).min() > 20.0 * covariance.diagonal(theta, known).max()


def test_its_covariance_is_that_of_the_earlier_posterior_in_the_new_units():
    inherited = inherited_from(truth)
    covariance = InheritedCovariance(inherited, spread=2.0)
    theta = np.zeros(0)
    matrix = covariance.matrix(theta, NEW, NEW)
    np.testing.assert_allclose(matrix, inherited.posterior.covariance(NEW, NEW) / 4.0)
    np.testing.assert_allclose(np.diagonal(matrix), covariance.diagonal(theta, NEW), atol=1e-9)
    np.testing.assert_allclose(matrix[:, :5], covariance.matrix(theta, NEW, NEW[:5].copy()), atol=1e-9)
    assert len(covariance.prior(2).mean) == len(covariance.pull_back(theta, NEW, matrix)) == 0


def test_a_fit_works_out_the_covariance_of_its_rows_once_and_that_of_other_rows_each_time(monkeypatch):
    kernel, asked = InheritedCovariance(inherited_from(truth), 2.0), []
    monkeypatch.setattr(Inherited, "covariance", lambda *pair: asked.append(pair) or np.eye(len(pair[1])))
    for _ in range(3):
        kernel.matrix(np.zeros(0), NEW, NEW)
    assert len(asked) == 1
    kernel.matrix(np.zeros(0), NEW, NEW.copy())
    kernel.matrix(np.zeros(0), NEW.copy(), NEW)
    assert len(asked) == 3


def test_columns_that_the_earlier_study_did_not_have_make_no_difference_to_what_it_says():
    narrow = inherited_from(truth, columns=np.array([True, False, True]))
    moved = ELSEWHERE.copy()
    moved[:, 1] += 5.0
    np.testing.assert_allclose(narrow.predict(moved).mean, narrow.predict(ELSEWHERE).mean)


def test_an_imagined_answer_is_taken_at_its_word_on_top_of_an_earlier_mean():
    same = inherited_from(truth)
    place = ELSEWHERE[:1]
    after = fit_on(same, NEW[:3], truth(NEW[:3])).condition(place, np.array([10.0]))
    assert after.predict(place).mean[0] == pytest.approx(10.0, abs=1.0)
