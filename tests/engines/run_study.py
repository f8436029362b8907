"""A study as a user runs it: by our command line, in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from trimtuner.jobs.studies import JobStudy
from trimtuner.state import StudyState
from waiting import PATIENCE_SECONDS

# What the jobs run: it says that it has, and naps.
TRAIN = """
import json, os, sys, time

x, fraction, trial = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with open(os.environ["RAN"], "a") as file:
    file.write(f"{trial}\\n")
time.sleep(float(os.environ["NAP"]))
print("::metric " + json.dumps({"accuracy": (1 - (x - 0.6) ** 2) * fraction ** 0.1}), flush=True)
"""


class RunStudy:
    """A job file in a folder, with the command that it runs."""

    def __init__(self, folder: Path, job: str, cli: str) -> None:
        """``cli`` is the program in ``jobs`` that is our command line, with an engine that looks more often."""
        self.folder, self._cli = folder, Path(__file__).parent / "jobs" / cli
        (folder / "work").mkdir()
        (folder / "work" / "train.py").write_text(TRAIN)
        self.path = folder / "work" / "job.yaml"
        self.path.write_text(job)

    def start(self, *words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self._cli), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )

    def say(self, *words: object) -> str:
        with self.start(*words) as process:
            text, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, text
        return text

    def ran(self) -> Counter[int]:
        file = self.folder / "ran.txt"
        return Counter(int(line) for line in file.read_text().splitlines()) if file.exists() else Counter()

    def look(self) -> StudyState:
        return JobStudy.at(self.path).state()

    def check_sound(self) -> None:
        look = self.look()
        assert not look.history.pending
        assert look.record.reserved == 0.0
        charges = sum(entry.nanos for entry in look.record.ledger() if entry.kind == "charge")
        assert round(look.record.spent * 1e9) == charges == sum(round(one.cost * 1e9) for one in look.history.outcomes)
