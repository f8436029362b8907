"""A job's study to MLflow, and measurements from there."""

from __future__ import annotations

import os

from trimtuner.jobs.studies import JobStudy


def export_to_mlflow(of: JobStudy, uri: str, experiment: str | None) -> str:
    """Log every ended trial that is not there yet; what was done."""
    _prepare()
    from trimtuner.integrations.mlflow import Progress, log_progress

    state = of.state()
    progress = Progress(state.name, of.record.id, state.history, state.recommendation, attempts=state.attempts)
    logged = log_progress(progress, uri, experiment)
    running = f", {logged.running} still running" if logged.running else ""
    return f"{logged.added} trials logged, {logged.known} there already{running}"


def import_from_mlflow(of: JobStudy, uri: str, experiment: str | None, runs: str) -> str:
    """Take in what the finished runs measured; what was done."""
    _prepare()
    from trimtuner.integrations.mlflow import measurements_from

    found = measurements_from(uri, experiment or of.job.name, of.problem, runs)
    _, memory = of.open_to_run()
    added, known = memory.record.import_measurements(found.measurements)
    skipped = ", ".join(f"{count} {status}" for status, count in sorted(found.skipped.items()))
    left_out = f"; runs left out because they are not FINISHED: {skipped}" if skipped else ""
    return f"{added} measurements added, {known} known already{left_out}"


def _prepare() -> None:
    """What MLflow reads from the environment, unless the user has set it."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a command of ours speaks to the store and nobody else
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # not each table that it makes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # its seven are minutes until a wrong address is told
