"""Least cost within limits on accuracy and time, over configuration and share of the data: CNO over money.

The default against Nephele, Lynceus, CherryPick and random search, on every table; ``python -m benchmarks.least_cost``
runs what is missing and writes docs/results/least-cost.md with its plots.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.kept import (
    PAPERS,
    PLOTS,
    Columns,
    Kept,
    identity_of,
    load_table,
    options,
    ready_tables,
    run_missing,
    unit_of,
    write_page,
)
from benchmarks.papers.curves import Axis, median, normalised_cost, settled, share_or_zero, steps
from benchmarks.papers.jobs import CNN, RNN
from benchmarks.papers.markdown import median_and_worse, number, picture, table
from benchmarks.papers.plots import Curve, Panel, draw_panels, require_matplotlib
from benchmarks.papers.searches import LEAST_ACCURACY, MOST_SECONDS, Trace
from trimtuner.arrays import Floats
from trimtuner.engines.table import Table
from trimtuner.errors import InputError
from trimtuner.problem.problem import COST, TIME, Constraint
from trimtuner.study.replay import replay

PAGE = "least-cost.md"
BUDGET_UNITS = 10.0
SHARE_OF_BEST = 0.95  # of the best accuracy on full data: the limit where no paper sets one
UNLIMITED = 10_000  # trials: these searches are ended by their budget
AMOUNTS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # units at which the CNO is told, as far as the budget goes
LEVELS = (1.1, 1.5, 2.0)
SUMMARY_LEVEL = 1.5
HIGHEST_CNO = 100.0  # of the plots
PLACES = 200  # on a curve
THESIS = "-thesis"

DEFAULT = "trimtuner"
LABELS = ("trimtuner", "Nephele", "Lynceus", "CherryPick", "random")


@dataclass(frozen=True)
class Scenario:
    """A problem of this family; money in USD."""

    name: str
    table: str
    limits: tuple[str, str]
    budget: float  # for the whole exploration; the methods know it
    initial_budget: float | None = None  # for the design; a tenth of the budget where none is given

    @property
    def methods(self) -> Mapping[str, str]:
        """Text of the method by its label; CherryPick's own stop is off, so that the budget ends all alike."""
        if self.initial_budget is None:
            texts = (DEFAULT, "nephele", "lynceus", "cherrypick:stop_below=0", "random")
        else:  # as in the thesis
            trees = f"trees=5,initial_budget={self.initial_budget:g}"
            nephele, lynceus = f"nephele:horizon=0,{trees}", f"lynceus:horizon=0,{trees}"
            texts = (DEFAULT, nephele, lynceus, f"cherrypick:model=trees,{trees},stop_below=0", "random")
        return dict(zip(LABELS, texts, strict=True))


@dataclass(frozen=True)
class Search:
    """One search."""

    scenario: Scenario
    method: str
    seed: int
    trials: int

    def identity(self) -> dict[str, object]:
        """As the file of results knows it."""
        one = self.scenario
        return identity_of(one.table, self.method, self.seed, self.trials) | {
            "limits": list(one.limits),
            "budget": one.budget,
        }


def scenarios_of(name: str) -> list[Scenario]:
    """The problem on a table: with 10 units of money, and with the thesis's budgets where it has any."""
    measured = load_table(name)
    accuracy, seconds = (LEAST_ACCURACY, MOST_SECONDS) if name in PAPERS else derived_limits(measured)
    limits = (f"{measured.maximize} >= {accuracy:.6g}", f"{TIME} <= {seconds:.6g}")
    found = [Scenario(name, name, limits, BUDGET_UNITS * unit_of(measured))]
    for job in (CNN, RNN):
        if job.name == name:
            found.append(Scenario(name + THESIS, name, limits, job.budget, job.initial_budget))
    return found


