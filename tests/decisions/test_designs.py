"""Designs: the trials before there is a model, and what becomes of them when some fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.fakes import failed, history_of, problem_of, ran, space_of, trial
from trimtuner.decisions.designs import CheapStart, AcrossFractions
from trimtuner.problem.history import History, Trial
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success

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


def accuracy_problem(count, prices=None, fractions=PAPER, snapshots=False):
    return problem_of(space_of(count, prices, fractions, snapshots), maximize="accuracy")


# --- one across fractions


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
