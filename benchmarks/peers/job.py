"""A table as a peer sees it: parameters with types, fractions, limits, and the configuration nearest to a wish."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.scoring import constrained_value
from trimtuner.arrays import Floats
from trimtuner.engines.table import Table
from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME, Problem

FAR = 100.0  # another name is farther than any number
LOG_RATIO = 8.0  # numbers that span this factor or more are meant in logs, as the package infers too


@dataclass(frozen=True)
class Names:
    """A parameter whose values have no order."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A parameter with ordered values; ``places`` are where they lie between 0 and 1, in logs where they span much."""

    name: str
    values: tuple[float, ...]

    @property
    def is_log(self) -> bool:
        return self.values[0] > 0 and self.values[-1] / self.values[0] >= LOG_RATIO

    @property
    def places(self) -> tuple[float, ...]:
        scaled = [math.log(value) for value in self.values] if self.is_log else list(self.values)
        return tuple((value - scaled[0]) / (scaled[-1] - scaled[0]) for value in scaled)


Parameter = Names | Numbers


@dataclass(frozen=True)
class Outcome:
    """What one trial gave; ``accuracy`` is None where it failed."""

    position: int
    fraction: float
    accuracy: float | None
    metrics: Mapping[str, float]
    cost: float


Proposal = tuple[int, float]  # position of the configuration, fraction of the data


class Job:
    """Everything a peer may know before the first trial."""

    def __init__(self, table: Table) -> None:
        if table.maximize is None:
            raise InputError(f"table {table.name!r} has nothing to maximise")
        self._table, self._metric = table, table.maximize
        self.count = len(table.configurations)
        self.fractions = table.space.fractions
        self._problem = Problem.of(table.space, table.maximize, None, table.constraints, None)
        self.constraints = self._problem.constraints
        self.parameters = _parameters_of(table.configurations)

    def configuration(self, position: int) -> Mapping[str, Value]:
        return self._table.configurations[position]

    def measure(self, proposal: Proposal) -> Outcome:
        position, fraction = proposal
        cell = self._table.cell(self.configuration(position), fraction)
        accuracy = None if cell.failed is not None else cell.metrics[self._metric]
        return Outcome(position, fraction, accuracy, cell.metrics, cell.metrics[COST])

    def charge(self, outcome: Outcome) -> float:
        """What the trial is charged: no more than if it had been stopped, well over a limit, as ours are.

        The peer is told all the same what it came to, which no stopped run would tell.
        """
        price = self._table.space.price_per_hour(dict(self.configuration(outcome.position))) or 0.0
        stopped = self._problem.seconds_until_stopped(price) * price / 3600.0 if price else math.inf
        return min(outcome.cost, stopped)

    def nearest(self, wish: Mapping[str, str | float]) -> int:
        """The configuration with the fewest other names, then the nearest numbers, given by their places (0 to 1)."""
        distance = np.zeros(self.count)
        for parameter, codes in zip(self.parameters, self._codes.T, strict=True):
            wanted = wish[parameter.name]
            if isinstance(parameter, Names):
                distance += FAR * (codes != parameter.values.index(wanted))
            else:
                distance += np.abs(np.array(parameter.places)[codes] - wanted)
        return int(np.argmin(distance))

    def nearest_fraction(self, fraction: float) -> float:
        """In logs: a third lies nearer to a quarter than to a half."""
        return min(self.fractions, key=lambda offered: abs(math.log(offered / fraction)))

    def wish_for(self, position: int) -> dict[str, str | float]:
        """The wish that this configuration fulfils: names, and the places of numbers."""
        wish: dict[str, str | float] = {}
        for parameter, code in zip(self.parameters, self._codes[position], strict=True):
            wish[parameter.name] = (parameter.values if isinstance(parameter, Names) else parameter.places)[code]
        return wish

    @cached_property
    def features(self) -> Floats:
        """A row for each configuration: numbers between 0 and 1, names one-hot, and the log price where it is known."""
        columns: list[Floats] = []
        for parameter, codes in zip(self.parameters, self._codes.T, strict=True):
            if isinstance(parameter, Numbers):
                columns.append(np.array(parameter.places)[codes])
            else:
                columns.extend((codes == place).astype(float) for place in range(len(parameter.values)))
        prices = [self._table.space.price_per_hour(dict(one)) for one in self._table.configurations]
        if None not in prices and min(prices) < max(prices):
            logs = np.log(prices)
            columns.append((logs - logs.min()) / np.ptp(logs))
        return np.stack(columns, axis=1)

    def is_feasible(self, outcome: Outcome) -> bool:
        """Whether this very trial was within the limits."""
        return outcome.accuracy is not None and all(one.is_met(outcome.metrics[one.metric]) for one in self.constraints)

    def accuracy_c(self, outcome: Outcome) -> float:
        """Accuracy, scaled down for limits that the trial broke; 0 for a failure."""
        if outcome.accuracy is None:
            return 0.0
        return constrained_value(outcome.accuracy, outcome.metrics, self.constraints)

    def extrapolated(self, outcome: Outcome, exponent: float = 1.0) -> Outcome:
        """With the cost and time that full data would take if they grew as this power of the fraction."""
        more = outcome.fraction**-exponent
        metrics = {name: value * more if name in (COST, TIME) else value for name, value in outcome.metrics.items()}
        return Outcome(outcome.position, 1.0, outcome.accuracy, metrics, outcome.cost * more)

    @cached_property
    def _codes(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        rows = [
            [parameter.values.index(one[parameter.name]) for parameter in self.parameters]
            for one in self._table.configurations
        ]
        return np.array(rows)


def _parameters_of(configurations: Sequence[Mapping[str, Value]]) -> tuple[Parameter, ...]:
    """A parameter with the same value everywhere is none."""
    found: list[Parameter] = []
    for name in configurations[0]:
        values = {one[name] for one in configurations}
        if len(values) > 1:
            has_order = not any(isinstance(value, str) for value in values)
            found.append(
                Numbers(name, tuple(sorted(values))) if has_order else Names(name, tuple(sorted(values, key=str)))
            )
    return tuple(found)
