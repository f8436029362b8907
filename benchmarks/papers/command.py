"""The command of ``make papers``: only light imports here; what it needs is imported when it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

MOST_SEEDS = 100
MOST_TRIALS = 10_000


@app.command()
def papers(
    seeds: Annotated[
        int, typer.Option(min=1, help="At most so many seeds per search; 3 is the quick form.")
    ] = MOST_SEEDS,
    out: Annotated[Path, typer.Option(help="The folder that gets the report and its plots.")] = Path("docs/results"),
    results: Annotated[
        Path, typer.Option("--cache", help="Finished searches, one a line: a run that was ended goes on from there.")
    ] = Path(".trimtuner-bench/paper.jsonl"),
    jobs: Annotated[
        int, typer.Option(min=1, help="Searches to run side by side.", show_default="one a core")
    ] = os.cpu_count() or 1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A figure (fig6.10), table (table4) or group (trimtuner, nephele, fabulinus, static). May be repeated."
        ),
    ] = None,
    multilayer: Annotated[
        Path | None, typer.Option(help="The CSV of the papers' third job, which is not public, if you have it.")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: report what is finished so far.")
    ] = False,
    trials: Annotated[int, typer.Option(min=1, help="At most so many trials per search.", hidden=True)] = MOST_TRIALS,
) -> None:
    """Regenerate what the papers print, ours beside theirs: searches first, then one report with plots.

    The full form takes hours and may be ended and started again; --seeds 3 takes minutes.
    """
    from benchmarks.papers.paper import Request, run_paper

    request = Request(seeds, trials, tuple(only or ()), multilayer, results, out, jobs, report_only)
    print(run_paper(request))
