"""The verb ``init`` of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import verb


@verb(1)
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.", metavar="JOB")] = Path("job.yaml"),
    with_schema: Annotated[
        bool,
        typer.Option("--schema", help="Also write the schema beside it, so that editors complete and check the file."),
    ] = False,
) -> None:
    """Write a commented job file to start from; never over a file that is there."""
    from trimtuner.jobs.starter import write_init, write_init_with_schema

    if with_schema:
        print(f"wrote {write_init_with_schema(path)}")
    else:
        write_init(path)
    print(f"wrote {path}; edit it, then: trimtuner validate {path}")