def derived_limits(measured: Table) -> tuple[float, float]:
    """95 % of the best accuracy on full data, and the median of the times on full data, of what ran there."""
    if measured.maximize is None:
        raise InputError(f"table {measured.name!r} has no accuracy to maximise, of which a share could be the limit")
    full = [one.metrics for (_, s), one in measured.cells.items() if s == 1.0 and one.failed is None]
    best = max(metrics[measured.maximize] for metrics in full)
    return SHARE_OF_BEST * best, float(np.median([metrics[TIME] for metrics in full]))


def searches_of(scenario: Scenario, seeds: Sequence[int], trials: int) -> dict[str, list[Search]]:
    """By label. What the default tests is cheap: it is ended by the number of trials before the money is spent."""
    return {
        label: [Search(scenario, method, seed, trials if method == DEFAULT else UNLIMITED) for seed in seeds]
        for label, method in scenario.methods.items()
    }


def run_search(search: Search) -> Columns:
    """Every (configuration, fraction) is a trial of its own: no snapshots, which only the default would take."""
    scenario = search.scenario
    run = replay(
        load_table(scenario.table),
        search.method,
        search.seed,
        search.trials,
        constraints=scenario.limits,
        snapshots=False,
        minimize=COST,
        budget=scenario.budget,
        # The others recommend what they measured, so nothing changes after the best; the default's forecasts might.
        until_best=search.method != DEFAULT,
    )
    return {name: list(values) for name, values in Trace.of(run.moments).as_plain().items()}


Results = Mapping[str, Sequence[Trace]]  # by label; money in units


def results_of(scenario: Scenario, kept: Kept, seeds: Sequence[int], trials: int) -> Results:
    """What is finished."""
    unit = unit_of(load_table(scenario.table))
    found: dict[str, list[Trace]] = {}
    for label, searches in searches_of(scenario, seeds, trials).items():
        for search in searches:
            columns = kept.find(search)
            if columns is not None:
                trace = Trace.from_plain(columns)  # type: ignore[arg-type]  # all of it is known
                spent = tuple(usd / unit for usd in trace.spent)
                found.setdefault(label, []).append(replace(trace, spent=spent))
    return found


def units_until(traces: Sequence[Trace], level: float) -> list[float]:
    """Of each search, until its recommendation had this CNO for good; infinite if it never had."""
    return [settled(trace, Axis.COST, share_or_zero, (1.0 - 1e-6) / level) for trace in traces]


def cno_at(traces: Sequence[Trace], amounts: Sequence[float] | Floats, percent: float) -> Floats:
    """The percentile over searches of the CNO after so many units; a search that has ended keeps its last."""
    found = steps(traces, Axis.COST, normalised_cost(1.0), np.inf, np.asarray(amounts, dtype=float))
    return found.percentile(percent)


@dataclass(frozen=True)
class Facts:
    """What a scenario is like, from the whole table; costs in units."""

    unit: float
    measured: int
    feasible: int
    cheapest: float
    fraction: float  # of the cheapest
    best_at_full_data: float  # its CNO; infinite where nothing is feasible there
    within: tuple[int, ...]  # how many reach each level of CNO


@cache
def facts_of(scenario: Scenario) -> Facts:
    """An error where nothing is feasible."""
    measured, unit = load_table(scenario.table), unit_of(load_table(scenario.table))
    limits = [Constraint.parse(text) for text in scenario.limits]
    feasible = [
        (one.metrics[COST], fraction)
        for (_, fraction), one in measured.cells.items()
        if one.failed is None and all(limit.is_met(one.metrics[limit.metric]) for limit in limits)
    ]
    if not feasible:
        raise InputError(f"nothing in table {measured.name!r} meets {' and '.join(scenario.limits)}")
    best, fraction = min(feasible)
    at_full_data = min((cost for cost, s in feasible if s == 1.0), default=np.inf)
    within = tuple(sum(cost <= level * best for cost, _ in feasible) for level in LEVELS)
    return Facts(unit, len(measured.cells), len(feasible), best / unit, fraction, at_full_data / best, within)


