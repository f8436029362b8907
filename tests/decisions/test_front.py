"""The front and its knee: laws for any points, and fakes whose every number is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from decisions.fakes import (
    IDENTITY,
    LOG,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    problem_of,
    space_of,
)
from trimtuner.decisions.pareto import (
    CONFIDENCE,
    EVEN_CHANCES,
    Axes,
    Outline,
    axes_of,
    knee_of,
    outline,
    price_of_step,
    prices_along,
    undominated,
)

points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=20)
SPACE = space_of(4, prices=[3600.0] * 4)  # a dollar a second
SCORES = [0.0] * 4 + [1.0, 3.0, 2.0, 4.0]  # at half of the data, then at all
SECONDS = np.array([1.0] * 4 + [10.0, 20.0, 30.0, 40.0])


def columns(found):
    prices, worths = (np.array([point[axis] for point in found], dtype=float) for axis in (0, 1))
    return prices, worths, np.array([point[2] for point in found], dtype=bool)


def front_of(found):
    return undominated(*columns(found)).tolist()


def beats(one, other):
    return one[2] and one[0] <= other[0] and one[1] >= other[1] and one[:2] != other[:2]


def believed(*constraints, score_variance=1e-8, time_variance=1e-8, measured=None, **goal):
    quantities = {
        "score": (IDENTITY, gaussian_over(SPACE, SCORES, score_variance, noise=1e-12)),
        "time": (LOG, gaussian_of_times(SPACE, SECONDS, time_variance)),
    }
    return belief_of(problem_of(SPACE, *constraints, **goal), quantities, measured)


def traced(belief, confidence=CONFIDENCE):
    return outline(belief, axes_of(belief), np.ones(len(belief.targets), dtype=bool), confidence)


@given(points)
def test_no_feasible_point_beats_the_front_and_the_front_beats_all_others(found):
    front = front_of(found)
    for number, one in enumerate(found):
        is_beaten = any(beats(other, one) for other in found)
        assert number not in front or (one[2] and not is_beaten)
        assert not one[2] or is_beaten or any(found[other][:2] == one[:2] for other in front)


@given(points)
def test_along_the_front_both_price_and_worth_rise(found):
    prices, worths, _ = columns(found)
    front = undominated(*columns(found))
    assert (np.diff(prices[front]) > 0).all()
    assert (np.diff(worths[front]) > 0).all()


@given(points, st.integers(0, 9), st.integers(0, 9))
def test_a_point_that_is_beaten_changes_nothing(found, price, worth):
    added = (price, worth, True)
    if any(beats(one, added) for one in found):
        assert front_of([*found, added]) == front_of(found)


@given(points.filter(lambda found: any(point[2] for point in found)), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_the_knee_lies_on_the_front_and_is_the_same_in_other_units(found, factor, shift):
    prices, worths, _ = columns(found)
    front = undominated(*columns(found))
    prices, worths = prices[front] + 1.0, worths[front]
    knee = knee_of(prices, worths)
    assert 0 <= knee < len(front)
    x = (np.log(prices) - np.log(prices[0])) / max(np.log(prices[-1] / prices[0]), 1e-300)
    heights = np.sort((worths - worths[0]) / max(worths[-1] - worths[0], 1e-300) - x)
    if len(front) > 2 and heights[-1] - heights[-2] > 1e-6:  # no two points are equally far from the line
        assert knee_of(prices * factor, worths * factor + shift) == knee


def test_the_knee_is_farthest_above_the_line_from_the_cheapest_to_the_best():
    # In logarithms of the price and scaled to 0..1: (0, 0), (1/3, 0.8), (2/3, 0.9), (1, 1).
    assert knee_of(np.array([1.0, 10.0, 100.0, 1000.0]), np.array([0.0, 0.8, 0.9, 1.0])) == 1


@pytest.mark.parametrize(
    ("prices", "worths"),
    [([3.0], [0.5]), ([1.0, 2.0], [0.1, 0.9]), ([1.0, 10.0, 100.0], [0.0, 0.1, 1.0]), ([1.0, 10.0, 100.0], [0, 1, 2])],
)
def test_a_front_that_does_not_turn_has_its_best_for_a_knee(prices, worths):
    assert knee_of(np.array(prices), np.array(worths, dtype=float)) == len(prices) - 1


def test_prices_that_are_not_above_zero_are_taken_as_they_are():
    assert knee_of(np.array([-1.0, 0.0, 9.0]), np.array([0.0, 0.8, 1.0])) == 1
    found = Outline(Axes("drift", "score", 1.0), np.arange(2), np.array([-1.0, 3.0]), np.array([0.0, 1.0]))
    assert prices_along(found, np.array([0.0, 0.25, 1.0])).tolist() == [-1.0, 0.0, 3.0]


def test_limits_lie_evenly_in_logarithms_between_the_cheapest_and_the_dearest():
    found = Outline(Axes("cost", "score", 1.0), np.arange(2), np.array([1.0, 100.0]), np.array([0.0, 1.0]))
    assert prices_along(found, np.array([0.0, 0.5, 1.0])) == pytest.approx([1.0, 10.0, 100.0])


@pytest.mark.parametrize("first", [0, 7, 1000])
def test_any_ten_steps_in_a_row_leave_no_fifth_of_the_front_out_and_look_a_little_beyond_it(first):
    found = Outline(Axes("cost", "score", 1.0), np.arange(2), np.array([1.0, np.e]), np.array([0.0, 1.0]))
    shares = np.sort(np.log([price_of_step(found, first + step) for step in range(10)]))
    assert (shares >= 0.0).all()
    assert 1.0 < shares[-1] < 1.2
    assert np.diff(np.r_[0.0, shares]).max() < 0.2


def test_targets_that_nothing_beats_are_on_the_front_from_the_cheapest_on():
    found = traced(believed())
    assert found.targets.tolist() == [0, 1, 3]
    assert found.prices == pytest.approx([10.0, 20.0, 40.0], rel=1e-3)
    assert found.qualities == pytest.approx([1.0, 3.0, 4.0], abs=1e-3)


def test_what_will_probably_break_a_limit_is_not_on_the_front():
    assert traced(believed("cost <= 35 USD")).targets.tolist() == [0, 1]


def test_a_forecast_counts_with_the_unfavourable_ends_of_its_intervals():
    found = traced(believed(score_variance=0.01, time_variance=0.04))
    deviations = student.ppf(CONFIDENCE, 2)  # degrees of freedom
    assert found.prices == pytest.approx(np.array([10.0, 20.0, 40.0]) * np.exp(0.2 * deviations))
    assert found.qualities == pytest.approx(np.array([1.0, 3.0, 4.0]) - 0.1 * deviations)


def test_a_search_looks_along_the_medians():
    found = traced(believed(score_variance=0.01, time_variance=0.04), EVEN_CHANCES)
    assert found.prices == pytest.approx([10.0, 20.0, 40.0])
    assert found.qualities == pytest.approx([1.0, 3.0, 4.0])


def test_a_forecast_that_is_a_hair_better_does_not_push_a_measurement_from_the_front():
    measured = [measurement(3, 1.0, score=2.95, time=41.0, cost=41.0)]
    assert traced(believed(score_variance=0.01, measured=measured)).targets.tolist() == [0, 1, 3]
    assert traced(believed(measured=measured)).targets.tolist() == [0, 1]  # beyond doubt, it does


def test_what_a_method_would_never_name_is_not_on_its_front():
    belief = believed()
    found = outline(belief, axes_of(belief), np.array([True, False, True, False]), CONFIDENCE)
    assert found.targets.tolist() == [0, 2]


def test_the_axes_are_what_is_paid_and_what_one_gets():
    assert axes_of(believed()) == Axes("cost", "score", 1.0)
    assert axes_of(believed("score >= 2.5", minimize="cost")) == Axes("cost", "score", 1.0)
    assert axes_of(believed("score <= 2.5", minimize="cost")) == Axes("cost", "score", -1.0)
    assert axes_of(believed(minimize="cost")) is None
    assert axes_of(believed(against="time")) == Axes("time", "score", 1.0)
