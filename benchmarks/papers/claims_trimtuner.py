"""The claims of the TrimTuner paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.papers import papers
from benchmarks.papers.claims import (
    SAME_WITHIN,
    Claim,
    Judged,
    Verdict,
    claim_on_jobs,
    claim_up_to,
    judge_ratio,
    judge_same,
)
from benchmarks.papers.curves import (
    Axis,
    Estimate,
    crossing_ratio,
    mean_ratio,
    median,
    quotient,
    ratio,
    settled,
    share_of_best,
)
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.jobs import RNN, Job
from benchmarks.papers.markdown import TIMES, multiple, number, ratio_with_interval
from benchmarks.papers.results import Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import BASELINES, DESIGN_TRIALS, LEVEL, PROCESS, TREES, ask_seconds

KEY_OF = {"EIc": "eic", "EIc/USD": "eic-usd"}
COMPARED = (TREES, PROCESS, "EIc/USD", "EIc", "FABOLAS", "Random")
AS_GOOD = 2.0  # "the plots do not highlight significant differences"


def claims_of_trimtuner(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the paper."""
    jobs = [job for job, _ in measurements]
    return [
        *(_savings(results, jobs, label, axis) for axis in (Axis.COST, Axis.TIME) for label in BASELINES),
        *(_step_cost(results, jobs, label) for label in BASELINES),
        _fabolas_worst(results, jobs),
        _trees_as_good(results, jobs),
        *(_filter_savings(results, jobs, label) for label in papers.FILTER_COST),
        _share_kept(results, jobs),
        _trees_faster(results, jobs),
        _trees_and_filter_faster(results, jobs),
    ]


def _savings(results: Results, jobs: list[Job], label: str, axis: Axis) -> Claim:
    is_cost = axis is Axis.COST
    theirs = (papers.COST_TO_90 if is_cost else papers.TIME_TO_90)[KEY_OF[label]]
    found = []
    for job in jobs:
        slow, quick = (results.traces(Experiment.METHODS, job, name) for name in (label, TREES))
        if slow and quick:
            found.append((f"{job.title} ({len(slow)} seeds)", crossing_ratio(slow, quick, axis, share_of_best, LEVEL)))
    verb = "costs" if is_cost else "takes"
    statement = f"To 90 % of the optimum {label} {verb} so many times what TrimTuner (DT) does"
    name = f"{'cost' if is_cost else 'time'}-to-90-{KEY_OF[label]}"
    return claim_up_to(name, "TrimTuner, Fig. 2", statement, theirs, found, ratio_with_interval)


def _step_cost(results: Results, jobs: list[Job], label: str) -> Claim:
    """Mean price of a trial after the initial samples."""
    theirs = papers.COST_PER_STEP[KEY_OF[label]]

    def judged() -> Iterator[Judged]:
        for job in jobs:
            dear, cheap = (results.traces(Experiment.METHODS, job, name) for name in (label, TREES))
            if dear and cheap:
                ours = mean_ratio([_cost_per_step(t) for t in dear], [_cost_per_step(t) for t in cheap])
                yield f"{job.title}: {ratio_with_interval(ours)}", judge_ratio(theirs, ours)

    statement = f"A trial of {label} costs so many times one of TrimTuner (DT)"
    return claim_on_jobs(f"step-{KEY_OF[label]}", "TrimTuner, IV-A", statement, f"{theirs:g}{TIMES}", judged())


def _cost_per_step(trace: Trace) -> float:
    before = min(DESIGN_TRIALS, len(trace.spent) - 1)
    return (
        (trace.spent[-1] - trace.spent[before - 1]) / max(len(trace.spent) - before, 1) if before else trace.spent[-1]
    )


def _fabolas_worst(results: Results, jobs: list[Job]) -> Claim:
    def judged() -> Iterator[Judged]:
        for job in jobs:
            final = {
                label: float(np.mean([trace.quality[-1] for trace in traces]))
                for label in COMPARED
                if (traces := results.traces(Experiment.METHODS, job, label))
            }
            if "FABOLAS" in final and len(final) > 1:
                worst = min(final, key=lambda label: final[label])
                text = f"{job.title}: FABOLAS ends at {number(final['FABOLAS'])} of the best, worst is {worst}"
                yield f"{text} ({number(final[worst])})", Verdict.HOLDS if worst == "FABOLAS" else Verdict.FAILS

    statement = "FABOLAS, which knows no limits, is the worst"
    return claim_on_jobs("fabolas-worst", "TrimTuner, IV-A", statement, "worst of all", judged())


