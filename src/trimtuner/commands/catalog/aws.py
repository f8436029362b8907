"""Prices of AWS: on demand from its price list, spot from the last prices of each zone; both need credentials.

Credentials are found by boto3 as it finds them everywhere; they need ``pricing:GetProducts``,
``ec2:DescribeInstanceTypes`` and ``ec2:DescribeSpotPriceHistory``.
"""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtuner.commands.catalog.fetching import JsonObject, PricesUnreachable, hint
from trimtuner.errors import InputError
from trimtuner.problem.catalog import Listing
from trimtuner.problem.vms import VM, Quote

if TYPE_CHECKING:
    from boto3.session import Session

_PRICE_LIST_REGION = "us-east-1"  # where the price list of all regions is
_LINUX = "Linux/UNIX"
_FILTERS = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


@dataclass(frozen=True)
class _Facts:
    """What a type is."""

    vcpus: int
    memory_gib: float
    gpus: int
    gpu: str


def aws_listings(region: str, date: str) -> list[Listing]:
    """Linux machines of one region, on demand and spot; types without a price or without facts are left out."""
    try:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise InputError("prices of aws need boto3; install it with: pip install 'trimtuner[aws]'") from None
    try:
        return _listings(Session(), region, date)
    except ClientError as error:
        told = error.response.get("Error", {})
        raise PricesUnreachable(f"aws refuses: {told.get('Message') or told.get('Code')}{hint()}") from None
    except BotoCoreError as error:
        raise PricesUnreachable(f"aws cannot be asked: {error}{hint()}") from None


def _listings(session: Session, region: str, date: str) -> list[Listing]:
    prices = dict(_on_demand_prices(session, region))
    if not prices:
        raise PricesUnreachable(f"aws has no machines in {region!r}; is that how it spells the region?{hint()}")
    facts, spot = dict(_facts(session, region)), _spot_prices(session, region)
    quote = Quote("aws", region, date, "aws price list and spot price history")
    return [
        Listing(name, _vm(facts[name], price, spot.get(name), quote), facts[name].gpu)
        for name, price in sorted(prices.items())
        if name in facts
    ]


def _vm(facts: _Facts, price: float, spot: float | None, quote: Quote) -> VM:
    return VM(facts.vcpus, facts.memory_gib, price, facts.gpus, spot, quote=quote)


def _on_demand_prices(session: Session, region: str) -> Iterator[tuple[str, float]]:
    pages = session.client("pricing", region_name=_PRICE_LIST_REGION).get_paginator("get_products")
    filters = [
        {"Type": "TERM_MATCH", "Field": name, "Value": value}
        for name, value in {**_FILTERS, "regionCode": region}.items()
    ]
    for page in pages.paginate(ServiceCode="AmazonEC2", Filters=filters):
        for text in page["PriceList"]:
            product: JsonObject = json.loads(text)
            name = _inside(_inside(product, "product"), "attributes").get("instanceType")
            price = _hourly_price(product)
            if isinstance(name, str) and price is not None:
                yield name, price


def _hourly_price(product: JsonObject) -> float | None:
    """USD per hour; the list also has free lines for what is part of something else."""
    on_demand = _inside(_inside(product, "terms"), "OnDemand")
    for term in on_demand:
        dimensions = _inside(_inside(on_demand, term), "priceDimensions")
        for dimension in (_inside(dimensions, code) for code in dimensions):
            usd = float(str(_inside(dimension, "pricePerUnit").get("USD", 0)))
            if dimension.get("unit") == "Hrs" and usd > 0:
                return usd
    return None


def _inside(value: JsonObject, key: str) -> JsonObject:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _facts(session: Session, region: str) -> Iterator[tuple[str, _Facts]]:
    pages = session.client("ec2", region_name=region).get_paginator("describe_instance_types")
    for page in pages.paginate():
        for one in page["InstanceTypes"]:
            gpus = one.get("GpuInfo", {}).get("Gpus", [])
            yield (
                one["InstanceType"],
                _Facts(
                    vcpus=one["VCpuInfo"]["DefaultVCpus"],
                    memory_gib=one["MemoryInfo"]["SizeInMiB"] / 1024,
                    gpus=sum(gpu["Count"] for gpu in gpus),
                    gpu=gpus[0]["Name"] if gpus else "",
                ),
            )


def _spot_prices(session: Session, region: str) -> dict[str, float]:
    """The median over the zones of the price that holds now."""
    pages = session.client("ec2", region_name=region).get_paginator("describe_spot_price_history")
    now = datetime.datetime.now(datetime.UTC)
    found: dict[str, dict[str, tuple[datetime.datetime, float]]] = {}
    for page in pages.paginate(ProductDescriptions=[_LINUX], StartTime=now):
        for one in page["SpotPriceHistory"]:
            told = (one["Timestamp"], float(one["SpotPrice"]))
            zones = found.setdefault(one["InstanceType"], {})
            zones[one["AvailabilityZone"]] = max(told, zones.get(one["AvailabilityZone"], told))
    return {name: statistics.median(price for _, price in zones.values()) for name, zones in found.items()}
