"""From what a user tells of a trial to an outcome: every number checked, cost and time completed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Real

from trimtuner.errors import InputError, nearest
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem, is_share
from trimtuner.reporting import finite_metric

SHORTEST_SECONDS = 1e-9  # that a trial may have taken: one that took no time at all would cost nothing
_FAILURE_KIND = re.compile(r"[^\W\d][\w .:-]{0,63}")


def outcome_of_success(
    problem: Problem,
    trial: Trial,
    metrics: Mapping[str, float],
    snapshots: Mapping[float, Mapping[str, float]],
) -> Outcome:
    """The outcome of a trial that reported; snapshots are part of the same run, so they are charged once."""
    measurements = _measured_on_the_way(problem, trial, snapshots)
    final = _measurement(problem, trial, trial.fraction, metrics)
    cost, time = final.metrics.get(COST, 0.0), final.metrics.get(TIME)
    return Outcome(trial, (*measurements, final), None, cost, time)


def outcome_of_failure(
    problem: Problem,
    trial: Trial,
    kind: str,
    metrics: Mapping[str, float],
    snapshots: Mapping[float, Mapping[str, float]] | None = None,
) -> Outcome:
    """The outcome of a trial that failed: charged for its time or cost; what it measured on its way is measured."""
    if not isinstance(kind, str) or not _FAILURE_KIND.fullmatch(kind):
        raise InputError(f"failed={kind!r} must name the kind of failure in a few words, such as 'oom' or 'timeout'")
    for name in metrics:
        if name not in (COST, TIME):
            raise InputError(f"trial {trial.number} failed, so it has no {name!r}; tell only time= or cost=")
    completed = _with_cost(problem, trial, {name: _checked(name, value) for name, value in metrics.items()})
    if problem.budget is not None:  # else nothing hangs on what a failure cost, where nobody knows
        _require_cost(trial, completed)
    measurements = _measured_on_the_way(problem, trial, snapshots or {})
    return Outcome(trial, tuple(measurements), kind, completed.get(COST, 0.0), completed.get(TIME))


def with_measured_time(problem: Problem, told: Mapping[str, float], seconds: float | None) -> dict[str, float]:
    """What was told of a trial, with its time as another library measured it where none was told, nor follows."""
    if seconds is None or TIME in told or (COST in told and problem.space.has_prices):
        return dict(told)
    return {TIME: max(seconds, SHORTEST_SECONDS), **told}


def _measured_on_the_way(
    problem: Problem, trial: Trial, snapshots: Mapping[float, Mapping[str, float]]
) -> list[Measurement]:
    if not isinstance(snapshots, Mapping):
        raise InputError(f"snapshots={snapshots!r} must be a dict such as {{0.1: {{'accuracy': 0.8, 'time': 3.0}}}}")
    measurements = [
        _measurement(problem, trial, _snapshot_fraction(problem, trial, fraction), reported)
        for fraction, reported in snapshots.items()
    ]
    _refuse_repeated_snapshots(measurements)
    return sorted(measurements, key=lambda measurement: measurement.fraction)


def _snapshot_fraction(problem: Problem, trial: Trial, fraction: float) -> float:
    if not problem.space.snapshots:
        raise InputError("snapshots were told, but the space was made without snapshots=True")
    if isinstance(fraction, bool) or not isinstance(fraction, Real):
        raise InputError(f"a snapshot is told for a fraction of the data, a number, not {fraction!r}")
    offered = problem.space.nearest_fraction(float(fraction))
    if offered >= trial.fraction:
        raise InputError(f"a snapshot at {fraction:g} is not on the way to the trial's fraction {trial.fraction:g}")
    return offered


def _refuse_repeated_snapshots(measurements: list[Measurement]) -> None:
    fractions = [measurement.fraction for measurement in measurements]
    if len(set(fractions)) < len(fractions):
        raise InputError("two snapshots are of the same fraction")


def _measurement(problem: Problem, trial: Trial, fraction: float, metrics: Mapping[str, float]) -> Measurement:
    if not isinstance(metrics, Mapping):
        raise InputError(f"trial {trial.number} reports {metrics!r}; it must be a dict such as {{'accuracy': 0.91}}")
    checked = {name: _checked(name, value) for name, value in metrics.items()}
    for name in problem.reported_metrics:
        if name not in checked:
            reported = ", ".join(checked) or "nothing"
            raise InputError(
                f"trial {trial.number} reports no {name!r}, which the goal or a constraint is about; "
                f"it reports {reported}{nearest(name, checked)}"
            )
    completed = _with_cost(problem, trial, checked)
    if problem.names_cost:
        _require_cost(trial, completed)
    if TIME in problem.metrics:
        _require_time(trial, completed)
    return Measurement(trial.config, fraction, completed)


def _with_cost(problem: Problem, trial: Trial, metrics: dict[str, float]) -> dict[str, float]:
    if TIME not in metrics and COST not in metrics:
        raise InputError(
            f"trial {trial.number} reports neither time= (seconds) nor cost= (USD); "
            "one is needed to weigh what a trial teaches against its price"
        )
    price = problem.space.price_per_hour(trial.configuration)
    if COST not in metrics and price is not None:
        return {**metrics, COST: _checked(COST, metrics[TIME] * price / 3600.0)}
    if TIME not in metrics and price is not None:
        return {**metrics, TIME: _checked(TIME, metrics[COST] * 3600.0 / price)}
    return metrics


def _require_cost(trial: Trial, metrics: Mapping[str, float]) -> None:
    if COST not in metrics:
        raise InputError(
            f"trial {trial.number} reports no cost= (USD), and it does not follow from time: "
            "the space has no prices; give a cloud, price_per_hour=, or cost= with each tell"
        )


def _require_time(trial: Trial, metrics: Mapping[str, float]) -> None:
    if TIME not in metrics:
        raise InputError(f"trial {trial.number} reports no time= (seconds), which the goal or a constraint is about")


def _checked(name: str, value: float) -> float:
    number = finite_metric(name, value, "if the training diverged, tell failed='diverged'")
    if name in (COST, TIME) and number <= 0:
        unit = "USD" if name == COST else "seconds"
        raise InputError(f"{name}={number:g} must be above 0 {unit}")
    if is_share(name):
        _check_share(name, number)
    return number


def _check_share(name: str, number: float) -> None:
    if number > 1:
        raise InputError(
            f"{name}={number:g} is above 1; {name} is a share from 0 to 1, so {number:g} % is {number / 100:g} "
            f"(or call the metric {name}_percent)"
        )
    if number < 0:
        raise InputError(f"{name}={number:g} is below 0; {name} is a share from 0 to 1")
