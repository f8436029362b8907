"""Numbers with units: money, durations, memory, shares of the data; and constraints, which are limits with one."""

from __future__ import annotations

import re

from trimtuner.keys.fields import Field, ScalarNode
from trimtuner.keys.kinds import Kind, Schema, any_case, either, finite_number, number
from trimtuner.problem.problem import COST, DOLLARS, SECONDS, TIME, parse_quantity

_LONGEST_QUANTITY = 60  # characters
_LONGEST_SECONDS = 365 * 86400.0
_MOST_MONEY = 1e9  # USD
_MOST_MEMORY = 2**50  # bytes
_BYTES = {
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
_QUOTIENT = re.compile(r"\s*(?P<over>[0-9]{1,12})\s*/\s*(?P<under>[0-9]{1,12})\s*")
_MEMORY = re.compile(r"\s*(?P<number>[0-9]{1,15}(\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]+)\s*")
_ABOVE_ZERO = r"\+?(?:[0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)(?:[eE][+-]?[0-9]+)?"
_DIGITS_ABOVE_ZERO = "0{0,11}[1-9][0-9]{0,11}"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_IS = r"\s*[<>]=?\s*"
_SECONDS_UNIT, _DOLLARS_UNIT = (either(map(any_case, units)) for units in (SECONDS, DOLLARS))


def _is_number(field: Field) -> bool:
    return isinstance(field.value, int | float) and not isinstance(field.value, bool)


def _money(field: Field) -> float:
    """USD above 0: ``25 USD``, ``50 cents`` or a plain number."""
    wanted = "an amount of money such as 25 USD"
    if _is_number(field):
        return number(wanted, above=0, most=_MOST_MONEY).read(field)
    return _quantity(field, COST, wanted, _MOST_MONEY)


def _duration(field: Field) -> float:
    """Seconds above 0, from a text with its unit such as ``30min``; a bare number could mean anything."""
    if isinstance(field.node, ScalarNode) and _is_number(field):
        shown = field.node.text[:_LONGEST_QUANTITY]
        raise field.fault(f"{shown} has no unit; write {shown}s, {shown}min, or …h")
    return _quantity(field, TIME, "a duration such as 30min", _LONGEST_SECONDS)


def _quantity(field: Field, metric: str, wanted: str, most: float) -> float:
    found = field.text(wanted)
    if len(found) > _LONGEST_QUANTITY:
        raise field.wrong(wanted)
    value = parse_quantity(metric, found, field.where)
    if not 0 < value <= most:
        raise field.wrong(f"{wanted}; it must be above 0 and at most {most:g} {'USD' if metric == COST else 'seconds'}")
    return value


def duration_text(seconds: float) -> str:
    """Seconds in the largest unit that leaves a short number."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.4g}{unit}"
    return f"{seconds:.4g}s"


def memory_text(amount: int) -> str:
    """Bytes in the largest unit that leaves a short number."""
    unit = next((one for one in ("TiB", "GiB", "MiB", "KiB") if amount >= _BYTES[one]), "B")
    return f"{amount / _BYTES[unit]:.4g}{unit}"


def _memory(field: Field) -> int:
    """Bytes, from a text such as ``4GiB``."""
    match = _MEMORY.fullmatch(field.text("an amount of memory such as 4GiB"))
    if match is None:
        raise field.wrong("an amount of memory such as 4GiB, or vm for that of the VM type")
    if match["unit"] not in _BYTES:
        hint = {unit.lower(): f"; did you mean {unit!r}?" for unit in _BYTES}.get(match["unit"].lower(), "")
        raise field.fault(f"unknown unit {match['unit']!r}; memory takes {', '.join(_BYTES)}{hint}")
    amount = int(float(match["number"]) * _BYTES[match["unit"]])
    if not 0 < amount <= _MOST_MEMORY:
        raise field.wrong("an amount of memory above 0 and at most 1024TiB")
    return amount


def _share(field: Field) -> float:
    """A share of the data in (0, 1]: a number, or a quotient such as ``1/60``."""
    wanted = "a share of the data above 0 and at most 1, such as 0.25 or 1/60"
    value = finite_number(field, wanted) if _is_number(field) else _quotient(field, wanted)
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


MONEY = Kind(
    _money,
    {
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "maximum": int(_MOST_MONEY),
        "pattern": rf"^\s*{_ABOVE_ZERO}\s*{_DOLLARS_UNIT}?\s*$",
        "maxLength": _LONGEST_QUANTITY,
    },
)
DURATION = Kind(
    _duration,
    {"type": "string", "pattern": rf"^\s*{_ABOVE_ZERO}\s*{_SECONDS_UNIT}?\s*$", "maxLength": _LONGEST_QUANTITY},
    lambda seconds: duration_text(seconds) if isinstance(seconds, float) else None,
)
_BYTES_PATTERN = rf"^\s*(?:[0-9]*[1-9][0-9]*(?:\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)\s*{either(_BYTES)}\s*$"
MEMORY = Kind(
    _memory,
    {"type": "string", "pattern": _BYTES_PATTERN},
    lambda amount: memory_text(amount) if isinstance(amount, int) else None,
)
SHARE = Kind(
    _share,
    {
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "maximum": 1,
        "pattern": rf"^\s*{_DIGITS_ABOVE_ZERO}\s*/\s*{_DIGITS_ABOVE_ZERO}\s*$",
    },
)
CONSTRAINT: Schema = {
    "type": "string",
    "pattern": (
        rf"^\s*(?:{COST}{_IS}{_ABOVE_ZERO}\s*{_DOLLARS_UNIT}"
        rf"|{TIME}{_IS}{_ABOVE_ZERO}\s*{_SECONDS_UNIT}"
        rf"|[A-Za-z_]\w*{_IS}{_NUMBER})\s*$"
    ),
}