def write_report(kept: Kept, scenarios: Sequence[Scenario], seeds: Sequence[int], trials: int, folder: Path) -> Path:
    """From what is finished, without running anything."""
    finished = [(one, found) for one in scenarios if (found := results_of(one, kept, seeds, trials))]
    if not finished:
        raise InputError("no search is finished; there is nothing to report")
    paragraphs = _head(finished, trials)
    for scenario, found in finished:
        paragraphs += _section(scenario, found, folder)
    return write_page(folder, PAGE, paragraphs)


def _head(finished: Sequence[tuple[Scenario, Results]], trials: int) -> list[str]:
    count = sum(len(traces) for _, found in finished for traces in found.values())
    header = [
        "problem",
        "limits",
        "unit (USD)",
        "budget (units)",
        "feasible",
        "cheapest (units)",
        "at share",
        "full data",
    ]
    return [
        "# Least cost within limits on accuracy and time",
        f"Written by `python -m benchmarks.least_cost` from {count} searches. Sought is the cheapest (configuration, "
        "share of the data) whose accuracy and time are within limits; the search has a budget of its own, which the "
        "methods know. **CNO** is the cost of what is recommended over that of the cheapest feasible of all, infinite "
        "as long as what is recommended is not feasible in truth; 1 is the best. Money is in units of the mean price "
        "of a run on full data. *For good* means to the end of the search.",
        "## In short",
        f"Units until the CNO is at most {SUMMARY_LEVEL:g} for good, median over seeds, and in how many seeds it was.",
        table(
            ["problem", *LABELS],
            [[one.name, *(_short(found.get(label, ())) for label in LABELS)] for one, found in finished],
        ),
        "## The problems",
        f"On cnn and rnn the papers' limits; elsewhere accuracy ≥ {100 * SHARE_OF_BEST:g} % of the best on full data "
        f"and time ≤ the median on full data (of what runs there). The budget is {BUDGET_UNITS:g} units; those named "
        f"`{THESIS}` have the thesis's whole and initial budgets. *Full data* is the CNO of the best there, the least "
        "that Lynceus and CherryPick can reach, which test on full data only. The last columns say how many "
        "(configuration, share) reach a CNO.",
        table([*header, *(f"CNO ≤ {level:g}" for level in LEVELS)], [_facts_row(scenario) for scenario, _ in finished]),
        "## The methods",
        f"`trimtuner` is the default, for at most {trials} trials. The others go on until the budget is spent, until "
        "they have measured the best that they can reach, or until nothing that they would test fits what is left. "
        "Nephele and Lynceus have horizon 0 and 5 trees; a tenth of the budget goes into the first design (what the "
        "thesis gives it, in its problems). CherryPick has a Gaussian process (in the thesis's problems 5 trees), and "
        "not its own stop, so that the budget ends all alike. Nobody takes snapshots.",
    ]


def _facts_row(scenario: Scenario) -> list[str]:
    facts = facts_of(scenario)
    return [
        scenario.name,
        ", ".join(scenario.limits),
        number(facts.unit),
        number(scenario.budget / facts.unit),
        f"{facts.feasible} of {facts.measured}",
        number(facts.cheapest),
        number(facts.fraction),
        number(facts.best_at_full_data),
        *(str(count) for count in facts.within),
    ]


def _short(traces: Sequence[Trace]) -> str:
    if not traces:
        return "-"
    units = units_until(traces, SUMMARY_LEVEL)
    return f"{number(median(units))} ({_reached(units)} of {len(units)})"


def _reached(units: Sequence[float]) -> int:
    return int(np.isfinite(units).sum())


