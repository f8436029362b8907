"""`trimtuner` and `eic`: this package's default, and its EI_c with a Gaussian process at full data, by `replay`.

Nothing is made in their favour: no snapshots (a run would measure the smaller fractions on its way), the default
options, and the recommendation is the one the study gives, from its models. Runs of the default are stopped when they
are well over a limit, as its engines do it. Those of EI_c are not, so that it learns what they came to, but are charged
as if they had been.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from benchmarks.peers.search import BUDGET_UNITS
from benchmarks.scoring import Scorer
from benchmarks.variants import Variant
from trimtuner.engines.table import Table
from trimtuner.problem.problem import COST, OVERRUN, Constraint
from trimtuner.study.replay import ReplayMoment, ReplayRun, replay

DEFAULT = "trimtuner"
_UNITS_BEFORE = 2.0 * BUDGET_UNITS  # what is charged for is half of the money, or more


def search_with(method: str, variant: Variant, seed: int, trials: int) -> ReplayRun:
    """Replayed on what is measured, judged by the truth."""
    if method == DEFAULT:
        run = replay(variant.measured, method, seed, trials, BUDGET_UNITS, snapshots=False, stop_at_limits=True)
    else:
        run = replay(variant.measured, method, seed, trials, _UNITS_BEFORE, snapshots=False)
        run = replace(run, moments=charged_as_stopped(variant.measured, run.moments))
    return Scorer(variant.truth).rescore(run)


def charged_as_stopped(table: Table, moments: tuple[ReplayMoment, ...]) -> tuple[ReplayMoment, ...]:
    """The same, no trial charged for more than a stopped one costs, until the budget is spent."""
    limits = [one.limit for one in map(Constraint.parse, table.constraints) if one.metric == COST and one.is_upper]
    most = OVERRUN * min(limits, default=float("inf"))
    costs = table.full_run_costs()
    budget = BUDGET_UNITS * sum(costs) / len(costs)
    spent, charged = 0.0, []
    for before, after in pairwise([0.0, *(moment.spent for moment in moments)]):
        spent += min(after - before, most)
        charged.append(spent)
        if spent >= budget:
            break
    return tuple(replace(moment, spent=spent) for moment, spent in zip(moments, charged, strict=False))
