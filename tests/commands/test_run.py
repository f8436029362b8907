"""``run`` as a user meets it: real commands, real kills, a real record."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest

from trimtuner import cli
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.history import History
from trimtuner.state import StudyState
from trimtuner.tuning import tuner
from waiting import PATIENCE_SECONDS, wait_until
from written_jobs import quick_program, quiet_environment, start, start_to_kill, starts, status, trimtuner, write_job

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")


def look_at(path: Path) -> StudyState:
    return JobStudy.at(path).state()


def assert_sound(path: Path) -> None:
    """Every trial ran once, every cent is in the ledger, and every trial is the one that its history asks for."""
    look = look_at(path)
    history, view = look.history, look.record
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
        asked = tuner.ask(look.problem, look.recipe, before, look.seed)
        assert (dict(asked.config), asked.fraction, asked.recommended) == (
            dict(outcome.trial.config),
            outcome.trial.fraction,
            outcome.trial.recommended,
        )


def kill_and_resume(path: Path, kills: int, seed: int, longest: float = 1.6) -> int:
    """Start ``run``, kill it at a random instant, so many times; then let one finish. How many kills hit a live run."""
    chance, hit, seen = random.Random(seed), 0, 0  # noqa: S311
    for _ in range(kills):
        process = start_to_kill("run", path)
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
    assert kill_and_resume(path, 5, seed=0) >= 3
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
    path = write_job(
        tmp_path, trials=288, nap=0.05, method="random", values=[number / 1000 for number in range(144)], fractions=[1]
    )
    chance, kills = random.Random(0), 0  # noqa: S311
    runs = [start_to_kill("run", path) for _ in range(8)]
    while not any(process.poll() == 0 for process in runs):
        time.sleep(chance.uniform(0.2, 1.5))
        victim = chance.randrange(8)
        if runs[victim].poll() is None and kills < 60:
            runs[victim].kill()
            runs[victim].wait()
            kills += 1
            runs[victim] = start_to_kill("run", path)
    assert all(process.wait(PATIENCE_SECONDS) == 0 for process in runs)
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == Counter(range(288))
    assert_sound(path)
    print(f"{kills} kills, 8 processes, 288 trials, no place started twice")


def test_trials_side_by_side_are_distinct_and_none_waits_for_a_slower_one(tmp_path):
    path = write_job(tmp_path, trials=8, parallel=3, nap=0.3, method="random")
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == Counter(range(8))
    assert_sound(path)


def test_several_runs_of_one_job_share_it(tmp_path):
    path = write_job(tmp_path, trials=12, nap=0.2, method="random")
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
    for _, together in groupby(look_at(path).record.ledger(), key=lambda entry: (entry.at, entry.trial)):
        held += sum(-entry.nanos if entry.kind == "release" else entry.nanos for entry in together)
        most = max(most, held)
    assert 2_700_000 <= most <= 3_000_000


def test_failures_are_charged_and_not_asked_again(tmp_path):
    path = write_job(tmp_path, trials=6, fail="2", method="random")
    trimtuner("run", path, "-q")
    look = look_at(path)
    failed = [outcome for outcome in look.history.outcomes if outcome.failed is not None]
    assert [(outcome.trial.number, outcome.failed) for outcome in failed] == [(2, "exit")]
    assert failed[0].cost > 0
    assert_sound(path)


def test_a_second_run_of_a_finished_study_starts_nothing(tmp_path):
    path = write_job(tmp_path, trials=3, method="random")
    trimtuner("run", path, "-q")
    trimtuner("run", path, "-q")
    assert sorted(starts(tmp_path)) == [0, 1, 2]


def interrupt(process: subprocess.Popen[bytes], heard: str) -> None:
    """Return when it has said so."""
    os.kill(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert any(heard in line.decode() for line in process.stderr)


def test_interrupted_once_it_waits_for_the_running_trial(tmp_path):
    path = write_job(tmp_path, trials=50, until="go", timeout="10min", method="random")
    with start("run", path, stderr=subprocess.PIPE) as process:
        wait_until(lambda: starts(tmp_path))
        interrupt(process, "waiting for the running trials")
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert status(path)["trials"]["running"] == 0
    assert starts(tmp_path) == [0]
    assert_sound(path)


def test_interrupted_twice_it_leaves_and_the_next_run_adopts_the_trial(tmp_path):
    path = write_job(tmp_path, trials=2, until="go", timeout="10min", method="random")
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
    path, began = write_job(tmp_path, trials=50, until="never", timeout="10min", method="random"), time.monotonic()
    process = start("run", path)
    wait_until(lambda: starts(tmp_path))
    assert "ended trials 0" in trimtuner("stop", path, "--now").stdout
    assert process.wait(PATIENCE_SECONDS) == 3  # no answer: nothing was measured
    (outcome,) = look_at(path).history.outcomes
    assert outcome.failed == "preempted"
    assert 0 < outcome.time <= time.monotonic() - began
    assert_sound(path)


def test_a_run_whose_record_is_deleted_stops_and_a_rebuilt_one_goes_on_with_what_was_spent(tmp_path):
    path = write_job(tmp_path, trials=3, until="go", timeout="10min", method="random")
    with start("run", path, stderr=subprocess.PIPE) as process:
        wait_until(lambda: starts(tmp_path))
        wait_until(lambda: (tmp_path / "quick.db.ledger").read_text().count('"started"'))
        (tmp_path / "quick.db").unlink()
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert process.wait(PATIENCE_SECONDS) == 2
    assert "was moved, deleted or replaced" in said
    assert "1 trials, 0 USD charged" in said
    assert "Ended: trial 0" in said
    (tmp_path / "go").touch()
    for verb in ("run", "status", "stop", "doctor"):
        refused = trimtuner(verb, path, check=False)
        assert refused.returncode == 2
        assert "is gone, but the ledger" in refused.stdout + refused.stderr
    assert starts(tmp_path) == [0]
    assert "1 trials, 0 USD charged" in trimtuner("restore", path).stdout
    trimtuner("run", path, "-q")
    assert Counter(starts(tmp_path)) == {0: 2, 1: 1, 2: 1}  # what was ended for no fault of its own is tried again
    assert [attempt.charge > 0 for attempt in look_at(path).record.attempts()] == [True] * 4
    assert_sound(path)


def test_a_run_whose_record_is_put_back_goes_on(tmp_path):
    path = write_job(tmp_path, trials=2, until="go", timeout="10min", method="random")
    record, away = tmp_path / "quick.db", tmp_path / "away.db"
    process = start("run", path)
    wait_until(lambda: starts(tmp_path))
    record.rename(away)
    assert process.wait(PATIENCE_SECONDS) == 2
    away.rename(record)
    (tmp_path / "go").touch()
    trimtuner("run", path, "-q")
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
    path = write_job(tmp_path, trials=2, method="random")
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


@pytest.fixture
def command(monkeypatch, capsys):
    """The command line in this process, which is quicker than in one of its own."""

    def run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["trimtuner", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        done = subprocess.CompletedProcess(sys.argv, left.value.code or 0, *capsys.readouterr())
        if check:
            done.check_returncode()
        return done

    return run


def status_of(command, path: Path) -> dict:
    return json.loads(command("status", path, "--json").stdout)


def test_a_wrong_command_is_mended_and_its_failures_count_for_nothing(command, tmp_path):
    path = write_job(tmp_path, trials=6, method="random", nap=0)
    right = path.read_text()
    path.write_text(right.replace("train.py", "trian.py"))
    wrong = command("run", path, "-q", check=False)
    assert wrong.returncode == 3
    assert f"trimtuner forget {path} --failed" in wrong.stdout
    assert status_of(command, path)["trials"] == {
        "succeeded": 0,
        "over_limit": 0,
        "failed": 5,
        "running": 0,
        "forgotten": 0,
    }
    path.write_text(right)
    mended = command("run", path)
    assert "5 trials that failed before anything was measured are forgotten; their cost of " in mended.stderr
    assert status_of(command, path)["trials"] == {
        "succeeded": 6,
        "over_limit": 0,
        "failed": 0,
        "running": 0,
        "forgotten": 5,
    }
    assert sorted(starts(tmp_path)) == list(range(5, 11))
    assert [row["state"] for row in json.loads(command("trials", path, "--json").stdout)][4:6] == [
        "forgotten (exit)",
        "ok",
    ]
    assert "forgotten (exit)" in command("report", path, "-o", "-").stdout
    assert_sound(path)


def test_failures_are_forgotten_by_number_or_all_and_what_cannot_be_is_said(command, tmp_path):
    path = write_job(tmp_path, trials=4, fail="1", method="random", nap=0)
    assert "there is no record" in command("forget", path, "--failed", check=False).stderr
    assert not (tmp_path / "quick.db").exists()
    command("run", path, "-q")
    spent = status_of(command, path)["spent_usd"]
    for words, complaint in (
        ((), "say what to forget"),
        ((1, "--failed"), "say what to forget"),
        ((0,), "trial 0 succeeded"),
        ((9,), "there is no trial 9"),
    ):
        refused = command("forget", path, *words, check=False)
        assert (refused.returncode, complaint in refused.stderr) == (2, True)
    assert command("forget", path, 1, 1).stdout.startswith("forgotten: 1; their cost of ")
    assert "trial 1 is forgotten already" in command("forget", path, 1, check=False).stderr
    assert command("forget", path, "--failed").stdout == "there is no failure to forget\n"
    assert status_of(command, path)["spent_usd"] == spent
    command("run", path, "-q")
    assert sorted(starts(tmp_path)) == [0, 1, 2, 3, 4]
    assert_sound(path)


def test_a_job_file_that_differs_from_its_record_is_said_wherever_it_is_judged_by(command, tmp_path):
    path = write_job(tmp_path, trials=3, method="trimtuner-dt", nap=0)
    command("run", path, "-q")
    path.write_text(path.read_text().replace("cost <= 1 USD", "cost <= 2 USD"))
    difference = "constraints.cost.at_most: was 1.0, is 2.0"
    found = command("validate", path, "--json", check=False)
    told = json.loads(found.stdout)
    assert (found.returncode, told["is_valid"], told["differs_from_record"]) == (2, False, [difference])
    assert "not ready to run" in command("validate", path, check=False).stdout
    for verb in ("status", "best", "trials", "explain"):
        assert f"warning: the job file differs from its record ({difference})" in command(verb, path).stderr
    for verb in ("status", "best"):
        assert json.loads(command(verb, path, "--json").stdout)["differs_from_record"] == [difference]
    for name in ("a.html", "a.md"):
        assert difference in command("report", path, "-o", tmp_path / name).stderr
        assert "the job file differs from its record" in (tmp_path / name).read_text()


def test_what_may_change_without_a_new_study_is_no_difference(command, tmp_path):
    path = write_job(tmp_path, trials=2, method="trimtuner-dt", nap=0)
    command("run", path, "-q")
    changes = {"trials": 3, "money": "4 USD", "timeout": "30s", "nap": 0.01, "parallel": 2, "method": "trimtuner-dt"}
    write_job(tmp_path, **changes)
    assert json.loads(command("validate", path, "--json").stdout)["differs_from_record"] == []
    assert "differs" not in command("run", path).stderr
    assert len(look_at(path).history.outcomes) == 3


def test_the_ways_on_from_another_problem_work_as_they_are_written(command, tmp_path):
    path = write_job(tmp_path, trials=3, nap=0)
    command("run", path, "-q")
    path.write_text(path.read_text().replace("cost <= 1 USD", "cost <= 2 USD"))
    refused = command("run", path, check=False)
    assert refused.returncode == 2
    assert refused.stderr in command("validate", path, check=False).stdout.replace("error: ", "trimtuner: ")
    lines = [line.strip() for line in refused.stderr.splitlines() if line.startswith("    ")]
    copy, run, export, take_in, learn = lines
    shell = f'trimtuner() {{ {quick_program()} "$@"; }}; set -e; {copy}; {export}; {take_in}; {run} -q'
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, env=quiet_environment())
    assert "3 measurements added" in done.stdout, done.stderr
    new = tmp_path / "job-2.yaml"
    assert [one.trial.origin for one in look_at(new).history.outcomes][:3] == ["import"] * 3
    learning = tmp_path / "job-3.yaml"
    text = new.read_text().replace("name: quick-2", "name: quick-3").replace("seed: 1", f"seed: 1, {learn}")
    learning.write_text(text)
    command("run", learning, "-q")
    assert "learns from quick (3 measurements)" in command("explain", learning).stdout


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("values: [0, 0.2, 0.4, 0.6, 0.8, 1]", "values: [7]", "is not one of"),
        ("  x: {", "  y: {values: [1, 2]}\n  x: {", "has no 'y'"),
        ("cost <= 1 USD", "latency <= 1", "latency was not measured"),
    ],
)
def test_what_cannot_be_judged_by_the_job_file_is_an_error_and_no_traceback(command, tmp_path, old, new, why):
    path = write_job(tmp_path, trials=2, method="trimtuner-dt", nap=0)
    command("run", path, "-q")
    path.write_text(path.read_text().replace(old, new))
    for verb in ("status", "best", "report"):
        refused = command(verb, path, check=False)
        assert (refused.returncode, why in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)
    assert len(json.loads(command("trials", path, "--json").stdout)) == 2
    assert len(command("export", path).stdout.splitlines()) == 3


def test_run_begins_with_what_validate_warns_of_even_where_it_is_quiet(command, tmp_path):
    path = write_job(tmp_path, trials=1, method="random", nap=0)
    path.write_text(path.read_text().replace("train.py", "trian.py"))
    warning = f"run.command: there is no file 'trian.py' in {tmp_path}"
    done = command("run", path, "-q", check=False)
    assert done.stderr.splitlines()[0] == f"warning: {warning}"
    told = json.loads(command("run", path, "--json", check=False).stdout)
    assert told["warnings"] == [warning]


def test_what_cannot_run_is_refused_before_anything_is_written(command, tmp_path):
    path = write_job(tmp_path, trials=1)
    path.write_text(path.read_text().replace("  timeout:", "  working_directory: nowhere\n  timeout:"))
    refused = command("run", path, check=False)
    assert refused.returncode == 2
    assert "run.working_directory: there is no folder" in refused.stderr
    assert not (tmp_path / "quick.db").exists()


def test_a_damaged_record_is_said_to_be_and_nothing_goes_on_with_it(command, tmp_path):
    path = write_job(tmp_path, trials=3, method="random", nap=0)
    command("run", path, "-q")
    assert command("verify", path).stdout.endswith("sound\n")
    assert json.loads(command("verify", path, "--json").stdout)["is_sound"]
    with closing(sqlite3.connect(tmp_path / "quick.db", isolation_level=None)) as connection:
        connection.execute("UPDATE trials SET cost = cost / 2 WHERE number = 1")
    for verb in ("run", "status", "best", "trials", "export", "report", "stop", "reap"):
        refused = command(verb, path, check=False)
        assert refused.returncode == 2
        assert "damaged (trials: number 1 is not as it was written)" in refused.stderr
    told = command("verify", path, "--json", check=False)
    assert told.returncode == 2
    assert json.loads(told.stdout)["faults"] == ["trials: number 1 is not as it was written"]
    assert "trimtuner restore JOB" in command("verify", path, check=False).stdout
    assert "is damaged" in command("doctor", path, check=False).stdout
    (tmp_path / "quick.db").rename(tmp_path / "damaged.db")
    command("restore", path)
    assert command("verify", path).returncode == 0
    assert len(starts(tmp_path)) == 3
    assert_sound(path)


def test_a_limit_that_nothing_keeps_ends_the_run_before_it_has_cost_much_and_trials_may_be_let_run_to_their_end(
    tmp_path,
):
    """Each trial takes 0.7 s, where 0.5 are allowed: it is over after 0.6."""
    path = write_job(tmp_path, nap=0.7, trials=12, fractions=[1])
    path.write_text(path.read_text().replace("cost <= 1 USD", "time <= 0.5s"))
    first = trimtuner("run", path, check=False)
    assert first.returncode == 3
    assert "over: 5 trials were stopped for being over time <= 0.5s, and none was measured" in first.stdout
    outcomes = look_at(path).history.outcomes
    assert [one.is_over_limit for one in outcomes] == [True] * 5
    assert "trials: 0 succeeded, 5 stopped over a limit, 0 failed" in trimtuner("status", path).stdout
    assert "there is no failure to forget" in trimtuner("forget", path, "--failed").stdout
    path.write_text(path.read_text().replace("run:", "run:\n  stop_at_limits: false"))
    trimtuner("run", path)
    assert [one.failed for one in look_at(path).history.outcomes[5:]] == [None] * 7
    assert_sound(path)


def test_a_limit_on_cost_stops_a_trial_on_a_dear_machine_sooner(tmp_path):
    """0.36 and 0.72 USD an hour: for 0.00012 USD, 1.2 s and 0.6 s, with the fifth 1.44 and 0.72; each takes 1 s."""
    path = write_job(tmp_path, nap=1.0, trials=12, fractions=[1], values=[0.6], method="random")
    path.write_text(path.read_text().replace("cost <= 1 USD", "cost <= 0.00012 USD"))
    trimtuner("run", path)
    over = {str(one.trial.config["vm_type"]): one.is_over_limit for one in look_at(path).history.outcomes}
    assert over == {"small": False, "large": True}
