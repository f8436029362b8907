"""Asking: pure in the history, never what was tested, within the budget; believed by fakes whose numbers are known."""

import copy

import numpy as np
import pytest

from decisions.fakes import (
    Given,
    KnownSurrogate,
    LearningSurrogate,
    SharedSlope,
    failed,
    gaussian_of_times,
    gaussian_over,
    history_of,
    problem_of,
    ran,
    space_of,
    trial,
)
from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.entropy import InformationAboutBest
from trimtuner.decisions.filters import HighestConstrainedAccuracy, KeepAll, KeepRandom
from trimtuner.errors import SearchOver
from trimtuner.problem.history import History, Measurement, Outcome, Trial
from trimtuner.problem.parameters import Choice, Float
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import POOL_SIZE, Space
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import TRIMTUNER, TRIMTUNER_DT, TRIMTUNER_GP
from trimtuner.tuning.tuner import ask, believe, pool_for

THREE = (0.1, 0.5, 1.0)
RECIPES = {"default": TRIMTUNER, "paper": TRIMTUNER_GP}
every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)


def accuracy_problem(count, *constraints, prices=None, fractions=THREE, budget=None, snapshots=False):
    space = space_of(count, prices, fractions, snapshots)
    return problem_of(space, *constraints, maximize="accuracy", budget=budget)


def smooth_surrogate(problem, scale=1.0):
    """A prior under which neighbours in x and the fractions of one configuration go together; it learns."""
    count, fractions = len(problem.space.pool()), problem.space.fractions
    x = np.tile(np.arange(count) / count, len(fractions))
    matrix = scale * np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2) + 0.01 * np.eye(len(x))
    return LearningSurrogate(gaussian_over(problem.space, 0.0, matrix, noise=0.01))


def report(one: Trial):
    return {"accuracy": 0.3 + 0.04 * one.config["x"] * one.fraction, "time": 10.0 * one.fraction}


def started(problem, count=2):
    """A history of a few trials at the smallest fraction, enough to end the designs' first steps."""
    smallest = problem.space.fractions[0]
    price = problem.space.price_per_hour({"x": 0})
    cost = {} if price is None else {"cost": 10.0 * price / 3600.0}
    return history_of(*[ran(n, n, smallest, accuracy=0.4 + 0.1 * n, time=10.0, **cost) for n in range(count)])


class EndedDesign:
    """A design that is over before it begins."""

    def next_step(self, problem, pool, history, seed):  # noqa: ARG002
        return None


def simple(problem, acquisition, filter=KeepAll(), **parts):  # noqa: A002, B008
    surrogate = parts.pop("surrogate", None) or smooth_surrogate(problem)
    return TRIMTUNER_GP.but(surrogate=surrogate, design=EndedDesign(), acquisition=acquisition, filter=filter, **parts)


# --- purity


@every_recipe
def test_the_same_history_and_seed_give_the_same_trial_and_the_history_is_unchanged(recipe):
    problem = accuracy_problem(8, "cost <= 0.02", prices=[3.6] * 8)
    recipe = recipe.but(surrogate=smooth_surrogate(problem), design=EndedDesign())
    history = started(problem, 3)
    before = copy.deepcopy(history)
    first = ask(problem, recipe, history, 5)
    assert ask(problem, recipe, history, 5) == first
    assert history == before


@pytest.mark.parametrize("recipe", [TRIMTUNER, TRIMTUNER_GP, TRIMTUNER_DT], ids=["default", "gp", "dt"])
def test_the_shipped_models_too_ask_the_same_twice(recipe):
    problem = accuracy_problem(8, "cost <= 0.02", prices=[3.6] * 8)
    history = started(problem, 4)
    assert ask(problem, recipe, history, 3) == ask(problem, recipe, copy.deepcopy(history), 3)


def test_a_trial_is_numbered_by_the_history_and_says_where_it_comes_from():
    problem = accuracy_problem(8)
    recipe = TRIMTUNER.but(surrogate=smooth_surrogate(problem))
    first = ask(problem, recipe, History(), 0)
    assert (first.number, first.origin) == (0, "design")
    later = ask(problem, recipe, started(problem, 3), 0)
    assert (later.number, later.origin) == (3, "model")


