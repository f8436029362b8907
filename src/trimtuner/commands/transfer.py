"""Measurements out of a study, and into one: CSV or JSON, the same columns both ways, or runs of a tracker."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.integrations.tracking import Logged, TrackedStudy
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.cells import cell_of_text, text_of_cell
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement
from trimtuner.problem.problem import Problem
from trimtuner.problem.rows import columns_of, measurement_of_row
from trimtuner.problem.values import written

_LARGEST_FILE = 100 * 2**20


def as_csv(rows: Sequence[Mapping[str, Value]]) -> str:
    """Every column that any row has; what looks like a formula to a spreadsheet stays text."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    heads = [cell_of_text(name) for name in columns]
    cells = [heads, *([_cell(row[name]) if name in row else "" for name in columns] for row in rows)]
    # Without quotes, a carriage return inside a text would end its row.
    is_plain = not any("\r" in cell for row in cells for cell in row)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL if is_plain else csv.QUOTE_ALL)
    writer.writerows(cells)
    return out.getvalue()


def read_measurements(path: Path, problem: Problem) -> list[Measurement]:
    """Rows with every parameter, the fraction (1 where absent) and the metrics; every error names its row."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE // 2**20} MiB")
    try:
        text = path.read_bytes().decode("utf-8-sig")  # as it is: a line may end inside a text
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from None
    rows = _json_rows(path, text) if path.suffix == ".json" else _csv_rows(path, text)
    return [measurement_of_row(f"{path}, row {number}", row, problem) for number, row in enumerate(rows, start=1)]


def further_metrics(measurements: Iterable[Measurement], problem: Problem) -> list[str]:
    """What was measured besides that which the study is about."""
    return sorted({name for measurement in measurements for name in measurement.metrics} - {*columns_of(problem)})


def export_to_mlflow(of: JobStudy, uri: str, experiment: str | None) -> str:
    """Log every ended trial that is not there yet; what was done."""
    _prepare_mlflow()
    from trimtuner.integrations.mlflow import log_progress

    return _logged_text(log_progress(_tracked(of), uri, experiment))


def export_to_wandb(of: JobStudy, project: str) -> str:
    """The same as offline runs of W&B."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # a command of ours speaks to nobody
    from trimtuner.integrations.wandb import log_progress

    return f"{_logged_text(log_progress(_tracked(of), project))}; upload them with: wandb sync"


def export_to_tensorboard(of: JobStudy, folder: Path) -> str:
    """The same as events for TensorBoard."""
    from trimtuner.integrations.tensorboard import log_progress

    look = shlex.join(["tensorboard", "--logdir", str(folder)])
    return f"{_logged_text(log_progress(_tracked(of), folder))}; look at them with: {look}"


def _tracked(of: JobStudy) -> TrackedStudy:
    state = of.state()
    return TrackedStudy(state.name, of.record.id, state.history, state.recommendation, attempts=state.attempts)


def _logged_text(logged: Logged) -> str:
    running = f", {logged.running} still running" if logged.running else ""
    return f"{logged.added} trials logged, {logged.known} there already{running}"


def import_from_mlflow(of: JobStudy, uri: str, experiment: str | None, runs: str) -> str:
    """Take in what the finished runs measured; what was done."""
    _prepare_mlflow()
    from trimtuner.integrations.mlflow import measurements_from

    found = measurements_from(uri, experiment or of.job.name, of.problem, runs)
    _, memory = of.open_to_run()
    added, known = memory.record.import_measurements(found.measurements)
    skipped = ", ".join(f"{count} {status}" for status, count in sorted(found.skipped.items()))
    left_out = f"; runs left out because they are not FINISHED: {skipped}" if skipped else ""
    return f"{added} measurements added, {known} known already{left_out}"


def _csv_rows(path: Path, text: str) -> list[dict[str, object]]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, object]] = []
    try:
        heads = [text_of_cell(head) for head in next(lines, [])]
        twice = [head for head in heads if heads.count(head) > 1]
        if twice:
            raise InputError(f"{path} has two columns {twice[0]!r}; leave one")
        for cells in lines:
            if len(cells) > len(heads):
                raise InputError(f"{path}, row {len(rows) + 1} has {len(cells)} cells for {len(heads)} columns")
            if cells:
                rows.append(dict(zip(heads, map(text_of_cell, cells), strict=False)))
    except csv.Error as error:
        raise InputError(f"{path}, row {len(rows) + 1} is no CSV: {error}") from None
    return rows


def _json_rows(path: Path, text: str) -> list[dict[str, object]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; it must hold a list of objects") from None
    except ValueError:  # Python reads no whole number of thousands of digits
        raise InputError(f"{path} has a number of thousands of digits, which is none that could be measured") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} must hold a list of objects, as 'trimtuner export --format json' writes it")
    return rows


def _cell(value: Value) -> str:
    return cell_of_text(value) if isinstance(value, str) else written(value)


def _prepare_mlflow() -> None:
    """What MLflow reads from the environment, unless the user has set it."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a command of ours speaks to the store and nobody else
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # not each table that it makes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # its seven are minutes until a wrong address is told
