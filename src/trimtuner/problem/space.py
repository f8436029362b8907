"""The space of configurations: the only place where configurations become rows of numbers and back.

A pool is all of a space, or where that cannot be listed, those configurations that stand for it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.errors import InputError, nearest
from trimtuner.problem.axes import Axis, ClusterAxis, Configuration, ContinuousAxis, DiscreteAxis, Stranger
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.inference import infer_axes
from trimtuner.problem.machines import Machine, scaled_to_unit
from trimtuner.problem.parameters import Choice, Float, Int, NoDefault, Parameter
from trimtuner.problem.values import is_number, plain_value, told_apart

Key: TypeAlias = tuple[Hashable, ...]


class Pool:
    """Configurations to choose among, each with its row of numbers and its price per hour.

    ``interruptions_per_hour`` is how often the machines of each are taken away; None where none ever are.
    """

    def __init__(
        self,
        rows: Floats,
        prices_per_hour: Floats | None,
        configuration: Callable[[int], Configuration],
        key: Callable[[Mapping[str, Value]], Key],
        lasting: int | None = None,
        interruptions_per_hour: Floats | None = None,
        keys: Sequence[Key] | None = None,
    ) -> None:
        self.rows = rows
        self.lasting = len(rows) if lasting is None else lasting  # the first so many are there whatever was measured
        self.prices_per_hour = prices_per_hour
        self.configuration = configuration
        self.interruptions_per_hour = interruptions_per_hour
        self._key, self._keys = key, keys

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _positions(self) -> dict[Key, int]:
        keys = self._keys or [self._key(self.configuration(position)) for position in range(len(self))]
        return {key: position for position, key in enumerate(keys)}

    def __contains__(self, configuration: Mapping[str, Value]) -> bool:
        return self._key(configuration) in self._positions

    def position(self, configuration: Mapping[str, Value]) -> int:
        """Where the configuration stands in the pool."""
        return self._positions[self._key(configuration)]

    def without_interruptions(self) -> Pool:
        """The same configurations, were no machine ever taken away."""
        return Pool(self.rows, self.prices_per_hour, self.configuration, self._key, self.lasting)

    def rows_at(self, positions: Positions, fractions: Floats | float) -> Floats:
        """Rows as the models take them: the configuration's columns, then the fraction."""
        return np.column_stack([self.rows[positions], np.broadcast_to(fractions, np.shape(positions))])


def enumerated_codes(axes: Sequence[Axis]) -> Positions:
    """The codes of every configuration, one column an axis; -1 where a parameter is not active."""
    codes = np.zeros((1, 0), dtype=np.int64)
    for position, axis in enumerate(axes):
        active = _active_rows(axes[:position], codes, axis)
        with_value = np.hstack(
            [
                np.repeat(codes[active], int(axis.size), axis=0),
                np.tile(np.arange(int(axis.size)), int(active.sum()))[:, None],
            ]
        )
        without = np.hstack([codes[~active], np.full((int((~active).sum()), 1), -1)])
        codes = np.vstack([with_value, without])
    return codes


def _active_rows(earlier: Sequence[Axis], codes: Positions, axis: Axis) -> Booleans:
    condition = axis.condition
    if condition is None:
        return np.ones(len(codes), dtype=bool)
    named = [i for i, other in enumerate(earlier) if condition.names & set(other.names)]
    # A condition is asked once for each distinct combination of what it names, not once a configuration.
    combinations, inverse = np.unique(codes[:, named], axis=0, return_inverse=True)
    answers = []
    for combination in combinations:
        values: Configuration = {}
        for i, code in zip(named, combination, strict=True):
            values.update(earlier[i].values_of_code(int(code)))
        answers.append(condition.holds(values))
    return np.array(answers, dtype=bool)[inverse.reshape(-1)]


ENUMERATION_LIMIT = 100_000  # above this many configurations (11 s and 1.4 GiB an ask), a pool stands for the space
POOL_SIZE = 1024
NEIGHBOURS_OF_EACH = 48

_CLOUD_NAMES = ("vm_type", "vm_count", "market")


