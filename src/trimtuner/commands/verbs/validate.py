"""The verb ``validate`` of the command line."""

from __future__ import annotations

import json

import typer

from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, AsJson, JobPath, verb


@verb(3)
def validate(job: JobPath, as_json: AsJson = False) -> None:
    """Check a job file without running anything: the space, the worst case of a trial, what the budget allows."""
    from trimtuner.jobs.load import load_job
    from trimtuner.jobs.validation import validate_text, validation

    loaded = load_job(job)
    told = validation(loaded)
    print(json.dumps(told, indent=2) if as_json else validate_text(loaded))
    if not told["is_valid"]:
        raise typer.Exit(EXIT_BAD_INPUT)
