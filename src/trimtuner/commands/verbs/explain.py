"""The verb ``explain`` of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import JobPath, opened, verb


@verb(10)
def explain(
    job: JobPath,
    trial: Annotated[
        int | None, typer.Argument(help="A trial's number; without it, the recommendation.", metavar="TRIAL")
    ] = None,
) -> None:
    """Why a trial was asked, or why the recommendation is what it is."""
    from trimtuner.study.explaining import explain_text

    print(explain_text(opened(job).judged_state(), trial))
