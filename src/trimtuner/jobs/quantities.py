"""Numbers with units: money, durations, memory, and shares of the data."""

from __future__ import annotations

import re

from trimtuner.jobs.fields import Field
from trimtuner.jobs.tree import ScalarNode
from trimtuner.problem.problem import COST, TIME, parse_quantity

LONGEST_QUANTITY = 60  # characters
_LONGEST_SECONDS = 365 * 86400.0
MOST_MONEY = 1e9  # USD
_MOST_MEMORY = 2**50  # bytes

_QUOTIENT = re.compile(r"\s*(?P<over>[0-9]{1,12})\s*/\s*(?P<under>[0-9]{1,12})\s*")
_MEMORY = re.compile(r"\s*(?P<number>[0-9]{1,15}(\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]+)\s*")
BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


def money(field: Field) -> float:
    """USD above 0: ``25 USD``, ``50 cents`` or a plain number."""
    wanted = "an amount of money such as 25 USD"
    if _is_number(field):
        return float(field.number(wanted, above=0, most=MOST_MONEY))
    return _quantity(field, COST, wanted, MOST_MONEY)


def duration(field: Field) -> float:
    """Seconds above 0, from a text with its unit such as ``30min``; a bare number could mean anything."""
    if _is_number(field):
        raise field.fault(f"{_written(field)} has no unit; write {_written(field)}s, {_written(field)}min, or …h")
    return _quantity(field, TIME, "a duration such as 30min", _LONGEST_SECONDS)


def memory(field: Field) -> int:
    """Bytes, from a text such as ``4GiB``."""
    text = field.text("an amount of memory such as 4GiB")
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise field.wrong("an amount of memory such as 4GiB, or vm for that of the VM type")
    if match["unit"] not in BYTES:
        hint = {unit.lower(): f"; did you mean {unit!r}?" for unit in BYTES}.get(match["unit"].lower(), "")
        raise field.fault(f"unknown unit {match['unit']!r}; memory takes {', '.join(BYTES)}{hint}")
    amount = int(float(match["number"]) * BYTES[match["unit"]])
    if not 0 < amount <= _MOST_MEMORY:
        raise field.wrong("an amount of memory above 0 and at most 1024TiB")
    return amount


def share(field: Field) -> float:
    """A share of the data in (0, 1]: a number, or a quotient such as ``1/60``."""
    wanted = "a share of the data above 0 and at most 1, such as 0.25 or 1/60"
    value = field.number(wanted) if _is_number(field) else _quotient(field, wanted)
    if not 0 < value <= 1:
        raise field.wrong(wanted)
    return float(value)


def _quotient(field: Field, wanted: str) -> float:
    match = _QUOTIENT.fullmatch(field.text(wanted))
    if match is None:
        raise field.wrong(wanted)
    if int(match["under"]) == 0:
        raise field.fault("a quotient over 0")
    return int(match["over"]) / int(match["under"])


def _quantity(field: Field, metric: str, wanted: str, most: float) -> float:
    text = field.text(wanted)
    if len(text) > LONGEST_QUANTITY:
        raise field.wrong(wanted)
    value = parse_quantity(metric, text, field.where)
    if not 0 < value <= most:
        raise field.wrong(f"{wanted}; it must be above 0 and at most {most:g} {'USD' if metric == COST else 'seconds'}")
    return value


def _is_number(field: Field) -> bool:
    node = field.node
    return isinstance(node, ScalarNode) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _written(field: Field) -> str:
    return field.node.text[:LONGEST_QUANTITY] if isinstance(field.node, ScalarNode) else ""
