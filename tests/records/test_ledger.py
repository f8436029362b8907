"""The contract of money, against a model that adds whole numbers."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from record_fakes import DEFINITION, check_everything, close_all, failed, new_record, open_records, succeeded, trial

from trimtuner.records import OverBudget
from trimtuner.records.money import to_nanos

amounts = st.one_of(st.floats(0, 3), st.integers(0, 300).map(lambda cents: cents / 100))


def nanos(usd):
    return to_nanos(usd, "it")


class Money(RuleBasedStateMachine):
    @initialize(budget=st.floats(1, 8))
    def begin(self, budget):
        shared_memory = Path("/dev/shm")  # noqa: S108  (a folder of our own in it; no waiting for the disk)
        self.folder = tempfile.mkdtemp(dir=shared_memory if shared_memory.is_dir() else None)
        self.path = Path(self.folder) / "record.db"
        self.budget = budget
        self.record = new_record(self.path, budget)
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
        open_records(self.path).create_or_open("study", DEFINITION, self.budget)

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
        if hasattr(self, "folder"):
            close_all()
            check_everything(self.path)
            shutil.rmtree(self.folder)


Money.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None, derandomize=True)
TestMoney = Money.TestCase
