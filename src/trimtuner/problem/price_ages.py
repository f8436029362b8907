"""How old prices are, and what to do about it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from trimtuner.problem.catalog import DEFAULT_REGIONS
from trimtuner.problem.vms import Quote

OLD_FROM_MONTHS = 6


def age_warnings(quotes: Iterable[Quote | None], today: datetime.date) -> Iterator[str]:
    """A line for each provider and region whose oldest price is half a year old or more; undated ones are nobody's."""
    oldest: dict[tuple[str, str], str] = {}
    for quote in quotes:
        if quote is not None and quote.date:
            place = (quote.provider, quote.region)
            oldest[place] = min(quote.date, oldest.get(place, quote.date))
    for (provider, region), date in sorted(oldest.items()):
        months = months_between(datetime.date.fromisoformat(date), today)
        if months >= OLD_FROM_MONTHS:
            yield f"{_named(provider, region)} are of {date}, {months} months old; {_remedy(provider, region)}"


def months_between(earlier: datetime.date, later: datetime.date) -> int:
    """Whole months from one day to another."""
    months = 12 * (later.year - earlier.year) + later.month - earlier.month
    return months - (later.day < earlier.day)


def _named(provider: str, region: str) -> str:
    return " ".join(["prices", *(["of", provider] if provider else []), *(["in", region] if region else [])])


def _remedy(provider: str, region: str) -> str:
    if provider in DEFAULT_REGIONS and region:
        return f"refresh them with: trimtuner catalog update {provider} --region {region} --output prices.csv"
    return "look them up again and write the new date into the CSV"
