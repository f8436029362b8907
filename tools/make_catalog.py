"""Make the price catalogs that the package ships from the price file of apache-libcloud (Apache-2.0).

What ``looked_up_prices.csv`` beside this file says is newer, and takes the place of what that has.

    python -m pip download --no-deps apache-libcloud==3.9.1
    python tools/make_catalog.py apache_libcloud-3.9.1-py3-none-any.whl

It writes ``src/trimtuner/problem/prices/*.csv`` and prints what it mended and left out. What the files hold, and how
far they are to be trusted, is told in the README beside them.
"""

from __future__ import annotations

import ast
import csv
import datetime
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from trimtuner.commands.catalog.azure import size_named
from trimtuner.commands.catalog.gcp import MACHINE_TYPES, price_of_parts
from trimtuner.problem.catalog import COLUMNS

FOLDER = Path(__file__).parents[1] / "src/trimtuner/problem/prices"
LOOKED_UP = Path(__file__).with_name("looked_up_prices.csv")

AWS_REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1", "ap-southeast-1")
SAME_PRICE_REGIONS = ("us-east-1", "us-east-2", "us-west-2")  # which charge the same for these families
GCP_REGIONS = ("us-central1", "us-east4", "europe-west1", "europe-west4", "asia-northeast1", "asia-southeast1")
AZURE_REGIONS = ("eastus", "westus2", "northeurope", "westeurope", "japaneast", "southeastasia")

# Within these families a machine of twice the memory costs twice as much.
PROPORTIONAL = (
    *("t3", "t3a", "t4g", "m5", "m6i", "m6a", "m6g", "m7i", "m7a", "m7g", "m8g"),
    *("c5", "c6i", "c6a", "c6g", "c7i", "c7a", "c7g", "c8g"),
    *("r5", "r6i", "r6a", "r6g", "r7i", "r7a", "r7g", "r8g"),
)
AS_LISTED = ("t2",)  # complete, and not quite proportional
GPU_OF_FAMILY = {
    "g4dn": "T4",
    "g5": "A10G",
    "g6": "L4",
    "gr6": "L4",
    "g6e": "L40S",
    "p3": "V100",
    "p4d": "A100",
    "p5": "H100",
}
SAME = 0.01  # figures that differ by less than this share are the same price, rounded elsewhere

# The figures of Azure and Google are the same in every release since 3.2.0, whose price file is of this day, although
# the file's own date moved on with those of AWS.
DATE_OF_AZURE_AND_GCP = "2020-08-30"

AZURE_FAMILIES = ("D", "E", "F")
AZURE_COUNTS = (2, 4, 8, 16, 20, 32, 48, 64, 72, 96)
AZURE_SERIES = ("_v3", "s_v3", "_v4", "s_v4", "a_v4", "as_v4", "d_v4", "ds_v4", "s_v2")
AZURE_GPU_SIZES = {
    **{f"nc{vcpus}ast4v3": f"Standard_NC{vcpus}as_T4_v3" for vcpus in (4, 8, 16, 64)},
    **{f"nc{size}v3": f"Standard_NC{size}_v3" for size in ("6s", "12s", "24s", "24rs")},
    "nd40rsv2": "Standard_ND40rs_v2",
}


@dataclass(frozen=True)
class Fact:
    """What a machine is."""

    vcpus: int
    memory_gib: float
    gpus: int = 0
    gpu: str = ""


@dataclass
class Report:
    """What was mended and what left out, to be printed."""

    mended: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def main(wheel: Path) -> None:
    """Write the three files."""
    with zipfile.ZipFile(wheel) as archive:
        prices = json.loads(archive.read("libcloud/data/pricing.json"))
        types = _literal(archive.read("libcloud/compute/constants/ec2_instance_types.py").decode())
    source = f"apache-libcloud {wheel.name.split('-')[1]}"
    date = datetime.datetime.fromtimestamp(prices["updated"], datetime.UTC).date().isoformat()
    report = Report()
    compute = prices["compute"]
    _write("aws", date, source, aws_rows(compute["ec2_linux"], types, report))
    _write("azure", DATE_OF_AZURE_AND_GCP, source, azure_rows(compute["azure_linux"], report))
    _write("gcp", DATE_OF_AZURE_AND_GCP, source, gcp_rows(compute["gce_instances"], report))
    for title, lines in (("mended", report.mended), ("left out", report.left_out)):
        print(f"{title}: {len(lines)}", *lines, sep="\n  ")


