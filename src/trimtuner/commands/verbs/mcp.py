"""The verb ``mcp`` of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import verb


@verb(8.5)
def mcp(
    jobs: Annotated[
        list[Path], typer.Argument(help="The job files that it may work on, and no others.", metavar="JOB...")
    ],
) -> None:
    """Let an assistant work on these studies, by the Model Context Protocol on standard input and output.

    It can check, start, watch, explain and stop them, each within its budget. It cannot change a job file, and one that
    has changed since this was started is not started.
    """
    from trimtuner.commands.assistants.allowed import AllowedStudies
    from trimtuner.commands.assistants.server import serve

    serve(AllowedStudies.at(jobs))
