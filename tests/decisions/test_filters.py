"""What each filter keeps; what all of them promise is in test_filter_contract."""

import math

import numpy as np
import pytest

from decisions.fakes import (
    IDENTITY,
    LOG,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    space_of,
)
from trimtuner.decisions.acquisition import ConstrainedExpectedAccuracy
from trimtuner.decisions.entropy import ConstrainedAccuracyOfIncumbent
from trimtuner.decisions.filters import (
    BestIncumbentToCome,
    ClimbAsEarned,
    HighestConstrainedAccuracy,
    KeepAll,
    KeepRandom,
    SearchByCMAES,
    SearchByDirect,
)
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice
from trimtuner.problem.space import Space

SIDE = 30


def grid_outlook(fractions=(1.0,)):
    """A square grid of configurations."""
    space = Space({"a": Choice(range(SIDE)), "b": Choice(range(SIDE))}, fractions=fractions)
    belief = belief_of(
        problem_of(space),
        {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, gaussian_over(space, 0.0))},
        [Measurement({"a": 0, "b": 0}, 1.0, {"score": 0.0, "time": 1.0})],
    )
    return outlook_of(belief)


def hill(outlook, *top):
    """Minus the squared distance from the top, and a count of how often it was asked."""
    heights = -((outlook.candidates.rows[:, : len(top)] - np.array(top)) ** 2).sum(axis=1)
    asked = []

    def score_of(positions):
        asked.extend(positions.tolist())
        return heights[positions]

    return heights, asked, score_of


def timed_outlook(log_times, spent):
    space = space_of(len(log_times), fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, log_times, 0.0)),
    }
    return outlook_of(belief_of(problem_of(space), quantities, spent=spent))


def keep(one, outlook, score_of=None, seed=0):
    return one.keep(outlook, score_of or (lambda positions: np.zeros(len(positions))), np.random.default_rng(seed))


def test_keep_all_keeps_all():
    np.testing.assert_array_equal(keep(KeepAll(), timed_outlook([0.0] * 7, 1.0)), np.arange(7))


# --- CEA


def test_the_highest_constrained_accuracies_are_kept():
    generator = np.random.default_rng(3)
    space = space_of(40, [3600.0] * 40, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, generator.uniform(0.1, 1.0, 40))),
        "time": (LOG, gaussian_over(space, generator.normal(size=40))),
    }
    belief = belief_of(problem_of(space, "cost <= 1"), quantities, [measurement(0, 0.5, score=0.1, time=1.0, cost=1.0)])
    outlook = outlook_of(belief)
    kept = keep(HighestConstrainedAccuracy(0.25), outlook)
    scores = ConstrainedExpectedAccuracy().score(outlook)
    assert len(kept) == 10
    assert scores[kept].min() > np.delete(scores, kept).max()


def test_candidates_alike_in_constrained_accuracy_are_kept_at_random():
    outlook = timed_outlook([0.0] * 50, 1.0)
    first, second = (keep(HighestConstrainedAccuracy(0.1), outlook, seed=seed) for seed in (0, 1))
    assert len(first) == len(second) == 5
    assert set(first.tolist()) != set(second.tolist())
    assert set(first.tolist()) != set(range(5))


@pytest.mark.parametrize("share", [0.07, 0.1, 0.28, 0.29, 0.55, 0.57])
def test_a_share_of_a_hundred_is_a_whole_number_whatever_the_rounding(share):
    """0.07 × 100 is 7.000000000000001 to the machine."""
    assert len(keep(KeepRandom(share), timed_outlook([0.0] * 100, 1.0))) == round(100 * share)


# --- climbing


def test_climbing_keeps_what_costs_at_most_its_share_of_what_was_spent():
    """A tenth of 1000 s."""
    outlook = timed_outlook(np.log([1.0, 50.0, 99.0, 101.0, 800.0]), spent=1000.0)
    np.testing.assert_array_equal(keep(ClimbAsEarned(0.1), outlook), [0, 1, 2])


def test_climbing_keeps_what_costs_up_to_four_times_the_cheapest_however_little_was_spent():
    outlook = timed_outlook(np.log([100.0, 398.0, 402.0, 101.0]), spent=1e-6)
    np.testing.assert_array_equal(keep(ClimbAsEarned(0.1), outlook), [0, 1, 3])


