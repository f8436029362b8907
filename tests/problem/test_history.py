"""The history: a value in which every change makes a new one."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.errors import InputError
from trimtuner.problem.history import History, Measurement, Outcome, Trial


def trial(number, **config):
    return Trial(number, config or {"a": number}, 0.5)


def succeeded(one, cost=1.0, *smaller):
    measured = [
        Measurement(one.config, fraction, {"accuracy": 0.5, "cost": cost}) for fraction in (*smaller, one.fraction)
    ]
    return Outcome(one, tuple(measured), None, cost, None)


def failed(one, kind, cost=1.0):
    return Outcome(one, (), kind, cost, None)


def test_a_new_history_is_empty():
    history = History()
    assert (history.outcomes, history.pending, history.next_number, history.spent) == ((), (), 0, 0)


def test_asking_makes_a_new_history_and_leaves_the_old_one_alone():
    before = History()
    after = before.with_asked(trial(0))
    assert before == History()
    assert after.pending == (trial(0),)
    assert after.next_number == 1


def test_telling_moves_a_trial_from_pending_to_outcomes():
    before = History().with_asked(trial(0)).with_asked(trial(1))
    after = before.with_told(succeeded(trial(0)))
    assert before.pending == (trial(0), trial(1))
    assert after.pending == (trial(1),)
    assert [outcome.trial.number for outcome in after.outcomes] == [0]
    assert after.next_number == 2


def test_nothing_in_a_history_can_be_assigned_to():
    history = History().with_asked(trial(0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        history.pending = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        history.pending[0].fraction = 1.0


def test_histories_with_the_same_events_are_equal():
    def told():
        return History().with_asked(trial(0)).with_told(succeeded(trial(0)))

    assert told() == told()
    assert told() != History().with_asked(trial(0))


def test_what_is_spent_is_the_cost_of_all_ended_trials_failures_and_preemptions_included():
    history = History()
    for number, outcome in enumerate(
        [succeeded(trial(0), 2.0), failed(trial(1), "oom", 0.5), failed(trial(2), "preempted", 0.25)]
    ):
        history = history.with_asked(trial(number)).with_told(outcome)
    assert history.spent == 2.75


def test_a_preemption_is_not_the_configurations_fault():
    history = History().with_told(failed(trial(0), "oom")).with_told(failed(trial(1), "preempted"))
    assert [outcome.failed for outcome in history.failures] == ["oom"]


def test_measured_failed_and_pending_trials_are_not_to_be_asked_again_but_preempted_ones_may():
    history = (
        History()
        .with_told(succeeded(trial(0), 1.0, 0.1, 0.25))
        .with_told(failed(trial(1), "oom"))
        .with_told(failed(trial(2), "preempted"))
        .with_asked(trial(3))
    )
    assert [(config["a"], fraction) for config, fraction in history.tested()] == [
        (0, 0.1),
        (0, 0.25),
        (0, 0.5),
        (1, 0.5),
        (3, 0.5),
    ]


def test_measurements_include_the_snapshots_of_every_trial_in_order():
    history = History().with_told(succeeded(trial(0), 1.0, 0.1)).with_told(succeeded(trial(1)))
    assert [(m.configuration["a"], m.fraction) for m in history.measurements] == [(0, 0.1), (0, 0.5), (1, 0.5)]


@given(st.lists(st.booleans(), max_size=20))
def test_numbers_only_grow_whatever_the_order_of_asking_and_telling(asks):
    history, asked = History(), 0
    for is_ask in asks:
        if is_ask or not history.pending:
            history = history.with_asked(trial(history.next_number))
            asked += 1
        else:
            history = history.with_told(succeeded(history.pending[-1]))
    assert history.next_number == asked
    numbers = [t.number for t in history.pending] + [o.trial.number for o in history.outcomes]
    assert sorted(numbers) == list(range(asked))


def test_a_forgotten_failure_costs_what_it_cost_and_is_nothing_else():
    on_its_way = dataclasses.replace(succeeded(trial(0), 2.0, 0.1), failed="exit")
    told = History().with_asked(trial(0)).with_told(on_its_way).with_told(succeeded(trial(1)))
    after = told.with_forgotten(0)
    assert (after.spent, after.next_number, after.pending) == (told.spent, told.next_number, told.pending)
    assert [outcome.failure for outcome in after.outcomes] == ["forgotten (exit)", None]
    assert (after.failures, [outcome.trial.number for outcome in after.counted]) == ((), [1])
    assert [(config["a"], fraction) for config, fraction in after.tested()] == [(1, 0.5)]
    assert told.failures[0].trial.number == 0  # a value is left as it was


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (0, "trial 0 succeeded; only a failed one can be forgotten"),
        (1, "trial 1 is forgotten already"),
        (2, "trial 2 is running"),
        (3, "there is no trial 3"),
    ],
)
def test_only_a_failure_that_is_not_forgotten_can_be_forgotten(number, says):
    history = History().with_told(succeeded(trial(0))).with_told(failed(trial(1), "exit")).with_asked(trial(2))
    with pytest.raises(InputError, match=says):
        history.with_forgotten(1).with_forgotten(number)


def test_failures_at_first_are_those_before_anything_was_measured_and_not_where_one_was_forgotten():
    history = History().with_told(failed(trial(0, a=0), "exit")).with_told(failed(trial(1, a=1), "preempted"))
    assert [one.trial.number for one in history.failures_at_first] == [0]
    again = history.with_forgotten(0).with_told(failed(trial(2, a=0), "exit")).with_told(failed(trial(3, a=3), "exit"))
    assert [one.trial.number for one in again.failures_at_first] == [3]
    assert again.with_told(succeeded(trial(4))).failures_at_first == ()
