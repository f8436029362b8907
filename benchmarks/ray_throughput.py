"""What an engine costs when trials are short: ``python -m benchmarks.ray_throughput [rounds]``.

200 trials, 8 at a time, of a shell that prints one metric, by a real driver with random search on SQLite; on the local
engine and on a Ray cluster of two nodes on this machine, in turn, each run in a process of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import trimtuner as tt
from trimtuner.engines.local.engine import LocalEngine
from trimtuner.engines.protocol import Engine, Launch, Machines
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.ray.surroundings import TOKEN_FILE, prepare_to_start
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver, Happening
from trimtuner.study.memory import Recorded
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import recipe_named

TRIALS, PARALLEL, ROUNDS = 200, 8, 3
COMMAND = ("sh", "-c", """echo '::metric {"accuracy": 0.5}'""")
FIGURES = ("trials/s", "after the first 8", "first after s", "driver CPU ms/trial", "charged ms/trial")


def main(words: list[str]) -> None:
    """A row for each run, then the ratios of medians."""
    if len(words) == 2:
        print(json.dumps(measured(words[0], words[1])))
        return
    rounds = int(words[0]) if words else ROUNDS
    print("        " + "  ".join(f"{head:>20}" for head in FIGURES))
    with ray_cluster() as address:
        runs = [(name, run_apart(name, address)) for _ in range(rounds) for name in ("local", "ray")]
    local, ray = ([figures for name, figures in runs if name == kind] for kind in ("local", "ray"))
    ratios = [median(run[n] for run in ray) / median(run[n] for run in local) for n in range(len(FIGURES))]
    print(f"{'ray/local':<8}" + "  ".join(f"{ratio:>20.2f}" for ratio in ratios))
    print(f"the command alone: {1000 * seconds_of_command():.1f} ms")


def run_apart(name: str, address: str) -> tuple[float, ...]:
    words = [sys.executable, "-m", "benchmarks.ray_throughput", name, address]
    figures = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    print(f"{name:<8}" + "  ".join(f"{figure:>20.2f}" for figure in figures), flush=True)
    return tuple(figures)


def measured(name: str, address: str) -> tuple[float, ...]:
    """The figures of one run."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "quick.db.trials"
        engine: Engine = LocalEngine() if name == "local" else RaySettings(address).engine(folder)
        (Path(place) / "work").mkdir()
        description = Description(problem(), "random", 0)
        memory = Recorded(Path(place) / "quick.db", "quick", description)
        study = Study.of(description, recipe_named("random"), memory)
        ends: list[float] = []
        driver = Driver(study, memory, engine, launches(folder), parallel=PARALLEL, listener=noting_ends(ends))
        begin, begin_cpu = time.monotonic(), time.process_time()
        driver.run()
        wall, cpu = ends[-1] - begin, time.process_time() - begin_cpu
        outcomes = memory.history().outcomes
        assert len(ends) == len(outcomes) == TRIALS
        assert all(outcome.failed is None for outcome in outcomes)
        charged = sum(outcome.measurements[-1].metrics["time"] for outcome in outcomes)
    settled = (TRIALS - PARALLEL) / (ends[-1] - ends[PARALLEL - 1])
    return (TRIALS / wall, settled, ends[0] - begin, 1000 * cpu / TRIALS, 1000 * charged / TRIALS)


def problem() -> Problem:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.36)}
    space = tt.Space({"x": tt.Choice(list(range(TRIALS)))}, cloud=tt.Cloud(machines), fractions=[1])
    return Problem.of(space, "accuracy", None, [], 1000.0, 100.0)


def launches(folder: Path):  # type: ignore[no-untyped-def]
    def launch_of(study: str, trial: Trial, attempt: int) -> Launch:
        place, work = folder / study, folder.parent / "work"
        machines = Machines("small")
        return Launch(study, trial.number, attempt, COMMAND, place, work, {}, (), 60.0, machines=machines)

    return launch_of


def noting_ends(ends: list[float]):  # type: ignore[no-untyped-def]
    def note(happening: Happening) -> None:
        if happening.kind == "ended":
            ends.append(time.monotonic())

    return note


def seconds_of_command() -> float:
    begin = time.monotonic()
    for _ in range(20):
        subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - begin) / 20


@contextmanager
def ray_cluster() -> Iterator[str]:
    """Two nodes with four places each, on loopback, behind a token."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        os.environ.update({TOKEN_FILE: str(token), "RAY_TMPDIR": folder})
        prepare_to_start()  # Ray reads all of this when it is imported
        from ray.cluster_utils import Cluster

        usual = {"object_store_memory": 80 * 2**20, "include_log_monitor": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **usual})
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=2, resources={"small": 4}, **usual)
            yield cluster.address
        finally:
            cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
