"""The loop with an engine that plays trials by a script, so that every ending is known beforehand."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.engines.protocol import (
    EXIT,
    LOST,
    PREEMPTED,
    UNAVAILABLE,
    AttemptState,
    End,
    EngineTrouble,
    Found,
    Launch,
    Report,
)
from trimtuner.engines.replay.engine import ReplayEngine
from trimtuner.engines.replay.script import Script
from trimtuner.problem.problem import Problem
from trimtuner.records.facts import TimeCap
from trimtuner.study import driver as driver_module
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver, Happening
from trimtuner.study.memory import Recorded
from trimtuner.study.owners import HEARTBEAT_SECONDS
from trimtuner.study.study import Study
from trimtuner.study.telling import trial_rows, trials_text
from trimtuner.tuning.recipes import recipe_named
from trimtuner.views.trials import rows, trial_detail

PACE = 1000.0
PRICE_PER_HOUR = 3.6  # a tenth of a cent for a second


def problem() -> Problem:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=PRICE_PER_HOUR)}
    choice = {"x": tt.Choice([0, 1, 2, 3, 4])}
    space = tt.Space(choice, cloud=tt.Cloud(machines), fractions=[0.1, 0.5, 1], snapshots=True)
    return Problem.of(space, "accuracy", None, [], 10.0, 100.0)


def good(launch: Launch) -> Script:
    """Snapshots at a tenth and a half where they lie on the way; 10 s for all of the data."""
    shares = [share for share in (0.1, 0.5, 1.0) if share <= launch.fraction]
    reports = tuple(Report({"accuracy": share / 2, "fraction": share}, 10 * share) for share in shares)
    return Script(reports, End(None, "exit code 0", 10 * launch.fraction))


def failing(kind: str, after: float = math.inf) -> Callable[[Launch], Script]:
    """As ``good``, but it fails at the first attempt, after so many seconds or at its end."""

    def script_of(launch: Launch) -> Script:
        whole = good(launch)
        seconds = min(after, whole.end.seconds)
        reports = tuple(report for report in whole.reports if report.seconds < seconds)
        return whole if launch.attempt > 1 else Script(reports, End(kind, "as the test wants it", seconds))

    return script_of


class Noted(ReplayEngine):
    """An engine that notes what it is told to forget, and is in trouble as long as the test says."""

    def __init__(self, folder: Path, script_of: Callable[[Launch], Script]) -> None:
        super().__init__(folder, bytes(32), script_of, PACE)
        self.forgotten: list[str] = []
        self.open_when_forgotten: list[bool] = []
        self.troubles = 0
        self.cannot_start: dict[int, int] = {}  # trial: how often
        self.notes: tuple[str, ...] = ()
        self.is_open: Callable[[str], bool] = lambda _: False

    def poll(self, handle: str) -> AttemptState:
        if self.troubles > 0:
            self.troubles -= 1
            raise EngineTrouble("the credentials have expired; renew them")
        return replace(super().poll(handle), notes=self.notes)

    def start(self, launch: Launch) -> str:
        if launch.trial in self.cannot_start and self.cannot_start[launch.trial] > 0:
            self.cannot_start[launch.trial] -= 1
            raise EngineTrouble("the cluster is out of reach")
        return super().start(launch)

    def forget(self, handle: str) -> None:
        self.forgotten.append(handle)
        self.open_when_forgotten.append(self.is_open(handle))


class Bench:
    """A study in a record, with its driver."""

    def __init__(
        self, folder: Path, script_of: Callable[[Launch], Script], retries: dict[str, int], trials: int
    ) -> None:
        self.memory = Recorded(folder / "a.db", "a", Description(problem(), "random", 0))
        recipe = recipe_named("random").but(stop=tt.AfterTrials(trials))
        self.study = Study.of(Description(problem(), "random", 0), recipe, self.memory)
        self.engine = Noted(folder / "trials", script_of)
        self.folder = folder
        self.happened: list[Happening] = []
        self.driver = Driver(
            self.study, self.memory, self.engine, self.launch, retries=retries, listener=self.happened.append
        )
        record = self.memory.record
        self.engine.is_open = lambda handle: any(one.handle == handle for one in record.open_trials())

    def launch(self, study: str, trial: tt.Trial, attempt: int) -> Launch:
        place = self.folder / "trials" / study
        command = (sys.executable, "-c", "")
        return Launch(study, trial.number, attempt, command, place, self.folder, {}, (), 90.0, fraction=trial.fraction)


def bench(tmp_path: Path, script_of: Callable[[Launch], Script], trials: int = 1, **retries: int) -> Bench:
    return Bench(tmp_path, script_of, retries, trials)


def test_what_an_engine_notes_of_a_trial_is_told_and_kept_once_and_shown_wherever_trials_are(tmp_path):
    one = bench(tmp_path, failing(PREEMPTED), trials=2, preempted=1)
    one.engine.notes = ("its checkpoint was not copied",)
    one.driver.run()
    assert [(each.kind, each.trial.number) for each in one.happened if each.kind == "noted"] == [
        ("noted", 0),
        ("noted", 1),
    ]
    assert one.memory.record.notes() == dict.fromkeys((0, 1), one.engine.notes)
    assert "its checkpoint was not copied" in one.study.explain(1)
    state = one.study.state()
    assert trials_text(state).splitlines()[-1] == "trial 1: its checkpoint was not copied"
    assert trial_rows(state)[0]["notes"] == ["its checkpoint was not copied"]
    assert "its checkpoint was not copied" in trial_detail(rows(state)[0])


def test_an_engine_is_told_to_forget_an_attempt_after_its_end_is_in_the_record(tmp_path):
    one = bench(tmp_path, failing(PREEMPTED), trials=3, preempted=1)
    one.driver.run()
    assert len(one.engine.forgotten) == 6  # two attempts each
    assert one.engine.open_when_forgotten == [False] * 6


def test_a_command_that_fails_again_and_again_before_anything_is_measured_is_blamed(tmp_path):
    one = bench(tmp_path, failing(EXIT, after=0.1), trials=15)
    assert "5 trials failed and none was measured, so it seems to be the command" in one.driver.run()


def test_the_next_run_forgets_what_failed_before_anything_was_measured_and_all_trials_are_left(tmp_path):
    bench(tmp_path, failing(EXIT, after=0.1), trials=5).driver.run()
    two = bench(tmp_path, good, trials=5)
    spent = two.study.spent
    two.driver.run()
    outcomes = two.study.history.outcomes
    assert [one.failure for one in outcomes] == ["forgotten (exit)"] * 5 + [None] * 5
    assert [one.trial.number for one in outcomes] == list(range(10))
    assert spent == pytest.approx(5 * 0.1 * PRICE_PER_HOUR / 3600)
    assert two.study.spent == pytest.approx(spent + sum(one.cost for one in outcomes[5:]))
    (said,) = [one.text for one in two.happened if one.kind == "forgotten"]
    assert said == (
        "5 trials that failed before anything was measured are forgotten; their cost of 0.05 cents stays charged"
    )


@pytest.mark.parametrize(("kind", "failures"), [(EXIT, 4), (UNAVAILABLE, 5)])
def test_a_few_failures_or_those_that_are_not_the_commands_are_kept_by_the_next_run(tmp_path, kind, failures):
    bench(tmp_path, failing(kind, after=0.1), trials=failures).driver.run()
    again = bench(tmp_path, good, trials=failures)
    again.driver.run()
    assert [one.failure for one in again.study.history.outcomes] == [kind] * failures


def test_of_two_runs_that_begin_together_one_forgets_and_both_go_on(tmp_path, monkeypatch):
    bench(tmp_path, failing(EXIT, after=0.1), trials=5).driver.run()
    first, second = bench(tmp_path, good, trials=5), bench(tmp_path, good, trials=5)
    forget = second.memory.record.forget

    def forget_after_the_first(numbers: list[int]) -> None:
        first.memory.record.forget(numbers)
        forget(numbers)

    monkeypatch.setattr(second.memory.record, "forget", forget_after_the_first)
    second.driver.run()
    assert len(second.study.history.counted) == 5
    assert not [one for one in second.happened if one.kind == "forgotten"]


def test_machines_that_cannot_be_had_are_not_the_commands_fault(tmp_path):
    one = bench(tmp_path, failing(UNAVAILABLE, after=0.1), trials=7)
    assert "the command" not in one.driver.run()


def test_once_something_was_measured_failures_are_the_configurations(tmp_path):
    one = bench(
        tmp_path, lambda launch: good(launch) if launch.trial == 3 else failing(EXIT, after=0.1)(launch), trials=9
    )
    assert "the command" not in one.driver.run()


def test_what_was_measured_on_the_way_is_kept_however_the_trial_ended(tmp_path):
    one = bench(tmp_path, failing(EXIT, after=6.0), trials=6)
    one.driver.run()
    failed = [outcome for outcome in one.study.history.outcomes if outcome.failed == EXIT]
    from_full = [outcome for outcome in failed if outcome.trial.fraction == 1.0]
    assert from_full
    for outcome in from_full:
        assert [(m.fraction, m.metrics["accuracy"]) for m in outcome.measurements] == [(0.1, 0.05), (0.5, 0.25)]
        assert outcome.cost == pytest.approx(6.0 * PRICE_PER_HOUR / 3600)


def test_a_measured_snapshot_of_a_failed_trial_is_not_asked_for_again(tmp_path):
    one = bench(tmp_path, failing(EXIT, after=6.0), trials=15)
    one.driver.run()
    places = [(m.configuration["x"], m.fraction) for m in one.study.history.measurements]
    assert len(places) == len(set(places))


def test_machines_that_could_not_be_had_cost_nothing_and_are_tried_again_under_the_retry_rule(tmp_path):
    def script_of(launch: Launch) -> Script:
        return good(launch) if launch.attempt > 1 else Script((), End(UNAVAILABLE, "no capacity", 0.0))

    one = bench(tmp_path, script_of, unavailable=1)
    one.driver.run()
    (outcome,) = one.study.history.outcomes
    assert outcome.failed is None
    charges = [entry.nanos for entry in one.memory.record.ledger() if entry.kind == "charge"]
    assert charges[0] == 0
    assert charges[1] == round(outcome.cost * 1e9) > 0


def test_what_the_machines_fault_was_is_no_fault_of_the_configuration_but_not_having_them_is(tmp_path):
    for kind, is_fault in ((PREEMPTED, False), (LOST, False), (UNAVAILABLE, True)):
        folder = tmp_path / kind
        folder.mkdir()
        one = bench(folder, failing(kind, after=0.0 if kind == UNAVAILABLE else 0.5))
        one.driver.run()
        assert bool(one.study.history.failures) is is_fault


def test_trouble_is_told_once_and_the_trial_is_found_again_when_it_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "_PAUSE_IN_TROUBLE", 0.01)
    one = bench(tmp_path, good, trials=2)
    one.engine.troubles = 5
    one.driver.run()
    told = [what.text for what in one.happened if what.kind == "in trouble"]
    assert told == ["the credentials have expired; renew them"]
    assert [outcome.failed for outcome in one.study.history.outcomes] == [None, None]


def test_a_trial_that_cannot_be_started_now_is_started_later_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "_PAUSE_IN_TROUBLE", 0.01)
    one = bench(tmp_path, good, trials=3)
    one.engine.cannot_start = {1: 3}
    one.driver.run()
    assert [outcome.failed for outcome in one.study.history.outcomes] == [None, None, None]
    assert [what.trial.number for what in one.happened if what.kind == "started"] == [0, 1, 2]
    assert [what.text for what in one.happened if what.kind == "in trouble"] == ["the cluster is out of reach"]


def test_an_engine_that_never_worked_ends_the_run_at_once(tmp_path):
    one = bench(tmp_path, good)
    one.engine.cannot_start = {0: 1}
    with pytest.raises(EngineTrouble, match="out of reach"):
        one.driver.run()
    (still,) = one.memory.record.open_trials()  # for the next run
    assert still.handle is None


def test_what_may_have_run_and_left_no_trace_is_charged_as_long_as_it_was_watched(tmp_path, monkeypatch):
    one = bench(tmp_path, good, trials=2)
    us, record = one.memory.owner, one.memory.record
    gone = replace(us, id="gone", pid_started=f"{us.pid_started}0")
    record.register(gone)
    one.memory.owner = gone
    one.study.ask()
    one.memory.owner = us
    record.heartbeat("gone")  # and then it died, maybe with a trial under way
    start, poll, lost = one.engine.start, one.engine.poll, AttemptState((), (), End(LOST, "nothing tells", 0.0))
    monkeypatch.setattr(one.engine, "start", lambda launch: "lost" if launch.may_have_run else start(launch))
    monkeypatch.setattr(one.engine, "poll", lambda handle: lost if handle == "lost" else poll(handle))
    one.driver.run()
    first, second = one.study.history.outcomes
    assert (first.failed, second.failed) == (PREEMPTED, None)
    assert first.cost >= HEARTBEAT_SECONDS * PRICE_PER_HOUR / 3600


def test_nothing_is_started_while_there_is_trouble(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "_PAUSE_IN_TROUBLE", 0.01)
    one = bench(tmp_path, good, trials=4)
    one.driver._parallel = 2
    while (trial := one.driver.next_trial()) is not None:
        one.driver.start(trial)
    one.engine.troubles = 7
    one.driver.run()
    kinds = [what.kind for what in one.happened]
    assert kinds[:3] == ["started", "started", "in trouble"]
    assert kinds[3] == "ended"


def test_trouble_that_does_not_end_ends_the_run_and_leaves_the_trial_to_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "_PAUSE_IN_TROUBLE", 0.01)
    monkeypatch.setattr(driver_module, "_PATIENCE_WITH_TROUBLE", 0.1)
    one = bench(tmp_path, good)
    one.engine.troubles = 10**6
    with pytest.raises(EngineTrouble, match="expired"):
        one.driver.run()
    (still,) = one.memory.record.open_trials()
    assert still.handle is not None
    assert one.engine.find(one.memory.record.id) == [Found(one.memory.record.id, 0, 1, still.handle, is_running=False)]


def test_where_machines_are_paid_in_hours_no_trial_starts_that_might_not_fit(tmp_path: Path) -> None:
    one = bench(tmp_path, good)
    free = tt.Cloud({"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0)}, vm_count=[1, 2])
    space = tt.Space({"x": tt.Choice([0, 1, 2, 3, 4])}, cloud=free, fractions=[1])
    description = Description(Problem.of(space, "accuracy", None, [], None, 20.0), "random", 0)
    cap = TimeCap(120.0, 20.0, free.machines_in)
    memory = Recorded(tmp_path / "hours.db", "hours", description, time_cap=cap)
    study = Study.of(description, recipe_named("random"), memory)
    assert "machine-hours" in Driver(study, memory, one.engine, one.launch, parallel=3).run()
    used = sum(free.machines_in(outcome.trial.config) * (outcome.time or 0.0) for outcome in study.history.outcomes)
    assert 120.0 - 40.0 < used <= 120.0
