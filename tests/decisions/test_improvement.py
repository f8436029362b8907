"""Expected improvement: against a numerical integral, and what it is counted from."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from decisions.fakes import (
    IDENTITY,
    LOG,
    LOGIT,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    random_covariance,
    space_of,
)
from trimtuner.decisions.acquisition import ConstrainedImprovement, RegardlessOfLimits, expected_improvement

means = st.floats(-5.0, 5.0)
variances = st.floats(1e-4, 9.0)
bests = st.floats(-5.0, 5.0)
seeds = st.integers(0, 10_000)


def improvement(mean, variance, best):
    return float(expected_improvement(np.array([mean]), np.array([variance]), best)[0])


def improvement_by_integral(mean, variance, best):
    """∫ (f - best) p(f) df over f above the best; twelve deviations hold all of a normal that a number can show."""
    deviation = math.sqrt(variance)
    low, high = max(best, mean - 12.0 * deviation), mean + 12.0 * deviation
    if low >= high:
        return 0.0
    middle = min(max(mean, low), high)
    pieces = [(low, middle), (middle, high)]
    return sum(quad(lambda f: (f - best) * density(f, mean, deviation), *piece, epsabs=1e-13)[0] for piece in pieces)


def density(f, mean, deviation):
    return math.exp(-0.5 * ((f - mean) / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi))


# --- the closed form


@given(means, variances, bests)
def test_expected_improvement_is_the_integral_of_what_lies_above_the_best(mean, variance, best):
    assert improvement(mean, variance, best) == pytest.approx(
        improvement_by_integral(mean, variance, best), rel=1e-8, abs=1e-11
    )


@given(means, bests)
def test_without_doubt_the_improvement_is_the_lead_itself(mean, best):
    assert improvement(mean, 0.0, best) == pytest.approx(max(mean - best, 0.0), abs=1e-11)


@given(means, st.floats(0.0, 9.0), bests, st.floats(0.0, 3.0))
def test_a_higher_mean_promises_more_but_never_more_than_it_is_higher(mean, variance, best, rise):
    lower, higher = improvement(mean, variance, best), improvement(mean + rise, variance, best)
    assert lower - 1e-12 <= higher <= lower + rise + 1e-12


@given(means, st.floats(0.0, 9.0), bests, st.floats(0.0, 9.0))
def test_more_doubt_never_promises_less(mean, variance, best, more):
    assert improvement(mean, variance + more, best) >= improvement(mean, variance, best) - 1e-12


@given(means, variances, bests)
def test_improvement_is_at_least_that_of_the_mean_and_never_negative(mean, variance, best):
    """Jensen: max(f - best, 0) is convex in f."""
    assert improvement(mean, variance, best) >= max(mean - best, 0.0) - 1e-12


def test_a_candidate_forty_deviations_behind_promises_nothing_rather_than_less():
    assert improvement(-40.0, 1.0, 0.0) == 0.0


# --- times the chance to meet the limits


def constrained_belief(seed, *limits, measurements=None, failures=()):
    """Scores and times of four configurations at two fractions: numbers 0 to 3 at a half, 4 to 7 on all of the data."""
    generator = np.random.default_rng(seed)
    space = space_of(4)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, generator.normal(size=8), random_covariance(8, generator))),
        "time": (LOG, gaussian_of_times(space, np.exp(generator.normal(size=8)), random_covariance(8, generator))),
    }
    return belief_of(problem_of(space, *limits), quantities, measurements, failures)


@settings(max_examples=15)
@given(seeds)
def test_under_limits_out_of_reach_it_is_plain_expected_improvement(seed):
    seen = [measurement(2, 1.0, score=0.3, time=1.0)]
    outlook = outlook_of(constrained_belief(seed, "time <= 1e30s", measurements=seen))
    plain = RegardlessOfLimits(ConstrainedImprovement()).score(outlook)
    np.testing.assert_array_equal(ConstrainedImprovement().score(outlook), plain)
    mean, variance = outlook.at_candidates("score")
    expected = [improvement_by_integral(m, v, 0.3) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(plain, expected, rtol=1e-8, atol=1e-11)


@settings(max_examples=15)
@given(seeds)
def test_under_limits_it_is_the_improvement_times_the_chance_of_each_limit(seed):
    seen = [measurement(2, 1.0, score=0.3, time=1.0)]
    belief = constrained_belief(seed, "time <= 2s", "score >= -1", measurements=seen)
    outlook = outlook_of(belief)
    score, time = outlook.at_candidates("score"), outlook.at_candidates("time")
    expected = [
        improvement_by_integral(score.mean[one], score.variance[one], 0.3)
        * norm.cdf(math.log(2.0), time.mean[one], math.sqrt(time.variance[one]))
        * norm.sf(-1.0, score.mean[one], math.sqrt(score.variance[one]))
        for one in range(8)
    ]
    np.testing.assert_allclose(ConstrainedImprovement().score(outlook), expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(
    "seen",
    [
        measurement(2, 0.5, score=0.3, time=1.0),  # not where the goal is meant
        measurement(2, 1.0, score=0.3, time=2.1),  # beyond the limit
    ],
    ids=["only on less data", "beyond the limit"],
)
def test_as_long_as_nothing_within_the_limits_is_measured_the_chance_alone_counts(seen):
    outlook = outlook_of(constrained_belief(1, "time <= 2s", measurements=[seen]))
    mean, variance = outlook.at_candidates("time")
    assert outlook.best_measured is None
    np.testing.assert_allclose(
        ConstrainedImprovement().score(outlook), norm.cdf((math.log(2.0) - mean) / np.sqrt(variance)), rtol=1e-12
    )


def test_it_is_counted_from_the_best_that_was_measured_within_the_limits_on_all_of_the_data():
    seen = [
        measurement(0, 1.0, score=1.0, time=2.0),  # on the limit is within
        measurement(1, 1.0, score=0.5, time=1.0),
        measurement(2, 1.0, score=9.0, time=2.1),
        measurement(3, 0.5, score=7.0, time=0.1),
    ]
    outlook = outlook_of(constrained_belief(1, "time <= 2s", measurements=seen))
    assert outlook.best_measured == 1.0
    assert outlook.regardless_of_limits.best_measured == 9.0


def test_regardless_of_limits_it_is_counted_from_the_best_measured_and_no_chance_enters():
    seen = [measurement(0, 1.0, score=0.1, time=1.0), measurement(1, 1.0, score=0.7, time=9.0)]
    outlook = outlook_of(constrained_belief(1, "time <= 2s", measurements=seen))
    mean, variance = outlook.at_candidates("score")
    expected = [improvement_by_integral(m, v, 0.7) for m, v in zip(mean, variance, strict=True)]
    plain = RegardlessOfLimits(ConstrainedImprovement()).score(outlook)
    np.testing.assert_allclose(plain, expected, rtol=1e-8, atol=1e-11)
    assert not np.allclose(plain, ConstrainedImprovement().score(outlook))


def test_a_candidate_that_may_not_run_promises_the_less():
    """All else equal: the same belief, once with a failure next to the candidates."""
    seen = [measurement(2, 1.0, score=0.3, time=1.0)]
    sound = outlook_of(constrained_belief(1, measurements=seen))
    failing = outlook_of(constrained_belief(1, measurements=seen, failures=[(0, 1.0)]))
    running = failing.belief.chance_of_running.at(failing.candidates.rows)
    assert (running < 1.0).all()
    np.testing.assert_allclose(
        ConstrainedImprovement().score(failing), ConstrainedImprovement().score(sound) * running, rtol=1e-12
    )


# --- goals to be made small


@settings(max_examples=15)
@given(seeds, st.floats(0.2, 5.0))
def test_for_a_cost_it_is_the_expected_relative_saving_on_a_log_scale(seed, best):
    """E[max(log(best / c), 0)] of a log-normal cost c: the price times a log-normal time."""
    generator = np.random.default_rng(seed)
    prices, seconds = generator.uniform(1800.0, 7200.0, 3), np.exp(generator.normal(size=6))
    space = space_of(3, prices.tolist())
    times = gaussian_of_times(space, seconds, generator.uniform(0.1, 1.0, 6))
    seen = [measurement(0, 0.5, time=1.0, cost=best)]
    outlook = outlook_of(belief_of(problem_of(space, minimize="cost"), {"time": (LOG, times)}, seen))
    expected = []
    for place, (deviation, median) in enumerate(zip(np.sqrt(np.diag(times.matrix)), seconds, strict=True)):
        centre = math.log(median * prices[place % 3] / 3600.0)
        cheapest = math.exp(centre - 8.0 * deviation)

        def saving_at(cost, centre=centre, deviation=deviation):
            return math.log(best / cost) * density(math.log(cost), centre, deviation) / cost

        expected.append(quad(saving_at, cheapest, best, limit=200)[0] if cheapest < best else 0.0)
    np.testing.assert_allclose(ConstrainedImprovement().score(outlook), expected, rtol=1e-6, atol=1e-9)


def test_of_two_equally_doubtful_candidates_the_cheaper_promises_more():
    space = space_of(2, [3600.0] * 2, fractions=(1.0,))
    times = gaussian_of_times(space, np.array([2.0, 0.5]), 0.1)
    seen = [measurement(0, 1.0, time=1.0, cost=1.0)]
    problem = problem_of(space, minimize="cost")
    dear, cheap = ConstrainedImprovement().score(outlook_of(belief_of(problem, {"time": (LOG, times)}, seen)))
    assert cheap > math.log(2.0)  # the saving of the median, and more for the doubt
    assert 0.0 < dear < 0.01


def test_for_a_share_it_is_counted_in_log_odds():
    """From 0.5 to a sure 0.9 the odds rise from 1 to 9, and the logits pull in both ends alike by a little."""
    space = space_of(2, fractions=(1.0,))
    sure = gaussian_over(space, float(LOGIT.forward(np.array(0.9))), 0.0)
    belief = belief_of(
        problem_of(space, maximize="accuracy"), {"accuracy": (LOGIT, sure)}, [measurement(0, 1.0, accuracy=0.5)]
    )
    np.testing.assert_allclose(ConstrainedImprovement().score(outlook_of(belief)), math.log(9.0), rtol=0.02)
