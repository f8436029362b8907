"""A search against a table: what it cost until the recommendation was good, for good."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from trimtuner.engines.table import Cell, Table
from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import OVER_LIMIT, Trial
from trimtuner.problem.problem import TIME, Constraint
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recommendation import Recommendation

LEVELS = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class ReplayMoment:
    """The state after one trial."""

    spent: float
    quality: float  # the recommendation's true worth, as a share of the best feasible one's
    config: dict[str, Value]
    recommended_fraction: float  # what it is recommended to train on
    fraction: float  # of the trial
    time: float  # seconds that the trials took, one after the other
    ask_seconds: float  # of the processor, for asking this trial and fitting the models to its outcome
    chance_feasible: float
    is_feasible: bool  # in truth


@dataclass(frozen=True)
class ReplayRun:
    """One search of a table, moment by moment."""

    seed: int
    moments: tuple[ReplayMoment, ...]

    def first_hit(self, level: float) -> float | None:
        """USD spent when the recommendation first was that good."""
        return next((m.spent for m in self.moments if m.quality >= level), None)

    def settled(self, level: float) -> float | None:
        """USD spent when the recommendation was that good and stayed so to the end."""
        below = [number for number, moment in enumerate(self.moments) if moment.quality < level]
        first = below[-1] + 1 if below else 0
        return self.moments[first].spent if first < len(self.moments) else None

    def quality_at(self, usd: float) -> float:
        """How good the recommendation was when so much had been spent; 0 before the first trial ended."""
        reached = [moment.quality for moment in self.moments if moment.spent <= usd]
        return reached[-1] if reached else 0.0

    def changes_after(self, level: float) -> int | None:
        """How often the recommendation changed after it had settled."""
        settled = self.settled(level)
        if settled is None:
            return None
        after = [m.config for m in self.moments if m.spent >= settled]
        return sum(one != other for one, other in pairwise(after))


def replay(
    table: Table,
    method: str | Recipe,
    seed: int,
    trials: int,
    budget_runs: float | None = None,
    constraints: Sequence[str] | None = None,
    snapshots: bool | None = None,
    *,
    minimize: str | None = None,
    budget: float | None = None,
    until_best: bool = False,
    stop_at_limits: bool = False,
) -> ReplayRun:
    """Search the table with one seed, taking a recommendation after every trial.

    ``minimize`` replaces the table's goal; ``budget`` (USD) is known to the method, unlike ``budget_runs``, which only
    cuts it off. ``until_best`` ends the search once it has measured and recommends the best there is for its method.
    With ``stop_at_limits`` a run is stopped, as the engines do it, once it is well over a limit on cost or time.
    """
    study = Study(
        table.space if snapshots is None else table.space.with_snapshots(snapshots),
        maximize=None if minimize else table.maximize,
        minimize=minimize or table.minimize,
        constraints=table.constraints if constraints is None else constraints,
        method=method,
        seed=seed,
        budget=budget,
    )
    scorer = _Scorer(table, study)
    costs = table.full_run_costs()
    limit = float("inf") if budget_runs is None else budget_runs * sum(costs) / len(costs)
    moments: list[ReplayMoment] = []
    started = time.process_time()
    for trial in study.in_turn(lambda trial: tell_from_table(study, table, trial, stop_at_limits), trials):
        recommendation = study.recommend() if study.history.measurements else None
        moments.append(scorer.moment(trial, recommendation, time.process_time() - started))
        is_best = recommendation is not None and recommendation.is_measured and scorer.is_best(recommendation)
        if study.spent >= limit or (until_best and is_best):
            break
        started = time.process_time()
    return ReplayRun(seed, tuple(moments))


def tell_from_table(study: Study, table: Table, trial: Trial, stop_at_limits: bool = False) -> Trial:
    """Tell a trial what the table says, snapshots included; the trial."""
    cell, passed = table.told(trial.config, trial.fraction, trial.snapshots)
    most = study.problem.seconds_until_stopped(study.problem.space.price_per_hour(trial.config))
    if stop_at_limits and cell.metrics.get(TIME, 0.0) > most:
        passed = {fraction: one for fraction, one in passed.items() if one.metrics.get(TIME, 0.0) <= most}
        cell = Cell({TIME: most}, OVER_LIMIT)
    study.tell_report(trial, cell.metrics, {fraction: one.metrics for fraction, one in passed.items()}, cell.failed)
    return trial


class _Scorer:
    """Accuracy_C (Eq. 7 of the TrimTuner paper) of recommendations, as a share of the best feasible value."""

    def __init__(self, table: Table, study: Study) -> None:
        self._table, self._study, self._goal = table, study, study.problem.goal
        self._best = self._best_at(study.problem.target_fractions)

    def moment(self, trial: Trial, recommendation: Recommendation | None, ask_seconds: float) -> ReplayMoment:
        if recommendation is None:
            return ReplayMoment(
                self._study.spent, 0.0, {}, 1.0, trial.fraction, self._elapsed(), ask_seconds, 0.0, False
            )
        cell = self._table.cell(recommendation.config, recommendation.fraction)
        constraints = self._study.problem.constraints
        return ReplayMoment(
            spent=self._study.spent,
            quality=self._quality(cell, constraints),
            config=dict(recommendation.config),
            recommended_fraction=recommendation.fraction,
            fraction=trial.fraction,
            time=self._elapsed(),
            ask_seconds=ask_seconds,
            chance_feasible=recommendation.chance_feasible,
            is_feasible=cell.is_within(constraints),
        )

    def is_best(self, recommendation: Recommendation) -> bool:
        """Whether nothing that the method could recommend is better."""
        value = self._table.cell(recommendation.config, recommendation.fraction).metrics[self._goal.metric]
        reachable = self._study.recipe.narrow(self._study.problem).target_fractions
        return recommendation.chance_feasible == 1.0 and value == self._best_at(reachable)

    def _best_at(self, fractions: tuple[float, ...]) -> float:
        problem = self._study.problem
        values = list(self._table.feasible_values(self._goal.metric, problem.constraints, fractions))
        if not values:
            limits = ", ".join(constraint.text for constraint in problem.constraints)
            raise InputError(f"no configuration of table {self._table.name!r} meets {limits}")
        return max(values) if self._goal.sign > 0 else min(values)

    def _elapsed(self) -> float:
        return sum(outcome.time or 0.0 for outcome in self._study.history.outcomes)

    def _quality(self, cell: Cell, constraints: Sequence[Constraint]) -> float:
        if cell.failed is not None:
            return 0.0
        value = cell.metrics[self._goal.metric]
        # A minimised goal below the best feasible one is no merit: it can only come from breaking a limit.
        share = value / self._best if self._goal.sign > 0 else min(self._best / value, 1.0)
        for constraint in constraints:
            measured = cell.metrics[constraint.metric]
            if not constraint.is_met(measured):
                share *= constraint.limit / measured if constraint.is_upper else measured / constraint.limit
        return share
