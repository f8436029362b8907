"""Runs of an experiment, by whomever: found in a tracking store, and read as measurements, by the same names."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from trimtuner.errors import InputError, cut
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.rows import FRACTION, columns_of, measurement_of_row

FINISHED, FAILED = "FINISHED", "FAILED"  # of MLflow's states of a run, those that we give

STUDY_ID_TAG = "trimtuner.study_id"  # every run of ours has it
TRIAL_TAG = "trimtuner.trial"  # and a trial's run this too

_PAGE = 1000
_LONGEST_ERROR = 300
_SQLITE = "sqlite:"

Stored = TypeVar("Stored", str, float)


@dataclass(frozen=True)
class FoundRuns:
    """What the runs measured, and how many were left out because they are not finished, by their status."""

    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, int]


def measurements_from(tracking_uri: str, experiment: str, problem: Problem, runs: str = "") -> FoundRuns:
    """What the finished runs of an experiment measured, the newest first; ``runs`` is a filter in MLflow's words.

    A run needs every parameter of the space and every metric of the goal and the constraints, under the same names;
    what else it has is left alone. The share of the data is its ``fraction``, a parameter or a metric, and 1 without
    it; a metric ``fraction`` with several steps makes each step a measurement. The time is its metric ``time`` in
    seconds, or else how long it ran.
    """
    _require_existing(tracking_uri)
    measurements: list[Measurement] = []
    skipped: Counter[str] = Counter()
    with opened(tracking_uri) as client:
        for run in runs_of(client, _experiment_to_read(client, experiment, tracking_uri), runs):
            if STUDY_ID_TAG in run.data.tags and TRIAL_TAG not in run.data.tags:
                continue  # the study above our own runs, which trained nothing
            if run.info.status != FINISHED:
                skipped[run.info.status] += 1
                continue
            measurements += _measurements_of(client, run, problem)
    return FoundRuns(tuple(measurements), dict(skipped))


@contextmanager
def opened(uri: str) -> Iterator[MlflowClient]:
    """The store at this address; whatever goes wrong with it is an InputError without the address's secrets."""
    if not isinstance(uri, str) or not uri.strip():
        raise InputError("the address of MLflow is empty; write http://host:5000 or sqlite:///mlflow.db")
    try:
        yield MlflowClient(tracking_uri=uri)
    except InputError:
        raise
    except (MlflowException, SQLAlchemyError, ImportError, OSError, ValueError) as error:
        # Without the original, whose text and frames have the address as it was given.
        raise InputError(f"MLflow at {_shown(uri)}: {_brief(error, uri)}") from None


def experiment_to_write(client: MlflowClient, name: str) -> str:
    """The id of the experiment, made if need be."""
    found = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if found is None else found.experiment_id)


def runs_of(client: MlflowClient, experiment: str, wanted: str = "") -> Iterator[Run]:
    """Every run that MLflow's filter finds, the newest first."""
    token: str | None = None
    while True:
        page = client.search_runs(
            [experiment], wanted, max_results=_PAGE, order_by=["attributes.start_time DESC"], page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _require_existing(uri: str) -> None:
    """Refuse a SQLite file that is not there, which MLflow would make and find empty."""
    if uri.startswith(_SQLITE):
        path = make_url(uri).database
        if path and not Path(path).is_file():
            raise InputError(
                f"there is no file {path}; in {_SQLITE}///mlflow.db a path from here follows three slashes"
            )


def _experiment_to_read(client: MlflowClient, name: str, uri: str) -> str:
    """The id of the experiment; an error names those that there are."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    names = [one.name for one in client.search_experiments(max_results=_PAGE)]
    some = ", ".join(repr(one) for one in names[:10])
    raise InputError(f"there is no experiment {name!r} at {_shown(uri)}; name one of those that there are: {some}")


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


def _brief(error: Exception, uri: str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"this kind of store needs {error.name!r}; install it"
    text = _without_users(str(error).replace(uri, _shown(uri)))
    return cut(text.strip().partition("\n")[0] or type(error).__name__, _LONGEST_ERROR)


def _without_users(text: str) -> str:
    return re.sub(r"(?<=://)\S*@", "", text)


def _shown(uri: str) -> str:
    """The address without user, password and options."""
    return _without_users(uri).partition("?")[0]
