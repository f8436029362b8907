"""Whichever door is used, a model of ours works on one thread, and what was set before is set again afterwards."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimtuner.engines.supervising.environment import THREADS
from written_jobs import trimtuner, write_job


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    path = write_job(tmp_path_factory.mktemp("study"), trials=8, nap=0)
    trimtuner("run", path, "-q")
    return path


@pytest.mark.parametrize("door", ["here", "page"])
def test_models_work_on_one_thread_where_nothing_says_so(job, tmp_path, door):
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    script = Path(__file__).with_name("threads_seen.py")
    command = [sys.executable, script, job, door]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path).stdout
    before, inside, after = re.fullmatch(r"before (\d+) inside \[(.*)\] after (\d+)\n", told).groups()
    assert inside == "1"
    assert after == before
