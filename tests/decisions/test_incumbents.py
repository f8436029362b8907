"""Incumbents: who is recommended, and to whom ties go."""

import numpy as np
import pytest
from scipy.stats import norm

from decisions.fakes import IDENTITY, LOG, belief_of, gaussian_over, measurement, problem_of, space_of
from trimtuner.decisions.incumbents import (
    BestMeasured,
    BestPredicted,
    BestPredictedFeasible,
    BestPredictedOfTested,
    BestSurelyFeasible,
    MostExpected,
)


def belief_about(score, chance, seen=()):
    """Targets with known mean scores (never negative) and chances to meet the one limit, log time ≤ 0."""
    space = space_of(len(score), fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, score)),
        "time": (LOG, gaussian_over(space, -norm.ppf(chance), 1.0)),
    }
    return belief_of(problem_of(space, "time <= 1s"), quantities, seen or [measurement(0, 0.5, score=0.0, time=1.0)])


BOTH = pytest.mark.parametrize("rule", [BestPredictedFeasible(0.9), MostExpected()], ids=["trusted", "expected"])


def test_the_highest_predicted_goal_among_the_trusted_is_recommended():
    belief = belief_about([5.0, 7.0, 6.0], [0.99, 0.91, 0.95])
    assert BestPredictedFeasible(0.9).choose(belief) == 1


def test_a_chance_below_the_confidence_is_discounted_in_proportion():
    """9 × 0.63 / 0.9 = 6.3 and 9 × 0.81 / 0.9 = 8.1, against 7 that is trusted."""
    assert BestPredictedFeasible(0.9).choose(belief_about([9.0, 7.0], [0.63, 0.95])) == 1
    assert BestPredictedFeasible(0.9).choose(belief_about([9.0, 7.0], [0.81, 0.95])) == 0


def test_beyond_the_confidence_more_of_it_counts_for_nothing():
    assert BestPredictedFeasible(0.9).choose(belief_about([7.0, 7.1], [0.999, 0.91])) == 1


def test_a_lower_confidence_trusts_more():
    """With 0.5 both are trusted; with 0.9 the first is worth 9 × 0.6 / 0.9 = 6."""
    belief = belief_about([9.0, 7.0], [0.6, 0.95])
    assert [BestPredictedFeasible(c).choose(belief) for c in (0.9, 0.5)] == [1, 0]


def test_between_equal_goals_the_surer_is_recommended():
    assert BestPredictedFeasible(0.9).choose(belief_about([5.0, 5.0, 5.0], [0.92, 0.97, 0.95])) == 1


@BOTH
def test_between_alike_the_first_is_recommended(rule):
    assert rule.choose(belief_about([1.0, 5.0, 5.0, 5.0], [0.95, 0.95, 0.95, 0.95])) == 1


def test_where_nothing_is_trusted_the_one_with_the_most_to_expect_is_recommended():
    """Worth times chance: 4.5, 5.6, 0.85."""
    belief = belief_about([9.0, 7.0, 1.0], [0.5, 0.8, 0.85])
    assert BestPredictedFeasible(0.9).choose(belief) == 1


def test_the_most_expected_has_the_highest_worth_times_chance():
    """3.6, 6.3, 6.4, 1.0: a little doubt costs a little."""
    belief = belief_about([9.0, 7.0, 8.0, 1.0], [0.4, 0.9, 0.8, 1.0 - 1e-9])
    assert MostExpected().choose(belief) == 2


def test_between_equal_expectations_the_surer_is_recommended():
    """6 × 0.5 = 3 × 1; measured at the limit, so that both chances are exact."""
    space = space_of(2, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [6.0, 3.0])),
        "time": (LOG, gaussian_over(space, [0.0, 0.0], 1.0)),
    }
    seen = [measurement(1, 1.0, score=3.0, time=1.0), measurement(0, 0.5, score=0.0, time=1.0)]
    belief = belief_of(problem_of(space, "time <= 1s"), quantities, seen)
    np.testing.assert_array_equal(belief.worth_at_targets * belief.feasible_at_targets, [3.0, 3.0])
    assert MostExpected().choose(belief) == 1


