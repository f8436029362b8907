"""One axis of a space: a parameter, or the machines taken together.

Every value of an axis has a number, its code (-1: it has none, as its condition does not hold), and encoded columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from trimtuner.arrays import Floats, Positions
from trimtuner.errors import InputError
from trimtuner.problem.cloud import Cloud, Cluster
from trimtuner.problem.expressions import Expression, Value
from trimtuner.problem.machines import Machine, MachineScale
from trimtuner.problem.parameters import MIDDLE, Choice, Float, Int
from trimtuner.problem.values import is_number, number_in, told_apart

Configuration: TypeAlias = dict[str, Value]


class Stranger(NamedTuple):
    """A configuration of another space, with what its machines are, where that is known."""

    configuration: Mapping[str, Value]
    machine: Machine | None


class _OneName:
    """What axes of a single parameter share: no value unless its condition holds."""

    name: str
    condition: Expression | None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def is_active(self, chosen: Mapping[str, Value]) -> bool:
        """Whether the axis has a value, given what was chosen on earlier axes."""
        return self.condition is None or self.condition.holds(chosen)

    def _is_given(self, configuration: Mapping[str, Value]) -> bool:
        """Whether there is a value to check; raises where there should be one, or should not."""
        active, given = self.is_active(configuration), self.name in configuration
        if active and not given:
            raise InputError(f"the configuration has no {self.name!r}")
        if given and not active and self.condition is not None:
            raise InputError(f"{self.name!r} has a value though its condition {self.condition.text!r} does not hold")
        return given

    def _number_columns_of_strangers(
        self, strangers: Sequence[Stranger], parameter: Choice | Int | Float, width: int
    ) -> Floats:
        columns = np.full((len(strangers), width), math.nan)
        for position, (configuration, _) in enumerate(strangers):
            value = configuration.get(self.name)
            if self.name not in configuration and self.condition is not None:
                columns[position] = MIDDLE
            elif is_number(value) and (parameter.scale == "linear" or value > 0):
                columns[position] = 0.0  # a column beyond the first is of None
                columns[position, 0] = parameter.encode(np.array(float(value)))
            elif value is None and self.name in configuration and width > 1:
                columns[position] = MIDDLE, 1.0
        return columns


class DiscreteAxis(_OneName):
    """A parameter with a list of values."""

    def __init__(self, name: str, choice: Choice, columns: Floats | None = None) -> None:
        self.name = name
        self.choice = choice
        self.condition = choice.when
        encoded = choice.columns_of_values() if columns is None else columns
        # The last row is for "not active", so that code -1 finds it.
        self._columns = np.vstack([encoded, np.full((1, encoded.shape[1]), MIDDLE)])
        self._positions = {told_apart(value): i for i, value in enumerate(choice.values)}

    @property
    def size(self) -> float:
        return len(self.choice.values)

    def check(self, configuration: Mapping[str, Value]) -> None:
        """Refuse a configuration whose value on this axis is not offered."""
        if self._is_given(configuration):
            self.choice.position(configuration[self.name])

    def values_at(self, unit: float) -> Configuration:
        """The value at a coordinate in [0, 1)."""
        return self.values_of_code(int(unit * len(self.choice.values)))

    def values_of_code(self, code: int) -> Configuration:
        return {} if code < 0 else {self.name: self.choice.values[code]}

    def neighbour(self, anchor: Mapping[str, Value], reach: float, generator: np.random.Generator) -> Configuration:
        """A value near the anchor's."""
        count = len(self.choice.values)
        if self.choice.scale is None:
            return self.values_of_code(int(generator.integers(count)))
        step = max(1, round(abs(generator.normal(0.0, reach)) * count)) * generator.choice([-1, 1])
        # None beside numbers comes after the last of them.
        ascending = np.argsort(
            [math.inf if value is None else number_in(value) for value in self.choice.values], kind="stable"
        )
        rank = int(np.nonzero(ascending == self.choice.position(anchor[self.name]))[0][0]) + step
        return self.values_of_code(int(ascending[np.clip(rank, 0, count - 1)]))

    def columns_of_codes(self, codes: Positions) -> Floats:
        return np.asarray(self._columns[codes])

    def columns_of_configurations(self, configurations: Sequence[Mapping[str, Value]]) -> Floats:
        codes = [self._code(configuration) for configuration in configurations]
        return self.columns_of_codes(np.array(codes))

    def columns_of_strangers(self, strangers: Sequence[Stranger]) -> Floats:
        """Columns of configurations of another space, offered here or not; NaN for those that say nothing here."""
        if self.choice.scale is not None:
            return self._number_columns_of_strangers(strangers, self.choice, self._columns.shape[1])
        columns = np.full((len(strangers), self._columns.shape[1]), math.nan)
        for position, (configuration, _) in enumerate(strangers):
            is_given = self.name in configuration
            if told_apart(configuration[self.name]) in self._positions if is_given else self.condition is not None:
                columns[position] = self._columns[self._code(configuration)]
        return columns

    def _code(self, configuration: Mapping[str, Value]) -> int:
        return self._positions[told_apart(configuration[self.name])] if self.name in configuration else -1


