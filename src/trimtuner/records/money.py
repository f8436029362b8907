"""Money as whole billionths of a dollar, so that sums are exact and in every order the same, and what a ledger sums to.

Floats would not add up: ten times 0.1 is not 1. Decimal text would, but no database adds it. A billionth of a dollar is
less than a millisecond of the cheapest machine, and 64 bits of them reach 9 thousand million dollars.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from sqlalchemy import Connection, case, func, select

from trimtuner.errors import InputError
from trimtuner.records.schema import ATTEMPTS, LEDGER

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


def money_left(budget: float | None, spent: float, reserved: float) -> float | None:
    """What may still be spent or reserved, in USD; None where there is no budget."""
    return None if budget is None else max(budget - spent - reserved, 0.0)


def charged_nanos(connection: Connection, study: int, trial: int) -> int:
    """What a trial's attempts were charged so far."""
    query = select(func.sum(ATTEMPTS.c.charge)).where(ATTEMPTS.c.study == study, ATTEMPTS.c.trial == trial)
    return int(connection.execute(query).scalar() or 0)


@dataclass(frozen=True)
class Sums:
    """The entries of a study up to one change of it, in billionths of a dollar."""

    sequence: int = 0
    spent: int = 0
    reserved: int = 0

    def until(self, connection: Connection, study: int, sequence: int) -> Sums:
        """With the entries of later changes, up to that one."""
        if sequence == self.sequence:
            return self
        kind, nanos = LEDGER.c.kind, LEDGER.c.nanos
        spent = func.sum(case((kind == "charge", nanos), else_=0))
        reserved = func.sum(case((kind == "reserve", nanos), (kind == "release", -nanos), else_=0))
        later = (LEDGER.c.study == study, LEDGER.c.sequence > self.sequence, LEDGER.c.sequence <= sequence)
        added = connection.execute(select(spent, reserved).where(*later)).one()
        return Sums(sequence, self.spent + int(added[0] or 0), self.reserved + int(added[1] or 0))


class Ledger:
    """The sums of one study. Entries are only added, so what was added up once is not added up again."""

    def __init__(self, study: int) -> None:
        self._study = study
        self._known = Sums()  # replaced as a whole, so threads may share it

    def sums(self, connection: Connection, version: int) -> Sums:
        """At a version of the study that is committed: what a transaction has added itself may yet be taken back."""
        known = self._known
        sums = (known if known.sequence <= version else Sums()).until(connection, self._study, version)
        self._known = sums
        return sums
