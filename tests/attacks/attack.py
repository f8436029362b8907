"""One study under attack: its job, its runs, and the faults."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from checking import TRIAL, USD_PER_SECOND, broken_promises, broken_promises_at_rest, open_study, processes_of
from runs import Run

from postgres_server import PASSWORD, PostgresServer
from trimtuner.engines.supervising import files, processes
from waiting import PATIENCE_SECONDS

JOB = """
name: faulty
goal: {{maximize: accuracy}}
budget: {{money: {money} USD, trials: 2000}}
data: {{fractions: [0.1, 0.5, 1]}}
parameters:
  x: {{values: [0, 0.2, 0.4, 0.6, 0.8, 1]}}
  y: {{values: [0, 1, 2, 3, 4, 5]}}
  nap: {{values: [0.1, 0.2, 0.3, 0.5, 1.3]}}
cloud:
  vms:
    small: {{vcpus: 1, memory_gib: 2, price_per_hour: {small}}}
    large: {{vcpus: 2, memory_gib: 4, price_per_hour: {large}}}
run:
  command: ["{python}", -I, -S, "{trial}", "{{x}}", "{{y}}", "{{nap}}", "{{fraction}}"]
  timeout: 4s
  environment: {{SIDE_LOG: "{side_log}"}}
  retries: {{preempted: 1}}
