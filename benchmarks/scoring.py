"""What a recommendation is worth in truth: the measure of ``trimtuner replay``, for any configuration of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trimtuner.engines.table import Cell, Table
from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import Constraint
from trimtuner.study.replay import ReplayRun


def constrained_value(value: float, metrics: Mapping[str, float], constraints: tuple[Constraint, ...]) -> float:
    """Accuracy_C (Eq. 7 of the TrimTuner paper): scaled by limit / measured, or its inverse, for each broken limit."""
    for constraint in constraints:
        measured = metrics[constraint.metric]
        if not constraint.is_met(measured):
            value *= constraint.limit / measured if constraint.is_upper else measured / constraint.limit
    return value


class Scorer:
    """Accuracy_C at full data as a share of the best feasible accuracy, by one table that is taken for the truth."""

    def __init__(self, truth: Table) -> None:
        if truth.maximize is None:
            raise InputError(f"table {truth.name!r} has nothing to maximise; the comparison is of accuracy")
        self._truth, self._metric = truth, truth.maximize
        self._constraints = tuple(Constraint.parse(text) for text in truth.constraints)
        values = list(truth.feasible_values(self._metric, self._constraints, (1.0,)))
        if not values:
            raise InputError(f"no configuration of table {truth.name!r} meets {', '.join(truth.constraints)}")
        self._best = max(values)

    def quality(self, configuration: Mapping[str, Value]) -> float:
        """0 for one that fails at full data."""
        cell = self._cell(configuration)
        if cell.failed is not None:
            return 0.0
        return constrained_value(cell.metrics[self._metric], cell.metrics, self._constraints) / self._best

    def is_feasible(self, configuration: Mapping[str, Value]) -> bool:
        """Whether it runs within every limit."""
        cell = self._cell(configuration)
        return cell.failed is None and all(one.is_met(cell.metrics[one.metric]) for one in self._constraints)

    def rescore(self, run: ReplayRun) -> ReplayRun:
        """A run that was replayed on other (noisy) measurements, judged by this table."""
        moments = tuple(
            replace(one, quality=self.quality(one.config), is_feasible=self.is_feasible(one.config))
            if one.config
            else one
            for one in run.moments
        )
        return replace(run, moments=moments)

    def _cell(self, configuration: Mapping[str, Value]) -> Cell:
        return self._truth.cell(configuration, 1.0)
