"""The searches behind ``calibration.py``: the default run to its end, what it says after every trial, and the truth.

Kept after each trial: the chance that the recommendation is feasible, whether it is, where the true accuracy and cost
lie within what was predicted, and the two sides of the stop rule's comparison for the next trial.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.kept import Columns, identity_of, load_table, unit_of
from benchmarks.least_cost import BUDGET_UNITS as LEAST_COST_UNITS
from benchmarks.least_cost import DEFAULT, scenarios_of
from benchmarks.scoring import constrained_value
from benchmarks.variants import tighten
from trimtuner.decisions.belief import Belief
from trimtuner.decisions.stopping import Prospect, Stop, gain_of_going_on
from trimtuner.engines.table import Cell, Table
from trimtuner.errors import InputError, SearchOver
from trimtuner.problem.history import History
from trimtuner.problem.problem import COST, Problem
from trimtuner.study.study import Study
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import recipe_named

BUDGET_UNITS = 20.0  # of a search for the best accuracy; the method does not know of it
ACCURACY_GOAL, TIGHT_GOAL, COST_GOAL = "accuracy", "tight", "cost"
COLUMNS = (
    "spent",  # USD so far
    "quality",  # of the recommendation in truth, as a share of the best
    "fraction",  # of the trial
    "feasible",  # the recommendation in truth, 0 or 1
    "chance",  # that it is, as it says
    "measured",  # whether exactly it was tested, 0 or 1
    "z_accuracy",  # deviations of the truth from the prediction, on the model's scale; only where not measured
    "z_cost",
    "gain",  # of knowing everything, in the goal's units, when the next trial is asked
    "price",  # of that trial, as expected, USD
    "cpu",  # seconds for asking and fitting
)


@dataclass(frozen=True)
class Search:
    """One search of the default."""

    table: str
    goal: str
    seed: int
    trials: int

    def identity(self) -> dict[str, object]:
        """As the file of results knows it."""
        return identity_of(self.table, DEFAULT, self.seed, self.trials) | {"goal": self.goal, **self._more()}

    def _more(self) -> dict[str, object]:
        measured = load_table(self.table)
        if self.goal == COST_GOAL:
            scenario = scenarios_of(self.table)[0]
            return {"limits": list(scenario.limits), "budget": scenario.budget}
        limits = tighten(measured, self.seed).constraints if self.goal == TIGHT_GOAL else measured.constraints
        return {"limits": list(limits), "cut_off": BUDGET_UNITS * unit_of(measured)}

    def study(self, watch: Stop) -> Study:
        """At its beginning. ``watch`` takes the place of the method's own stop: the search goes on to its end."""
        measured, more = load_table(self.table), self._more()
        is_least_cost = self.goal == COST_GOAL
        return Study(
            measured.space.with_snapshots(False),
            maximize=None if is_least_cost else measured.maximize,
            minimize=COST if is_least_cost else None,
            constraints=more["limits"],  # type: ignore[arg-type]
            method=recipe_named(DEFAULT).but(stop=watch),
            seed=self.seed,
            budget=more.get("budget"),  # type: ignore[arg-type]
        )

    @property
    def most_usd(self) -> float:
        """At which it is cut off."""
        units = LEAST_COST_UNITS if self.goal == COST_GOAL else BUDGET_UNITS
        return units * unit_of(load_table(self.table))


@dataclass(frozen=True)
class Watch(Stop):
    """The two sides of NotWorthItsPrice's comparison at every ask, but for the worth; it never stops."""

    seen: list[tuple[float, float]] = field(default_factory=list)  # gain in the goal's units, price in USD

    def reason(self, history: History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        """Nothing is seen while the design goes on."""
        self.seen.append(
            (math.nan, math.nan) if prospect is None else (gain_of_going_on(prospect.outlook), prospect.price)
        )
        return None


class Truth:
    """What the table says of a recommendation, by the measure of ``trimtuner replay``."""

    def __init__(self, measured: Table, problem: Problem) -> None:
        self._goal, self._constraints = problem.goal, problem.constraints
        values = list(measured.feasible_values(self._goal.metric, self._constraints, problem.target_fractions))
        if not values:
            raise InputError(f"nothing in table {measured.name!r} meets its limits")
        self._best = max(values) if self._goal.sign > 0 else min(values)

    def quality(self, cell: Cell) -> float:
        """As a share of the best feasible, scaled down where a limit is broken; 0 for a failure."""
        if cell.failed is not None:
            return 0.0
        value = cell.metrics[self._goal.metric]
        share = value / self._best if self._goal.sign > 0 else min(self._best / value, 1.0)
        return constrained_value(share, cell.metrics, self._constraints)

    def is_feasible(self, cell: Cell) -> bool:
        """Whether it runs within every limit."""
        return cell.failed is None and all(one.is_met(cell.metrics[one.metric]) for one in self._constraints)


def run_search(search: Search) -> Columns:
    """The search to its end, with one entry a trial in every column."""
    with threadpool_limits(1):
        rows = _rows(search)
    return {name: [_plain(row.get(name, math.nan)) for row in rows] for name in COLUMNS}


def _rows(search: Search) -> list[dict[str, float]]:
    """By the tuner itself, not through the study, so that the belief is at hand."""
    measured, watch = load_table(search.table), Watch()
    study = search.study(watch)
    problem, recipe, truth = study.problem, study.recipe, Truth(measured, study.problem)
    metric = measured.maximize or ""
    belief: Belief | None = None
    rows: list[dict[str, float]] = []
    while len(rows) < search.trials and study.spent < search.most_usd:
        started = time.process_time()
        try:
            trial = tuner.ask(problem, recipe, study.history, search.seed, belief)
        except SearchOver:
            break
        study.history = study.history.with_asked(trial)
        cell = measured.cell(trial.config, trial.fraction)
        study.tell_report(trial, cell.metrics, {}, cell.failed)
        row = {"spent": study.spent, "quality": 0.0, "fraction": trial.fraction}
        if study.history.measurements:
            belief = tuner.believe(problem, recipe, study.history, search.seed)
            target = tuner.recommend(recipe, belief, study.history)
            row |= _row(belief, target, measured, truth, (metric, COST))
        rows.append(row | {"cpu": time.process_time() - started})
    # The rule speaks before a trial: what it saw at the second ask belongs to the state after the first trial.
    for row, (gain, price) in zip(rows, watch.seen[1:], strict=False):
        row |= {"gain": gain, "price": price}
    return rows


def _row(belief: Belief, target: int, measured: Table, truth: Truth, metrics: tuple[str, str]) -> dict[str, float]:
    place = belief.targets.at(np.array([target]))
    cell = measured.cell(belief.pool.configuration(int(place.positions[0])), float(place.fractions[0]))
    is_measured = target in belief.measured_targets
    row = {
        "quality": truth.quality(cell),
        "feasible": float(truth.is_feasible(cell)),
        "chance": belief.feasible_at(target),
        "measured": float(is_measured),
    }
    if not is_measured and cell.failed is None:
        for name, metric in zip(("z_accuracy", "z_cost"), metrics, strict=True):
            row[name] = deviations(belief, target, metric, cell.metrics[metric])
    return row


def deviations(belief: Belief, target: int, metric: str, value: float) -> float:
    """How far a value is from what a run there is predicted to measure, in standard deviations of the prediction."""
    quantity = belief.quantity_of(metric)
    mean, variance = belief.predict(metric, belief.targets.at(np.array([target])))
    spread = math.sqrt(float(variance[0]) + quantity.posterior.noise_variance)
    return (float(quantity.transform.forward(np.array(value))) - float(mean[0])) / spread


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
