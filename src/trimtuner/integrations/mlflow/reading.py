"""Runs of an experiment, by whomever, as measurements: parameters by their names, metrics by theirs."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from mlflow import MlflowClient
from mlflow.entities import Run

from trimtuner.integrations.mlflow.store import (
    FINISHED,
    STUDY_ID_TAG,
    TRIAL_TAG,
    experiment_to_read,
    opened,
    require_existing,
    runs_of,
)
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.rows import FRACTION, columns_of, measurement_of_row

Stored = TypeVar("Stored", str, float)


@dataclass(frozen=True)
class Found:
    """What the runs measured, and how many were left out because they are not finished, by their status."""

    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, int]


def measurements_from(tracking_uri: str, experiment: str, problem: Problem, runs: str = "") -> Found:
    """What the finished runs of an experiment measured, the newest first; ``runs`` is a filter in MLflow's words.

    A run needs every parameter of the space and every metric of the goal and the constraints, under the same names;
    what else it has is left alone. The share of the data is its ``fraction``, a parameter or a metric, and 1 without
    it; a metric ``fraction`` with several steps makes each step a measurement. The time is its metric ``time`` in
    seconds, or else how long it ran.
    """
    require_existing(tracking_uri)
    measurements: list[Measurement] = []
    skipped: Counter[str] = Counter()
    with opened(tracking_uri) as client:
        for run in runs_of(client, experiment_to_read(client, experiment, tracking_uri), runs):
            if STUDY_ID_TAG in run.data.tags and TRIAL_TAG not in run.data.tags:
                continue  # the study above our own runs, which trained nothing
            if run.info.status != FINISHED:
                skipped[run.info.status] += 1
                continue
            measurements += _measurements_of(client, run, problem)
    return Found(tuple(measurements), dict(skipped))


def _measurements_of(client: MlflowClient, run: Run, problem: Problem) -> list[Measurement]:
    where = f"run {run.info.run_name!r} ({run.info.run_id})"
    params = _only(run.data.params, problem)
    metrics = {name: _as_logged(value) for name, value in _only(run.data.metrics, problem).items()}
    shares = client.get_metric_history(run.info.run_id, FRACTION) if FRACTION in metrics else []
    if len({share.step for share in shares}) < 2:
        return [measurement_of_row(where, _with_time({**metrics, **params}, run, run.info.end_time), problem)]
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in metrics}
    measurements = []
    for share in shares:
        logged = ((name, one) for name, history in histories.items() for one in history)
        at_step = {name: _as_logged(one.value) for name, one in logged if one.step == share.step}
        row = _with_time({**params, **at_step}, run, share.timestamp)
        measurements.append(measurement_of_row(f"{where} at step {share.step}", row, problem))
    return measurements


def _only(values: Mapping[str, Stored], problem: Problem) -> dict[str, Stored]:
    """Without what is none of the study's business."""
    return {name: value for name, value in values.items() if name in columns_of(problem)}


def _as_logged(value: float) -> float:
    """A store in SQL keeps an infinity as the largest number there is."""
    return value if abs(value) < sys.float_info.max else math.copysign(math.inf, value)


def _with_time(row: Mapping[str, object], run: Run, end: int | None) -> dict[str, object]:
    """The row with a time, if only that from the start of the run to its end, both in milliseconds."""
    if TIME in row or COST in row or end is None:
        return dict(row)
    return {**row, TIME: (end - run.info.start_time) / 1000}
