"""The machines that may be rented: from a built-in catalog, a CSV of one's own, or the job file itself."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from trimtuner.errors import nearest
from trimtuner.keys import kinds
from trimtuner.keys.declared import key, keys_of, optional, read_keys, required, schema_of, section
from trimtuner.keys.faults import Fault
from trimtuner.keys.fields import Field, MappingNode, shortened
from trimtuner.keys.kinds import Json, Kind, Schema
from trimtuner.problem.catalog import (
    BUILT_IN,
    DEFAULT_REGIONS,
    LEAST_AMOUNT,
    MOST_INTERRUPTIONS_PER_HOUR,
    MOST_MEMORY_GIB,
    MOST_OF_A_KIND,
    MOST_PRICE,
    VM_NAME,
    Listing,
    built_in_listings,
    check_vm_name,
    in_region,
    listings_of_file,
    provider_named,
    vms_of,
)
from trimtuner.problem.cloud import OF_WORKERS_TYPE, Cloud
from trimtuner.problem.vms import MARKETS, VM, Market, Spot

PRICE = kinds.number("a price in USD per hour", above=LEAST_AMOUNT, most=MOST_PRICE)

_OWN_PRICE = Kind(
    lambda field: 0.0 if field.value == 0 and not isinstance(field.value, bool) else PRICE.read(field),
    {"anyOf": [{"const": 0}, PRICE.schema]},
)
_CATALOGS = (BUILT_IN, *DEFAULT_REGIONS)
_MOST_COUNTS = 1000
_MOST_CLUSTERS = 50_000
_INTERRUPTIONS = kinds.number(
    "a number of interruptions per hour such as 0.05, once in 20 hours", least=0, most=MOST_INTERRUPTIONS_PER_HOUR
)


# Machines of one's own, and the spot market


@dataclass(frozen=True)
class VmKeys:
    """A machine of one's own, as it is written."""

    vcpus: int = required(
        kinds.whole_number("a whole number", 1, MOST_OF_A_KIND),
        "How many virtual CPUs it has.",
        write="vcpus: 2",
        examples=[2],
    )
    memory_gib: float = required(
        kinds.number("an amount of memory in GiB", above=LEAST_AMOUNT, most=MOST_MEMORY_GIB),
        "Its memory in GiB.",
        write="memory_gib: 4",
        examples=[4],
    )
    price_per_hour: float = required(
        _OWN_PRICE,
        "What an hour costs on demand, in USD; 0 for machines that are not paid for with money, as on many clusters "
        "(then for all of them, and `budget: {time: …}` is a hard cap on their hours).",
        write="price_per_hour: 0.0464 (USD)",
        examples=[0.0464],
    )
    gpus: int = key(kinds.whole_number("a whole number", 0, MOST_OF_A_KIND), "How many GPUs it has.", default=0)
    spot_price_per_hour: float | None = optional(PRICE, "What an hour costs on spot, in USD.", examples=[0.0162])
    spot_interruptions_per_hour: float = key(
        _INTERRUPTIONS, "How often it is taken away on spot: 0.05 is once in 20 hours.", default=0.0
    )


_VM = kinds.made(
    section(VmKeys, "a mapping such as {vcpus: 2, memory_gib: 4, price_per_hour: 0.0464}"),
    lambda found: VM(**dataclasses.asdict(found)),
)
_VMS = kinds.mapping_of(
    _VM, "a mapping of VM types, each {vcpus: …, memory_gib: …, price_per_hour: …}", check_vm_name, kinds.like(VM_NAME)
)


_DISCOUNT = kinds.made(
    kinds.number("a share such as 0.65, which is 65 % off"), lambda share: Spot(discount=share).discount
)


@dataclass(frozen=True)
class SpotKeys:
    """The spot market, as it is written."""

    discount: float | None = optional(
        Kind(_DISCOUNT.read, {**_DISCOUNT.schema, "minimum": 0, "exclusiveMaximum": 1}),
        "How much cheaper spot is than on demand: 0.65 is 65 % off.",
        examples=[0.65],
    )
    interruptions_per_hour: float = key(
        _INTERRUPTIONS, "How often each machine is taken away: 0.05 is once in 20 hours.", default=0.0
    )


# How many of them


_COUNT = kinds.whole_number("a count of VMs", 1, 100_000)
_COUNTS = kinds.one_or_more(
    _COUNT,
    "a count, a list of them, or {min: 1, max: 8}",
    empty="write at least one count, and each once",
    again="write at least one count, and each once",
)


@dataclass(frozen=True)
class CountKeys:
    """How many VMs may be rented, with the rule for valid pairs of type and count."""

    min: int = key(_COUNT, "The fewest.", default=1)
    max: int | None = optional(_COUNT, "The most; a range holds at most 1000 counts.", examples=[8])
    values: tuple[int, ...] = key(_COUNTS, "The counts one by one, instead of `min` and `max`.", default=())
    rule: str | None = optional(
        kinds.condition("a rule such as 'vm_count * vcpus <= 80'"),
        "Which choices are allowed: a condition on `vm_count`, `vm_type`, `market`, `vcpus`, `memory_gib`, `gpus` and "
        "`price_per_hour`, the last four those of one machine.",
        examples=["vm_count * vcpus in [8, 16, 32]"],
    )


