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

S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=str)

Json: TypeAlias = "str | bool | int | float | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = dict[str, Json]


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
    """What a key takes: its reader, its piece of the schema, and how a default is written."""

    read: Callable[[Field], T_co]
    schema: Schema
    written: Callable[[object], Json] = as_json


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


ANY_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
TEXT: Schema = {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"}


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
    value = field.value
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
        value = field.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise field.wrong(f"{wanted} from {least} to {most}")
        return value

    return Kind(read, {"type": "integer", "minimum": least, "maximum": most})


def _boolean(field: Field) -> bool:
    if not isinstance(field.value, bool):
        raise field.wrong("true or false")
    return field.value


BOOLEAN = Kind(_boolean, {"type": "boolean"})
SCALAR: Kind[Value] = Kind(Field.scalar, {**TEXT, **ANY_SCALAR})
_SCALAR_OR_NULL: Schema = {**TEXT, "type": ["string", "number", "boolean", "null"]}
VALUE: Kind[Value] = Kind(Field.any_value, {"anyOf": [_SCALAR_OR_NULL, {"type": "array", "items": _SCALAR_OR_NULL}]})
PATH = Kind(lambda field: field.folder / Path(field.text("the path of a file")).expanduser(), TEXT)


# Kinds made of others


def list_of(kind: Kind[T], wanted: str, most: int = 1000, empty: str = "", again: str = "") -> Kind[tuple[T, ...]]:
    """A list of one kind; what is said of an empty list, and of an item that is there again, where that is wrong."""

    def read(field: Field) -> tuple[T, ...]:
        items, found = field.items(wanted), []
        if len(items) > most:
            raise field.fault(f"a list of {len(items)}; {most} is the most")
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


def one_or_more(kind: Kind[T], wanted: str, most: int = 1000, empty: str = "", again: str = "") -> Kind[tuple[T, ...]]:
    """A list, or the one thing that would be in it."""
    several = list_of(kind, wanted, most, empty, again)

    def read(field: Field) -> tuple[T, ...]:
        return (kind.read(field),) if isinstance(field.node, ScalarNode) else several.read(field)

    def written(value: object) -> Json:
        return as_json(value[0] if isinstance(value, Sequence) and len(value) == 1 else value or None)

    return Kind(read, {"anyOf": [kind.schema, several.schema]}, written)


def word_or(only_word: str | bool, meaning: T, kind: Kind[T]) -> Kind[T]:
    """One word with a meaning of its own, or another kind."""

    def read(field: Field) -> T:
        is_word = type(field.value) is type(only_word) and field.value == only_word
        return meaning if is_word else kind.read(field)

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
