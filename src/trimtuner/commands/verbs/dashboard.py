"""The verb ``dashboard`` of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import verb
from trimtuner.errors import InputError


@verb(8)
def dashboard(
    jobs: Annotated[
        list[str],
        typer.Argument(
            help="Job files, folders that hold them, or records whose studies are listed: a file, postgresql://…",
            metavar="JOB...",
        ),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; others can reach 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0: a free one. [default: 8080, if it is free]")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="TRIMTUNER_DASHBOARD_TOKEN", help="Who has it may look. [default: a new one]"),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let all of this machine look; not for an address that others can reach.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PORT]", help="A further name that it is opened by: of a proxy, a tunnel, a network."
        ),
    ] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Add buttons: start no more trials, forget failures, enqueue.")
    ] = False,
) -> None:
    """A page that shows studies as they go on. It reads their records, and changes nothing unless allowed to."""
    from trimtuner.commands.dashboard.command import Listening, new_token, serve

    if no_token and token is not None:
        raise InputError("--no-token, and a token (--token or TRIMTUNER_DASHBOARD_TOKEN): leave out one of them")
    may_look = None if no_token else new_token() if token is None else token
    serve(jobs, Listening(host, port, may_look, allow_host or (), may_change=allow_changes))
