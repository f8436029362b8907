"""The claims of the thesis on Nephele (chapter 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.claims import CLOSE, Claim, Finding, Verdict, claim, judge_more, judge_same, times
from benchmarks.papers.claims_settings import (
    NEPHELE,
    OTHERS,
    WORSE,
    Pair,
    compared,
    costs_to_best,
    pair_of,
    seeds_of,
)
from benchmarks.papers.curves import Axis, mean_ratio, normalised_cost, percentile, steps
from benchmarks.papers.experiments import HORIZONS, Experiment
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import CNN, RNN, Job
from benchmarks.papers.markdown import TIMES, multiple, number, ratio_with_interval
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_nephele import level_for, scale_of, used_until
from benchmarks.papers.section_tables import Measurements, is_rounding_of


def claims_of_nephele(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the thesis."""
    return [
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


def _optimisers(results: Results, job: Job, top: str, bottom: str) -> Pair | None:
    return pair_of(results, Experiment.OPTIMISERS, job, (top, job.title), (bottom, job.title))


def _horizons(results: Results, job: Job, horizon: int) -> Pair | None:
    place = (f"horizon {horizon}", job.title)
    return pair_of(results, Experiment.HORIZONS, job, place, ("horizon 0", job.title))


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


def _cno_at(cells: Cells, usd: float) -> Callable[[Measured], list[float]]:
    def value(line: Measured) -> list[float]:
        cno = normalised_cost(scale_of(line, cells))
        return [float(one) for one in steps(line.traces, Axis.COST, cno, np.inf, np.array([usd])).rows[:, 0]]

    return value


def _better_initial_samples(results: Results, measurements: Measurements) -> Claim:
    theirs = 2.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            for label in OTHERS:
                pair = _optimisers(results, job, label, NEPHELE)
                if pair and job == CNN:
                    cno = _cno_at(cells, job.initial_budget)
                    medians = f", medians {ratio_with_interval(compared(pair, cno, 50.0))}"
                    yield times(f"CNN, {label}", theirs, compared(pair, cno), medians)

    statement = "When the initial samples are paid, the CNO of the others is so many times Nephele's (90th percentiles)"
    return claim("initial-cno", "thesis, 6.4.1", statement, f"about {theirs:g}{TIMES}", findings())


def _reaches_level(results: Results, measurements: Measurements, label: str) -> Claim:
    printed = papers.LYNCEUS_COST if label == "Lynceus" else papers.CHERRYPICK_COST

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            pair = _optimisers(results, job, label, NEPHELE)
            if pair and job.name in printed:
                cost = _cost_to_level(job, cells)
                more = f", medians {ratio_with_interval(compared(pair, cost, 50.0))}{seeds_of(pair)}"
                where = f"{job.title}, CNO {level_for(job, cells):.3g}"
                yield times(where, printed[job.name], compared(pair, cost), more)

    theirs = "; ".join(
        f"{name.upper()}, CNO {papers.CNO_LEVEL[name]:g}: {more:g}{TIMES}" for name, more in printed.items()
    )
    statement = f"To this CNO {label} spends so many times what Nephele does (90th percentiles)"
    return claim(f"nephele-{label.lower()}", "thesis, 6.4", statement, theirs, findings())


def _cost_to_level(job: Job, cells: Cells) -> Callable[[Measured], list[float]]:
    return lambda line: used_until(line.traces, Axis.COST, scale_of(line, cells), level_for(job, cells))


def _random_is_dearer(results: Results, measurements: Measurements) -> Claim:
    theirs = 10.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            pair = _optimisers(results, job, "Random", NEPHELE)
            if pair and job == CNN:
                usd = percentile(costs_to_best(pair[1]), WORSE)
                cno = _cno_at(cells, usd)
                medians = f", medians {ratio_with_interval(compared(pair, cno, 50.0))}, after {number(usd)} USD"
                yield times("CNN", theirs, compared(pair, cno), medians)

    statement = "When Nephele has found the optimum, random search recommends what costs so many times more (90th p.)"
    return claim("random-dearer", "thesis, 6.4.1", statement, f"about {theirs:g}{TIMES}", findings())


def _three_times_cheaper(results: Results, measurements: Measurements) -> Claim:
    theirs, usd = 3.0, 10.0

    def findings() -> Iterator[Finding]:
        for job, cells in measurements:
            pair = _optimisers(results, job, "Lynceus", NEPHELE)
            if pair and job == CNN:
                yield times("CNN", theirs, compared(pair, _cno_at(cells, usd)))

    statement = f"After {usd:g} USD Lynceus recommends what costs so many times more than Nephele's (90th percentiles)"
    return claim("cheaper-after-ten", "thesis, 6, summary", statement, f"{theirs:g}{TIMES}", findings())


def _cherrypick_worst(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        pair = _optimisers(results, RNN, "CherryPick", "Lynceus")
        if pair:
            ours = compared(pair, costs_to_best)
            yield Finding("RNN", ratio_with_interval(ours), judge_more(ours))

    statement = "CherryPick is always the worst to find the best of its space: its cost over that of Lynceus (90th p.)"
    return claim("cherrypick-worst", "thesis, 6.4.2", statement, "the worst", findings())


def _lookahead_does_not_pay(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        for job in results.plan.jobs:
            for horizon in HORIZONS[1:]:
                pair = _horizons(results, job, horizon)
                if pair:
                    ours = compared(pair, costs_to_best, 50.0)
                    where = f"{job.title}, horizon {horizon} / 0"
                    yield Finding(where, ratio_with_interval(ours), judge_same(1.0, ours))

    statement = f"Lookahead does not pay: USD to the optimum (medians, within a factor of {CLOSE:g})"
    return claim("lookahead", "thesis, 6.5", statement, "no significant improvement", findings())


def _longest_horizon_worst(results: Results) -> Claim:
    theirs = 1.3

    def findings() -> Iterator[Finding]:
        for job in results.plan.jobs:
            pair = _horizons(results, job, 2)
            if pair:
                ours = compared(pair, costs_to_best)
                verdict = judge_more(ours) if job == CNN else times("", theirs, ours).verdict
                yield Finding(job.title, ratio_with_interval(ours), verdict)

    statement = "Horizon 2 spends so many times more to the optimum than horizon 0 (90th percentiles)"
    return claim("horizon-2", "thesis, 6.5", statement, f"CNN: the worst; RNN: {theirs:g}{TIMES}", findings())


def _lookahead_takes_longer(results: Results, horizon: int) -> Claim:
    theirs = papers.LOOKAHEAD_TIME[horizon]

    def findings() -> Iterator[Finding]:
        pair = _horizons(results, CNN, horizon)
        if pair:
            slow, quick = pair
            asks = mean_ratio(_asking(slow), _asking(quick))
            yield times(
                "CNN", theirs, mean_ratio(_total(slow), _total(quick)), f"; asking alone {ratio_with_interval(asks)}"
            )

    statement = f"Horizon {horizon} takes so many times as long as no lookahead, trials and asking together"
    return claim(f"lookahead-time-{horizon}", "thesis, 6.5.1", statement, f"{theirs:g}{TIMES}", findings())


def _total(line: Measured) -> list[float]:
    return [trace.total_seconds[-1] for trace in line.traces]


def _asking(line: Measured) -> list[float]:
    return [sum(trace.ask_seconds) for trace in line.traces]
