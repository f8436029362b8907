"""Catalogs of machines and their prices: those shipped with the package, and CSVs of one's own.

All have the same columns; ``prices/README.md`` says where the shipped ones come from. A file is read when it is first
asked for, so that whoever needs no prices does not wait for them.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from trimtuner.errors import InputError, cut, nearest
from trimtuner.problem.cells import text_of_cell
from trimtuner.problem.vms import VM, Quote

DEFAULT_REGIONS: Mapping[str, str] = {"aws": "us-east-1", "azure": "eastus", "gcp": "us-central1"}
BUILT_IN = "builtin"  # another word for aws, from when there was no other
NEEDED_COLUMNS = ("vm_type", "vcpus", "memory_gib", "price_per_hour")
COLUMNS = (
    *("provider", "region", "vm_type", "vcpus", "memory_gib", "gpus", "gpu", "price_per_hour"),
    *("spot_price_per_hour", "spot_interruptions_per_hour", "date", "source"),
)
MOST_OF_A_KIND = 10_000  # vCPUs, GPUs
MOST_MEMORY_GIB = 1e6
LEAST_AMOUNT, MOST_PRICE = 1e-9, 1e5  # GiB; USD per hour
MOST_INTERRUPTIONS_PER_HOUR = 1e3

_LARGEST_CSV = 4 * 2**20  # bytes
VM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,63}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
_WORDS = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,200}")


@dataclass(frozen=True)
class Listing:
    """A line of a catalog."""

    vm_type: str
    vm: VM
    gpu: str = ""  # its name, such as A10G
    where: str = field(default="", compare=False)  # file and line

    @property
    def quote(self) -> Quote:
        """Where its price comes from."""
        return self.vm.quote or Quote()


@cache
def built_in_catalog(provider: str = "aws", region: str | None = None) -> Mapping[str, VM]:
    """The shipped machines of one region, by name; without a region that of ``DEFAULT_REGIONS``."""
    wanted = region or DEFAULT_REGIONS[provider]
    return vms_of(in_region(built_in_listings(provider), wanted, f"the built-in catalog of {provider}"))


@cache
def built_in_listings(provider: str) -> tuple[Listing, ...]:
    """Everything that is shipped of one provider."""
    file = resources.files("trimtuner.problem").joinpath("prices", f"{provider}.csv")
    return read_listings(f"{provider}.csv", file.read_text(encoding="utf-8"))


def provider_named(catalog: str) -> str | None:
    """Which provider's built-in catalog the word means; none where it means no built-in one."""
    return "aws" if catalog == BUILT_IN else catalog if catalog in DEFAULT_REGIONS else None


def listings_of_file(path: Path) -> tuple[Listing, ...]:
    """A CSV of one's own; an error names file and line."""
    if not os.path.isfile(path):  # unlike Path.is_file, also for a name that is too long
        raise InputError(f"there is no file {cut(repr(str(path)))}")
    if path.stat().st_size > _LARGEST_CSV:
        raise InputError(f"{path.name} is larger than {_LARGEST_CSV // 2**20} MiB")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name} cannot be read: {type(error).__name__}") from None
    return read_listings(path.name, text)


