"""A table of measurements that plays a training job: a CSV, and a small description of its columns beside it."""

from __future__ import annotations

import csv
import io
import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.problem.cells import text_of_cell
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME, Constraint
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_number

_DATA_VARIABLE = "TRIMTUNER_DATA"
_KEYS = {"title", "source", "snapshots", "configuration", "fraction", "metrics", "price_per_hour", "problem", "failed"}

ConfigurationKey = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Cell:
    """What one configuration measured at one fraction, or the kind of its failure."""

    metrics: Mapping[str, float]
    failed: str | None

    def is_within(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it ran, and within these limits."""
        return self.failed is None and all(one.is_met(self.metrics[one.metric]) for one in constraints)


@dataclass(frozen=True)
class Table:
    """Measurements of every configuration at every fraction, with prices and a goal."""

    name: str
    title: str
    space: Space
    configurations: Sequence[Mapping[str, Value]]
    cells: Mapping[tuple[ConfigurationKey, float], Cell]
    maximize: str | None
    minimize: str | None
    constraints: tuple[str, ...]

    @classmethod
    def find(cls, name: str) -> Table:
        """A table by path, or by name in the folder of TRIMTUNER_DATA, or among those shipped."""
        source = _find_csv(name)
        try:
            rows = list(csv.DictReader(io.StringIO(source.read_text(encoding="utf-8-sig"))))
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"the table {str(source)!r} is not a CSV in UTF-8: {error}") from None
        return cls.read(Path(source.name).stem, rows, _find_description(source))

    @classmethod
    def read(cls, name: str, rows: Sequence[Mapping[str, str]], description: Mapping[str, object]) -> Table:
        """From the rows of the CSV and the parsed description."""
        reader = _Reader(name, description)
        measured = [(reader.configuration(row), reader.fraction(row), row) for row in rows]
        if not measured:
            raise InputError(f"table {name!r} has no rows")
        prices = {key: reader.price_per_hour(dict(key), row) for key, _, row in measured}
        cells: dict[tuple[ConfigurationKey, float], Cell] = {}
        for key, fraction, row in measured:
            if (key, fraction) in cells:
                raise InputError(f"table {name!r} has two rows for {dict(key)!r} at {fraction:g}")
            cells[key, fraction] = reader.cell(row, prices[key])
        configurations = [dict(key) for key in prices]
        space = Space.from_configs(
            configurations,
            price_per_hour=prices.values(),
            fractions={fraction for _, fraction, _ in measured},
            snapshots=bool(description.get("snapshots", False)),
        )
        problem = reader.section("problem")
        return cls(
            name,
            str(description.get("title", name)),
            space,
            configurations,
            cells,
            problem.get("maximize"),  # type: ignore[arg-type]
            problem.get("minimize"),  # type: ignore[arg-type]
            reader.constraints(),
        )

    def cell(self, configuration: Mapping[str, Value], fraction: float) -> Cell:
        """What was measured there; an error where nothing was."""
        place = (tuple(configuration.items()), fraction)
        if place not in self.cells:
            raise InputError(f"table {self.name!r} has no row for {dict(configuration)!r} at fraction {fraction:g}")
        return self.cells[place]

    def told(
        self, configuration: Mapping[str, Value], fraction: float, snapshots: Sequence[float]
    ) -> tuple[Cell, dict[float, Cell]]:
        """How a run ends, and what it tells of smaller fractions on its way.

        Those that failed tell nothing; nor do those which a run that fails does not come to before.
        """
        end = self.cell(configuration, fraction)
        passed = {one: self.cell(configuration, one) for one in sorted(snapshots)}
        lasts = end.metrics[TIME] if end.failed is not None else math.inf
        return end, {f: one for f, one in passed.items() if one.failed is None and one.metrics.get(TIME, 0.0) <= lasts}

    def feasible_values(
        self, metric: str, constraints: Sequence[Constraint], fractions: Sequence[float]
    ) -> Iterator[float]:
        """The metric at every (configuration, fraction) that ran within the limits."""
        known = {name for cell in self.cells.values() for name in cell.metrics}
        for name in (metric, *(constraint.metric for constraint in constraints)):
            if name not in known:
                listed = ", ".join(sorted(known))
                raise InputError(f"table {self.name!r} has no metric {name!r}, only {listed}{nearest(name, known)}")
        for (_, fraction), cell in self.cells.items():
            if fraction in fractions and cell.is_within(constraints):
                yield cell.metrics[metric]

    def full_run_costs(self) -> list[float]:
        """USD of every configuration on full data: their mean is the unit in which searches are compared."""
        costs = [cell.metrics[COST] for (_, fraction), cell in self.cells.items() if fraction == 1.0]
        if not costs:
            raise InputError(f"table {self.name!r} has no row on full data, against which searches are compared")
        return costs


def known_tables() -> list[str]:
    """Names of the tables that can be found, with their descriptions, in TRIMTUNER_DATA and among those shipped."""
    files = {str(folder / file.name) for folder in _folders() if folder.is_dir() for file in folder.iterdir()}
    return sorted({Path(file).stem for file in files if file.endswith(".csv") and f"{file[:-4]}.toml" in files})


class _Reader:
    """The description, applied to rows."""

    def __init__(self, name: str, description: Mapping[str, object]) -> None:
        self._name = name
        for key in description:
            if key not in _KEYS:
                raise InputError(f"the description of table {name!r} has an unknown key {key!r}{nearest(key, _KEYS)}")
        self._description = description
        self._columns = {p: str(column) for p, column in self.section("configuration").items()}
        self._metrics = {m: str(column) for m, column in self.section("metrics").items()}
        self._price = self.section("price_per_hour")

    def section(self, key: str) -> Mapping[str, object]:
        found = self._description.get(key)
        if not isinstance(found, Mapping):
            raise InputError(f"the description of table {self._name!r} has no section [{key}]")
        return found

    def constraints(self) -> tuple[str, ...]:
        listed = self.section("problem").get("constraints", [])
        if not isinstance(listed, list):
            raise InputError(f"table {self._name!r}: constraints, in [problem], must be a list of texts")
        return tuple(listed)

    def configuration(self, row: Mapping[str, str]) -> ConfigurationKey:
        return tuple((parameter, _plain(self._text(row, column))) for parameter, column in self._columns.items())

    def fraction(self, row: Mapping[str, str]) -> float:
        fraction = self.section("fraction")
        full = self._float(fraction.get("full", 1.0), "full, in [fraction],")
        if full <= 0:
            raise InputError(f"table {self._name!r}: full, in [fraction], must be above 0")
        return self._number(row, str(fraction.get("column"))) / full

    def price_per_hour(self, configuration: Mapping[str, Value], row: Mapping[str, str]) -> float:
        """A column of its own; or workers and book-keepers of one type, and helpers."""
        if "column" in self._price:
            return self._number(row, str(self._price["column"]))
        prices = self._price.get("vm")
        if not isinstance(prices, Mapping):
            raise InputError(f"table {self._name!r}: [price_per_hour] needs a column, or vm = {{type = price}}")
        for name in ("vm_type", "vm_count"):
            if name not in configuration:
                raise InputError(f"table {self._name!r}: prices of VMs need {name} in [configuration]")
        more = self._float(self._price.get("more_of_same_type", 0), "more_of_same_type")
        workers = self._float(configuration["vm_count"], "vm_count") + more
        helpers = self._price.get("helpers", [])
        if not isinstance(helpers, list):
            raise InputError(f"table {self._name!r}: helpers, in [price_per_hour], must be a list of VM types")
        rented = [str(helper) for helper in helpers]
        for vm_type in (configuration["vm_type"], *rented):
            if vm_type not in prices:
                raise InputError(f"table {self._name!r}: [price_per_hour] has no price for {vm_type!r}")
        price = {vm_type: self._float(usd, f"the price of {vm_type!r}") for vm_type, usd in prices.items()}
        return workers * price[configuration["vm_type"]] + sum(price[helper] for helper in rented)

    def cell(self, row: Mapping[str, str], price: float) -> Cell:
        failed = row.get(str(self._description.get("failed", "")), "") or None
        if failed is not None:
            seconds = self._seconds(row)
            return Cell({TIME: seconds, COST: seconds * price / 3600.0}, failed)
        metrics = {metric: self._number(row, column) for metric, column in self._metrics.items()}
        if COST not in metrics:
            metrics[COST] = self._seconds(row) * price / 3600.0
        return Cell(metrics, None)

    def _seconds(self, row: Mapping[str, str]) -> float:
        if TIME not in self._metrics:
            raise InputError(f"the description of table {self._name!r} names no column for time in [metrics]")
        return self._number(row, self._metrics[TIME])

    def _text(self, row: Mapping[str, str], column: str) -> str:
        if column not in row:
            known = [name for name in row if name is not None]
            raise InputError(f"table {self._name!r} has no column {column!r}{nearest(column, known)}")
        if row[column] is None:
            raise InputError(f"table {self._name!r} has a row that ends before its column {column!r}")
        return text_of_cell(row[column])

    def _float(self, value: object, where: str) -> float:
        if not is_number(value):
            raise InputError(f"table {self._name!r}: {where} is {value!r}, not a number")
        return float(value)

    def _number(self, row: Mapping[str, str], column: str) -> float:
        text = self._text(row, column)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"table {self._name!r}, column {column!r}: {text!r} is not a number")
        return number


def _plain(text: str) -> Value:
    """A number where the text is one; a name such as ``inf`` or ``1_0`` stays a name."""
    if "_" in text:
        return text
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text


def _shipped() -> Traversable:
    return resources.files("trimtuner") / "tables"


def _folders() -> list[Traversable]:
    named = os.environ.get(_DATA_VARIABLE)
    return [Path(named), _shipped()] if named else [_shipped()]


def _find_csv(name: str) -> Traversable:
    given = Path(name)
    if given.suffix == ".csv" or given.is_file():
        if not given.is_file():
            raise InputError(f"there is no table at {name!r}")
        return given
    folders = _folders()
    for place in (folder / f"{name}.csv" for folder in folders):
        if place.is_file():
            return place
    raise InputError(
        f"no table {name!r} in {' or '.join([*map(str, folders[:-1]), 'the package'])}; "
        f"known are {', '.join(known_tables())}{nearest(name, known_tables())}; "
        f"give a path, or set {_DATA_VARIABLE} to the folder that has it"
    )


def _find_description(source: Traversable) -> Mapping[str, object]:
    stem = Path(source.name).stem
    beside = Path(str(source)).with_suffix(".toml")
    for place in (beside, _shipped() / f"{stem}.toml"):
        if place.is_file():
            try:
                return tomllib.loads(place.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise InputError(f"{place}: {error}") from None
    raise InputError(f"the table {source} has no description; write {beside.name} beside it (see docs/replay.md)")
