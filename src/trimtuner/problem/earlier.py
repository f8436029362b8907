"""What an earlier study measured, as a new one takes it along: a value that hangs on nothing outside itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.errors import InputError
from trimtuner.problem.axes import Stranger
from trimtuner.problem.expressions import Scalar, Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.machines import Machine
from trimtuner.problem.space import Space
from trimtuner.problem.values import plain_value
from trimtuner.problem.vms import VM

MEASUREMENTS_AT_MOST = 300  # of one study: with more, the first ask of a process would take many seconds


@dataclass(frozen=True, eq=False)
class Earlier:
    """Measurements of an earlier study under its name; the machines of each, where its space said what they are."""

    name: str
    measurements: tuple[Measurement, ...]
    machines: tuple[Machine | None, ...]

    @classmethod
    def of(cls, name: str, measurements: Sequence[Measurement], space: Space | None) -> Earlier:
        """What a study with this space has measured; of very many, those on the most data."""
        if not measurements:
            raise InputError(f"learn_from: {name!r} has measured nothing yet, so there is nothing to learn from it")
        order = sorted(range(len(measurements)), key=lambda i: -measurements[i].fraction)[:MEASUREMENTS_AT_MOST]
        kept = tuple(measurements[position] for position in sorted(order))
        machines = tuple(None if space is None else space.machine(dict(one.configuration)) for one in kept)
        return cls(name, kept, machines)

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> Earlier:
        """As it was before it became plain values."""
        rows = plain["measurements"]
        if not isinstance(rows, list):
            raise TypeError("its measurements are no list")
        return cls(
            str(plain["name"]),
            tuple(
                Measurement(_from_plain(config), float(fraction), dict(metrics))
                for config, fraction, metrics, _ in rows
            ),
            tuple(_machine_from(machine) for _, _, _, machine in rows),
        )

    @property
    def plain(self) -> dict[str, object]:
        """In values that JSON knows."""
        return {
            "name": self.name,
            "measurements": [
                [dict(one.configuration), one.fraction, dict(one.metrics), _plain_machine(machine)]
                for one, machine in zip(self.measurements, self.machines, strict=True)
            ],
        }

    def rows_in(self, space: Space) -> Translation:
        """The measurements as rows of another space; an error where the two have nothing in common."""
        pairs = zip(self.measurements, self.machines, strict=True)
        rows = space.rows_of_strangers([Stranger(one.configuration, machine) for one, machine in pairs])
        columns = np.isfinite(rows).any(axis=0)
        placed = np.nonzero(np.isfinite(rows[:, columns]).all(axis=1))[0]
        if not columns.any() or not len(placed):
            theirs = ", ".join(sorted({name for one in self.measurements for name in one.configuration}))
            raise InputError(
                f"learn_from: nothing that {self.name!r} measured can be placed in this space: it chose {theirs}, "
                f"and here {', '.join(space.names)} are chosen; leave it out"
            )
        fractions = np.array([self.measurements[position].fraction for position in placed])
        return Translation(np.column_stack([rows[placed][:, columns], fractions]), np.append(columns, True), placed)

    def values(self, metric: str, chosen: Positions) -> Floats | None:
        """What some of the measurements say about a metric; nothing where one of them does not."""
        metrics = [self.measurements[position].metrics for position in chosen]
        return np.array([one[metric] for one in metrics]) if all(metric in one for one in metrics) else None


@dataclass(frozen=True)
class Translation:
    """An earlier study's rows, with those columns of the new space (the fraction last) that it says something about."""

    rows: Floats
    columns: Booleans
    placed: Positions  # which of its measurements they are


def _from_plain(config: Mapping[str, Value | list[Scalar]]) -> dict[str, Value]:
    """JSON has no tuples; a configuration has no lists."""
    return {name: plain_value(value) for name, value in config.items()}


def _plain_machine(machine: Machine | None) -> list[object] | None:
    if machine is None:
        return None
    vm = machine.vm
    return [vm.vcpus, vm.memory_gib, vm.price_per_hour, vm.gpus, machine.count, machine.is_spot]


def _machine_from(plain: Sequence[float] | None) -> Machine | None:
    if plain is None:
        return None
    vcpus, memory_gib, price_per_hour, gpus, count, is_spot = plain
    return Machine(VM(int(vcpus), memory_gib, price_per_hour, int(gpus)), int(count), bool(is_spot))
