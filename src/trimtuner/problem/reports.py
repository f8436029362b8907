"""From what a trial or a row of a file reports to measurements: every number checked, cost and time completed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trimtuner.errors import InputError, nearest
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem, is_share
from trimtuner.problem.values import is_number
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
    final = measurement_of(problem, _named(trial), trial.config, trial.fraction, metrics)
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
            raise InputError(f"{_named(trial)} failed, so it has no {name!r}; tell only time= or cost=")
    is_charged = problem.space.has_prices or problem.budget is not None
    completed = _completed(problem, _named(trial), trial.config, metrics) if metrics or is_charged else {}
    if problem.budget is not None:  # else nothing hangs on what a failure cost, where nobody knows
        _require_cost(_named(trial), completed)
    measurements = _measured_on_the_way(problem, trial, snapshots or {})
    return Outcome(trial, tuple(measurements), kind, completed.get(COST, 0.0), completed.get(TIME))


def measurement_of(
    problem: Problem, who: str, config: Mapping[str, Value], fraction: float, metrics: Mapping[str, float]
) -> Measurement:
    """What a configuration measured at a fraction, by the word of whoever reports it: a trial, or a row of a file."""
    if not isinstance(metrics, Mapping):
        raise InputError(f"{who} reports {metrics!r}; it must be a dict such as {{'accuracy': 0.91}}")
    for name in problem.reported_metrics:
        if name not in metrics:
            reported = ", ".join(metrics) or "nothing"
            raise InputError(
                f"{who} reports no {name!r}, which the goal or a constraint is about; "
                f"it reports {reported}{nearest(name, metrics)}"
            )
    completed = _completed(problem, who, config, metrics)
    if problem.names_cost:
        _require_cost(who, completed)
    if TIME in problem.metrics and TIME not in completed:
        raise InputError(f"{who} reports no time= (seconds), which the goal or a constraint is about")
    return Measurement(config, fraction, completed)


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
    found: dict[float, Measurement] = {}
    for told, reported in snapshots.items():
        fraction = _snapshot_fraction(problem, trial, told)
        if fraction in found:
            raise InputError("two snapshots are of the same fraction")
        found[fraction] = measurement_of(problem, _named(trial), trial.config, fraction, reported)
    return [found[fraction] for fraction in sorted(found)]


def _snapshot_fraction(problem: Problem, trial: Trial, fraction: float) -> float:
    if not problem.space.snapshots:
        raise InputError("snapshots were told, but the space was made without snapshots=True")
    if not is_number(fraction):
        raise InputError(f"a snapshot is told for a fraction of the data, a number, not {fraction!r}")
    offered = problem.space.nearest_fraction(float(fraction))
    if offered >= trial.fraction:
        raise InputError(f"a snapshot at {fraction:g} is not on the way to the trial's fraction {trial.fraction:g}")
    return offered


def _named(trial: Trial) -> str:
    return f"trial {trial.number}"


def _completed(
    problem: Problem, who: str, config: Mapping[str, Value], metrics: Mapping[str, float]
) -> dict[str, float]:
    """Every number checked; time from cost or cost from time, where the price is known."""
    checked = {name: _checked(name, value) for name, value in metrics.items()}
    if TIME not in checked and COST not in checked:
        raise InputError(
            f"{who} reports neither time= (seconds) nor cost= (USD); "
            "one is needed to weigh what a trial teaches against its price"
        )
    price = problem.space.price_per_hour(config)
    if COST not in checked and price is not None:
        return {**checked, COST: _checked(COST, checked[TIME] * price / 3600.0)}
    if TIME not in checked and price is not None:
        return {**checked, TIME: _checked(TIME, checked[COST] * 3600.0 / price)}
    return checked


def _require_cost(who: str, metrics: Mapping[str, float]) -> None:
    if COST not in metrics:
        raise InputError(
            f"{who} reports no cost= (USD), and it does not follow from time: "
            "the space has no prices; give a cloud, price_per_hour=, or cost= with each tell"
        )


def _checked(name: str, value: float) -> float:
    number = finite_metric(name, value, "if the training diverged, tell failed='diverged'")
    if name in (COST, TIME) and number <= 0:
        unit = "USD" if name == COST else "seconds"
        raise InputError(f"{name}={number:g} must be above 0 {unit}")
    if is_share(name) and number > 1:
        raise InputError(
            f"{name}={number:g} is above 1; {name} is a share from 0 to 1, so {number:g} % is {number / 100:g} "
            f"(or call the metric {name}_percent)"
        )
    if is_share(name) and number < 0:
        raise InputError(f"{name}={number:g} is below 0; {name} is a share from 0 to 1")
    return number
