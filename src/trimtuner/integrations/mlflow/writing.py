"""Trials of a study as runs: each ended trial is logged once, however often one logs.

A run has the configuration as its parameters, and what was measured on its way at its steps. The runs of a study hang
under a run of its own, which has the recommendation.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag

from trimtuner.integrations.mlflow.reading import (
    FAILED,
    FINISHED,
    STUDY_ID_TAG,
    TRIAL_TAG,
    experiment_to_write,
    opened,
    runs_of,
)
from trimtuner.integrations.tracking import (
    RECOMMENDED,
    Logged,
    TrackedStudy,
    another_trial,
    notes_of,
    params_of,
    tracked_of,
)
from trimtuner.problem.history import Outcome
from trimtuner.problem.values import written
from trimtuner.study.study import Study


def log_study(study: Study, tracking_uri: str, experiment: str | None = None) -> Logged:
    """Log every ended trial, and the recommendation; without an experiment, to one that is named as the study.

    A study in Python is told apart by its name alone, so give two studies in one experiment two names.
    """
    return log_progress(tracked_of(study), tracking_uri, experiment)


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
        outcomes = self.tracked.outcomes
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
        start, end = map(_milliseconds, self.tracked.times_of(outcome))
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
        values, best = self.tracked.recommended, self.tracked.recommended_config
        tags = {f"trimtuner.{RECOMMENDED}": json.dumps(best)} if best else {}
        if _is_same(parent.data.metrics, values) and tags.items() <= parent.data.tags.items():
            return
        metrics = [Metric(name, value, _now(), len(self.tracked.outcomes)) for name, value in values.items()]
        self.client.log_batch(parent.info.run_id, metrics, tags=[RunTag(name, text) for name, text in tags.items()])
        self.client.set_terminated(parent.info.run_id, FINISHED)

    def _require_same(self, run: Run, outcome: Outcome) -> None:
        last = {metric.key: metric.value for metric in _metrics(outcome, 0)}
        if run.data.params != _params(outcome) or not _is_same(run.data.metrics, last):
            raise another_trial(self.tracked.name, outcome, f"run {run.info.run_id}")


def _params(outcome: Outcome) -> dict[str, str]:
    return {
        name: written(value) if value is None or isinstance(value, tuple) else str(value)
        for name, value in params_of(outcome).items()
    }


def _metrics(outcome: Outcome, start: int) -> list[Metric]:
    return [
        Metric(name, value, start + _milliseconds(noted.seconds), noted.step)
        for noted in notes_of(outcome)
        for name, value in noted.values.items()
    ]


def _is_same(there: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return all(name in there and math.isclose(there[name], value, rel_tol=1e-9) for name, value in wanted.items())


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _now() -> int:
    return _milliseconds(time.time())
