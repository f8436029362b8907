"""The report on what follows from the measurements alone: Tables I, II, 5.1, 6.1 to 6.5, 7.1, Figs. 6.7 to 6.9."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import number, picture, table
from benchmarks.papers.papers import Count
from benchmarks.papers.plots import Bars, Curve, Panel, draw_bars, draw_heat_maps, draw_panels
from benchmarks.papers.searches import LEAST_ACCURACY, MOST_SECONDS
from benchmarks.papers.section_space import write_space
from trimtuner.arrays import Floats

Measurements = Sequence[tuple[Job, Cells]]

ACCURACIES = tuple(np.round(np.arange(0.50, 0.995, 0.01), 2).tolist())
SECONDS = tuple(float(seconds) for seconds in range(10, 601, 10))


def write_tables(measurements: Measurements, folder: Path) -> list[str]:
    """All of them, as paragraphs; plots go to the folder."""
    return [
        "## From the measurements alone",
        "These need no search: they say whether the tables we replay are those of the papers. They are, to the last "
        "count, wherever a cell below says *same*.",
        *write_space([job for job, _ in measurements]),
        *_table_2(measurements),
        *_table_6_1(measurements),
        *_table_6_2(measurements),
        *_cross_tables(measurements),
        *_figure_6_7(measurements, folder),
        *_figure_6_8(measurements, folder),
        *_figure_6_9(measurements, folder),
        *_table_7_1(measurements),
    ]


def compared(printed: Count, counted: int, total: int) -> str:
    """Ours, with what the paper prints where it is another count or another percentage."""
    if counted != printed.number:
        return f"**{counted}**, printed {printed.number}"
    if printed.percent is None or is_rounding_of(printed.percent, 100.0 * counted / total):
        return f"{counted} *same*"
    return f"{counted} *same*; printed {printed.percent} %, is {100.0 * counted / total:.2f} %"


def is_rounding_of(printed: str, value: float) -> bool:
    """Whether a printed number is the value rounded, or cut off, to the digits printed."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(float(printed) - value) <= 0.5 * unit + 1e-9 or 0.0 <= value - float(printed) < unit


def _table_2(measurements: Measurements) -> list[str]:
    rows = []
    for job, cells in measurements:
        counted = facts.feasible_and_close(cells, job.cost_limit)
        shown = [
            compared(count, ours, len(cells.cost))
            for count, ours in zip(papers.TABLE_II[job.name], counted, strict=True)
        ]
        rows.append([job.title, f"{job.cost_limit:g} USD", *shown])
    return [
        "### TrimTuner, Table II: feasible configurations at full data",
        table(["job", "cost limit", "feasible", "of them within 5 % of the best feasible accuracy"], rows),
    ]


def _table_6_1(measurements: Measurements) -> list[str]:
    rows = []
    for job, cells in measurements:
        for budget in job.initial_budgets:
            any_fraction = facts.trials_within(cells.cost, budget)
            full = facts.trials_within(cells.cost[:, -1:], budget)
            printed = papers.TABLE_6_1[job.name]
            is_printed = budget == printed.budget_usd
            rows.append(
                [
                    job.title,
                    f"{budget:g}",
                    _mean_and_spread(any_fraction),
                    str(printed.any_fraction.number) if is_printed else "",
                    f"{100 * any_fraction.mean() / cells.cost.size:.2f} %",
                    f"{papers.INITIAL_PERCENT[job.name][budget]:g} %",
                    _mean_and_spread(full),
                    str(printed.full_data.number) if is_printed else "",
                ]
            )
    header = ["job", "initial budget (USD)", "trials at any fraction", "thesis", "of all trials", "thesis"]
    return [
        "### Thesis, Table 6.1: trials that the initial budget buys",
        f"Mean ± standard deviation over {facts.DRAWS} random orders; the last trial may pass the budget.",
        table([*header, "trials at full data", "thesis"], rows),
        _remark_on_initial_samples(measurements),
    ]


def _remark_on_initial_samples(measurements: Measurements) -> str:
    texts = []
    for job, cells in measurements:
        printed = papers.TABLE_6_1[job.name]
        texts.append(
            f"{job.title}: a full-data run costs {number(float(cells.cost[:, -1].mean()))} USD on average, so "
            f"{printed.budget_usd:g} USD buy {printed.budget_usd / cells.cost[:, -1].mean():.0f}; the thesis's "
            f"{printed.full_data.number} would cost {number(printed.budget_usd / printed.full_data.number)} USD each."
        )
    return " ".join(texts)


def _mean_and_spread(values: Floats) -> str:
    return f"{values.mean():.1f} ± {values.std():.1f}"


def _table_6_2(measurements: Measurements) -> list[str]:
    rows = []
    for job, cells in measurements:
        counted = facts.meeting_both(cells)
        totals = (cells.cost.size, len(cells.cost))
        printed = papers.TABLE_6_2[job.name]
        rows.append([job.title, *(compared(p, c, total) for p, c, total in zip(printed, counted, totals, strict=True))])
    return [
        f"### Thesis, Table 6.2: accuracy ≥ {LEAST_ACCURACY:g} and time ≤ {MOST_SECONDS:g} s",
        table(["job", "at any fraction", "at full data"], rows),
    ]


