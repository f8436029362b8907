"""Measurements out of a study, and into one: CSV or JSON, the same columns both ways."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import Problem
from trimtuner.problem.rows import measurement_of_row

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
    return [measurement_of_row(f"{path}, row {number}", row, problem) for number, row in enumerate(rows, start=1)]


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


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else value