def aws_rows(
    prices: Mapping[str, Mapping[str, float]], types: Mapping[str, Mapping[str, object]], report: Report
) -> Iterator[dict[str, object]]:
    """On demand, Linux. The price file has zeros, and prices of dedicated machines in place of shared ones."""
    for family in (*AS_LISTED, *PROPORTIONAL, *GPU_OF_FAMILY):
        facts = _aws_facts(family, types)
        looked_at = (*AWS_REGIONS, *SAME_PRICE_REGIONS)
        listed = {name: {r: prices[name].get(r) for r in looked_at} for name in facts if name in prices}
        if family in PROPORTIONAL:
            trusted = _proportional(listed, facts)
        elif family in GPU_OF_FAMILY:
            trusted = _alike_between_regions(listed)
        else:
            trusted = {(name, r): price for name, by in listed.items() for r, price in by.items() if price}
        for region in AWS_REGIONS:
            for name, fact in facts.items():
                was, price = listed.get(name, {}).get(region), trusted.get((name, region))
                if price is None:
                    report.left_out.append(f"aws {region} {name}: {was}")
                    continue
                if was is None or abs(was - price) > 1e-9:
                    report.mended.append(f"aws {region} {name}: {was} is {price:g}")
                yield _row("aws", region, name, fact, price)


def _aws_facts(family: str, types: Mapping[str, Mapping[str, object]]) -> dict[str, Fact]:
    found = {}
    for name, one in types.items():
        size = name.removeprefix(f"{family}.")
        if size == name or size.startswith("metal"):
            continue
        extra, memory = one["extra"], one["ram"]
        gpus = int(extra.get("gpu", 0))  # type: ignore[attr-defined]
        vcpus = int(extra["vcpu"])  # type: ignore[index]
        found[name] = Fact(vcpus, memory / 1024, gpus, GPU_OF_FAMILY.get(family, ""))  # type: ignore[operator]
    return dict(sorted(found.items(), key=lambda item: (item[1].memory_gib, item[0])))


def _proportional(
    listed: Mapping[str, Mapping[str, float | None]], facts: Mapping[str, Fact]
) -> dict[tuple[str, str], float]:
    """The least price for a GiB that two sizes agree on is the shared machine's; figures off it are replaced."""
    trusted = {}
    for region in AWS_REGIONS:
        unit = _least_agreed(by[region] / facts[name].memory_gib for name, by in listed.items() if by[region])
        for name, by in listed.items():
            if unit is None or by[region] is None:
                continue
            wanted, was = unit * facts[name].memory_gib, by[region] or 0.0
            trusted[name, region] = was if abs(was - wanted) < SAME * wanted else float(f"{wanted:.5g}")
    return trusted


def _alike_between_regions(listed: Mapping[str, Mapping[str, float | None]]) -> dict[tuple[str, str], float]:
    """A region is dearer than the United States by one factor for a whole family; figures off it are replaced.

    A type is trusted where two regions agree on what it costs in the United States, and no other two say less. So a
    family of one type is trusted there alone.
    """
    factors = _factors(listed)
    trusted = {}
    for name, by in listed.items():
        agreed = _least_agreed([price / factors[r] for r, price in by.items() if price and r in factors])
        if agreed is None and len(listed) == 1:
            agreed = min(price for r, price in by.items() if price and r in SAME_PRICE_REGIONS)
        for region, factor in factors.items():
            if agreed is None or by[region] is None:
                continue
            wanted, was = agreed * factor, by[region] or 0.0
            trusted[name, region] = was if abs(was - wanted) < SAME * wanted else float(f"{wanted:.4g}")
    return trusted