engine: {{type: local, parallel: {parallel}}}
search: {{method: random, seed: {seed}}}
storage: {storage}
"""
BUDGETS_USD = (40, 80, 160)  # a trial reserves 11 or 22, and costs between 0.1 and 3 unless it is lost
DAY_SECONDS = 86400.0
FILES = (files.LAUNCH, files.LOCK, files.BEGUN, files.ALIVE, files.REPORTS, files.LOG, files.STOP, files.END)


class Attack:
    """One study under attack, until it is over: its runs, and what is to be put right again when its time comes."""

    def __init__(
        self, quick: Path, folder: Path, disk: Path, seed: str, money: int | None, server: PostgresServer | None
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311  (no secret)
        self.quick, self.folder, self.disk, self.server = quick, folder, disk, server
        self.side_log = folder / "side.log"
        self.side_log.touch()
        self.place = _place(disk, server)
        self.job = self._write_job(money or self.chance.choice(BUDGETS_USD))
        self.runs: list[Run] = []
        self.complaints: list[str] = []
        self.undoing: list[tuple[float, Callable[[], object]]] = []
        self.is_over = False
        self._count = 0

    def _write_job(self, money: int) -> Path:
        (self.folder / "trial.py").write_text(TRIAL)
        path = self.disk / "job.yaml"
        prices = {name: 3600 * price for name, price in USD_PER_SECOND.items()}
        settings = {"money": money, "parallel": self.chance.choice([1, 2]), **prices}
        settings |= {"python": sys.executable, "trial": self.folder / "trial.py", "side_log": self.side_log}
        storage = self.place if self.server is None else str(self.place).replace(f":{_quoted_password()}@", "@")
        path.write_text(JOB.format(**settings, seed=self.chance.randrange(1000), storage=storage))
        return path

    @property
    def trials(self) -> Path:
        """Where the folders of attempts are."""
        return self.disk / ("faulty.db.trials" if self.server is None else "faulty.trials")

    def look_after_runs(self) -> None:
        """Undo what is due, take note of runs that have ended, and have one or two under way."""
        self.undo(time.monotonic())
        for run in [one for one in self.runs if one.code() is not None]:
            self.runs.remove(run)
            self.complaints += [one for one in [run.complaint()] if one is not None]
            self.is_over = self.is_over or (run.code() == 0 and not run.signals)
        while not self.is_over and len(self.runs) < (2 if self.chance.random() < 0.1 else 1):
            self.start_run()

    def start_run(self, ahead_seconds: float = 0.0) -> Run:
        self._count += 1
        self.runs.append(Run(self.quick, self.job, self.folder, self._count, ahead_seconds))
        return self.runs[-1]

    def later(self, action: Callable[[], object], most_seconds: float) -> None:
        self.undoing.append((time.monotonic() + self.chance.uniform(0.05, most_seconds), action))

    def undo(self, until: float) -> None:
        due = [one for one in self.undoing if one[0] <= until]
        self.undoing = [one for one in self.undoing if one[0] > until]
        for _, action in due:
            action()

    def finish(self) -> list[str]:
        """Put all right, let one run come to its end, and judge; what did not hold."""
        self.undo(float("inf"))
        for run in self.runs:
            run.send(signal.SIGTERM)
        self._wait_for_ends()
        last = self.start_run()
        self._wait_for_ends()
        if last.code() not in (0, 3):
            self.complaints.append(f"the last run ended with {last.code()}: {last.output.read_text(errors='replace')}")
        self.complaints += [one for one in (run.complaint() for run in self.runs) if one is not None]
        self.runs = []
        self.complaints += [f"left running: {left}" for left in self._left_running().values()]
        return [*self.complaints, *broken_promises_at_rest(open_study(self.place), self.side_log)]

    def judge(self) -> list[str]:
        """What does not hold by now."""
        if not self.side_log.stat().st_size:
            return self.complaints  # nothing ran yet, and there may be no study
        return [*self.complaints, *broken_promises(open_study(self.place), self.side_log)]

    def end_all(self) -> None:
        """Whatever happened here, nothing of ours goes on."""
        with suppress(OSError):
            self.undo(float("inf"))
        for run in self.runs:
            run.send(signal.SIGKILL)
        for pid in processes_of(self.folder, self.disk):
            process = processes.read_process(pid)
            if process is not None:
                processes.send(process, signal.SIGKILL)

    # The faults: each says whom it hit, or nothing.

    def signal_driver(self, number: signal.Signals) -> str:
        run = self.chance.choice(self.runs) if self.runs else None
        if run is None or not run.send(number):
            return ""
        if number == signal.SIGSTOP:
            self.later(lambda: run.send(signal.SIGCONT), 2.0)
        return f"driver {run.pid}"

    def signal_supervisor(self, number: signal.Signals) -> str:
        return self._signal_one(
            number, [pid for pid, words in self._of_attempts() if "supervising.supervisor" in words]
        )

    def signal_trial(self, number: signal.Signals) -> str:
        return self._signal_one(
            number, [pid for pid, words in self._of_attempts() if "supervising.supervisor" not in words]
        )

    def lock_record(self) -> str:
        if not isinstance(self.place, Path) or not self.place.exists():
            return ""
        connection = sqlite3.connect(self.place, timeout=1.0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            connection.close()
            return ""
        self.later(connection.close, 3.0)
        return "locked"

    def stop_server(self) -> str:
        if self.server is None:
            return ""
        self.server.stop("QUIT")
        time.sleep(self.chance.uniform(0.0, 1.0))
        self.server.start()
        return "stopped and started"

    def fill_disk(self) -> str:
        ballast = self.disk / "ballast"
        if not os.path.ismount(self.disk) or ballast.exists():
            return ""
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            for size in (2**16, 2**12):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        self.later(lambda: ballast.unlink(missing_ok=True), 1.5)
        return "full"

    def jump_clock(self) -> str:
        run = self.chance.choice(self.runs) if self.runs else None
        if run is None or run.code() is not None:
            return ""
        seconds = self._some_jump()
        run.jump(seconds)
        return f"driver {run.pid} by {seconds:.0f} s"

    def start_with_wrong_clock(self) -> str:
        if self.is_over or len(self.runs) > 1:
            return ""
        seconds = self._some_jump()
        return f"driver {self.start_run(seconds).pid} by {seconds:.0f} s"

    def remove_folder(self) -> str:
        folder = self._some_folder()
        if folder is None:
            return ""
        shutil.rmtree(folder, ignore_errors=True)
        return folder.name

    def remove_all_folders(self) -> str:
        if not self.trials.exists():
            return ""
        shutil.rmtree(self.trials, ignore_errors=True)
        return self.trials.name

    def remove_file(self) -> str:
        path = self._some_file()
        if path is None:
            return ""
        remove(path)
        return f"{path.parent.name}/{path.name}"

    def replace_file(self) -> str:
        path = self._some_file()
        if path is None:
            return ""
        how = self.chance.choice([_garbage, _folder, _pipe, _zeros])
        with suppress(OSError):  # somebody else is quicker with the name, or with the folder
            remove(path)
            how(path)
        return f"{path.parent.name}/{path.name} by {how.__name__[1:]}"

    def _wait_for_ends(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS  # what has not ended then has no code, which is complained about
        while any(run.code() is None for run in self.runs) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _left_running(self) -> dict[int, str]:
        deadline = time.monotonic() + PATIENCE_SECONDS  # a supervisor that has told the end is about to leave
        while (left := processes_of(self.folder, self.disk)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def _some_jump(self) -> float:
        return self.chance.choice([-1, 1]) * self.chance.choice([10.0, 3600.0, DAY_SECONDS]) * self.chance.random()

    def _of_attempts(self) -> list[tuple[int, str]]:
        drivers = {run.pid for run in self.runs}
        return [(pid, words) for pid, words in sorted(processes_of(self.trials).items()) if pid not in drivers]

    def _signal_one(self, number: signal.Signals, among: list[int]) -> str:
        process = processes.read_process(self.chance.choice(among)) if among else None
        if process is None or not process.is_alive:
            return ""
        processes.send(process, number)
        if number == signal.SIGSTOP:
            self.later(lambda: processes.send(process, signal.SIGCONT), 1.5)
        return f"process {process.pid}"

    def _some_folder(self) -> Path | None:
        """Most often one of the last."""
        found = sorted(self.trials.glob("*/*-*"), key=lambda path: _number_of(path.name))
        if not found:
            return None
        return self.chance.choice(found[-2:] if self.chance.random() < 0.8 else found)

    def _some_file(self) -> Path | None:
        folder = self._some_folder()
        present = [folder / name for name in FILES if (folder / name).exists()] if folder is not None else []
        return self.chance.choice(present) if present else None


KINDS: dict[str, tuple[int, Callable[[Attack], str]]] = {  # how often, and what
    "driver killed": (14, lambda one: one.signal_driver(signal.SIGKILL)),
    "driver stopped for a while": (5, lambda one: one.signal_driver(signal.SIGSTOP)),
    "driver told to end": (4, lambda one: one.signal_driver(signal.SIGTERM)),
    "supervisor killed": (10, lambda one: one.signal_supervisor(signal.SIGKILL)),
    "supervisor stopped for a while": (6, lambda one: one.signal_supervisor(signal.SIGSTOP)),
    "supervisor told to end": (4, lambda one: one.signal_supervisor(signal.SIGTERM)),
    "trial killed": (7, lambda one: one.signal_trial(signal.SIGKILL)),
    "trial stopped for a while": (5, lambda one: one.signal_trial(signal.SIGSTOP)),
    "trial told to end": (3, lambda one: one.signal_trial(signal.SIGTERM)),
    "clock jumped": (6, Attack.jump_clock),
    "started with a wrong clock": (4, Attack.start_with_wrong_clock),
    "disk full for a while": (4, Attack.fill_disk),
    "folder of an attempt removed": (8, Attack.remove_folder),
    "all folders removed": (3, Attack.remove_all_folders),
    "file of an attempt removed": (10, Attack.remove_file),
    "file of an attempt replaced": (10, Attack.replace_file),
}
IN_A_FILE = {"record locked for a while": (4, Attack.lock_record)}
ON_A_SERVER = {"server stopped at once": (4, Attack.stop_server)}


def _place(disk: Path, server: PostgresServer | None) -> Path | str:
    return disk / "faulty.db" if server is None else server.address(server.new_database())


def _quoted_password() -> str:
    return quote(PASSWORD, safe="")


def _number_of(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("-") if part.isdigit())


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(200))


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")