def test_a_belief_at_hand_spares_the_fit_and_changes_nothing():
    class NeverFits:
        def fit(self, rows, targets, scale, generator):  # noqa: ARG002
            raise AssertionError("a fit, though the belief was given")

    problem = accuracy_problem(8, "cost <= 0.02", prices=[3.6] * 8)
    for recipe in RECIPES.values():
        able = recipe.but(surrogate=smooth_surrogate(problem), design=EndedDesign())
        history = started(problem, 3)
        belief = believe(problem, able, history, 5)
        without = ask(problem, able, history, 5)
        assert ask(problem, able.but(surrogate=NeverFits()), history, 5, belief) == without


def test_as_long_as_nothing_is_measured_and_the_design_is_over_the_seed_draws_at_the_smallest_fraction():
    problem = accuracy_problem(4)
    recipe = simple(problem, Given(lambda o: np.ones(len(o.candidates))))
    history, asked = History(), []
    for _ in range(4):
        one = ask(problem, recipe, history, 0)
        assert (one.fraction, one.origin) == (0.1, "random")
        asked.append(one.config["x"])
        history = history.with_asked(one)
    assert sorted(asked) == [0, 1, 2, 3]


# --- what is chosen


def test_the_candidate_with_the_highest_score_is_asked():
    problem = accuracy_problem(8)

    def nearer_is_better(outlook):
        return -np.abs(outlook.candidates.positions - 5) - np.abs(outlook.candidates.fractions - 0.5)

    asked = ask(problem, simple(problem, Given(nearer_is_better)), started(problem), 0)
    assert (asked.config, asked.fraction) == ({"x": 5}, 0.5)


def test_between_candidates_of_equal_score_the_seed_draws():
    problem = accuracy_problem(8)
    flat = simple(problem, Given(lambda outlook: np.zeros(len(outlook.candidates))))
    asked = [ask(problem, flat, started(problem), seed) for seed in range(30)]
    assert len({(one.config["x"], one.fraction) for one in asked}) > 10


def test_only_what_the_filter_keeps_is_scored():
    problem = accuracy_problem(10)
    outlooks = []
    acquisition = Given(lambda outlook: np.arange(len(outlook.candidates)), outlooks)
    ask(problem, simple(problem, acquisition, KeepRandom(0.25)), started(problem), 0)
    assert [len(outlook.candidates) for outlook in outlooks] == [7]  # a quarter of 30 places less 2 tested


def test_snapshots_on_the_way_are_asked_for_where_they_are_offered_and_not_yet_known():
    def largest(outlook):
        return outlook.candidates.fractions - 0.01 * outlook.candidates.positions

    for snapshots, expected in ((True, (0.5,)), (False, ())):
        problem = accuracy_problem(4, snapshots=snapshots)
        recipe = simple(problem, Given(largest), takes_snapshots=True)
        asked = ask(problem, recipe, started(problem), 0)
        assert (asked.config, asked.fraction, asked.snapshots) == ({"x": 0}, 1.0, expected)


def test_a_recipe_that_takes_no_snapshots_asks_for_none_after_its_design():
    problem = accuracy_problem(4, snapshots=True)
    recipe = simple(problem, Given(lambda outlook: outlook.candidates.fractions), takes_snapshots=False)
    assert ask(problem, recipe, started(problem), 0).snapshots == ()


# --- never twice


@every_recipe
@pytest.mark.parametrize("seed", range(3))
def test_a_search_asks_every_place_once_and_then_is_over(recipe, seed):
    """Some fail, some stay under way for a while; a place is measured, failed or under way, and never asked again."""
    problem = accuracy_problem(4, "cost <= 0.005", prices=[3.6] * 4)
    recipe = recipe.but(surrogate=smooth_surrogate(problem))
    generator = np.random.default_rng(seed)
    history, seen = History(), []
    for number in range(12):
        one = ask(problem, recipe, history, seed)
        seen.append((one.config["x"], one.fraction))
        history = history.with_asked(one)
        if number > 0 and generator.random() < 0.3:
            continue
        outcome = (
            outcome_of_failure(problem, one, "oom", {"time": 1.0})
            if number > 0 and generator.random() < 0.3
            else outcome_of_success(problem, one, report(one), {})
        )
        history = history.with_told(outcome)
    assert len(set(seen)) == 12
    with pytest.raises(SearchOver, match="every configuration has been tested"):
        ask(problem, recipe, history, seed)


