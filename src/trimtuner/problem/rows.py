"""From a row of a table, a file or a tracking store to a measurement; every error names its row."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trimtuner.errors import InputError, nearest
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice
from trimtuner.problem.problem import COST, TIME, Problem, is_share
from trimtuner.problem.space import Space

FRACTION = "fraction"


def columns_of(problem: Problem) -> tuple[str, ...]:
    """What a row may have: every parameter, the fraction, the metrics, time and cost."""
    return tuple(dict.fromkeys((*problem.space.names, FRACTION, *problem.reported_metrics, COST, TIME)))


def measurement_of_row(where: str, row: Mapping[str, object], problem: Problem) -> Measurement:
    """What a row tells; its values may be texts, the fraction is 1 where it is absent."""
    space, known = problem.space, columns_of(problem)
    for name in row:
        if name not in known:
            raise InputError(f"{where}: unknown column {name!r}{nearest(str(name), known)}")
    config = _configuration(where, row, space)
    fraction = _fraction(where, row.get(FRACTION, 1.0), space)
    metrics = {name: _metric(where, name, value) for name, value in row.items() if name not in (*space.names, FRACTION)}
    for name in problem.reported_metrics:
        if name not in metrics:
            raise InputError(f"{where}: there is no {name!r}, which the study is about")
    return Measurement(config, fraction, _completed(where, metrics, space, config))


def _configuration(where: str, row: Mapping[str, object], space: Space) -> Configuration:
    config = {name: _value(row[name], name, space) for name in space.names if name in row}
    try:
        space.check(config)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
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
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        raise InputError(f"{where}: {name} is {value!r}, not a number")
    return number


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
