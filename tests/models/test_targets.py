"""Target transforms: there and back, order kept, expectations right, limits out of range never or always met."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.models.posterior import Identity, Logit, LogScale, spread_of, transform_for

RANGES = [
    pytest.param(Identity(), st.floats(-1e9, 1e9), id="Identity"),
    pytest.param(LogScale(), st.floats(1e-12, 1e12), id="LogScale"),
    pytest.param(Logit(), st.floats(0.0, 1.0), id="Logit"),
]
TRANSFORMS = [pytest.param(one, id=type(one).__name__) for one in (Identity(), LogScale(), Logit())]


@pytest.mark.parametrize(("transform", "values"), RANGES)
@given(data=st.data())
def test_inverse_undoes_forward_within_the_range(transform, values, data):
    value = data.draw(values)
    there_and_back = transform.inverse(transform.forward(np.array([value])))
    np.testing.assert_allclose(there_and_back, [value], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("transform", [Identity(), LogScale()], ids=["Identity", "LogScale"])
@given(latent=st.floats(-50.0, 50.0))
def test_forward_undoes_inverse_on_the_real_line(transform, latent):
    np.testing.assert_allclose(
        transform.forward(transform.inverse(np.array([latent]))), [latent], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(("transform", "values"), RANGES)
@given(data=st.data())
def test_a_larger_value_stays_larger(transform, values, data):
    one, other = data.draw(values), data.draw(values)
    low, high = min(one, other), max(one, other)
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-3):  # closer than that is rounding, not order
        before, after = transform.forward(np.array([low, high]))
        assert before < after


def test_log_is_the_natural_logarithm():
    np.testing.assert_allclose(LogScale().forward(np.array([1.0, math.e, 100.0])), [0.0, 1.0, 2.0 * math.log(10.0)])


def test_logit_is_odd_about_a_half():
    shares = np.array([0.0, 0.1, 0.25, 0.5])
    np.testing.assert_allclose(Logit().forward(1.0 - shares), -Logit().forward(shares), atol=1e-12)


def test_logit_of_none_and_of_all_is_finite():
    assert np.isfinite(Logit().forward(np.array([0.0, 1.0]))).all()


def test_a_log_limit_at_or_below_zero_is_minus_infinity():
    np.testing.assert_array_equal(LogScale().forward(np.array([0.0, -0.0, -3.0])), np.full(3, -np.inf))


def test_an_infinite_limit_stays_infinite():
    for transform in (Identity(), LogScale(), Logit()):
        assert transform.forward(np.array([np.inf]))[0] == np.inf
        assert transform.forward(np.array([-np.inf]))[0] == -np.inf


def test_a_share_limit_above_one_is_infinite_and_below_zero_minus_infinite():
    np.testing.assert_array_equal(Logit().forward(np.array([1.0001, 7.0])), [np.inf, np.inf])
    np.testing.assert_array_equal(Logit().forward(np.array([-0.0001, -7.0])), [-np.inf, -np.inf])


def test_inverse_stays_within_the_range_for_any_latent_value():
    latent = np.array([-1e6, -800.0, 0.0, 800.0, 1e6])
    times, shares = LogScale().inverse(latent), Logit().inverse(latent)
    assert np.isfinite(times).all()
    assert (times > 0).all()
    assert ((shares >= 0) & (shares <= 1)).all()


@given(mean=st.floats(-20, 20), deviation=st.floats(0, 4))
def test_the_log_expectation_is_the_log_normal_mean(mean, deviation):
    expected = math.exp(mean + 0.5 * deviation**2)
    np.testing.assert_allclose(
        LogScale().expectation(np.array([mean]), np.array([deviation**2])), [expected], rtol=1e-12
    )


@given(mean=st.floats(-100, 100), variance=st.floats(0, 100))
def test_the_identity_expectation_is_the_mean(mean, variance):
    assert Identity().expectation(np.array([mean]), np.array([variance]))[0] == mean


@given(mean=st.floats(-6, 6), deviation=st.floats(0.0, 2.0))
def test_the_logit_expectation_equals_dense_integration(mean, deviation):
    """The trapezium rule on a Gaussian over ±10 deviations is exact to rounding, bar the clip at 0 and 1."""
    standard = np.linspace(-10.0, 10.0, 4001)
    density = np.exp(-0.5 * standard**2)
    shares = Logit().inverse(mean + deviation * standard)
    expected = float(shares @ density / density.sum())
    computed = Logit().expectation(np.array([mean]), np.array([deviation**2]))
    np.testing.assert_allclose(computed, [expected], atol=1e-3)  # a tenth of a percent of accuracy


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_without_variance_the_expectation_is_the_inverse(transform):
    latent = np.linspace(-5.0, 5.0, 11)
    np.testing.assert_allclose(transform.expectation(latent, np.zeros(11)), transform.inverse(latent), rtol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_expectation_keeps_the_shape_and_rises_with_the_mean(transform):
    mean = np.linspace(-4.0, 4.0, 20).reshape(4, 5)
    expectation = transform.expectation(mean, np.full((4, 5), 0.5))
    assert expectation.shape == (4, 5)
    assert (np.diff(expectation.ravel()) > 0).all()


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_expectation_equals_the_mean_over_many_draws(transform):
    draws = transform.inverse(0.4 + 0.6 * np.random.default_rng(5).normal(size=200_000))
    standard_error = draws.std() / math.sqrt(len(draws))
    computed = transform.expectation(np.array([0.4]), np.array([0.36]))[0]
    assert abs(computed - draws.mean()) < 4.0 * standard_error


def test_what_is_above_zero_by_nature_is_taken_in_logs_even_within_the_unit_interval():
    assert isinstance(transform_for(np.array([0.2, 0.9]), is_positive=True, more_is_better=True), LogScale)


def test_shares_are_taken_in_log_odds():
    assert isinstance(transform_for(np.array([0.0, 0.5, 1.0]), is_positive=False, more_is_better=True), Logit)


def test_what_should_be_small_is_taken_in_logs_for_it_may_yet_pass_one():
    assert isinstance(transform_for(np.array([0.2, 0.9]), is_positive=False, more_is_better=False), LogScale)


def test_positive_values_beyond_one_are_taken_in_logs():
    assert isinstance(transform_for(np.array([0.3, 40.0]), is_positive=False, more_is_better=True), LogScale)


@pytest.mark.parametrize("values", [[-0.1, 0.5], [0.0, 2.0], [-3.0, -1.0]])
def test_values_that_are_neither_shares_nor_above_zero_stay_as_they_are(values):
    assert isinstance(transform_for(np.array(values), is_positive=False, more_is_better=True), Identity)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8), st.floats(0.1, 100.0))
def test_the_spread_scales_with_the_values(values, factor):
    array = np.array(values)
    if array.std() > 1e-3:
        np.testing.assert_allclose(spread_of(factor * array), factor * spread_of(array), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, -7.0, 1e6])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_equal_values_are_given_the_spread_of_their_size_not_of_their_rounding(value, count):
    assert spread_of(np.full(count, value)) == max(abs(value), 1.0)