def test_a_fraction_that_a_run_under_way_will_pass_is_not_asked_for():
    problem = accuracy_problem(1, snapshots=True)
    pending = [trial(0, 0, 0.5, snapshots=(0.1,))]
    recipe = simple(problem, Given(lambda o: np.ones(len(o.candidates))))
    asked = ask(problem, recipe, history_of(pending=pending), 0)
    assert asked.fraction == 1.0


def test_a_preempted_place_may_be_asked_again():
    problem = accuracy_problem(1, fractions=(0.5, 1.0))
    done = history_of(ran(0, 0, 0.5, accuracy=0.5, time=1.0), failed(1, 0, 1.0, "preempted"))
    asked = ask(problem, simple(problem, Given(lambda o: np.ones(len(o.candidates)))), done, 0)
    assert (asked.config, asked.fraction) == ({"x": 0}, 1.0)


# --- budget


def budgeted(budget, pending=(), variance=0.0):
    """Every place costs 1 USD at 0.1, 5 at 0.5 and 10 at full data, in the median; 2 USD are spent."""
    problem = accuracy_problem(4, prices=[3600.0] * 4, budget=budget)
    known = gaussian_of_times(problem.space, np.repeat([1.0, 5.0, 10.0], 4), variance)
    anything = gaussian_over(problem.space, 0.0)
    history = history_of(ran(0, 0, 0.1, accuracy=0.5, time=2.0, cost=2.0), pending=pending)
    recipe = simple(problem, ExpectedCost(), surrogate=KnownSurrogate(share=anything, positive=known))
    return problem, recipe, history


@pytest.mark.parametrize(("budget", "fraction"), [(20.0, 1.0), (11.0, 0.5), (6.9, 0.1), (None, 1.0)])
def test_the_dearest_trial_asked_is_one_that_the_rest_of_the_budget_affords(budget, fraction):
    assert ask(*budgeted(budget), 0).fraction == fraction


def test_pending_trials_are_paid_for_before_the_next_is_chosen():
    """15 - 2 spent = 13 affords full data; with one of 5 USD under way, 8 do not."""
    assert ask(*budgeted(15.0), 0).fraction == 1.0
    assert ask(*budgeted(15.0, [trial(1, 1, 0.5)]), 0).fraction == 0.5


@pytest.mark.parametrize("pending", [(), (trial(1, 1, 1.0),)])
def test_where_nothing_is_affordable_the_search_is_over(pending):
    budget = 2.9 + 10.0 * len(pending)
    with pytest.raises(SearchOver, match=r"0\.9 left, and the cheapest trial may cost 1;"):
        ask(*budgeted(budget, pending), 0)


def test_a_trial_that_may_well_cost_more_than_is_left_is_not_asked():
    """In the median 10 USD of 13 left, but more than 13 in one case of ten or more when the deviation is 0.5."""
    assert ask(*budgeted(15.0, variance=0.01), 0).fraction == 1.0
    assert ask(*budgeted(15.0, variance=0.25), 0).fraction == 0.5


# --- thinning


SIDE = 80


def large_problem(fractions):
    """6400 configurations, of which the first is measured at the smallest fraction."""
    space = Space({"x": Choice(range(SIDE)), "y": Choice(range(SIDE))}, fractions=fractions)
    one = Trial(0, {"x": 0, "y": 0}, fractions[0])
    seen = (Measurement(one.config, fractions[0], {"accuracy": 0.5, "time": 1.0}),)
    return problem_of(space, maximize="accuracy"), history_of(Outcome(one, seen, None, 0.0, 1.0))


def test_thinning_keeps_the_strongest_movers_and_as_many_as_can_be_scored():
    """With f = w·ℓ and equal costs, the larger ℓ at the candidate, the farther its answer moves every contender."""
    problem, history = large_problem((1.0,))

    def loading(rows):
        return 0.1 + SIDE * rows[:, 0] + rows[:, 1]

    surrogate = KnownSurrogate(share=SharedSlope(loading), positive=SharedSlope(lambda rows: np.zeros(len(rows))))
    outlooks = []
    acquisition = Given(lambda outlook: loading(outlook.candidates.rows), outlooks)
    asked = ask(problem, simple(problem, acquisition, surrogate=surrogate), history, 0)
    (scored,) = outlooks
    everyone = np.sort(loading(np.column_stack([problem.space.pool().rows, np.ones(SIDE**2)])))
    np.testing.assert_array_equal(np.sort(loading(scored.candidates.rows)), everyone[-4096:])
    assert asked.config == {"x": SIDE - 1, "y": SIDE - 1}


