"""Trials of a study as runs: each ended trial is logged once, however often one logs.

A run has the configuration as its parameters. MLflow's steps are whole numbers, so a step is a millionth of the data:
a snapshot at a quarter of it is at step 250000, and the metric ``fraction`` tells the share itself. The runs of a
study hang under a run of its own, which has the recommendation.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag

from trimtuner.errors import InputError
from trimtuner.integrations.mlflow.reading import (
    FAILED,
    FINISHED,
    STUDY_ID_TAG,
    TRIAL_TAG,
    experiment_to_write,
    opened,
    runs_of,
)
from trimtuner.problem.history import History, Measurement, Outcome
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.rows import FRACTION
from trimtuner.problem.values import written
from trimtuner.records import Attempt
from trimtuner.study.study import Study
from trimtuner.tuning.recommendation import Recommendation

CHARGED = "trimtuner.charged"  # USD of all attempts at the trial; cost is that of what was measured
SPENT = "trimtuner.spent"
RECOMMENDED = "recommended"

_STEPS = 1_000_000


@dataclass(frozen=True)
class Logged:
    """How many trials were logged now, and how many before; those under way are logged once they have ended."""

    added: int
    known: int
    running: int


@dataclass(frozen=True)
class TrackedStudy:
    """What is logged of a study; its id tells studies of the same name apart, and is letters and digits only."""

    name: str
    id: str
    history: History
    recommendation: Recommendation | None
    attempts: tuple[Attempt, ...] = ()  # when trials ran, where a record knows it


def log_study(study: Study, tracking_uri: str, experiment: str | None = None) -> Logged:
    """Log every ended trial, and the recommendation; without an experiment, to one that is named as the study.

    A study in Python is told apart by its name alone, so give two studies in one experiment two names.
    """
    recommendation = study.recommend() if study.history.measurements else None
    id_from_name = hashlib.sha256(study.name.encode()).hexdigest()[:32]
    return log_progress(TrackedStudy(study.name, id_from_name, study.history, recommendation), tracking_uri, experiment)


def log_progress(tracked: TrackedStudy, tracking_uri: str, experiment: str | None = None) -> Logged:
    """The same for a study in a record."""
    with opened(tracking_uri) as client:
        log = _Log(client, experiment_to_write(client, experiment or tracked.name), tracked)
        return log.write()


@dataclass(frozen=True)
class _Log:
    client: MlflowClient
    experiment: str
    tracked: TrackedStudy

    def write(self) -> Logged:
        outcomes = sorted(self.tracked.history.outcomes, key=lambda one: one.trial.number)
        found = runs_of(self.client, self.experiment, f"tags.`{STUDY_ID_TAG}` = '{self.tracked.id}'")
        runs = {run.data.tags.get(TRIAL_TAG): run for run in found}
        ended = {number for number, run in runs.items() if run.info.status in (FINISHED, FAILED)}
        for outcome in outcomes:  # before anything is written
            if str(outcome.trial.number) in ended:
                self._require_same(runs[str(outcome.trial.number)], outcome)
        new = [outcome for outcome in outcomes if str(outcome.trial.number) not in ended]
        parent = runs.get(None) or self._create(self.tracked.name, {}, _now())
        for outcome in new:
            self._write_trial(outcome, parent, runs.get(str(outcome.trial.number)))
        self._write_recommendation(parent)
        return Logged(len(new), len(outcomes) - len(new), len(self.tracked.history.pending))

    def _create(self, name: str, tags: Mapping[str, str], start: int) -> Run:
        own = {STUDY_ID_TAG: self.tracked.id, "trimtuner.study": self.tracked.name, **tags}
        return self.client.create_run(self.experiment, start, own, name)

    def _write_trial(self, outcome: Outcome, parent: Run, half_written: Run | None) -> None:
        trial = outcome.trial
        start, end = self._times(outcome)
        tags = {
            TRIAL_TAG: str(trial.number),
            "trimtuner.state": outcome.failure or "ok",
            "trimtuner.origin": trial.origin,
            "mlflow.parentRunId": parent.info.run_id,
        }
        run = half_written or self._create(f"{self.tracked.name} {trial.number}", tags, start)
        params = [Param(name, text) for name, text in _params(outcome).items()]
        self.client.log_batch(run.info.run_id, _metrics(outcome, run.info.start_time), params)
        self.client.set_terminated(run.info.run_id, FAILED if outcome.failed else FINISHED, end)

    def _write_recommendation(self, parent: Run) -> None:
        """Only what is new: MLflow keeps every value of a metric, and writes down when a run was last changed."""
        best, history = self.tracked.recommendation, self.tracked.history
        values = {SPENT: history.spent}
        tags = {}
        if best is not None:
            values |= {f"{RECOMMENDED}.{name}": float(one) for name, one in best.estimates.items()}
            values[f"{RECOMMENDED}.chance_feasible"] = best.chance_feasible
            tags[f"trimtuner.{RECOMMENDED}"] = json.dumps({**best.config, FRACTION: best.fraction})
        if _is_same(parent.data.metrics, values) and tags.items() <= parent.data.tags.items():
            return
        metrics = [Metric(name, value, _now(), len(history.outcomes)) for name, value in values.items()]
        self.client.log_batch(parent.info.run_id, metrics, tags=[RunTag(name, text) for name, text in tags.items()])
        self.client.set_terminated(parent.info.run_id, FINISHED)

    def _times(self, outcome: Outcome) -> tuple[int, int]:
        """Start and end in milliseconds since 1970; where nobody wrote them down, it ended just now."""
        attempts = [one for one in self.tracked.attempts if one.trial == outcome.trial.number]
        if not attempts or attempts[-1].ended_at is None:
            end = _now()
            return end - _milliseconds(outcome.time or 0.0), end
        start = attempts[0].started_at or attempts[0].asked_at
        return _milliseconds(start), _milliseconds(attempts[-1].ended_at)

    def _require_same(self, run: Run, outcome: Outcome) -> None:
        last = {metric.key: metric.value for metric in _metrics(outcome, 0)}
        if run.data.params != _params(outcome) or not _is_same(run.data.metrics, last):
            raise InputError(
                f"trial {outcome.trial.number} of a study {self.tracked.name!r} is there already, and it is another "
                f"one (run {run.info.run_id}); give this study another name, or log it to another experiment"
            )


def _params(outcome: Outcome) -> dict[str, str]:
    told = {**outcome.trial.config, FRACTION: outcome.trial.fraction}
    return {
        name: written(value) if value is None or isinstance(value, tuple) else str(value)
        for name, value in told.items()
    }


def _metrics(outcome: Outcome, start: int) -> list[Metric]:
    """What was measured at each share, in order, and at last what was paid."""
    last = _step(outcome.trial.fraction)
    measured = [metric for one in outcome.measurements for metric in _metrics_at(one, start)]
    paid = {CHARGED: outcome.cost}
    if outcome.failed is not None:
        paid |= {COST: outcome.cost, **({} if outcome.time is None else {TIME: outcome.time})}
    end = start + _milliseconds(outcome.time or 0.0)
    return [*measured, *(Metric(name, value, end, last) for name, value in paid.items())]


def _metrics_at(measurement: Measurement, start: int) -> list[Metric]:
    at = start + _milliseconds(measurement.metrics.get(TIME, 0.0))
    values = {**measurement.metrics, FRACTION: measurement.fraction}
    return [Metric(name, value, at, _step(measurement.fraction)) for name, value in values.items()]


def _is_same(there: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return all(name in there and math.isclose(there[name], value, rel_tol=1e-9) for name, value in wanted.items())


def _step(fraction: float) -> int:
    return round(fraction * _STEPS)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _now() -> int:
    return _milliseconds(time.time())
