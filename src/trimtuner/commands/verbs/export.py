"""The verb ``export`` of the command line."""

from __future__ import annotations

import json
from pathlib import Path
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
    to_wandb: Annotated[
        str | None,
        typer.Option(metavar="PROJECT", help="Write them as offline runs of this W&B project, for 'wandb sync'."),
    ] = None,
    to_tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write them as TensorBoard's events to this folder.")
    ] = None,
) -> None:
    """Every measurement, to standard output; or every trial, to MLflow, W&B or TensorBoard."""
    from trimtuner.commands import transfer
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.study.telling import measurement_rows

    if form not in (None, "csv", "json"):
        raise InputError(f"--format {form!r} is neither csv nor json")
    ways = {"--format": form, "--to-mlflow": to_mlflow, "--to-wandb": to_wandb, "--to-tensorboard": to_tensorboard}
    chosen = [name for name, value in ways.items() if value is not None]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} are {len(chosen)} ways to export; choose one")
    if experiment is not None and to_mlflow is None:
        raise InputError("--experiment is one of MLflow; say where with --to-mlflow")
    of = JobStudy.at(job)
    if to_mlflow is not None:
        print(transfer.export_to_mlflow(of, to_mlflow, experiment))
    elif to_wandb is not None:
        print(transfer.export_to_wandb(of, to_wandb))
    elif to_tensorboard is not None:
        print(transfer.export_to_tensorboard(of, to_tensorboard))
    elif form == "json":
        print(json.dumps(measurement_rows(of.state()), indent=2))
    else:
        print(transfer.as_csv(measurement_rows(of.state())), end="")