_COUNT_KEYS = section(
    CountKeys, "a mapping", kinds.where(kinds.has("values"), kinds.only(["values", "rule"]), kinds.has("max"))
)


def _counts(field: Field) -> CountKeys:
    """With the counts one by one, however they are written."""
    if not isinstance(field.node, MappingNode):
        return CountKeys(values=_COUNTS.read(field))
    with field.faults.all_or_none():
        found = _COUNT_KEYS.read(field)
    if found.values:
        for bound in ("min", "max"):
            if bound in field:
                raise field.field(bound).fault("either 'values', or 'min' and 'max'")
        return found
    if found.max is None:
        raise Fault(field.line, f"{field.where} has no 'max'; write max: 8")
    least, most = found.min, found.max
    if not least <= most < least + _MOST_COUNTS:
        raise field.fault(f"from {least} to {most}: min must be at most max, and {_MOST_COUNTS} counts are the most")
    return dataclasses.replace(found, values=tuple(range(least, most + 1)))


_COUNT_FORMS: Schema = {
    **_COUNT_KEYS.schema,
    **kinds.list_of(_COUNT, "", empty="no", again="no").schema,
    **_COUNT.schema,
    "type": ["integer", "array", "object"],
}


# The section


_TYPE = kinds.text("the name of a VM type", kinds.like(VM_NAME))
_TYPES = "a list of VM types such as [t2.small, t2.medium]"
_CATALOG: Schema = {
    "anyOf": [kinds.one_of(_CATALOGS).schema, {"type": "string", "pattern": rf"\.{kinds.any_case('csv')}$"}]
}


@dataclass(frozen=True)
class CloudKeys:
    """The section ``cloud``, as it is written."""

    catalog: str | None = optional(
        kinds.text(f"{', '.join(_CATALOGS)} or the path of a CSV", _CATALOG),
        "Where machines and prices are looked up: `aws` (or `builtin`, the same), `azure`, `gcp`, or the path of a CSV "
        "from the folder of the job file.",
        examples=["aws", "prices.csv"],
    )
    region: str | None = optional(
        kinds.text("the name of a region such as us-east-1"),
        "Whose prices, for a catalog. Without it "
        f"{', '.join(f'`{region}`' for region in DEFAULT_REGIONS.values())}; of a CSV, all rows.",
        examples=["eu-west-1", "westeurope", "europe-west4"],
        needs=("catalog", "it picks rows of a catalog; write 'catalog: aws', or leave it out"),
    )
    vms: Mapping[str, VM] = key(
        Kind(_VMS.read, _VMS.schema, lambda _: None),
        "Machines of your own, by names of your own; or other prices for machines of the catalog.",
        default={},
        examples=[{"cpu-2": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.0464}}],
    )
    vm_type: tuple[str, ...] | None = optional(
        kinds.one_or_more(_TYPE, _TYPES, empty="the list is empty", again="{!r} is there twice; list each once"),
        "The types to choose from, one or a list. A built-in catalog needs it; otherwise all are offered.",
        examples=[["m5.large", "m5.xlarge"]],
    )
    vm_count: CountKeys = key(
        Kind(_counts, _COUNT_FORMS, lambda _: 1),
        "How many machines of the type work together: a number, a list, or a range with a rule.",
        default=CountKeys(values=(1,)),
        examples=[4, [1, 2, 4], {"min": 1, "max": 8, "rule": "vm_count * vcpus <= 16"}],
    )
    market: tuple[Market, ...] = key(
        kinds.one_or_more(
            kinds.one_of(MARKETS),
            "a list of on_demand, spot or both",
            empty="write on_demand, spot or both, each once",
            again="write on_demand, spot or both, each once",
        ),
        "`on_demand`, `spot` or both. Spot needs a spot price: from `spot`, from `vms` or from a CSV.",
        default=("on_demand",),
        examples=["spot", ["on_demand", "spot"]],
    )
    spot: Spot = key(
        kinds.made(
            section(SpotKeys, "a mapping such as {discount: 0.65}"),
            lambda found: Spot(found.discount, found.interruptions_per_hour),
        ),
        "The spot market, for machines that do not say it themselves.",
        default=Spot(),
        examples=[{"discount": 0.65, "interruptions_per_hour": 0.05}],
    )
    helpers: tuple[str, ...] = key(
        kinds.one_or_more(_TYPE, _TYPES, empty="the list is empty"),
        "Machines that are rented beside the workers for every trial, on demand, and are part of its price; one or a "
        "list. A type may be named more than once; `vm_type` is one more of the type that the workers have.",
        default=(),
        examples=[["t2.2xlarge"], ["vm_type"]],
    )


