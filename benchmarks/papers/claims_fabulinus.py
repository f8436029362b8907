"""The claims of the thesis on Fabulinus (chapter 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.papers import papers
from benchmarks.papers.claims import Claim, Finding, Verdict, claim, judge_ratio, times
from benchmarks.papers.curves import Axis, Estimate, mean_ratio, median, ratio, settled, share_or_zero
from benchmarks.papers.experiments import Experiment
from benchmarks.papers.jobs import Job
from benchmarks.papers.markdown import TIMES, number, percent_with_interval
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import LEVEL

OWN = "Fabulinus"
BASELINES = {"EIc": "eic", "FABOLAS": "fabolas", "EI": "ei"}


def claims_of_fabulinus(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the thesis."""
    jobs = [job for job, _ in measurements]
    return [
        *(_cuts(results, jobs, label) for label in BASELINES),
        _to_level(results, jobs),
        _initial(results, jobs),
        *(_takes_longer(results, jobs, label) for label in BASELINES),
        _within_limits(results, jobs, OWN, "always"),
        _within_limits(results, jobs, "EIc", "always"),
        _within_limits(results, jobs, "FABOLAS", "never"),
    ]


def saved(times_more: float) -> float:
    """What is saved, in per cent, against what costs so many times more."""
    return 100.0 * (1.0 - 1.0 / times_more) if times_more else -math.inf


def _times_more(saved_percent: float) -> float:
    return 1.0 / (1.0 - saved_percent / 100.0)


def _saving(where: str, theirs_percent: float, ours: Estimate, more: str = "") -> Finding:
    """A reduction, shown in per cent and judged as the ratio that it is."""
    text = f"{percent_with_interval(ours.map(saved))}{more}"
    return Finding(where, text, judge_ratio(_times_more(theirs_percent), ours))


def _pairs(results: Results, jobs: Sequence[Job], label: str) -> Iterator[tuple[Job, Measured, Measured]]:
    for job in jobs:
        other, own = (results.line(Experiment.FABULINUS, job, name) for name in (label, OWN))
        if other is not None and own is not None:
            yield job, other, own


def _spent(line: Measured, trials: int | None = None) -> list[float]:
    """USD after so many trials, or after all."""
    return [trace.spent[-1 if trials is None else min(trials, len(trace.spent)) - 1] for trace in line.traces]


def _listed(jobs: Sequence[Job], printed: Mapping[str, float], unit: str) -> str:
    return "; ".join(f"{job.title}: {printed[job.name]:g}{unit}" for job in jobs if job.name in printed)


def _cuts(results: Results, jobs: Sequence[Job], label: str) -> Claim:
    printed = {name: cuts[BASELINES[label]] for name, cuts in papers.FABULINUS_CUTS.items()}
    findings = (
        _saving(job.title, printed[job.name], mean_ratio(_spent(other), _spent(own)), f" ({len(own.traces)} seeds)")
        for job, other, own in _pairs(results, jobs, label)
    )
    statement = f"Fabulinus cuts the cost of the optimisation (all 100 trials) against {label} by"
    return claim(f"fabulinus-{BASELINES[label]}", "thesis, 7.3", statement, _listed(jobs, printed, " %"), findings)


def _to_level(results: Results, jobs: Sequence[Job]) -> Claim:
    """The other reading of "optimisation cost": what it takes to have a good recommendation for good."""
    printed = {name: cuts["eic"] for name, cuts in papers.FABULINUS_CUTS.items()}

    def findings() -> Iterator[Finding]:
        for job, other, own in _pairs(results, jobs, "EIc"):
            costs = [[settled(t, Axis.COST, share_or_zero, LEVEL) for t in line.traces] for line in (own, other)]
            there = " and ".join(f"{np.isfinite(one).sum()} of {len(one)}" for one in costs)
            medians = " against ".join(number(median(one)) for one in costs)
            more = f" (for good {there}; {medians} USD)"
            yield _saving(job.title, printed[job.name], ratio(costs[1], costs[0]), more)

    statement = "The same against EIc, read as the cost to 90 % of the optimum for good (medians)"
    return claim("fabulinus-to-90", "thesis, 7.3", statement, _listed(jobs, printed, " %"), findings())


def _initial(results: Results, jobs: Sequence[Job]) -> Claim:
    printed = papers.FABULINUS_INITIAL_CUTS
    findings = (
        _saving(job.title, printed[job.name], mean_ratio(_spent(other, other.initial), _spent(own, own.initial)))
        for job, other, own in _pairs(results, jobs, "EIc")
    )
    statement = "Fabulinus cuts the cost of the initial samples against EIc by"
    return claim("fabulinus-initial", "thesis, 7.3", statement, _listed(jobs, printed, " %"), findings)


def _takes_longer(results: Results, jobs: Sequence[Job], label: str) -> Claim:
    printed = papers.FABULINUS_TIME[BASELINES[label]]

    def total(line: Measured) -> list[float]:
        return [trace.total_seconds[-1] for trace in line.traces]

    findings = (
        times(job.title, printed[job.name], mean_ratio(total(own), total(other)))
        for job, other, own in _pairs(results, jobs, label)
        if job.name in printed
    )
    statement = f"With the time to ask, Fabulinus takes so many times as long as {label}"
    name = f"fabulinus-time-{BASELINES[label]}"
    return claim(name, "thesis, 7.3", statement, _listed(jobs, printed, TIMES), findings)


def _within_limits(results: Results, jobs: Sequence[Job], label: str, theirs: str) -> Claim:
    """Always or never: a word that one recommendation can break."""
    wanted = 1.0 if theirs == "always" else 0.0

    def findings() -> Iterator[Finding]:
        for job in jobs:
            line = results.line(Experiment.FABULINUS, job, label)
            if line is not None:
                after = [trace.feasible[min(line.initial, len(trace.feasible) - 1) :] for trace in line.traces]
                share = float(np.mean([np.mean(one) for one in after]))
                verdict = Verdict.AS_THEIRS if share == wanted else Verdict.WEAKER
                yield Finding(job.title, f"{100 * share:.1f} % of them", verdict)

    statement = f"Once its model is in use, {label} recommends what keeps the limit"
    return claim(f"limits-{label.lower()}", "thesis, 7.3", statement, theirs, findings())
