"""The contract of money, against a model that adds whole numbers."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from record_fakes import DEFINITION, check_everything, close_all, failed, new_record, open_records, succeeded, trial

from trimtuner.records import OverBudget
from trimtuner.records.money import to_nanos

amounts = st.one_of(st.floats(0, 3), st.integers(0, 300).map(lambda cents: cents / 100))


def nanos(usd):
    return to_nanos(usd, "it")


class Money(RuleBasedStateMachine):
    def __init__(self, place):
        super().__init__()
        self.place = place

    @initialize(budget=st.floats(1, 8))
    def begin(self, budget):
        self.budget = budget
        self.record = new_record(self.place, budget)
        self.spent = 0
        self.asked = 0
        self.open = {}  # number: (attempt, reserve in billionths)

    def left(self):
        return nanos(self.budget) - self.spent - sum(reserve for _, reserve in self.open.values())

    @rule(reserve=amounts)
    def claim(self, reserve):
        try:
            assert self.record.claim(trial(self.asked), reserve, "me")
        except OverBudget:
            assert nanos(reserve) > self.left()
            return
        assert nanos(reserve) <= self.left()
        self.open[self.asked] = (1, nanos(reserve))
        self.asked += 1

    @precondition(lambda self: self.asked)
    @rule(reserve=amounts, data=st.data())
    def claim_again(self, reserve, data):
        assert not self.record.claim(trial(data.draw(st.integers(0, self.asked - 1))), reserve, "me")

    @precondition(lambda self: self.open)
    @rule(share=st.floats(0, 1), reserve=amounts, data=st.data())
    def retry(self, share, reserve, data):
        number, attempt, cost = self._attempt(data, share)
        try:
            assert self.record.retry(number, attempt, cost, 1.0, "oom", reserve) == attempt + 1
        except OverBudget:
            assert nanos(reserve) > self.left() + self.open[number][1] - nanos(cost)
            return
        self.spent += nanos(cost)
        self.open[number] = (attempt + 1, nanos(reserve))

    @precondition(lambda self: self.open)
    @rule(share=st.floats(0, 1), end=st.sampled_from([succeeded, failed]), data=st.data())
    def finish(self, share, end, data):
        number, attempt, cost = self._attempt(data, share)
        before = nanos(self.record.charged(number))
        outcome = end(trial(number), cost=self.record.charged(number) + cost)
        self.record.finish(outcome, attempt, cost)
        self.spent += nanos(outcome.cost) - before
        del self.open[number]

    @rule(more=st.floats(0, 2))
    def raise_the_budget(self, more):
        self.budget += more
        open_records(self.place).create_or_open("study", DEFINITION, self.budget)

    @invariant()
    def sums_are_right(self):
        status = self.record.status()
        reserved = sum(reserve for _, reserve in self.open.values())
        assert (nanos(status.spent), nanos(status.reserved)) == (self.spent, reserved)
        assert self.left() >= 0

    def _attempt(self, data, share):
        number = data.draw(st.sampled_from(sorted(self.open)))
        attempt, reserve = self.open[number]
        return number, attempt, int(share * reserve) / 1e9

    def teardown(self):
        if hasattr(self, "record"):
            close_all()
            check_everything(self.place)


def test_sums_are_right_and_the_budget_is_kept_whatever_is_claimed_retried_and_finished(new_place):
    run_state_machine_as_test(
        lambda: Money(new_place()),
        settings=settings(max_examples=5, stateful_step_count=20, deadline=None, derandomize=True),
    )


def test_what_a_refused_change_had_entered_is_not_remembered(place):
    record = new_record(place, budget=1.0)
    record.claim(trial(0), 0.6, "me")
    with pytest.raises(OverBudget):
        record.retry(0, 1, 0.5, 1.0, "oom", 0.6)
    assert (record.spent, record.reserved) == (0.0, 0.6)
    assert record.claim(trial(1), 0.4, "me")


def test_what_others_entered_is_added_to_what_is_remembered(place):
    record = new_record(place, budget=1.0)
    record.claim(trial(0), 0.3, "me")
    open_records(place).open("study").claim(trial(1), 0.3, "me")
    with pytest.raises(OverBudget) as caught:
        record.claim(trial(2), 0.5, "me")
    assert caught.value.reserved == 0.6
    open_records(place).open("study").finish(succeeded(trial(1), 0.1), 1, 0.1)
    assert record.claim(trial(2), 0.6, "me")
    assert (record.spent, record.reserved) == (0.1, 0.9)
