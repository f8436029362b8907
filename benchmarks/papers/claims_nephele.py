"""The claims of the thesis on Nephele (chapter 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.claims import CLOSE, Claim, Finding, Verdict, claim, judge_more, judge_same, times
from benchmarks.papers.curves import Axis, Estimate, mean_ratio, normalised_cost, percentiles, ratio, steps
from benchmarks.papers.experiments import HORIZONS, TREES, Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import CNN, RNN, Job
from benchmarks.papers.markdown import TIMES, multiple, number, ratio_with_interval
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_nephele import level_for, scale_of, used_until, used_until_own_best
from benchmarks.papers.section_tables import Measurements, is_rounding_of

WORSE = 90.0  # the percentile over seeds that the thesis plots
NEPHELE = "Nephele"
OTHERS = ("Lynceus", "CherryPick")


def claims_of_nephele(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the thesis."""
    return [
        _more_trees_same(results),
        _more_trees_cost(results),
        _more_trees_cost_on_rnn(results),
        _initial_budgets_of_others(results),
        _initial_budgets_of_nephele(results),
        _cheaper_with_less_data(measurements),
        _more_initial_samples(measurements),
        _better_initial_samples(results, measurements),
        *(_reaches_level(results, measurements, label) for label in OTHERS),
        _random_is_dearer(results, measurements),
        _three_times_cheaper(results, measurements),
        _cherrypick_worst(results),
        _lookahead_does_not_pay(results),
        _longest_horizon_worst(results),
        *(_lookahead_takes_longer(results, horizon) for horizon in HORIZONS[1:]),
    ]


def _lines(results: Results, experiment: Experiment, job: Job, *places: tuple[str, str]) -> list[Measured] | None:
    """Lines by label and panel; nothing unless all are there."""
    if job not in results.plan.jobs:
        return None
    found = [results.line(experiment, job, label, panel) for label, panel in places]
    lines = [line for line in found if line is not None]
    return lines if len(lines) == len(found) else None


def _costs_to_best(line: Measured) -> list[float]:
    return used_until_own_best(line.traces, Axis.COST)


def _cost_ratio(top: Measured, bottom: Measured, percent: float = WORSE) -> Estimate:
    return ratio(_costs_to_best(top), _costs_to_best(bottom), percent)


def _more_trees_cost(results: Results) -> Claim:
    theirs = 4.0

    def findings() -> Iterator[Finding]:
        for panel in OTHERS:
            lines = _lines(results, Experiment.TREES, CNN, *((f"{count} trees", panel) for count in (20, 5)))
            if lines:
                yield times(f"CNN, {panel}", theirs, _cost_ratio(*lines), _seeds(lines))

    statement = "With 20 trees instead of 5, Lynceus and CherryPick spend so many times more to the optimum (90th p.)"
    return claim("more-trees", "thesis, Fig. 6.1", statement, f"about {theirs:g}{TIMES}", findings())


def _seeds(lines: Sequence[Measured]) -> str:
    return f" ({min(len(line.traces) for line in lines)} seeds)"


