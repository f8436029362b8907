"""Prices of Google Cloud, from its billing catalog, which needs an API key.

It prices vCPUs, memory and GPUs by family and region, not machine types: those are put together from their parts.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping

from trimtuner.commands.catalog.fetching import JsonObject, MachineFacts, PriceRequest, fetch_items, no_machines
from trimtuner.errors import InputError
from trimtuner.problem.catalog import Listing
from trimtuner.problem.vms import MARKETS, Market

_ADDRESS = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"  # Compute Engine's
_USAGE = {"OnDemand": "on_demand", "Preemptible": "spot"}
# How the catalog describes parts; the region follows. Custom, sole-tenancy and reserved ones are worded differently.
_CORE_OR_MEMORY = re.compile(
    r"(Spot Preemptible )?(?P<family>N1 Predefined|N2D AMD|E2|N2|C3|A2|G2|Compute optimized)( Instance)? "
    r"(?P<part>Core|Ram) running in .*"
)
_GPU = re.compile(r"Nvidia (Tesla )?(?P<gpu>A100|L4) GPU (attached to Spot Preemptible VMs )?running in .*")
_FAMILIES = {"N1 Predefined": "n1", "N2D AMD": "n2d", "Compute optimized": "c2"}


_TO_32 = (2, 4, 8, 16, 32)
_TO_96 = (2, 4, 8, 16, 32, 48, 64, 80, 96)

# Series, memory in GiB for each vCPU, and the counts of vCPUs that there are.
_SERIES: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("e2-standard", 4.0, _TO_32),
    ("e2-highmem", 8.0, (2, 4, 8, 16)),
    ("e2-highcpu", 1.0, _TO_32),
    ("n1-standard", 3.75, (1, 2, 4, 8, 16, 32, 64, 96)),
    ("n1-highmem", 6.5, (2, 4, 8, 16, 32, 64, 96)),
    ("n1-highcpu", 0.9, (2, 4, 8, 16, 32, 64, 96)),
    ("n2-standard", 4.0, (*_TO_96, 128)),
    ("n2-highmem", 8.0, _TO_96),
    ("n2-highcpu", 1.0, _TO_96),
    ("n2d-standard", 4.0, (*_TO_96, 128, 224)),
    ("n2d-highmem", 8.0, _TO_96),
    ("n2d-highcpu", 1.0, (*_TO_96, 128, 224)),
    ("c2-standard", 4.0, (4, 8, 16, 30, 60)),
    ("c3-standard", 4.0, (4, 8, 22, 44, 88, 176)),
    ("c3-highmem", 8.0, (4, 8, 22, 44, 88, 176)),
    ("c3-highcpu", 2.0, (4, 8, 22, 44, 88, 176)),
)
# What Google's documentation lists by name besides.
_SINGLE = {
    "e2-micro": MachineFacts(2, 1.0),
    "e2-small": MachineFacts(2, 2.0),
    "e2-medium": MachineFacts(2, 4.0),
    **{f"a2-highgpu-{gpus}g": MachineFacts(12 * gpus, 85.0 * gpus, gpus, "A100") for gpus in (1, 2, 4, 8)},
    "a2-megagpu-16g": MachineFacts(96, 1360.0, 16, "A100"),
    **{
        f"g2-standard-{vcpus}": MachineFacts(vcpus, 4.0 * vcpus, gpus, "L4")
        for vcpus, gpus in ((4, 1), (8, 1), (12, 1), (16, 1), (24, 2), (32, 1), (48, 4), (96, 8))
    },
}
_OF_SERIES = {
    f"{series}-{vcpus}": MachineFacts(vcpus, memory_of_each * vcpus)
    for series, memory_of_each, counts in _SERIES
    for vcpus in counts
}
MACHINE_TYPES: Mapping[str, MachineFacts] = dict(sorted({**_SINGLE, **_OF_SERIES}.items()))
_CHARGED_VCPUS = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1.0}  # of types that share a core, a part


def gcp_listings(request: PriceRequest) -> list[Listing]:
    """Machine types of one region all of whose parts have a price."""
    parts: dict[tuple[str, str], float] = {}
    for sku in _skus(_key_in(os.environ, request.key_variable), request.address or _ADDRESS):
        regions = sku.get("serviceRegions")
        if isinstance(regions, list) and request.place in regions:
            parts.update(_part(sku))
    if not parts:
        raise no_machines("google", request.place)
    quote = request.quote("google cloud billing catalog")
    found = {name: [price_of_parts(name, parts, market) for market in MARKETS] for name in MACHINE_TYPES}
    return [
        MACHINE_TYPES[name].listing(name, price, spot, quote)
        for name, (price, spot) in found.items()
        if price is not None
    ]


def _key_in(environment: Mapping[str, str], variable: str) -> str:
    """The key that the variable holds; its value is never shown."""
    key = environment.get(variable, "")
    if not key:
        raise InputError(
            f"google's price list needs an API key, and {variable} is not set in this environment; set it, name "
            "another with --key-variable, or write a CSV of your own: trimtuner catalog update --from-csv FILE"
        )
    if not key.isascii() or not key.isprintable():
        raise InputError(f"what {variable} holds is no API key: it has characters that no key has")
    return key


def _skus(key: str, address: str) -> Iterator[JsonObject]:
    first = f"{address}?currencyCode=USD"

    def next_page(answer: JsonObject) -> str | None:
        token = answer.get("nextPageToken")
        return f"{first}&pageToken={urllib.parse.quote_plus(token)}" if isinstance(token, str) and token else None

    # In a header, not in the address, which is what errors and logs of proxies show.
    return fetch_items("google", first, "skus", next_page, {"X-Goog-Api-Key": key})


def _part(sku: JsonObject) -> dict[tuple[str, str], float]:
    """The price of a part on a market, such as ``("n2 Core", "spot")``; nothing where it is no part of ours."""
    category, text = sku.get("category"), str(sku.get("description", ""))
    usage = _USAGE.get(str(category.get("usageType"))) if isinstance(category, dict) else None
    price = _price_per_hour(sku)
    if usage is None or price is None:
        return {}
    if match := _CORE_OR_MEMORY.fullmatch(text):
        family = _FAMILIES.get(match["family"], match["family"].lower())
        return {(f"{family} {match['part']}", usage): price}
    if match := _GPU.fullmatch(text):
        return {(match["gpu"], usage): price}
    return {}


def _price_per_hour(sku: JsonObject) -> float | None:
    """USD for one unit and hour, of the dearest tier: the first may be free."""
    for info in _objects(sku.get("pricingInfo")):
        expression = info.get("pricingExpression")
        for rate in reversed(_objects(expression.get("tieredRates") if isinstance(expression, dict) else None)):
            unit = rate.get("unitPrice")
            if isinstance(unit, dict):
                price = _whole(unit.get("units")) + _whole(unit.get("nanos")) * 1e-9
                return price if price > 0 else None
    return None


def _whole(value: object) -> int:
    """Google writes large whole numbers as texts, and leaves zeros out."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else 0


def price_of_parts(name: str, parts: Mapping[tuple[str, str], float], market: Market) -> float | None:
    """USD per hour of a machine type, where all of its parts have a price on the market."""
    facts, family = MACHINE_TYPES[name], name.split("-")[0]
    vcpu, gib = (parts.get((f"{family} {part}", market)) for part in ("Core", "Ram"))
    gpu = parts.get((facts.gpu, market)) if facts.gpus else 0.0
    if vcpu is None or gib is None or gpu is None:
        return None
    return _CHARGED_VCPUS.get(name, facts.vcpus) * vcpu + facts.memory_gib * gib + facts.gpus * gpu


def _objects(value: object) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
