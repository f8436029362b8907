"""The kinds of values that a job file holds, as pieces of its JSON schema; each agrees with the reader of that kind.

Only what JSON Schema had in draft 7 already: some editors know no later draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from trimtuner.jobs.job import Json
from trimtuner.jobs.quantities import BYTES, LONGEST_QUANTITY, MOST_MONEY
from trimtuner.problem.catalog import LEAST_AMOUNT, MOST_PRICE
from trimtuner.problem.expressions import LONGEST_EXPRESSION
from trimtuner.problem.problem import COST, DOLLARS, SECONDS, TIME

Schema: TypeAlias = dict[str, Json]

MOST_ITEMS = 1000  # of a list, unless its reader says otherwise

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_ABOVE_ZERO = r"\+?(?:[0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)(?:[eE][+-]?[0-9]+)?"
_DIGITS_ABOVE_ZERO = "0{0,11}[1-9][0-9]{0,11}"
_NAME = "[A-Za-z_][A-Za-z0-9_]*"


def any_case(word: str) -> str:
    """A pattern for the word in capitals or not; patterns of a schema have no flag for it."""
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else re.escape(c) for c in word)


def either(patterns: Iterable[str]) -> str:
    """A pattern for any of these."""
    return f"(?:{'|'.join(patterns)})"


def braces(name: str) -> str:
    """A pattern for a text whose placeholders have such a name, and whose other braces are doubled."""
    return rf"^(?:[^{{}}]|\{{\{{|\}}\}}|\{{{name}\}})*$"


_SECONDS_UNIT, _DOLLARS_UNIT = (either(map(any_case, units)) for units in (SECONDS, DOLLARS))
_IS = r"\s*[<>]=?\s*"

BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
TEXT: Schema = {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"}
VALUE: Schema = {**TEXT, **SCALAR}
CONDITION: Schema = {**TEXT, "minLength": 1, "maxLength": LONGEST_EXPRESSION}
PRICE: Schema = {"type": "number", "exclusiveMinimum": LEAST_AMOUNT, "maximum": int(MOST_PRICE)}  # USD per hour
WORD: Schema = {**SCALAR, "pattern": braces(_NAME)}
MONEY: Schema = {
    "type": ["number", "string"],
    "exclusiveMinimum": 0,
    "maximum": int(MOST_MONEY),
    "pattern": rf"^\s*{_ABOVE_ZERO}\s*{_DOLLARS_UNIT}?\s*$",
    "maxLength": LONGEST_QUANTITY,
}
DURATION: Schema = {
    "type": "string",
    "pattern": rf"^\s*{_ABOVE_ZERO}\s*{_SECONDS_UNIT}?\s*$",
    "maxLength": LONGEST_QUANTITY,
}
MEMORY: Schema = {
    "type": "string",
    "pattern": rf"^vm$|^\s*(?:[0-9]*[1-9][0-9]*(?:\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)\s*{either(BYTES)}\s*$",
}
SHARE: Schema = {
    "type": ["number", "string"],
    "exclusiveMinimum": 0,
    "maximum": 1,
    "pattern": rf"^\s*{_DIGITS_ABOVE_ZERO}\s*/\s*{_DIGITS_ABOVE_ZERO}\s*$",
}
CONSTRAINT: Schema = {
    "type": "string",
    "pattern": (
        rf"^\s*(?:{COST}{_IS}{_ABOVE_ZERO}\s*{_DOLLARS_UNIT}"
        rf"|{TIME}{_IS}{_ABOVE_ZERO}\s*{_SECONDS_UNIT}"
        rf"|[A-Za-z_]\w*{_IS}{_NUMBER})\s*$"
    ),
}


def key(text: str, kind: Schema, default: Json = None, examples: Sequence[Json] = ()) -> Schema:
    """A key that takes this kind, with what a person reads about it; None is no default."""
    told: Schema = {"description": text, **kind}
    if default is not None:
        told["default"] = default
    return {**told, "examples": [*examples]} if examples else told


def whole_number(least: int, most: int) -> Schema:
    """A whole number within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most}


def number_above(limit: float, most: float | None = None) -> Schema:
    """A number above a limit, up to another."""
    bound: Schema = {} if most is None else {"maximum": tidy(most)}
    return {"type": "number", "exclusiveMinimum": tidy(limit), **bound}


def text_like(pattern: re.Pattern[str]) -> Schema:
    """A text that the pattern matches as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$"}


def one_of(words: Iterable[str]) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": [*words]}


def list_of(kind: Schema, least: int = 0, most: int = MOST_ITEMS) -> Schema:
    """A list of one kind."""
    bound: Schema = {"minItems": least} if least else {}
    return {"type": "array", "items": kind, **bound, "maxItems": most}


def list_of_different(kind: Schema) -> Schema:
    """A list with at least one item, and each once."""
    return {**list_of(kind, least=1), "uniqueItems": True}


def one_or(several: Schema) -> Schema:
    """A list, or the one thing that would be in it."""
    return {"anyOf": [several["items"], several]}


def mapping(keys: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """A mapping with these keys and no others."""
    needs: Schema = {"required": [*required]} if required else {}
    return {"type": "object", "properties": {**keys}, **needs, "additionalProperties": False}


def mapping_of_own(name: Schema, kind: Schema) -> Schema:
    """A mapping whose keys are the user's own."""
    return {"type": "object", "propertyNames": name, "additionalProperties": kind}


def name_other_than(pattern: re.Pattern[str], words: Iterable[str]) -> Schema:
    """A name that is none of these words."""
    return {**text_like(pattern), "not": {"enum": [*words]}}


def where(condition: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    """A rule for values that meet a condition, and one for the others."""
    return {"if": condition, "then": then, **({} if otherwise is None else {"else": otherwise})}


def has(*keys: str) -> Schema:
    """The condition that these keys are written."""
    return {"required": [*keys]}


def only(keys: Iterable[str]) -> Schema:
    """The rule that no other keys are written."""
    return {"propertyNames": {"enum": [*keys]}}


def tidy(number: float) -> int | float:
    """The number, without a point where it needs none."""
    return int(number) if float(number).is_integer() else number
