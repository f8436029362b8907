"""The report on the TrimTuner paper's section IV: Figs. 1 to 4, Tables III and IV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.curves import (
    Axis,
    Estimate,
    Value,
    crossing_ratio,
    first_reached,
    mean_crossing,
    places_for,
    ratio,
    settled,
    share_of_best,
    steps,
    used,
)
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import centre_and_ends, number, picture, ratio_with_interval, table
from benchmarks.papers.plots import Bars, Curve, Panel, draw_bars, draw_panels
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_tables import Measurements
from trimtuner.arrays import Floats

LEVEL = 0.90  # of the best feasible accuracy
DESIGN_TRIALS = 4  # the asks of the initial samples need no model, so they are not timed
TREES, PROCESS = "TrimTuner (DT)", "TrimTuner (GP)"
BASELINES = ("EIc", "EIc/USD")
NOT_IN_PAPER = "Lines marked * are not in the paper."

Reach = Callable[[Trace, Axis, Value, float], float]


def write_trimtuner(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    """All of section IV, as paragraphs; plots go to the folder."""
    jobs = [(job, cells) for job, cells in measurements if results.lines(Experiment.METHODS, job)]
    paragraphs = ["## TrimTuner, section IV"] if jobs else []
    if jobs:
        paragraphs += [*_figure_1(results, jobs, folder), *_figure_2(results, jobs, folder), *_table_3(results, jobs)]
    for job, cells in measurements:
        lines = results.lines(Experiment.FILTERS, job)
        if lines:
            paragraphs += [
                *_figure_3(lines, job, cells, folder),
                *_table_4(lines),
                *_figure_4(lines, job, cells, folder),
            ]
    return paragraphs


def ask_seconds(traces: Sequence[Trace], initial: int = DESIGN_TRIALS) -> list[float]:
    """CPU seconds of every ask after the initial samples."""
    return [seconds for trace in traces for seconds in trace.ask_seconds[initial:]]


def accuracy_curves(
    lines: Sequence[Measured], axis: Axis, value: Value, best: float, is_log: bool = True
) -> list[Curve]:
    """Mean Accuracy_C with a band of one standard deviation, each line up to where its median search ended."""
    places = places_for([line.traces for line in lines], axis, is_log)
    curves = []
    for line in lines:
        end = float(np.median([used(trace, axis)[-1] for trace in line.traces]))
        own = places[places <= end * 1.0001]
        curve = steps(line.traces, axis, value, 0.0, own)
        mean, spread = best * curve.mean, best * curve.deviation
        curves.append(Curve(line.label, own, mean, np.maximum(mean - spread, 0.0), np.minimum(mean + spread, 1.0)))
    return curves


def accuracy_table(lines: Sequence[Measured], axis: Axis, value: Value, best: float, places: Floats) -> str:
    """Mean ± standard deviation of Accuracy_C at a few places, and at the end of the searches."""
    rows = []
    for line in lines:
        curve = steps(line.traces, axis, value, 0.0, np.append(places, np.inf))
        cells = [f"{best * m:.3f} ± {best * d:.3f}" for m, d in zip(curve.mean, curve.deviation, strict=True)]
        rows.append([line.label, seeds(line), *cells])
    return table(["method", "seeds", *(number(place, 2) for place in places), "at the end"], rows)


def seeds(line: Measured) -> str:
    """How many searches a line has; of how many, where some are missing."""
    return str(len(line.traces)) if len(line.traces) == line.wanted else f"{len(line.traces)} of {line.wanted}"


def reach_table(lines: Sequence[Measured], value: Value) -> str:
    """What it takes to get to 90 % of the best, in money and in time."""
    header = ["method", "seeds", "got there for good", "USD for good", "USD first time", "USD of the mean curve"]
    rows = []
    for line in lines:
        good = [settled(trace, Axis.COST, value, LEVEL) for trace in line.traces]
        first = [first_reached(trace, Axis.COST, value, LEVEL) for trace in line.traces]
        hours = [settled(trace, Axis.TIME, value, LEVEL) for trace in line.traces]
        crossing = mean_crossing(steps(line.traces, Axis.COST, value, 0.0), LEVEL)
        there = f"{np.isfinite(good).sum()} of {len(good)}"
        rows.append(
            [
                line.label,
                seeds(line),
                there,
                centre_and_ends(good),
                centre_and_ends(first),
                number(crossing),
                centre_and_ends(hours),
            ]
        )
    return table([*header, "hours for good"], rows)


def _figure_1(results: Results, jobs: Measurements, folder: Path) -> list[str]:
    panels, texts = [], []
    for job, cells in jobs:
        lines = results.lines(Experiment.METHODS, job)
        best = facts.best_accuracy(cells, job.cost_limit)
        curves = accuracy_curves(lines, Axis.COST, share_of_best, best)
        points = papers.FIGURE_1.get(job.name, ())
        panels.append(
            Panel(job.title, Axis.COST, "Accuracy_C", curves, True, y_limits=(0.0, 1.02), level=LEVEL * best,
                  points=points, points_label="TrimTuner in the paper")
        )  # fmt: skip
        texts.append(f"**{job.title}**: mean Accuracy_C ± standard deviation over seeds, by USD spent")
        texts.append(accuracy_table(lines, Axis.COST, share_of_best, best, _round_places(lines)))
        read_off = ", ".join(f"{accuracy:g} at {usd:g} USD" for usd, accuracy in points)
        texts.append(f"Read off the paper's figure, TrimTuner: {read_off}." if read_off else "")
    draw_panels(folder / "fig1.png", panels)
    return [
        "### Fig. 1: Accuracy_C against exploration cost",
        "Accuracy_C as in Eq. 7; 0 until the first trial has ended; a search that has ended keeps its last "
        "recommendation; a line ends where its median search does. The band is one standard deviation over seeds, the "
        f"dotted line 90 % of the best feasible accuracy. {NOT_IN_PAPER}",
        picture("plots/fig1.png", "Accuracy_C of all methods against exploration cost, one panel for each job"),
        *filter(None, texts),
    ]


def _round_places(lines: Sequence[Measured]) -> Floats:
    """Amounts of 1, 2 and 5 with zeroes that span what was spent."""
    places = places_for([line.traces for line in lines], Axis.COST, is_log=True)
    decades = 10.0 ** np.arange(np.floor(np.log10(places[0])), np.ceil(np.log10(places[-1])))
    candidates = np.sort(np.concatenate([decades * step for step in (1.0, 2.0, 5.0)]))
    within = candidates[(candidates >= places[0]) & (candidates <= places[-1])]
    return within[:: max(1, len(within) // 6)] if len(within) else places[-1:]


def _figure_2(results: Results, jobs: Measurements, folder: Path) -> list[str]:
    texts, rows = [], []
    estimates: dict[tuple[Axis, str, str], Estimate] = {}
    for job, _ in jobs:
        lines = results.lines(Experiment.METHODS, job)
        texts += [f"**{job.title}**: to 90 % of the best feasible accuracy", reach_table(lines, share_of_best)]
        trees = results.traces(Experiment.METHODS, job, TREES)
        for label in BASELINES:
            traces = results.traces(Experiment.METHODS, job, label)
            if trees and traces:
                for axis in (Axis.COST, Axis.TIME):
                    estimates[axis, label, job.title] = crossing_ratio(traces, trees, axis, share_of_best, LEVEL)
                rows.append(_savings_row(job, label, traces, trees, estimates))
    charts = [_savings_chart(axis, [job.title for job, _ in jobs], estimates) for axis in (Axis.TIME, Axis.COST)]
    draw_bars(folder / "fig2.png", charts)
    header = ["job", "method", "cost: mean curve", "cost: for good", "cost: first time", "time: mean curve"]
    return [
        "### Fig. 2: time and cost savings at 90 % of the optimum",
        "How many times more than TrimTuner (DT) a method uses until it recommends a configuration at 90 % of the best "
        "feasible accuracy. The paper does not say how it averages; we give the place where the mean over seeds (the "
        "curve of Fig. 1) first reaches 90 %, and ratios of medians over seeds: for good, and for the first time. In "
        "brackets 90 % bootstrap intervals over seeds. *never*: the method does not get there.",
        picture("plots/fig2.png", "Bars: time and cost of EIc and EIc/USD as multiples of TrimTuner (DT)"),
        table([*header, "time: for good"], rows),
        "The paper: EIc costs up to 50 times and takes up to 65 times as much, EIc/USD up to 10 and 15 times.",
        *texts,
        "Median [10th, 90th percentile] over seeds.",
    ]


def _savings_row(
    job: Job,
    label: str,
    traces: Sequence[Trace],
    trees: Sequence[Trace],
    estimates: dict[tuple[Axis, str, str], Estimate],
) -> list[str]:
    def of_medians(reach: Reach, axis: Axis) -> str:
        theirs, ours = ([reach(trace, axis, share_of_best, LEVEL) for trace in group] for group in (traces, trees))
        return ratio_with_interval(ratio(theirs, ours))

    return [
        job.title,
        label,
        ratio_with_interval(estimates[Axis.COST, label, job.title]),
        of_medians(settled, Axis.COST),
        of_medians(first_reached, Axis.COST),
        ratio_with_interval(estimates[Axis.TIME, label, job.title]),
        of_medians(settled, Axis.TIME),
    ]


def _savings_chart(axis: Axis, titles: Sequence[str], estimates: dict[tuple[Axis, str, str], Estimate]) -> Bars:
    missing = Estimate(np.nan, np.nan, np.nan)
    found = {label: [estimates.get((axis, label, title), missing) for title in titles] for label in BASELINES}
    return Bars(
        "time" if axis is Axis.TIME else "cost",
        "multiple of TrimTuner (DT)",
        titles,
        {label: [one.value for one in ours] for label, ours in found.items()},
        {label: [(one.low, one.high) for one in ours] for label, ours in found.items()},
        is_log_y=True,
    )


def _table_3(results: Results, jobs: Measurements) -> list[str]:
    printed = {PROCESS: "trimtuner-gp", TREES: "trimtuner-dt", "FABOLAS": "fabolas", "EIc": "eic", "EIc/USD": "eic-usd"}
    asks: dict[str, list[float]] = {}
    for job, _ in jobs:
        for line in results.lines(Experiment.METHODS, job):
            asks.setdefault(line.label, []).extend(ask_seconds(line.traces))
    rows = []
    for label, seconds in asks.items():
        theirs = papers.TABLE_III.get(printed.get(label, ""))
        rows.append([label, *_mean_deviation_count(seconds), f"{theirs[0]:g} ± {theirs[1]:g}" if theirs else ""])
    return [
        "### Table III: time to recommend the next trial",
        "Ours: CPU seconds of one thread, model fits included, from the fifth trial on, mean over the jobs. Theirs: "
        f"minutes on their machine, mean of three jobs. {NOT_IN_PAPER}",
        table(["method", "ours (s)", "standard deviation", "asks", "paper (min)"], rows),
    ]


def _mean_deviation_count(seconds: Sequence[float]) -> list[str]:
    if not seconds:
        return ["-", "-", "0"]
    return [number(float(np.mean(seconds))), number(float(np.std(seconds)), 2), str(len(seconds))]


def _figure_3(lines: Sequence[Measured], job: Job, cells: Cells, folder: Path) -> list[str]:
    labels = ("CEA 10 %", "CMA-ES 10 %", "DIRECT 10 %", "random 10 %")
    shown = [line for line in lines if line.panel == "GP" and line.label in labels]
    return _filter_figure("3", f"filters, TrimTuner (GP), {job.title}", shown, job, cells, folder)


def _figure_4(lines: Sequence[Measured], job: Job, cells: Cells, folder: Path) -> list[str]:
    labels = ("CEA 1 %", "CEA 10 %", "CEA 20 %", "no filter")
    shown = [line for line in lines if line.panel == "DT" and line.label in labels]
    return _filter_figure("4", f"the share β that CEA keeps, TrimTuner (DT), {job.title}", shown, job, cells, folder)


def _filter_figure(
    figure: str, title: str, lines: Sequence[Measured], job: Job, cells: Cells, folder: Path
) -> list[str]:
    if not lines:
        return []
    best = facts.best_accuracy(cells, job.cost_limit)
    curves = accuracy_curves(lines, Axis.COST, share_of_best, best)
    panel = Panel(title, Axis.COST, "Accuracy_C", curves, True, y_limits=(0.0, 1.02), level=LEVEL * best)
    draw_panels(folder / f"fig{figure}.png", [panel])
    return [
        f"### Fig. {figure}: {title}",
        picture(f"plots/fig{figure}.png", f"Accuracy_C against exploration cost: {title}"),
        accuracy_table(lines, Axis.COST, share_of_best, best, _round_places(lines)),
        reach_table(lines, share_of_best),
    ]


def _table_4(lines: Sequence[Measured]) -> list[str]:
    rows = []
    for label, theirs in papers.TABLE_IV.items():
        row = [label]
        for model, minutes in zip(("GP", "DT"), theirs, strict=True):
            traces = [trace for line in lines if (line.panel, line.label) == (model, label) for trace in line.traces]
            row += [*_mean_deviation_count(ask_seconds(traces))[:2], f"{minutes:g}"]
        rows.append(row)
    header = ["filter", "GP: ours (s)", "± s", "GP: paper (min)", "DT: ours (s)", "± s", "DT: paper (min)"]
    return ["### Table IV: time to recommend the next trial, by filter (RNN)", table(header, rows)]
