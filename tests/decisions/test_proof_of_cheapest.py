"""Where the least is sought, what would be recommended is tested before anything else; and only there."""

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
from trimtuner.decisions.acquisition import ProofOfCheapest
from trimtuner.decisions.incumbents import MostExpected

COUNT = 3  # configurations, each at half of the data (places 0 to 2) and at all of it (3 to 5)
SECONDS = np.array([40.0, 10.0, 50.0, 80.0, 20.0, 100.0])
OTHER = Given(lambda outlook: np.full(len(outlook.candidates), 7.0))
CHEAPEST = 1  # of all places, if it scores enough


def belief_where(scores, seen=(), doubt=0.01, **goal):
    """The score must be at least 1; times are known, of scores the mean and the doubt about them."""
    space = space_of(COUNT)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, np.array(scores), doubt)),
        "time": (LOG, gaussian_of_times(space, SECONDS)),
    }
    measured = [measurement(2, 1.0, score=3.0, time=100.0), *seen]
    return belief_of(problem_of(space, "score >= 1", **(goal or {"minimize": "time"})), quantities, measured)


def scores_of(belief, positions=None):
    return ProofOfCheapest(OTHER, MostExpected()).score(outlook_of(belief, positions))


def test_the_cheapest_that_is_likely_to_keep_the_limits_is_tested():
    np.testing.assert_array_equal(scores_of(belief_where([3.0] * 6)), np.eye(6)[CHEAPEST])


def test_one_that_is_more_likely_to_break_a_limit_is_not():
    """Whatever is recommended then was measured, or is a guess that no test is owed to."""
    np.testing.assert_array_equal(scores_of(belief_where([0.0] * 6)), 7.0)


def test_once_it_is_measured_the_other_score_decides():
    proven = [measurement(CHEAPEST, 0.5, score=3.0, time=10.0)]
    np.testing.assert_array_equal(scores_of(belief_where([3.0] * 6, proven)), 7.0)


def test_while_it_is_being_tested_the_other_score_decides():
    """A trial under way is no candidate, and is not measured yet."""
    np.testing.assert_array_equal(scores_of(belief_where([3.0] * 6), [0, 2, 3, 4, 5]), 7.0)


@pytest.mark.parametrize("goal", [{"maximize": "score"}, {"maximize": "score", "against": "time"}])
def test_other_goals_are_left_alone(goal):
    """The best accuracy is on all of the data, where proof is dear."""
    np.testing.assert_array_equal(scores_of(belief_where([3.0] * 6, **goal)), 7.0)