def test_thinning_weighs_what_a_candidate_moves_by_what_it_costs():
    """Alike in all but the cost, which grows with the fraction: the cheap are kept."""
    problem, history = large_problem((0.1, 1.0))
    surrogate = KnownSurrogate(
        share=SharedSlope(lambda rows: np.ones(len(rows))), positive=SharedSlope(lambda rows: np.zeros(len(rows)))
    )
    outlooks = []
    acquisition = Given(lambda outlook: np.zeros(len(outlook.candidates)), outlooks)
    ask(problem, simple(problem, acquisition, surrogate=surrogate), history, 0)
    np.testing.assert_array_equal(outlooks[0].candidates.fractions, 0.1)


def test_what_can_be_scored_is_not_thinned():
    problem = accuracy_problem(20)
    outlooks = []
    ask(problem, simple(problem, Given(lambda o: np.zeros(len(o.candidates)), outlooks)), started(problem), 0)
    assert len(outlooks[0].candidates) == 20 * 3 - 2 < tuner._SCORED_AT_MOST


# --- pools


def continuous_problem():
    return problem_of(Space({"rate": Float(1e-5, 1e-1, scale="log")}, fractions=(0.5, 1.0)), maximize="accuracy")


def told(number, rate, fraction, accuracy):
    one = Trial(number, {"rate": rate}, fraction)
    return Outcome(one, (Measurement(one.config, fraction, {"accuracy": accuracy, "time": 1.0}),), None, 0.0, 1.0)


def test_a_pool_of_a_continuous_space_holds_what_was_tested_failed_or_is_under_way():
    problem = continuous_problem()
    history = History(
        (
            told(0, 0.0123, 0.5, 0.8),
            Outcome(Trial(1, {"rate": 0.0456}, 0.5), (), "oom", 0.0, 1.0),
        ),
        (Trial(2, {"rate": 0.000789}, 1.0),),
        3,
    )
    pool = pool_for(problem, history, 0)
    for rate in (0.0123, 0.0456, 0.000789):
        assert pool.configuration(pool.position({"rate": rate})) == {"rate": rate}


def test_a_pool_of_a_continuous_space_closes_in_on_the_best_measured():
    problem = continuous_problem()
    history = History((told(0, 0.01, 0.5, 0.9), told(1, 0.0001, 0.5, 0.2)), (), 2)
    empty, informed = (pool_for(problem, one, 0) for one in (History(), history))

    def near(pool):
        return sum(0.009 < pool.configuration(position)["rate"] < 0.011 for position in range(len(pool)))

    assert len(empty) == POOL_SIZE
    assert near(informed) > near(empty)


def test_the_best_measured_are_within_the_limits_where_any_is():
    problem = problem_of(continuous_problem().space, "time <= 5s", maximize="accuracy")

    def timed(number, rate, accuracy, time):
        one = Trial(number, {"rate": rate}, 0.5)
        return Outcome(one, (Measurement(one.config, 0.5, {"accuracy": accuracy, "time": time}),), None, 0.0, time)

    history = History(tuple(timed(n, 0.001 * (n + 1), 0.1 * n, 1.0 if n < 6 else 9.0) for n in range(8)), (), 8)
    best = [configuration["rate"] for configuration in tuner._best_measured(problem, history)]
    np.testing.assert_allclose(best, [0.006, 0.005, 0.004, 0.003, 0.002])


def test_a_listed_space_is_its_own_pool():
    problem = accuracy_problem(7)
    assert pool_for(problem, started(problem), 0) is problem.space.pool()


def test_a_search_of_a_continuous_space_asks_within_it_and_never_the_same_twice():
    problem = continuous_problem()
    recipe = TRIMTUNER_DT.but(
        filter=HighestConstrainedAccuracy(0.02), acquisition=InformationAboutBest(samples=32) / ExpectedCost()
    )
    history, seen = History(), set()
    for _ in range(8):
        one = ask(problem, recipe, history, 2)
        problem.space.check(one.config)
        assert (one.config["rate"], one.fraction) not in seen
        seen.add((one.config["rate"], one.fraction))
        metrics = {"accuracy": 0.9 - 0.1 * abs(np.log10(one.config["rate"]) + 3.0), "time": one.fraction}
        history = history.with_asked(one).with_told(outcome_of_success(problem, one, metrics, {}))
