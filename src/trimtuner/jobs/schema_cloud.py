"""The schema of the machines that may be rented; regions and VM types are those of the built-in catalogs."""

from __future__ import annotations

from trimtuner.jobs.cloud_section import CATALOGS, VM_KEYS
from trimtuner.jobs.job import Json
from trimtuner.jobs.schema_kinds import (
    CONDITION,
    PRICE,
    TEXT,
    Schema,
    any_case,
    has,
    key,
    list_of,
    list_of_different,
    mapping,
    mapping_of_own,
    number_above,
    one_of,
    one_or,
    only,
    text_like,
    where,
    whole_number,
)
from trimtuner.problem.catalog import (
    DEFAULT_REGIONS,
    LEAST_AMOUNT,
    MOST_INTERRUPTIONS_PER_HOUR,
    MOST_MEMORY_GIB,
    MOST_OF_A_KIND,
    VM_NAME,
    built_in_listings,
    provider_named,
)
from trimtuner.problem.vms import MARKETS

_MOST_VMS = 100_000  # of one cluster
_COUNT = whole_number(1, _MOST_VMS)
_INTERRUPTIONS: Schema = {"type": "number", "minimum": 0, "maximum": int(MOST_INTERRUPTIONS_PER_HOUR)}

_VM = {
    "vcpus": key("How many virtual CPUs it has.", whole_number(1, MOST_OF_A_KIND), examples=[2]),
    "memory_gib": key("Its memory in GiB.", number_above(LEAST_AMOUNT, MOST_MEMORY_GIB), examples=[4]),
    "price_per_hour": key("What an hour costs on demand, in USD.", PRICE, examples=[0.0464]),
    "gpus": key("How many GPUs it has.", whole_number(0, MOST_OF_A_KIND), default=0),
    "spot_price_per_hour": key("What an hour costs on spot, in USD.", PRICE, examples=[0.0162]),
    "spot_interruptions_per_hour": key(
        "How often it is taken away on spot: 0.05 is once in 20 hours.", _INTERRUPTIONS, default=0
    ),
}
_VMS = mapping_of_own(
    text_like(VM_NAME),
    mapping({name: _VM[name] for name in VM_KEYS}, required=["vcpus", "memory_gib", "price_per_hour"]),
)

_VM_COUNT: Schema = {
    **mapping(
        {
            "min": key("The fewest.", _COUNT, default=1),
            "max": key("The most; a range holds at most 1000 counts.", _COUNT, examples=[8]),
            "values": key("The counts one by one, instead of `min` and `max`.", one_or(list_of_different(_COUNT))),
            "rule": key(
                "Which choices are allowed: a condition on `vm_count`, `vm_type`, `market`, `vcpus`, `memory_gib`, "
                "`gpus` and `price_per_hour`, the last four those of one machine.",
                CONDITION,
                examples=["vm_count * vcpus in [8, 16, 32]"],
            ),
        }
    ),
    **where(has("values"), only(["values", "rule"]), has("max")),
    **list_of_different(_COUNT),
    **_COUNT,
    "type": ["integer", "array", "object"],
}

_SPOT = mapping(
    {
        "discount": key(
            "How much cheaper spot is than on demand: 0.65 is 65 % off.",
            {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            examples=[0.65],
        ),
        "interruptions_per_hour": key(
            "How often each machine is taken away: 0.05 is once in 20 hours.", _INTERRUPTIONS, default=0
        ),
    }
)


def cloud() -> Schema:
    """The section ``cloud``; it refers to the names of ``built_in_vm_types``."""
    return key(
        "The machines to choose from: `vm_type`, `vm_count` and, where there is a choice, `market` become parameters. "
        "They come from a catalog, from `vms`, or from both.",
        {
            **mapping(_KEYS),
            "anyOf": [has("catalog"), has("vms")],
            "allOf": [
                where(has("region"), has("catalog")),
                where({**_is_built_in(*CATALOGS), **has("catalog")}, has("vm_type")),
                *(_rule_of_provider(provider) for provider in DEFAULT_REGIONS),
            ],
        },
        examples=[
            {
                "catalog": "aws",
                "region": "eu-west-1",
                "vm_type": ["m5.large", "m5.xlarge"],
                "vm_count": {"min": 1, "max": 16, "rule": "vm_count * vcpus <= 32"},
                "market": ["on_demand", "spot"],
                "spot": {"discount": 0.65, "interruptions_per_hour": 0.05},
            },
            {"vms": {"cpu-2": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.0464}}},
        ],
    )


