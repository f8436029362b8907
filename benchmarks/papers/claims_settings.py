"""The claims of the thesis on the settings of Nephele: number of trees, initial budget (section 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.papers.claims import Claim, Finding, claim, judge_more, judge_same, times
from benchmarks.papers.curves import Axis, Estimate, ratio
from benchmarks.papers.experiments import TREES, Experiment
from benchmarks.papers.jobs import CNN, RNN, Job
from benchmarks.papers.markdown import TIMES, ratio_with_interval
from benchmarks.papers.results import Measured, Results
from benchmarks.papers.section_nephele import used_until_own_best

WORSE = 90.0  # the percentile over seeds that the thesis plots
NEPHELE = "Nephele"
OTHERS = ("Lynceus", "CherryPick")

Place = tuple[str, str]  # label and panel of a line
Pair = tuple[Measured, Measured]


def claims_on_settings(results: Results) -> list[Claim]:
    """All of them, in the order of the thesis."""
    return [
        _more_trees_same(results),
        _more_trees_cost(results),
        _more_trees_cost_on_rnn(results),
        _initial_budgets_of_others(results),
        _initial_budgets_of_nephele(results),
    ]


def pair_of(results: Results, experiment: Experiment, job: Job, top: Place, bottom: Place) -> Pair | None:
    """Two lines to compare; nothing unless both are there."""
    if job not in results.plan.jobs:
        return None
    found = [results.line(experiment, job, label, panel) for label, panel in (top, bottom)]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def compared(pair: Pair, value: Callable[[Measured], Sequence[float]], percent: float = WORSE) -> Estimate:
    """The ratio of a percentile of what two lines have."""
    return ratio(value(pair[0]), value(pair[1]), percent)


def costs_to_best(line: Measured) -> list[float]:
    """USD until the best of its own space is recommended."""
    return used_until_own_best(line.traces, Axis.COST)


def seeds_of(pair: Pair) -> str:
    """How many searches a comparison rests on."""
    return f" ({min(len(line.traces) for line in pair)} seeds)"


def _trees(results: Results, job: Job, panel: str) -> Pair | None:
    many, few = (f"{count} trees" for count in (TREES[-1], TREES[0]))
    return pair_of(results, Experiment.TREES, job, (many, panel), (few, panel))


def _budgets(results: Results, panel: str, top: float, bottom: float) -> Pair | None:
    return pair_of(results, Experiment.INITIAL_BUDGETS, RNN, (f"{top:g} USD", panel), (f"{bottom:g} USD", panel))


def _more_trees_cost(results: Results) -> Claim:
    theirs = 4.0

    def findings() -> Iterator[Finding]:
        for panel in OTHERS:
            pair = _trees(results, CNN, panel)
            if pair:
                yield times(f"CNN, {panel}", theirs, compared(pair, costs_to_best), seeds_of(pair))

    statement = "With 20 trees instead of 5, Lynceus and CherryPick spend so many times more to the optimum (90th p.)"
    return claim("more-trees", "thesis, Fig. 6.1", statement, f"about {theirs:g}{TIMES}", findings())


def _more_trees_same(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        pair = _trees(results, CNN, NEPHELE)
        if pair:
            ours = compared(pair, costs_to_best)
            yield Finding("CNN", ratio_with_interval(ours), judge_same(1.0, ours))

    statement = "With 20 trees instead of 5, Nephele spends the same to the optimum (90th percentile)"
    return claim("more-trees-nephele", "thesis, Fig. 6.1", statement, "no significant difference", findings())


def _more_trees_cost_on_rnn(results: Results) -> Claim:
    def findings() -> Iterator[Finding]:
        for panel in (NEPHELE, *OTHERS):
            pair = _trees(results, RNN, panel)
            if pair:
                ours = compared(pair, costs_to_best)
                yield Finding(f"RNN, {panel}", ratio_with_interval(ours), judge_more(ours))

    statement = f"{TREES[-1]} trees always spend more to the optimum than {TREES[0]} (90th percentile)"
    return claim("more-trees-rnn", "thesis, Fig. 6.2", statement, "always more", findings())


def _initial_budgets_of_others(results: Results) -> Claim:
    theirs = 2.0

    def findings() -> Iterator[Finding]:
        for panel in OTHERS:
            pair = _budgets(results, panel, 0.25, 1.0)
            if pair:
                yield times(f"RNN, {panel}", theirs, compared(pair, costs_to_best))

    statement = (
        "With an initial budget of 0.25 USD instead of 1, they spend so many times more to the optimum (90th p.)"
    )
    return claim("initial-budget-others", "thesis, Fig. 6.5", statement, f"about {theirs:g}{TIMES}", findings())


def _initial_budgets_of_nephele(results: Results) -> Claim:
    theirs = 1.5

    def findings() -> Iterator[Finding]:
        pair = _budgets(results, NEPHELE, 1.0, 0.25)
        if pair:
            yield times("RNN", theirs, compared(pair, costs_to_best))

    statement = (
        "With 1 USD instead of 0.25, its best, Nephele spends so many times more to the optimum (90th percentile)"
    )
    return claim("initial-budget-nephele", "thesis, Fig. 6.5", statement, f"about {theirs:g}{TIMES}", findings())
