"""The claims of the thesis on Nephele (chapter 6) and Fabulinus (chapter 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.papers import facts, papers
from benchmarks.papers.claims import (
    SAME_WITHIN,
    Claim,
    Judged,
    Verdict,
    claim_on_jobs,
    judge_ratio,
    judge_reduction,
)
from benchmarks.papers.curves import Axis, Estimate, mean_ratio, median, percentile, ratio, settled, share_or_zero
from benchmarks.papers.experiments import FABULINUS_INITIAL, FABULINUS_INITIAL_TRIALS, HORIZONS, TREES, Experiment
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import TIMES, multiple, number, percent_with_interval, ratio_with_interval
from benchmarks.papers.results import Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_nephele import level_for, used_until, used_until_own_best
from benchmarks.papers.section_tables import Measurements, is_rounding_of
from benchmarks.papers.section_trimtuner import LEVEL

WORSE = 90.0  # the percentile over seeds that the thesis plots


def claims_of_thesis(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the thesis."""
    jobs = [job for job, _ in measurements]
    return [
        _cheaper_with_less_data(measurements),
        _reaches_level(results, measurements, "Lynceus"),
        _reaches_level(results, measurements, "CherryPick"),
        _more_trees_cost(results, jobs),
        _lookahead_does_not_pay(results, jobs),
        _longest_horizon_worst(results, jobs),
        *(_fabulinus_cuts(results, jobs, label, key) for label, key in (("EIc", "eic"), ("FABOLAS", "fabolas"))),
        _fabulinus_to_level(results, jobs),
        _fabulinus_initial(results, jobs),
        _fabulinus_takes_longer(results, jobs),
    ]


def _cheaper_with_less_data(measurements: Measurements) -> Claim:
    def judged() -> Iterator[Judged]:
        for job, cells in measurements:
            if job.name in papers.CHEAPER_WITH_LESS_DATA:
                theirs, at = papers.CHEAPER_WITH_LESS_DATA[job.name]
                ours, fraction = facts.cheaper_with_less_data(cells)
                is_same = is_rounding_of(f"{theirs:.1f}", ours) and fraction == at
                text = f"{job.title}: {multiple(ours)} (s = {fraction:g})"
                yield text, Verdict.HOLDS if is_same else Verdict.FAILS

    theirs = "CNN: 4.1 \N{MULTIPLICATION SIGN} (s = 0.1); RNN: 2.1 \N{MULTIPLICATION SIGN} (s = 0.25)"
    statement = "The best with less data is so many times cheaper than the best at full data"
    return claim_on_jobs("cheaper-with-less-data", "thesis, 6.3", statement, theirs, judged())


def _reaches_level(results: Results, measurements: Measurements, label: str) -> Claim:
    printed = papers.LYNCEUS_COST if label == "Lynceus" else papers.CHERRYPICK_COST

    def judged() -> Iterator[Judged]:
        for job, cells in measurements:
            other, own = (results.traces(Experiment.OPTIMISERS, job, name) for name in (label, "Nephele"))
            if not other or not own or job.name not in printed:
                continue
            level, scale = level_for(job, cells), facts.cheaper_with_less_data(cells)[0]
            costs = used_until(other, Axis.COST, scale, level), used_until(own, Axis.COST, 1.0, level)
            worse, typical = ratio(*costs, percent=WORSE), ratio(*costs)
            text = f"{job.title}, CNO {level:.3g}: {ratio_with_interval(worse)}, medians {ratio_with_interval(typical)}"
            yield f"{text} ({len(own)} seeds)", judge_ratio(printed[job.name], worse)

    theirs = "; ".join(
        f"{name.upper()}, CNO {papers.CNO_LEVEL[name]:g}: {more:g}{TIMES}" for name, more in printed.items()
    )
    statement = f"To this CNO {label} spends so many times what Nephele does (90th percentiles)"
    return claim_on_jobs(f"nephele-{label.lower()}", "thesis, 6.4", statement, theirs, judged())


def _more_trees_cost(results: Results, jobs: Sequence[Job]) -> Claim:
    theirs = 4.0

    def judged() -> Iterator[Judged]:
        for job in jobs:
            for panel in ("Lynceus", "CherryPick"):
                many, few = (
                    results.traces(Experiment.TREES, job, f"{count} trees", panel) for count in (TREES[-1], TREES[0])
                )
                if job.name == "cnn" and many and few:
                    ours = ratio(_costs_to_best(many), _costs_to_best(few), percent=WORSE)
                    yield f"{panel}: {ratio_with_interval(ours)} ({len(few)} seeds)", judge_ratio(theirs, ours)

    statement = "With 20 trees instead of 5, CNN, Lynceus and CherryPick spend so many times more to find the optimum"
    return claim_on_jobs("more-trees", "thesis, Fig. 6.1", statement, f"about {theirs:g}{TIMES}", judged())


def _costs_to_best(traces: Sequence[Trace]) -> list[float]:
    return used_until_own_best(traces, Axis.COST)


def _lookahead_does_not_pay(results: Results, jobs: Sequence[Job]) -> Claim:
    """Holds on a job where no horizon finds the optimum for clearly less than horizon 0."""

    def judged() -> Iterator[Judged]:
        for job in jobs:
            costs = _costs_of_horizons(results, job)
            if len(costs) == len(HORIZONS):
                pays = any(costs[0] > SAME_WITHIN * costs[horizon] for horizon in HORIZONS[1:])
                yield _listed(job, costs), Verdict.FAILS if pays else Verdict.HOLDS

    statement = "Lookahead does not pay: USD to the optimum for horizons 0, 1, 2 (median)"
    return claim_on_jobs("lookahead", "thesis, 6.5", statement, "no significant improvement", judged())


