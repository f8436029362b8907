"""CPU seconds of one ``ask``, model fits included, on one thread: against the targets, and how it grows.

Run by ``make bench``. Each figure is the median of several asks on one history; big cases run in a process of their own
so that their peak memory can be read.
"""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import trimtuner as tt
from trimtuner.decisions.filters import HighestConstrainedAccuracy, KeepAll
from trimtuner.models.gaussian_process import GaussianProcess, Sampled
from trimtuner.problem.history import Trial
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import PROCESS, TRIMTUNER, TRIMTUNER_DT, TRIMTUNER_GP

FRACTIONS = [1 / 60, 1 / 10, 1 / 4, 1 / 2, 1]
RECIPES = {
    "trees, no filter": TRIMTUNER_DT.but(filter=KeepAll()),
    "trees, CEA 10 %": TRIMTUNER_DT,
    "GP most likely, no filter": TRIMTUNER_GP.but(filter=KeepAll()),
    "GP most likely, CEA 10 %": TRIMTUNER_GP.but(filter=HighestConstrainedAccuracy(0.1)),
    "GP sampled, no filter": TRIMTUNER_GP.but(
        filter=KeepAll(), surrogate=GaussianProcess(PROCESS.kernels, Sampled(12))
    ),
    "trimtuner (default)": TRIMTUNER,
}
TARGETS = {"trees, no filter": 0.2, "GP most likely, no filter": 0.2, "GP sampled, no filter": 2.0}


def space_of(configurations: int) -> tt.Space:
    """About so many configurations: 24 clusters and three hyper-parameters of equally many values."""
    cloud = tt.Cloud(
        catalog="aws",
        vm_types=["t2.small", "t2.medium", "t2.xlarge", "t2.2xlarge"],
        vm_count=range(1, 81),
        rule="vm_count * vcpus in (8, 16, 32, 48, 64, 80)",
        helpers=["t2.2xlarge"],
    )
    if configurations == 288:
        sizes = (3, 2, 2)
    else:
        each = max(2, round((configurations / 24) ** (1 / 3)))
        sizes = (each, each, max(1, round(configurations / 24 / each**2)))
    names = ("learning_rate", "batch_size", "width")
    parameters = {
        name: tt.Choice(np.geomspace(1.0, 1000.0, size).tolist(), scale="log")
        for name, size in zip(names, sizes, strict=True)
    }
    return tt.Space(parameters, cloud=cloud, fractions=FRACTIONS)


def measure(config: dict, fraction: float) -> dict[str, float]:
    """A made-up job: smooth, with an optimum inside, a cost that grows with the data, and no randomness."""
    rate, batch, width = (math.log10(config[name]) / 3 for name in ("learning_rate", "batch_size", "width"))
    odds = 2.5 - 6 * (rate - 0.6) ** 2 - 2 * (batch - 0.3) ** 2 + width + 0.8 * math.log10(fraction)
    vcpus = {"t2.small": 1, "t2.medium": 2, "t2.xlarge": 4, "t2.2xlarge": 8}[config["vm_type"]] * config["vm_count"]
    seconds = 400 * fraction**0.8 * (0.5 + width) * (1 + 1 / (0.2 + batch)) / vcpus**0.6 + 2
    return {"accuracy": 1 / (1 + math.exp(-odds)), "time": seconds}


def study_after(space: tt.Space, recipe: object, observations: int) -> tt.Study:
    """A study with so many measurements at random places, a few of them at full data."""
    study = tt.Study(space, maximize="accuracy", constraints=["cost <= 0.02"], method=recipe, seed=1)
    pool, generator = space.pool(), np.random.default_rng(0)
    first = recipe.design.next_step(study.problem, pool, study.history, 1)
    chosen: dict[tuple[int, float], None] = {}
    if first is not None:  # let the design be complete
        chosen.update(dict.fromkeys((first.position, fraction) for fraction in FRACTIONS[:-1]))
    while len(chosen) < observations:
        chosen[
            (int(generator.integers(len(pool))), float(generator.choice(FRACTIONS, p=[0.3, 0.3, 0.2, 0.1, 0.1])))
        ] = None
    for number, (position, fraction) in enumerate(list(chosen)[:observations]):
        trial = Trial(number, pool.configuration(position), fraction)
        study.history = study.history.with_asked(trial)
        study.tell(trial, **measure(trial.config, fraction))
    return study


def cpu_seconds_per_ask(study: tt.Study, repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        trial = tuner.ask(study.problem, study.recipe, study.history, study.seed)
        taken.append(time.process_time() - start)
        assert trial.origin == "model", "the design was still running: this would time nothing"
    return statistics.median(taken)


def one_case(name: str, configurations: int, observations: int, repeats: int) -> dict[str, float]:
    study = study_after(space_of(configurations), RECIPES[name], observations)
    return {
        "configurations": len(study.problem.space.pool()),
        "seconds": cpu_seconds_per_ask(study, repeats),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def in_own_process(name: str, configurations: int, observations: int, repeats: int) -> dict[str, float]:
    words = [sys.executable, __file__, name, str(configurations), str(observations), str(repeats)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout)


def main() -> None:
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    print(f"{platform.machine()}, {versions}, one thread, CPU seconds per ask\n")
    print("1,440 candidates (288 configurations x 5 fractions), 44 observations; median of 5")
    for name in RECIPES:
        found = in_own_process(name, 288, 44, 5)
        target = f"   must be under {TARGETS[name]}" if name in TARGETS else ""
        print(f"  {name:<28}{found['seconds']:>8.3f}{target}")
    print("\n20,000 configurations x 5 fractions, 100 observations; under 3 s and 2 GiB (but sampled); median of 3")
    for name in RECIPES:
        found = in_own_process(name, 20_000, 100, 3)
        print(f"  {name:<28}{found['seconds']:>8.3f} s{found['peak_gib']:>8.2f} GiB")
    print("\nGrowth with candidates, 44 observations")
    grow("candidates", [(n, 44) for n in (200, 2_000, 20_000, 200_000)], lambda n, _: 5 * n)
    print("\nGrowth with observations, 1,440 candidates")
    grow("observations", [(288, n) for n in (10, 30, 100, 300, 1_000)], lambda _, n: n)


def grow(what: str, cases: list[tuple[int, int]], axis) -> None:
    names = ("trees, no filter", "GP most likely, no filter", "trimtuner (default)")
    print(f"  {what:<14}" + "".join(f"{name:>28}" for name in names))
    for configurations, observations in cases:
        found = [in_own_process(name, configurations, observations, 3) for name in names]
        print(f"  {axis(configurations, observations):<14}" + "".join(f"{one['seconds']:>28.3f}" for one in found))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(one_case(sys.argv[1], *map(int, sys.argv[2:]))))
    else:
        main()