class Space:
    """Hyper-parameters and machines that may be chosen, and the data fractions that may be tested.

    ``parameters`` maps names to ``Choice``, ``Int`` or ``Float``; ``cloud`` adds ``vm_type``, ``vm_count`` and, where
    there is a choice, ``market``. With ``snapshots=True`` a run at one fraction passes the smaller ones on its way.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        cloud: Cloud | None = None,
        fractions: Iterable[float] = (1.0,),
        snapshots: bool = False,
    ) -> None:
        if not isinstance(parameters, Mapping):
            raise InputError(f"the parameters are a dict of name to tt.Choice, tt.Int or tt.Float, not {parameters!r}")
        if cloud is not None and not isinstance(cloud, Cloud):
            raise InputError(f"cloud={cloud!r} must be a tt.Cloud")
        self.parameters = dict(parameters)
        self.cloud = cloud
        self.fractions = _checked_fractions(fractions)
        self.snapshots = bool(snapshots)
        self.listed: tuple[Configuration, ...] | None = None  # where they were given one by one
        self.scaled_by_hand: Mapping[str, Choice] = {}  # of those, what was not left to be inferred
        self._listed_prices: Floats | None = None
        self._last_spread: tuple[int, Mapping[Key, Configuration], Floats] | None = None  # a study has one seed
        self._machines = None if cloud is None else ClusterAxis(cloud)
        self._axes = _axes_of(self.parameters, self._machines)

    @classmethod
    def from_configs(
        cls,
        configs: Iterable[Mapping[str, Value]],
        *,
        price_per_hour: Iterable[float] | None = None,
        fractions: Iterable[float] = (1.0,),
        snapshots: bool = False,
        parameters: Mapping[str, Choice] | None = None,
    ) -> Space:
        """An arbitrary finite set of configurations, each with its known price in USD per hour.

        How a value becomes a number is inferred (numbers spanning a factor of 8 or more in logs, names one-hot, VM
        types of the built-in catalog by what they are); ``parameters`` overrides it for the names it gives.
        """
        listed = _checked_configurations(configs)
        axes = infer_axes(listed, dict(parameters or {}))
        space = cls.__new__(cls)
        space.parameters = {axis.name: axis.choice for axis in axes}
        space.cloud = space._machines = None
        space.fractions = _checked_fractions(fractions)
        space.snapshots = bool(snapshots)
        space.listed = listed
        space.scaled_by_hand = dict(parameters or {})
        space._listed_prices = _checked_prices(price_per_hour, len(listed))
        space._axes = axes
        _refuse_duplicates(listed, space.key)
        return space

    def __repr__(self) -> str:
        fractions = ", ".join(f"{fraction:.4g}" for fraction in self.fractions)
        passing = ", snapshots=True" if self.snapshots else ""
        if self.listed is not None:
            return (
                f"Space.from_configs(<{len(self.listed)} of {', '.join(self.names)}>, fractions=[{fractions}]{passing})"
            )
        chosen = ", ".join(f"{name!r}: {parameter!r}" for name, parameter in self.parameters.items())
        cloud = (
            "" if self.cloud is None else f", cloud=<{len(self.cloud.clusters)} choices of {', '.join(self.cloud.vms)}>"
        )
        return f"Space({{{chosen}}}{cloud}, fractions=[{fractions}]{passing})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names a configuration may have, in order."""
        return tuple(name for axis in self._axes for name in axis.names)

    @property
    def has_prices(self) -> bool:
        """Whether an hour of every configuration has a known price."""
        return (self.cloud is not None and not self.cloud.is_free) or self._listed_prices is not None

    @property
    def size(self) -> float:
        """How many configurations there are at most (those of inactive parameters counted once each); may be inf."""
        if self.listed is not None:
            return len(self.listed)
        return math.prod(axis.size for axis in self._axes)

    @property
    def is_enumerable(self) -> bool:
        """Whether every configuration can be looked at."""
        return self.listed is not None or self.size <= ENUMERATION_LIMIT

    def with_snapshots(self, snapshots: bool) -> Space:
        """The same space, with or without snapshots on the way to a fraction."""
        other = copy.copy(self)
        other.snapshots = snapshots
        return other

    def with_fractions(self, fractions: tuple[float, ...]) -> Space:
        """The same space, with some of its fractions only."""
        if self.is_enumerable:
            self.pool()  # worked out once, for both
        other = copy.copy(self)
        other.fractions = fractions
        return other

    def price_per_hour(self, configuration: Mapping[str, Value]) -> float | None:
        """USD per hour of the machines of this configuration, where known."""
        if self._machines is not None and self._machines.prices_per_hour is not None:
            return float(self._machines.prices_per_hour[self._machines.code(configuration)])
        if self._listed_prices is not None:
            return float(self._listed_prices[self._whole_pool.position(configuration)])
        return None

    def interruptions_per_hour(self, configuration: Mapping[str, Value]) -> float:
        """How often the machines of this configuration are taken away; 0 where none are known to be."""
        if self._machines is None or self._machines.interruptions_per_hour is None:
            return 0.0
        return float(self._machines.interruptions_per_hour[self._machines.code(configuration)])

    def machine(self, configuration: Mapping[str, Value]) -> Machine | None:
        """What the machines of this configuration are, where the space has a cloud."""
        return None if self._machines is None else self._machines.machine(configuration)

    def rows_of_strangers(self, strangers: Sequence[Stranger]) -> Floats:
        """Rows of configurations of another space, with the columns of a pool's; NaN where they say nothing."""
        columns = [axis.columns_of_strangers(strangers) for axis in self._axes]
        if self._listed_prices is not None:  # other prices are no fact about these machines
            columns.append(np.full((len(strangers), 1), math.nan))
        rows = np.hstack(columns)
        return rows[:, self._varying_columns] if self.is_enumerable else rows

    def key(self, configuration: Mapping[str, Value]) -> Key:
        """What makes two configurations the same."""
        return tuple(told_apart(configuration[name]) if name in configuration else None for name in self.names)

    def check(self, configuration: Mapping[str, Value]) -> None:
        """Refuse a configuration that the space does not offer."""
        for name in configuration:
            if name not in self.names:
                raise InputError(f"{name!r} is no parameter of this space{nearest(name, self.names)}")
        if self.listed is not None:
            if configuration not in self._whole_pool:
                raise InputError(f"the configuration {dict(configuration)!r} is not one of those listed")
            return
        for axis in self._axes:
            axis.check(configuration)

    def completed(self, configuration: Mapping[str, Value]) -> Configuration:
        """With the default of each parameter that it has no value of and should have, as when it was not there yet."""
        found = dict(configuration)
        for name, parameter in self.parameters.items():
            is_wanted = name not in found and (parameter.when is None or parameter.when.holds(found))
            if is_wanted and not isinstance(parameter.default, NoDefault):
                found[name] = parameter.default
        return {name: found[name] for name in dict.fromkeys((*self.names, *found)) if name in found}

    def as_written(self, configuration: Mapping[str, Value]) -> Configuration:
        """The configuration as the space writes it, where 16 may be 16.0; refused if it is not offered."""
        self.check(configuration)
        if not self.is_enumerable:
            return dict(configuration)
        return self._whole_pool.configuration(self._whole_pool.position(configuration))

    def nearest_fraction(self, fraction: float) -> float:
        """The offered fraction meant by a number that may have been rounded on its way."""
        offered = min((*self.fractions, 1.0), key=lambda one: abs(one - fraction))
        if math.isclose(offered, fraction, rel_tol=1e-4):
            return offered
        listed = ", ".join(f"{offered:g}" for offered in self.fractions)
        raise InputError(f"fraction {fraction!r} is none of those offered: {listed}")

    def pool(self, keep: Sequence[Configuration] = (), near: Sequence[Configuration] = (), seed: int = 0) -> Pool:
        """Every configuration where they can be enumerated; else a quasi-random set of them.

        The latter always holds ``keep``, and neighbours of ``near`` so that the search can close in on what is good.
        """
        if self.is_enumerable:
            return self._whole_pool
        lasting, lasting_rows = self._spread(seed)
        close = [
            neighbour
            for position, anchor in enumerate(near)
            for neighbour in self._neighbours(anchor, np.random.default_rng([seed, position, len(keep)]))
        ]
        moving = {key: one for one in (*keep, *close) if (key := self.key(one)) not in lasting}
        rows = np.vstack([lasting_rows, self._rows_of(list(moving.values()))]) if moving else lasting_rows
        listed = [*lasting.values(), *moving.values()]
        return self._pool_of(listed, rows, len(lasting), [*lasting, *moving])

    def pool_holding(self, configurations: Sequence[Mapping[str, Value]]) -> Pool:
        """A pool with all of these in it, whatever else; none of them need be among those that stand for the space."""
        if self.is_enumerable:
            return self._whole_pool
        return self.pool_of(list({self.key(one): dict(one) for one in configurations}.values()))

    def pool_of(self, configurations: Sequence[Configuration]) -> Pool:
        """Just these configurations, of a space that cannot be enumerated."""
        return self._pool_of(configurations, self._rows_of(configurations))

    def _pool_of(
        self,
        listed: Sequence[Configuration],
        rows: Floats,
        lasting: int | None = None,
        keys: Sequence[Key] | None = None,
    ) -> Pool:
        machines = None if self._machines is None else np.array([self._machines.code(one) for one in listed])
        return self._pool(rows, lambda position: dict(listed[position]), machines, lasting, keys)

    def _spread(self, seed: int) -> tuple[Mapping[Key, Configuration], Floats]:
        """What every pool of a seed holds, with its rows: the same at every ask, and worked out at the first."""
        known = self._last_spread
        if known is None or known[0] != seed:
            distinct = {self.key(one): one for one in self._quasi_random_configurations(POOL_SIZE, seed)}
            known = self._last_spread = (seed, distinct, self._rows_of(list(distinct.values())))
        return known[1], known[2]

    def _rows_of(self, configurations: Sequence[Configuration]) -> Floats:
        return np.hstack([axis.columns_of_configurations(configurations) for axis in self._axes])

    @cached_property
    def _codes(self) -> Positions:
        return enumerated_codes(self._axes)

    @cached_property
    def _whole_rows(self) -> Floats:
        if self.listed is None:
            return np.hstack([axis.columns_of_codes(self._codes[:, i]) for i, axis in enumerate(self._axes)])
        columns = [axis.columns_of_configurations(self.listed) for axis in self._axes]
        if self._listed_prices is not None:  # what is known of machines that are only named
            columns.append(scaled_to_unit(np.log(self._listed_prices))[:, None])
        return np.hstack(columns)

    @cached_property
    def _varying_columns(self) -> Positions:
        """Without the columns that are the same for every configuration: they tell nothing apart."""
        varying = np.nonzero(np.ptp(self._whole_rows, axis=0) > 0)[0]
        return varying if len(varying) else np.array([0])

    @cached_property
    def _whole_pool(self) -> Pool:
        rows, listed = self._whole_rows[:, self._varying_columns], self.listed
        if listed is not None:
            return self._pool(rows, lambda position: dict(listed[position]))
        codes = self._codes

        def configuration(position: int) -> Configuration:
            chosen: Configuration = {}
            for axis, code in zip(self._axes, codes[position], strict=True):
                chosen.update(axis.values_of_code(int(code)))
            return chosen

        return self._pool(rows, configuration, codes[:, 0])

    def _pool(
        self,
        rows: Floats,
        configuration: Callable[[int], Configuration],
        machines: Positions | None = None,  # their codes, where the space has a cloud
        lasting: int | None = None,
        keys: Sequence[Key] | None = None,
    ) -> Pool:
        prices, interruptions = self._listed_prices, None
        if self._machines is not None:
            prices, interruptions = self._machines.prices_per_hour, self._machines.interruptions_per_hour
            prices = None if prices is None else prices[machines]
            interruptions = None if interruptions is None else interruptions[machines]
        return Pool(rows, prices, configuration, self.key, lasting, interruptions, keys)

    def _quasi_random_configurations(self, count: int, seed: int) -> list[Configuration]:
        """Roberts' additive recurrence in the unit cube: even, cheap, and extends without change."""
        dimension = len(self._axes)
        golden = 2.0
        for _ in range(40):  # the fixed point of g^(d+1) = g + 1
            golden = (1.0 + golden) ** (1.0 / (dimension + 1))
        steps = golden ** -np.arange(1, dimension + 1)
        start = np.random.default_rng([seed, 1]).random(dimension)
        units = (start + np.arange(1, count + 1)[:, None] * steps) % 1.0
        return [self._configuration_at(unit) for unit in units]

    def _configuration_at(self, unit: Floats) -> Configuration:
        chosen: Configuration = {}
        for axis, coordinate in zip(self._axes, unit, strict=True):
            if axis.is_active(chosen):
                chosen.update(axis.values_at(float(coordinate)))
        return chosen

    def _neighbours(self, anchor: Configuration, generator: np.random.Generator) -> list[Configuration]:
        found = []
        for number in range(NEIGHBOURS_OF_EACH):
            reach = (0.2, 0.05, 0.0125)[number % 3]
            moving = generator.random(len(self._axes)) < max(0.3, 1.0 / len(self._axes))
            moving[generator.integers(len(self._axes))] = True
            chosen: Configuration = {}
            for axis, moves in zip(self._axes, moving, strict=True):
                if not axis.is_active(chosen):
                    continue
                if not all(name in anchor for name in axis.names):
                    chosen.update(axis.values_at(generator.random()))
                elif moves:
                    chosen.update(axis.neighbour(anchor, reach, generator))
                else:
                    chosen.update({name: anchor[name] for name in axis.names})
            found.append(chosen)
        return found


