"""The report on the TrimTuner paper's section IV-A: Figs. 1 and 2, Table III; and on its form to the letter."""

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
    median,
    places_for,
    ratio,
    settled,
    share_of_best,
    steps,
    used,
)
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import centre_and_ends, mean_and_deviation, number, picture, ratio_with_interval, table
from benchmarks.papers.plots import Bars, Curve, Initial, Panel, draw_bars, draw_panels
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_tables import Measurements
from trimtuner.arrays import Floats

LEVEL = 0.90  # of the best feasible accuracy
DESIGN_TRIALS = 4  # the asks of the initial samples need no model, so they are not timed
TREES, PROCESS = "TrimTuner (DT)", "TrimTuner (GP)"
LETTER_TREES, LETTER_PROCESS = "TrimTuner (DT) to the letter*", "TrimTuner (GP) to the letter*"
BASELINES = ("EIc", "EIc/USD")
PRINTED = {PROCESS: "trimtuner-gp", TREES: "trimtuner-dt", "FABOLAS": "fabolas", "EIc": "eic", "EIc/USD": "eic-usd"}
NOT_IN_PAPER = "Lines marked * are not in the paper."

Reach = Callable[[Trace, Axis, Value, float], float]


def write_trimtuner(results: Results, measurements: Measurements, folder: Path) -> list[str]:
    """All of section IV-A, as paragraphs; plots go to the folder."""
    jobs = [(job, cells) for job, cells in measurements if results.lines(Experiment.METHODS, job)]
    paragraphs = ["## TrimTuner, section IV-A"] if jobs else []
    if jobs:
        paragraphs += [*_figure_1(results, jobs, folder), *_figure_2(results, jobs, folder), *_table_3(results, jobs)]
    return paragraphs


def ask_seconds(traces: Sequence[Trace], initial: int = DESIGN_TRIALS) -> list[float]:
    """CPU seconds of every ask after the initial samples."""
    return [seconds for trace in traces for seconds in trace.ask_seconds[initial:]]


def accuracy_curves(
    lines: Sequence[Measured], axis: Axis, value: Value, best: float, is_log: bool = True
) -> list[Curve]:
    """Mean Accuracy_C with its standard error, each line up to where its median search ended."""
    places = places_for([line.traces for line in lines], axis, is_log)
    curves = []
    for line in lines:
        end = float(np.median([used(trace, axis)[-1] for trace in line.traces]))
        own = places[places <= end * 1.0001]
        curve = steps(line.traces, axis, value, 0.0, own)
        curves.append(Curve(line.label, own, best * curve.mean, best * curve.error, initial=_initial_end(line, axis)))
    return curves


def _initial_end(line: Measured, axis: Axis) -> float:
    """Where the median search begins to use a model."""
    if not line.initial:
        return 0.0
    return median([float(used(trace, axis)[min(line.initial, len(trace.spent)) - 1]) for trace in line.traces])


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


def letter_table(results: Results, measurements: Measurements) -> list[str]:
    """What our departures from Eq. 5 are worth, all together."""
    rows = []
    for job, _ in measurements:
        for own, letter in ((TREES, LETTER_TREES), (PROCESS, LETTER_PROCESS)):
            lines = [results.line(Experiment.METHODS, job, label) for label in (own, letter)]
            if lines[0] is not None and lines[1] is not None:
                rows.append([job.title, own, *_worth(lines[0], lines[1])])
    header = ["job", "method", "seeds", "USD to 90 % for good: ours", "to the letter", "letter / ours"]
    header += ["of the mean curve: letter / ours", "share of the best at the end: ours", "to the letter"]
    return [
        "What our departures are worth, all together; medians over seeds, and in the last two columns means:",
        table([*header, "CPU seconds per ask: ours", "to the letter"], rows),
    ]


def _worth(own: Measured, letter: Measured) -> list[str]:
    costs = [[settled(trace, Axis.COST, share_of_best, LEVEL) for trace in line.traces] for line in (own, letter)]
    return [
        seeds(letter),
        *(centre_and_ends(one) for one in costs),
        ratio_with_interval(ratio(costs[1], costs[0])),
        ratio_with_interval(crossing_ratio(letter.traces, own.traces, Axis.COST, share_of_best, LEVEL)),
        *(mean_and_deviation([trace.quality[-1] for trace in line.traces]) for line in (own, letter)),
        *(number(float(np.mean(ask_seconds(line.traces) or [np.nan])), 2) for line in (own, letter)),
    ]


def _figure_1(results: Results, jobs: Measurements, folder: Path) -> list[str]:
    panels, beside, texts = [], [], []
    for job, cells in jobs:
        lines = results.lines(Experiment.METHODS, job)
        best = facts.best_accuracy(cells, job.cost_limit)
        printed = [line for line in lines if not line.label.endswith("*")]
        own = [line for line in lines if line.label.endswith("*") or line.label in (TREES, PROCESS)]
        panels.append(cost_panel(job.title, printed, best))
        beside.append(cost_panel(job.title, own, best))
        texts.append(f"**{job.title}**: mean Accuracy_C ± standard deviation over seeds, by USD spent")
        texts.append(accuracy_table(lines, Axis.COST, share_of_best, best, round_places(lines)))
    draw_panels(folder / "fig1.png", panels)
    draw_panels(folder / "fig1-beside.png", beside)
    return [
        "### Fig. 1: Accuracy_C against exploration cost",
        "Accuracy_C as in Eq. 7; 0 until the first trial has ended; a search that has ended keeps its last "
        "recommendation; a line ends where its median search does. Dashed as in the paper: the initial phase, up to "
        "where the median search has paid for it. The dotted line is 90 % of the best feasible accuracy. Of the "
        f"paper's curves its text gives no numbers, so that only the claims above can be compared. {NOT_IN_PAPER}",
        picture("plots/fig1.png", "Accuracy_C of the paper's methods against exploration cost, a panel for each job"),
        "The same with what is not in the paper beside TrimTuner:",
        picture("plots/fig1-beside.png", "Accuracy_C of TrimTuner, its form to the letter, the default and halving"),
        *texts,
    ]


def cost_panel(title: str, lines: Sequence[Measured], best: float, initial: Initial = Initial.DASHED) -> Panel:
    """Accuracy_C against money."""
    curves = accuracy_curves(lines, Axis.COST, share_of_best, best)
    return Panel(
        title, Axis.COST, "Accuracy_C", curves, True, y_limits=(0.0, 1.02), level=LEVEL * best, initial=initial
    )


def round_places(lines: Sequence[Measured]) -> Floats:
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
    asks: dict[str, list[float]] = {}
    for job, _ in jobs:
        for line in results.lines(Experiment.METHODS, job):
            asks.setdefault(line.label, []).extend(ask_seconds(line.traces))
    rows = []
    for label, seconds in asks.items():
        theirs = papers.TABLE_III.get(PRINTED.get(label, ""))
        rows.append([label, *mean_deviation_count(seconds), f"{theirs[0]:g} ± {theirs[1]:g}" if theirs else ""])
    return [
        "### Table III: time to recommend the next trial",
        "Ours: CPU seconds of one thread, model fits included, from the fifth trial on, mean over the jobs. Theirs: "
        f"minutes on their machine, mean of three jobs. {NOT_IN_PAPER}",
        table(["method", "ours (s)", "standard deviation", "asks", "paper (min)"], rows),
    ]


def mean_deviation_count(seconds: Sequence[float]) -> list[str]:
    """Three cells of a table of asks."""
    if not seconds:
        return ["-", "-", "0"]
    return [number(float(np.mean(seconds))), number(float(np.std(seconds)), 2), str(len(seconds))]
