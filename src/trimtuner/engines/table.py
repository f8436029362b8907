"""A table of measurements that plays a training job: a CSV, and a small description of its columns beside it."""

from __future__ import annotations

import csv
import io
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME, Constraint
from trimtuner.problem.space import Space

_DATA_VARIABLE = "TRIMTUNER_DATA"
_NEARBY = Path("..") / "shared" / "data"
_KEYS = {"title", "source", "snapshots", "configuration", "fraction", "metrics", "price_per_hour", "problem", "failed"}

ConfigurationKey = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Cell:
    """What one configuration measured at one fraction, or the kind of its failure."""

    metrics: Mapping[str, float]
    failed: str | None


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
        """A table by path, or by name in TRIMTUNER_DATA, in ../shared/data, or among those shipped."""
        source = _find_csv(name)
        rows = csv.DictReader(io.StringIO(source.read_text(encoding="utf-8-sig")))
        return cls.read(Path(source.name).stem, list(rows), _find_description(source))

    @classmethod
    def read(cls, name: str, rows: Sequence[Mapping[str, str]], description: Mapping[str, object]) -> Table:
        """From the rows of the CSV and the parsed description."""
        reader = _Reader(name, description)
        measured = [(reader.configuration(row), reader.fraction(row), row) for row in rows]
        if not measured:
            raise InputError(f"table {name!r} has no rows")
        by_key = {tuple(configuration.items()): (configuration, row) for configuration, _, row in measured}
        configurations = [configuration for configuration, _ in by_key.values()]
        prices = [reader.price_per_hour(configuration, row) for configuration, row in by_key.values()]
        cells: dict[tuple[ConfigurationKey, float], Cell] = {}
        for (configuration, fraction, row), price in zip(measured, _prices_of(measured, by_key, prices), strict=True):
            place = (tuple(configuration.items()), fraction)
            if place in cells:
                raise InputError(f"table {name!r} has two rows for {configuration!r} at {fraction:g}")
            cells[place] = reader.cell(row, price)
        space = Space.from_configs(
            configurations,
            price_per_hour=prices,
            fractions=sorted({fraction for _, fraction, _ in measured}),
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
            tuple(problem.get("constraints", ())),  # type: ignore[arg-type]
        )

    def cell(self, configuration: Mapping[str, Value], fraction: float) -> Cell:
        """What was measured there."""
        return self.cells[(tuple(configuration.items()), fraction)]

    def feasible_values(
        self, metric: str, constraints: Sequence[Constraint], fractions: Sequence[float]
    ) -> Iterator[float]:
        """The metric at every (configuration, fraction) that ran within the limits."""
        for (_, fraction), cell in self.cells.items():
            within = cell.failed is None and all(c.is_met(cell.metrics[c.metric]) for c in constraints)
            if fraction in fractions and within:
                yield cell.metrics[metric]

    def full_run_costs(self) -> list[float]:
        """USD of every configuration on full data: their mean is the unit in which searches are compared."""
        return [cell.metrics[COST] for (_, fraction), cell in self.cells.items() if fraction == 1.0]


def known_tables() -> list[str]:
    """Names of the tables that can be found: those shipped, and those in the data folders that are described."""
    described = {Path(f.name).stem for f in _shipped().iterdir() if f.name.endswith(".toml")}
    names = {Path(f.name).stem for f in _shipped().iterdir() if f.name.endswith(".csv")}
    for folder in _data_folders():
        for file in folder.glob("*.csv") if folder.is_dir() else ():
            if file.stem in described or file.with_suffix(".toml").is_file():
                names.add(file.stem)
    return sorted(names)


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

    def configuration(self, row: Mapping[str, str]) -> dict[str, Value]:
        return {parameter: _plain(self._text(row, column)) for parameter, column in self._columns.items()}

    def fraction(self, row: Mapping[str, str]) -> float:
        fraction = self.section("fraction")
        return self._number(row, str(fraction.get("column"))) / float(str(fraction.get("full", 1.0)))

    def price_per_hour(self, configuration: Mapping[str, Value], row: Mapping[str, str]) -> float:
        """A column of its own; or workers and book-keepers of one type, and helpers."""
        if "column" in self._price:
            return self._number(row, str(self._price["column"]))
        prices = self._price.get("vm")
        if not isinstance(prices, Mapping):
            raise InputError(f"table {self._name!r}: [price_per_hour] needs a column, or vm = {{type = price}}")
        workers = float(configuration["vm_count"]) + float(str(self._price.get("more_of_same_type", 0)))
        helpers = self._price.get("helpers", [])
        rented = [str(helper) for helper in helpers] if isinstance(helpers, list) else []
        return workers * float(prices[configuration["vm_type"]]) + sum(float(prices[helper]) for helper in rented)

    def cell(self, row: Mapping[str, str], price: float) -> Cell:
        failed = row.get(str(self._description.get("failed", "")), "") or None
        if failed is not None:
            seconds = self._number(row, self._metrics[TIME])
            return Cell({TIME: seconds, COST: seconds * price / 3600.0}, failed)
        metrics = {metric: self._number(row, column) for metric, column in self._metrics.items()}
        metrics.setdefault(COST, metrics[TIME] * price / 3600.0)
        return Cell(metrics, None)

    def _text(self, row: Mapping[str, str], column: str) -> str:
        if column not in row:
            raise InputError(f"table {self._name!r} has no column {column!r}{nearest(column, row)}")
        return row[column]

    def _number(self, row: Mapping[str, str], column: str) -> float:
        text = self._text(row, column)
        try:
            return float(text)
        except ValueError:
            raise InputError(f"table {self._name!r}, column {column!r}: {text!r} is not a number") from None


def _prices_of(
    measured: Sequence[tuple[dict[str, Value], float, Mapping[str, str]]],
    by_key: Mapping[ConfigurationKey, object],
    prices: Sequence[float],
) -> Iterator[float]:
    price_of = dict(zip(by_key, prices, strict=True))
    for configuration, _, _ in measured:
        yield price_of[tuple(configuration.items())]


def _plain(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shipped() -> Traversable:
    return resources.files("trimtuner") / "tables"


def _data_folders() -> list[Path]:
    return [Path(folder) for folder in (os.environ.get(_DATA_VARIABLE), _NEARBY) if folder]


def _find_csv(name: str) -> Traversable:
    given = Path(name)
    if given.suffix == ".csv" or given.exists():
        if not given.is_file():
            raise InputError(f"there is no table at {name!r}")
        return given
    folders = _data_folders()
    places: list[Traversable] = [folder / f"{name}.csv" for folder in folders] + [_shipped() / f"{name}.csv"]
    for place in places:
        if place.is_file():
            return place
    raise InputError(
        f"no table {name!r} in {', '.join(map(str, folders))} or in the package; "
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
