"""The command line. Only light imports here: what a command needs is imported when it runs."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from trimtuner import __version__
from trimtuner.errors import InputError, TrimTunerError
from trimtuner.front.bench.command import app as bench_app

EXIT_BAD_INPUT = 2

app = typer.Typer(
    name="trimtuner",
    help="Find the best configuration for a training job, mostly on small shares of its data.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


app.add_typer(bench_app)


def main() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 2."""
    try:
        app()
    except TrimTunerError as error:
        print(f"trimtuner: {error}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"trimtuner {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def tables(as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False) -> None:
    """List the tables of measurements that replay can find by name."""
    from trimtuner.front.replay import describe_tables

    found = describe_tables()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for table in found:
        print(
            f"{table['name']:<10} {table['configurations']:>5} configurations x {table['fractions']}   {table['title']}"
        )


@app.command()
def methods(as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False) -> None:
    """List the methods: what each optimises, what it needs, when to use it, and its options."""
    from trimtuner.front.methods import describe_methods, text_of_methods

    print(json.dumps(describe_methods(), indent=2) if as_json else text_of_methods())


@app.command()
def replay(
    table: Annotated[str, typer.Argument(help="A table's name (see 'trimtuner tables') or the path of its CSV.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="See 'trimtuner methods'; with options: nephele:horizon=1. May be repeated. [default: trimtuner]",
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
    from trimtuner.front.replay import Request, progress_on_terminal, run_replays, summarise, text_of

    if budget is not None and not budget > 0:
        raise InputError(f"--budget {budget:g} must be above 0; it is in mean full-data runs")
    request = Request(
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