class ContinuousAxis(_OneName):
    """A parameter with more values than can be listed."""

    def __init__(self, name: str, parameter: Int | Float) -> None:
        self.name = name
        self._parameter = parameter
        self.condition = parameter.when

    @property
    def size(self) -> float:
        return self._parameter.count if isinstance(self._parameter, Int) else math.inf

    def check(self, configuration: Mapping[str, Value]) -> None:
        if not self._is_given(configuration):
            return
        value, parameter = configuration[self.name], self._parameter
        kind = int | float if isinstance(parameter, Float) else int
        if isinstance(value, bool) or not isinstance(value, kind) or not parameter.min <= value <= parameter.max:
            raise InputError(f"{self.name}={value!r} is outside {parameter.min!r} to {parameter.max!r}")

    def values_at(self, unit: float) -> Configuration:
        return {self.name: self._parameter.decode(unit)}

    def values_of_code(self, code: int) -> Configuration:
        return {} if code < 0 else {self.name: int(self._parameter.min) + code}

    def neighbour(self, anchor: Mapping[str, Value], reach: float, generator: np.random.Generator) -> Configuration:
        here = float(self._parameter.encode(np.array(number_in(anchor[self.name]))))
        return self.values_at(float(np.clip(here + generator.normal(0.0, reach), 0.0, 1.0)))

    def columns_of_codes(self, codes: Positions) -> Floats:
        encoded = self._parameter.encode(self._parameter.min + np.maximum(codes, 0))
        return np.where(codes < 0, MIDDLE, encoded)[:, None]

    def columns_of_configurations(self, configurations: Sequence[Mapping[str, Value]]) -> Floats:
        given = np.array([self.name in configuration for configuration in configurations])
        values = np.array([number_in(one.get(self.name, self._parameter.min)) for one in configurations])
        return np.where(given, self._parameter.encode(values), MIDDLE)[:, None]

    def columns_of_strangers(self, strangers: Sequence[Stranger]) -> Floats:
        return self._number_columns_of_strangers(strangers, self._parameter, 1)


class ClusterAxis:
    """The machines of a cloud: type, count and market chosen together, since not every pair is allowed."""

    condition: Expression | None = None

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._clusters = cloud.clusters
        machines = [self._machine(cluster) for cluster in self._clusters]
        self._scale = MachineScale.of(machines)
        self._columns = self._scale.columns(machines)
        if len(np.unique(self._columns, axis=0)) < len(self._clusters):
            # Types that look the same on paper are told apart by their names.
            names = Choice(cloud.vms).columns_of_values()
            types = list(cloud.vms)
            self._columns = np.hstack([self._columns, names[[types.index(c.vm_type) for c in self._clusters]]])
        prices = np.array([cloud.price_per_hour(cluster) for cluster in self._clusters])
        self.prices_per_hour = None if cloud.is_free else prices
        interruptions = np.array([cloud.interruptions_per_hour(cluster) for cluster in self._clusters])
        self.interruptions_per_hour = interruptions if interruptions.any() else None
        self._codes = {cluster: code for code, cluster in enumerate(self._clusters)}

    @property
    def names(self) -> tuple[str, ...]:
        return ("vm_type", "vm_count") if len(self._cloud.markets) == 1 else ("vm_type", "vm_count", "market")

    @property
    def size(self) -> float:
        return len(self._clusters)

    def code(self, configuration: Mapping[str, Value]) -> int:
        """The number of the machines that the configuration names; an error where the cloud does not offer them."""
        named = self._named(configuration)
        if named not in self._codes:
            raise InputError(f"the cloud does not offer {named.vm_count!r} of {named.vm_type!r} ({named.market})")
        return self._codes[named]

    def machine(self, configuration: Mapping[str, Value]) -> Machine | None:
        """What the machines that the configuration names are; nothing where the cloud does not offer them."""
        named = self._named(configuration)
        return self._machine(named) if named in self._codes else None

    def is_active(self, chosen: Mapping[str, Value]) -> bool:  # noqa: ARG002  (machines are always chosen)
        return True

    def check(self, configuration: Mapping[str, Value]) -> None:
        self.code(configuration)

    def values_at(self, unit: float) -> Configuration:
        return self.values_of_code(int(unit * len(self._clusters)))

    def values_of_code(self, code: int) -> Configuration:
        return self._cloud.parameter_values(self._clusters[code])

    def neighbour(self, anchor: Mapping[str, Value], reach: float, generator: np.random.Generator) -> Configuration:
        here = self._columns[self.code(anchor)]
        distance = ((self._columns - here) ** 2).sum(axis=1)
        nearest_codes = np.argsort(distance, kind="stable")[1 : 2 + round(reach * len(self._clusters))]
        return self.values_of_code(int(generator.choice(nearest_codes)) if len(nearest_codes) else 0)

    def columns_of_codes(self, codes: Positions) -> Floats:
        return np.asarray(self._columns[codes])

    def columns_of_configurations(self, configurations: Sequence[Mapping[str, Value]]) -> Floats:
        return self.columns_of_codes(np.array([self.code(configuration) for configuration in configurations]))

    def columns_of_strangers(self, strangers: Sequence[Stranger]) -> Floats:
        columns = np.full((len(strangers), self._columns.shape[1]), math.nan)
        for position, (configuration, machine) in enumerate(strangers):
            named = self._named(configuration)
            if named in self._codes:  # whatever its price was then
                columns[position] = self._columns[self._codes[named]]
            elif machine is not None:
                placed = self._scale.columns([machine])
                columns[position] = 0.0  # columns beyond the scale's are of names, and it bears none of them
                columns[position, : placed.shape[1]] = placed
        return columns

    def _named(self, configuration: Mapping[str, Value]) -> Cluster:
        market = configuration.get("market", self._cloud.markets[0])
        return Cluster(configuration.get("vm_type"), configuration.get("vm_count"), market)  # type: ignore[arg-type]

    def _machine(self, cluster: Cluster) -> Machine:
        return Machine(self._cloud.vms[cluster.vm_type], cluster.vm_count, cluster.market == "spot")


Axis: TypeAlias = DiscreteAxis | ContinuousAxis | ClusterAxis