def _cloud(field: Field) -> Cloud:
    with field.faults.all_or_none():
        section = field.section(
            tuple(keys_of(CloudKeys)), "a mapping such as {catalog: builtin, vm_type: [t2.small, t2.medium]}"
        )
        found = read_keys(section, CloudKeys)
        _check_sources(section, found)
    known = {name: found.spot.filled_into(vm) for name, vm in {**_of_catalog(section, found), **found.vms}.items()}
    with field.faults.all_or_none():
        _check_known(section, "vm_type", known)
        _check_known(section, "helpers", (*known, OF_WORKERS_TYPE))
    types = tuple(known) if found.vm_type is None else found.vm_type
    _check_size(field, len(types) * len(found.vm_count.values) * len(found.market))
    _check_spot(section, found.market, {name: known[name] for name in types})
    counts = found.vm_count
    blamed = field if counts.rule is None else section.field("vm_count").field("rule")
    with blamed.blamed():
        return Cloud(
            known, vm_types=types, vm_count=counts.values, rule=counts.rule, market=found.market, helpers=found.helpers
        )


def _check_sources(section: Field, found: CloudKeys) -> None:
    if "catalog" not in section and "vms" not in section:
        section.faults.add(section.line, "cloud has no VM types; write 'catalog: builtin' (or a CSV), or 'vms:'")
    if "vm_type" not in section and found.catalog in _CATALOGS:
        raise section.field("catalog").fault("a built-in catalog needs 'vm_type: […]', those to choose from")


def _of_catalog(section: Field, found: CloudKeys) -> Mapping[str, VM]:
    if found.catalog is None:
        return {}
    listings = _listings(section.field("catalog"), found.catalog)
    usual = DEFAULT_REGIONS.get(provider_named(found.catalog) or "")
    region = usual if found.region is None else found.region
    with section.field("region" if "region" in section else "catalog").blamed():
        return vms_of(in_region(listings, region, found.catalog))


def _listings(field: Field, name: str) -> tuple[Listing, ...]:
    provider = provider_named(name)
    if provider is not None:
        return built_in_listings(provider)
    if not name.lower().endswith(".csv"):
        raise field.fault(
            f"{shortened(name)} is neither 'builtin' nor the path of a CSV{nearest(name, _CATALOGS)}"
            f" (built in: {', '.join(DEFAULT_REGIONS)})"
        )
    path = field.folder / name
    if not os.path.isfile(path):  # unlike Path.is_file, also for a name that is too long
        raise field.fault(f"there is no file {shortened(str(path))}; the path is from the job file's folder")
    with field.blamed():
        return listings_of_file(path)


def _check_known(section: Field, key: str, known: Collection[str]) -> None:
    for item in section.field(key).one_or_more(_TYPES) if key in section else ():
        name = item.text("the name of a VM type")
        if name not in known:
            item.note(f"{shortened(name)} is no known VM type{nearest(name, known)}")


def _check_size(field: Field, clusters: int) -> None:
    if clusters > _MOST_CLUSTERS:
        raise field.fault(f"{clusters} triples of VM type, count and market; {_MOST_CLUSTERS} is the most")


def _check_spot(section: Field, markets: tuple[Market, ...], offered: Mapping[str, VM]) -> None:
    if "spot" not in markets:
        return
    for name, vm in offered.items():
        if vm.spot_price_per_hour is None:
            raise section.field("market").fault(
                f"{name} has no spot price (the built-in catalogs have none, as they change by the hour); "
                "write 'spot: {discount: 0.65}', give spot_price_per_hour under 'vms:' or in a CSV, or leave spot out"
            )


def _built_in(*words: str) -> Schema:
    return {"properties": {"catalog": {"enum": [*words]}}, **kinds.has("catalog")}


def _rule_of_provider(provider: str) -> Schema:
    """Its regions, and its VM types unless there are others beside them."""
    words = [word for word in _CATALOGS if provider_named(word) == provider]
    regions = sorted({listing.quote.region for listing in built_in_listings(provider)})
    known: Schema = {"$ref": f"#/$defs/{provider}_vm_type"}
    helper: Schema = {"anyOf": [known, {"const": OF_WORKERS_TYPE}]}
    types, helpers = _one_or_more(known), _one_or_more(helper)
    return kinds.where(
        _built_in(*words),
        {
            "properties": {"region": {"enum": [*regions]}},
            **kinds.where(kinds.has("vms"), {}, {"properties": {"vm_type": types, "helpers": helpers}}),
        },
    )


def _one_or_more(known: Schema) -> Schema:
    return {"anyOf": [known, {"type": "array", "items": known}]}


def rules_of_catalogs() -> Schema:
    """What the built-in catalogs know; reading them takes a while, and only the schema asks for it."""
    return {
        "allOf": [kinds.where(_built_in(*_CATALOGS), kinds.has("vm_type")), *map(_rule_of_provider, DEFAULT_REGIONS)]
    }


def built_in_vm_types() -> dict[str, Json]:
    """The names of the VM types of each provider, as pieces to refer to."""
    return {
        f"{provider}_vm_type": kinds.one_of(sorted({listing.vm_type for listing in built_in_listings(provider)})).schema
        for provider in DEFAULT_REGIONS
    }


CLOUD = Kind(_cloud, schema_of(keys_of(CloudKeys), {"anyOf": [kinds.has("catalog"), kinds.has("vms")]}))