def _section(scenario: Scenario, found: Results, folder: Path) -> list[str]:
    plot = f"least-cost-{scenario.name}.png"
    amounts = [amount for amount in AMOUNTS if amount <= scenario.budget / facts_of(scenario).unit + 1e-6]
    draw_panels(folder / PLOTS / plot, [_panel(scenario, found)])
    return [
        f"## {scenario.name}: {load_table(scenario.table).title}",
        picture(
            f"{PLOTS}/{plot}", f"CNO against units spent on {scenario.name}, median and quartiles, a line a method"
        ),
        "CNO by units spent, median / 90th percentile over seeds; *none* as long as nothing feasible is recommended:",
        table(
            ["method", "seeds", *(f"{amount:g}" for amount in amounts), "at the end"],
            [_cno_row(label, traces, [*amounts, np.inf]) for label, traces in found.items()],
        ),
        "Units until a CNO for good, median / 90th percentile over seeds, and in how many seeds:",
        table(
            ["method", *(f"CNO ≤ {level:g}" for level in LEVELS), "spent in all", "trials", "CPU seconds per trial"],
            [_units_row(label, traces) for label, traces in found.items()],
        ),
    ]


def _cno_row(label: str, traces: Sequence[Trace], amounts: Sequence[float]) -> list[str]:
    pairs = zip(cno_at(traces, amounts, 50.0), cno_at(traces, amounts, 90.0), strict=True)
    return [label, str(len(traces)), *(" / ".join(_cno(float(one)) for one in pair) for pair in pairs)]


def _cno(value: float) -> str:
    return number(value) if np.isfinite(value) else "none"


def _units_row(label: str, traces: Sequence[Trace]) -> list[str]:
    cells = []
    for level in LEVELS:
        units = units_until(traces, level)
        cells.append(f"{median_and_worse(units)} ({_reached(units)} of {len(units)})")
    asks = [seconds for trace in traces for seconds in trace.ask_seconds]
    ended = [trace.spent[-1] for trace in traces]
    trials = [float(len(trace.spent)) for trace in traces]
    return [label, *cells, number(median(ended)), number(median(trials)), number(float(np.mean(asks)), 2)]


def _panel(scenario: Scenario, found: Results) -> Panel:
    traces = [trace for group in found.values() for trace in group]
    first, last = min(trace.spent[0] for trace in traces), max(trace.spent[-1] for trace in traces)
    places = np.geomspace(first, max(last, first * 10.0), PLACES)
    curves = []
    for label, group in found.items():
        low, middle, high = (cno_at(group, places, percent) for percent in (25.0, 50.0, 75.0))
        # A quartile without anything feasible lies above the plot.
        known = np.isfinite(low)
        low, high = (np.where(known, np.minimum(edge, 10.0 * HIGHEST_CNO), np.nan) for edge in (low, high))
        curves.append(Curve(label, places, middle, low, high))
    return Panel(
        f"{scenario.name}: {', '.join(scenario.limits)}",
        "units spent (mean full-data runs)",
        "CNO, median and quartiles",
        curves,
        is_log_x=True,
        is_log_y=True,
        y_limits=(0.9, HIGHEST_CNO),
        level=1.0,
    )


def main() -> None:
    chosen: argparse.Namespace = options(__doc__.splitlines()[0], "least-cost").parse_args()
    require_matplotlib()
    scenarios = [scenario for name in ready_tables(chosen.tables) for scenario in scenarios_of(name)]
    for scenario in scenarios:
        facts_of(scenario)  # an error now, not after the searches
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    kept = Kept(chosen.cache)
    if not chosen.report_only:
        # Seed by seed, so that a part of the run is a smaller version of the whole.
        searches = [
            group[place]
            for place in range(len(seeds))
            for scenario in scenarios
            for group in searches_of(scenario, seeds, chosen.trials).values()
        ]
        run_missing(searches, run_search, kept, chosen.processes, chosen.again)
    print(f"the report is {write_report(kept, scenarios, seeds, chosen.trials, chosen.out)}")


if __name__ == "__main__":
    main()
