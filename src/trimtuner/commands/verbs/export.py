"""The verb ``export`` of the command line."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import Experiment, JobPath, verb
from trimtuner.errors import InputError


@verb(11)
def export(
    job: JobPath,
    form: Annotated[
        str | None, typer.Option("--format", help="csv or json. [default: csv]", show_default=False)
    ] = None,
    to_mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="Log the trials to this MLflow store instead; only new ones.")
    ] = None,
    experiment: Experiment = None,
) -> None:
    """Every measurement, to standard output; or every trial, to MLflow."""
    from trimtuner.commands.transfer import as_csv, export_to_mlflow
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.study.telling import measurement_rows

    if form not in (None, "csv", "json"):
        raise InputError(f"--format {form!r} is neither csv nor json")
    if to_mlflow is not None:
        if form is not None:
            raise InputError("--format and --to-mlflow are two ways to export; choose one")
        print(export_to_mlflow(JobStudy.at(job), to_mlflow, experiment))
        return
    if experiment is not None:
        raise InputError("--experiment is one of MLflow; say where with --to-mlflow")
    rows = measurement_rows(JobStudy.at(job).state())
    print(json.dumps(rows, indent=2) if form == "json" else as_csv(rows), end="\n" if form == "json" else "")