def _more_trees_same(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        lines = _lines(results, Experiment.TREES, CNN, *((f"{count} trees", NEPHELE) for count in (20, 5)))
        if lines:
            ours = _cost_ratio(*lines)
            yield Finding("CNN", ratio_with_interval(ours), judge_same(1.0, ours))

    statement = "With 20 trees instead of 5, Nephele spends the same to the optimum (90th percentile)"
    return claim("more-trees-nephele", "thesis, Fig. 6.1", statement, "no significant difference", findings())


def _more_trees_cost_on_rnn(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        for panel in (NEPHELE, *OTHERS):
            lines = _lines(results, Experiment.TREES, RNN, *((f"{count} trees", panel) for count in (20, 5)))
            if lines:
                ours = _cost_ratio(*lines)
                yield Finding(f"RNN, {panel}", ratio_with_interval(ours), judge_more(ours))

    statement = f"{TREES[-1]} trees always spend more to the optimum than {TREES[0]} (90th percentile)"
    return claim("more-trees-rnn", "thesis, Fig. 6.2", statement, "always more", findings())


def _budgets(results: Results, panel: str, *budgets: float) -> list[Measured] | None:
    return _lines(results, Experiment.INITIAL_BUDGETS, RNN, *((f"{budget:g} USD", panel) for budget in budgets))


def _initial_budgets_of_others(results: Results) -> Claim:
    theirs = 2.0

    def findings() -> Iterator[Finding]:
        for panel in OTHERS:
            lines = _budgets(results, panel, 0.25, 1.0)
            if lines:
                yield times(f"RNN, {panel}", theirs, _cost_ratio(*lines))

    statement = (
        "With an initial budget of 0.25 USD instead of 1, they spend so many times more to the optimum (90th p.)"
    )
    return claim("initial-budget-others", "thesis, Fig. 6.5", statement, f"about {theirs:g}{TIMES}", findings())


def _initial_budgets_of_nephele(results: Results) -> Claim:
    theirs = 1.5

    def findings() -> Iterator[Finding]:
        lines = _budgets(results, NEPHELE, 1.0, 0.25)
        if lines:
            yield times("RNN", theirs, _cost_ratio(*lines))

    statement = (
        "With 1 USD instead of 0.25, its best, Nephele spends so many times more to the optimum (90th percentile)"
    )
    return claim("initial-budget-nephele", "thesis, Fig. 6.5", statement, f"about {theirs:g}{TIMES}", findings())


def _cheaper_with_less_data(measurements: Measurements) -> Claim:
    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            if job.name in papers.CHEAPER_WITH_LESS_DATA:
                theirs, at = papers.CHEAPER_WITH_LESS_DATA[job.name]
                ours, fraction = facts.cheaper_with_less_data(cells)
                is_same = is_rounding_of(f"{theirs:.1f}", ours) and fraction == at
                text = f"{multiple(ours)} (s = {fraction:g})"
                yield Finding(job.title, text, Verdict.AS_THEIRS if is_same else Verdict.DIFFERS)

    theirs = f"CNN: 4.1{TIMES} (s = 0.1); RNN: 2.1{TIMES} (s = 0.25)"
    statement = "The best with less data is so many times cheaper than the best at full data (measurements alone)"
    return claim("cheaper-with-less-data", "thesis, 6.3", statement, theirs, findings())


def _more_initial_samples(measurements: Measurements) -> Claim:
    def printed(job: Job) -> float:
        sample = papers.TABLE_6_1[job.name]
        return sample.any_fraction.number / sample.full_data.number

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            every, full = (facts.trials_within(costs, job.initial_budget) for costs in (cells.cost, cells.cost[:, -1:]))
            yield times(job.title, printed(job), mean_ratio(every.tolist(), full.tolist()))

    theirs = "; ".join(f"{job.title}: {printed(job):.3g}{TIMES}" for job, _ in measurements)
    statement = (
        "The initial budget buys Nephele so many times the trials of Lynceus and CherryPick (measurements alone)"
    )
    return claim("initial-samples", "thesis, 6.4.2 and Table 6.1", statement, theirs, findings())


def _cno_at(line: Measured, cells: Cells, usd: float) -> list[float]:
    value = normalised_cost(scale_of(line, cells))
    return [float(one) for one in steps(line.traces, Axis.COST, value, np.inf, np.array([usd])).rows[:, 0]]


def _optimisers(results: Results, job: Job, *labels: str) -> list[Measured] | None:
    return _lines(results, Experiment.OPTIMISERS, job, *((label, job.title) for label in labels))


def _better_initial_samples(results: Results, measurements: Measurements) -> Claim:
    theirs = 2.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            for label in OTHERS:
                lines = _optimisers(results, job, label, NEPHELE)
                if lines and job == CNN:
                    costs = [_cno_at(line, cells, job.initial_budget) for line in lines]
                    medians = f", medians {ratio_with_interval(ratio(*costs))}"
                    yield times(f"CNN, {label}", theirs, ratio(*costs, percent=WORSE), medians)

    statement = "When the initial samples are paid, the CNO of the others is so many times Nephele's (90th percentiles)"
    return claim("initial-cno", "thesis, 6.4.1", statement, f"about {theirs:g}{TIMES}", findings())


def _reaches_level(results: Results, measurements: Measurements, label: str) -> Claim:
    printed = papers.LYNCEUS_COST if label == "Lynceus" else papers.CHERRYPICK_COST

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            lines = _optimisers(results, job, label, NEPHELE)
            if lines and job.name in printed:
                level = level_for(job, cells)
                costs = [used_until(line.traces, Axis.COST, scale_of(line, cells), level) for line in lines]
                more = f", medians {ratio_with_interval(ratio(*costs))}{_seeds(lines)}"
                where = f"{job.title}, CNO {level:.3g}"
                yield times(where, printed[job.name], ratio(*costs, percent=WORSE), more)

    theirs = "; ".join(
        f"{name.upper()}, CNO {papers.CNO_LEVEL[name]:g}: {more:g}{TIMES}" for name, more in printed.items()
    )
    statement = f"To this CNO {label} spends so many times what Nephele does (90th percentiles)"
    return claim(f"nephele-{label.lower()}", "thesis, 6.4", statement, theirs, findings())


def _random_is_dearer(results: Results, measurements: Measurements) -> Claim:
    theirs = 10.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            lines = _optimisers(results, job, "Random", NEPHELE)
            if lines and job == CNN:
                usd = float(percentiles(np.array(_costs_to_best(lines[1])), WORSE))
                costs = [_cno_at(line, cells, usd) for line in lines]
                medians = f", medians {ratio_with_interval(ratio(*costs))}, after {number(usd)} USD"
                yield times("CNN", theirs, ratio(*costs, percent=WORSE), medians)

    statement = "When Nephele has found the optimum, random search recommends what costs so many times more (90th p.)"
    return claim("random-dearer", "thesis, 6.4.1", statement, f"about {theirs:g}{TIMES}", findings())


def _three_times_cheaper(results: Results, measurements: Measurements) -> Claim:
    theirs, usd = 3.0, 10.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            lines = _optimisers(results, job, "Lynceus", NEPHELE)
            if lines and job == CNN:
                yield times("CNN", theirs, ratio(*(_cno_at(line, cells, usd) for line in lines), percent=WORSE))

    statement = f"After {usd:g} USD Lynceus recommends what costs so many times more than Nephele's (90th percentiles)"
    return claim("cheaper-after-ten", "thesis, 6, summary", statement, f"{theirs:g}{TIMES}", findings())


def _cherrypick_worst(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        lines = _optimisers(results, RNN, "CherryPick", "Lynceus")
        if lines:
            ours = _cost_ratio(*lines)
            yield Finding("RNN", ratio_with_interval(ours), judge_more(ours))

    statement = "CherryPick is always the worst to find the best of its space: its cost over that of Lynceus (90th p.)"
    return claim("cherrypick-worst", "thesis, 6.4.2", statement, "the worst", findings())


def _horizons(results: Results, job: Job, *horizons: int) -> list[Measured] | None:
    return _lines(results, Experiment.HORIZONS, job, *((f"horizon {horizon}", job.title) for horizon in horizons))


def _lookahead_does_not_pay(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        for job in results.plan.jobs:
            for horizon in HORIZONS[1:]:
                lines = _horizons(results, job, horizon, 0)
                if lines:
                    ours = _cost_ratio(*lines, percent=50.0)
                    where = f"{job.title}, horizon {horizon} / 0"
                    yield Finding(where, ratio_with_interval(ours), judge_same(1.0, ours))

    statement = f"Lookahead does not pay: USD to the optimum (medians, within a factor of {CLOSE:g})"
    return claim("lookahead", "thesis, 6.5", statement, "no significant improvement", findings())


def _longest_horizon_worst(results: Results) -> Claim:
    theirs = 1.3

    def findings() -> Iterator[Finding]:
        for job in results.plan.jobs:
            lines = _horizons(results, job, 2, 0)
            if lines:
                ours = _cost_ratio(*lines)
                verdict = judge_more(ours) if job == CNN else times("", theirs, ours).verdict
                yield Finding(job.title, ratio_with_interval(ours), verdict)

    statement = "Horizon 2 spends so many times more to the optimum than horizon 0 (90th percentiles)"
    return claim("horizon-2", "thesis, 6.5", statement, f"CNN: the worst; RNN: {theirs:g}{TIMES}", findings())


def _lookahead_takes_longer(results: Results, horizon: int) -> Claim:
    theirs = papers.LOOKAHEAD_TIME[horizon]

    def findings() -> Iterator[Finding]:
        lines = _horizons(results, CNN, horizon, 0)
        if lines:
            totals = [[trace.total_seconds[-1] for trace in line.traces] for line in lines]
            asks = [[sum(trace.ask_seconds) for trace in line.traces] for line in lines]
            yield times("CNN", theirs, mean_ratio(*totals), f"; asking alone {ratio_with_interval(mean_ratio(*asks))}")

    statement = f"Horizon {horizon} takes so many times as long as no lookahead, trials and asking together"
    return claim(f"lookahead-time-{horizon}", "thesis, 6.5.1", statement, f"{theirs:g}{TIMES}", findings())
