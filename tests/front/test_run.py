"""``run`` as a user meets it: real commands, real kills, a real record."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from jobs import start, starts, status, trimtuner, write_job

from trimtuner.front.look import Look
from trimtuner.front.studies import JobStudy
from trimtuner.problem.history import History
from trimtuner.tuning import tuner
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")


def look_at(path: Path) -> Look:
    return Look.at(JobStudy.at(path))


def assert_sound(path: Path) -> None:
    """Every trial ran once, every cent is in the ledger, and every trial is the one that its history asks for."""
    look = look_at(path)
    history, view = look.history, look.view
    assert not history.pending
    assert view.reserved == 0.0
    charges = sum(entry.nanos for entry in view.ledger() if entry.kind == "charge")
    assert round(view.spent * 1e9) == charges == sum(round(outcome.cost * 1e9) for outcome in history.outcomes)
    places = Counter((tuple(o.trial.config.items()), o.trial.fraction) for o in history.outcomes if o.failed is None)
    assert set(places.values()) <= {1}
    assert view.spent <= (view.budget or float("inf"))


def assert_same_as_without_kills(path: Path) -> None:
    """With one trial at a time, each must be what a fresh ask on the history before it gives."""
    look = look_at(path)
    outcomes = sorted(look.history.outcomes, key=lambda outcome: outcome.trial.number)
    for number, outcome in enumerate(outcomes):
        assert outcome.trial.number == number
        before = History(tuple(outcomes[:number]), (), number)
        asked = tuner.ask(look.study.problem, look.study.recipe, before, look.study.seed)
        assert (dict(asked.config), asked.fraction, asked.recommended) == (
            dict(outcome.trial.config),
            outcome.trial.fraction,
            outcome.trial.recommended,
        )


def kill_and_resume(path: Path, kills: int, seed: int, longest: float = 1.6) -> int:
    """Start ``run``, kill it at a random instant, so many times; then let one finish. How many kills hit a live run."""
    chance, hit, seen = random.Random(seed), 0, 0  # noqa: S311
    for _ in range(kills):
        process = start("run", path)
        time.sleep(chance.uniform(0.0, longest))
        hit += process.poll() is None
        process.kill()
        process.wait()
        if (path.parent / "quick.db").exists():
            measured = len(look_at(path).history.measurements) if _has_study(path) else 0
            assert measured >= seen, "a finished measurement was lost"
            seen = measured
    trimtuner("run", path, "-q")
    return hit


def _has_study(path: Path) -> bool:
    return trimtuner("status", path, "--json", check=False).returncode == 0


def test_a_run_finds_the_best_and_says_what_trains_it(tmp_path):
    path = write_job(tmp_path, trials=14)
    done = trimtuner("run", path)
    assert "over: the search is over: 14 of 14 trials are made" in done.stdout
    best = json.loads(trimtuner("best", path, "--json").stdout)
    assert best["config"]["x"] == 0.6
    assert best["command"][1:] == ["train.py", "0.6", "1.0", "14"]
    assert sorted(starts(tmp_path)) == list(range(14))
    assert_sound(path)
    assert_same_as_without_kills(path)
    assert "14 succeeded" in trimtuner("status", path).stdout
    assert len(json.loads(trimtuner("trials", path, "--json").stdout)) == 14
    assert "chose it after" in trimtuner("explain", path, 9).stdout
    assert "the best five are" in trimtuner("explain", path).stdout


def test_killed_at_random_instants_a_run_goes_on_as_if_nothing_had_happened(tmp_path):
    path = write_job(tmp_path, trials=10, nap=0.2)
    assert kill_and_resume(path, 8, seed=0) >= 4
    assert Counter(starts(tmp_path)) == Counter(range(10))
    assert_sound(path)
    assert_same_as_without_kills(path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_nothing(tmp_path):
    hits, studies = 0, 0
    while hits < 200:
        folder = tmp_path / str(studies)
        folder.mkdir()
        path = write_job(folder, trials=24, nap=0.3)
        hits += kill_and_resume(path, 40, seed=studies)
        assert Counter(starts(folder)) == Counter(range(24))
        assert_sound(path)
        assert_same_as_without_kills(path)
        studies += 1
    print(f"{hits} kills of live runs in {studies} studies, {24 * studies} trials, no loss")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_eight_runs_with_random_kills_never_start_a_place_twice(tmp_path):
    """288 configurations; a killed run is replaced at once, until one finds nothing left to ask."""
    path = write_job(tmp_path, trials=288, nap=0.05, method="random", values=list(range(144)), fractions=[1])
    chance, kills = random.Random(0), 0  # noqa: S311
    runs = [start("run", path) for _ in range(8)]
    while not any(process.poll() == 0 for process in runs):
        time.sleep(chance.uniform(0.2, 1.5))
        victim = chance.randrange(8)
        if runs[victim].poll() is None and kills < 60:
            runs[victim].kill()
            runs[victim].wait()
            kills += 1
            runs[victim] = start("run", path)
    assert all(process.wait(PATIENCE_SECONDS) == 0 for process in runs)
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == Counter(range(288))
    assert_sound(path)
    print(f"{kills} kills, 8 processes, 288 trials, no place started twice")


def test_trials_side_by_side_are_distinct_and_none_waits_for_a_slower_one(tmp_path):
    path = write_job(tmp_path, trials=8, parallel=3, nap=0.3)
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == Counter(range(8))
    assert_sound(path)


def test_several_runs_of_one_job_share_it(tmp_path):
    path = write_job(tmp_path, trials=12, nap=0.2)
    together = [start("run", path) for _ in range(3)]
    assert [process.wait(PATIENCE_SECONDS) for process in together] == [0, 0, 0]
    assert Counter(starts(tmp_path)) == Counter(range(12))
    assert_sound(path)


def test_the_budget_is_a_cap_that_worst_cases_are_reserved_from(tmp_path):
    """A trial reserves 27 s (20 and the time to end it) at 0.36 or 0.72 USD per hour: 0.0027 or 0.0054 USD.

    Of 0.003 USD one small one fits at a time, and none once 0.0003 are spent: after three seconds of trials.
    """
    path = write_job(tmp_path, trials=50, money="0.003 USD", parallel=2, nap=1)
    done = trimtuner("run", path)
    assert "covers no trial" in done.stdout
    assert_sound(path)
    held, most = 0, 0
    for _, together in groupby(look_at(path).view.ledger(), key=lambda entry: (entry.at, entry.trial)):
        held += sum(-entry.nanos if entry.kind == "release" else entry.nanos for entry in together)
        most = max(most, held)
    assert 2_700_000 <= most <= 3_000_000


def test_failures_are_charged_and_not_asked_again(tmp_path):
    path = write_job(tmp_path, trials=6, fail="2")
    trimtuner("run", path, "-q")
    look = look_at(path)
    failed = [outcome for outcome in look.history.outcomes if outcome.failed is not None]
    assert [(outcome.trial.number, outcome.failed) for outcome in failed] == [(2, "exit")]
    assert failed[0].cost > 0
    assert_sound(path)


def test_a_second_run_of_a_finished_study_starts_nothing(tmp_path):
    path = write_job(tmp_path, trials=3)
    trimtuner("run", path, "-q")
    trimtuner("run", path, "-q")
    assert sorted(starts(tmp_path)) == [0, 1, 2]


def interrupt(process: subprocess.Popen[bytes], heard: str) -> None:
    """Return when it has said so."""
    os.kill(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert any(heard in line.decode() for line in process.stderr)


def test_interrupted_once_it_waits_for_the_running_trial(tmp_path):
    path = write_job(tmp_path, trials=50, until="go", timeout="10min")
    with start("run", path, stderr=subprocess.PIPE) as process:
        wait_until(lambda: starts(tmp_path))
        interrupt(process, "waiting for the running trials")
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert status(path)["trials"]["running"] == 0
    assert starts(tmp_path) == [0]
    assert_sound(path)


def test_interrupted_twice_it_leaves_and_the_next_run_adopts_the_trial(tmp_path):
    path = write_job(tmp_path, trials=2, until="go", timeout="10min")
    with start("run", path, stderr=subprocess.PIPE) as process:
        wait_until(lambda: starts(tmp_path))
        interrupt(process, "waiting for the running trials")
        interrupt(process, "left at once")
        assert process.wait(PATIENCE_SECONDS) == 130
    assert status(path)["trials"]["running"] == 1
    (tmp_path / "go").touch()
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == Counter([0, 1])
    assert_sound(path)


def test_stop_asks_a_run_to_end_and_now_ends_its_trials(tmp_path):
    path, began = write_job(tmp_path, trials=50, until="never", timeout="10min"), time.monotonic()
    process = start("run", path)
    wait_until(lambda: starts(tmp_path))
    assert "ended trials 0" in trimtuner("stop", path, "--now").stdout
    assert process.wait(PATIENCE_SECONDS) == 3  # no answer: nothing was measured
    (outcome,) = look_at(path).history.outcomes
    assert outcome.failed == "preempted"
    assert 0 < outcome.time <= time.monotonic() - began
    assert_sound(path)


def test_what_was_measured_elsewhere_is_not_bought_again(tmp_path):
    path = write_job(tmp_path, trials=6)
    lines = ["x,vm_type,vm_count,fraction,accuracy,time"]
    lines += [f"{x},small,1,0.1,0.5,1.0" for x in (0, 0.2, 0.4, 0.6)]
    (tmp_path / "known.csv").write_text("\n".join(lines))
    assert trimtuner("import", path, tmp_path / "known.csv").stdout == "4 measurements added, 0 known already\n"
    assert trimtuner("import", path, tmp_path / "known.csv").stdout == "0 measurements added, 4 known already\n"
    trimtuner("run", path, "-q")
    look = look_at(path)
    bought = [o.trial for o in look.history.outcomes if o.cost > 0]
    assert bought
    known = {0, 0.2, 0.4, 0.6}
    assert not any(t.fraction == 0.1 and t.config["vm_type"] == "small" and t.config["x"] in known for t in bought)
    exported = trimtuner("export", path).stdout.splitlines()
    assert len(exported) == 1 + len(look.history.measurements)


def test_another_problem_under_the_same_name_is_refused_and_said(tmp_path):
    path = write_job(tmp_path, trials=2)
    trimtuner("run", path, "-q")
    text = path.read_text()
    path.write_text(text.replace("0.8, 1]", "0.8]"))
    refused = trimtuner("run", path, check=False)
    assert refused.returncode == 2
    assert "another problem" in refused.stderr
    assert "Traceback" not in refused.stderr
    path.write_text(text)
    assert trimtuner("run", path, "-q").returncode == 0


def test_asking_before_anything_was_measured_is_no_answer(tmp_path):
    path = write_job(tmp_path)
    assert trimtuner("status", path, check=False).returncode == 2
    known = tmp_path / "none.csv"
    known.write_text("x,vm_type,vm_count,fraction,accuracy,time\n")
    trimtuner("import", path, known)
    assert trimtuner("best", path, check=False).returncode == 3