def _longest_horizon_worst(results: Results, jobs: Sequence[Job]) -> Claim:
    def judged() -> Iterator[Judged]:
        for job in jobs:
            costs = _costs_of_horizons(results, job, percent=WORSE)
            if len(costs) == len(HORIZONS):
                is_worst = costs[2] >= max(costs.values())
                yield _listed(job, costs), Verdict.HOLDS if is_worst else Verdict.FAILS

    statement = "Horizon 2 is the worst: USD to the optimum for horizons 0, 1, 2 (90th percentile)"
    return claim_on_jobs("horizon-2", "thesis, 6.5", statement, "RNN: 1.3 \N{MULTIPLICATION SIGN} horizon 0", judged())


def _costs_of_horizons(results: Results, job: Job, percent: float = 50.0) -> dict[int, float]:
    found = {}
    for horizon in HORIZONS:
        traces = results.traces(Experiment.HORIZONS, job, f"horizon {horizon}")
        if traces:
            found[horizon] = percentile(_costs_to_best(traces), percent)
    return found


def _listed(job: Job, costs: dict[int, float]) -> str:
    return f"{job.title}: " + ", ".join(number(usd) for usd in costs.values())


def _fabulinus_pairs(
    results: Results, jobs: Sequence[Job], label: str
) -> Iterator[tuple[Job, Sequence[Trace], Sequence[Trace]]]:
    for job in jobs:
        own, other = (results.traces(Experiment.FABULINUS, job, name) for name in ("Fabulinus", label))
        if own and other:
            yield job, own, other


def _fabulinus_cuts(results: Results, jobs: Sequence[Job], label: str, key: str) -> Claim:
    def judged() -> Iterator[Judged]:
        for job, own, other in _fabulinus_pairs(results, jobs, label):
            ours = _reduction([trace.spent[-1] for trace in own], [trace.spent[-1] for trace in other])
            verdict = judge_reduction(papers.FABULINUS_CUTS[job.name][key], ours)
            yield f"{job.title}: {percent_with_interval(ours)} ({len(own)} seeds)", verdict

    theirs = "; ".join(f"{job.title}: {papers.FABULINUS_CUTS[job.name][key]:g} %" for job in jobs)
    statement = f"Fabulinus cuts the cost of the optimisation (all 100 trials) against {label} by"
    return claim_on_jobs(f"fabulinus-{key}", "thesis, 7.3", statement, theirs, judged())


def _fabulinus_to_level(results: Results, jobs: Sequence[Job]) -> Claim:
    """The other reading of "optimisation cost": what it takes to have a good recommendation for good."""

    def judged() -> Iterator[Judged]:
        for job, own, other in _fabulinus_pairs(results, jobs, "EIc"):
            costs = [[settled(trace, Axis.COST, share_or_zero, LEVEL) for trace in traces] for traces in (own, other)]
            ours = ratio(costs[0], costs[1]).map(lambda share: 100.0 * (1.0 - share))
            there = f"for good {np.isfinite(costs[0]).sum()} and {np.isfinite(costs[1]).sum()} of {len(own)}"
            verdict = judge_reduction(papers.FABULINUS_CUTS[job.name]["eic"], ours)
            yield f"{job.title}: {percent_with_interval(ours)} ({there}; {_medians(costs)})", verdict

    theirs = "; ".join(f"{job.title}: {papers.FABULINUS_CUTS[job.name]['eic']:g} %" for job in jobs)
    statement = "The same against EIc, read as the cost to 90 % of the optimum for good (medians)"
    return claim_on_jobs("fabulinus-to-90", "thesis, 7.3", statement, theirs, judged())


def _medians(costs: Sequence[Sequence[float]]) -> str:
    return " against ".join(number(median(one)) for one in costs) + " USD"


def _fabulinus_initial(results: Results, jobs: Sequence[Job]) -> Claim:
    printed = {"cnn": 3.0, "rnn": 9.0, "multilayer": 22.2}

    def judged() -> Iterator[Judged]:
        for job, own, other in _fabulinus_pairs(results, jobs, "EIc"):
            initial = FABULINUS_INITIAL_TRIALS, FABULINUS_INITIAL
            ours = _reduction(_costs_of_first(own, initial[0]), _costs_of_first(other, initial[1]))
            yield f"{job.title}: {percent_with_interval(ours)}", judge_reduction(printed[job.name], ours)

    theirs = "; ".join(f"{job.title}: {printed[job.name]:g} %" for job in jobs)
    statement = "Fabulinus cuts the cost of the initial samples against EIc by"
    return claim_on_jobs("fabulinus-initial", "thesis, 7.3", statement, theirs, judged())


def _costs_of_first(traces: Sequence[Trace], trials: int) -> list[float]:
    return [trace.spent[min(trials, len(trace.spent)) - 1] for trace in traces]


def _fabulinus_takes_longer(results: Results, jobs: Sequence[Job]) -> Claim:
    printed = {"cnn": 1.06, "rnn": 6.46, "multilayer": 1.69}

    def judged() -> Iterator[Judged]:
        for job, own, other in _fabulinus_pairs(results, jobs, "EIc"):
            ours = mean_ratio([trace.total_seconds[-1] for trace in own], [trace.total_seconds[-1] for trace in other])
            yield f"{job.title}: {ratio_with_interval(ours)}", judge_ratio(printed[job.name], ours)

    theirs = "; ".join(f"{job.title}: {printed[job.name]:g}{TIMES}" for job in jobs)
    statement = "With the time to ask, Fabulinus takes so many times as long as EIc"
    return claim_on_jobs("fabulinus-time", "thesis, 7.3", statement, theirs, judged())


def _reduction(own: Sequence[float], other: Sequence[float]) -> Estimate:
    return mean_ratio(own, other).map(lambda share: 100.0 * (1.0 - share))
