"""The kinds of values that a job file holds: how each is read, and the piece of JSON schema that says the same.

The schema has only what JSON Schema had in draft 7 already: some editors know no later draft.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from trimtuner.errors import nearest
from trimtuner.keys.fields import Field, ScalarNode, shortened
from trimtuner.problem.expressions import LONGEST_EXPRESSION, Value
from trimtuner.problem.problem import COST, DOLLARS, SECONDS, TIME, parse_quantity

S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=str)

Json: TypeAlias = "str | bool | int | float | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = dict[str, Json]

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


def as_json(value: object) -> Json:
    """A value as a job file writes it; numbers without a point where they need none."""
    if isinstance(value, Mapping):
        return {str(name): as_json(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | bool | int | float) else None


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """What a key takes."""

    read: Callable[[Field], T_co]
    schema: Schema
    written: Callable[[object], Json] = as_json  # how a default is shown


# Pieces of schemas


def any_case(word: str) -> str:
    """A pattern for the word in capitals or not; patterns of a schema have no flag for it."""
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else re.escape(c) for c in word)


def either(patterns: Iterable[str]) -> str:
    """A pattern for any of these."""
    return f"(?:{'|'.join(patterns)})"


def braces(name: str) -> str:
    """A pattern for a text whose placeholders have such a name, and whose other braces are doubled."""
    return rf"^(?:[^{{}}]|\{{\{{|\}}\}}|\{{{name}\}})*$"


def where(condition: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    """A rule for values that meet a condition, and one for the others."""
    return {"if": condition, "then": then, **({} if otherwise is None else {"else": otherwise})}


def has(*keys: str) -> Schema:
    """The condition that these keys are written."""
    return {"required": [*keys]}


def only(keys: Iterable[str]) -> Schema:
    """The rule that no other keys are written."""
    return {"propertyNames": {"enum": [*keys]}}


def like(pattern: re.Pattern[str]) -> Schema:
    """A text that the pattern matches as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$"}


_ABOVE_ZERO = r"\+?(?:[0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)(?:[eE][+-]?[0-9]+)?"
_DIGITS_ABOVE_ZERO = "0{0,11}[1-9][0-9]{0,11}"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_IS = r"\s*[<>]=?\s*"
_SECONDS_UNIT, _DOLLARS_UNIT = (either(map(any_case, units)) for units in (SECONDS, DOLLARS))