@BOTH
def test_a_measured_target_over_its_limit_is_not_recommended_however_good(rule):
    seen = [measurement(0, 1.0, score=100.0, time=1.001)]
    assert rule.choose(belief_about([100.0, 2.0, 1.0], [0.99, 0.95, 0.97], seen)) == 1


@BOTH
def test_what_is_to_be_minimised_is_recommended_where_it_is_least(rule):
    space = space_of(3, fractions=(1.0,))
    quantities = {"time": (LOG, gaussian_over(space, np.log([30.0, 10.0, 20.0]), 0.01))}
    seen = [measurement(0, 0.5, time=40.0)]
    assert rule.choose(belief_of(problem_of(space, minimize="time"), quantities, seen)) == 1


@BOTH
def test_a_failed_target_is_not_recommended(rule):
    space = space_of(3, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, [9.0, 1.0, 2.0]))}
    seen = [measurement(1, 1.0, score=1.0)]
    assert rule.choose(belief_of(problem_of(space), quantities, seen, failures=[(0, 1.0)])) != 0


@BOTH
def test_what_is_proven_stays_while_a_forecast_is_better_by_less_than_its_doubt(rule):
    """Score 10 was measured; 11 is forecast with a deviation of 1, which is better in 84 % of cases only."""
    seen = [measurement(0, 1.0, score=10.0, time=0.5)]
    assert rule.choose(belief_about([10.0, 11.0], [0.99, 0.999], seen)) == 0


@BOTH
def test_what_is_proven_gives_way_to_a_forecast_that_is_better_beyond_doubt(rule):
    """12 with a deviation of 1 is better than 10 in 98 % of cases."""
    seen = [measurement(0, 1.0, score=10.0, time=0.5)]
    assert rule.choose(belief_about([10.0, 12.0], [0.99, 0.999], seen)) == 1


@BOTH
def test_what_is_proven_stays_against_what_will_more_likely_break_a_limit_than_not(rule):
    """20 would be better beyond any doubt, if it were within the limits; the chance of that is 0.4."""
    seen = [measurement(0, 1.0, score=10.0, time=0.5)]
    assert rule.choose(belief_about([10.0, 20.0], [0.99, 0.4], seen)) == 0
    assert rule.choose(belief_about([10.0, 40.0], [0.99, 0.6], seen)) == 1


@BOTH
def test_a_better_measurement_replaces_what_was_proven_at_once(rule):
    seen = [measurement(0, 1.0, score=10.0, time=0.5), measurement(1, 1.0, score=10.1, time=0.5)]
    assert rule.choose(belief_about([10.0, 10.1], [0.99, 0.99], seen)) == 1


@BOTH
def test_the_previous_recommendation_stays_for_a_forecast_that_is_hardly_better(rule):
    """10.04 is 0.4 % more than 10."""
    assert rule.choose(belief_about([10.0, 10.04], [1.0 - 1e-12, 1.0 - 1e-12]), previous=0) == 0


@BOTH
def test_the_previous_recommendation_gives_way_to_a_clearly_better_forecast(rule):
    assert rule.choose(belief_about([10.0, 10.1], [1.0 - 1e-12, 1.0 - 1e-12]), previous=0) == 1


@BOTH
def test_the_previous_recommendation_gives_way_to_a_measurement_however_little_better(rule):
    seen = [measurement(1, 1.0, score=10.001, time=0.5)]
    assert rule.choose(belief_about([10.0, 10.001], [1.0 - 1e-12, 0.99], seen), previous=0) == 1


# --- the best measured


def belief_from(measurements, *constraints, failures=(), fractions=(0.1, 0.5, 1.0), **goal):
    """What was measured, and no model at all: whoever asks for a forecast gets a KeyError."""
    problem = problem_of(space_of(6, fractions=fractions), *constraints, **goal)
    return belief_of(problem, {}, measurements, failures)


def target(belief, position, fraction):
    return belief.target_at({"x": position}, fraction)


