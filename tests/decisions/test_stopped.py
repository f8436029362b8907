"""Trials that were stopped for being over a limit: they took at least so long, and ran as far as is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from decisions.fakes import (
    KnownSurrogate,
    failed,
    gaussian_over,
    history_of,
    mixture,
    problem_of,
    ran,
    space_of,
)
from trimtuner.decisions import learning
from trimtuner.decisions.belief import Places
from trimtuner.decisions.learning import Stopped
from trimtuner.problem.history import OVER_LIMIT

SPACE = space_of(3, fractions=(1.0,))
ALIKE = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])  # the first two configurations are neighbours


def stopped_at(seconds):
    pool = SPACE.pool()
    return Stopped(Places.listed(pool, [({"x": 0}, 1.0)]), np.array([seconds]))


@given(st.floats(-2.0, 2.0))
def test_what_took_longer_than_this_is_taken_to_have_taken_as_long_as_is_then_to_be_expected(bound):
    """E[f | f > b] by numerical integration; what it says of a neighbour is half of it, and of a stranger nothing."""
    known = gaussian_over(SPACE, 0.0, ALIKE, noise=1e-9)
    after = stopped_at(np.exp(bound)).heard_by(mixture(known), growth=0.0)
    above = quad(lambda f: f * norm.pdf(f), bound, 12.0)[0] / norm.sf(bound)
    mean = after.predict(Places.product(SPACE.pool(), (1.0,)).rows).mean
    assert mean == pytest.approx([above, 0.5 * above, 0.0], abs=1e-6)


def test_a_bound_that_nobody_doubted_teaches_next_to_nothing():
    known = gaussian_over(SPACE, 0.0, ALIKE)
    mean = stopped_at(np.exp(-9.0)).heard_by(mixture(known), 0.0).predict(known.rows).mean
    assert mean == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_growth_with_the_data_is_taken_off_as_it_is_off_what_is_measured():
    """On a tenth of the data it took 10 s; where time grows with the data, that is 100 s on all of it."""
    space = space_of(1, fractions=(0.1, 1.0))
    known = gaussian_over(space, np.log(100.0), 1.0, noise=1e-9)
    stopped = Stopped(Places.listed(space.pool(), [({"x": 0}, 0.1)]), np.array([10.0]))
    after = stopped.heard_by(mixture(known), growth=1.0).predict(known.rows).mean
    assert after[0] == pytest.approx(np.log(100.0) + np.sqrt(2.0 / np.pi), abs=1e-6)  # of what is above its mean


def learn(*outcomes):
    problem = problem_of(SPACE, "time <= 50s")
    known = gaussian_over(SPACE, np.log(50.0), ALIKE)
    return learning.learn(problem, SPACE.pool(), history_of(*outcomes), learning.Way(KnownSurrogate(known, known)), 0)


def over(number, x, seconds=60.0):
    return failed(number, x, 1.0, OVER_LIMIT, time=seconds)


def test_a_stopped_run_breaks_its_limit_for_certain_and_makes_its_neighbour_doubtful_but_fails_nothing():
    belief = learn(ran(0, 2, 1.0, score=1.0, time=40.0), over(1, 0))
    before = learn(ran(0, 2, 1.0, score=1.0, time=40.0))
    assert belief.feasible_at_targets[0] == 0.0
    assert belief.feasible_at_targets[1] < before.feasible_at_targets[1]
    assert belief.running_at_targets[1] == before.running_at_targets[1] == 1.0


def test_a_run_that_failed_otherwise_says_nothing_about_time_and_makes_its_neighbours_doubtful():
    belief = learn(ran(0, 2, 1.0, score=1.0, time=40.0), failed(1, 0, 1.0, "oom", time=60.0))
    before = learn(ran(0, 2, 1.0, score=1.0, time=40.0))
    assert belief.chances_at_targets[0, 1] == before.chances_at_targets[0, 1]
    assert belief.running_at_targets[1] < 1.0


def test_what_a_stopped_run_cost_at_full_data_counts_as_spent_there():
    belief = learn(ran(0, 2, 1.0, score=1.0, time=40.0), over(1, 0))
    assert (belief.spent, belief.spent_at_targets) == (100.0, 100.0)


def test_stopped_runs_end_the_limits_say_on_how_time_grows():
    """60 s on a sixteenth: a limit of 120 s says share^0.25, until two full runs have broken it.

    Else small shares would go on seeming to save nothing, and one full run after another would be stopped.
    """
    space = space_of(3, fractions=(0.0625, 1.0))
    known = gaussian_over(space, 4.0, 1.0)
    way = learning.Way(KnownSurrogate(known, known), time_growth=learning.WithinLimits())
    first = ran(0, 2, 0.0625, score=1.0, time=60.0)
    growths = [
        learning.learn(problem_of(space, "time <= 120s"), space.pool(), history, way, 0).quantity_of("time").growth
        for history in (history_of(first), history_of(first, over(1, 2, 144.0), over(2, 1, 144.0)))
    ]
    assert growths == pytest.approx([0.25, 0.8])
