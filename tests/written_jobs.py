"""A job for tests: quick, with a known answer, and a trace of every command that really ran."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from quick_commands import quick_commands

TRAIN = """
import json, os, sys, time
from pathlib import Path

x, fraction, trial = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with open("ran.txt", "a") as file:  # one line a start, whole or not at all
    file.write(f"{trial} {os.getpid()}\\n")
time.sleep(float(os.environ.get("NAP", "0.05")))
while os.environ.get("UNTIL") and not Path(os.environ["UNTIL"]).exists():
    time.sleep(0.02)
if os.environ.get("FAIL") == str(trial):
    sys.exit(3)
print("::metric " + json.dumps({"accuracy": (1 - (x - 0.6) ** 2) * fraction ** 0.1}), flush=True)
"""

JOB = """
name: quick
goal: {{maximize: accuracy}}
constraints: ["cost <= 1 USD"]
budget: {{money: {money}, trials: {trials}}}
data: {{fractions: {fractions}}}
parameters:
  x: {{values: {values}}}
cloud:
  vms:
    small: {{vcpus: 1, memory_gib: 2, price_per_hour: 0.36}}
    large: {{vcpus: 2, memory_gib: 4, price_per_hour: 0.72}}
run:
  command: ["{python}", train.py, "{{x}}", "{{fraction}}", "{{trial}}"]
  timeout: {timeout}
  environment: {{NAP: "{nap}", UNTIL: "{until}", FAIL: "{fail}"}}
engine: {{type: local, parallel: {parallel}}}
search: {{method: {method}, seed: 1}}
"""


def write_job(folder: Path, **changes: object) -> Path:
    """A job file and its script in a folder of their own."""
    settings = {
        "money": "5 USD",
        "trials": 10,
        "timeout": "20s",
        "nap": 0.05,
        "until": "",  # a file that the test makes when a trial may end
        "fail": "",
        "parallel": 1,
        "fractions": [0.1, 0.5, 1],
        "values": [0, 0.2, 0.4, 0.6, 0.8, 1],
        "method": "trimtuner",
        "python": sys.executable,
    }
    (folder / "train.py").write_text(TRAIN)
    path = folder / "job.yaml"
    path.write_text(JOB.format(**{**settings, **changes}))
    return path


def trimtuner(*words: object, check: bool = True, **options: object) -> subprocess.CompletedProcess[str]:
    """Run our command line as a user would, in a process of its own; only its imports were done before."""
    command = [quick_program(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=check, env=quiet_environment(), **options)


@cache
def quick_program() -> str:
    """Our command line without its second of imports: one server for all tests of a process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return str(stack.enter_context(quick_commands()) / "trimtuner")


def start(*words: object, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start it and go on: it can be interrupted, and waited for."""
    return _started([quick_program()], words, stderr)


def start_to_kill(*words: object) -> subprocess.Popen[bytes]:
    """The same with all of its imports, so that a kill reaches the very process."""
    return _started([sys.executable, "-m", "trimtuner"], words, subprocess.DEVNULL)


def _started(program: list[str], words: tuple[object, ...], stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=quiet_environment(),
        start_new_session=True,
    )


def quiet_environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def starts(folder: Path) -> list[int]:
    """The trial numbers of all commands that were really started."""
    file = folder / "ran.txt"
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def status(path: Path) -> dict:
    return json.loads(trimtuner("status", path, "--json").stdout)