def test_the_cheapest_measured_within_the_limits_is_recommended_at_the_fraction_it_was_measured():
    """Position 2 is cheaper and not accurate enough; 0.7 itself is enough."""
    seen = [
        measurement(0, 0.1, cost=3.0, accuracy=0.8),
        measurement(1, 0.5, cost=2.0, accuracy=0.7),
        measurement(2, 0.1, cost=1.0, accuracy=0.69),
        measurement(3, 1.0, cost=9.0, accuracy=0.9),
    ]
    belief = belief_from(seen, "accuracy >= 0.7", minimize="cost")
    assert BestMeasured().choose(belief) == target(belief, 1, 0.5)


def test_the_most_accurate_measured_on_all_of_the_data_within_the_limits_is_recommended():
    seen = [
        measurement(0, 0.5, accuracy=0.99, cost=0.1),
        measurement(1, 1.0, accuracy=0.8, cost=1.0),
        measurement(2, 1.0, accuracy=0.9, cost=1.01),
        measurement(3, 1.0, accuracy=0.7, cost=0.5),
    ]
    belief = belief_from(seen, "cost <= 1", maximize="accuracy")
    assert BestMeasured().choose(belief) == target(belief, 1, 1.0)


def test_where_nothing_measured_is_within_the_limits_the_least_infeasible_is_recommended():
    """Shares by which limits are broken: 0.3 + 0.3, 0.5 and 0.55."""
    seen = [
        measurement(0, 1.0, accuracy=0.9, cost=1.3, time=130.0),
        measurement(1, 1.0, accuracy=0.1, cost=1.5, time=100.0),
        measurement(2, 1.0, accuracy=0.9, cost=0.5, time=155.0),
    ]
    belief = belief_from(seen, "cost <= 1", "time <= 100s", maximize="accuracy")
    assert BestMeasured().choose(belief) == target(belief, 1, 1.0)


def test_a_limit_from_below_is_broken_by_what_is_missing():
    """0.6 misses a quarter of 0.8; 0.5 misses three eighths and is cheaper."""
    seen = [measurement(0, 0.1, accuracy=0.6, cost=2.0), measurement(1, 0.1, accuracy=0.5, cost=1.0)]
    belief = belief_from(seen, "accuracy >= 0.8", minimize="cost")
    assert BestMeasured().choose(belief) == target(belief, 0, 0.1)


def test_between_equal_measurements_the_first_target_is_recommended():
    seen = [measurement(4, 1.0, accuracy=0.9, cost=1.0), measurement(2, 1.0, accuracy=0.9, cost=1.0)]
    belief = belief_from(seen, "cost <= 1", maximize="accuracy")
    assert BestMeasured().choose(belief) == target(belief, 2, 1.0)


def test_before_anything_is_measured_where_the_goal_is_meant_the_best_on_the_most_data_is_recommended():
    seen = [
        measurement(0, 0.1, accuracy=0.99, cost=1.0),
        measurement(1, 0.5, accuracy=0.7, cost=1.0),
        measurement(2, 0.5, accuracy=0.8, cost=1.0),
    ]
    belief = belief_from(seen, "cost <= 2", maximize="accuracy")
    assert BestMeasured().choose(belief) == target(belief, 2, 1.0)


def test_what_failed_on_all_of_the_data_is_not_recommended_for_having_been_the_best_on_half_of_it():
    seen = [measurement(1, 0.5, accuracy=0.7, cost=1.0), measurement(2, 0.5, accuracy=0.8, cost=1.0)]
    belief = belief_from(seen, "cost <= 2", failures=[(2, 1.0)], maximize="accuracy")
    assert BestMeasured().choose(belief) == target(belief, 1, 1.0)


def test_what_was_recommended_before_does_not_hold_back_a_better_measurement():
    seen = [measurement(0, 1.0, accuracy=0.9, cost=1.0), measurement(1, 1.0, accuracy=0.9001, cost=1.0)]
    belief = belief_from(seen, "cost <= 1", maximize="accuracy")
    assert BestMeasured().choose(belief, previous=0) == 1


