"""Jobs of public measurements as the benchmarks ship them: a row for each configuration, a column for each share.

The measurements are those of the surrogates of YAHPO Gym (Pfisterer et al., 2022; slds-lmu/yahpo_data, Apache-2.0),
fitted to real trainings: neural nets on 12 tasks of LCBench by epochs, and decision trees (rpart) on 9 OpenML tasks
by share of the data. Run from the repository's root, ``python -m benchmarks.tables.public_jobs FOLDER`` shrinks the
long form, a row for each configuration and share, that is in FOLDER.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from trimtuner.engines.table import Table

HERE = Path(__file__).parent / "jobs"
MEASURED = ("accuracy", "time")
USD_PER_HOUR = "1"


def public_jobs() -> list[str]:
    """Their names: the family, and the number of the task at OpenML."""
    return sorted(file.stem for file in HERE.glob("*.csv"))


def family_of(name: str) -> str:
    """The letters that a name begins with."""
    return name.rstrip("0123456789")


@cache
def read_public_job(name: str) -> Table:
    """A job as a table that can be replayed; the limit is the cost of the median run on all of the data."""
    rows = list(_long_rows(HERE / f"{name}.csv"))
    full = sorted(float(row["time"]) for row in rows if float(row["fraction"]) == 1.0)
    middle = len(full) // 2
    limit = (full[middle - 1] + full[middle]) / 2.0 / 3600.0
    configuration = [column for column in rows[0] if column not in {"fraction", "price", *MEASURED}]
    description: dict[str, object] = {
        "title": name,
        "configuration": {column: column for column in configuration},
        "fraction": {"column": "fraction", "full": 1.0},
        "metrics": {metric: metric for metric in MEASURED},
        "price_per_hour": {"column": "price"},
        "problem": {"maximize": "accuracy", "constraints": [f"cost <= {limit:.6g}"]},
    }
    return Table.read(name, rows, description)


def _long_rows(file: Path) -> Iterator[dict[str, str]]:
    """A row for each configuration and share, share by share."""
    with file.open(encoding="utf-8", newline="") as source:
        wide = list(csv.DictReader(source))
    shares = [column.removeprefix("accuracy at ") for column in wide[0] if column.startswith("accuracy at ")]
    for share in shares:
        for row in wide:
            yield {
                **{name: value for name, value in row.items() if " at " not in name},
                "fraction": share,
                **{metric: row[f"{metric} at {share}"] for metric in MEASURED},
                "price": USD_PER_HOUR,
            }


def shrink(source: Path, target: Path) -> None:
    """One row for each configuration."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    description: Mapping[str, Mapping[str, str]] = tomllib.loads(source.with_suffix(".toml").read_text("utf-8"))
    names = list(description["configuration"])
    shares = sorted({row["fraction"] for row in rows}, key=float)
    measured = {(*(row[name] for name in names), row["fraction"]): row for row in rows}
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *(f"{metric} at {share}" for metric in MEASURED for share in shares)])
        for key in dict.fromkeys(key[:-1] for key in measured):
            writer.writerow([*key, *(measured[*key, share][metric] for metric in MEASURED for share in shares)])


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for path in sorted(Path(sys.argv[1]).glob("*.csv")):
        shrink(path, HERE / path.name)
