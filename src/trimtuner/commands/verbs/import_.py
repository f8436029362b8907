"""The verb ``import`` of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import Experiment, JobPath, verb
from trimtuner.errors import InputError


@verb(12)
def import_(
    job: JobPath,
    file: Annotated[
        Path | None,
        typer.Argument(help="CSV or JSON: every parameter, fraction, metrics, time or cost.", metavar="FILE"),
    ] = None,
    from_mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="Take the finished runs of this MLflow store instead.")
    ] = None,
    experiment: Experiment = None,
    runs: Annotated[
        str, typer.Option(metavar="FILTER", help="Only runs that MLflow's filter finds: \"tags.team = 'vision'\".")
    ] = "",
) -> None:
    """Take in measurements made elsewhere, so that nothing already paid for is bought again."""
    from trimtuner.commands.transfer import further_metrics, import_from_mlflow, read_measurements
    from trimtuner.jobs.studies import JobStudy

    if (file is None) == (from_mlflow is None):
        raise InputError("give what to import: either a FILE, or --from-mlflow URI")
    of = JobStudy.at(job)
    if from_mlflow is not None:
        print(import_from_mlflow(of, from_mlflow, experiment, runs))
        return
    if file is None or experiment is not None or runs:
        raise InputError("--experiment and --runs are for MLflow; say where with --from-mlflow")
    measurements = read_measurements(file, of.problem)
    _, memory = of.open_to_run()
    added, skipped = memory.record.import_measurements(measurements)
    print(f"{added} measurements added, {skipped} known already")
    further = further_metrics(measurements, of.problem)
    if further:
        print(f"kept besides what the study is about: {', '.join(further)}")