def _cross_tables(measurements: Measurements) -> list[str]:
    paragraphs = []
    for job, cells in measurements:
        paragraphs.append(
            f"### Thesis, Table {papers.CROSS_TABLE_NUMBER[job.name]}: limits met on less data and on all of it, "
            f"{job.title}"
        )
        paragraphs.append("Rows: limits met at full data; columns: on the smaller data set.")
        pairs: list[tuple[Count, int]] = []
        for size, printed in papers.CROSS_TABLES[job.name].items():
            counted = facts.cross_table(cells, papers.SUBSAMPLED[size])
            rows = [
                [name, *(_count_or_both(*pair) for pair in zip(theirs, ours, strict=True))]
                for name, theirs, ours in zip(papers.COMBINATION_NAMES, printed, counted, strict=True)
            ]
            pairs += [pair for row in zip(printed, counted, strict=True) for pair in zip(*row, strict=True)]
            paragraphs.append(table([f"60K \\ {size}", *papers.COMBINATION_NAMES], rows))
        paragraphs.append(_verdict_on_counts(pairs, len(cells.cost)))
    return paragraphs


def _count_or_both(printed: Count, counted: int) -> str:
    return str(counted) if printed.number == counted else f"**{counted}**, printed {printed.number}"


def _verdict_on_counts(pairs: Sequence[tuple[Count, int]], total: int) -> str:
    same = sum(printed.number == counted for printed, counted in pairs)
    text = f"{same} of {len(pairs)} counts are as printed."
    wrong = {
        f"{printed.percent} % for {counted} of {total} (is {100 * counted / total:.2f} %)"
        for printed, counted in pairs
        if printed.percent is not None and not is_rounding_of(printed.percent, 100.0 * counted / total)
    }
    return (
        f"{text} Percentages printed that are not those of their counts: {'; '.join(sorted(wrong))}." if wrong else text
    )


def _figure_6_7(measurements: Measurements, folder: Path) -> list[str]:
    curves, rows = [], []
    for job, cells in measurements:
        seconds = np.sort(cells.time[cells.is_accurate])
        curves.append(Curve(job.title, np.arange(1.0, len(seconds) + 1.0), seconds))
        quantiles = [number(float(np.quantile(seconds, share))) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        within = int((seconds <= MOST_SECONDS).sum())
        rows.append([job.title, str(len(seconds)), *quantiles, f"{within} ({100 * within / cells.cost.size:.2f} %)"])
    panel = Panel(
        f"accuracy ≥ {LEAST_ACCURACY:g}", "trials, sorted by time", "training time (s)", curves, False, True,
        level=MOST_SECONDS,
    )  # fmt: skip
    draw_panels(folder / "fig6.7.png", [panel])
    header = ["job", "accurate trials", "least (s)", "25 %", "median", "75 %", "most", f"within {MOST_SECONDS:g} s"]
    return [
        "### Thesis, Fig. 6.7: trials that are accurate enough, by time",
        picture("plots/fig6.7.png", "Training time of the accurate trials in ascending order, one line for each job"),
        table(header, rows),
        "The thesis gives 14.44 % (CNN) and 18.33 % (RNN) of all trials within the limit.",
    ]


def _figure_6_8(measurements: Measurements, folder: Path) -> list[str]:
    maps = {job.title: facts.reduction_map(cells, ACCURACIES, SECONDS) for job, cells in measurements}
    draw_heat_maps(folder / "fig6.8.png", maps, ACCURACIES, SECONDS)
    rows = []
    for job, cells in measurements:
        for least in (0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            saved = facts.reduction_map(cells, [least], (60.0, 120.0, 300.0, 600.0))[:, 0]
            shown = ["infeasible" if np.isnan(one) else f"{100 * one:.1f} %" for one in saved]
            rows.append([job.title, f"{least:g}", *shown])
    quickest = "; ".join(
        f"{job.title} from {number(float(cells.time[cells.is_accurate].min()), 2)} s" for job, cells in measurements
    )
    return [
        "### Thesis, Fig. 6.8: cost saved by less data, over the limits on accuracy and time",
        picture("plots/fig6.8.png", "Heat map of the cost reduction for each job; a cross marks 0.85 and 300 s"),
        table(["job", "least accuracy", "time ≤ 60 s", "≤ 120 s", "≤ 300 s", "≤ 600 s"], rows),
        "Grey: nothing is feasible. Where only less data is feasible (no full-data run is), we show all of the cost as "
        "saved. The thesis says that CNN is infeasible below about 60 s; with accuracy ≥ "
        f"{LEAST_ACCURACY:g} we find feasible trials: {quickest}.",
    ]


def _figure_6_9(measurements: Measurements, folder: Path) -> list[str]:
    charts, rows = [], []
    for job, cells in measurements:
        both = (cells.is_quick & cells.is_accurate).sum(axis=0)
        quick, accurate = cells.is_quick.sum(axis=0), cells.is_accurate.sum(axis=0)
        sizes = [f"{100 * fraction:.3g} %" for fraction in cells.fractions]
        series = {"time met": quick, "accuracy met": accurate, "both met": both}
        charts.append(
            Bars(job.title, "configurations", sizes, {name: one.tolist() for name, one in series.items()}, {})
        )
        rows += [[job.title, name, *map(str, one.tolist())] for name, one in series.items()]
    draw_bars(folder / "fig6.9.png", charts)
    return [
        "### Thesis, Fig. 6.9: feasible configurations by size of the data",
        picture("plots/fig6.9.png", "Number of configurations that meet each limit at each fraction"),
        table(["job", "", *(f"s = {fraction:.3g}" for fraction in measurements[0][1].fractions)], rows),
    ]


def _table_7_1(measurements: Measurements) -> list[str]:
    rows = []
    for job, cells in measurements:
        counted = facts.within_cost_and_accurate(cells, job.cost_limit)
        printed = papers.TABLE_7_1[job.name]
        rows.append(
            [
                job.title,
                f"{job.cost_limit:g} USD",
                *(compared(p, c, len(cells.cost)) for p, c in zip(printed, counted, strict=True)),
            ]
        )
    return [
        "### Thesis, Table 7.1: feasible configurations at full data",
        table(["job", "cost limit", "within it", f"accuracy above {LEAST_ACCURACY:g}", "both"], rows),
    ]
