"""What is shown of a run: in a terminal, when showing fails, and when no run is at work."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from quick_commands import SCRIPTS
from trimtuner.jobs.studies import JobStudy
from trimtuner.study.telling import status_text
from written_jobs import quick_program, quiet_environment, start_to_kill, status, trimtuner, write_job

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")

BREAKING = """
import sys
from trimtuner.commands import running

def breaks(*_):
    raise RuntimeError("nothing to see")

running.{name} = breaks
sys.argv = ["trimtuner", "run", "{job}"]
from trimtuner.cli import main
main()
"""


def breaking(name: str, job: Path) -> list[str]:
    """``trimtuner run`` with a part of its display that fails."""
    script = job.with_name("breaking.py")
    script.write_text(BREAKING.format(name=name, job=job))
    return [str(Path(quick_program()).with_name(SCRIPTS)), str(script)]


def in_terminal(*command: str) -> tuple[int, str]:
    """Run a command whose standard output and error are a terminal; its exit code, and what it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=quiet_environment())
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the last of them has closed it
            break
        if not part:
            break
        written += part
    os.close(ours)
    return process.wait(), written.decode("utf-8", "replace")


def continuous(folder: Path, **changes: object) -> Path:
    """A job with a continuous parameter."""
    path = write_job(folder, **{"nap": 0, "trials": 14, "method": "trimtuner-dt", **changes})
    path.write_text(path.read_text().replace("x: {values: [0, 0.2, 0.4, 0.6, 0.8, 1]}", "x: {min: 0.0, max: 1.0}"))
    return path


def test_a_continuous_parameter_is_run_and_looked_at_in_a_terminal(tmp_path):
    path = continuous(tmp_path)
    code, shown = in_terminal(quick_program(), "run", str(path))
    assert code == 0, shown
    assert "Traceback" not in shown
    assert "the display failed" not in shown
    assert status(path)["trials"] == {"succeeded": 14, "over_limit": 0, "failed": 0, "forgotten": 0, "running": 0}
    recommended = {tuple(o.trial.recommended[0].values()) for o in history_of(path).outcomes if o.trial.recommended}
    assert len(recommended) > 1  # else nothing could have left the pool
    assert "recommended:" in trimtuner("status", path).stdout


def history_of(path: Path):
    return JobStudy.at(path).state().history


@pytest.mark.parametrize("name", ["_knowledge", "_work", "_text"])
def test_a_display_that_fails_is_told_once_and_the_run_goes_on(tmp_path, name):
    path = write_job(tmp_path, nap=0, trials=3, method="random")
    code, shown = in_terminal(*breaking(name, path))
    assert code == 0, shown
    assert shown.count("the display failed") == 1
    assert "RuntimeError: nothing to see" in shown
    assert name != "_text" or "trial 0 ended" in shown
    assert "recommended:" in shown
    assert status(path)["trials"]["succeeded"] == 3


def test_lines_that_fail_are_told_once_and_the_run_goes_on(tmp_path):
    path = write_job(tmp_path, nap=0, trials=3, method="random")
    command = breaking("_recommended", path)
    done = subprocess.run(command, capture_output=True, text=True, env=quiet_environment(), check=True)
    assert done.stderr.count("the display failed") == 1
    assert "trial 2 ended" in done.stderr
    assert status(path)["trials"]["succeeded"] == 3


def test_where_no_run_is_at_work_no_end_is_forecast_and_what_nobody_watches_is_not_called_running(tmp_path):
    path = write_job(tmp_path, nap=600, trials=5, timeout="5s", method="random")
    run = start_to_kill("run", path)
    while not path.with_name("ran.txt").exists():
        assert run.poll() is None
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    told = trimtuner("status", path).stdout
    assert "No run is at work" in told
    assert "runs out" not in told
    assert "0 running, 1 under way that no run watches; no run at work" in told
    assert "unwatched" in told
    look = JobStudy.at(path).state()
    later = replace(look, now=look.now + look.problem.trial_limit + 1.0)  # if nothing happens until then
    assert "uncollected" in status_text(later)
    trimtuner("stop", path, "--now")


def test_a_trial_that_breaks_a_limit_on_another_metric_says_so(tmp_path):
    path = write_job(tmp_path, nap=0, trials=6, fractions=[1], method="random")
    text = path.read_text().replace('"cost <= 1 USD"', '"cost <= 1 USD", "size_mb <= 50"')
    path.write_text(text)
    script = path.with_name("train.py")
    script.write_text(script.read_text().replace('"accuracy": (', '"size_mb": 100 * x, "accuracy": ('))
    lines = [line for line in trimtuner("run", path).stderr.splitlines() if " measured " in line]
    assert len(lines) == 6
    for line in lines:
        x = float(line.split("x=")[1].split()[0])
        assert f"size_mb {100 * x:.4g} " in line
        assert ("breaks size_mb" in line) == (100 * x > 50)
    broken = [row["config"]["x"] for row in json_of("trials", path) if row["breaks"] == ["size_mb"]]
    assert sorted(broken) == sorted(row["config"]["x"] for row in json_of("trials", path) if row["config"]["x"] > 0.5)
    assert broken
    assert "ok, breaks size_mb" in trimtuner("trials", path).stdout


def json_of(command: str, path: Path):
    return json.loads(trimtuner(command, path, "--json").stdout)


def test_without_prices_no_sum_of_money_is_told(tmp_path):
    path = write_job(tmp_path, nap=0, trials=4, method="trimtuner-dt")
    head, _, tail = path.read_text().partition("cloud:")
    text = head + "run:" + tail.partition("run:")[2]
    path.write_text(text.replace('constraints: ["cost <= 1 USD"]\n', "").replace("money: 5 USD, ", ""))
    ran = trimtuner("run", path)
    told = [ran.stdout, ran.stderr, *(trimtuner(verb, path).stdout for verb in ("status", "best", "trials"))]
    report = trimtuner("report", path, "--output", "-").stdout
    for text in (*told, report):
        assert "USD" not in text
    assert "no prices are known" in told[2]
