"""From a measurement to a row of a table or a file, and back; every error names its row."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trimtuner.errors import InputError, nearest
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice, Parameter
from trimtuner.problem.problem import COST, TIME, Problem, is_share
from trimtuner.problem.space import Space

FRACTION = "fraction"
_OWN = "metric."  # before the name of a metric that a parameter has as well
_SHOWN, _SAID = 60, 300  # characters of a value, and of what is said of it


def columns_of(problem: Problem) -> tuple[str, ...]:
    """What a row is about: every parameter, the fraction, the metrics, time and cost."""
    return tuple(dict.fromkeys((*problem.space.names, FRACTION, *problem.reported_metrics, COST, TIME)))


def row_of_measurement(measurement: Measurement) -> dict[str, object]:
    """The measurement as ``measurement_of_row`` takes it."""
    taken = {*measurement.configuration, FRACTION}
    metrics = {f"{_OWN}{name}" if name in taken else name: value for name, value in measurement.metrics.items()}
    return {**measurement.configuration, FRACTION: measurement.fraction, **metrics}


def measurement_of_row(where: str, row: Mapping[str, object], problem: Problem) -> Measurement:
    """What a row tells; its values may be texts, the fraction is 1 where it is absent, a further number is a metric."""
    space = problem.space
    config = _configuration(row, space)
    told = {name: value for name, value in row.items() if name not in space.names and value not in ("", None)}
    _refuse_misspelt(where, config, told, problem)
    config = _offered(where, config, space)
    fraction = _fraction(where, told.pop(FRACTION, 1.0), space)
    own = {name.removeprefix(_OWN): value for name, value in told.items()}
    metrics = {name: _metric(where, name, value) for name, value in own.items()}
    for name in problem.reported_metrics:
        if name not in metrics:
            raise InputError(f"{where}: there is no {name!r}, which the study is about")
    return Measurement(config, fraction, _completed(where, metrics, space, config))


def _refuse_misspelt(where: str, config: Configuration, told: Mapping[str, object], problem: Problem) -> None:
    """A further column is a further metric, unless it is called nearly as one that should be there and is not."""
    parameters, known = problem.space.parameters, columns_of(problem)
    idle = {name for name, parameter in parameters.items() if _is_idle(parameter, config)}
    follows = {TIME, COST} if TIME in told or COST in told else set()
    missing = [name for name in known if name not in {*config, *told} | idle | follows]
    for name, value in told.items():
        if name in known:
            continue
        if hint := nearest(name, missing):
            raise InputError(f"{where}: unknown column {name!r}{hint}")
        if not name.removeprefix(_OWN).isidentifier() or _is_no_number(value):
            raise InputError(
                f"{where}: unknown column {name!r}{nearest(name, known)}; a column that is none of the study's must be "
                f"a further metric, a word with numbers, and here it is {_shown(value)}"
            )


def _configuration(row: Mapping[str, object], space: Space) -> Configuration:
    """What the row chooses; an empty cell is no value, unless it is one that is offered where it stands."""
    config: Configuration = {}
    for name in space.names:
        if name not in row or row[name] is None:
            continue
        value, parameter = _value(row[name], name, space), space.parameters.get(name)
        is_offered = isinstance(parameter, Choice) and "" in parameter.values and not _is_idle(parameter, config)
        if value != "" or is_offered:
            config[name] = value
    return config


def _is_idle(parameter: Parameter, config: Configuration) -> bool:
    try:
        return parameter.when is not None and not parameter.when.holds(config)
    except InputError:  # of values that are not offered, which the check of the configuration names
        return False


def _offered(where: str, config: Configuration, space: Space) -> Configuration:
    try:
        space.check(config)
    except InputError as error:
        raise InputError(f"{where}: {_cut(str(error), _SAID)}") from None
    if not space.is_enumerable:
        return config
    pool = space.pool()
    return pool.configuration(pool.position(config))  # as the space writes it: 16 may be 16.0 there


def _fraction(where: str, value: object, space: Space) -> float:
    number = _number(where, FRACTION, value)
    try:
        return space.nearest_fraction(number)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _completed(where: str, metrics: dict[str, float], space: Space, config: Configuration) -> dict[str, float]:
    """Time from cost or cost from time, where the price is known."""
    price = space.price_per_hour(config)
    if price is not None and TIME in metrics and COST not in metrics:
        metrics[COST] = metrics[TIME] * price / 3600.0
    elif price is not None and COST in metrics and TIME not in metrics:
        metrics[TIME] = metrics[COST] * 3600.0 / price
    if TIME not in metrics and COST not in metrics:
        raise InputError(f"{where}: there is neither a time nor a cost, from which the study learns what trials cost")
    return metrics


def _metric(where: str, name: str, value: object) -> float:
    number = _number(where, name, value)
    if name in (TIME, COST) and number <= 0:
        raise InputError(f"{where}: {name} is {number:g}; it must be above 0")
    if is_share(name) and not 0 <= number <= 1:
        raise InputError(f"{where}: {name} is {number:g}, but it is a share from 0 to 1; 85 % is 0.85")
    return number


def _number(where: str, name: str, value: object) -> float:
    if _is_no_number(value):
        raise InputError(f"{where}: {name} is {_shown(value)}, not a number")
    return float(str(value))


def _is_no_number(value: object) -> bool:
    try:
        return isinstance(value, bool) or not math.isfinite(float(str(value)))
    except ValueError:
        return True


def _shown(value: object) -> str:
    return _cut(repr(value), _SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _value(value: object, name: str, space: Space) -> Value:
    if isinstance(value, bool | int | float):
        return value
    text, parameter = str(value), space.parameters.get(name)
    if isinstance(parameter, Choice) and text in parameter.values:
        return text  # a name that looks like a number, or like true, is a name there
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
