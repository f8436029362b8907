"""The claims of the TrimTuner paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.papers import papers
from benchmarks.papers.claims import CLOSE, Claim, Finding, claim, judge_at_most, judge_more, judge_same, times, up_to
from benchmarks.papers.curves import (
    Axis,
    Estimate,
    crossing_ratio,
    mean_estimate,
    mean_ratio,
    median,
    ratio,
    settled,
    share_of_best,
)
from benchmarks.papers.experiments import LETTER, LONGER, LONGER_TRIALS, SHARES, Experiment
from benchmarks.papers.jobs import RNN, Job
from benchmarks.papers.markdown import TIMES, number, ratio_with_interval
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.searches import Trace
from benchmarks.papers.section_tables import Measurements
from benchmarks.papers.section_trimtuner import (
    BASELINES,
    LETTER_PROCESS,
    LETTER_TREES,
    LEVEL,
    PROCESS,
    TREES,
)

KEY_OF = {"EIc": "eic", "EIc/USD": "eic-usd"}
COMPARED = (TREES, PROCESS, "EIc/USD", "EIc", "FABOLAS", "Random")
AS_GOOD = 2.0  # "the plots do not highlight significant differences"
MEAN_FRACTION = 0.25


def claims_of_trimtuner(results: Results, measurements: Measurements) -> list[Claim]:
    """All of them, in the order of the paper."""
    jobs = [job for job, _ in measurements]
    return [
        *(_savings(results, jobs, label, axis, TREES) for axis in (Axis.COST, Axis.TIME) for label in BASELINES),
        *(_step_cost(results, jobs, label, TREES) for label in BASELINES),
        _step_cost_of_baselines(results, jobs),
        _mean_fraction(results, jobs, (TREES, PROCESS)),
        _fabolas_worst(results, jobs),
        _trees_as_good(results, jobs, PROCESS, TREES),
        *(_filter_savings(results, label) for label in papers.FILTER_COST),
        _best_without_filter(results, "DT"),
        _fewer_are_worse(results, "DT"),
        _ten_percent_will_do(results, "DT"),
    ]


def claims_to_the_letter(results: Results, measurements: Measurements) -> list[Claim]:
    """Those that rest on TrimTuner itself, of Eq. 5 as it is printed."""
    jobs = [job for job, _ in measurements]
    return [
        *(_savings(results, jobs, label, Axis.COST, LETTER_TREES) for label in BASELINES),
        *(_step_cost(results, jobs, label, LETTER_TREES) for label in BASELINES),
        _mean_fraction(results, jobs, (LETTER_TREES, LETTER_PROCESS)),
        _trees_as_good(results, jobs, LETTER_PROCESS, LETTER_TREES),
        _best_without_filter(results, LETTER),
        _fewer_are_worse(results, LETTER),
        _ten_percent_will_do(results, LETTER),
    ]


def _named(name: str, label: str) -> str:
    """Rows on the form to the letter have names of their own."""
    return f"letter-{name}" if label in (LETTER_TREES, LETTER) else name


def pairs_of(
    results: Results, jobs: Sequence[Job], first: str, second: str
) -> Iterator[tuple[Job, Measured, Measured]]:
    for job in jobs:
        lines = [results.line(Experiment.METHODS, job, label) for label in (first, second)]
        if lines[0] is not None and lines[1] is not None:
            yield job, lines[0], lines[1]


def _savings(results: Results, jobs: Sequence[Job], label: str, axis: Axis, own: str) -> Claim:
    is_cost = axis is Axis.COST
    theirs = (papers.COST_TO_90 if is_cost else papers.TIME_TO_90)[KEY_OF[label]]
    found = [
        (job.title, _crossing(slow.traces, quick.traces, axis), f" ({len(slow.traces)} seeds)")
        for job, slow, quick in pairs_of(results, jobs, label, own)
    ]
    verb = "costs" if is_cost else "takes"
    statement = f"To 90 % of the optimum {label} {verb} so many times what {_without_mark(own)} does"
    name = _named(f"{'cost' if is_cost else 'time'}-to-90-{KEY_OF[label]}", own)
    return claim(name, "TrimTuner, Fig. 2", statement, f"up to {theirs:g}{TIMES}", up_to(theirs, found))


def _without_mark(label: str) -> str:
    return label.removesuffix("*")


def _crossing(tops: Sequence[Trace], bottoms: Sequence[Trace], axis: Axis = Axis.COST) -> Estimate:
    return crossing_ratio(tops, bottoms, axis, share_of_best, LEVEL)


def _step_cost(results: Results, jobs: Sequence[Job], label: str, own: str) -> Claim:
    theirs = papers.COST_PER_STEP[KEY_OF[label]]
    statement = f"A trial of {label} costs so many times one of {_without_mark(own)}, after the initial ones"
    findings = (
        times(job.title, theirs, mean_ratio(costs_per_step(dear), costs_per_step(cheap)))
        for job, dear, cheap in pairs_of(results, jobs, label, own)
    )
    name = _named(f"step-{KEY_OF[label]}", own)
    return claim(name, "TrimTuner, IV-A", statement, f"{theirs:g}{TIMES}", findings)


def costs_per_step(line: Measured) -> list[float]:
    """Mean price of a trial after the initial ones, search by search."""
    costs = []
    for trace in line.traces:
        steps = len(trace.spent) - line.initial
        before = trace.spent[line.initial - 1] if line.initial else 0.0
        costs.append((trace.spent[-1] - before) / steps if steps > 0 else trace.spent[-1])
    return costs


def _step_cost_of_baselines(results: Results, jobs: Sequence[Job]) -> Claim:
    theirs = papers.COST_PER_STEP["eic"] / papers.COST_PER_STEP["eic-usd"]
    findings = (
        times(job.title, theirs, mean_ratio(costs_per_step(dear), costs_per_step(cheap)))
        for job, dear, cheap in pairs_of(results, jobs, "EIc", "EIc/USD")
    )
    statement = "A trial of EIc costs so many times one of EIc/USD (from the two above: 10 / 2.4)"
    return claim("step-eic-against-usd", "TrimTuner, IV-A", statement, f"about {theirs:.1f}{TIMES}", findings)


def _mean_fraction(results: Results, jobs: Sequence[Job], labels: Sequence[str]) -> Claim:
    def findings() -> Iterator[Finding]:
        for job in jobs:
            for label in labels:
                line = results.line(Experiment.METHODS, job, label)
                if line is not None:
                    ours = mean_estimate(
                        [float(np.mean(trace.fraction[line.initial :] or 1.0)) for trace in line.traces]
                    )
                    text = f"{ours.value:.2f} [{ours.low:.2f}, {ours.high:.2f}]"
                    yield Finding(f"{job.title}, {_without_mark(label)}", text, judge_same(MEAN_FRACTION, ours))

    statement = "The mean fraction of the data in TrimTuner's trials, after the initial ones"
    return claim(_named("mean-fraction", labels[0]), "TrimTuner, IV-A", statement, "about 1/4", findings())


def _fabolas_worst(results: Results, jobs: Sequence[Job]) -> Claim:
    def findings() -> Iterator[Finding]:
        for job in jobs:
            final = {
                label: [trace.quality[-1] for trace in traces]
                for label in COMPARED
                if (traces := results.traces(Experiment.METHODS, job, label))
            }
            if "FABOLAS" in final and len(final) > 1:
                fabolas = final.pop("FABOLAS")
                worst = min(final, key=lambda label: float(np.mean(final[label])))
                ours = mean_ratio(final[worst], fabolas)
                text = f"{worst}, the worst of the others, ends at {ratio_with_interval(ours)} of FABOLAS's Accuracy_C"
                yield Finding(job.title, f"{text} ({number(float(np.mean(fabolas)))} of the best)", judge_more(ours))

    statement = "FABOLAS, which knows no limits, is the worst"
    return claim("fabolas-worst", "TrimTuner, IV-A", statement, "worst of all", findings())


def _trees_as_good(results: Results, jobs: Sequence[Job], process: str, trees: str) -> Claim:
    def findings() -> Iterator[Finding]:
        for job, slow, quick in pairs_of(results, jobs, process, trees):
            ours = _crossing(slow.traces, quick.traces)
            yield Finding(job.title, f"GP / DT {ratio_with_interval(ours)}", judge_same(1.0, ours, AS_GOOD))

    statement = f"Trees find as cheaply as Gaussian processes (to 90 %, within a factor of {AS_GOOD:g})"
    return claim(
        _named("trees-as-good", trees), "TrimTuner, Fig. 1", statement, "no significant difference", findings()
    )


def _filter_savings(results: Results, label: str) -> Claim:
    theirs = papers.FILTER_COST[label]

    def findings() -> Iterator[Finding]:
        other, own = (filtered(results, f"{name} 10 %", "GP") for name in (label, "CEA"))
        if other and own:
            good = f" ({len(own)} seeds); for good, medians: {ratio_with_interval(_settled_ratio(other, own))}"
            yield times("RNN", theirs, _crossing(other, own), good)

    statement = f"To 90 % of the optimum filtering by {label} costs so many times what CEA does"
    return claim(f"filter-{label}", "TrimTuner, Fig. 3", statement, f"{theirs:g}{TIMES}", findings())


def filtered(results: Results, label: str, panel: str) -> tuple[Trace, ...]:
    """The searches of a line of Fig. 3, Fig. 4 or Table IV."""
    return results.traces(Experiment.FILTERS, RNN, label, panel) if RNN in results.plan.jobs else ()


def _costs_to_level(traces: Sequence[Trace]) -> list[float]:
    return [settled(trace, Axis.COST, share_of_best, LEVEL) for trace in traces]


def _settled_ratio(tops: Sequence[Trace], bottoms: Sequence[Trace]) -> Estimate:
    return ratio(_costs_to_level(tops), _costs_to_level(bottoms))


def _compared_shares(results: Results, panel: str, top: str, bottom: str) -> Iterator[Finding]:
    """Final Accuracy_C of two lines of Fig. 4, with that of all."""
    final = {
        label: [trace.quality[-1] for trace in traces]
        for label in reversed(SHARES)
        if (traces := filtered(results, label, panel))
    }
    if top in final and bottom in final:
        ours = mean_ratio(final[top], final[bottom])
        listed = ", ".join(f"{label} {number(float(np.mean(shares)))}" for label, shares in final.items())
        text = f"Accuracy_C at the end, {top} / {bottom}: {ratio_with_interval(ours)}; as shares of the best: {listed}"
        yield Finding("RNN", f"{text} ({len(final[top])} seeds)", judge_more(ours))


def _best_without_filter(results: Results, panel: str) -> Claim:
    def findings() -> Iterator[Finding]:
        yield from _compared_shares(results, panel, "no filter", "CEA 10 %")
        longer, own = (filtered(results, label, panel) for label in (LONGER, "CEA 10 %"))
        if longer and own:
            ours = _settled_ratio(own, longer)
            text = f"USD to 90 % for good, CEA 10 % / no filter: {ratio_with_interval(ours)} (medians)"
            yield Finding(f"RNN, {LONGER_TRIALS} trials without a filter", text, judge_more(ours))

    statement = "The best results are those without a filter"
    return claim(_named("no-filter-best", panel), "TrimTuner, Fig. 4", statement, "no filter is best", findings())


def _fewer_are_worse(results: Results, panel: str) -> Claim:
    statement = "The fewer configurations CEA keeps, the worse: 10 % against 1 %"
    findings = _compared_shares(results, panel, "CEA 10 %", "CEA 1 %")
    return claim(_named("fewer-worse", panel), "TrimTuner, Fig. 4", statement, "1 % is worse", findings)


def _ten_percent_will_do(results: Results, panel: str) -> Claim:
    def findings() -> Iterator[Finding]:
        costs = {
            label: _costs_to_level(traces) for label in reversed(SHARES) if (traces := filtered(results, label, panel))
        }
        if "no filter" in costs and "CEA 10 %" in costs:
            ours = ratio(costs["CEA 10 %"], costs["no filter"])
            listed = ", ".join(f"{label} {number(median(one))}" for label, one in costs.items())
            text = f"{ratio_with_interval(ours)} (USD to 90 % for good, medians: {listed})"
            yield Finding("RNN", text, judge_at_most(CLOSE, ours))

    statement = f"Keeping 10 % by CEA costs no more than no filter does (to 90 %, up to a factor of {CLOSE:g})"
    return claim(_named("share-kept", panel), "TrimTuner, Fig. 4", statement, "no significant degradation", findings())
