"""Designs: the trials before there is a model, and what becomes of them when some fail."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, qmc

from decisions.fakes import failed, history_of, problem_of, ran, space_of, trial
from trimtuner.decisions.designs import (
    AcrossFractions,
    AsLongAs,
    CheapStart,
    LatinHypercube,
    RandomSearch,
    WhileCheap,
    latin_order,
    latin_points,
)
from trimtuner.problem.history import History, Trial
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import Pool, Space

PAPER = (1 / 60, 0.1, 0.25, 0.5, 1.0)
REPORT = {"accuracy": 0.5, "time": 10.0}
seeds = st.integers(0, 10_000)


def next_trial(design, problem, history, seed=0):
    pool = problem.space.pool()
    step = design.next_step(problem, pool, history, seed)
    if step is None:
        return None
    return Trial(history.next_number, pool.configuration(step.position), step.fraction, step.snapshots, "design")


def run_design(design, problem, seed=0, fails=lambda _: False, reports_snapshots=True, at_most=50):
    """Every trial of the design, told one by one; and the history at its end."""
    history, trials = History(), []
    for _ in range(at_most):
        one = next_trial(design, problem, history, seed)
        if one is None:
            break
        trials.append(one)
        if fails(one):
            outcome = outcome_of_failure(problem, one, "oom", {"time": 1.0})
        else:
            snapshots = dict.fromkeys(one.snapshots, REPORT) if reports_snapshots else {}
            outcome = outcome_of_success(problem, one, REPORT, snapshots)
        history = history.with_asked(one).with_told(outcome)
    return trials, history


def accuracy_problem(count, prices=None, fractions=PAPER, snapshots=False, budget=None):
    return problem_of(space_of(count, prices, fractions, snapshots), maximize="accuracy", budget=budget)


def places(trials):
    return [(one.config["x"], one.fraction) for one in trials]


SIDE = 60  # steps of the fine grid


def grid_problem():
    """Two numbers from 60 to 119: less than a factor of 8, so that they are not taken in logs."""
    values = range(SIDE, 2 * SIDE)
    space = Space.from_configs([{"x": x, "y": y} for x in values for y in values])
    return problem_of(space, maximize="accuracy")


def assert_one_in_each_stratum(values, low, high, step):
    """The i-th smallest of n is in the i-th of n equal parts, but for what it moved to get on the grid."""
    shares = (np.sort(values) - low) / (high - low)
    edges = np.arange(len(shares)) / len(shares)
    half = 0.5 * step / (high - low) + 1e-9
    assert (shares >= edges - half).all()
    assert (shares <= edges + 1.0 / len(shares) + half).all()


# --- a few across fractions


@given(seeds)
def test_with_snapshots_one_run_at_half_the_data_measures_four_fractions_and_is_charged_once(seed):
    problem = accuracy_problem(20, [3600.0] * 20, snapshots=True)
    trials, history = run_design(AcrossFractions(), problem, seed)
    assert [(one.fraction, one.snapshots) for one in trials] == [(0.5, PAPER[:3])]
    assert [m.fraction for m in history.measurements] == list(PAPER[:4])
    assert history.spent == 10.0


@given(seeds)
def test_without_snapshots_one_configuration_is_run_at_four_fractions_from_the_smallest(seed):
    trials, history = run_design(AcrossFractions(), accuracy_problem(20, [3600.0] * 20), seed)
    assert [one.fraction for one in trials] == list(PAPER[:4])
    assert len({one.config["x"] for one in trials}) == 1
    assert history.spent == 40.0


def test_the_configuration_is_drawn_by_the_seed():
    problem = accuracy_problem(20)
    chosen = [next_trial(AcrossFractions(), problem, History(), seed).config["x"] for seed in range(40)]
    again = [next_trial(AcrossFractions(), problem, History(), seed).config["x"] for seed in range(40)]
    assert chosen == again
    assert len(set(chosen)) > 10


@pytest.mark.parametrize("snapshots", [True, False])
@pytest.mark.parametrize("fractions", [PAPER, (0.5, 1.0), (1.0,)])
def test_a_configuration_that_fails_is_replaced(fractions, snapshots):
    problem = accuracy_problem(20, fractions=fractions, snapshots=snapshots)
    whole, _ = run_design(AcrossFractions(), problem)
    broken = whole[0].config
    trials, history = run_design(AcrossFractions(), problem, fails=lambda one: one.config == broken)
    assert trials[0].config == broken
    assert len({one.config["x"] for one in trials}) == 2
    assert [(one.fraction, one.snapshots) for one in trials[1:]] == [(one.fraction, one.snapshots) for one in whole]
    assert len(history.measurements) == len(fractions[:-1] or fractions)


def test_a_configuration_that_fails_at_the_last_fraction_is_replaced_from_the_smallest():
    problem = accuracy_problem(20)
    first = next_trial(AcrossFractions(), problem, History()).config
    trials, _ = run_design(AcrossFractions(), problem, fails=lambda one: one.config == first and one.fraction == 0.5)
    assert [one.fraction for one in trials] == [*PAPER[:4], *PAPER[:4]]


@pytest.mark.parametrize("reports_snapshots", [True, False])
@pytest.mark.parametrize("snapshots", [True, False])
def test_a_failure_after_the_design_does_not_start_it_again(snapshots, reports_snapshots):
    problem = accuracy_problem(20, snapshots=snapshots)
    trials, history = run_design(AcrossFractions(), problem, reports_snapshots=reports_snapshots)
    full = Trial(history.next_number, trials[0].config, 1.0)
    after = history.with_asked(full).with_told(outcome_of_failure(problem, full, "oom", {"time": 1.0}))
    assert next_trial(AcrossFractions(), problem, after) is None


def test_a_run_that_did_not_report_its_snapshots_is_not_run_again():
    problem = accuracy_problem(20, snapshots=True)
    trials, history = run_design(AcrossFractions(), problem, reports_snapshots=False)
    assert len(trials) == 1
    assert len(history.measurements) == 1


def test_measurements_from_elsewhere_complete_the_design():
    problem = accuracy_problem(20)
    first = next_trial(AcrossFractions(), problem, History()).config["x"]
    other = (first + 1) % 20
    history = history_of(*[ran(n, other, fraction, **REPORT) for n, fraction in enumerate(PAPER[:4])])
    assert next_trial(AcrossFractions(), problem, history) is None


def test_a_trial_under_way_is_not_asked_again():
    problem = accuracy_problem(20)
    first = next_trial(AcrossFractions(), problem, History())
    second = next_trial(AcrossFractions(), problem, History().with_asked(first))
    assert second.config == first.config
    assert second.fraction == PAPER[1]


def test_the_design_ends_when_every_configuration_has_failed():
    trials, history = run_design(AcrossFractions(), accuracy_problem(5), fails=lambda _: True)
    assert len(trials) == 5
    assert not history.measurements


@pytest.mark.parametrize("design", [AcrossFractions(3), AcrossFractions(share=0.14), AcrossFractions(2, 0.14)])
def test_several_configurations_are_run_one_after_the_other_from_the_smallest_fraction(design):
    """14 % of 20 are 2.8, so three."""
    trials, history = run_design(design, accuracy_problem(20))
    assert [one.fraction for one in trials] == list(PAPER[:4]) * 3
    assert [len({one.config["x"] for one in trials[start : start + 4]}) for start in (0, 4, 8)] == [1, 1, 1]
    assert len({one.config["x"] for one in trials}) == 3
    assert len(history.measurements) == 12


def test_the_count_decides_where_the_share_is_less():
    trials, _ = run_design(AcrossFractions(4, 0.05), accuracy_problem(20, fractions=(0.5, 1.0)))
    assert len(trials) == 4


@pytest.mark.parametrize("reports_snapshots", [True, False])
def test_with_snapshots_several_configurations_are_as_many_runs(reports_snapshots):
    trials, _ = run_design(
        AcrossFractions(3), accuracy_problem(20, snapshots=True), reports_snapshots=reports_snapshots
    )
    assert [(one.fraction, one.snapshots) for one in trials] == [(0.5, PAPER[:3])] * 3
    assert len({one.config["x"] for one in trials}) == 3


@pytest.mark.parametrize("seed", range(8))
def test_several_configurations_are_spread_over_the_space(seed):
    """Five of 100, which are a line: one in each fifth."""
    trials, _ = run_design(AcrossFractions(5), accuracy_problem(100, fractions=(0.5, 1.0)), seed)
    assert_one_in_each_stratum([one.config["x"] for one in trials], 0, 99, step=1)


def test_of_several_the_one_that_fails_is_replaced():
    problem = accuracy_problem(20, fractions=(0.5, 1.0))
    second = run_design(AcrossFractions(3), problem)[0][1].config
    trials, history = run_design(AcrossFractions(3), problem, fails=lambda one: one.config == second)
    assert len(trials) == len(set(places(trials))) == 4
    assert len(history.measurements) == 3


def test_of_several_those_measured_elsewhere_are_not_missing():
    problem = accuracy_problem(20, fractions=(0.5, 1.0))
    own = {one.config["x"] for one in run_design(AcrossFractions(3), problem)[0]}
    other = min(set(range(20)) - own)
    history = history_of(ran(0, other, 0.5, **REPORT))
    asked = 0
    while (one := next_trial(AcrossFractions(3), problem, history)) is not None:
        history = history.with_asked(one).with_told(outcome_of_success(problem, one, REPORT, {}))
        asked += 1
    assert asked == 2


# --- a Latin hypercube


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [4, 10])
def test_each_part_of_each_parameter_has_one_point_of_a_latin_hypercube(count, seed):
    problem = grid_problem()
    trials, _ = run_design(LatinHypercube(count), problem, seed)
    assert len(trials) == count
    for name in ("x", "y"):
        assert_one_in_each_stratum([one.config[name] for one in trials], SIDE, 2 * SIDE - 1, step=1)


@given(seeds, st.integers(1, 20), st.integers(1, 6))
def test_the_points_of_a_latin_hypercube_are_those_of_scipy(seed, count, dimension):
    theirs = qmc.LatinHypercube(dimension, seed=np.random.default_rng(seed))
    generator = np.random.default_rng(seed).spawn(1)[0]
    for _ in range(2):
        assert latin_points(count, dimension, generator).tolist() == theirs.random(count).tolist()


def test_a_latin_hypercube_is_followed_by_another():
    pool = grid_problem().space.pool()
    order = list(islice(latin_order(pool, (1.0,), 10, 0), 30))
    assert len(set(order)) == 30
    for start in (0, 10, 20):
        block = [pool.configuration(position) for position, _ in order[start : start + 10]]
        for name in ("x", "y"):
            assert_one_in_each_stratum([one[name] for one in block], SIDE, 2 * SIDE - 1, step=1)
    assert order[:10] != order[10:20]


@pytest.mark.parametrize("block", [5, 20])
def test_the_points_of_a_latin_hypercube_are_as_many_at_each_fraction(block):
    order = islice(latin_order(accuracy_problem(50).space.pool(), PAPER, block, 3), block)
    assert Counter(fraction for _, fraction in order) == dict.fromkeys(PAPER, block // 5)


def test_the_points_of_a_latin_hypercube_are_drawn_by_the_seed():
    problem = grid_problem()
    one, other = ([trial.config for trial in run_design(LatinHypercube(4), problem, seed)[0]] for seed in (1, 2))
    assert one != other
    assert one == [trial.config for trial in run_design(LatinHypercube(4), problem, 1)[0]]


@given(seeds, st.integers(1, 4), st.sampled_from([(1.0,), (0.5, 1.0), PAPER]), st.integers(1, 7))
def test_a_latin_order_names_every_place_once(seed, block, fractions, count):
    order = list(latin_order(accuracy_problem(count, fractions=fractions).space.pool(), fractions, block, seed))
    assert sorted(order) == sorted((position, fraction) for position in range(count) for fraction in fractions)


@pytest.mark.parametrize("seed", range(4))
def test_a_latin_order_treats_columns_alike_whatever_their_units(seed):
    """A thousand units wide and a thousandth: ten points are one in each tenth of both."""
    wide, narrow = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 1000, SIDE), np.linspace(5, 5.001, SIDE)))
    pool = Pool(np.column_stack([wide, narrow]), None, lambda position: {"x": position}, lambda one: (one["x"],))
    chosen = [position for position, _ in islice(latin_order(pool, (1.0,), 10, seed), 10)]
    assert_one_in_each_stratum(wide[chosen], 0, 1000, step=1000 / (SIDE - 1))
    assert_one_in_each_stratum(narrow[chosen], 5, 5.001, step=0.001 / (SIDE - 1))


DEAR = [3600.0] * 20  # USD per hour: a trial of 10 seconds costs 10 USD


@pytest.mark.parametrize(
    ("design", "budget", "runs"),
    [
        (LatinHypercube(5), None, 5),
        (LatinHypercube(5, initial_budget=15.0), 10.0, 5),  # a count goes before money
        (LatinHypercube(initial_budget=45.0), None, 5),  # 40 is less
        (LatinHypercube(initial_budget=50.0), None, 5),  # 50 is all of it
        (LatinHypercube(initial_budget=45.0), 1000.0, 5),  # an amount goes before a share
        (LatinHypercube(initial_budget=25.0), None, 4),  # fewer than four tell nothing about costs
        (LatinHypercube(), 550.0, 6),  # a tenth is 55
        (LatinHypercube(budget_share=0.5), 100.0, 5),
        (LatinHypercube(), None, 3),  # 3 % of 20 configurations at 5 fractions
        (LatinHypercube(space_share=0.051), None, 6),
        (LatinHypercube(space_share=0.0001), None, 2),  # one point shows no differences
    ],
)
def test_a_latin_hypercube_ends_after_its_count_its_money_or_its_share(design, budget, runs):
    trials, _ = run_design(design, accuracy_problem(20, DEAR, budget=budget))
    assert len(trials) == runs


def test_runs_that_fail_do_not_count_towards_the_number():
    problem = accuracy_problem(20, fractions=(1.0,))
    planned = [one.config["x"] for one in run_design(LatinHypercube(4), problem)[0]]
    trials, history = run_design(LatinHypercube(4), problem, fails=lambda one: one.config["x"] in planned[1:3])
    assert len(trials) == 6
    assert len(history.measurements) == 4
    assert [one.config["x"] for one in trials[:4]] == planned


def test_runs_that_fail_are_paid_out_of_the_initial_budget():
    """A run of 10 USD and eight failures of 1 are 18."""
    design, problem = LatinHypercube(initial_budget=18.0), accuracy_problem(20, DEAR, fractions=(1.0,))
    first = next_trial(design, problem, History()).config
    _, history = run_design(design, problem, fails=lambda one: one.config != first)
    assert (len(history.measurements), len(history.failures)) == (1, 8)


def test_as_long_as_nothing_ran_the_design_goes_on_though_its_money_is_spent():
    problem = accuracy_problem(20, DEAR, fractions=(1.0,))
    trials, history = run_design(LatinHypercube(initial_budget=5.0), problem, fails=lambda _: True)
    assert sorted(one.config["x"] for one in trials) == list(range(20))
    assert not history.measurements


@pytest.mark.parametrize("design", [LatinHypercube(1000), RandomSearch()])
@pytest.mark.parametrize("snapshots", [True, False])
def test_a_small_pool_is_gone_through_without_a_repetition(design, snapshots):
    problem = accuracy_problem(4, fractions=(0.1, 0.5, 1.0), snapshots=snapshots)
    trials, _ = run_design(design, problem, fails=lambda one: one.config["x"] == 2)
    assert sorted(places(trials)) == [(x, fraction) for x in range(4) for fraction in (0.1, 0.5, 1.0)]


@pytest.mark.parametrize("design", [LatinHypercube(6), RandomSearch(), AcrossFractions(3)])
def test_points_under_way_are_not_asked_again(design):
    problem, history = accuracy_problem(6, fractions=(0.5, 1.0)), History()
    for _ in range(3):
        history = history.with_asked(next_trial(design, problem, history))
    assert len(set(places(history.pending))) == 3


def test_points_under_way_count_towards_the_number_once_something_is_measured():
    problem = accuracy_problem(9, fractions=(1.0,))
    under_way = [trial(1, 1, 1.0), trial(2, 2, 1.0)]
    assert next_trial(LatinHypercube(3), problem, history_of(ran(0, 0, 1.0, **REPORT), pending=under_way)) is None
    assert next_trial(LatinHypercube(2), problem, history_of(pending=under_way)) is not None


def test_a_preempted_point_is_asked_again_first():
    problem = accuracy_problem(9, fractions=(1.0,))
    first = next_trial(LatinHypercube(3), problem, History())
    again = next_trial(LatinHypercube(3), problem, history_of(failed(0, first.config["x"], 1.0, "preempted")))
    assert places([again]) == places([first])


# --- random search


def chi_square(counts, draws):
    expected = draws / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


@pytest.mark.parametrize("tested", [0, 3])
def test_random_search_draws_every_open_place_with_equal_chance(tested):
    """χ² of 1500 draws with as many seeds, below what one in a thousand fair draws would pass."""
    problem = accuracy_problem(6, fractions=(0.5, 1.0))
    history = history_of(*[ran(n, n, 0.5, **REPORT) for n in range(tested)])
    counts = Counter(places(next_trial(RandomSearch(), problem, history, seed) for seed in range(1500)))
    assert len(counts) == 12 - tested
    assert chi_square(counts.values(), 1500) < chi2.ppf(0.999, len(counts) - 1)


def test_the_order_of_random_search_is_drawn_by_the_seed():
    problem = accuracy_problem(6, fractions=(0.5, 1.0))
    orders = [tuple(places(run_design(RandomSearch(), problem, seed)[0])) for seed in [*range(20), *range(20)]]
    assert orders[:20] == orders[20:]
    assert len(set(orders)) == 20


# --- a cheap start


PRICES = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]  # the cheapest third: positions 0, 2 and 4


@given(seeds)
def test_a_cheap_start_is_at_the_smallest_fraction_among_the_cheapest_third(seed):
    trials, _ = run_design(CheapStart(3), accuracy_problem(9, PRICES), seed)
    assert [one.fraction for one in trials] == [PAPER[0]] * 3
    assert {one.config["x"] for one in trials} == {0, 2, 4}


@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_cheap_start_ends_with_as_many_runs_as_asked_for(count):
    trials, history = run_design(CheapStart(count), accuracy_problem(9, PRICES))
    assert len(trials) == len(history.measurements) == count
    assert len({one.config["x"] for one in trials}) == count


def test_without_prices_a_cheap_start_draws_from_all():
    problem = accuracy_problem(9)
    drawn = {one.config["x"] for seed in range(20) for one in run_design(CheapStart(3), problem, seed)[0]}
    assert drawn == set(range(9))


def test_failures_do_not_count_and_the_dearer_follow_when_the_cheap_all_fail():
    trials, history = run_design(
        CheapStart(3), accuracy_problem(9, PRICES), fails=lambda one: one.config["x"] in (0, 2, 4)
    )
    assert {one.config["x"] for one in trials[:3]} == {0, 2, 4}
    assert len(trials) == 6
    assert len(history.measurements) == 3


def test_a_preempted_trial_is_no_run_and_its_configuration_may_be_tried_again():
    problem = accuracy_problem(9, PRICES)
    first = next_trial(CheapStart(2), problem, History())
    history = history_of(
        failed(0, first.config["x"], PAPER[0], "preempted"), failed(1, first.config["x"], PAPER[0], "preempted")
    )
    assert next_trial(CheapStart(2), problem, history).config == first.config
    one_ran = history.with_told(ran(2, first.config["x"], PAPER[0], **REPORT))
    assert next_trial(CheapStart(2), problem, one_ran) is not None


def test_trials_under_way_count_once_something_is_measured():
    problem = accuracy_problem(9, PRICES)
    under_way = [trial(1, 2, PAPER[0]), trial(2, 4, PAPER[0])]
    assert next_trial(CheapStart(3), problem, history_of(ran(0, 0, PAPER[0], **REPORT), pending=under_way)) is None


def test_as_long_as_nothing_is_measured_another_trial_of_the_design_is_offered():
    """Many workers at once: none of them has to wait for the first result."""
    problem = accuracy_problem(9, PRICES)
    history, asked = History(), []
    for _ in range(9):
        one = next_trial(CheapStart(3), problem, history)
        asked.append(one.config["x"])
        history = history.with_asked(one)
    np.testing.assert_array_equal(sorted(asked), range(9))
    assert set(asked[:3]) == {0, 2, 4}
    assert next_trial(CheapStart(3), problem, history) is None


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ([], 3),
        (["time <= 1000s"], 3),  # a trial takes 10 s
        (["time <= 40s"], 2),
        (["time <= 20s"], 1),
        (["time <= 1s"], 1),
        (["cost <= 1000", "time <= 20s"], 1),
        (["accuracy >= 0.5"], 3),
    ],
)
def test_a_start_ends_once_it_has_taken_half_of_what_a_run_may_take(limits, count):
    problem = problem_of(space_of(9, PRICES, fractions=PAPER), *limits, maximize="accuracy")
    trials, _ = run_design(WhileCheap(CheapStart(3)), problem)
    assert len(trials) == count


def test_a_limit_that_holds_on_any_share_of_the_data_does_not_end_a_start():
    problem = problem_of(space_of(9, PRICES, fractions=PAPER), "time <= 20s", minimize="cost")
    trials, _ = run_design(WhileCheap(CheapStart(3)), problem)
    assert len(trials) == 3


def test_another_design_goes_on_for_as_long_as_a_hypercube_would():
    """Six that ran: a hypercube of six is complete, and so is what takes its place; its trials are the other's."""
    problem = problem_of(space_of(20, fractions=PAPER), maximize="accuracy")
    in_its_place, _ = run_design(AsLongAs(CheapStart(50), LatinHypercube(6)), problem)
    cheap, _ = run_design(CheapStart(50), problem)
    assert in_its_place == cheap[:6]
