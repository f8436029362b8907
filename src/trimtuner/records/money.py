"""Money as whole billionths of a dollar, so that sums are exact and in every order the same.

Floats would not add up: ten times 0.1 is not 1. Decimal text would, but no database adds it. A billionth of a dollar is
less than a millisecond of the cheapest machine, and 64 bits of them reach 9 thousand million dollars.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

from trimtuner.errors import InputError

_NANOS_PER_DOLLAR = 10**9
_MOST_DOLLARS = 1e9  # above it, the sum of a few would leave 64 bits


def to_nanos(usd: float, what: str) -> int:
    """The amount in billionths of a dollar, rounded to the nearest as it is written: 0.1 is exactly 100,000,000."""
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not math.isfinite(usd):
        raise InputError(f"{what} is {usd!r}; it must be an amount in USD")
    if not 0 <= usd <= _MOST_DOLLARS:
        raise InputError(f"{what} is {usd!r} USD, which is outside 0 to {_MOST_DOLLARS:g}")
    return int((Decimal(repr(float(usd))) * _NANOS_PER_DOLLAR).to_integral_value(ROUND_HALF_EVEN))


def to_usd(nanos: int) -> float:
    """The amount in USD: the float nearest to it."""
    return nanos / _NANOS_PER_DOLLAR
