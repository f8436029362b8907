"""Insurance: when it is due, and that only targets are then tested."""

import numpy as np
import pytest

from decisions.fakes import (
    IDENTITY,
    LOG,
    Given,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    space_of,
)
from trimtuner.decisions.acquisition import AtTargets, ShareAtTargets

COUNT = 3  # configurations, each at two fractions; those on all of the data come last
FULL_SECONDS = 100.0
FIRST = Given(lambda outlook: np.full(len(outlook.candidates), 7.0))
SECOND = Given(lambda outlook: 1.0 + np.arange(len(outlook.candidates)))
NEVER = Given(lambda outlook: np.zeros(len(outlook.candidates)))


def outlook_after(spent, at_full_data=(), on_half=1.0):
    """Every full run takes 100 s; of ``spent`` seconds so many went into runs on full data."""
    space = space_of(COUNT)
    times = gaussian_of_times(space, np.array([on_half] * COUNT + [FULL_SECONDS] * COUNT))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}
    seen = [measurement(0, 0.5, score=1.0, time=1.0)]
    seen += [measurement(number, 1.0, score=1.0, time=seconds) for number, seconds in enumerate(at_full_data)]
    return outlook_of(belief_of(problem_of(space), quantities, seen, spent=spent))


def is_insured(outlook, **parts):
    return not (ShareAtTargets(FIRST, AtTargets(SECOND), **parts).score(outlook) == 7.0).all()


def test_the_price_of_a_full_run_is_free():
    assert not is_insured(outlook_after(spent=99.0))
    assert is_insured(outlook_after(spent=101.0))


@pytest.mark.parametrize(("at_full_data", "expected"), [((49.0,), True), ((51.0,), False), ((30.0, 30.0), False)])
def test_beyond_it_half_of_the_money_goes_to_full_data(at_full_data, expected):
    """200 s spent, 100 of them beyond the free ones."""
    assert is_insured(outlook_after(200.0, at_full_data)) is expected


def test_share_and_free_runs_are_as_told():
    assert is_insured(outlook_after(200.0, (51.0,)), share=0.9)
    assert not is_insured(outlook_after(200.0), free_runs=2.5)


def test_only_targets_count_when_it_is_due():
    outlook = outlook_after(spent=200.0)
    scores = ShareAtTargets(FIRST, AtTargets(SECOND)).score(outlook)
    is_full = outlook.candidates.fractions == 1.0
    assert (scores[~is_full] == 0.0).all()
    np.testing.assert_array_equal(scores[is_full], (1.0 + np.arange(2 * COUNT))[is_full])


def test_where_full_data_promises_nothing_the_first_score_goes_on():
    np.testing.assert_array_equal(ShareAtTargets(FIRST, NEVER).score(outlook_after(spent=200.0)), 7.0)


def test_where_every_fraction_is_a_target_all_money_was_spent_on_targets():
    """The least cost over configuration and fraction: nothing is extrapolated, nothing needs insurance."""
    space = space_of(COUNT)
    times = gaussian_of_times(space, np.array([1.0] * COUNT + [FULL_SECONDS] * COUNT))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}
    seen = [measurement(number, 0.5, score=1.0, time=150.0) for number in range(2)]
    belief = belief_of(problem_of(space, maximize=None, minimize="time"), quantities, seen, spent=300.0)
    np.testing.assert_array_equal(ShareAtTargets(FIRST, SECOND).score(outlook_of(belief)), 7.0)


@pytest.mark.parametrize(("on_half", "expected"), [(33.0, False), (34.0, True), (90.0, True)])
def test_where_the_smallest_share_costs_more_than_a_third_of_a_full_run_all_money_goes_to_full_data(on_half, expected):
    assert is_insured(outlook_after(spent=1.0, on_half=on_half)) is expected
    assert is_insured(outlook_after(spent=200.0, at_full_data=(150.0,), on_half=on_half)) is expected


def test_how_dear_the_smallest_share_may_be_is_as_told():
    assert is_insured(outlook_after(spent=1.0, on_half=19.0), dear=0.1)
    assert not is_insured(outlook_after(spent=1.0, on_half=60.0), dear=0.7)


def test_where_there_is_no_share_below_all_of_the_data_none_is_too_dear():
    space = space_of(COUNT, fractions=(1.0,))
    times = gaussian_of_times(space, np.array([FULL_SECONDS] * COUNT))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}
    belief = belief_of(problem_of(space), quantities, [measurement(0, 1.0, score=1.0, time=100.0)], spent=100.0)
    assert not is_insured(outlook_of(belief))
