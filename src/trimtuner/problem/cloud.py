"""Machines that can be rented, how many, on which market, and what an hour of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.problem.catalog import (
    DEFAULT_REGIONS,
    built_in_catalog,
    in_region,
    listings_of_file,
    provider_named,
    vms_of,
)
from trimtuner.problem.expressions import Expression, Value
from trimtuner.problem.values import is_whole_number
from trimtuner.problem.vms import MARKETS, VM, Market, Spot

OF_WORKERS_TYPE = "vm_type"  # among helpers: one more machine of the type that the workers have


@dataclass(frozen=True)
class Cluster:
    """A choice of machines: so many of one type on one market."""

    vm_type: str
    vm_count: int
    market: Market


class Cloud:
    """VM types × counts × markets, less the pairs that ``rule`` refuses; helpers are part of every price.

    A helper is a VM type, or ``"vm_type"`` for one more of the workers' type. All helpers are rented on demand.

    ``Cloud({"t2.small": VM(...)}, vm_count=range(1, 9))`` with machines of one's own, or
    ``Cloud(catalog="aws", region="eu-west-1", vm_types=["t2.small", "t2.medium"])`` from a built-in catalog (aws,
    azure, gcp), or ``catalog="prices.csv"``. ``spot`` says what spot is like where machines do not say it themselves.
    """

    def __init__(
        self,
        vms: Mapping[str, VM] | None = None,
        *,
        catalog: str | None = None,
        region: str | None = None,
        vm_types: Iterable[str] | None = None,
        vm_count: int | Iterable[int] = 1,
        rule: str | None = None,
        market: Market | Iterable[Market] = "on_demand",
        helpers: Iterable[str] = (),
        spot: Spot | None = None,
    ) -> None:
        known = _with_spot(_known_vms(vms, catalog, region), spot)
        self.vms: dict[str, VM] = _offered_vms(known, vm_types, catalog)
        self.helpers = _checked_names({**known, OF_WORKERS_TYPE: None}, helpers, "helpers")
        self.markets = _checked_markets(market, self.vms)
        counts = _checked_counts(vm_count)
        self.rule = None if rule is None else Expression(rule)
        self.clusters: tuple[Cluster, ...] = tuple(
            Cluster(vm_type, count, one_market)
            for vm_type in self.vms
            for count in counts
            for one_market in self.markets
            if self._is_allowed(vm_type, count, one_market)
        )
        if not self.clusters:
            raise InputError(
                f"the rule {rule!r} is true for no pair of {len(self.vms)} VM types and {len(counts)} counts; "
                "loosen it or widen vm_count"
            )
        self._known = known
        self.is_free = not any(vm.price_per_hour for vm in known.values())  # paid for in hours, if at all
        if not self.is_free and not all(vm.price_per_hour for vm in known.values()):
            free = next(name for name, vm in known.items() if not vm.price_per_hour)
            raise InputError(f"{free!r} is for free and others are not; a trial there would seem to cost nothing")

    def price_per_hour(self, cluster: Cluster) -> float:
        """USD per hour for the workers and their helpers (helpers are always on demand)."""
        worker = self.vms[cluster.vm_type].price_on(cluster.market)
        beside = sum(self._known[name].price_per_hour for name in self.helpers_of(cluster.vm_type))
        return cluster.vm_count * worker + beside

    def helpers_of(self, vm_type: str) -> tuple[str, ...]:
        """The VM types of the helpers of workers that have this type."""
        return tuple(vm_type if name == OF_WORKERS_TYPE else name for name in self.helpers)

    @property
    def rented_types(self) -> tuple[str, ...]:
        """Every VM type that may be rented, for workers or beside them, each once."""
        named = (name for vm_type in self.vms for name in (vm_type, *self.helpers_of(vm_type)))
        return tuple(dict.fromkeys(named))

    def machines_in(self, configuration: Mapping[str, Value]) -> int:
        """How many machines a trial of the configuration has, helpers included."""
        count = configuration.get("vm_count", 1)
        return (count if isinstance(count, int) else 1) + len(self.helpers)

    def interruptions_per_hour(self, cluster: Cluster) -> float:
        """How often one of the workers is taken away, which ends the run of all of them; never on demand."""
        if cluster.market == "on_demand":
            return 0.0
        return cluster.vm_count * self.vms[cluster.vm_type].spot_interruptions_per_hour

    def parameter_values(self, cluster: Cluster) -> dict[str, Value]:
        """What a configuration says about its machines; the market only where there is a choice."""
        values: dict[str, Value] = {"vm_type": cluster.vm_type, "vm_count": cluster.vm_count}
        if len(self.markets) > 1:
            values["market"] = cluster.market
        return values

    def _is_allowed(self, vm_type: str, count: int, market: Market) -> bool:
        if self.rule is None:
            return True
        vm = self.vms[vm_type]
        facts: dict[str, Value] = {
            "vm_type": vm_type,
            "vm_count": count,
            "market": market,
            "vcpus": vm.vcpus,
            "memory_gib": vm.memory_gib,
            "gpus": vm.gpus,
            "price_per_hour": vm.price_on(market),
        }
        self.rule.require_names(frozenset(facts), "the cloud's rule")
        return self.rule.holds(facts)


def _known_vms(vms: Mapping[str, VM] | None, catalog: str | None, region: str | None) -> Mapping[str, VM]:
    if vms is None and catalog is None:
        raise InputError("a Cloud needs VM types: a dict of name to VM, or catalog='aws' with vm_types=[...]")
    if vms is not None and not isinstance(vms, Mapping):
        raise InputError(f"the VM types are a dict of name to tt.VM, not {vms!r}")
    for name, vm in (vms or {}).items():
        if not isinstance(vm, VM):
            raise InputError(f"the VM type {name!r} is {vm!r}; write tt.VM(vcpus=…, memory_gib=…, price_per_hour=…)")
    if catalog is None and region is not None:
        raise InputError(f"region={region!r} needs a catalog to look it up in, such as catalog='aws'")
    return {**({} if catalog is None else _catalog_vms(catalog, region)), **(vms or {})}


def _catalog_vms(catalog: str, region: str | None) -> Mapping[str, VM]:
    if not isinstance(catalog, str):
        raise InputError(f"catalog={catalog!r} must be the name of a catalog or the path of a CSV")
    provider = provider_named(catalog)
    if provider is not None:
        return built_in_catalog(provider, region)
    if not catalog.lower().endswith(".csv"):
        known = ", ".join(map(repr, DEFAULT_REGIONS))
        raise InputError(
            f"catalog={catalog!r} is not known; {known} are built in, or give the path of a CSV"
            f"{nearest(catalog, DEFAULT_REGIONS)}"
        )
    return vms_of(in_region(listings_of_file(Path(catalog)), region, catalog))


def _with_spot(vms: Mapping[str, VM], spot: Spot | None) -> Mapping[str, VM]:
    if spot is None:
        return vms
    if not isinstance(spot, Spot):
        raise InputError(f"spot={spot!r} must be tt.Spot(discount=…, interruptions_per_hour=…)")
    return {name: spot.filled_into(vm) for name, vm in vms.items()}


def _offered_vms(known: Mapping[str, VM], vm_types: Iterable[str] | None, catalog: str | None) -> dict[str, VM]:
    if vm_types is None and catalog is not None and provider_named(catalog) is not None:
        raise InputError(f"catalog={catalog!r} needs vm_types=[...], such as {sorted(known)[:3]}")
    offered = _checked_names(known, known if vm_types is None else vm_types, "vm_types")
    if not offered:
        raise InputError("a Cloud needs at least one VM type")
    _refuse_repeats(offered, "vm_types")
    return {name: known[name] for name in offered}


def _checked_names(known: Mapping[str, VM | None], names: Iterable[str], where: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InputError(f"{where}={names!r} is one text; write a list: {where}=[{names!r}]")
    if not isinstance(names, Iterable):
        raise InputError(f"{where}={names!r} must be a list of VM types")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"{where} names {name!r}, which is no known VM type{nearest(str(name), known)}")
    return listed


def _refuse_repeats(listed: tuple[str | int, ...], where: str) -> None:
    for value in listed:
        if listed.count(value) > 1:
            raise InputError(f"{where} has {value!r} twice; list each once")


def _checked_markets(market: Market | Iterable[Market], vms: Mapping[str, VM]) -> tuple[Market, ...]:
    if not isinstance(market, Iterable):
        raise InputError(f"market={market!r} must be 'on_demand', 'spot' or both in a list")
    listed: tuple[Market, ...] = (market,) if isinstance(market, str) else tuple(market)
    for name in listed:
        if name not in MARKETS:
            raise InputError(f"market {name!r} is neither 'on_demand' nor 'spot'{nearest(str(name), MARKETS)}")
    if not listed:
        raise InputError("market is empty; write 'on_demand', 'spot' or both in a list")
    _refuse_repeats(listed, "market")
    for vm_type, vm in vms.items():
        if "spot" in listed and vm.spot_price_per_hour is None:
            raise InputError(
                f"market has 'spot', but {vm_type!r} has no spot_price_per_hour; give it in tt.VM(…), "
                "or for all with spot=tt.Spot(discount=…)"
            )
    return listed


def _checked_counts(vm_count: int | Iterable[int]) -> tuple[int, ...]:
    counts = tuple(vm_count) if isinstance(vm_count, Iterable) else (vm_count,)
    if not counts:
        raise InputError("vm_count is empty; it lists how many VMs may be rented, such as range(1, 9)")
    for count in counts:
        if not is_whole_number(count) or count < 1:
            raise InputError(f"vm_count has {count!r}; counts are whole numbers from 1")
    plain = tuple(int(count) for count in counts)
    _refuse_repeats(plain, "vm_count")
    return plain
