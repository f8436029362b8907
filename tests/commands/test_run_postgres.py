"""``run`` on a record that a server keeps: several at once, killed, without its server; seen from anywhere."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from postgres_server import PASSWORD, PostgresServer
from trimtuner.jobs.studies import JobStudy
from trimtuner.state import StudyState
from waiting import PATIENCE_SECONDS, wait_until
from written_jobs import start, start_to_kill, starts, status, trimtuner, write_job

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")


@pytest.fixture
def server(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """A server to which the environment has the password, as the job files of these tests have none."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgres_server


def write_shared_job(folder: Path, server: PostgresServer, database: str, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    path = write_job(folder, **{"method": "random", **changes})
    path.write_text(f"{path.read_text()}storage: {server.address(database, password=None)}\n")
    return path


def look_at(path: Path) -> StudyState:
    return JobStudy.at(path).state()


def assert_sound(path: Path) -> None:
    """Nothing is under way, every cent is in the ledger, and no place was measured twice."""
    look = look_at(path)
    history, view = look.history, look.record
    assert not history.pending
    assert view.reserved == 0.0
    charges = sum(entry.nanos for entry in view.ledger() if entry.kind == "charge")
    assert round(view.spent * 1e9) == charges == sum(round(outcome.cost * 1e9) for outcome in history.outcomes)
    places = Counter((tuple(o.trial.config.items()), o.trial.fraction) for o in history.outcomes)
    assert set(places.values()) == {1}


@pytest.mark.slow
def test_the_same_run_on_a_server_and_in_a_file_asks_for_the_same_trials(tmp_path, server):
    (tmp_path / "alone").mkdir()
    alone = write_job(tmp_path / "alone", trials=6, method="random")  # which does not go by the time they took
    shared = write_shared_job(tmp_path / "shared", server, server.new_database(), trials=6, method="random")
    asked = []
    for path in (alone, shared):
        trimtuner("run", path, "-q")
        rows = json.loads(trimtuner("trials", path, "--json").stdout)
        asked.append([(row["config"], row["fraction"], row["origin"]) for row in rows])
    assert len(asked[0]) == 6
    assert asked[0] == asked[1]
    assert sorted(one.name for one in shared.parent.iterdir()) == ["job.yaml", "quick.trials", "ran.txt", "train.py"]
    assert_sound(shared)


@pytest.mark.slow
def test_while_a_run_goes_on_its_status_is_seen_from_anywhere(tmp_path, server):
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=2, until="go", timeout="10min")
    elsewhere = tmp_path / "elsewhere"  # another machine: it has the job file, and nothing else
    elsewhere.mkdir()
    (elsewhere / "job.yaml").write_text(path.read_text())
    began = time.time()
    process = start("run", path)
    wait_until(lambda: starts(path.parent))
    seen = json.loads(trimtuner("status", "job.yaml", "--json", cwd=elsewhere).stdout)
    assert seen["runs"] == 1
    assert [one["watched"] for one in seen["running"]] == [True]
    assert seen["reserved_usd"] > 0
    assert 0 <= seen["running"][0]["seconds"] <= time.time() - began
    assert seen["record"].startswith("postgresql://tuner@127.0.0.1:")
    (path.parent / "go").touch()
    assert process.wait(PATIENCE_SECONDS) == 0
    seen = json.loads(trimtuner("status", "job.yaml", "--json", cwd=elsewhere).stdout)
    assert (seen["runs"], seen["trials"]["succeeded"], seen["reserved_usd"]) == (0, 2, 0.0)
    assert [one.name for one in elsewhere.iterdir()] == ["job.yaml"]


@pytest.mark.slow
def test_two_runs_of_one_job_in_one_folder_share_its_trials(tmp_path, server):
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=8, nap=0.4)
    together = [start("run", path) for _ in range(2)]
    assert [process.wait(PATIENCE_SECONDS) for process in together] == [0, 0]
    assert Counter(starts(path.parent)) == Counter(range(8))
    assert_sound(path)


def test_runs_in_folders_of_their_own_share_the_study_and_neither_starts_what_the_other_did(tmp_path, server):
    database = server.new_database()
    paths = [write_shared_job(tmp_path / name, server, database, trials=10, nap=0.6) for name in ("one", "other")]
    together = [start("run", path) for path in paths]
    assert [process.wait(PATIENCE_SECONDS) for process in together] == [0, 0]
    ran = [starts(path.parent) for path in paths]
    assert Counter([*ran[0], *ran[1]]) == Counter(range(10))
    assert all(ran)
    assert_sound(paths[0])


