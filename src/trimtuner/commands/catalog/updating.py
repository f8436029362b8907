"""A dated catalog for a job file to name: from a provider's prices of today, or from a CSV of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from trimtuner.commands.catalog.aws import aws_listings
from trimtuner.commands.catalog.azure import azure_listings
from trimtuner.commands.catalog.fetching import PriceRequest
from trimtuner.commands.catalog.gcp import gcp_listings
from trimtuner.errors import InputError, nearest
from trimtuner.problem.catalog import Listing, listings_of_file

_SOURCES: Mapping[str, Callable[[PriceRequest], list[Listing]]] = {
    "aws": aws_listings,
    "azure": azure_listings,
    "gcp": gcp_listings,
}


def fetched(request: PriceRequest) -> list[Listing]:
    """Today's prices of one region of a provider."""
    if request.provider not in _SOURCES:
        known = ", ".join(_SOURCES)
        raise InputError(f"{request.provider!r} is none of {known}{nearest(request.provider, _SOURCES)}")
    return _SOURCES[request.provider](request)


def dated(path: Path, date: str) -> list[Listing]:
    """The lines of a CSV of one's own; those without a date get this one."""
    found = []
    for listing in listings_of_file(path):
        quote = replace(listing.quote, date=listing.quote.date or date, source=listing.quote.source or path.name)
        found.append(replace(listing, vm=replace(listing.vm, quote=quote)))
    return found


def like(listings: Sequence[Listing], pattern: str | None) -> list[Listing]:
    """Those whose type is like the pattern."""
    found = [one for one in listings if pattern is None or fnmatchcase(one.vm_type.lower(), pattern.lower())]
    if not found:
        raise InputError(f"none of {len(listings)} types is like {pattern!r}; nothing was written")
    return found


def check_output(path: Path) -> None:
    """Refuse a place that no catalog can be written to, before anybody waits for prices."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to")
    if path.suffix.lower() != ".csv":
        raise InputError(f"--output {str(path)!r} must end with .csv, so that a job file can name it")