ANY_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
TEXT: Schema = {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"}
CONSTRAINT: Schema = {
    "type": "string",
    "pattern": (
        rf"^\s*(?:{COST}{_IS}{_ABOVE_ZERO}\s*{_DOLLARS_UNIT}"
        rf"|{TIME}{_IS}{_ABOVE_ZERO}\s*{_SECONDS_UNIT}"
        rf"|[A-Za-z_]\w*{_IS}{_NUMBER})\s*$"
    ),
}


# Texts and words


def text(wanted: str, schema: Schema = TEXT, check: Callable[[str], object] | None = None) -> Kind[str]:
    """A text on one line; what the check refuses is a fault of it."""

    def read(field: Field) -> str:
        found = field.text(wanted)
        if check is not None:
            with field.blamed():
                check(found)
        return found

    return Kind(read, schema)


def text_like(pattern: re.Pattern[str], wanted: str) -> Kind[str]:
    """A text that the pattern matches as a whole."""

    def read(field: Field) -> str:
        if not pattern.fullmatch(field.text(wanted)):
            raise field.wrong(wanted)
        return field.text(wanted)

    return Kind(read, like(pattern))


def word(wanted: str, schema: Schema = ANY_SCALAR) -> Kind[str]:
    """A single value as its text, number or not."""
    return Kind(lambda field: field.as_written(wanted), schema)


def one_of(words: Iterable[W]) -> Kind[W]:
    """One of these words; a fault names the nearest."""
    known = tuple(words)

    def read(field: Field) -> W:
        found = field.text(f"one of {', '.join(known)}")
        for one in known:
            if one == found:
                return one
        raise field.fault(f"{shortened(found)} is none of {', '.join(known)}{nearest(found, known)}")

    return Kind(read, {"type": "string", "enum": [*known]})


def condition(wanted: str) -> Kind[str]:
    """A rule of the small language of conditions; who knows the names in it parses it."""
    return text(wanted, {**TEXT, "minLength": 1, "maxLength": LONGEST_EXPRESSION})


# Numbers


def finite_number(field: Field, wanted: str) -> int | float:
    """A number as it is written, with a point or without."""
    value = field.node.value if isinstance(field.node, ScalarNode) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise field.wrong(wanted)
    return value


def number(wanted: str, above: float = -math.inf, most: float = math.inf, least: float = -math.inf) -> Kind[float]:
    """A finite number within bounds."""

    def read(field: Field) -> float:
        value = finite_number(field, wanted)
        if not above < value <= most:
            raise field.wrong(f"{wanted}; it must be above {above:g} and at most {most:g}")
        if value < least:
            raise field.wrong(f"{wanted}; it must be from {least:g}")
        return float(value)

    bounds = {"exclusiveMinimum": above, "minimum": least, "maximum": most}
    return Kind(read, {"type": "number", **{name: as_json(one) for name, one in bounds.items() if math.isfinite(one)}})


def whole_number(wanted: str, least: int, most: int) -> Kind[int]:
    """A whole number within bounds."""

    def read(field: Field) -> int:
        value = field.node.value if isinstance(field.node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise field.wrong(f"{wanted} from {least} to {most}")
        return value

    return Kind(read, {"type": "integer", "minimum": least, "maximum": most})


def _boolean(field: Field) -> bool:
    if not isinstance(field.node, ScalarNode) or not isinstance(field.node.value, bool):
        raise field.wrong("true or false")
    return field.node.value


def _is_number(field: Field) -> bool:
    node = field.node
    return isinstance(node, ScalarNode) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


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


BOOLEAN = Kind(_boolean, {"type": "boolean"})
SCALAR: Kind[Value] = Kind(Field.scalar, {**TEXT, **ANY_SCALAR})
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
MEMORY = Kind(_memory, {"type": "string", "pattern": _BYTES_PATTERN})
SHARE = Kind(
    _share,
    {
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "maximum": 1,
        "pattern": rf"^\s*{_DIGITS_ABOVE_ZERO}\s*/\s*{_DIGITS_ABOVE_ZERO}\s*$",
    },
)
PATH = Kind(lambda field: field.folder / Path(field.text("the path of a file")).expanduser(), TEXT)


# Kinds made of others


def list_of(kind: Kind[T], wanted: str, most: int = 1000, empty: str = "", again: str = "") -> Kind[tuple[T, ...]]:
    """A list of one kind; what is said of an empty list, and of an item that is there again, where that is wrong."""

    def read(field: Field) -> tuple[T, ...]:
        items, found = field.items(wanted, most), []
        if empty and not items:
            raise field.fault(empty)
        with field.faults.all_or_none():
            for item in items:
                with field.faults.collecting(item.line):
                    found.append(kind.read(item))
        for position, one in enumerate(found):
            if again and one in found[:position]:
                raise items[position].fault(again.format(one))
        return tuple(found)

    least: Schema = {"minItems": 1} if empty else {}
    once: Schema = {"uniqueItems": True} if again else {}
    return Kind(read, {"type": "array", "items": kind.schema, **least, "maxItems": most, **once})


def one_or_more(kind: Kind[T], wanted: str, empty: str = "", again: str = "") -> Kind[tuple[T, ...]]:
    """A list, or the one thing that would be in it."""
    several = list_of(kind, wanted, empty=empty, again=again)

    def read(field: Field) -> tuple[T, ...]:
        return (kind.read(field),) if isinstance(field.node, ScalarNode) else several.read(field)

    def written(value: object) -> Json:
        return as_json(value[0] if isinstance(value, Sequence) and len(value) == 1 else value or None)

    return Kind(read, {"anyOf": [kind.schema, several.schema]}, written)


def word_or(only_word: Value, meaning: T, kind: Kind[T]) -> Kind[T]:
    """One word with a meaning of its own, or another kind."""

    def read(field: Field) -> T:
        found = field.node.value if isinstance(field.node, ScalarNode) else None
        return meaning if type(found) is type(only_word) and found == only_word else kind.read(field)

    def written(value: object) -> Json:
        return only_word if value == meaning else as_json(value)

    return Kind(read, {"anyOf": [{"const": only_word}, kind.schema]}, written)


def made(kind: Kind[S], make: Callable[[S], T]) -> Kind[T]:
    """What is made of a value that has no fault; what the making refuses is a fault of it."""

    def read(field: Field) -> T:
        with field.faults.all_or_none():
            found = kind.read(field)
        with field.blamed():
            return make(found)

    return Kind(read, kind.schema, kind.written)


def mapping_of(kind: Kind[T], wanted: str, check_name: Callable[[str], object], names: Schema) -> Kind[dict[str, T]]:
    """A mapping whose keys are the user's own."""

    def read(field: Field) -> dict[str, T]:
        section, found = field.mapping(wanted), {}
        with field.faults.all_or_none():
            for name, one in section:
                with field.faults.collecting(section.line_of(name)):
                    check_name(name)
                    found[name] = kind.read(one)
        return found

    names_as: Schema = {"propertyNames": names} if names else {}
    return Kind(read, {"type": "object", **names_as, "additionalProperties": kind.schema})
