"""The training jobs of the papers: their tables, and the limits and budgets that the papers set for each."""

from __future__ import annotations

import csv
import hashlib
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from trimtuner.engines.table import Table
from trimtuner.errors import InputError
from trimtuner.problem.space import Space


@dataclass(frozen=True)
class Job:
    """A job of the papers; money in USD."""

    name: str
    title: str
    cost_limit: float  # at full data, where accuracy is maximised
    initial_budgets: tuple[float, ...]  # tried in Figs. 6.4 to 6.6
    initial_budget: float  # the one the thesis then uses
    # Nephele's whole budget. The thesis prints none, only that it "could allow the optimizers to find the optimum".
    budget: float
    path: str | None = None  # of a table that is not found by its name


CNN = Job("cnn", "CNN", 0.1, (2.5, 5.0, 10.0), 5.0, 20.0)
RNN = Job("rnn", "RNN", 0.02, (0.25, 0.5, 1.0), 1.0, 4.0)


def multilayer(path: Path) -> Job:
    """The papers' third job, from a table that the user has."""
    if not path.is_file():
        raise InputError(f"--multilayer {str(path)!r}: there is no such file; it is a CSV with the columns of cnn.csv")
    return Job("multilayer", "Multilayer", 0.06, (0.5, 1.0, 2.0), 2.0, 8.0, str(path))


def load(job: Job) -> Table:
    """The measurements of a job."""
    if job.path is None:
        return Table.find(job.name)
    if Path(job.path).with_suffix(".toml").is_file():
        return Table.find(job.path)
    text = Path(job.path).read_text(encoding="utf-8-sig")
    return Table.read(job.name, list(csv.DictReader(io.StringIO(text))), _description_like_cnn(job))


def full_data_only(table: Table) -> Table:
    """The same measurements without the smaller fractions: the space of methods that test on all data."""
    space = Space.from_configs(
        table.configurations,
        price_per_hour=[table.space.price_per_hour(dict(one)) or 0.0 for one in table.configurations],
        fractions=[1.0],
    )
    cells = {place: cell for place, cell in table.cells.items() if place[1] == 1.0}
    return replace(table, space=space, cells=cells)


def digest(table: Table) -> str:
    """A short name for everything measured, so that results from other measurements are not taken for these."""
    lines = [
        f"{configuration}|{fraction:.9g}|{cell.failed}|{sorted(cell.metrics.items())}"
        for (configuration, fraction), cell in table.cells.items()
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def _description_like_cnn(job: Job) -> Mapping[str, object]:
    """The three tables were measured by the same scripts: same columns, same machines, another limit."""
    shipped = resources.files("trimtuner") / "tables" / "cnn.toml"
    description = tomllib.loads(shipped.read_text(encoding="utf-8"))
    return description | {
        "title": f"{job.title} on MNIST with TensorFlow on AWS EC2 t2 machines",
        "problem": {"maximize": "accuracy", "constraints": [f"cost <= {job.cost_limit:g}"]},
    }