# --- regardless of limits


def forecast(score, seen, failures=(), chance=0.01):
    """Full data is a target, half of it is not; every target is all but sure to break the limit."""
    space = space_of(len(score))
    means = [0.0] * len(score) + list(score)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, means)),
        "time": (LOG, gaussian_over(space, -norm.ppf(chance), 1.0)),
    }
    return belief_of(problem_of(space, "time <= 1s"), quantities, seen, failures)


HALF = [measurement(position, 0.5, score=0.0, time=1.0) for position in range(3)]


def test_the_best_predicted_is_the_best_of_all_whatever_the_limits():
    assert BestPredicted().choose(forecast([5.0, 7.0, 6.0, 9.0], HALF)) == 3


def test_the_best_predicted_of_those_tested_is_one_that_was_tested_on_less_data():
    belief = forecast([5.0, 7.0, 6.0, 9.0], HALF)
    assert BestPredictedOfTested().choose(belief) == 1
    assert BestPredictedOfTested().choose(forecast([5.0, 7.0, 6.0, 9.0], [HALF[0], HALF[2]])) == 2


def test_of_one_configuration_tested_that_one_is_recommended_however_bad():
    assert BestPredictedOfTested().choose(forecast([-50.0, 7.0], HALF[:1])) == 0


BLIND = pytest.mark.parametrize("rule", [BestPredicted(), BestPredictedOfTested()], ids=["all", "tested"])


@BLIND
def test_a_measurement_over_the_limit_is_as_good_as_any_to_who_knows_no_limits(rule):
    seen = [*HALF, measurement(2, 1.0, score=20.0, time=100.0)]
    assert rule.choose(forecast([5.0, 7.0, 20.0], seen)) == 2


@BLIND
def test_what_was_measured_counts_as_measured_and_not_as_forecast(rule):
    """Forecast 9, measured 1."""
    assert rule.choose(forecast([5.0, 9.0], [*HALF[:2], measurement(1, 1.0, score=1.0, time=1.0)])) == 0


@BLIND
def test_who_knows_no_limits_still_recommends_nothing_that_failed(rule):
    """Tested on half of the data, out of memory on all of it."""
    assert rule.choose(forecast([5.0, 9.0], HALF[:2], failures=[(1, 1.0)])) == 0


@BLIND
def test_between_alike_the_first_is_recommended_whatever_the_limits(rule):
    assert rule.choose(forecast([1.0, 5.0, 5.0], HALF)) == 1


@BLIND
def test_the_previous_recommendation_stays_for_a_hair_whatever_the_limits(rule):
    assert rule.choose(forecast([10.0, 10.04, 1.0], HALF), previous=0) == 0
    assert rule.choose(forecast([10.0, 10.1, 1.0], HALF), previous=0) == 1


# --- the papers' rule to the letter


def test_below_the_confidence_nothing_is_recommended_however_good():
    """100 × 0.89 against 1 × 0.91."""
    assert BestSurelyFeasible(0.9).choose(belief_about([100.0, 1.0], [0.89, 0.91])) == 1


def test_among_the_sure_the_highest_goal_decides_and_not_the_surest():
    assert BestSurelyFeasible(0.9).choose(belief_about([7.0, 7.1, 6.0], [0.999, 0.91, 0.95])) == 1


def test_where_nothing_is_sure_the_highest_goal_times_chance_is_recommended():
    """5 × 0.4 = 2, 3 × 0.8 = 2.4, 9 × 0.2 = 1.8."""
    assert BestSurelyFeasible(0.9).choose(belief_about([5.0, 3.0, 9.0], [0.4, 0.8, 0.2])) == 1


def test_to_the_letter_neither_what_was_measured_nor_what_was_recommended_before_holds_back_a_forecast():
    belief = belief_about([5.0, 5.001], [0.95, 0.95], [measurement(0, 1.0, score=5.0, time=0.5)])
    assert BestSurelyFeasible(0.9).choose(belief, 0) == 1
    assert BestPredictedFeasible(0.9).choose(belief, 0) == 0
