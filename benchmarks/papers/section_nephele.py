"""The report on the thesis's chapter 6, where searches are needed: Figs. 6.1 to 6.6 and 6.10 to 6.13."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.curves import Axis, normalised_cost, percentile, places_for, steps, used
from benchmarks.papers.experiments import NEPHELE_SEEDS, Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import median_and_worse, number, picture, table
from benchmarks.papers.plots import Curve, Panel, draw_panels
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.searches import LEAST_ACCURACY, MOST_SECONDS, Trace
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import seeds

FIGURE_OF = {
    Experiment.TREES: {"cnn": "6.1", "rnn": "6.2", "multilayer": "6.3"},
    Experiment.INITIAL_BUDGETS: {"cnn": "6.4", "rnn": "6.5", "multilayer": "6.6"},
    Experiment.OPTIMISERS: {"cnn": "6.10", "rnn": "6.11", "multilayer": "6.12"},
}
CNO = "CNO"
HIGHEST_CNO = 100.0  # of the plots


def write_nephele(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    """All of them, as paragraphs; plots go to the folder."""
    paragraphs = []
    for experiment, title in (
        (Experiment.TREES, "number of trees"),
        (Experiment.INITIAL_BUDGETS, "initial budget"),
        (Experiment.OPTIMISERS, "optimisers"),
    ):
        for job, cells in measurements:
            lines = results.lines(experiment, job)
            if lines:
                paragraphs += _figure(experiment, title, lines, job, cells, folder)
    paragraphs += _figure_6_13(results, measurements, folder)
    return ["## Thesis, chapter 6: Nephele", _protocol(measurements), *paragraphs] if paragraphs else []


def level_for(job: Job, cells: Cells) -> float:
    """The CNO that the thesis compares at; raised to what full data can reach, where that is above it."""
    dearer, _ = facts.cheaper_with_less_data(cells)
    return max(papers.CNO_LEVEL.get(job.name, 2.0), dearer)


def scale_of(line: Measured, cells: Cells) -> float:
    """Best cost of the line's own space over the best of all."""
    return facts.cheaper_with_less_data(cells)[0] if line.is_on_full_data else 1.0


def used_until(traces: Sequence[Trace], axis: Axis, scale: float, level: float) -> list[float]:
    """What each search used until its recommendation had this CNO; infinite if it never had."""
    value = normalised_cost(scale)
    reached = [np.flatnonzero(value(trace) <= level * (1.0 + 1e-6)) for trace in traces]
    return [
        float(used(trace, axis)[found[0]]) if len(found) else np.inf
        for trace, found in zip(traces, reached, strict=True)
    ]


def used_until_own_best(traces: Sequence[Trace], axis: Axis) -> list[float]:
    """What each search used until it recommended the best of its own space."""
    return used_until(traces, axis, 1.0, 1.0)


def _protocol(measurements: Measurements) -> str:
    budgets = ", ".join(f"{job.budget:g} USD for {job.title}" for job, _ in measurements)
    dearer = ", ".join(f"{facts.cheaper_with_less_data(cells)[0]:.2f} on {job.title}" for job, cells in measurements)
    return (
        f"Least cost over configuration and fraction with accuracy ≥ {LEAST_ACCURACY:g} and time ≤ {MOST_SECONDS:g} s; "
        f"{NEPHELE_SEEDS} seeds in the full form; the whole exploration budget, which the thesis does not print, is "
        f"{budgets}. CNO = cost of the recommendation / cost of the best of all (Eq. 6.1), infinite until something "
        "feasible is recommended: lines begin where 90 % of the searches have something feasible. Thick lines: 90th "
        "percentile over seeds, as in the thesis; thin lines: median. The thesis draws the percentile of CNO at each "
        "trial against the percentile of cost at that trial; we draw the percentile of CNO at each amount spent. "
        f"Lynceus and CherryPick test on full data only, where the best has a CNO of {dearer}. In the tables, median / "
        "90th percentile over seeds."
    )


def _curves(lines: Sequence[Measured], cells: Cells, axis: Axis, is_log: bool) -> list[Curve]:
    places = places_for([line.traces for line in lines], axis, is_log)
    last = max(percentile([used(trace, axis)[-1] for trace in line.traces], 90.0) for line in lines)
    if axis is not Axis.NUMBER:
        places = np.geomspace(places[0], last, len(places)) if is_log else np.linspace(0.0, last, len(places))
    curves = []
    for line in lines:
        found = steps(line.traces, axis, normalised_cost(scale_of(line, cells)), np.inf, places)
        curves.append(Curve(line.label, places, found.percentile(90.0), thin=found.percentile(50.0)))
    return curves


