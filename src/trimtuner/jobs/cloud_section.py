"""The machines that may be rented: from a built-in catalog, a CSV of one's own, or the job file itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import nearest
from trimtuner.jobs.faults import Fault
from trimtuner.jobs.fields import SECTIONS, Field, Section, one_of, shortened
from trimtuner.jobs.tree import MappingNode, ScalarNode
from trimtuner.problem.catalog import (
    BUILT_IN,
    DEFAULT_REGIONS,
    LEAST_AMOUNT,
    MOST_INTERRUPTIONS_PER_HOUR,
    MOST_MEMORY_GIB,
    MOST_OF_A_KIND,
    MOST_PRICE,
    Listing,
    built_in_listings,
    check_vm_name,
    in_region,
    listings_of_file,
    provider_named,
    vms_of,
)
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.vms import MARKETS, VM, Market, Spot

CATALOGS = (BUILT_IN, *DEFAULT_REGIONS)
VM_KEYS = (
    *("vcpus", "memory_gib", "price_per_hour", "gpus", "spot_price_per_hour"),
    "spot_interruptions_per_hour",
)
_VM_EXAMPLE = "a mapping such as {vcpus: 2, memory_gib: 4, price_per_hour: 0.0464}"
_MOST_COUNTS = 1000
_MOST_CLUSTERS = 50_000


@dataclass(frozen=True)
class _Counts:
    """How many VMs may be rented, and the rule for valid pairs of type and count."""

    values: tuple[int, ...] = (1,)
    rule: Field | None = None


def read_cloud(field: Field, folder: Path) -> Cloud | None:
    """The section ``cloud``; nothing where it has faults, which are noted."""
    before = len(field.faults)
    section = field.section(SECTIONS["cloud"], "a mapping such as {catalog: builtin, vm_type: [t2.small, t2.medium]}")
    counts = section.read("vm_count", _counts, _Counts())
    markets = section.read("market", _markets, ("on_demand",))
    spot = section.read("spot", _spot, Spot())
    known = {name: spot.filled_into(vm) for name, vm in _known(section, folder).items()}
    if len(field.faults) > before:
        return None
    types = section.read("vm_type", lambda one: _offered_types(one, known), tuple(known))
    helpers = section.read("helpers", lambda one: _types(one, known), ())
    if len(field.faults) > before:
        return None
    _check_size(field, len(types) * len(counts.values) * len(markets))
    _check_spot(section, markets, {name: known[name] for name in types})
    with (counts.rule or field).blamed():
        rule = None if counts.rule is None else counts.rule.text("a rule such as 'vm_count * vcpus <= 80'")
        return Cloud(known, vm_types=types, vm_count=counts.values, rule=rule, market=markets, helpers=helpers)


def read_price(field: Field) -> float:
    """USD per hour."""
    return float(field.number("a price in USD per hour", above=LEAST_AMOUNT, most=MOST_PRICE))


def _known(section: Section, folder: Path) -> dict[str, VM]:
    if "catalog" not in section and "vms" not in section:
        raise Fault(section.own_line, "cloud has no VM types; write 'catalog: builtin' (or a CSV), or 'vms:'")
    if "vm_type" not in section and section.read("catalog", _is_built_in, default=False):
        raise section.field("catalog").fault("a built-in catalog needs 'vm_type: […]', those to choose from")
    if "region" in section and "catalog" not in section:
        raise section.field("region").fault("it picks rows of a catalog; write 'catalog: aws', or leave it out")
    from_catalog = section.read("catalog", lambda one: _catalog(one, section, folder), {})
    return {**from_catalog, **section.read("vms", _vms, {})}


def _is_built_in(field: Field) -> bool:
    return isinstance(field.node, ScalarNode) and field.node.value in CATALOGS


def _catalog(field: Field, section: Section, folder: Path) -> Mapping[str, VM]:
    name = field.text(f"{', '.join(CATALOGS)} or the path of a CSV")
    listings = _listings(field, name, folder)
    usual = DEFAULT_REGIONS.get(provider_named(name) or "")
    region = section.read("region", lambda one: one.text("the name of a region such as us-east-1"), usual)
    with section.field("region" if "region" in section else "catalog").blamed():
        return vms_of(in_region(listings, region, name))


def _listings(field: Field, name: str, folder: Path) -> tuple[Listing, ...]:
    provider = provider_named(name)
    if provider is not None:
        return built_in_listings(provider)
    if not name.lower().endswith(".csv"):
        raise field.fault(
            f"{shortened(name)} is neither 'builtin' nor the path of a CSV{nearest(name, CATALOGS)}"
            f" (built in: {', '.join(DEFAULT_REGIONS)})"
        )
    if not os.path.isfile(folder / name):  # unlike Path.is_file, also for a name that is too long
        raise field.fault(f"there is no file {shortened(str(folder / name))}; the path is from the job file's folder")
    with field.blamed():
        return listings_of_file(folder / name)


def _spot(field: Field) -> Spot:
    section = field.section(("discount", "interruptions_per_hour"), "a mapping such as {discount: 0.65}")
    discount = section.read("discount", _discount, None)
    return Spot(discount, section.read("interruptions_per_hour", _interruptions, 0.0))


def _discount(field: Field) -> float:
    share = field.number("a share such as 0.65, which is 65 % off")
    with field.blamed():
        return Spot(discount=float(share)).discount or 0.0


def _vms(field: Field) -> dict[str, VM]:
    section = field.named_fields("a mapping of VM types, each {vcpus: …, memory_gib: …, price_per_hour: …}")
    found: dict[str, VM] = {}
    for name, one in section:
        with field.faults.collecting(section.line(name)):
            check_vm_name(name)
            found[name] = _vm(one.section(VM_KEYS, _VM_EXAMPLE))
    return found


def _vm(section: Section) -> VM:
    before = len(section.faults)
    vcpus = section.required("vcpus", _vcpus, "vcpus: 2")
    memory_gib = section.required("memory_gib", _memory_gib, "memory_gib: 4")
    price = section.required("price_per_hour", read_price, "price_per_hour: 0.0464 (USD)")
    gpus = section.read("gpus", _gpus, 0)
    spot = section.read("spot_price_per_hour", read_price, None)
    interruptions = section.read("spot_interruptions_per_hour", _interruptions, 0.0)
    if vcpus is None or memory_gib is None or price is None or len(section.faults) > before:
        return VM(vcpus=1, memory_gib=1.0, price_per_hour=1.0)  # stands in until the faults are told
    return VM(vcpus, memory_gib, price, gpus, spot, interruptions)


def _vcpus(field: Field) -> int:
    return field.whole_number("a whole number", 1, MOST_OF_A_KIND)


def _gpus(field: Field) -> int:
    return field.whole_number("a whole number", 0, MOST_OF_A_KIND)


def _memory_gib(field: Field) -> float:
    return float(field.number("an amount of memory in GiB", above=LEAST_AMOUNT, most=MOST_MEMORY_GIB))


def _interruptions(field: Field) -> float:
    wanted = "a number of interruptions per hour such as 0.05, once in 20 hours"
    number = float(field.number(wanted, most=MOST_INTERRUPTIONS_PER_HOUR))
    if number < 0:
        raise field.wrong(f"{wanted}; it must be from 0")
    return number


def _offered_types(field: Field, known: Mapping[str, VM]) -> tuple[str, ...]:
    names = _types(field, known)
    for name in names:
        if names.count(name) > 1:
            raise field.fault(f"{name!r} is there twice; list each once")
    return names


def _types(field: Field, known: Mapping[str, VM]) -> tuple[str, ...]:
    names: list[str] = []
    for item in field.one_or_more("a list of VM types such as [t2.small, t2.medium]"):
        name = item.text("the name of a VM type")
        if name not in known:
            raise item.fault(f"{shortened(name)} is no known VM type{nearest(name, known)}")
        names.append(name)
    if not names:
        raise field.fault("the list is empty")
    return tuple(names)


def _markets(field: Field) -> tuple[Market, ...]:
    found = tuple(one_of(item, MARKETS) for item in field.one_or_more("a list of on_demand, spot or both"))
    if not found or len(set(found)) < len(found):
        raise field.fault("write on_demand, spot or both, each once")
    return found


def _check_size(field: Field, clusters: int) -> None:
    if clusters > _MOST_CLUSTERS:
        raise field.fault(f"{clusters} triples of VM type, count and market; {_MOST_CLUSTERS} is the most")


def _check_spot(section: Section, markets: tuple[Market, ...], offered: Mapping[str, VM]) -> None:
    if "spot" not in markets:
        return
    for name, vm in offered.items():
        if vm.spot_price_per_hour is None:
            raise section.field("market").fault(
                f"{name} has no spot price (the built-in catalogs have none, as they change by the hour); "
                "write 'spot: {discount: 0.65}', give spot_price_per_hour under 'vms:' or in a CSV, or leave spot out"
            )


def _counts(field: Field) -> _Counts:
    if isinstance(field.node, MappingNode):
        return _counts_with_rule(field)
    return _Counts(_count_list(field))


def _counts_with_rule(field: Field) -> _Counts:
    section = field.section(("min", "max", "values", "rule"), "a mapping")
    rule = section.field("rule") if "rule" in section else None
    if "values" in section:
        for key in ("min", "max"):
            if key in section:
                raise section.field(key).fault("either 'values', or 'min' and 'max'")
        return _Counts(_count_list(section.field("values")), rule)
    least = section.read("min", _count, 1)
    most = section.required("max", _count, "max: 8")
    if most is None:
        return _Counts()
    if not least <= most < least + _MOST_COUNTS:
        raise field.fault(f"from {least} to {most}: min must be at most max, and {_MOST_COUNTS} counts are the most")
    return _Counts(tuple(range(least, most + 1)), rule)


def _count_list(field: Field) -> tuple[int, ...]:
    counts = tuple(_count(item) for item in field.one_or_more("a count, a list of them, or {min: 1, max: 8}"))
    if not counts or len(set(counts)) < len(counts):
        raise field.fault("write at least one count, and each once")
    return counts


def _count(field: Field) -> int:
    return field.whole_number("a count of VMs", 1, 100_000)
