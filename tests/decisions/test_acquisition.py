"""Acquisition arithmetic, the expected cost, and CEA (Eq. 6)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from decisions.fakes import (
    IDENTITY,
    LOG,
    LOGIT,
    Given,
    belief_of,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    space_of,
)
from trimtuner.decisions.acquisition import Acquisition, ConstrainedExpectedAccuracy, CostWithOverhead, ExpectedCost

numbers = st.lists(st.floats(0.01, 100.0), min_size=4, max_size=4)


def constant(*values):
    return Given(lambda _: values)


def any_outlook():
    """Two configurations at two fractions: four candidates."""
    space = space_of(2)
    return outlook_of(belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, 0.0))}))


# --- arithmetic


@given(numbers, numbers)
def test_a_product_of_scores_scores_the_product(left, right):
    score = (constant(*left) * constant(*right)).score(any_outlook())
    np.testing.assert_array_equal(score, np.array(left) * np.array(right))


@given(numbers, numbers)
def test_a_quotient_of_scores_scores_the_quotient(gain, price):
    score = (constant(*gain) / constant(*price)).score(any_outlook())
    np.testing.assert_array_equal(score, np.array(gain) / np.array(price))


@given(numbers, numbers, numbers)
def test_products_and_quotients_chain_from_left_to_right_like_numbers(a, b, c):
    score = (constant(*a) * constant(*b) / constant(*c)).score(any_outlook())
    np.testing.assert_allclose(score, np.array(a) * np.array(b) / np.array(c))


def test_no_gain_at_no_price_is_no_number_to_fear():
    score = (constant(0.0, 0.0, 1.0, 2.0) / constant(0.0, 1.0, 1.0, 4.0)).score(any_outlook())
    np.testing.assert_array_equal(score, [0.0, 0.0, 1.0, 0.5])


def test_otherwise_speaks_only_where_the_first_score_is_zero_everywhere():
    second = constant(4.0, 3.0, 2.0, 1.0)
    silent, telling = constant(0.0, 0.0, 0.0, 0.0), constant(0.0, 0.0, 1e-9, 0.0)
    np.testing.assert_array_equal(silent.otherwise(second).score(any_outlook()), [4.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(telling.otherwise(second).score(any_outlook()), [0.0, 0.0, 1e-9, 0.0])


def test_otherwise_does_not_compute_what_it_does_not_need():
    asked = []
    constant(1.0, 2.0, 3.0, 4.0).otherwise(Given(lambda _: np.ones(4), asked)).score(any_outlook())
    assert asked == []


def test_equal_declarations_are_equal_scores():
    assert ExpectedCost() * ConstrainedExpectedAccuracy() == ExpectedCost() * ConstrainedExpectedAccuracy()
    assert ExpectedCost() / ConstrainedExpectedAccuracy() != ConstrainedExpectedAccuracy() / ExpectedCost()


def test_there_is_no_acquisition_without_a_score():
    with pytest.raises(TypeError, match="abstract"):
        Acquisition()


# --- expected cost


def test_doubt_about_the_time_counts_against_a_candidate():
    """exp(μ + σ²/2) seconds at 7200 USD per hour, two dollars a second."""
    space = space_of(2, [7200.0, 7200.0], fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, 1.0, np.diag([0.1, 2.0]))),
    }
    score = ExpectedCost().score(outlook_of(belief_of(problem_of(space), quantities)))
    np.testing.assert_allclose(score, 2.0 * np.exp([1.05, 2.0]))


def test_without_prices_effort_is_expected_in_seconds():
    space = space_of(2, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, gaussian_over(space, [0.0, 1.0], 0.0))}
    score = ExpectedCost().score(outlook_of(belief_of(problem_of(space), quantities)))
    np.testing.assert_allclose(score, [1.0, np.e])


# --- CEA


def constrained_outlook(score_mean, log_time_mean, *constraints):
    """Scores never seen below 0, so that the worth of a score is the score; 2 USD a second."""
    space = space_of(len(score_mean), [7200.0] * len(score_mean), fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, score_mean, 0.04)),
        "time": (LOG, gaussian_over(space, log_time_mean, 0.25)),
    }
    return outlook_of(
        belief_of(problem_of(space, *constraints), quantities, [measurement(0, 0.5, score=0.3, time=1.0)])
    )


def test_constrained_expected_accuracy_is_the_predicted_goal_times_the_chance_of_every_constraint():
    outlook = constrained_outlook([0.5, 0.8, 0.9], [0.0, 0.3, 2.0], "cost <= 3", "score >= 0.6")
    affordable = norm.cdf((np.log(3.0) - np.log(2.0) - np.array([0.0, 0.3, 2.0])) / 0.5)
    accurate = norm.cdf((np.array([0.5, 0.8, 0.9]) - 0.6) / 0.2)
    expected = np.array([0.5, 0.8, 0.9]) * affordable * accurate
    np.testing.assert_allclose(ConstrainedExpectedAccuracy().score(outlook), expected)


def test_without_constraints_constrained_expected_accuracy_is_the_predicted_goal():
    outlook = constrained_outlook([0.5, 0.8, 0.9], [0.0, 0.3, 2.0])
    np.testing.assert_allclose(ConstrainedExpectedAccuracy().score(outlook), [0.5, 0.8, 0.9])


def test_a_candidate_sure_to_break_a_constraint_scores_zero():
    outlook = constrained_outlook([0.5, 0.99], [0.0, 40.0], "cost <= 3")
    scores = ConstrainedExpectedAccuracy().score(outlook)
    assert scores[1] == 0.0
    assert scores[0] > 0.0


def test_the_accuracy_of_eq_6_is_the_expected_accuracy():
    space = space_of(3, fractions=(1.0,))
    mean, variance = np.array([-0.5, 0.8, 2.0]), 0.3
    belief = belief_of(
        problem_of(space, maximize="accuracy"),
        {"accuracy": (LOGIT, gaussian_over(space, mean, variance))},
        [measurement(0, 0.5, accuracy=0.3)],
    )
    expected = [quad(lambda z, m=m: expit(m + np.sqrt(variance) * z) * norm.pdf(z), -9, 9)[0] for m in mean]
    # The transform pulls shares 0.2 % off 0 and 1.
    np.testing.assert_allclose(ConstrainedExpectedAccuracy().score(outlook_of(belief)), expected, atol=0.002)


def test_for_a_cost_to_minimise_the_cheaper_candidate_scores_higher():
    """Saved against the dearest seen, 10 USD: 8 and 5, and nothing where it would cost more."""
    space = space_of(3, fractions=(1.0,))
    belief = belief_of(
        problem_of(space, minimize="cost"),
        {"cost": (LOG, gaussian_over(space, np.log([2.0, 5.0, 20.0]), 0.0))},
        [measurement(0, 0.5, cost=10.0)],
    )
    np.testing.assert_allclose(ConstrainedExpectedAccuracy().score(outlook_of(belief)), [8.0, 5.0, 0.0])


def test_a_candidate_at_a_place_where_jobs_fail_scores_less():
    space = space_of(5, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, 1.0))}
    belief = belief_of(problem_of(space), quantities, [measurement(0, 1.0, score=1.0)], failures=[(4, 1.0)])
    scores = ConstrainedExpectedAccuracy().score(outlook_of(belief))
    assert (np.diff(scores) < 0).all()


# --- the overhead of deciding (thesis, Eq. 4.3)


@pytest.mark.parametrize(("prices", "dearer"), [(None, [5.0, 5.0]), ([3600.0, 7200.0], [5.0, 10.0])])
def test_deciding_costs_its_seconds_at_the_price_of_the_trials_machines(prices, dearer):
    """5 seconds at no price are 5 seconds; at 1 and 2 USD a second they are 5 and 10 USD."""
    space = space_of(2, prices, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, gaussian_over(space, [0.0, 1.0]))}
    outlook = outlook_of(belief_of(problem_of(space), quantities))
    np.testing.assert_allclose(CostWithOverhead(5.0).score(outlook) - ExpectedCost().score(outlook), dearer)
    np.testing.assert_array_equal(CostWithOverhead(0.0).score(outlook), ExpectedCost().score(outlook))
