"""Prices of AWS: on demand from its price list, spot from the last prices of each zone; both need credentials.

Credentials are found by boto3 as it finds them everywhere; they need ``pricing:GetProducts``,
``ec2:DescribeInstanceTypes`` and ``ec2:DescribeSpotPriceHistory``.
"""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trimtuner.commands.catalog.fetching import (
    JsonObject,
    MachineFacts,
    PriceRequest,
    PricesUnreachable,
    hint,
    no_machines,
)
from trimtuner.errors import InputError
from trimtuner.problem.catalog import Listing

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


def aws_listings(request: PriceRequest) -> list[Listing]:
    """Linux machines of one region, on demand and spot; types without a price or without facts are left out."""
    if request.address is not None:
        raise InputError("--address is not for aws; boto3 takes it from the variable AWS_ENDPOINT_URL")
    try:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise InputError("prices of aws need boto3; install it with: pip install 'trimtuner[aws]'") from None
    try:
        return _listings(Session(), request)
    except ClientError as error:
        told = error.response.get("Error", {})
        raise PricesUnreachable(f"aws refuses: {told.get('Message') or told.get('Code')}{hint()}") from None
    except BotoCoreError as error:
        raise PricesUnreachable(f"aws cannot be asked: {error}{hint()}") from None


def _listings(session: Session, request: PriceRequest) -> list[Listing]:
    prices = dict(_on_demand_prices(session, request.place))
    if not prices:
        raise no_machines("aws", request.place)
    facts, spot = dict(_facts(session, request.place)), _spot_prices(session, request.place)
    quote = request.quote("aws price list and spot price history")
    return [facts[name].listing(name, prices[name], spot.get(name), quote) for name in sorted(prices) if name in facts]


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


def _facts(session: Session, region: str) -> Iterator[tuple[str, MachineFacts]]:
    pages = session.client("ec2", region_name=region).get_paginator("describe_instance_types")
    for page in pages.paginate():
        for one in page["InstanceTypes"]:
            gpus = one.get("GpuInfo", {}).get("Gpus", [])
            vcpus, memory_gib = one["VCpuInfo"]["DefaultVCpus"], one["MemoryInfo"]["SizeInMiB"] / 1024
            count = sum(gpu["Count"] for gpu in gpus)
            yield one["InstanceType"], MachineFacts(vcpus, memory_gib, count, gpus[0]["Name"] if gpus else "")


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
