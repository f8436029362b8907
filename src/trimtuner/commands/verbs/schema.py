"""The verb ``schema`` of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import verb


@verb(2)
def schema(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; over an older schema, never over another file."),
    ] = None,
) -> None:
    """Print the JSON schema of job files, by which editors complete and check them.

    A job file names it in its first line: '# yaml-language-server: $schema=FILE' for VS Code and others,
    '# $schema: FILE' for JetBrains. 'trimtuner init --schema' writes both lines, and the schema beside the job file.
    """
    from trimtuner.jobs.schema import schema_text, write_schema

    if output is None:
        print(schema_text(), end="")
        return
    write_schema(output)
    print(f"wrote {output}")
