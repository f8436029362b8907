"""The report on the TrimTuner paper's section IV-B: Figs. 3 and 4, Table IV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.curves import Axis, share_of_best
from benchmarks.papers.experiments import LETTER, SHARES, Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import mean_and_deviation, number, picture, table
from benchmarks.papers.notes import ABOUT_SHARES
from benchmarks.papers.plots import draw_panels
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import (
    accuracy_table,
    ask_seconds,
    cost_panel,
    mean_deviation_count,
    reach_table,
    round_places,
    seeds,
)


def write_filters(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    """All of section IV-B, as paragraphs; plots go to the folder."""
    paragraphs: list[str] = []
    for job, cells in measurements:
        lines = results.lines(Experiment.FILTERS, job)
        if lines:
            paragraphs += [
                "## TrimTuner, section IV-B: filters",
                *_figure_3(lines, job, cells, folder),
                *_table_4(lines),
                *_figure_4(lines, job, cells, folder),
            ]
    return paragraphs


def _figure_3(lines: Sequence[Measured], job: Job, cells: Cells, folder: Path) -> list[str]:
    labels = ("CEA 10 %", "CMA-ES 10 %", "DIRECT 10 %", "random 10 %")
    shown = [line for line in lines if line.panel == "GP" and line.label in labels]
    return _filter_figure("3", "filters, TrimTuner (GP)", {"GP": shown}, job, cells, folder)


def _figure_4(lines: Sequence[Measured], job: Job, cells: Cells, folder: Path) -> list[str]:
    shown = {
        panel: [line for line in lines if line.panel == panel and line.label.startswith(SHARES)]
        for panel in ("DT", LETTER)
    }
    return [
        *_filter_figure("4", "the share that CEA keeps, TrimTuner (DT)", shown, job, cells, folder),
        *([_why_shares_matter(shown), ABOUT_SHARES] if any(shown.values()) else []),
    ]


def _filter_figure(
    figure: str, title: str, groups: Mapping[str, Sequence[Measured]], job: Job, cells: Cells, folder: Path
) -> list[str]:
    known = {panel: lines for panel, lines in groups.items() if lines}
    if not known:
        return []
    best = facts.best_accuracy(cells, job.cost_limit)
    panels = [cost_panel(f"{job.title}, {panel}", lines, best) for panel, lines in known.items()]
    draw_panels(folder / f"fig{figure}.png", panels)
    paragraphs = [
        f"### Fig. {figure}: {title}, {job.title}",
        picture(f"plots/fig{figure}.png", f"Accuracy_C against exploration cost: {title}, {job.title}"),
    ]
    for panel, lines in known.items():
        paragraphs += [
            *([f"**{panel}**"] if len(known) > 1 else []),
            accuracy_table(lines, Axis.COST, share_of_best, best, round_places(lines)),
            reach_table(lines, share_of_best),
        ]
    return paragraphs


def _why_shares_matter(groups: Mapping[str, Sequence[Measured]]) -> str:
    """What the searches of Fig. 4 spent their trials on."""
    rows = []
    for panel, lines in groups.items():
        for line in lines:
            after = [np.array(trace.fraction[line.initial :]) for trace in line.traces]
            final = [trace.quality[-1] for trace in line.traces]
            rows.append(
                [
                    f"{panel}, {line.label}",
                    seeds(line),
                    number(float(np.mean([fractions.mean() for fractions in after])), 2),
                    *(f"{100 * np.mean([(ones == s).mean() for ones in after]):.0f} %" for s in (1.0, 0.5)),
                    f"{100 * np.mean([(ones < 0.2).mean() for ones in after]):.0f} %",
                    mean_and_deviation([trace.spent[-1] for trace in line.traces]),
                    f"{np.mean(final):.3f}",
                    f"{100 * np.mean([trace.feasible[-1] for trace in line.traces]):.0f} %",
                ]
            )
    header = ["", "seeds", "mean fraction", "trials at s = 1", "s = 0.5", "s ≤ 0.1", "USD of all trials"]
    return table([*header, "share of the best at the end", "within the limit at the end"], rows)


def _table_4(lines: Sequence[Measured]) -> list[str]:
    rows = []
    for label, theirs in papers.TABLE_IV.items():
        row = [label]
        for model, minutes in zip(("GP", "DT"), theirs, strict=True):
            traces = [trace for line in lines if (line.panel, line.label) == (model, label) for trace in line.traces]
            row += [*mean_deviation_count(ask_seconds(traces))[:2], f"{minutes:g}"]
        rows.append(row)
    header = ["filter", "GP: ours (s)", "± s", "GP: paper (min)", "DT: ours (s)", "± s", "DT: paper (min)"]
    return ["### Table IV: time to recommend the next trial, by filter (RNN)", table(header, rows)]
