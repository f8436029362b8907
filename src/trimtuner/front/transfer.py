"""Measurements out of a study, and into one: CSV or JSON, the same columns both ways."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.space import Space

_LARGEST_FILE = 100 * 2**20


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Every column that any row has; what looks like a formula to a spreadsheet stays text."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def read_measurements(path: Path, problem: Problem) -> list[Measurement]:
    """Rows with every parameter, the fraction (1 where absent) and the metrics; every error names its row."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE // 2**20} MiB")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from None
    rows = _json_rows(path, text) if path.suffix == ".json" else _csv_rows(text)
    return [_measurement(f"{path}, row {number}", row, problem) for number, row in enumerate(rows, start=1)]


def _csv_rows(text: str) -> list[dict[str, object]]:
    rows = csv.DictReader(io.StringIO(text))
    return [{str(name): value for name, value in row.items() if value not in ("", None)} for row in rows]


def _json_rows(path: Path, text: str) -> list[dict[str, object]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} must hold a list of objects, as 'trimtuner export --format json' writes it")
    return rows


def _measurement(where: str, row: Mapping[str, object], problem: Problem) -> Measurement:
    space = problem.space
    known = {*space.names, "fraction", COST, TIME, *problem.reported_metrics}
    for name in row:
        if name not in known:
            raise InputError(f"{where}: unknown column {name!r}{nearest(str(name), known)}")
    config = _configuration(where, row, space)
    fraction = space.nearest_fraction(_number(where, "fraction", row.get("fraction", 1.0)))
    metrics = {
        name: _number(where, name, value) for name, value in row.items() if name not in (*space.names, "fraction")
    }
    for name in problem.reported_metrics:
        if name not in metrics:
            raise InputError(f"{where}: there is no {name!r}, which the study is about")
    return Measurement(config, fraction, _completed(where, metrics, space, config))


def _configuration(where: str, row: Mapping[str, object], space: Space) -> dict[str, Value]:
    config: dict[str, Value] = {name: _value(row[name]) for name in space.names if name in row}
    try:
        space.check(config)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if not space.is_enumerable:
        return config
    pool = space.pool()
    return pool.configuration(pool.position(config))  # as the space writes it: 16 may be 16.0 there


def _completed(where: str, metrics: dict[str, float], space: Space, config: dict[str, Value]) -> dict[str, float]:
    """Time from cost or cost from time, where the price is known."""
    price = space.price_per_hour(config)
    if price is not None and TIME in metrics and COST not in metrics:
        metrics[COST] = metrics[TIME] * price / 3600.0
    elif price is not None and COST in metrics and TIME not in metrics:
        metrics[TIME] = metrics[COST] * 3600.0 / price
    if TIME not in metrics and COST not in metrics:
        raise InputError(f"{where}: there is neither a time nor a cost, from which the study learns what trials cost")
    return metrics


def _number(where: str, name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        raise InputError(f"{where}: {name} is {value!r}, not a number")
    return number


def _value(value: object) -> Value:
    if isinstance(value, bool | int | float):
        return value
    text = str(value)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else value
