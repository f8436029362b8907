"""The chance of running: 1 until something fails, then lower the nearer the failure."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.decisions.belief import ChanceOfRunning

NONE = np.empty((0, 2))
unit = st.floats(0.0, 1.0)
rows = st.lists(st.tuples(unit, st.floats(0.01, 1.0)), min_size=1, max_size=6).map(np.array)


def line(*places, fraction=1.0):
    return np.array([[place, fraction] for place in places])


@given(rows, rows)
def test_everything_runs_as_long_as_nothing_has_failed(ran, asked):
    np.testing.assert_array_equal(ChanceOfRunning.from_trials(ran, NONE).at(asked), 1.0)


def test_the_chance_rises_with_the_distance_from_a_failure():
    chance = ChanceOfRunning.from_trials(NONE, line(0.0)).at(line(0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    assert (np.diff(chance) > 0).all()
    assert chance[0] < 0.5 < chance[-1]


def test_a_failure_at_another_fraction_counts_less_the_farther_the_fraction_in_logs():
    failed = line(0.5, fraction=1.0)
    chance = [ChanceOfRunning.from_trials(NONE, failed).at(line(0.5, fraction=f))[0] for f in (1.0, 0.5, 0.1, 0.01)]
    assert (np.diff(chance) > 0).all()


def test_one_failure_and_one_success_at_the_same_place_leave_it_open():
    """Alike in weight, they cancel towards the prior, which expects success."""
    both = ChanceOfRunning.from_trials(line(0.5), line(0.5)).at(line(0.5))[0]
    only_failed = ChanceOfRunning.from_trials(NONE, line(0.5)).at(line(0.5))[0]
    assert only_failed < 0.5 < both < 1.0


@given(rows, rows, rows)
def test_the_chance_is_a_probability_that_never_is_certain(ran, failed, asked):
    chance = ChanceOfRunning.from_trials(ran, failed).at(asked)
    assert (chance > 0.0).all()
    assert (chance < 1.0).all()


@given(rows, rows, rows, rows)
def test_one_more_failure_lowers_the_chance_everywhere_and_one_more_success_raises_it(ran, failed, more, asked):
    before = ChanceOfRunning.from_trials(ran, failed).at(asked)
    assert (ChanceOfRunning.from_trials(ran, np.vstack([failed, more])).at(asked) <= before + 1e-12).all()
    assert (ChanceOfRunning.from_trials(np.vstack([ran, more]), failed).at(asked) >= before - 1e-12).all()


def test_far_from_every_trial_a_job_is_expected_to_run_but_not_for_certain():
    chance = ChanceOfRunning.from_trials(line(0.0), line(1.0)).at(line(100.0))[0]
    assert 0.9 < chance < 1.0
