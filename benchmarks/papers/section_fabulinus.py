"""The report on the thesis's chapter 7: Figs. 7.1 to 7.3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers import facts
from benchmarks.papers.curves import Axis, share_or_zero
from benchmarks.papers.experiments import FABULINUS_TRIALS, Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import mean_and_deviation, picture, table
from benchmarks.papers.plots import Initial, Panel, draw_panels
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import accuracy_curves, ask_seconds, reach_table, seeds

FIGURE_OF = {"cnn": "7.1", "rnn": "7.2", "multilayer": "7.3"}


def write_fabulinus(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    """All of them, as paragraphs; plots go to the folder."""
    paragraphs = []
    for job, cells in measurements:
        lines = results.lines(Experiment.FABULINUS, job)
        if lines:
            paragraphs += _figure(lines, job, cells, folder)
    if not paragraphs:
        return []
    return [
        "## Thesis, chapter 7: Fabulinus",
        f"{FABULINUS_TRIALS} trials; Accuracy_C as in Eq. 7.1, zero where the recommendation breaks the limit. A "
        "circle, as in the thesis, marks where the median search has paid for its initial samples: nine configurations "
        "at each of four fractions for Fabulinus and FABOLAS, nine at full data for the others. Time to ask is CPU "
        "time of one thread here; theirs was public code of FABOLAS, extended. The line marked * is what the thesis "
        "leaves for later (chapter 8).",
        *paragraphs,
    ]


def _figure(lines: Sequence[Measured], job: Job, cells: Cells, folder: Path) -> list[str]:
    figure = FIGURE_OF[job.name]
    best = facts.best_accuracy(cells, job.cost_limit)
    panels = []
    for axis in Axis:
        curves = accuracy_curves(lines, axis, share_or_zero, best, is_log=axis is not Axis.NUMBER)
        panels.append(
            Panel(
                job.title,
                axis,
                "Accuracy_C",
                curves,
                axis is not Axis.NUMBER,
                y_limits=(0.0, 1.02),
                initial=Initial.CIRCLE,
            )
        )
    draw_panels(folder / f"fig{figure}.png", panels)
    return [
        f"### Fig. {figure}: {job.title}",
        picture(f"plots/fig{figure}.png", f"Accuracy_C against cost, time, trials, and time with asking, {job.title}"),
        _process_table(lines, best),
        "To 90 % of the best feasible accuracy, median [10th, 90th percentile] over seeds:",
        reach_table(lines, share_or_zero),
    ]


def _process_table(lines: Sequence[Measured], best: float) -> str:
    rows = []
    for line in lines:
        final = [best * float(share_or_zero(trace)[-1]) for trace in line.traces]
        within = [100.0 * float(np.mean(trace.feasible)) for trace in line.traces]
        asks = ask_seconds(line.traces, line.initial) or [0.0]
        rows.append(
            [
                line.label,
                seeds(line),
                mean_and_deviation([trace.spent[-1] for trace in line.traces]),
                mean_and_deviation([trace.seconds[-1] / 3600.0 for trace in line.traces]),
                mean_and_deviation([trace.total_seconds[-1] / 3600.0 for trace in line.traces]),
                mean_and_deviation(asks),
                mean_and_deviation(final),
                f"{np.mean(within):.0f} %",
            ]
        )
    header = [
        "method",
        "seeds",
        "USD of all trials",
        "hours",
        "hours with asking",
        "CPU seconds per ask after the initial samples",
    ]
    return table([*header, "final Accuracy_C", "recommendations within the limit"], rows)
