"""Random faults, by seed, under real runs of one job after the other; and whether all that is promised held.

    python tests/attacks/faults.py --faults 1000 --seed 1 [--postgres] [--folder FOLDER]

Drivers, minders and trials are killed, stopped and told to end; the record is locked, or its server stopped as in a
crash; the disk is full for a while; clocks jump by days; files of attempts are removed, or others take their names.
When and which is told by the seed, whom it hits by chance. The judge is ``checking``. A record that is itself removed
is not among the faults.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import select
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1]))

from checking import TRIAL, USD_PER_SECOND, broken_promises, broken_promises_at_rest, open_study, processes_of

from postgres_server import NOT_HERE, PASSWORD, PostgresServer, find_binaries, running_server
from quick_commands import quick_commands
from trimtuner.engines.minding import files, processes
from waiting import wait_until

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
GOOD_ENDS = {0, 2, 3, 130}  # over; something is in the way; nothing was measured; interrupted twice
BUDGETS_USD = (40, 80, 160)  # a trial reserves 11 or 22, and costs between 0.1 and 3 unless it is lost
DISK_BYTES = 32 * 2**20
DAY_SECONDS = 86400.0
FILES = (files.LAUNCH, files.LOCK, files.BEGUN, files.ALIVE, files.REPORTS, files.LOG, files.STOP, files.END)
LAST_FAULTS = 25


class Run:
    """A ``trimtuner run``: a process of its own, asked for by the socket of quick commands, with a clock of its own."""

    def __init__(self, quick: Path, job: Path, number: int, ahead_seconds: float = 0.0) -> None:
        self.output = job.parent / f"run-{number}.txt"
        self.clock = job.parent / f"clock-{number}"
        self.jump(ahead_seconds)
        self.signals: list[int] = []
        self._code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(quick / "socket"))
        self.pid = self._begin(["run", "-q", str(job)], job.parent)

    def _begin(self, words: list[str], folder: Path) -> int:
        environment = {**os.environ, "PYTHON_CLOCK_FILE": str(self.clock), "PGPASSWORD": PASSWORD}
        request = json.dumps({"words": words, "folder": str(folder), "environment": environment}).encode()
        with open(os.devnull) as nothing, self.output.open("wb") as output:
            header = [len(request).to_bytes(8, "big")]
            socket.send_fds(self._connection, header, [nothing.fileno(), output.fileno(), output.fileno()])
        self._connection.sendall(request)
        return int.from_bytes(self._connection.recv(8), "big")

    def code(self) -> int | None:
        """How it ended, if it has; less than nothing where a signal ended it."""
        if self._code is None and select.select([self._connection], [], [], 0)[0]:
            code = int.from_bytes(self._connection.recv(8), "big")
            self._code = code - 256 if code >= 192 else code
            self._connection.close()
        return self._code

    def send(self, number: signal.Signals) -> bool:
        """Whether there was anybody to receive it."""
        process = processes.read_process(self.pid) if self.code() is None else None
        if process is None or not process.is_alive:
            return False
        self.signals.append(number)
        processes.send(process, number)
        return True

    def jump(self, seconds: float) -> None:
        """Its clock is so far from ours from now on."""
        draft = self.clock.with_suffix(".new")
        draft.write_text(repr(seconds))
        draft.replace(self.clock)

    def complaint(self) -> str | None:
        """What is wrong with how it ended, if anything is."""
        code, said = self.code(), self.output.read_text(errors="replace")
        was_killed = code is not None and -code in self.signals
        if (code in GOOD_ENDS or was_killed) and "Traceback" not in said:
            return None
        return f"a run ended with {code} and said: {said[-1500:]}"


@dataclass
class Fault:
    """One that was injected."""

    kind: str
    what: str  # empty: it hit nothing
    at: float = field(default_factory=time.monotonic)


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
        self.undoing: list[tuple[float, Callable[[], None]]] = []
        self.is_over = False
        self._count = 0

    def _write_job(self, money: int) -> Path:
        (self.folder / "trial.py").write_text(TRIAL)
        path = self.folder / "job.yaml"
        prices = {name: 3600 * price for name, price in USD_PER_SECOND.items()}
        settings = {"money": money, "parallel": self.chance.choice([1, 2]), **prices}
        settings |= {"python": sys.executable, "trial": self.folder / "trial.py", "side_log": self.side_log}
        storage = self.place if self.server is None else str(self.place).replace(f":{_quoted_password()}@", "@")
        path.write_text(JOB.format(**settings, seed=self.chance.randrange(1000), storage=storage))
        return path

    @property
    def trials(self) -> Path:
        """Where the folders of attempts are."""
        of_record = isinstance(self.place, Path)
        return Path(f"{self.place}.trials") if of_record else self.folder / "faulty.trials"

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
        self.runs.append(Run(self.quick, self.job, self._count, ahead_seconds))
        return self.runs[-1]

    def later(self, action: Callable[[], None], most_seconds: float) -> None:
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
        wait_until(lambda: all(run.code() is not None for run in self.runs))
        last = self.start_run()
        wait_until(lambda: last.code() is not None)
        if last.code() not in (0, 3):
            self.complaints.append(
                f"the last run did not come to an end: {last.complaint() or last.output.read_text()}"
            )
        self.complaints += [one for one in (run.complaint() for run in self.runs) if one is not None]
        self.runs = []
        deadline = time.monotonic() + 10.0  # for a minder that has told the end and is about to leave
        while processes_of(self.folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.complaints += [f"left running: {left}" for left in processes_of(self.folder).values()]
        return [*self.complaints, *broken_promises_at_rest(open_study(self.place), self.side_log)]

    def judge(self) -> list[str]:
        """What does not hold by now."""
        try:
            view = open_study(self.place)
        except Exception as error:  # there is no study yet, or nobody can read it for now
            return [] if self.undoing or self._count < 2 else [f"the record cannot be read: {error}"]
        return [*self.complaints, *broken_promises(view, self.side_log)]

    def end_all(self) -> None:
        """Whatever happened here, nothing of ours goes on."""
        with suppress(OSError):
            self.undo(float("inf"))
        for run in self.runs:
            run.send(signal.SIGKILL)
        for pid in processes_of(self.folder):
            process = processes.read_process(pid)
            if process is not None:
                processes.send(process, signal.SIGKILL)

    # The faults: each says whom it hit, or nothing.

    def signal_driver(self, number: signal.Signals) -> str:
        run = self.chance.choice(self.runs) if self.runs else None
        if run is None or not run.send(number):
            return ""
        if number == signal.SIGSTOP:
            self.later(lambda: [run.send(signal.SIGCONT), None][1], 2.0)
        return f"driver {run.pid}"

    def signal_minder(self, number: signal.Signals) -> str:
        return self._signal_one(number, [pid for pid, words in self._of_attempts() if "minding.minder" in words])

    def signal_trial(self, number: signal.Signals) -> str:
        return self._signal_one(number, [pid for pid, words in self._of_attempts() if "minding.minder" not in words])

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
        _remove(path)
        return f"{path.parent.name}/{path.name}"

    def replace_file(self) -> str:
        path = self._some_file()
        if path is None:
            return ""
        how = self.chance.choice([_garbage, _folder, _pipe, _zeros])
        with suppress(OSError):  # somebody else is quicker with the name, or with the folder
            _remove(path)
            how(path)
        return f"{path.parent.name}/{path.name} by {how.__name__[1:]}"

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
    "minder killed": (10, lambda one: one.signal_minder(signal.SIGKILL)),
    "minder stopped for a while": (6, lambda one: one.signal_minder(signal.SIGSTOP)),
    "minder told to end": (4, lambda one: one.signal_minder(signal.SIGTERM)),
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


def inject(
    folder: Path, faults: int, seed: int, money: int | None, server: PostgresServer | None
) -> tuple[list[Fault], list[str]]:
    """So many faults, in as many studies as it takes; what they were, and what did not hold."""
    kinds = {**KINDS, **(IN_A_FILE if server is None else ON_A_SERVER)}
    disk = folder / "disk"
    disk.mkdir()
    done: list[Fault] = []
    commands = Path(__file__).with_name("jumping_commands.py")
    with _small_disk(disk), quick_commands(commands) as quick:  # in this order: only who comes later sees the disk
        if not os.path.ismount(disk):
            kinds.pop("disk full for a while")
            print("no file system may be mounted here: the disk is never full")
        number = 0
        while len(done) < faults:
            number += 1
            own = folder / f"study-{number}"
            own.mkdir()
            attack = Attack(quick, own, disk, f"{seed}-{number}", money, server)
            try:
                complaints = _inject_into(attack, kinds, faults, done)
            finally:
                attack.end_all()
            if complaints:
                shutil.copytree(disk, own / "disk", symlinks=True, ignore=_no_pipes)
                return done, [f"study {number}: {one}" for one in complaints]
            _clear(disk)
            shutil.rmtree(own, ignore_errors=True)
    return done, []


def _inject_into(
    attack: Attack, kinds: dict[str, tuple[int, Callable[[Attack], str]]], faults: int, done: list[Fault]
) -> list[str]:
    names, weights = list(kinds), [weight for weight, _ in kinds.values()]
    while len(done) < faults and not attack.is_over:
        attack.look_after_runs()
        time.sleep(attack.chance.choice([0.0, 0.1, 0.3, 0.5]) * attack.chance.random())
        kind = attack.chance.choices(names, weights)[0]
        done.append(Fault(kind, _hit(attack, kinds[kind][1])))
        complaints = attack.judge() if len(done) % 20 == 0 else attack.complaints
        if complaints:
            return complaints
    return attack.finish()


def _hit(attack: Attack, fault: Callable[[Attack], str]) -> str:
    """Whom it hit, at once or a little later; nobody, where there is nobody for long."""
    for _ in range(attack.chance.choice([1, 20, 40])):
        what = fault(attack)
        if what:
            return what
        time.sleep(0.03)
        attack.look_after_runs()
    return ""


def table(faults: list[Fault]) -> str:
    """How many of each kind there were, and how many hit something."""
    injected, hit = Counter(one.kind for one in faults), Counter(one.kind for one in faults if one.what)
    rows = [f"| {kind} | {count} | {hit[kind]} |" for kind, count in sorted(injected.items())]
    return "\n".join(["| fault | injected | hit something |", "|---|--:|--:|", *rows, _sum_of(injected, hit)])


def _sum_of(injected: Counter[str], hit: Counter[str]) -> str:
    return f"| all | {injected.total()} | {hit.total()} |"


def _place(disk: Path, server: PostgresServer | None) -> Path | str:
    return disk / "faulty.db" if server is None else server.address(server.new_database())


def _quoted_password() -> str:
    return quote(PASSWORD, safe="")


def _number_of(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("-") if part.isdigit())


def _remove(path: Path) -> None:
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


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_fifo() or name == "ballast"]


def _clear(disk: Path) -> None:
    for path in disk.iterdir():
        _remove(path)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A small file system of our own in the folder, where one may be mounted; nobody else sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    is_private = libc.unshare(0x00020000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0  # CLONE_NEWNS
    size = f"size={DISK_BYTES}".encode()
    is_mounted = is_private and libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, size) == 0
    yield
    if is_mounted:
        libc.umount2(str(folder).encode(), 2)


def main() -> int:
    """0 if all held."""
    parser = argparse.ArgumentParser(description="Random faults under real runs, by seed.")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="an empty one, for the studies and what is left of one that failed")
    parser.add_argument("--money", type=int, help="the budget of each study in USD; else one of several")
    parser.add_argument("--postgres", action="store_true", help="with the record on a server of our own")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-")) if given.folder is None else given.folder.resolve()
    began = time.monotonic()
    with ExitStack() as stack:
        server = stack.enter_context(_server()) if given.postgres else None
        faults, complaints = inject(folder, given.faults, given.seed, given.money, server)
    print(f"{table(faults)}\nseed {given.seed}, {time.monotonic() - began:.0f} s")
    if not complaints:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    last = [f"  {one.at - began:.2f} s {one.kind}: {one.what or 'nobody'}" for one in faults[-LAST_FAULTS:]]
    print("the last faults:", *last, "did not hold:", *complaints, f"what is left is in {folder}", sep="\n")
    return 1


@contextmanager
def _server() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit(NOT_HERE)
    with running_server(binaries) as server:
        yield server


if __name__ == "__main__":
    sys.exit(main())
