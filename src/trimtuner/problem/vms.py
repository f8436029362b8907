"""One virtual machine: what it is, and what an hour of it costs on either market."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from trimtuner.errors import InputError
from trimtuner.problem.values import is_number, is_whole_number

Market: TypeAlias = Literal["on_demand", "spot"]
MARKETS: tuple[Market, ...] = ("on_demand", "spot")


@dataclass(frozen=True)
class Quote:
    """Where a price comes from: empty where that is not known."""

    provider: str = ""
    region: str = ""
    date: str = ""  # ISO 8601: the day on which the price was true
    source: str = ""


@dataclass(frozen=True)
class VM:
    """One type of virtual machine and its prices in USD per hour; 0 where machines are not paid for with money.

    On spot it is taken away ``spot_interruptions_per_hour`` times an hour on average, and what ran there starts again.
    """

    vcpus: int
    memory_gib: float
    price_per_hour: float
    gpus: int = 0
    spot_price_per_hour: float | None = None
    spot_interruptions_per_hour: float = 0.0
    quote: Quote | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _require_positive("vcpus", self.vcpus)
        _require_positive("memory_gib", self.memory_gib)
        if not is_number(self.price_per_hour) or self.price_per_hour < 0:
            raise InputError(f"price_per_hour={self.price_per_hour!r} must be a number from 0; 0 is for free")
        if not is_whole_number(self.gpus) or self.gpus < 0:
            raise InputError(f"gpus={self.gpus!r} must be a whole number from 0")
        if self.spot_price_per_hour is not None:
            _require_positive("spot_price_per_hour", self.spot_price_per_hour)
        _require_rate("spot_interruptions_per_hour", self.spot_interruptions_per_hour)

    def price_on(self, market: Market) -> float:
        """USD per hour on that market."""
        if market == "on_demand":
            return self.price_per_hour
        if self.spot_price_per_hour is None:
            raise InputError("this VM has no spot price; give spot_price_per_hour, or leave 'spot' out of market")
        return self.spot_price_per_hour


@dataclass(frozen=True)
class Spot:
    """The spot market in one sentence: so much cheaper than on demand, and taken away so often.

    It fills in what machines do not say themselves: the discount where there is no spot price, the interruptions where
    their rate is 0.
    """

    discount: float | None = None  # 0.65: spot costs 35 % of on demand
    interruptions_per_hour: float = 0.0  # of each machine

    def __post_init__(self) -> None:
        if self.discount is not None and not (is_number(self.discount) and 0 <= self.discount < 1):
            raise InputError(f"discount={self.discount!r} must be from 0 to below 1; 0.65 is 65 % off")
        _require_rate("interruptions_per_hour", self.interruptions_per_hour)

    def filled_into(self, vm: VM) -> VM:
        """The machine with a spot price and a rate of interruptions."""
        price = vm.spot_price_per_hour
        if price is None and self.discount is not None:
            price = vm.price_per_hour * (1.0 - self.discount)
        rate = vm.spot_interruptions_per_hour or self.interruptions_per_hour
        return replace(vm, spot_price_per_hour=price, spot_interruptions_per_hour=rate)


def _require_positive(name: str, value: float) -> None:
    if not is_number(value) or value <= 0:
        raise InputError(f"{name}={value!r} must be a number above 0")


def _require_rate(name: str, value: float) -> None:
    if not is_number(value) or value < 0:
        raise InputError(f"{name}={value!r} must be a number from 0; 0.05 is once in 20 hours")
