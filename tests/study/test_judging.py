"""What an attempt is worth: what was measured and is on the disk counts, and all of its time is charged."""

from __future__ import annotations

import pytest

import trimtuner as tt
from trimtuner.engines.protocol import EXIT, LOST, PREEMPTED, STOPPED, TIMEOUT, AttemptState, End, Report
from trimtuner.problem.history import OVER_LIMIT, Trial
from trimtuner.problem.problem import Problem
from trimtuner.study.judging import judge

PRICE_PER_HOUR = 3600.0  # a dollar a second


def problem() -> Problem:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=PRICE_PER_HOUR)}
    space = tt.Space({"x": tt.Choice([0, 1])}, cloud=tt.Cloud(machines), fractions=[0.5, 1], snapshots=True)
    return Problem.of(space, "accuracy", None, [], 1000.0, 100.0)


def trial() -> Trial:
    return Trial(0, {"x": 0, "vm_type": "small", "vm_count": 1, "market": "on_demand"}, 1.0)


ONLY = (Report({"accuracy": 0.9}, 8.0),)
NAMED = (Report({"accuracy": 0.4, "fraction": 0.5}, 4.0), Report({"accuracy": 0.9, "fraction": 1.0}, 8.0))


@pytest.mark.parametrize("kind", [LOST, STOPPED, PREEMPTED])
@pytest.mark.parametrize("reports", [ONLY, NAMED])
def test_a_trial_that_had_said_all_and_was_not_seen_to_leave_is_measured_and_charged_to_its_end(kind, reports):
    outcome = judge(problem(), trial(), AttemptState(reports, (), None), End(kind, "", 20.0)).outcome
    assert outcome.failed is None
    assert (outcome.cost, outcome.time) == (20.0, 20.0)
    last = outcome.measurements[-1]
    assert (last.fraction, last.metrics["accuracy"], last.metrics["time"]) == (1.0, 0.9, 8.0)


@pytest.mark.parametrize(
    "reports",
    [
        (),
        (Report({"accuracy": 0.3}, 1.0), Report({"accuracy": 0.9}, 8.0)),  # one an epoch: more might have come
        NAMED[:1],
        (Report({"loss": 0.9}, 8.0),),
    ],
)
def test_a_trial_that_may_have_had_more_to_say_is_lost(reports):
    outcome = judge(problem(), trial(), AttemptState(reports, (), None), End(LOST, "", 20.0)).outcome
    assert outcome.failed == PREEMPTED
    assert outcome.cost == 20.0


@pytest.mark.parametrize("kind", [EXIT, TIMEOUT])
def test_a_trial_that_failed_by_itself_has_failed_whatever_it_said(kind):
    assert judge(problem(), trial(), AttemptState(ONLY, (), None), End(kind, "", 20.0)).outcome.failed == kind


def limited(*constraints: str) -> Problem:
    return Problem.of(problem().space, "accuracy", None, constraints, 1000.0, 100.0)


@pytest.mark.parametrize(
    ("constraints", "seconds", "kind"),
    [
        (["time <= 10s"], 12.1, OVER_LIMIT),
        (["time <= 10s"], 11.9, TIMEOUT),  # ended by the time-out of the job: a little over is let come to its end
        (["cost <= 5 USD"], 6.1, OVER_LIMIT),  # a dollar a second
        (["cost <= 20 USD", "time <= 10s"], 12.1, OVER_LIMIT),
        (["accuracy >= 0.5"], 50.0, TIMEOUT),
        ([], 50.0, TIMEOUT),
    ],
)
def test_a_run_that_was_ended_well_over_a_limit_counts_as_over_it_and_any_other_as_timed_out(
    constraints, seconds, kind
):
    verdict = judge(limited(*constraints), trial(), AttemptState((), (), None), End(TIMEOUT, "", seconds))
    assert (verdict.outcome.failed, verdict.outcome.is_over_limit) == (kind, kind == OVER_LIMIT)
    assert (verdict.outcome.cost, verdict.outcome.time) == (seconds, seconds)


def test_the_limits_that_a_stopped_run_broke_are_named_and_no_others():
    end = End(TIMEOUT, "", 12.1)  # at a dollar a second
    one = judge(limited("cost <= 20 USD", "time <= 10s"), trial(), AttemptState((), (), None), end)
    both = judge(limited("cost <= 5 USD", "time <= 10s"), trial(), AttemptState((), (), None), end)
    assert one.detail == "stopped after 12.1 s, being over time <= 10s"
    assert both.detail == "stopped after 12.1 s, being over cost <= 5 USD and time <= 10s"


def test_what_a_stopped_run_measured_on_its_way_is_measured():
    state = AttemptState((Report({"accuracy": 0.4, "fraction": 0.5}, 4.0),), (), None)
    outcome = judge(limited("time <= 5s"), trial(), state, End(TIMEOUT, "", 6.5)).outcome
    assert outcome.is_over_limit
    assert [(one.fraction, one.metrics["accuracy"]) for one in outcome.measurements] == [(0.5, 0.4)]
