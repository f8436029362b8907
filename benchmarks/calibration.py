"""Are the default's chances and intervals true, and what does stopping when a trial is not worth its price do?

``python -m benchmarks.calibration`` runs the searches that are missing, each once to its end, and writes
docs/results/calibration.md with its plot.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.calibration_figures import (
    GOOD,
    Ending,
    Finished,
    brier,
    coverage,
    endings,
    finished_of,
    reliability,
    share_of,
)
from benchmarks.calibration_searches import (
    ACCURACY_GOAL,
    BUDGET_UNITS,
    COST_GOAL,
    TIGHT_GOAL,
    Search,
    run_search,
)
from benchmarks.kept import PLOTS, Kept, options, ready_tables, run_missing, write_page
from benchmarks.least_cost import BUDGET_UNITS as LEAST_COST_UNITS
from benchmarks.papers.curves import percentile
from benchmarks.papers.markdown import median_and_worse, number, percent, picture, table
from benchmarks.papers.plots import COLOURS, MARKERS, _figure, _legend, _save, require_matplotlib
from trimtuner.arrays import Floats
from trimtuner.decisions.belief import INTERVAL, interval_deviations
from trimtuner.errors import InputError

PAGE, PLOT = "calibration.md", "calibration.png"
PROBLEMS = {
    ACCURACY_GOAL: "best accuracy",
    TIGHT_GOAL: "best accuracy, tight limit",
    COST_GOAL: "least cost",
}
METRICS = {"z_accuracy": "accuracy", "z_cost": "cost"}
INTERVALS = (0.5, 0.8, 0.9, 0.95)
PHASES = {"trials 1 to 10": slice(0, 10), "trials 11 to 30": slice(10, 30), "trials from 31": slice(30, None)}
WORTHS = (1.0, 10.0, 100.0)
WORTH_BY_JOB = {ACCURACY_GOAL: 10.0, TIGHT_GOAL: 10.0, COST_GOAL: 1.0}
FEWEST_TRIALS = (1, 20)  # the rule alone, and joined with AfterTrials(20)


def write_report(kept: Kept, searches: Sequence[Search], folder: Path) -> Path:
    """From what is finished, without running anything."""
    finished = finished_of(searches, kept)
    if not finished:
        raise InputError("no search is finished; there is nothing to report")
    draw(folder / PLOTS / PLOT, finished)
    return write_page(folder, PAGE, [*_head(finished), *_chances(finished), *_intervals(finished), *_stops(finished)])


def _by_goal(finished: Sequence[Finished]) -> dict[str, list[Finished]]:
    groups = {goal: [one for one in finished if one.search.goal == goal] for goal in PROBLEMS}
    return {goal: group for goal, group in groups.items() if group}


def _by_table(finished: Sequence[Finished]) -> dict[tuple[str, str], list[Finished]]:
    groups: dict[tuple[str, str], list[Finished]] = {}
    for one in finished:
        groups.setdefault((one.search.goal, one.search.table), []).append(one)
    return groups


def _head(finished: Sequence[Finished]) -> list[str]:
    counts = "; ".join(f"{PROBLEMS[goal]}: {len(group)}" for goal, group in _by_goal(finished).items())
    tables = ", ".join(dict.fromkeys(one.search.table for one in finished))
    cpu = np.concatenate([one["cpu"] for one in finished])
    return [
        "# Are the chances true, and when to stop",
        f"Written by `python -m benchmarks.calibration` from {len(finished)} searches of the default ({counts}) on "
        f"{tables}; {cpu.mean():.2g} CPU seconds a trial. *Best accuracy* is each table's own problem, for "
        f"{finished[0].search.trials} trials or {BUDGET_UNITS:g} units (of the mean price of a run on full data), "
        f"*least cost* that of [least-cost.md](least-cost.md), for as many trials or {LEAST_COST_UNITS:g} units. No "
        "snapshots. After every trial the recommendation is compared with what the table says. Recommendations of one "
        "search are much alike, so intervals (95 %) come from drawing whole searches with repetition; they say nothing "
        "about jobs of other kinds. What was itself measured is no forecast, and is counted apart.",
        picture(f"{PLOTS}/{PLOT}", "Said against true: chance to be feasible, and how often intervals hold the truth"),
    ]


def _chances(finished: Sequence[Finished]) -> list[str]:
    bins = []
    for goal, group in _by_goal(finished).items():
        for one in reliability(group):
            counts = [str(one.feasible.count), str(one.feasible.searches)]
            name = f"{one.low:g} to {one.high:g}"
            bins.append([PROBLEMS[goal], name, *counts, number(one.said), str(one.feasible)])
        measured = share_of([one["feasible"][one["measured"] == 1.0] for one in group])
        said = np.concatenate([one["chance"][one["measured"] == 1.0] for one in group])
        counts = [str(measured.count), str(measured.searches)]
        bins.append([PROBLEMS[goal], "measured", *counts, _mean(said), str(measured)])
    scores = [
        *(_score_row(goal, name, group) for (goal, name), group in _by_table(finished).items()),
        *(_score_row(goal, "all", group) for goal, group in _by_goal(finished).items()),
        *(
            _score_row(goal, name, [one.part(rows) for one in group])
            for goal, group in _by_goal(finished).items()
            for name, rows in PHASES.items()
        ),
    ]
    return [
        "## Chance to be feasible",
        table(["problem", "P(feasible)", "recommendations", "in searches", "said, mean", "feasible in truth"], bins),
        "Forecasts by job, and by how many trials had been made. The Brier score is the mean squared error of the "
        "chance; beside it stands that of always saying the share that is feasible.",
        table(
            ["problem", "job", "forecasts", "said, mean", "feasible in truth", "Brier", "of the share alone"], scores
        ),
    ]


def _score_row(goal: str, name: str, group: Sequence[Finished]) -> list[str]:
    said = np.concatenate([one["chance"][one.says] for one in group])
    share = share_of([one["feasible"][one.says] for one in group])
    return [PROBLEMS[goal], name, str(share.count), _mean(said), str(share), *(number(one) for one in brier(group))]


def _mean(values: Floats) -> str:
    return number(float(values.mean())) if len(values) else "-"


def _intervals(finished: Sequence[Finished]) -> list[str]:
    rows = []
    for goal, group in _by_goal(finished).items():
        for column, metric in METRICS.items():
            known = np.concatenate([one[column][np.isfinite(one[column])] for one in group])
            shares = [str(coverage(group, column, level)) for level in INTERVALS]
            rows.append([PROBLEMS[goal], metric, str(len(known)), *shares, *_sides(known)])
    by_job = [
        [PROBLEMS[goal], name, *(str(coverage(group, column, level)) for column in METRICS for level in (0.8, 0.9))]
        for (goal, name), group in _by_table(finished).items()
    ]
    header = ["problem", "of", "forecasts", *(f"{100 * level:g} %" for level in INTERVALS)]
    return [
        "## Intervals of what is predicted for the recommendation",
        "How often the interval for what a run would measure holds what the table says, where the recommendation was "
        "not measured. *Median* is that of the truth's distance from the prediction in deviations, on the model's own "
        "scale; the last columns say on which side of the 90 % interval the truth lies.",
        table([*header, "median", "below", "above"], rows),
        table(["problem", "job", "accuracy 80 %", "accuracy 90 %", "cost 80 %", "cost 90 %"], by_job),
    ]


def _sides(known: Floats) -> list[str]:
    if not len(known):
        return ["-", "-", "-"]
    width = interval_deviations(INTERVAL)
    return [number(float(np.median(known)), 2), f"{(known < -width).mean():.3f}", f"{(known > width).mean():.3f}"]


def _stops(finished: Sequence[Finished]) -> list[str]:
    rows = []
    for goal, group in _by_goal(finished).items():
        for fewest in FEWEST_TRIALS:
            for worth in WORTHS:
                rule = _worth(goal, worth) + ("" if fewest == 1 else f", from {fewest} trials on")
                rows.append([PROBLEMS[goal], rule, *_ending_cells(group, endings(group, worth, fewest))])
    by_job = [
        [PROBLEMS[goal], name, *_ending_cells(group, endings(group, WORTH_BY_JOB[goal]))]
        for (goal, name), group in _by_table(finished).items()
    ]
    chosen = "; ".join(f"{PROBLEMS[goal]}: {_worth(goal, WORTH_BY_JOB[goal])}" for goal in _by_goal(finished))
    header = [
        "never",
        "trials at the stop",
        "units at the stop",
        "units at the end",
        "saved",
        "quality lost: mean / p90 / most",
        "infeasible at the stop",
        f"stopped below {100 * GOOD:g} %",
        "below it at the end",
    ]
    return [
        "## Stopping when the next trial is not worth its price",
        "`NotWorthItsPrice(worth)` ends a search when what perfect knowledge would add to the recommendation is worth "
        "less than the next trial costs ([decision 12](../decisions/0012-when-to-stop.md)). For a cost the worth is "
        "how often the recommended run will be made, and 1 is the rule's default; an accuracy has no default, so its "
        "worth is given here as the number of mean full-data runs that one hundredth is worth. Every search "
        "was run to its end, and the rule judged before each trial. Median / 90th percentile over the searches that it "
        "ended; *never* counts the others; *saved* is the mean share of what the same searches spend in all; quality "
        "is the share of the best feasible value, scaled down where a limit is broken (see [replay](../replay.md)).",
        table(["problem", "worth", *header], rows),
        f"By job ({chosen}):",
        table(["problem", "job", *header], by_job),
    ]


def _ending_cells(group: Sequence[Finished], ended: Sequence[Ending]) -> list[str]:
    never = f"{len(group) - len(ended)} of {len(group)}"
    below = f"{sum(bool(one['quality'][-1] < GOOD) for one in group)} of {len(group)}"
    if not ended:
        return [never, *["-"] * 7, below]
    lost = [one.lost for one in ended]
    return [
        never,
        median_and_worse([float(one.trials) for one in ended]),
        median_and_worse([one.spent for one in ended]),
        median_and_worse([one.spent_at_end for one in ended]),
        percent(100.0 * float(np.mean([one.saved for one in ended]))),
        " / ".join(f"{value:.4f}" for value in (float(np.mean(lost)), percentile(lost, 90.0), max(lost))),
        f"{sum(not one.is_feasible for one in ended)} of {len(ended)}",
        f"{sum(one.quality < GOOD for one in ended)} of {len(ended)}",
        below,
    ]


def _worth(goal: str, worth: float) -> str:
    if goal == COST_GOAL:
        return "the run is made once" if worth == 1.0 else f"the run is made {worth:g} times"
    return f"0.01 for {worth:g} full run{'' if worth == 1.0 else 's'}"


def draw(path: Path, finished: Sequence[Finished]) -> None:
    """What is said against what is true: chances on the left, intervals on the right."""
    figure, (chances, intervals) = _figure(2)
    levels, style = np.linspace(0.05, 0.99, 48), len(PROBLEMS)
    for place, (goal, group) in enumerate(_by_goal(finished).items()):
        bins = [one for one in reliability(group) if one.feasible.count]
        low, true, high = (np.array([getattr(one.feasible, name) for one in bins]) for name in ("low", "value", "high"))
        chances.errorbar(
            [one.said + 0.006 * place for one in bins],  # so that intervals do not cover each other
            true,
            yerr=np.maximum([true - low, high - true], 0.0),
            label=PROBLEMS[goal],
            color=COLOURS[place],
            marker=MARKERS[place],
            capsize=2.5,
            linewidth=1.2,
        )
        for column, metric in METRICS.items():
            intervals.plot(
                levels,
                [coverage(group, column, float(level)).value for level in levels],
                label=f"{metric} ({PROBLEMS[goal]})",
                color=COLOURS[style],
                marker=MARKERS[style],
                markevery=8,
                markersize=4.5,
                linewidth=1.4,
            )
            style += 1
    for axes, title, x, y in (
        (chances, "Chance to be feasible", "P(feasible), as said", "feasible in truth"),
        (intervals, "Intervals of what is predicted", "chance of the interval, as said", "holds the truth"),
    ):
        axes.plot([0, 1], [0, 1], color="#7F7F7F", linewidth=0.8, linestyle=(0, (1, 3)))
        axes.set(title=title, xlabel=x, ylabel=y, xlim=(0, 1.02), ylim=(0, 1.02))
        axes.grid(alpha=0.25, linewidth=0.6)
    _legend(figure, (chances, intervals))
    _save(figure, path)


def main() -> None:
    parser = options(__doc__.splitlines()[0], "calibration")
    parser.add_argument("--problems", nargs="+", choices=tuple(PROBLEMS), default=[ACCURACY_GOAL, COST_GOAL])
    chosen: argparse.Namespace = parser.parse_args()
    require_matplotlib()
    names = ready_tables(chosen.tables)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    # Seed by seed, so that a part of the run is a smaller version of the whole.
    searches = [Search(name, goal, seed, chosen.trials) for seed in seeds for goal in chosen.problems for name in names]
    kept = Kept(chosen.cache)
    if not chosen.report_only:
        run_missing(searches, run_search, kept, chosen.processes, chosen.again)
    print(f"the report is {write_report(kept, searches, chosen.out)}")


if __name__ == "__main__":
    main()
