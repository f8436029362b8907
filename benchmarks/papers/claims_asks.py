"""The claims of the TrimTuner paper on the time to recommend: Tables III and IV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.papers import papers
from benchmarks.papers.claims import Claim, Finding, claim, judge_same, times
from benchmarks.papers.claims_trimtuner import filtered, pairs_of
from benchmarks.papers.curves import mean_ratio
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import TIMES, ratio_with_interval
from benchmarks.papers.results import Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import PRINTED, PROCESS, TREES, ask_seconds


def claims_on_asks(results: Results, measurements: Measurements) -> Iterator[Claim]:
    """All of them, in the order of the paper."""
    jobs = [job for job, _ in measurements]
    yield _slower(results, jobs, "asks-gp-dt", PROCESS, TREES)
    yield _slower(results, jobs, "asks-fabolas-dt", "FABOLAS", TREES)
    yield _slower(results, jobs, "asks-fabolas-eic", "FABOLAS", "EIc")
    yield _slower(results, jobs, "asks-gp-fabolas", PROCESS, "FABOLAS")
    yield _trees_as_quick_as_eic(results, jobs)
    yield _slower_than_cea(results, "asks-none-cea", "no filter")
    yield _slower_than_cea(results, "asks-direct-cea", "DIRECT 10 %")
    yield _slower_than_cea(results, "asks-cmaes-cea", "CMA-ES 10 %")
    yield _cea_as_quick_as_random(results)
    theirs = papers.CEA_AND_TREES_FASTER
    statement = "Gaussian processes without a filter take so many times as long to recommend as trees with CEA (1 %)"
    findings = _compared_asks(results, theirs, ("no filter", "GP"), ("CEA 1 %", "DT"))
    yield claim("asks-none-gp-cea-dt", "TrimTuner, V", statement, f"up to {theirs:g}{TIMES}", findings)


def _slower(results: Results, jobs: Sequence[Job], name: str, slow: str, quick: str) -> Claim:
    theirs = papers.TABLE_III[PRINTED[slow]][0] / papers.TABLE_III[PRINTED[quick]][0]
    findings = (
        times(job.title, theirs, mean_ratio(_mean_asks(one.traces), _mean_asks(other.traces)))
        for job, one, other in pairs_of(results, jobs, slow, quick)
    )
    statement = f"{slow} takes so many times as long to recommend as {quick}"
    return claim(name, "TrimTuner, Table III", statement, f"{theirs:.3g}{TIMES}", findings)


def _slower_than_cea(results: Results, name: str, label: str) -> Claim:
    theirs = papers.TABLE_IV[label][0] / papers.TABLE_IV["CEA 10 %"][0]
    findings = _compared_asks(results, theirs, (label, "GP"), ("CEA 10 %", "GP"))
    statement = f"With Gaussian processes, {label} takes so many times as long to recommend as CEA 10 %"
    return claim(name, "TrimTuner, Table IV", statement, f"{theirs:.3g}{TIMES}", findings)


def _trees_as_quick_as_eic(results: Results, jobs: Sequence[Job]) -> Claim:
    theirs = papers.TABLE_III["trimtuner-dt"][0] / papers.TABLE_III["eic"][0]

    def findings() -> Iterator[Finding]:
        for job, trees, eic in pairs_of(results, jobs, TREES, "EIc"):
            ours = mean_ratio(_mean_asks(trees.traces), _mean_asks(eic.traces))
            yield Finding(job.title, ratio_with_interval(ours), judge_same(theirs, ours))

    statement = "TrimTuner (DT) recommends almost as quickly as EIc: so many times as long"
    return claim("asks-dt-eic", "TrimTuner, Table III", statement, f"{theirs:.3g}{TIMES}", findings())


def _compared_asks(results: Results, theirs: float, slow: tuple[str, str], quick: tuple[str, str]) -> Iterator[Finding]:
    tops, bottoms = filtered(results, *slow), filtered(results, *quick)
    if tops and bottoms:
        yield times("RNN", theirs, mean_ratio(_mean_asks(tops), _mean_asks(bottoms)))


def _cea_as_quick_as_random(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        for model in ("GP", "DT"):
            own, other = (filtered(results, f"{label} 10 %", model) for label in ("CEA", "random"))
            if own and other:
                ours = mean_ratio(_mean_asks(own), _mean_asks(other))
                yield Finding(f"RNN, {model}", ratio_with_interval(ours), judge_same(1.0, ours))

    statement = "Recommending with CEA takes as long as with a random filter"
    printed = zip(papers.TABLE_IV["CEA 10 %"], papers.TABLE_IV["random 10 %"], ("GP", "DT"), strict=True)
    theirs = ", ".join(f"{model} {own / other:.2f}{TIMES}" for own, other, model in printed)
    return claim("asks-cea-random", "TrimTuner, Table IV", statement, theirs, findings())


def _mean_asks(traces: Sequence[Trace]) -> list[float]:
    return [float(np.mean(ask_seconds([trace]) or list(trace.ask_seconds))) for trace in traces]
