"""Catalogs looked at: which lines are wanted, in which order, and how they are shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.problem.catalog import COLUMNS, DEFAULT_REGIONS, Listing, built_in_listings, listings_of_file
from trimtuner.problem.cells import cell_of_text

ORDERS: Mapping[str, Callable[[Listing], tuple[float | str, ...]]] = {
    "price": lambda one: (one.vm.price_per_hour, one.vm_type),
    "type": lambda one: (one.vm_type, one.vm.price_per_hour),
    "vcpus": lambda one: (one.vm.vcpus, one.vm.price_per_hour),
    "memory": lambda one: (one.vm.memory_gib, one.vm.price_per_hour),
}


@dataclass(frozen=True)
class Wish:
    """What a machine must be to be listed; None is no matter."""

    provider: str | None = None
    region: str | None = None  # a pattern such as eu-*; without one the provider's default region
    vm_type: str | None = None  # a pattern such as g5.*
    min_vcpus: int | None = None
    max_vcpus: int | None = None
    min_memory_gib: float | None = None
    gpu: str | None = None
    min_gpus: int | None = None
    max_price: float | None = None  # USD per hour

    def allows(self, listing: Listing) -> bool:
        """Whether the line is wanted, whatever its region."""
        vm = listing.vm
        return (
            self.provider in (None, listing.quote.provider)
            and fnmatchcase(listing.vm_type.lower(), (self.vm_type or "*").lower())
            and _is_within(vm.vcpus, self.min_vcpus, self.max_vcpus)
            and _is_within(vm.memory_gib, self.min_memory_gib, None)
            and _is_within(vm.gpus, self.min_gpus, None)
            and _is_within(vm.price_per_hour, None, self.max_price)
            and (self.gpu is None or self.gpu.lower() == listing.gpu.lower())
        )

    def allows_region_of(self, listing: Listing) -> bool:
        """Whether the line is of a wanted region."""
        wanted = self.region or DEFAULT_REGIONS.get(listing.quote.provider, "*")
        return fnmatchcase(listing.quote.region, wanted)


def built_in_lines(wish: Wish) -> list[Listing]:
    """Of the shipped catalogs; a provider or region that none of them has is an error."""
    if wish.provider is not None and wish.provider not in DEFAULT_REGIONS:
        known = ", ".join(DEFAULT_REGIONS)
        raise InputError(f"--provider {wish.provider!r} is none of {known}{nearest(wish.provider, DEFAULT_REGIONS)}")
    providers = DEFAULT_REGIONS if wish.provider is None else [wish.provider]
    listings = [listing for provider in providers for listing in built_in_listings(provider)]
    return _chosen(listings, wish, [listing for listing in listings if wish.allows_region_of(listing)])


def lines_of_file(path: Path, wish: Wish) -> list[Listing]:
    """Of a CSV of one's own: of every region unless one is named."""
    listings = listings_of_file(path)
    in_region = [listing for listing in listings if wish.region is None or wish.allows_region_of(listing)]
    return _chosen(listings, wish, in_region)


def sorted_lines(listings: Iterable[Listing], order: str) -> list[Listing]:
    """By price, type, vcpus or memory."""
    if order not in ORDERS:
        raise InputError(f"--sort {order!r} is none of {', '.join(ORDERS)}{nearest(order, ORDERS)}")
    return sorted(listings, key=ORDERS[order])


def as_rows(listings: Iterable[Listing]) -> list[dict[str, str | int | float | None]]:
    """For scripts: the columns of a catalog."""
    return [
        {
            "provider": one.quote.provider,
            "region": one.quote.region,
            "vm_type": one.vm_type,
            "vcpus": one.vm.vcpus,
            "memory_gib": one.vm.memory_gib,
            "gpus": one.vm.gpus,
            "gpu": one.gpu,
            "price_per_hour": one.vm.price_per_hour,
            "spot_price_per_hour": one.vm.spot_price_per_hour,
            "spot_interruptions_per_hour": one.vm.spot_interruptions_per_hour or None,
            "date": one.quote.date,
            "source": one.quote.source,
        }
        for one in listings
    ]


def as_csv(listings: Iterable[Listing]) -> str:
    """A catalog that ``catalog:`` of a job file takes."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in as_rows(listings):
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def as_text(listings: Sequence[Listing]) -> str:
    """A table for a person; a column in which nothing stands is left out."""
    columns = {
        "provider": [one.quote.provider for one in listings],
        "region": [one.quote.region for one in listings],
        "type": [one.vm_type for one in listings],
        "vCPUs": [f"{one.vm.vcpus}" for one in listings],
        "GiB": [f"{one.vm.memory_gib:g}" for one in listings],
        "GPUs": [f"{one.vm.gpus} {one.gpu}".strip() if one.vm.gpus else "" for one in listings],
        "USD/h": [f"{one.vm.price_per_hour:.4f}" for one in listings],
        "spot": [_amount(one.vm.spot_price_per_hour) for one in listings],
        "interruptions/h": [_amount(one.vm.spot_interruptions_per_hour or None) for one in listings],
    }
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    widths = {title: max(len(title), *map(len, cells)) for title, cells in shown.items()}
    rows = [list(shown), *(list(row) for row in zip(*shown.values(), strict=True))]
    texts = [
        "  ".join(_aligned(title, cell, widths[title]) for title, cell in zip(shown, row, strict=True)) for row in rows
    ]
    return "\n".join([*(text.rstrip() for text in texts), _count_text(listings)])


def _cell(value: str | float | None) -> str | float | None:
    if isinstance(value, str):
        return cell_of_text(value)
    return f"{value:.10g}" if isinstance(value, float) else value


def _chosen(listings: Sequence[Listing], wish: Wish, in_region: Sequence[Listing]) -> list[Listing]:
    if not in_region:
        regions = ", ".join(sorted({listing.quote.region for listing in listings} - {""})) or "none"
        raise InputError(f"no region is like {wish.region!r}; there are {regions}")
    found = [listing for listing in in_region if wish.allows(listing)]
    if not found:
        raise InputError(f"none of {len(in_region)} lines is like that; ask for less, or for --region '*'")
    return found


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _amount(number: float | None) -> str:
    return "" if number is None else f"{number:.4f}"


def _aligned(title: str, cell: str, width: int) -> str:
    return cell.ljust(width) if title in ("provider", "region", "type", "GPUs") else cell.rjust(width)


def _count_text(listings: Sequence[Listing]) -> str:
    sources = {f"{one.quote.source} ({one.quote.date or 'undated'})" for one in listings if one.quote.source}
    return f"{len(listings)} types" + (f", from {', '.join(sorted(sources))}" if sources else "")
