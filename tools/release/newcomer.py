"""A newcomer's first hour in a few seconds: init, edit, validate, run, best, a launch, report, status, and going on.

    python -m tools.release.newcomer /path/to/venv/bin FOLDER

It needs nothing but an installed ``trimtuner`` and an empty folder, and fails at the first thing that a newcomer would
stumble over.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

TRIALS, MORE_TRIALS = 6, 7
COMMAND_SECONDS = 300

LEARN = '''
"""Tells two clouds of points apart, in plain Python."""
import argparse
import json
import math
import random

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float)
parser.add_argument("--fraction", type=float)
wanted = parser.parse_args()

chance = random.Random(0)
points = [(chance.gauss(2 * label - 1, 1.5), chance.gauss(1 - 2 * label, 1.5), label) for label in (0, 1) * 1000]
train, test = points[: int(1500 * wanted.fraction)], points[1500:]
a = b = c = 0.0
for x, y, label in train:
    slip = label - 1 / (1 + math.exp(-(a * x + b * y + c)))
    a, b, c = (old + wanted.learning_rate * slip * by for old, by in ((a, x), (b, y), (c, 1.0)))
right = sum((a * x + b * y + c > 0) == bool(label) for x, y, label in test)
print("::metric " + json.dumps({"accuracy": right / len(test)}))
'''


class Stumble(Exception):  # noqa: N818  (named by what happened)
    """What a newcomer would stumble over."""


@dataclass(frozen=True)
class Newcomer:
    """Somebody in an empty folder, with the programs of one environment first on the path."""

    programs: Path
    folder: Path

    def run(self, *words: object) -> str:
        """Type a command; what it prints. It must succeed and complain of nothing."""
        print("$", *words, flush=True)
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        try:
            done = subprocess.run(  # noqa: S603  (our own command line, in the environment under test)
                [str(word) for word in words],
                cwd=self.folder,
                env={**_own_environment(), "PATH": path},
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Stumble(str(error)) from None
        if done.returncode or "Traceback" in done.stderr or "Warning" in done.stderr:
            raise Stumble(f"{' '.join(map(str, words))} left with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def trimtuner(self, *words: object) -> str:
        """Type a command of ours, by the path of the program: not that of another environment."""
        return self.run(self.programs / "trimtuner", *words)

    def edit(self, name: str, old: str, new: str) -> None:
        """Change one place of a file."""
        text = self.read(name)
        require(text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times, not once")
        (self.folder / name).write_text(text.replace(old, new), encoding="utf-8")

    def read(self, name: str) -> str:
        """Open a file."""
        require((self.folder / name).exists(), f"there is no {name}")
        return (self.folder / name).read_text(encoding="utf-8")


def walk(programs: Path, folder: Path) -> None:
    """The whole path, in a folder that is empty; a Stumble where it ends early."""
    newcomer = Newcomer(programs.absolute(), folder)
    require(not any(folder.iterdir()), f"{folder} is not empty")
    require(newcomer.trimtuner("--version").startswith("trimtuner "), "--version does not say what it is")
    write_job(newcomer)
    search(newcomer)
    launch_winner(newcomer)
    open_report(newcomer)
    go_on(newcomer)


def write_job(newcomer: Newcomer) -> None:
    """Start from the commented job file, and make it one's own."""
    newcomer.trimtuner("init")
    (newcomer.folder / "learn.py").write_text(LEARN, encoding="utf-8")
    newcomer.edit("job.yaml", "- train.py", "- learn.py")
    newcomer.edit("job.yaml", "trials: 60", f"trials: {TRIALS}")
    newcomer.edit("job.yaml", "timeout: 30min", "timeout: 30s")
    not_mine = re.compile(r"hidden.units|batch.size|threads=")
    kept = [line for line in newcomer.read("job.yaml").splitlines() if not not_mine.search(line)]
    (newcomer.folder / "job.yaml").write_text("\n".join(kept), encoding="utf-8")
    told = newcomer.trimtuner("validate", "job.yaml")
    require("12 configurations" in told, f"6 learning rates on 2 machines are 12 configurations:\n{told}")


def search(newcomer: Newcomer) -> None:
    """Run it; the recommendation is one of the choices, with an accuracy that the job can have."""
    told = newcomer.trimtuner("run", "job.yaml")
    require("train it with: python learn.py" in told, f"run ends without a command for the winner:\n{told}")
    best = json.loads(newcomer.trimtuner("best", "job.yaml", "--json"))
    require(best["config"]["learning_rate"] in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 0.5), f"not among the choices: {best}")
    require(0.5 < best["estimates"]["accuracy"]["mean"] <= 1, f"no accuracy of this job: {best}")


def launch_winner(newcomer: Newcomer) -> None:
    """Write a script that trains the winner, and run it."""
    newcomer.trimtuner("best", "job.yaml", "--format", "bash", "--output", "winner.sh")
    printed = newcomer.run("bash", "winner.sh")
    accuracy = json.loads(printed.removeprefix("::metric "))["accuracy"]
    require(0.5 < accuracy <= 1, f"the winner trains to {accuracy}")


def open_report(newcomer: Newcomer) -> None:
    """Write the report, open it: it is there, and asks nobody for anything."""
    written = newcomer.trimtuner("report", "job.yaml").removeprefix("wrote ").strip()
    page = newcomer.read(written)
    require("learning_rate" in page, "the report does not tell what was chosen")
    outside = outside_requests(page)
    require(not outside, f"the report asks others for {outside}")


def go_on(newcomer: Newcomer) -> None:
    """Allow more trials, go on where it ended, look at it."""
    newcomer.edit("job.yaml", f"trials: {TRIALS}", f"trials: {MORE_TRIALS}")
    newcomer.trimtuner("run", "job.yaml", "--quiet")
    told = newcomer.trimtuner("status", "job.yaml")
    require(f"trials: {MORE_TRIALS} succeeded, 0 failed" in told, f"it did not go on where it ended:\n{told}")


def outside_requests(page: str) -> list[str]:
    """What a browser would fetch from elsewhere to show the page."""
    reader = _Addresses()
    reader.feed(page)
    styled = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", page)
    return [one for one in reader.found if not one.startswith(("#", "data:"))] + styled


def require(holds: bool, otherwise: str) -> None:
    """Go on only if it holds."""
    if not holds:
        raise Stumble(otherwise)


class _Addresses(HTMLParser):
    """Collects what a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loaded = {"src", "srcset", "data", "poster", "background"} | (
            {"href"} if tag in ("link", "use", "image") else set()
        )
        self.found += [value for name, value in attrs if name in loaded and value]


def _own_environment() -> dict[str, str]:
    """Ours, without what would let another installation in; one thread, since many for so little only cost time."""
    away = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in away}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


if __name__ == "__main__":
    walk(Path(sys.argv[1]), Path(sys.argv[2]))
