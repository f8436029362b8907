"""What grows with configurations, trials and machines: measured as far as one machine reaches, simulated beyond.

``python -m benchmarks.scaling asks`` (minutes), ``driver`` (a minute), ``simulate`` (seconds, from the figures of the
first two, which are given below), or all of them. One thread.
"""

from __future__ import annotations

import heapq
import math
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import trimtuner as tt
from benchmarks.speed import in_own_process
from trimtuner.engines.protocol import End, Launch, Report
from trimtuner.engines.replay.engine import ReplayEngine
from trimtuner.engines.replay.script import Script
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver
from trimtuner.study.memory import Recorded
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import recipe_named

DEFAULT, TREES = "trimtuner (default)", "trees, CEA 10 %"
CONFIGURATIONS = (288, 2_000, 20_000, 100_000, 1_000_000)  # at 5 fractions each; the last by a pool
OBSERVATIONS = {DEFAULT: (44, 100, 300, 1_000, 2_000, 4_000), TREES: (44, 100, 300, 1_000, 4_000)}
PARALLEL = (1, 10, 100, 1_000)

# CPU seconds as measured (see docs/scaling.md): of an ask by observations, of all else that a driver does for a trial
# by trials side by side.
ASK_SECONDS = {
    DEFAULT: {44: 0.13, 100: 0.23, 300: 2.5, 1_000: 5.1, 2_000: 8.5, 4_000: 20.3},
    TREES: {44: 0.09, 100: 0.13, 300: 0.21, 1_000: 1.13, 4_000: 2.5},
}
DRIVER_SECONDS = {1: 0.021, 10: 0.0145, 100: 0.0143, 1_000: 0.0415}


def asks() -> None:
    print("CPU seconds of one ask, 44 observations, by configurations (5 candidates each)")
    for name in (DEFAULT, TREES):
        for configurations in CONFIGURATIONS:
            found = in_own_process(name, configurations, 44, 1)
            print(f"  {name:<22}{configurations:>10,}{_seconds(found)}", flush=True)
    print("CPU seconds of one ask, 1,440 candidates (10,000 from 1,000 observations on), by observations")
    for name, counts in OBSERVATIONS.items():
        for observations in counts:
            found = in_own_process(name, 288 if observations < 1_000 else 2_000, observations, 1)
            print(f"  {name:<22}{observations:>10,}{_seconds(found)}", flush=True)


def _seconds(found: dict[str, float]) -> str:
    return f"{found['seconds']:>10.2f} s{found['peak_gib']:>8.2f} GiB"


def driver() -> None:
    """A real driver and a real record with trials that are played, so that all of the CPU time is the driver's own."""
    print(
        "a driver with played trials, random method, SQLite: CPU seconds for each trial, and of a look at all of them"
    )
    for parallel in PARALLEL:
        with tempfile.TemporaryDirectory() as folder:
            _run_driver(Path(folder), parallel, trials=max(60, 2 * parallel))


def _run_driver(folder: Path, parallel: int, trials: int) -> None:
    machines = {"small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.36)}
    parameters = {name: tt.Choice(list(range(20))) for name in ("x", "y", "z")}
    space = tt.Space(parameters, cloud=tt.Cloud(machines), fractions=[1])
    problem = Problem.of(space, "accuracy", None, [], None, 1e6)
    description = Description(problem, "random", 0)
    memory = Recorded(folder / "a.db", "a", description)
    study = Study.of(description, recipe_named("random").but(stop=tt.AfterTrials(trials)), memory)
    looks: list[float] = []
    running: list[int] = []

    class Counting(Driver):
        def _collect(self) -> bool:
            begin, count = time.process_time(), len(self._watched)
            ended = super()._collect()
            if not ended and count:
                looks.append((time.process_time() - begin) / count)
            running.append(count)
            return ended

    # All places are taken before the first trial ends.
    lasting = 0.05 * parallel + 1.0
    script = Script((Report({"accuracy": 0.5}, lasting),), End(None, "", lasting))

    def launch(study_id: str, trial: tt.Trial, attempt: int) -> Launch:
        return Launch(study_id, trial.number, attempt, ("job",), folder / study_id, folder, {}, (), 1e5)

    one = Counting(study, memory, ReplayEngine(folder, lambda _: script), launch, parallel=parallel)
    begin, wall = time.process_time(), time.monotonic()
    one.run()
    busy = time.process_time() - begin
    polled = 1e3 * float(np.median(looks)) if looks else math.nan
    taken = time.monotonic() - wall
    print(
        f"  {parallel:>5} side by side (most {max(running)}), {trials:>5} trials in {taken:6.1f} s: "
        f"{busy / trials:7.4f} CPU s a trial in all, {polled:6.3f} ms to look at one; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB",
        flush=True,
    )


def ask_seconds(name: str, observations: float) -> float:
    """Between the measured ones by a straight line in logarithms; beyond the last by the slope that theory gives."""
    known = ASK_SECONDS[name]
    counts, seconds = np.log(list(known)), np.log(list(known.values()))
    if observations <= list(known)[-1]:
        return float(np.exp(np.interp(math.log(observations + 1), counts, seconds)))
    slope = 3.0 if name == DEFAULT else 1.2  # Cholesky; n log n
    return float(np.exp(seconds[-1] + slope * (math.log(observations) - counts[-1])))


def simulate() -> None:
    """One driver fills one free place after the other: which share of the machines' time they wait for it."""
    print("share of the machines' time in which they train rather than wait for the next trial to be chosen")
    told = (100, 300, 1_000, 10_000, 100_000)
    print(f"  {'':<22}{'side by side':>14}{'minutes':>9}" + "".join(f"{f'{one:,} told':>15}" for one in told))
    for name in (DEFAULT, TREES):
        for parallel in (10, 100, 1_000):
            for minutes in (1, 10, 60):
                used = [_share_used(name, parallel, 60.0 * minutes, one) for one in told]
                line = "".join(f"{100 * one:>13.1f} %" for one in used)
                print(f"  {name:<22}{parallel:>14,}{minutes:>9}{line}")


def _share_used(name: str, parallel: int, mean_seconds: float, told: int) -> float:
    """A queue in its steady state, while the model holds about so many observations; trials last log-normally."""
    generator = np.random.default_rng(0)
    overhead = float(np.interp(parallel, list(DRIVER_SECONDS), list(DRIVER_SECONDS.values())))
    each = ask_seconds(name, told) + overhead
    free = [float(generator.uniform(0.0, mean_seconds)) for _ in range(parallel)]  # when each place becomes free
    heapq.heapify(free)
    clock = used = waited = 0.0
    for number in range(6 * parallel):
        since = heapq.heappop(free)
        clock = max(clock, since) + each
        lasting = float(generator.lognormal(math.log(mean_seconds) - 0.125, 0.5))
        if number >= 3 * parallel:  # the queue has settled
            used += lasting
            waited += clock - since
        heapq.heappush(free, clock + lasting)
    return used / (used + waited)


def main() -> None:
    parts = {"asks": asks, "driver": driver, "simulate": simulate}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