def _factors(listed: Mapping[str, Mapping[str, float | None]]) -> dict[str, float]:
    """How much dearer each region is: the least ratio that two types agree on, as dedicated machines only cost more."""
    base = {name: min((by[r] for r in SAME_PRICE_REGIONS if by[r]), default=None) for name, by in listed.items()}
    found = dict.fromkeys(SAME_PRICE_REGIONS, 1.0)
    for region in AWS_REGIONS:
        ratios = [by[region] / base[name] for name, by in listed.items() if by[region] and base[name]]
        factor = _least_agreed(ratios)
        if region not in found and factor is not None:
            found[region] = factor
    return found


def _least_agreed(numbers: Iterable[float]) -> float | None:
    """The least number that another one confirms."""
    ordered = sorted(numbers)
    return next((a for a, b in pairwise(ordered) if b - a < SAME * a), None)


def azure_rows(prices: Mapping[str, Mapping[str, float]], report: Report) -> Iterator[dict[str, object]]:
    """Linux, pay as you go; sizes whose documented names tell what they are."""
    names = {
        f"{family}{count}{series}".lower().replace("_", ""): f"Standard_{family}{count}{series}"
        for family in AZURE_FAMILIES
        for count in AZURE_COUNTS
        for series in AZURE_SERIES
    }
    for region in AZURE_REGIONS:
        for key, name in {**names, **AZURE_GPU_SIZES}.items():
            size, price = size_named(name), prices.get(f"standard{key}", {}).get(region)
            if size is None or price is None:
                continue
            if price <= 0:
                report.left_out.append(f"azure {region} {name}: {price}")
                continue
            yield _row("azure", region, name, Fact(size.vcpus, size.memory_gib, size.gpus, size.gpu), price)


def gcp_rows(prices: Mapping[str, Mapping[str, object]], report: Report) -> Iterator[dict[str, object]]:
    """The sum of the parts; the price file has no GPUs."""
    for region in GCP_REGIONS:
        for name, machine in MACHINE_TYPES.items():
            family = name.split("-")[0]
            if machine.gpus or family not in prices:
                continue
            parts = prices[family]
            vcpu, gib = (parts[part]["on_demand"][region]["price"] for part in ("cpu", "ram"))  # type: ignore[index]
            if min(vcpu, gib) <= 0:
                report.left_out.append(f"gcp {region} {name}: {vcpu}, {gib}")
                continue
            known = {(f"{family} Core", "on_demand"): vcpu, (f"{family} Ram", "on_demand"): gib}
            price = float(f"{price_of_parts(name, known, 'on_demand'):.6g}")
            yield _row("gcp", region, name, Fact(machine.vcpus, machine.memory_gib), price)


def _row(provider: str, region: str, name: str, fact: Fact, price: float) -> dict[str, object]:
    return {
        "provider": provider,
        "region": region,
        "vm_type": name,
        "vcpus": fact.vcpus,
        "memory_gib": f"{fact.memory_gib:g}",
        "gpus": fact.gpus,
        "gpu": fact.gpu,
        "price_per_hour": f"{price:g}",
    }


def _write(provider: str, date: str, source: str, rows: Iterator[dict[str, object]]) -> None:
    path = FOLDER / f"{provider}.csv"
    found = {(row["region"], row["vm_type"]): {**row, "date": date, "source": source} for row in rows}
    found |= {(row["region"], row["vm_type"]): row for row in _looked_up(provider)}
    columns = [column for column in COLUMNS if any(row.get(column) for row in found.values())]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(found.values())
    print(f"{path.name}: {len(path.read_text().splitlines()) - 1} rows, {path.stat().st_size} bytes")


def _looked_up(provider: str) -> list[dict[str, object]]:
    with LOOKED_UP.open(encoding="utf-8", newline="") as file:
        return [{**row} for row in csv.DictReader(file) if row["provider"] == provider]


def _literal(module: str) -> dict[str, dict[str, object]]:
    """The one table of the module, without running it."""
    for statement in ast.parse(module).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Dict):
            found: dict[str, dict[str, object]] = ast.literal_eval(statement.value)
            return found
    raise SystemExit("the wheel has no table of EC2 instance types")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