def _panel(title: str, lines: Sequence[Measured], cells: Cells, axis: Axis) -> Panel:
    curves = _curves(lines, cells, axis, is_log=False)
    return Panel(
        title,
        axis,
        CNO,
        curves,
        is_log_y=True,
        y_limits=(0.9, HIGHEST_CNO),
        thick_label="thick: 90th percentile",
        thin_label="thin: median",
    )


def _figure(
    experiment: Experiment, title: str, lines: Sequence[Measured], job: Job, cells: Cells, folder: Path
) -> list[str]:
    figure = FIGURE_OF[experiment][job.name]
    if experiment is Experiment.OPTIMISERS:
        panels = [_panel(job.title, lines, cells, axis) for axis in (Axis.COST, Axis.TIME, Axis.NUMBER)]
    else:
        names = dict.fromkeys(line.panel for line in lines)
        panels = [_panel(name, [line for line in lines if line.panel == name], cells, Axis.COST) for name in names]
    draw_panels(folder / f"fig{figure}.png", panels)
    return [
        f"### Fig. {figure}: {title}, {job.title}",
        picture(f"plots/fig{figure}.png", f"CNO against what was used, {title}, {job.title}"),
        _reach_table(lines, job, cells),
        *([_cno_table(lines, cells)] if experiment is Experiment.OPTIMISERS else []),
    ]


def _reach_table(lines: Sequence[Measured], job: Job, cells: Cells) -> str:
    level = level_for(job, cells)
    header = ["optimiser", "seeds", "USD to something feasible", f"USD to CNO {level:.3g}", f"hours to CNO {level:.3g}"]
    rows = []
    for line in lines:
        scale = scale_of(line, cells)
        name = line.label if line.panel == job.title else f"{line.panel}, {line.label}"
        own = used_until_own_best(line.traces, Axis.COST)
        rows.append(
            [
                name,
                seeds(line),
                median_and_worse(used_until(line.traces, Axis.COST, scale, 1e9)),
                median_and_worse(used_until(line.traces, Axis.COST, scale, level)),
                median_and_worse(used_until(line.traces, Axis.TIME, scale, level)),
                median_and_worse(own),
                f"{np.isfinite(own).sum()} of {len(own)}",
                median_and_worse(used_until_own_best(line.traces, Axis.NUMBER)),
            ]
        )
    return table([*header, "USD to the best of its own space", "found it", "trials to it"], rows)


def _cno_table(lines: Sequence[Measured], cells: Cells) -> str:
    last = max(trace.spent[-1] for line in lines for trace in line.traces)
    places = np.array([last * share for share in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)])
    rows = []
    for line in lines:
        found = steps(line.traces, Axis.COST, normalised_cost(scale_of(line, cells)), np.inf, places)
        pairs = zip(found.percentile(50.0), found.percentile(90.0), strict=True)
        shown = [" / ".join(number(one) if np.isfinite(one) else "none" for one in pair) for pair in pairs]
        rows.append([line.label, *shown])
    return table(["CNO by USD spent", *(number(place, 2) for place in places)], rows)


def _figure_6_13(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    panels, rows = [], []
    for job, cells in measurements:
        lines = results.lines(Experiment.HORIZONS, job)
        if not lines:
            continue
        panels.append(_panel(job.title, lines, cells, Axis.COST))
        for line in lines:
            asks = [seconds for trace in line.traces for seconds in trace.ask_seconds]
            rows.append(
                [
                    job.title,
                    line.label,
                    seeds(line),
                    median_and_worse(used_until(line.traces, Axis.COST, 1.0, level_for(job, cells))),
                    median_and_worse(used_until_own_best(line.traces, Axis.COST)),
                    median_and_worse(used_until_own_best(line.traces, Axis.TIME)),
                    median_and_worse(used_until_own_best(line.traces, Axis.TOTAL_TIME)),
                    number(float(np.mean(asks))),
                ]
            )
    if not panels:
        return []
    draw_panels(folder / "fig6.13.png", panels)
    levels = ", ".join(f"{level_for(job, cells):.3g} for {job.title}" for job, cells in measurements)
    header = ["job", "Nephele", "seeds", "USD to the CNO above", "USD to the best", "hours to the best"]
    return [
        "### Fig. 6.13: horizons of the lookahead",
        picture("plots/fig6.13.png", "CNO against exploration cost for horizons 0, 1 and 2, one panel for each job"),
        f"The CNO to reach is {levels}.",
        table([*header, "hours to it with asking", "CPU seconds per ask"], rows),
    ]
