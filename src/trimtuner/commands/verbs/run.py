"""The verb ``run`` of the command line."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import EXIT_NO_ANSWER, AsJson, JobPath, verb


@verb(4)
def run(
    job: JobPath,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the recommendation, at the end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start or resume the study of a job file, and run it until it is over.

    Interrupt once to start nothing more and wait for the running trials, twice to leave at once: running trials then go
    on until their time-out, and the next run adopts them.
    """
    from trimtuner.commands.running import run_job
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.jobs.validation import require_valid
    from trimtuner.study.telling import best_text, money_line, savings_text, status

    of = JobStudy.at(job)
    warnings = require_valid(of.job)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    reason = run_job(of, is_quiet=quiet or as_json)
    state = of.state()
    recommendation = state.recommendation
    if as_json:
        print(json.dumps({**status(state), "warnings": list(warnings), "ended": reason}, indent=2))
        raise typer.Exit(0 if recommendation else EXIT_NO_ANSWER)
    print(f"over: {reason}")
    if recommendation is None:
        print(f"nothing was measured; how each log ends is in the report: trimtuner report {job}")
        print(f"failures of a command that is mended by now are forgotten with: trimtuner forget {job} --failed")
        raise typer.Exit(EXIT_NO_ANSWER)
    print(best_text(state, recommendation))
    print(savings_text(state) or money_line(state))
