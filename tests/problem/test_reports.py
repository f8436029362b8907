"""From what is told of a trial to an outcome: every number checked, cost and time completed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.rows import measurement_of_row

PRICES = [1.0, 7.2]  # USD per hour
PRICED = tt.Space.from_configs(
    [{"a": 1}, {"a": 2}], price_per_hour=PRICES, fractions=[1 / 60, 0.1, 0.5, 1], snapshots=True
)
UNPRICED = tt.Space({"a": tt.Choice([1, 2])}, fractions=[0.1, 0.5, 1])
TRIAL = Trial(7, {"a": 2}, 0.5, (1 / 60, 0.1))


def problem(space=PRICED, maximize="accuracy", minimize=None, constraints=(), budget=None):
    return Problem.of(space, maximize, minimize, constraints, budget)


def succeed(made, snapshots=None, **metrics):
    return outcome_of_success(made, TRIAL, metrics, snapshots or {})


def test_cost_is_time_times_price():
    outcome = succeed(problem(), accuracy=0.9, time=36.0)
    assert outcome.cost == pytest.approx(36.0 * 7.2 / 3600)
    assert outcome.time == 36.0
    assert outcome.measurements[-1].metrics == pytest.approx({"accuracy": 0.9, "time": 36.0, "cost": 0.072})


def test_time_follows_from_cost_and_price():
    outcome = succeed(problem(), accuracy=0.9, cost=0.072)
    assert outcome.time == pytest.approx(36.0)


def test_a_cost_that_is_told_wins_over_the_price():
    outcome = succeed(problem(), accuracy=0.9, cost=0.5, time=36.0)
    assert (outcome.cost, outcome.time) == (0.5, 36.0)


def test_without_prices_time_alone_is_enough_where_money_does_not_matter():
    outcome = succeed(problem(UNPRICED), accuracy=0.9, time=36.0)
    assert outcome.cost == 0.0
    assert "cost" not in outcome.measurements[-1].metrics


@pytest.mark.parametrize(
    ("space", "metrics"),
    [
        (PRICED, {"accuracy": 91, "time": 36.0}),
        (PRICED, {"accuracy": -0.1, "time": 36.0}),
        (PRICED, {"accuracy": 0.9, "time": 0.0}),
        (PRICED, {"accuracy": 0.9, "cost": -1.0}),
        (PRICED, {"accuracy": 0.9}),
        (PRICED, {"time": 36.0}),
        (UNPRICED, {"accuracy": 0.9, "time": 36.0}),  # no price, and a budget
    ],
)
def test_a_row_of_a_file_is_refused_by_the_rule_and_in_the_words_of_what_is_told(space, metrics):
    made = problem(space, budget=5.0)
    with pytest.raises(tt.InputError) as told:
        succeed(made, **metrics)
    with pytest.raises(tt.InputError) as read:
        measurement_of_row("m.csv, row 2", {"a": "2", "fraction": "0.5", **metrics}, made)
    assert str(read.value) == f"m.csv, row 2: {told.value}".replace("trial 7", "it")


def test_a_row_of_a_file_is_completed_as_what_is_told():
    told = succeed(problem(), accuracy=0.9, time=36.0).measurements[-1]
    row = {"a": "2", "fraction": "0.5", "accuracy": "0.9", "time": "36"}
    assert measurement_of_row("m.csv, row 2", row, problem()) == told


def test_metrics_nobody_asked_for_are_kept():
    outcome = succeed(problem(), accuracy=0.9, time=36.0, temperature=-3.0)
    assert outcome.measurements[-1].metrics["temperature"] == -3.0


def test_numbers_of_numpy_become_plain_ones():
    outcome = succeed(problem(), accuracy=np.float32(0.5), time=np.int64(36), latency=np.array(2.5))
    assert [type(value) for value in outcome.measurements[-1].metrics.values()] == [float] * 4


def test_snapshots_are_measurements_in_order_of_fraction_and_charged_once():
    outcome = succeed(
        problem(),
        accuracy=0.9,
        time=36.0,
        snapshots={0.1: {"accuracy": 0.7, "time": 9.0}, 0.016667: {"accuracy": 0.4, "time": 3.6}},
    )
    assert [m.fraction for m in outcome.measurements] == [1 / 60, 0.1, 0.5]
    assert [m.metrics["accuracy"] for m in outcome.measurements] == [0.4, 0.7, 0.9]
    assert [m.metrics["cost"] for m in outcome.measurements] == pytest.approx([0.0072, 0.018, 0.072])
    assert outcome.cost == pytest.approx(0.072)


def test_a_failure_is_charged_and_measures_nothing():
    outcome = outcome_of_failure(problem(), TRIAL, "oom", {"time": 36.0})
    assert outcome.cost == pytest.approx(0.072)
    assert (outcome.measurements, outcome.failed) == ((), "oom")
    assert outcome_of_failure(problem(), TRIAL, "oom", {"cost": 0.5}).cost == 0.5


def test_without_prices_a_failure_is_charged_only_what_is_known():
    made = problem(UNPRICED, constraints=["cost <= 1"])
    assert outcome_of_failure(made, TRIAL, "oom", {"time": 3.0}).cost == 0.0
    assert outcome_of_failure(made, TRIAL, "oom", {"cost": 0.5}).cost == 0.5
    with pytest.raises(tt.InputError, match="reports no cost="):
        outcome_of_failure(problem(UNPRICED, budget=1), TRIAL, "oom", {"time": 3.0})


@pytest.mark.parametrize(
    "kind", ["oom", "timeout", "exit code 137", "CUDA error: 2", "_Private", "preempted", "Überlauf"]
)
def test_a_failure_is_named_in_a_few_words(kind):
    assert outcome_of_failure(problem(), TRIAL, kind, {"time": 1.0}).failed == kind


@pytest.mark.parametrize("kind", ["", 3, True, "a" * 65, "<script>", "line\nbreak", "3 errors", ["oom"]])
def test_a_failure_with_no_plain_name_is_refused(kind):
    with pytest.raises(tt.InputError, match="must name the kind of failure"):
        outcome_of_failure(problem(), TRIAL, kind, {"time": 1.0})


@pytest.mark.parametrize(
    ("metrics", "complaint"),
    [
        ({"accuracy": math.nan, "time": 1}, "accuracy=nan is not finite; if the training diverged, tell failed="),
        ({"accuracy": math.inf, "time": 1}, "accuracy=inf is not finite"),
        ({"accuracy": -math.inf, "time": 1}, "accuracy=-inf is not finite"),
        ({"accuracy": -0.1, "time": 1}, "accuracy=-0.1 is below 0"),
        ({"accuracy": 91.0, "time": 1}, r"accuracy=91 is above 1; .*91 % is 0.91"),
        ({"accuracy": 1.0001, "time": 1}, "is above 1"),
        ({"accuracy": 0.9, "val_acc": 90, "time": 1}, "val_acc=90 is above 1"),
        ({"accuracy": 0.9, "time": 0}, "time=0 must be above 0 seconds"),
        ({"accuracy": 0.9, "time": -3}, "time=-3 must be above 0 seconds"),
        ({"accuracy": 0.9, "time": math.nan}, "time=nan is not finite"),
        ({"accuracy": 0.9, "cost": 0}, "cost=0 must be above 0 USD"),
        ({"accuracy": 0.9, "cost": -1}, "cost=-1 must be above 0 USD"),
        ({"accuracy": 0.9, "cost": math.inf}, "cost=inf is not finite"),
        ({"accuracy": "0.9", "time": 1}, "accuracy='0.9' is not a number"),
        ({"accuracy": True, "time": 1}, "accuracy=True is not a number"),
        ({"accuracy": None, "time": 1}, "accuracy=None is not a number"),
        ({"accuracy": [0.9], "time": 1}, "is not a number"),
        ({"accuracy": 1j, "time": 1}, "is not a number"),
        ({"accuracy": 0.9, "time": 10**400}, "is not a number"),
        ({"accuracy": 0.9, "time": 1e308}, "cost=inf is not finite"),
        ({"accuracy": 0.9}, r"neither time= \(seconds\) nor cost= \(USD\)"),
        ({"time": 1}, "reports no 'accuracy'"),
        ({"acuracy": 0.9, "time": 1}, r"reports no 'accuracy'.*did you mean 'acuracy'\?"),
        ({"accuracy": 0.9, "time": 1, "a b": 1}, "no name for a metric"),
    ],
)
def test_a_measurement_that_cannot_be_true_is_refused(metrics, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        outcome_of_success(problem(), TRIAL, metrics, {})


def test_accuracy_in_percent_is_accepted_when_it_is_called_so():
    outcome = succeed(problem(maximize="accuracy_percent"), accuracy_percent=91.0, time=1)
    assert outcome.measurements[-1].metrics["accuracy_percent"] == 91.0


def test_the_ends_of_a_share_are_shares():
    for accuracy in (0, 1):
        assert succeed(problem(), accuracy=accuracy, time=1).measurements[-1].metrics["accuracy"] == accuracy


def test_every_metric_of_a_constraint_must_be_reported():
    made = problem(constraints=["latency_ms <= 40", "cost <= 1"])
    with pytest.raises(tt.InputError, match="trial 7 reports no 'latency_ms', which the goal or a constraint is about"):
        succeed(made, accuracy=0.9, time=1.0)


def test_a_cost_that_does_not_follow_must_be_reported():
    with pytest.raises(tt.InputError, match="the space has no prices"):
        succeed(problem(UNPRICED, constraints=["cost <= 1"]), accuracy=0.9, time=1.0)
    assert succeed(problem(UNPRICED, constraints=["cost <= 1"]), accuracy=0.9, cost=1.0).cost == 1.0


def test_a_time_that_does_not_follow_must_be_reported_where_it_is_asked_for():
    with pytest.raises(tt.InputError, match="reports no time="):
        succeed(problem(UNPRICED, constraints=["time <= 1"]), accuracy=0.9, cost=1.0)


@pytest.mark.parametrize(
    ("snapshots", "complaint"),
    [
        ({0.5: {"accuracy": 0.5, "time": 1}}, "not on the way to the trial's fraction 0.5"),
        ({1: {"accuracy": 0.5, "time": 1}}, "not on the way"),
        ({0.3: {"accuracy": 0.5, "time": 1}}, "fraction 0.3 is none of those offered"),
        ({math.nan: {"accuracy": 0.5, "time": 1}}, "a number, not nan"),
        ({0.1: {"accuracy": 0.5}}, "neither time="),
        ({0.1: {"time": 1}}, "reports no 'accuracy'"),
        ({0.1: {"accuracy": 50, "time": 1}}, "accuracy=50 is above 1"),
        ({0.1: {"accuracy": 0.5, "time": 1}, 0.10000001: {"accuracy": 0.5, "time": 1}}, "same fraction"),
        ({"0.1": {"accuracy": 0.5, "time": 1}}, "a number, not '0.1'"),
        ({True: {"accuracy": 0.5, "time": 1}}, "a number, not True"),
        ({0.1: 0.5}, "must be a dict"),
        ([0.1], "must be a dict"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(snapshots, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        outcome_of_success(problem(), TRIAL, {"accuracy": 0.9, "time": 36.0}, snapshots)


def test_snapshots_need_a_space_that_offers_them():
    with pytest.raises(tt.InputError, match="without snapshots=True"):
        succeed(problem(UNPRICED), accuracy=0.9, time=1, snapshots={0.1: {"accuracy": 0.5, "time": 0.1}})


def test_a_failure_has_no_accuracy():
    with pytest.raises(tt.InputError, match="failed, so it has no 'accuracy'; tell only time= or cost="):
        outcome_of_failure(problem(), TRIAL, "oom", {"accuracy": 0.5, "time": 1.0})
    with pytest.raises(tt.InputError, match="neither time="):
        outcome_of_failure(problem(), TRIAL, "oom", {})


@given(st.floats(1e-6, 1e6), st.sampled_from([1, 2]))
def test_time_and_cost_follow_from_each_other(seconds, a):
    trial = Trial(0, {"a": a}, 1.0)
    there = outcome_of_success(problem(), trial, {"accuracy": 0.5, "time": seconds}, {})
    back = outcome_of_success(problem(), trial, {"accuracy": 0.5, "cost": there.cost}, {})
    assert there.cost == pytest.approx(seconds * PRICES[a - 1] / 3600)
    assert back.time == pytest.approx(seconds)
