"""Trials that are the mean of several runs: what is recorded, charged and learnt of them."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

import trimtuner as tt
from trimtuner.decisions.learning import noise_of_repeats
from trimtuner.engines.protocol import EXIT, PREEMPTED, End, Launch, Report
from trimtuner.engines.replay.engine import ReplayEngine
from trimtuner.engines.replay.script import Script
from trimtuner.models.posterior import Identity, KnownNoise, LogScale
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver, Happening
from trimtuner.study.memory import Recorded
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import recipe_named

PRICE_PER_HOUR = 3.6  # a tenth of a cent for a second
ACCURACIES, SECONDS = (0.5, 0.7, 0.6), (10.0, 14.0, 12.0)


def problem(budget: float = 10.0) -> Problem:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=PRICE_PER_HOUR)}
    space = tt.Space({"x": tt.Choice([0, 1, 2])}, cloud=tt.Cloud(machines))
    return Problem.of(space, "accuracy", None, [], budget, 100.0)


class Runs:
    """A script that knows which run it is asked for, and notes it."""

    def __init__(self, failing: dict[int, str] | None = None) -> None:
        self.failing = failing or {}  # by attempt
        self.asked: list[tuple[int, int, int]] = []

    def __call__(self, launch: Launch) -> Script:
        if (launch.trial, launch.attempt, launch.repeat) not in self.asked:
            self.asked.append((launch.trial, launch.attempt, launch.repeat))
        if launch.attempt in self.failing:
            return Script((), End(self.failing[launch.attempt], "as the test wants it", 1.0))
        place = (launch.repeat - 1) % 3
        report = Report({"accuracy": ACCURACIES[place]}, SECONDS[place])
        return Script((report,), End(None, "exit code 0", SECONDS[place]))


def driver_of(tmp_path: Path, runs: Runs, *, trials: int = 1, budget: float = 10.0, **retries: int) -> Driver:
    description = Description(problem(budget), "random", 0)
    memory = Recorded(tmp_path / "a.db", "a", description)
    study = Study.of(description, recipe_named("random").but(stop=tt.AfterTrials(trials)), memory)
    engine = ReplayEngine(tmp_path / "trials", bytes(32), runs, 1000.0)

    def launch(name: str, trial: tt.Trial, attempt: int) -> Launch:
        return Launch(name, trial.number, attempt, ("none",), tmp_path / "trials" / name, tmp_path, {}, (), 90.0)

    return Driver(study, memory, engine, launch, repeats=3, retries=retries)


def cost(seconds: float) -> float:
    return seconds * PRICE_PER_HOUR / 3600


def test_a_trial_is_the_mean_of_its_runs_with_their_spread_and_is_charged_for_all(tmp_path: Path) -> None:
    runs, happened = Runs(), list[Happening]()
    driver = driver_of(tmp_path, runs, trials=2)
    driver._listener = happened.append
    driver.run()
    assert runs.asked == [(trial, run, run) for trial in (0, 1) for run in (1, 2, 3)]
    for outcome in driver.study.history.outcomes:
        (measured,) = outcome.measurements
        assert measured.runs == 3
        assert measured.metrics["accuracy"] == pytest.approx(fmean(ACCURACIES))
        assert measured.metrics["time"] == pytest.approx(fmean(SECONDS))
        assert measured.metrics["cost"] == pytest.approx(cost(fmean(SECONDS)))
        assert measured.spread["accuracy"] == pytest.approx(stdev(ACCURACIES))
        assert outcome.cost == pytest.approx(cost(sum(SECONDS)))
        assert outcome.time == pytest.approx(sum(SECONDS))
    assert driver.study.spent == pytest.approx(2 * cost(sum(SECONDS)))
    assert [one.text for one in happened if one.kind == "repeated"] == ["run 2 of 3", "run 3 of 3"] * 2
    assert driver_of(tmp_path, runs).study.history.outcomes == driver.study.history.outcomes  # as it was written down


def test_a_pre_empted_run_is_tried_again_and_is_none_of_the_three(tmp_path: Path) -> None:
    runs = Runs({2: PREEMPTED, 4: PREEMPTED})
    driver = driver_of(tmp_path, runs, preempted=2)
    driver.run()
    assert runs.asked == [(0, 1, 1), (0, 2, 2), (0, 3, 2), (0, 4, 3), (0, 5, 3)]
    (outcome,) = driver.study.history.outcomes
    assert outcome.measurements[-1].runs == 3
    assert outcome.cost == pytest.approx(cost(sum(SECONDS) + 2 * 1.0))


def test_a_run_that_fails_fails_the_trial_and_what_it_cost_is_charged(tmp_path: Path) -> None:
    driver = driver_of(tmp_path, Runs({2: EXIT}))
    driver.run()
    (outcome,) = driver.study.history.outcomes
    assert (outcome.failed, outcome.measurements) == (EXIT, ())
    assert outcome.cost == pytest.approx(cost(SECONDS[0] + 1.0))


def test_runs_that_the_budget_has_no_room_for_are_not_made(tmp_path: Path) -> None:
    worst = cost(100.0)
    driver = driver_of(tmp_path, Runs(), budget=worst + cost(SECONDS[0] + 1.0))
    driver.run()
    (outcome,) = driver.study.history.outcomes
    (measured,) = outcome.measurements
    assert measured.runs == 2
    assert measured.metrics["accuracy"] == pytest.approx(fmean(ACCURACIES[:2]))


def test_a_run_that_was_measured_is_kept_when_the_driver_is_gone(tmp_path: Path) -> None:
    first, runs = driver_of(tmp_path, Runs()), Runs()

    def leave(happening: Happening) -> None:
        if happening.kind == "repeated":
            raise KeyboardInterrupt

    first._listener = leave
    with pytest.raises(KeyboardInterrupt):
        first.run()
    second = driver_of(tmp_path, runs)
    (one,) = second.record.open_trials()
    assert second._launch(one.trial, one.attempt).repeat == 2
    assert [len(measured) for measured in second._runs_of(one.trial).values()] == [1]


def repeated(value: float, deviation: float, runs: int = 3) -> Measurement:
    return Measurement({}, 1.0, {"loss": value}, runs, {"loss": deviation})


def test_the_noise_of_a_mean_is_pooled_over_trials_on_the_scale_of_the_model() -> None:
    told = [repeated(2.0, 0.3), repeated(4.0, 0.1), repeated(5.0, 0.2)]
    pooled = math.sqrt((0.3**2 + 0.1**2 + 0.2**2) / 3 / 3)  # the mean of three runs has a third of their variance
    assert noise_of_repeats(told, "loss", Identity()) == pytest.approx(KnownNoise(pooled, 6))
    on_logarithms = math.sqrt(((0.3 / 2) ** 2 + (0.1 / 4) ** 2 + (0.2 / 5) ** 2) / 3 / 3)
    assert noise_of_repeats(told, "loss", LogScale()) == pytest.approx(KnownNoise(on_logarithms, 6), rel=1e-3)
    assert noise_of_repeats([], "loss", Identity()) is None


@pytest.mark.parametrize("deviation", [0.02, 0.4])
def test_a_process_takes_the_spread_of_many_repeats_for_its_noise(deviation: float) -> None:
    surrogate = recipe_named("trimtuner").surrogate
    chance = np.random.default_rng(3)
    rows = np.column_stack([chance.uniform(size=(12, 2)), np.ones(12)])
    targets = rows[:, 0] + chance.normal(size=12) * 0.1
    generator = np.random.default_rng(0)
    fitted = surrogate.fit_on((), rows, targets, 1.0, generator, KnownNoise(deviation, 200))
    assert math.sqrt(fitted.noise_variance) == pytest.approx(deviation, rel=0.2)
