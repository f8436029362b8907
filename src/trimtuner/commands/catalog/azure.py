"""Prices of Azure, from its public retail price list; it needs no account."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtuner.commands.catalog.azure_sizes import size_named
from trimtuner.commands.catalog.fetching import JsonObject, PricesUnreachable, fetch_json, hint, require_same_host
from trimtuner.problem.catalog import Listing
from trimtuner.problem.vms import VM, Quote

ADDRESS = "https://prices.azure.com/api/retail/prices"

_MOST_PAGES = 500
_HOURLY = "1 Hour"


@dataclass
class _Prices:
    """What was found of each size, in USD per hour."""

    on_demand: dict[str, float] = field(default_factory=dict)
    spot: dict[str, float] = field(default_factory=dict)


def azure_listings(region: str, date: str, address: str = ADDRESS) -> list[Listing]:
    """Linux machines of one region, on demand and spot; sizes whose names do not tell what they are are left out."""
    prices = _Prices()
    for item in _items(region, address):
        _note(prices, item)
    if not prices.on_demand:
        raise PricesUnreachable(f"azure has no machines in {region!r}; is that how it spells the region?{hint()}")
    quote = Quote("azure", region, date, "azure retail prices")
    return [
        listing
        for name, price in sorted(prices.on_demand.items())
        if (listing := _listing(name, price, prices.spot.get(name), quote)) is not None
    ]


def _items(region: str, address: str) -> Iterator[JsonObject]:
    wanted = (
        f"serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '{_quoted(region)}'"
    )
    page: str | None = f"{address}?{urllib.parse.urlencode({'currencyCode': 'USD', '$filter': wanted})}"
    for _ in range(_MOST_PAGES):
        if page is None:
            return
        answer = fetch_json(page)
        items, following = answer.get("Items"), answer.get("NextPageLink")
        if not isinstance(items, list):
            raise PricesUnreachable(f"azure did not answer with a list of prices{hint()}")
        yield from (item for item in items if isinstance(item, dict))
        page = require_same_host(following, address) if isinstance(following, str) and following else None
    raise PricesUnreachable(f"azure sent more than {_MOST_PAGES} pages of prices")


def _quoted(region: str) -> str:
    return region.replace("'", "''")


def _note(prices: _Prices, item: JsonObject) -> None:
    """Sort one meter: Windows, low priority, reservations and other units are not ours."""
    name, sku, product = (str(item.get(key, "")) for key in ("armSkuName", "skuName", "productName"))
    price = item.get("retailPrice")
    is_ours = item.get("unitOfMeasure") == _HOURLY and item.get("type") == "Consumption" and "Windows" not in product
    if not is_ours or "Low Priority" in sku or not isinstance(price, int | float) or not price > 0:
        return
    (prices.spot if sku.endswith("Spot") else prices.on_demand)[name] = float(price)


def _listing(name: str, price: float, spot: float | None, quote: Quote) -> Listing | None:
    size = size_named(name)
    if size is None:
        return None
    return Listing(name, VM(size.vcpus, size.memory_gib, price, size.gpus, spot, quote=quote), size.gpu)
