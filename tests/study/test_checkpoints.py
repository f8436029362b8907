"""Trials whose machines are taken away again and again, and that go on where they were."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.engines.local.engine import LocalEngine
from trimtuner.engines.protocol import CHECKPOINT, PREEMPTED, STOPPED, AttemptState, End, Launch, Report, later
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver
from trimtuner.study.judging import judge, judge_going_on
from trimtuner.study.memory import Recorded
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import recipe_named

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

JOB = Path(__file__).with_name("kept_steps.py")
PRICE_PER_HOUR = 3.6  # a tenth of a cent for a second
INTERVAL = 5


class TakenAway(LocalEngine):
    """The engine of this machine, on which every trial loses its machine so many times, at instants by chance."""

    def __init__(self, folder: Path, times: int, seed: int) -> None:
        super().__init__(bytes(32), [folder])
        self._times, self._chance = times, random.Random(seed)  # noqa: S311
        self._until: dict[str, float] = {}
        self.told: dict[str, End] = {}  # of every attempt

    def start(self, launch: Launch) -> str:
        handle = super().start(launch)
        if launch.attempt <= self._times:
            self._until[handle] = time.monotonic() + self._chance.uniform(0.05, 0.4)
        return handle

    def poll(self, handle: str) -> AttemptState:
        if time.monotonic() >= self._until.get(handle, float("inf")):
            self.stop(handle)
        state = super().poll(handle)
        if state.end is not None and state.end.kind == STOPPED:
            state = replace(state, end=replace(state.end, kind=PREEMPTED))
        if state.end is not None:
            self.told[handle] = state.end
        return state


def problem(trials: int) -> Problem:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=PRICE_PER_HOUR)}
    space = tt.Space({"x": tt.Choice(list(range(trials)))}, cloud=tt.Cloud(machines))
    return Problem.of(space, "accuracy", None, [], 100.0, 100.0)


def take_away(tmp_path: Path, trials: int, times: int, steps: int) -> tuple[TakenAway, Study, list[list[int]]]:
    """Run trials, each pre-empted so many times; the engine, the study, and every step as trial, attempt, step."""
    description = Description(problem(trials), "random", 0)
    memory = Recorded(tmp_path / "a.db", "a", description)
    study = Study.of(description, recipe_named("random").but(stop=tt.AfterTrials(trials)), memory)
    engine = TakenAway(tmp_path / "trials", times, seed=1)
    notes = tmp_path / "notes"
    words = (sys.executable, "-S", str(JOB), later(CHECKPOINT), str(steps), str(INTERVAL), str(notes), str(times + 1))

    def launch(name: str, trial: tt.Trial, attempt: int) -> Launch:
        return Launch(name, trial.number, attempt, words, tmp_path / "trials" / name, tmp_path, {}, (), 90.0)

    Driver(study, memory, engine, launch, retries={PREEMPTED: times}, parallel=2).run()
    return engine, study, [[int(word) for word in line.split()] for line in notes.read_text().splitlines()]


def check_nothing_is_lost_or_paid_twice(engine: TakenAway, study: Study, done: list[list[int]], steps: int) -> None:
    for outcome in study.history.outcomes:
        ends = [end for handle, end in engine.told.items() if Path(handle).name.startswith(f"{outcome.trial.number}-")]
        seconds = sum(end.seconds for end in ends)
        assert outcome.failed is None
        assert outcome.cost == pytest.approx(seconds * PRICE_PER_HOUR / 3600, abs=2e-9 * len(ends))
        assert outcome.measurements[-1].metrics["time"] == pytest.approx(seconds)
        mine = [(attempt, step) for trial, attempt, step in done if trial == outcome.trial.number]
        assert {step for _, step in mine} == set(range(1, steps + 1))
        for attempt in sorted({attempt for attempt, _ in mine}):
            before = [step for earlier, step in mine if earlier < attempt]
            first = min(step for now, step in mine if now == attempt)
            assert first > max(before, default=0) - INTERVAL  # at most what was not yet kept is done again
    assert study.spent == pytest.approx(sum(outcome.cost for outcome in study.history.outcomes), abs=1e-7)


def test_a_trial_that_is_taken_away_goes_on_and_is_charged_for_what_it_ran(tmp_path: Path) -> None:
    engine, study, done = take_away(tmp_path, trials=2, times=2, steps=60)
    assert len(engine.told) == 2 * 3
    check_nothing_is_lost_or_paid_twice(engine, study, done, 60)


@pytest.mark.slow
def test_two_hundred_times_taken_away(tmp_path: Path) -> None:
    engine, study, done = take_away(tmp_path, trials=20, times=10, steps=300)
    preempted = [end for end in engine.told.values() if end.kind == PREEMPTED]
    assert len(preempted) == 200
    check_nothing_is_lost_or_paid_twice(engine, study, done, 300)
    again = len(done) - 20 * 300
    assert 0 <= again < 200 * INTERVAL


def test_what_went_on_measures_the_time_of_all_and_costs_its_own() -> None:
    trial, given = tt.Trial(0, {"vm_type": "small", "vm_count": 1, "x": 0}, 1.0), problem(1)
    state = AttemptState((Report({"accuracy": 0.5}, 8.0),), (), End(None, "exit code 0", 10.0))
    assert state.end is not None
    whole = judge_going_on(given, trial, state, state.end, 30.0).outcome
    alone = judge(given, trial, state, state.end).outcome
    assert whole.measurements[-1].metrics["time"] == 40.0
    assert whole.measurements[-1].metrics["cost"] == pytest.approx(40.0 * PRICE_PER_HOUR / 3600)
    assert whole.cost == alone.cost == pytest.approx(10.0 * PRICE_PER_HOUR / 3600)