def _trees_as_good(results: Results, jobs: list[Job]) -> Claim:
    def judged() -> Iterator[Judged]:
        for job in jobs:
            process, trees = (results.traces(Experiment.METHODS, job, name) for name in (PROCESS, TREES))
            if process and trees:
                ours = crossing_ratio(process, trees, Axis.COST, share_of_best, LEVEL)
                yield f"{job.title}: GP / DT {ratio_with_interval(ours)}", judge_same(AS_GOOD, ours.value)

    statement = f"Trees find as cheaply as Gaussian processes (to 90 %, within a factor of {AS_GOOD:g})"
    return claim_on_jobs("trees-as-good", "TrimTuner, Fig. 1", statement, "no significant difference", judged())


def _filter_savings(results: Results, jobs: list[Job], label: str) -> Claim:
    theirs = papers.FILTER_COST[label]

    def judged() -> Iterator[Judged]:
        if RNN not in jobs:
            return
        other, own = (results.traces(Experiment.FILTERS, RNN, f"{name} 10 %", "GP") for name in (label, "CEA"))
        if other and own:
            ours = crossing_ratio(other, own, Axis.COST, share_of_best, LEVEL)
            good = _settled_ratio(other, own)
            text = (
                f"RNN: {ratio_with_interval(ours)} ({len(own)} seeds); for good, medians: {ratio_with_interval(good)}"
            )
            yield text, judge_ratio(theirs, ours)

    statement = f"To 90 % of the optimum filtering by {label} costs so many times what CEA does"
    return claim_on_jobs(f"filter-{label}", "TrimTuner, Fig. 3", statement, f"{theirs:g}{TIMES}", judged())


def _settled_ratio(tops: tuple[Trace, ...], bottoms: tuple[Trace, ...]) -> Estimate:
    top, bottom = ([settled(trace, Axis.COST, share_of_best, LEVEL) for trace in group] for group in (tops, bottoms))
    return ratio(top, bottom)


def _share_kept(results: Results, jobs: list[Job]) -> Claim:
    def judged() -> Iterator[Judged]:
        if RNN not in jobs:
            return
        costs = {
            label: median([settled(trace, Axis.COST, share_of_best, LEVEL) for trace in traces])
            for label in ("no filter", "CEA 20 %", "CEA 10 %", "CEA 1 %")
            if (traces := results.traces(Experiment.FILTERS, RNN, label, "DT"))
        }
        if "no filter" in costs and "CEA 10 %" in costs:
            more = quotient(costs["CEA 10 %"], costs["no filter"])
            listed = ", ".join(f"{label} {number(usd)}" for label, usd in costs.items())
            text = f"RNN: 10 % costs {multiple(more)} no filter's (USD to 90 % for good, median: {listed})"
            yield text, Verdict.HOLDS if more <= SAME_WITHIN else Verdict.FAILS

    statement = "Keeping only β = 10 % by CEA costs hardly more than no filter"
    return claim_on_jobs("share-kept", "TrimTuner, Fig. 4", statement, "no significant degradation", judged())


def _trees_faster(results: Results, jobs: list[Job]) -> Claim:
    found = []
    for job in jobs:
        process, trees = (results.traces(Experiment.METHODS, job, name) for name in (PROCESS, TREES))
        if process and trees:
            found.append((job.title, mean_ratio(_mean_asks(process), _mean_asks(trees))))
    judged = [
        (f"{title}: {ratio_with_interval(ours)}", judge_ratio(papers.TREES_FASTER, ours)) for title, ours in found
    ]
    statement = "Trees recommend so many times faster than Gaussian processes"
    return claim_on_jobs("trees-faster", "TrimTuner, Table III", statement, f"{papers.TREES_FASTER:g}{TIMES}", judged)


def _trees_and_filter_faster(results: Results, jobs: list[Job]) -> Claim:
    slow = results.traces(Experiment.FILTERS, RNN, "no filter", "GP") if RNN in jobs else ()
    quick = results.traces(Experiment.FILTERS, RNN, "CEA 1 %", "DT") if RNN in jobs else ()
    found = [("RNN", mean_ratio(_mean_asks(slow), _mean_asks(quick)))] if slow and quick else []
    statement = "Trees with CEA (1 %) recommend so many times faster than Gaussian processes without a filter"
    return claim_up_to(
        "trees-and-filter-faster", "TrimTuner, V", statement, papers.CEA_AND_TREES_FASTER, found, ratio_with_interval
    )


def _mean_asks(traces: tuple[Trace, ...]) -> list[float]:
    return [float(np.mean(ask_seconds([trace]) or list(trace.ask_seconds))) for trace in traces]