def _axes_of(parameters: Mapping[str, Parameter], machines: ClusterAxis | None) -> tuple[Axis, ...]:
    if not parameters and machines is None:
        raise InputError("the space is empty; give parameters, a cloud, or both")
    axes: list[Axis] = [] if machines is None else [machines]  # first: a condition may name them
    known = {name for axis in axes for name in axis.names}
    for name, parameter in parameters.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{name!r} is no name for a parameter; use letters, digits and underscores")
        if machines is not None and name in _CLOUD_NAMES:
            raise InputError(f"the parameter {name!r} is also what the cloud chooses; rename it")
        if not isinstance(parameter, Choice | Int | Float):
            raise InputError(f"the parameter {name!r} is {parameter!r}; write tt.Choice, tt.Int or tt.Float")
        if parameter.when is not None:
            parameter.when.require_names(
                frozenset(known), f"the condition of {name!r}: parameters above it may be named;"
            )
        axes.append(_axis_of(name, parameter))
        known.add(name)
    return tuple(axes)


def _axis_of(name: str, parameter: Parameter) -> Axis:
    if isinstance(parameter, Choice):
        return DiscreteAxis(name, parameter)
    if isinstance(parameter, Int) and parameter.count <= 64:
        values = range(parameter.min, parameter.max + 1)
        return DiscreteAxis(name, Choice(values, parameter.scale, parameter.when.text if parameter.when else None))
    return ContinuousAxis(name, parameter)


