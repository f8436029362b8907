"""The verb ``report`` of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import JobPath, opened, verb


@verb(7)
def report(
    job: JobPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; its ending may say the format. '-': to the terminal."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="html (one file, the default), md, svg or png.", show_default=False)
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="For svg and png: tradeoff, progress, parallel, curves, timeline, …; a wrong name lists them all."
        ),
    ] = None,
) -> None:
    """Everything there is to see of the study, in one file to send, or one view as a picture."""
    from trimtuner.commands.report import report_text, write_report

    of = opened(job)
    if output is not None and str(output) == "-":
        print(report_text(of), end="")
        return
    for path in write_report(of, output, form, view):
        print(f"wrote {path}")
