"""From a measurement to a row of a table or a file, and back; every error names its row."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trimtuner.errors import InputError, cut, nearest
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice, Parameter
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.reports import measurement_of
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_number, plain_value

FRACTION = "fraction"
_OWN = "metric."  # before the name of a metric that a parameter has as well
_SAID = 300  # characters of what is said of a value


def columns_of(problem: Problem) -> tuple[str, ...]:
    """What a row is about: every parameter, the fraction, the metrics, time and cost."""
    return tuple(dict.fromkeys((*problem.space.names, FRACTION, *problem.reported_metrics, COST, TIME)))


def row_of_measurement(measurement: Measurement) -> dict[str, Value]:
    """The measurement as ``measurement_of_row`` takes it."""
    taken = {*measurement.configuration, FRACTION}
    metrics = {f"{_OWN}{name}" if name in taken else name: value for name, value in measurement.metrics.items()}
    return {**measurement.configuration, FRACTION: measurement.fraction, **metrics}


def measurement_of_row(where: str, row: Mapping[str, object], problem: Problem) -> Measurement:
    """What a row tells; its values may be texts, the fraction is 1 where it is absent, a further number is a metric."""
    try:
        return _measurement(row, problem)
    except InputError as error:
        raise InputError(f"{where}: {cut(str(error), _SAID)}") from None


def _measurement(row: Mapping[str, object], problem: Problem) -> Measurement:
    space = problem.space
    config = _configuration(row, space)
    told = {name: value for name, value in row.items() if name not in space.names and value not in ("", None)}
    _refuse_misspelt(config, told, problem)
    config = space.as_written(config)
    fraction = space.nearest_fraction(_number(FRACTION, told.pop(FRACTION, 1.0)))
    own = {name.removeprefix(_OWN): value for name, value in told.items()}
    metrics = {name: _number(name, value) for name, value in own.items()}
    return measurement_of(problem, "it", config, fraction, metrics)


def _refuse_misspelt(config: Configuration, told: Mapping[str, object], problem: Problem) -> None:
    """A further column is a further metric, unless it is called nearly as one that should be there and is not."""
    parameters, known = problem.space.parameters, columns_of(problem)
    idle = {name for name, parameter in parameters.items() if _is_idle(parameter, config)}
    follows = {TIME, COST} if TIME in told or COST in told else set()
    missing = [name for name in known if name not in {*config, *told} | idle | follows]
    for name, value in told.items():
        if name in known:
            continue
        if hint := nearest(name, missing):
            raise InputError(f"unknown column {name!r}{hint}")
        if not name.removeprefix(_OWN).isidentifier() or _as_number(value) is None:
            raise InputError(
                f"unknown column {name!r}{nearest(name, known)}; a column that is none of the study's must be "
                f"a further metric, a word with numbers, and here it is {cut(repr(value))}"
            )


def _configuration(row: Mapping[str, object], space: Space) -> Configuration:
    """What the row chooses; an empty cell is no value, unless it is one that is offered where it stands."""
    config: Configuration = {}
    for name in space.names:
        if name not in row:
            continue
        value, parameter = _value(row[name], name, space), space.parameters.get(name)
        is_offered = isinstance(parameter, Choice) and value in parameter.values and not _is_idle(parameter, config)
        if value not in ("", None) or is_offered:
            config[name] = value
    return config


def _is_idle(parameter: Parameter, config: Configuration) -> bool:
    try:
        return parameter.when is not None and not parameter.when.holds(config)
    except InputError:  # of values that are not offered, which the check of the configuration names
        return False


def _listed_as_json(text: str, choice: Choice) -> tuple[Value] | None:
    """The tuple, or None, that is offered and written so."""
    try:
        value = json.loads(text)
        listed = tuple(value) if isinstance(value, list) else value
        position = choice.position(plain_value(listed))
    except (ValueError, RecursionError, InputError):
        return None
    found = choice.values[position]
    return (found,) if found is None or isinstance(found, tuple) else None


def _number(name: str, value: object) -> float:
    number = _as_number(value)
    if number is None:
        raise InputError(f"{name} is {cut(repr(value))}, not a number")
    return number


def _as_number(value: object) -> float | None:
    try:
        number = float(str(value))  # of True and False there is none
    except ValueError:
        return None
    return number if is_number(number) else None


def _value(value: object, name: str, space: Space) -> Value:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return plain_value(value)
    text, parameter = str(value), space.parameters.get(name)
    if isinstance(parameter, Choice) and text in parameter.values:
        return text  # a name that looks like a number, or like true, is a name there
    if isinstance(parameter, Choice) and (found := _listed_as_json(text, parameter)) is not None:
        return found[0]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
