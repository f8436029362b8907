"""TrimSearchCV beside HalvingRandomSearchCV and OptunaSearchCV: the score on held-out rows, for the same seconds.

    python benchmarks/sklearn_search.py --seeds 5 > rows.csv        # a line for each search
    python benchmarks/sklearn_search.py --table rows.csv            # the table of docs/results/sklearn-search.md

Three data sets that ship with scikit-learn, three estimators. For each seed the rows are split anew,
HalvingRandomSearchCV searches as it does by itself (every setting at its default, three splits), and the others get the
seconds that it took. Seconds are of the processor, of everything a search does, its own thinking and the last fit
included: another process on the machine does not count. All run in one thread.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier

import trimtuner as tt
from trimtuner.decisions.stopping import Prospect, Stop
from trimtuner.integrations.sklearn import TrimSearchCV

SPLITS = 3
LAYERS = [(16,), (64,), (256,), (64, 64)]


@dataclass(frozen=True)
class Case:
    """One data set with an estimator, and what may be chosen, in the words of each library."""

    name: str
    load: Callable[..., object]
    estimator: BaseEstimator
    ours: dict[str, object]
    scipys: dict[str, object]
    optunas: dict[str, object]


CASES = [
    Case(
        "digits, a network",
        load_digits,
        MLPClassifier(max_iter=30, random_state=0),
        {
            "hidden_layer_sizes": tt.Choice(LAYERS),
            "alpha": tt.Float(1e-6, 1.0, "log"),
            "learning_rate_init": tt.Float(1e-4, 0.1, "log"),
        },
        {"hidden_layer_sizes": LAYERS, "alpha": loguniform(1e-6, 1.0), "learning_rate_init": loguniform(1e-4, 0.1)},
        {
            "hidden_layer_sizes": CategoricalDistribution(LAYERS),
            "alpha": FloatDistribution(1e-6, 1.0, log=True),
            "learning_rate_init": FloatDistribution(1e-4, 0.1, log=True),
        },
    ),
    Case(
        "breast cancer, boosting",
        load_breast_cancer,
        HistGradientBoostingClassifier(max_iter=60, random_state=0),
        {
            "learning_rate": tt.Float(0.005, 1.0, "log"),
            "max_leaf_nodes": tt.Int(2, 63, "log"),
            "l2_regularization": tt.Float(1e-6, 10.0, "log"),
        },
        {
            "learning_rate": loguniform(0.005, 1.0),
            "max_leaf_nodes": randint(2, 64),
            "l2_regularization": loguniform(1e-6, 10.0),
        },
        {
            "learning_rate": FloatDistribution(0.005, 1.0, log=True),
            "max_leaf_nodes": IntDistribution(2, 63, log=True),
            "l2_regularization": FloatDistribution(1e-6, 10.0, log=True),
        },
    ),
    Case(
        "diabetes, a forest",
        load_diabetes,
        RandomForestRegressor(n_estimators=20, random_state=0),
        {
            "max_depth": tt.Choice([None, 2, 4, 8, 16]),
            "min_samples_leaf": tt.Int(1, 40, "log"),
            "max_features": tt.Float(0.1, 1.0),
        },
        {"max_depth": [None, 2, 4, 8, 16], "min_samples_leaf": randint(1, 41), "max_features": uniform(0.1, 0.9)},
        {
            "max_depth": CategoricalDistribution([None, 2, 4, 8, 16]),
            "min_samples_leaf": IntDistribution(1, 40, log=True),
            "max_features": FloatDistribution(0.1, 1.0),
        },
    ),
]


@dataclass(frozen=True)
class AfterProcessorSeconds(Stop):
    """Ends a search when the process has used so many seconds since."""

    end: float

    def reason(self, history: tt.History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        return "the seconds are used up" if time.process_time() >= self.end else None


def halving(case: Case, seed: int, seconds: float) -> HalvingRandomSearchCV:  # noqa: ARG001
    return HalvingRandomSearchCV(case.estimator, case.scipys, cv=SPLITS, random_state=seed)


def optunas(case: Case, seed: int, seconds: float) -> BaseEstimator:
    from optuna_integration.sklearn import OptunaSearchCV

    end = time.process_time() + seconds

    def stop_in_time(study: optuna.Study, trial: object) -> None:  # noqa: ARG001
        if time.process_time() >= end:
            study.stop()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    return OptunaSearchCV(
        case.estimator, case.optunas, cv=SPLITS, study=study, n_trials=1000, random_state=seed, callbacks=[stop_in_time]
    )


def ours(case: Case, seed: int, seconds: float) -> TrimSearchCV:
    recipe = tt.recipe_named("trimtuner").stopping_also(AfterProcessorSeconds(time.process_time() + seconds))
    return TrimSearchCV(case.estimator, case.ours, cv=SPLITS, method=recipe, trials=1000, random_state=seed)


METHODS = {"HalvingRandomSearchCV": halving, "OptunaSearchCV": optunas, "TrimSearchCV": ours}


def searched(case: Case, seed: int) -> list[dict[str, object]]:
    """One line for each method."""
    inputs, targets = case.load(return_X_y=True)
    parts = train_test_split(inputs, targets, test_size=0.25, random_state=seed)
    train_x, test_x, train_y, test_y = parts
    seconds, rows = 0.0, []
    for name, search_of in METHODS.items():
        started = time.process_time()
        search = search_of(case, seed, seconds).fit(train_x, train_y)
        used = time.process_time() - started
        seconds = seconds or used
        tried = len(search.trials_) if name == "OptunaSearchCV" else len(search.cv_results_["params"])
        score = search.score(test_x, test_y)
        rows.append({"case": case.name, "method": name, "seed": seed, "seconds": used, "score": score, "tried": tried})
    return rows


def table(path: Path) -> str:
    """Means over the seeds, with the spread."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["| | | score on held-out rows | seconds | candidates tried |", "|---|---|---|---|---|"]
    for case, method in dict.fromkeys((row["case"], row["method"]) for row in rows):
        own = [row for row in rows if (row["case"], row["method"]) == (case, method)]

        def told(column: str, digits: int, own: list[dict[str, str]] = own) -> str:
            values = [float(row[column]) for row in own]
            spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
            return f"{statistics.fmean(values):.{digits}f}{spread}"

        lines.append(f"| {case} | {method} | {told('score', 3)} | {told('seconds', 1)} | {told('tried', 0)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table is not None:
        print(table(given.table))
        return
    warnings.simplefilter(
        "ignore"
    )  # of networks that are not trained to the end, and of what Optuna calls experimental
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    writer = csv.DictWriter(sys.stdout, ["case", "method", "seed", "seconds", "score", "tried"])
    writer.writeheader()
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for case in CASES:
            writer.writerows(searched(case, seed))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