def read_listings(name: str, text: str) -> tuple[Listing, ...]:
    """The rows of a CSV, each checked; other columns than ours may be there and are left alone."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"{name} cannot be read: {error}") from None
    header = rows[0] if rows else []
    _check_header(name, header)
    listed = []
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(f"{name}:{number}: {len(row)} values for {len(header)} columns")
        written = {column: text_of_cell(cell.strip()) for column, cell in zip(header, row, strict=True)}
        listed.append(_Row(f"{name}:{number}", written).listing())
    return tuple(listed)


def in_region(listings: Sequence[Listing], region: str | None, name: str) -> tuple[Listing, ...]:
    """Those of a region; all of them where none is named."""
    if region is None:
        return tuple(listings)
    regions = sorted({listing.quote.region for listing in listings} - {""})
    if not regions:
        raise InputError(f"{name} has no column 'region'; leave the region out")
    if region not in regions:
        raise InputError(f"{name} has no region {cut(repr(region))}; it has {', '.join(regions)}")
    return tuple(listing for listing in listings if listing.quote.region == region)


def vms_of(listings: Iterable[Listing]) -> dict[str, VM]:
    """Machines by name, each there once."""
    found: dict[str, VM] = {}
    for listing in listings:
        if listing.vm_type in found:
            raise InputError(
                f"{listing.where}: {listing.vm_type!r} is there already; keep one row of each type, or name a region"
            )
        found[listing.vm_type] = listing.vm
    return found


def check_vm_name(name: str) -> None:
    """Refuse a name that is not safe wherever a name is shown or stored."""
    if not VM_NAME.fullmatch(name):
        raise InputError(f"{cut(repr(name))} is no name for a VM type; use letters, digits and . _ : / + -")


def _check_header(name: str, header: Sequence[str]) -> None:
    for column in NEEDED_COLUMNS:
        if column not in header:
            raise InputError(f"{name}:1: there is no column {column!r}; it needs {', '.join(NEEDED_COLUMNS)}")
    for column in header:
        if header.count(column) > 1:
            raise InputError(f"{name}:1: the column {cut(repr(column))} is there twice")
        if column not in COLUMNS and nearest(column, COLUMNS):
            raise InputError(f"{name}:1: unknown column {cut(repr(column))}{nearest(column, COLUMNS)}")


@dataclass(frozen=True)
class _Row:
    """The cells of one line, and where it stands."""

    where: str
    cells: Mapping[str, str]

    def listing(self) -> Listing:
        check_vm_name(self.cells["vm_type"])
        vm = VM(
            vcpus=self._whole("vcpus", 1),
            memory_gib=self._amount("memory_gib", "an amount of memory in GiB", LEAST_AMOUNT, MOST_MEMORY_GIB),
            price_per_hour=self._price("price_per_hour"),
            gpus=self._whole("gpus", 0) if self.cells.get("gpus") else 0,
            spot_price_per_hour=self._price("spot_price_per_hour") if self.cells.get("spot_price_per_hour") else None,
            spot_interruptions_per_hour=self._interruptions(),
            quote=Quote(self._word("provider"), self._word("region"), self._date(), self._word("source")),
        )
        return Listing(self.cells["vm_type"], vm, self._word("gpu"), self.where)

    def _price(self, column: str) -> float:
        return self._amount(column, "a price in USD per hour", LEAST_AMOUNT, MOST_PRICE)

    def _interruptions(self) -> float:
        column = "spot_interruptions_per_hour"
        if not self.cells.get(column):
            return 0.0
        return self._amount(column, "a number of interruptions per hour", 0.0, MOST_INTERRUPTIONS_PER_HOUR)

    def _amount(self, column: str, wanted: str, least: float, most: float) -> float:
        text = self._written(column)
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not least <= number <= most:
            raise self._wrong(column, f"{wanted}; it must be from {least:g} to {most:g}")
        return number

    def _whole(self, column: str, least: int) -> int:
        text = self._written(column)
        if not _DIGITS.fullmatch(text) or not least <= int(text) <= MOST_OF_A_KIND:
            raise self._wrong(column, f"a whole number from {least} to {MOST_OF_A_KIND}")
        return int(text)

    def _written(self, column: str) -> str:
        text = self.cells[column]
        if not text:
            raise InputError(f"{self.where} has no {column!r}; every row needs {', '.join(NEEDED_COLUMNS)}")
        return text

    def _date(self) -> str:
        text = self.cells.get("date", "")
        try:
            return datetime.date.fromisoformat(text).isoformat() if text else ""
        except ValueError:
            raise self._wrong("date", "a date such as 2026-01-31") from None

    def _word(self, column: str) -> str:
        text = self.cells.get(column, "")
        if not _WORDS.fullmatch(text):
            raise self._wrong(column, "a short text without control characters")
        return text

    def _wrong(self, column: str, wanted: str) -> InputError:
        text = self.cells[column]
        shown = text if _NUMBER.fullmatch(text) else repr(text)
        return InputError(f"{self.where}.{column}: {cut(shown)} is not {wanted}")
