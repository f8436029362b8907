"""Machines that can be rented, how many, on which market, and what an hour of them costs."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from numbers import Integral, Real
from typing import Literal, TypeAlias

from trimtuner.errors import InputError, nearest
from trimtuner.problem.expressions import Expression, Value

Market: TypeAlias = Literal["on_demand", "spot"]
MARKETS: tuple[Market, ...] = ("on_demand", "spot")

# Where the built-in prices come from: facts from the price file of apache-libcloud 3.9 (Apache-2.0), its date below.
# Four of its m5 and c5 figures are zero or not on demand; there the family's own price per vCPU stands instead.
CATALOG_DATE = "2025-03-02"
CATALOG_REGION = "us-east-1"


@dataclass(frozen=True)
class VM:
    """One type of virtual machine and its prices in USD per hour."""

    vcpus: int
    memory_gib: float
    price_per_hour: float
    gpus: int = 0
    spot_price_per_hour: float | None = None

    def __post_init__(self) -> None:
        _require_positive("vcpus", self.vcpus)
        _require_positive("memory_gib", self.memory_gib)
        _require_positive("price_per_hour", self.price_per_hour)
        if isinstance(self.gpus, bool) or not isinstance(self.gpus, Integral) or self.gpus < 0:
            raise InputError(f"gpus={self.gpus!r} must be a whole number from 0")
        if self.spot_price_per_hour is not None:
            _require_positive("spot_price_per_hour", self.spot_price_per_hour)

    def price_on(self, market: Market) -> float:
        """USD per hour on that market."""
        if market == "on_demand":
            return self.price_per_hour
        if self.spot_price_per_hour is None:
            raise InputError("this VM has no spot price; give spot_price_per_hour, or leave 'spot' out of market")
        return self.spot_price_per_hour


@dataclass(frozen=True)
class Cluster:
    """A choice of machines: so many of one type on one market."""

    vm_type: str
    vm_count: int
    market: Market


class Cloud:
    """VM types × counts × markets, less the pairs that ``rule`` refuses; helpers are part of every price.

    ``Cloud({"t2.small": VM(...)}, vm_count=range(1, 9))`` with machines of one's own, or
    ``Cloud(catalog="aws", vm_types=["t2.small", "t2.medium"])`` from the built-in catalogue.
    """

    def __init__(
        self,
        vms: Mapping[str, VM] | None = None,
        *,
        catalog: str | None = None,
        vm_types: Iterable[str] | None = None,
        vm_count: int | Iterable[int] = 1,
        rule: str | None = None,
        market: Market | Iterable[Market] = "on_demand",
        helpers: Iterable[str] = (),
    ) -> None:
        known = _known_vms(vms, catalog)
        self.vms: dict[str, VM] = _offered_vms(known, vm_types, catalog)
        self.helpers = _checked_names(known, helpers, "helpers")
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
        self._helper_price = sum(known[name].price_per_hour for name in self.helpers)

    def price_per_hour(self, cluster: Cluster) -> float:
        """USD per hour for the workers and their helpers (helpers are always on demand)."""
        worker = self.vms[cluster.vm_type].price_on(cluster.market)
        return cluster.vm_count * worker + self._helper_price

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


@cache
def built_in_catalog() -> Mapping[str, VM]:
    """A few AWS families, on demand, in one region; see CATALOG_DATE."""
    text = resources.files("trimtuner.problem").joinpath("catalog_aws.csv").read_text(encoding="utf-8")
    return {
        row["vm_type"]: VM(
            vcpus=int(row["vcpus"]),
            memory_gib=float(row["memory_gib"]),
            price_per_hour=float(row["price_per_hour"]),
            gpus=int(row["gpus"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


def _known_vms(vms: Mapping[str, VM] | None, catalog: str | None) -> Mapping[str, VM]:
    if catalog not in (None, "aws", "builtin"):
        raise InputError(f"catalog={catalog!r} is not known; 'aws' is built in (prices of {CATALOG_DATE})")
    if vms is None and catalog is None:
        raise InputError("a Cloud needs VM types: a dict of name to VM, or catalog='aws' with vm_types=[...]")
    if vms is not None and not isinstance(vms, Mapping):
        raise InputError(f"the VM types are a dict of name to tt.VM, not {vms!r}")
    for name, vm in (vms or {}).items():
        if not isinstance(vm, VM):
            raise InputError(f"the VM type {name!r} is {vm!r}; write tt.VM(vcpus=…, memory_gib=…, price_per_hour=…)")
    return {**(built_in_catalog() if catalog else {}), **(vms or {})}


def _offered_vms(known: Mapping[str, VM], vm_types: Iterable[str] | None, catalog: str | None) -> dict[str, VM]:
    if vm_types is None and catalog is not None:
        raise InputError(f"catalog={catalog!r} needs vm_types=[...], such as {sorted(known)[:3]}")
    offered = _checked_names(known, known if vm_types is None else vm_types, "vm_types")
    if not offered:
        raise InputError("a Cloud needs at least one VM type")
    _refuse_repeats(offered, "vm_types")
    return {name: known[name] for name in offered}


def _checked_names(known: Mapping[str, VM], names: Iterable[str], where: str) -> tuple[str, ...]:
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
            raise InputError(f"market has 'spot', but {vm_type!r} has no spot_price_per_hour; give it in tt.VM(…)")
    return listed


def _checked_counts(vm_count: int | Iterable[int]) -> tuple[int, ...]:
    counts = tuple(vm_count) if isinstance(vm_count, Iterable) else (vm_count,)
    if not counts:
        raise InputError("vm_count is empty; it lists how many VMs may be rented, such as range(1, 9)")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise InputError(f"vm_count has {count!r}; counts are whole numbers from 1")
    plain = tuple(int(count) for count in counts)
    _refuse_repeats(plain, "vm_count")
    return plain


def _require_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise InputError(f"{name}={value!r} must be a number above 0")
