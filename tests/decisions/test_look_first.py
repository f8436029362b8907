"""A look before a leap: which trial takes the place of one that is much dearer than all that its configuration cost."""

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
from trimtuner.decisions.acquisition import LookFirst

FRACTIONS = (0.01, 0.1, 0.25, 1.0)
SECONDS = {0.01: 1.0, 0.1: 10.0, 0.25: 25.0, 1.0: 100.0}
COUNT = 3  # configurations; a place is (fraction, configuration)


def outlook_after(*seen, seconds=SECONDS, left_out=()):
    """What every configuration takes is known; of configuration 1 these fractions were measured."""
    space = space_of(COUNT, fractions=FRACTIONS)
    times = gaussian_of_times(space, np.repeat([seconds[one] for one in FRACTIONS], COUNT))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}
    measured = [measurement(0, 1.0, score=1.0, time=100.0)]
    measured += [measurement(1, one, score=1.0, time=seconds[one]) for one in seen]
    gone = {place(1, one) for one in (*seen, *left_out)}
    belief = belief_of(problem_of(space), quantities, measured)
    return outlook_of(belief, [number for number in range(COUNT * len(FRACTIONS)) if number not in gone])


def place(position, fraction):
    return FRACTIONS.index(fraction) * COUNT + position


def chosen(outlook, wanted=(1, 1.0), times=5.0):
    """Where the highest score is, when the inner score wants one place most."""

    def scores(outlook):
        is_wanted = (outlook.candidates.positions == wanted[0]) & (outlook.candidates.fractions == wanted[1])
        return np.where(is_wanted, 9.0, 1.0)

    best = int(LookFirst(Given(scores), times).score(outlook).argmax())
    return int(outlook.candidates.positions[best]), float(outlook.candidates.fractions[best])


def test_before_a_first_run_on_all_of_the_data_the_largest_share_for_a_fifth_of_its_price():
    assert chosen(outlook_after()) == (1, 0.1)
    assert chosen(outlook_after(), times=4.0) == (1, 0.25)
    assert chosen(outlook_after(), times=50.0) == (1, 0.01)


def test_what_was_paid_for_another_configuration_is_no_look():
    """Configuration 0 was run on all of the data, for 100 s."""
    assert chosen(outlook_after(), wanted=(2, 1.0)) == (2, 0.1)


def test_after_a_look_the_trial_is_made():
    assert chosen(outlook_after(0.25)) == (1, 1.0)


def test_a_look_that_was_much_cheaper_than_a_fifth_is_followed_by_a_larger_one():
    assert chosen(outlook_after(0.01)) == (1, 0.1)


def test_a_share_that_was_looked_at_is_not_looked_at_from_below():
    """10 s were paid of 100: still a leap, and no share between the two is cheap enough."""
    assert chosen(outlook_after(0.1)) == (1, 1.0)


def test_where_smaller_shares_save_little_the_trial_is_made():
    flat = {0.01: 50.0, 0.1: 60.0, 0.25: 70.0, 1.0: 100.0}
    assert chosen(outlook_after(seconds=flat)) == (1, 1.0)


def test_a_look_that_failed_or_is_under_way_is_not_made_again():
    assert chosen(outlook_after(left_out=[0.1])) == (1, 0.01)
    assert chosen(outlook_after(left_out=[0.01, 0.1])) == (1, 1.0)


def test_small_shares_are_no_leaps():
    assert chosen(outlook_after(), wanted=(1, 0.01)) == (1, 0.01)


@pytest.mark.parametrize("tied", [[(1, 1.0), (2, 1.0)], [(1, 1.0), (2, 0.01)]])
def test_of_trials_with_one_score_each_has_its_look(tied):
    outlook = outlook_after()
    wanted = np.isin(np.arange(len(outlook.candidates)), [place(*one) for one in tied])
    scores = LookFirst(Given(lambda _: np.where(wanted, 9.0, 1.0))).score(outlook)
    best = np.nonzero(scores == 9.0)[0]
    places = zip(outlook.candidates.positions[best].tolist(), outlook.candidates.fractions[best].tolist(), strict=True)
    assert sorted(places) == sorted((one, 0.1 if fraction == 1.0 else fraction) for one, fraction in tied)
    assert set(scores.tolist()) == {1.0, 9.0}