def test_the_trial_of_a_run_that_was_killed_is_adopted_by_another_that_is_at_work(tmp_path, server):
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=3, until="go", timeout="10min")
    first, second = start_to_kill("run", path), start("run", path)
    wait_until(lambda: len(starts(path.parent)) == 2)  # one of each
    first.kill()
    first.wait()
    (path.parent / "go").touch()
    assert second.wait(PATIENCE_SECONDS) == 0
    assert Counter(starts(path.parent)) == Counter(range(3))
    assert_sound(path)
    events = look_at(path).record.events()
    assert [event.kind for event in events].count("adopted") == 1


def test_a_trial_that_runs_for_another_folder_is_watched_there_and_not_started_again(tmp_path, server):
    database = server.new_database()
    paths = [
        write_shared_job(tmp_path / name, server, database, trials=2, until=tmp_path / "go", timeout="10min")
        for name in ("one", "other")
    ]
    killed = start_to_kill("run", paths[0])
    wait_until(lambda: starts(paths[0].parent))
    killed.kill()
    killed.wait()
    process = start("run", paths[1])
    wait_until(lambda: [event for event in look_at(paths[1]).record.events() if event.kind == "adopted"])
    (tmp_path / "go").touch()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert Counter([*starts(paths[0].parent), *starts(paths[1].parent)]) == Counter(range(2))
    assert status(paths[1])["trials"]["succeeded"] == 2
    assert_sound(paths[1])


def test_a_run_that_is_asked_to_stop_hears_of_it_from_the_server(tmp_path, server):
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=50, until="go", timeout="10min")
    process = start("run", path)
    wait_until(lambda: starts(path.parent))
    trimtuner("stop", path)
    (path.parent / "go").touch()
    assert process.wait(PATIENCE_SECONDS) == 0
    trials = status(path)["trials"]
    assert (trials["failed"], trials["running"]) == (0, 0)
    assert 1 <= trials["succeeded"] < 50


def test_an_attempt_that_is_nowhere_to_be_found_is_charged_and_tried_again(tmp_path, server):
    """As when its machine is gone: what it cost until its run died is known, what it measured is not."""
    database = server.new_database()
    paths = [
        write_shared_job(tmp_path / name, server, database, trials=2, until=tmp_path / "go")
        for name in ("one", "other")
    ]
    killed = start_to_kill("run", paths[0])
    wait_until(lambda: starts(paths[0].parent))
    killed.kill()
    killed.wait()
    engine = JobStudy.at(paths[0]).engine(look_at(paths[0]).record)
    for found in engine.find():
        if found.handle.startswith(str(tmp_path)):
            engine.stop(found.handle)
    shutil.rmtree(paths[0].parent / "quick.trials")
    (tmp_path / "go").touch()
    trimtuner("run", paths[1], "-q")
    view = look_at(paths[1]).record
    charges = [(entry.attempt, entry.usd) for entry in view.ledger() if (entry.trial, entry.kind) == (0, "charge")]
    assert [attempt for attempt, _ in charges] == [1, 2]
    # Until a heartbeat was missed, after one that may be older than the start; no more than the reserve.
    assert 0 < charges[0][1] <= 0.72 * 27 / 3600
    assert (view.reserved, view.status().succeeded) == (0.0, 2)


def test_a_run_goes_on_after_a_restart_of_its_server(tmp_path, own_postgres_server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    server = own_postgres_server
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=2, until="go", timeout="10min")
    process = start("run", path)
    wait_until(lambda: starts(path.parent) and status(path)["running"])
    server.stop()
    (path.parent / "go").touch()
    time.sleep(1.0)
    server.start()
    code = process.wait(PATIENCE_SECONDS)
    assert code in (0, 2)
    if code == 2:  # the server went in the middle of a change, whose outcome nobody can know: another run looks
        trimtuner("run", path, "-q")
    assert Counter(starts(path.parent)) == Counter(range(2))
    assert_sound(path)


def test_without_its_server_every_command_says_so_in_one_line_and_no_password(tmp_path, own_postgres_server):
    server = own_postgres_server
    database = server.new_database()
    path = write_shared_job(tmp_path / "job", server, database, trials=2)
    path.write_text(path.read_text().replace(server.address(database, password=None), server.address(database)))
    server.stop()
    for command in ("run", "status", "best", "stop"):
        done = trimtuner(command, path, check=False)
        assert done.returncode == 2
        assert "cannot be reached" in done.stderr
        assert len([line for line in done.stderr.splitlines() if not line.startswith("warning: ")]) == 1
        assert "s3cret" not in done.stderr + done.stdout


def test_the_password_reaches_no_trial_and_no_log(tmp_path, server):
    path = write_shared_job(tmp_path / "job", server, server.new_database(), trials=1)
    script = path.parent / "train.py"
    script.write_text(script.read_text() + "\nprint(dict(os.environ), flush=True)\n")
    trimtuner("run", path, "-q")
    written = [one.read_text(errors="replace") for one in (path.parent / "quick.trials").rglob("*") if one.is_file()]
    assert any("PATH" in text for text in written)
    assert not any(PASSWORD in text for text in written)