def built_in_vm_types() -> dict[str, Json]:
    """The names of the VM types of each provider, as pieces to refer to."""
    return {
        f"{provider}_vm_type": one_of(sorted({listing.vm_type for listing in built_in_listings(provider)}))
        for provider in DEFAULT_REGIONS
    }


_TYPE_NAME = text_like(VM_NAME)

_KEYS: dict[str, Schema] = {
    "catalog": key(
        "Where machines and prices are looked up: `aws` (or `builtin`, the same), `azure`, `gcp`, or the path of a CSV "
        "from the folder of the job file.",
        {"anyOf": [one_of(CATALOGS), {"type": "string", "pattern": rf"\.{any_case('csv')}$"}]},
        examples=["aws", "prices.csv"],
    ),
    "region": key(
        "Whose prices, for a catalog. Without it "
        f"{', '.join(f'`{region}`' for region in DEFAULT_REGIONS.values())}; of a CSV, all rows.",
        TEXT,
        examples=["eu-west-1", "westeurope", "europe-west4"],
    ),
    "vms": key(
        "Machines of your own, by names of your own; or other prices for machines of the catalog.",
        _VMS,
        examples=[{"cpu-2": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.0464}}],
    ),
    "vm_type": key(
        "The types to choose from, one or a list. A built-in catalog needs it; otherwise all are offered.",
        one_or(list_of_different(_TYPE_NAME)),
        examples=[["m5.large", "m5.xlarge"]],
    ),
    "vm_count": key(
        "How many machines of the type work together: a number, a list, or a range with a rule.",
        _VM_COUNT,
        default=1,
        examples=[4, [1, 2, 4], {"min": 1, "max": 8, "rule": "vm_count * vcpus <= 16"}],
    ),
    "market": key(
        "`on_demand`, `spot` or both. Spot needs a spot price: from `spot`, from `vms` or from a CSV.",
        one_or(list_of_different(one_of(MARKETS))),
        default="on_demand",
        examples=["spot", ["on_demand", "spot"]],
    ),
    "spot": key(
        "The spot market, for machines that do not say it themselves.",
        _SPOT,
        examples=[{"discount": 0.65, "interruptions_per_hour": 0.05}],
    ),
    "helpers": key(
        "Machines that are rented beside the workers for every trial, on demand, and are part of its price; one or a "
        "list. A type may be named more than once.",
        one_or(list_of(_TYPE_NAME, least=1)),
        examples=[["t2.2xlarge"]],
    ),
}


def _rule_of_provider(provider: str) -> Schema:
    """Its regions, and its VM types unless there are others beside them."""
    words = [word for word in CATALOGS if provider_named(word) == provider]
    regions = sorted({listing.quote.region for listing in built_in_listings(provider)})
    known: Schema = {"$ref": f"#/$defs/{provider}_vm_type"}
    types: Schema = {"anyOf": [known, {"type": "array", "items": known}]}
    return where(
        {**_is_built_in(*words), **has("catalog")},
        {
            "properties": {"region": {"enum": [*regions]}},
            **where(has("vms"), {}, {"properties": {"vm_type": types, "helpers": types}}),
        },
    )


def _is_built_in(*words: str) -> Schema:
    return {"properties": {"catalog": {"enum": [*words]}}}