def _checked_fractions(fractions: Iterable[float]) -> tuple[float, ...]:
    listed = list(fractions) if isinstance(fractions, Iterable) else [fractions]
    if not listed:
        raise InputError("fractions is empty; it lists the shares of the data to test on, such as [0.1, 1]")
    for fraction in listed:
        if not is_number(fraction) or not 0 < fraction <= 1:
            raise InputError(f"fraction {fraction!r} is outside (0, 1]; it is the share of the data to train on")
    distinct = sorted({float(fraction) for fraction in listed})
    if len(distinct) < len(listed):
        raise InputError(f"fractions {listed!r} has the same share twice")
    return tuple(distinct)


def _checked_configurations(configs: Iterable[Mapping[str, Value]]) -> tuple[Configuration, ...]:
    if not isinstance(configs, Iterable):
        raise InputError(f"the configurations are a list of dicts, not {configs!r}")
    listed = tuple(configs)
    if not listed:
        raise InputError("the list of configurations is empty; there is nothing to choose from")
    for position, config in enumerate(listed):
        if not isinstance(config, Mapping):
            raise InputError(f"configuration {position} is {config!r}; write a dict of name to value")
    return tuple({name: plain_value(value) for name, value in config.items()} for config in listed)


def _checked_prices(prices: Iterable[float] | None, count: int) -> Floats | None:
    if prices is None:
        return None
    if not isinstance(prices, Iterable):
        raise InputError(f"price_per_hour={prices!r} must be a list, one price for each configuration")
    try:
        listed = np.array([float(price) for price in prices])
    except (TypeError, ValueError, OverflowError):
        raise InputError("price_per_hour has a value that is not a number; it is in USD per hour") from None
    if len(listed) != count:
        raise InputError(f"{len(listed)} prices for {count} configurations; give one price_per_hour each, in order")
    for position, price in enumerate(listed):
        if not math.isfinite(price) or price <= 0:
            raise InputError(
                f"price_per_hour of configuration {position} is {price:g}; it must be above 0 USD per hour"
            )
    return listed


def _refuse_duplicates(configs: Sequence[Configuration], key: Callable[[Mapping[str, Value]], Key]) -> None:
    seen: dict[Key, int] = {}
    for position, config in enumerate(configs):
        first = seen.setdefault(key(config), position)
        if first != position:
            raise InputError(f"configurations {first} and {position} are the same: {dict(config)!r}; remove one")
