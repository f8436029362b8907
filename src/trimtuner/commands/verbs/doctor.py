"""The verb ``doctor`` of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, AsJson, verb


@verb(18)
def doctor(
    job: Annotated[
        Path | None, typer.Argument(help="The job file; without one, only this machine.", metavar="JOB")
    ] = None,
    policy: Annotated[bool, typer.Option("--policy", help="Print the smallest IAM policy for AWS, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check before a cent is spent: what is installed, the record, and the engine with its credentials and quotas."""
    from trimtuner.commands.doctor import doctor_text, examine, is_ready, policy_of
    from trimtuner.jobs.load import load_job

    loaded = None if job is None else load_job(job)
    if policy:
        print(json.dumps(policy_of(loaded), indent=2))
        return
    checks = examine(loaded)
    told = {"is_ready": is_ready(checks), "checks": [check.as_json() for check in checks]}
    print(json.dumps(told, indent=2) if as_json else doctor_text(checks))
    if not is_ready(checks):
        raise typer.Exit(EXIT_BAD_INPUT)
