"""Prices of Azure, from its public retail price list; it needs no account.

What a size is made of is known for the families whose documented names tell it: ``Standard_D4ds_v4`` is family D, 4
vCPUs, additive features d (a local disk) and s (premium storage), version 4. Memory follows from the family, but for a
few sizes.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping

from trimtuner.commands.catalog.fetching import (
    JsonObject,
    MachineFacts,
    PriceRequest,
    fetch_items,
    no_machines,
    require_same_host,
)
from trimtuner.problem.catalog import Listing

_ADDRESS = "https://prices.azure.com/api/retail/prices"
_HOURLY = "1 Hour"

_NAME = re.compile(r"Standard_(?P<family>[DEF])(?P<vcpus>\d+)(?P<features>a?d?s?)_v(?P<version>[2-5])")
_VCPUS = {
    "D": (2, 4, 8, 16, 32, 48, 64, 96),
    "E": (2, 4, 8, 16, 20, 32, 48, 64, 96),
    "F": (2, 4, 8, 16, 32, 48, 64, 72),
}
_MEMORY_OF_EACH_GIB = {"D": 4.0, "E": 8.0, "F": 2.0}
_VERSIONS = {"D": "345", "E": "345", "F": "2"}
# The largest of family E have less than 8 GiB for each vCPU.
_LESS_MEMORY_GIB = {"E64_v3": 432.0, "E64_v4": 504.0, "E96a_v4": 672.0, "E96_v5": 672.0, "E96a_v5": 672.0}

GPU_SIZES: Mapping[str, MachineFacts] = {
    "Standard_NC4as_T4_v3": MachineFacts(4, 28.0, 1, "T4"),
    "Standard_NC8as_T4_v3": MachineFacts(8, 56.0, 1, "T4"),
    "Standard_NC16as_T4_v3": MachineFacts(16, 110.0, 1, "T4"),
    "Standard_NC64as_T4_v3": MachineFacts(64, 440.0, 4, "T4"),
    "Standard_NC6s_v3": MachineFacts(6, 112.0, 1, "V100"),
    "Standard_NC12s_v3": MachineFacts(12, 224.0, 2, "V100"),
    "Standard_NC24s_v3": MachineFacts(24, 448.0, 4, "V100"),
    "Standard_NC24rs_v3": MachineFacts(24, 448.0, 4, "V100"),
    "Standard_ND40rs_v2": MachineFacts(40, 672.0, 8, "V100"),
    "Standard_NC24ads_A100_v4": MachineFacts(24, 220.0, 1, "A100"),
    "Standard_NC48ads_A100_v4": MachineFacts(48, 440.0, 2, "A100"),
    "Standard_NC96ads_A100_v4": MachineFacts(96, 880.0, 4, "A100"),
    "Standard_ND96asr_v4": MachineFacts(96, 900.0, 8, "A100"),
    "Standard_ND96amsr_A100_v4": MachineFacts(96, 1900.0, 8, "A100"),
    "Standard_NC40ads_H100_v5": MachineFacts(40, 320.0, 1, "H100"),
    "Standard_NC80adis_H100_v5": MachineFacts(80, 640.0, 2, "H100"),
    "Standard_ND96isr_H100_v5": MachineFacts(96, 1900.0, 8, "H100"),
}


def azure_listings(request: PriceRequest) -> list[Listing]:
    """Linux machines of one region, on demand and spot; sizes whose names do not tell what they are are left out."""
    address, region = request.address or _ADDRESS, request.place.replace("'", "''")
    wanted = f"serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '{region}'"
    first = f"{address}?{urllib.parse.urlencode({'currencyCode': 'USD', '$filter': wanted})}"

    def next_page(answer: JsonObject) -> str | None:
        following = answer.get("NextPageLink")
        return require_same_host(following, address) if isinstance(following, str) and following else None

    prices: dict[tuple[str, str], float] = {}
    for item in fetch_items("azure", first, "Items", next_page):
        prices.update(_price(item))
    on_demand = sorted(name for name, market in prices if market == "on_demand")
    if not on_demand:
        raise no_machines("azure", request.place)
    quote = request.quote("azure retail prices")
    return [
        size.listing(name, prices[name, "on_demand"], prices.get((name, "spot")), quote)
        for name in on_demand
        if (size := size_named(name)) is not None
    ]


def size_named(name: str) -> MachineFacts | None:
    """What the size is; nothing where its name does not tell."""
    if name in GPU_SIZES:
        return GPU_SIZES[name]
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    family, vcpus, version = match["family"], int(match["vcpus"]), match["version"]
    if vcpus not in _VCPUS[family] or version not in _VERSIONS[family]:
        return None
    maker = "a" if "a" in match["features"] else ""
    memory_gib = _LESS_MEMORY_GIB.get(f"{family}{vcpus}{maker}_v{version}", _MEMORY_OF_EACH_GIB[family] * vcpus)
    return MachineFacts(vcpus, memory_gib)


def _price(item: JsonObject) -> dict[tuple[str, str], float]:
    """The price of a size on a market; nothing of Windows, low priority, reservations and other units."""
    name, sku, product = (str(item.get(key, "")) for key in ("armSkuName", "skuName", "productName"))
    price = item.get("retailPrice")
    is_ours = item.get("unitOfMeasure") == _HOURLY and item.get("type") == "Consumption" and "Windows" not in product
    if not is_ours or "Low Priority" in sku or not isinstance(price, int | float) or not price > 0:
        return {}
    return {(name, "spot" if sku.endswith("Spot") else "on_demand"): float(price)}
