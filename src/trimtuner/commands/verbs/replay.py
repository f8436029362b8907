"""The verb ``replay`` of the command line."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import verb
from trimtuner.errors import InputError


@verb(21)
def replay(
    table: Annotated[
        str, typer.Argument(help="A table's name (see 'trimtuner tables') or the path of its CSV.", metavar="TABLE")
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="See 'trimtuner methods'; with options: 'nephele:horizon=1'. May be repeated. [default: trimtuner]",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many searches, each with its own seed.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    trials: Annotated[int, typer.Option(min=1, help="The most trials of one search.")] = 60,
    budget: Annotated[float | None, typer.Option(help="The most money of one search, in mean full-data runs.")] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="A limit instead of the table's own, such as 'cost <= 0.1'. May be repeated."),
    ] = None,
    snapshots: Annotated[
        bool | None,
        typer.Option(
            "--snapshots/--no-snapshots",
            help="Whether one run measures the smaller fractions on its way. [default: as the table says]",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Searches to run side by side.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for scripts.")] = False,
) -> None:
    """Run methods against a table of measurements: what they spend until their recommendation is good, for good."""
    from trimtuner.commands.replay import ReplayRequest, progress_on_terminal, run_replays, summarise, text_of

    if budget is not None and not budget > 0:
        raise InputError(f"--budget {budget:g} must be above 0; it is in mean full-data runs")
    request = ReplayRequest(
        table,
        tuple(dict.fromkeys(method or ["trimtuner"])),
        first_seed,
        seeds,
        trials,
        budget,
        constraint,
        snapshots,
        jobs,
    )
    with progress_on_terminal(len(request.methods) * seeds) as advance:
        results = run_replays(request, advance)
    summary = summarise(request, results)
    print(json.dumps(summary.as_json(), indent=2) if as_json else text_of(summary))
