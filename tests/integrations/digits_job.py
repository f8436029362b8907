"""The digits table as an objective of Optuna: a training job with a known answer."""

from __future__ import annotations

from functools import cache

import optuna

from trimtuner.engines.table import Table
from trimtuner.integrations.optuna import fraction_of
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import Constraint


@cache
def digits() -> Table:
    return Table.find("digits")


def suggest(trial: optuna.Trial) -> dict[str, Value]:
    return {name: trial.suggest_categorical(name, list(one.values)) for name, one in digits().space.parameters.items()}


def train(trial: optuna.Trial) -> float:
    """What the table says, on the share of the data that the sampler has chosen."""
    return measured(trial, fraction_of(trial))


def train_on_all_data(trial: optuna.Trial) -> float:
    return measured(trial, 1.0)


def measured(trial: optuna.Trial, fraction: float) -> float:
    cell = digits().cell(suggest(trial), fraction)
    trial.set_user_attr("time", cell.metrics["time"])
    trial.set_user_attr("cost", cell.metrics["cost"])
    return cell.metrics["accuracy"]


def spent(study: optuna.Study) -> float:
    return sum(trial.user_attrs["cost"] for trial in study.trials)


def is_within_limits(cost: float) -> bool:
    return all(Constraint.parse(text).is_met(cost) for text in digits().constraints)


def best_accuracy() -> float:
    """Of all configurations on all of the data, within the limit on cost."""
    limits = [Constraint.parse(text) for text in digits().constraints]
    return max(digits().feasible_values("accuracy", limits, (1.0,)))
