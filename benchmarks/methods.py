"""CPU seconds of one ``ask`` of every method, models fitted, on one thread: 1,440 candidates, 44 observations.

Run by ``make bench``. The job is the made-up one of ``speed.py``; methods that test on all of the data only have 288
candidates. Least-cost methods are asked for the least cost, the others for the best accuracy.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from speed import measure, space_of

import trimtuner as tt
from trimtuner.problem.history import Trial
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import METHODS, recipe_named

OBSERVATIONS, REPEATS = 44, 5
LEAST_COST = ("nephele", "lynceus", "cherrypick")
EXTRA = (
    "nephele:horizon=1",
    "nephele:horizon=2",
    "lynceus:horizon=1",
    "lynceus:horizon=2",
    "trimtuner:horizon=1",
    "trimtuner-gp:horizon=1",
    "trimtuner-dt:horizon=1",
    "trimtuner-dt:horizon=2",
)
LIMIT = 1.0


class NoDesign:
    """The measurements are there already."""

    def next_step(self, problem: object, pool: object, history: object, seed: int) -> None:  # noqa: ARG002
        return None


def study_for(method: str) -> tt.Study:
    name = method.partition(":")[0]
    goal = (
        {"minimize": "cost", "constraints": ["accuracy >= 0.8", "time <= 300s"], "budget": 20.0}
        if name in LEAST_COST
        else {"maximize": "accuracy", "constraints": ["cost <= 0.02"]}
    )
    recipe = recipe_named(method, **({"ignore_constraints": True} if name in ("ei", "fabolas") else {}))
    if recipe.acquisition is not None:
        recipe = recipe.but(design=NoDesign(), stop=None)
    study = tt.Study(space_of(288), method=recipe, seed=1, **goal)
    fractions = recipe.tested_fractions(recipe.narrow(study.problem))
    pool, generator = study.problem.space.pool(), np.random.default_rng(0)
    chosen: dict[tuple[int, float], None] = {}
    while len(chosen) < OBSERVATIONS:
        chosen[int(generator.integers(len(pool))), float(generator.choice(fractions))] = None
    for number, (position, fraction) in enumerate(chosen):
        trial = Trial(number, pool.configuration(position), fraction, origin="design")
        study.history = study.history.with_asked(trial)
        study.tell(trial, **measure(trial.config, fraction))
    return study


def seconds_per_ask(study: tt.Study) -> float:
    taken = []
    for _ in range(REPEATS):
        started = time.process_time()
        tuner.ask(study.problem, study.recipe, study.history, study.seed)
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def main() -> None:
    print(f"CPU seconds per ask, {OBSERVATIONS} observations, median of {REPEATS}; at most {LIMIT:g} but for horizon 2")
    for method in sorted({*METHODS, *EXTRA}):
        study = study_for(method)
        recipe = study.recipe
        candidates = 288 * len(recipe.tested_fractions(recipe.narrow(study.problem)))
        seconds = seconds_per_ask(study)
        note = "   OVER" if seconds > LIMIT and "horizon=2" not in method else ""
        print(f"  {method:<26}{candidates:>6} candidates{seconds:>9.3f}{note}", flush=True)


if __name__ == "__main__":
    main()
