"""``trimtuner doctor`` on this machine, and on jobs that run on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtuner.commands.doctor import doctor_text, examine, is_ready
from trimtuner.engines.checks import Check
from trimtuner.engines.supervising import fence
from trimtuner.jobs.load import load_job
from written_jobs import trimtuner, write_job


def found(path: Path) -> dict[str, Check]:
    return {check.name: check for check in examine(load_job(path))}


def test_without_a_job_it_looks_at_this_machine(tmp_path):
    done = trimtuner("doctor", cwd=tmp_path)
    assert "python" in done.stdout
    assert "trimtuner" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_can_run_is_ready_and_nothing_is_made(tmp_path):
    path = write_job(tmp_path)
    told = json.loads(trimtuner("doctor", path, "--json").stdout)
    assert told["is_ready"]
    names = {check["name"]: check["outcome"] for check in told["checks"]}
    assert names["record"] == names["command"] == "ok"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["job.yaml", "train.py"]


def test_a_program_that_is_not_here_fails_with_exit_code_2(tmp_path):
    path = write_job(tmp_path, python="no-such-program")
    done = trimtuner("doctor", path, check=False)
    assert done.returncode == 2
    assert "there is no program 'no-such-program'" in done.stdout


def test_a_record_that_is_no_record_fails(tmp_path):
    path = write_job(tmp_path)
    (tmp_path / "quick.db").write_text("this is not a database")
    assert found(path)["record"].outcome == "failed"


def test_a_record_that_is_there_is_fine(tmp_path):
    path = write_job(tmp_path, trials=1)
    trimtuner("run", path, "-q")
    assert found(path)["record"].outcome == "ok"


def test_a_record_that_others_can_open_is_said_and_left_as_it_is(tmp_path):
    path = write_job(tmp_path, trials=1)
    trimtuner("run", path, "-q")
    (tmp_path / "quick.db").chmod(0o664)  # as a team may have it that shares a folder
    check = found(path)["record"]
    assert (check.outcome, check.text) == ("warning", f"{tmp_path / 'quick.db'} can be opened by others")
    assert "chmod 600" in check.advice
    trimtuner("stop", path)
    assert (tmp_path / "quick.db").stat().st_mode & 0o777 == 0o664


def test_a_machine_smaller_than_what_it_stands_in_for_is_a_warning(tmp_path):
    path = write_job(tmp_path, parallel=1000)
    checks = found(path)
    assert checks["cores"].outcome == checks["memory"].outcome == "warning"
    assert is_ready(list(checks.values()))


@pytest.mark.parametrize("kind", [fence.CONTROL_GROUP, fence.PID_NAMESPACE])
def test_what_fences_trials_is_named(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(fence, "kind_here", lambda: kind)
    check = found(write_job(tmp_path))["fence"]
    assert check.outcome == "ok"
    assert kind in check.text


def test_trials_that_only_tags_hold_are_a_warning_with_a_way_out(monkeypatch):
    monkeypatch.setattr(fence, "kind_here", lambda: fence.TAGS_ONLY)
    (check,) = [one for one in examine(None) if one.name == "fence"]
    assert check.outcome == "warning"
    assert "survives a killed supervisor" in check.text
    assert "systemd-run" in check.advice


@pytest.mark.parametrize("engine", ["local", "replay"])
def test_a_policy_is_for_aws_alone(tmp_path, engine):
    path = write_job(tmp_path)
    if engine == "replay":
        path.write_text(path.read_text().replace("type: local", "type: replay, table: digits"))
    done = trimtuner("doctor", path, "--policy", check=False)
    assert done.returncode == 2
    assert "another engine" in done.stderr


def test_what_to_do_stands_below_what_was_found():
    text = doctor_text([Check("record", "failed", "it is full", "empty it")])
    assert text.splitlines()[0].split() == ["FAILED", "record", "it", "is", "full"]
    assert "-> empty it" in text.splitlines()[1]
