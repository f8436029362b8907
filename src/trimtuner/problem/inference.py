"""Axes for a bare list of configurations: how its values become numbers when nobody says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtuner.errors import InputError
from trimtuner.problem.axes import Configuration, DiscreteAxis
from trimtuner.problem.catalog import built_in_catalog
from trimtuner.problem.expressions import Value
from trimtuner.problem.machines import Machine, MachineScale
from trimtuner.problem.parameters import Choice
from trimtuner.problem.values import plain_value, told_apart

_LOG_FROM_RATIO = 8.0  # numbers that span this factor or more are taken in logs


def infer_axes(configurations: Sequence[Configuration], given: dict[str, Choice]) -> tuple[DiscreteAxis, ...]:
    """Axes for a bare list of configurations: from ``given``, from the catalog, or from the values themselves."""
    for name, choice in given.items():
        if not isinstance(choice, Choice):
            raise InputError(f"parameters[{name!r}] is {choice!r}; a list of configurations takes a tt.Choice")
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    if not names:
        raise InputError("the configurations are empty; each needs at least one parameter")
    for name in given:
        if name not in names:
            raise InputError(f"parameters names {name!r}, which no configuration has")
    return tuple(_inferred_axis(name, configurations, given) for name in names)


def _inferred_axis(name: str, configurations: Sequence[Configuration], given: dict[str, Choice]) -> DiscreteAxis:
    values = _distinct(configuration[name] for configuration in configurations if name in configuration)
    if name in given:
        for value in values:
            given[name].position(value)
        return DiscreteAxis(name, given[name])
    choice = with_usual_scale(Choice(values))
    if name == "vm_type" and all(value in built_in_catalog() for value in values):
        machines = [Machine(built_in_catalog()[str(value)], 1, False) for value in choice.values]
        return DiscreteAxis(name, choice, MachineScale.of(machines).columns(machines))
    return DiscreteAxis(name, choice)


def with_usual_scale(choice: Choice) -> Choice:
    """In logs where its numbers span orders; other numbers, and names, as they are."""
    if choice.scale is None:
        return choice
    low, high = min(choice.numbers), max(choice.numbers)
    return Choice(choice.values, scale="log") if low > 0 and high / low >= _LOG_FROM_RATIO else choice


def _distinct(values: Iterable[Value]) -> list[Value]:
    return list({told_apart(value): value for value in map(plain_value, values)}.values())