@pytest.mark.parametrize(("on_half", "kept"), [(33.0, 3), (34.0, 6)])
def test_where_the_smallest_fraction_costs_more_than_a_third_of_a_full_run_nothing_has_to_be_earned(on_half, kept):
    """Three configurations at half and at all of the data, where each takes 100 s; next to nothing was spent."""
    space = space_of(3)
    times = gaussian_of_times(space, np.array([on_half] * 3 + [100.0] * 3))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}
    outlook = outlook_of(belief_of(problem_of(space), quantities, spent=1e-6))
    np.testing.assert_array_equal(keep(ClimbAsEarned(0.1, times_cheapest=2.0), outlook), np.arange(kept))
    assert len(keep(ClimbAsEarned(0.1, times_cheapest=2.0, dear=0.5), outlook)) == 3


def test_a_trial_whose_price_is_a_guess_waits():
    """Both are expected at about 50 s; 1.28 deviations of the doubtful one are a factor of 3.6."""
    space = space_of(3, fractions=(1.0,))
    times = gaussian_over(space, np.log([1.0, 50.0, 50.0]), np.array([0.0, 0.0, 1.0]))
    belief = belief_of(
        problem_of(space), {"score": (IDENTITY, gaussian_over(space, 0.0)), "time": (LOG, times)}, spent=1000.0
    )
    np.testing.assert_array_equal(keep(ClimbAsEarned(0.1), outlook_of(belief)), [0, 1])


def test_the_more_was_spent_the_higher_one_may_climb():
    log_times = np.linspace(0.0, 10.0, 21)
    counts = [len(keep(ClimbAsEarned(0.3), timed_outlook(log_times, spent))) for spent in (1.0, 100.0, 1e3, 1e6)]
    assert (np.diff(counts) > 0).all()
    assert counts[-1] == 21


# --- searching


@pytest.mark.parametrize("top", [(0.31, 0.72), (0.9, 0.13), (0.5, 0.5)])
@pytest.mark.parametrize("search", [SearchByDirect(0.15), SearchByCMAES(0.15)], ids=["direct", "cma-es"])
def test_a_search_of_a_smooth_hill_finds_one_of_the_best_two_percent(search, top):
    outlook = grid_outlook()
    heights, _, score_of = hill(outlook, *top)
    for seed in range(3):
        kept = keep(search, outlook, score_of, seed)
        rank = int((heights > heights[kept].max()).sum())
        assert rank < 0.02 * len(heights)


@pytest.mark.parametrize("search", [SearchByDirect(0.15), SearchByCMAES(0.15)], ids=["direct", "cma-es"])
def test_a_search_scores_no_candidate_twice_and_keeps_exactly_those_it_scored(search):
    outlook = grid_outlook()
    _, asked, score_of = hill(outlook, 0.3, 0.6)
    kept = keep(search, outlook, score_of)
    assert len(set(asked)) == len(asked) <= math.ceil(0.15 * SIDE**2)
    assert sorted(asked) == kept.tolist()


@pytest.mark.parametrize("search", [SearchByDirect(0.1), SearchByCMAES(0.1)], ids=["direct", "cma-es"])
def test_a_search_closes_in_on_the_top_better_than_chance(search):
    outlook = grid_outlook()
    heights, _, score_of = hill(outlook, 0.2, 0.3)
    kept = keep(search, outlook, score_of)
    assert heights[kept].mean() > heights.mean()


# --- Γ of Fabulinus


def test_the_configurations_whose_test_promises_the_best_incumbent_are_kept_at_all_of_their_fractions():
    """Thesis 4.2.2 and Algorithm 5: β of the x by Eq. 4.5's CEA, then every s.

    Two targets are worth the same, and meet the limit with Φ(1). A test of configuration 3 at half the data says
    nearly all about the time of target 3: if it comes out as expected, P rises to nearly 1. All others say nothing.
    """
    space = space_of(5)
    covariance = np.eye(10)
    covariance[3, 8] = covariance[8, 3] = 0.99
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 1.0, 1e-9)),
        "time": (LOG, gaussian_over(space, np.full(10, -1.0) - 0.8 * np.log(np.repeat([0.5, 1.0], 5)), covariance)),
    }
    belief = belief_of(problem_of(space, "time <= 1s"), quantities, [measurement(0, 0.5, score=0.0, time=1.0)])
    one = BestIncumbentToCome(0.2, ConstrainedAccuracyOfIncumbent(0.99))
    candidates = outlook_of(belief, [0, 1, 2, 3, 4, 8])  # all at half of the data, configuration 3 at all of it, too
    assert keep(one, candidates).tolist() == [3, 5]
    two = keep(BestIncumbentToCome(0.4, one.incumbent), candidates).tolist()
    assert len(two) == 3
    assert {3, 5} < set(two)
