"""Sections declared as classes: each key beside the value that it becomes, with its kind, default and meaning.

    @dataclass(frozen=True)
    class Budget:
        money: float | None = key(MONEY, "A hard cap in USD.", default=None, examples=["25 USD"])

The reader, the schema and the reference page follow from that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import TypeVar

from trimtuner.errors import InputError
from trimtuner.keys.faults import Fault
from trimtuner.keys.fields import Field
from trimtuner.keys.kinds import Json, Kind, Schema, has, where

T = TypeVar("T")
D = TypeVar("D")

_METADATA = "key"  # under which a field of a class holds its key


@dataclass(frozen=True)
class DeclaredKey:
    """A key of a section: how it is read, and what is said of it."""

    name: str  # in the job file, where it is not that of the field
    read: Callable[[Field], object]
    schema: Schema  # with what it means, its default and examples
    write: str  # what to write where it must be there and is not; empty: it may be left out
    needs: tuple[str, str] | None  # the key that must be beside it, and what is said where it is not


def key(
    kind: Kind[T],
    meaning: str,
    *,
    default: D,
    examples: Sequence[Json] = (),
    name: str = "",
    write: str = "",
    needs: tuple[str, str] | None = None,
) -> T | D:
    """A field of a section's class that is a key of the job file; the default stands also where a faulty one is."""
    shown = kind.written(default)
    told = _told(kind, meaning, examples) | ({} if shown is None else {"default": shown})
    declared = {_METADATA: DeclaredKey(name, kind.read, told, write, needs)}
    if isinstance(default, Mapping):
        return dataclasses.field(default_factory=lambda: default, metadata=declared)
    return dataclasses.field(default=default, metadata=declared)


def optional(
    kind: Kind[T], meaning: str, *, examples: Sequence[Json] = (), write: str = "", needs: tuple[str, str] | None = None
) -> T | None:
    """A key that may be left out, and is None then."""
    return key(kind, meaning, default=None, examples=examples, write=write, needs=needs)


def required(kind: Kind[T], meaning: str, *, write: str, examples: Sequence[Json] = ()) -> T:
    """A key without which there is no section; ``write`` is what to write where it is missing."""
    declared: T = dataclasses.field(
        metadata={_METADATA: DeclaredKey("", kind.read, _told(kind, meaning, examples), write, needs=None)}
    )
    return declared


def keys_of(declared: type[object]) -> dict[str, DeclaredKey]:
    """The keys that a class declares, by their names in the job file."""
    return {name: one for _, name, one in _declared(declared)}


def section(declared: type[T], wanted: str, rules: Schema | None = None, empty: str = "") -> Kind[T]:
    """A mapping with the keys of a class and no others; what is said of an empty one, where that is wrong."""
    keys = keys_of(declared)

    def read(field: Field) -> T:
        found = field.section(tuple(keys), wanted)
        if empty and not found.keys:
            raise field.fault(empty)
        return read_keys(found, declared)

    least: Schema = {"minProperties": 1} if empty else {}
    return Kind(read, {**schema_of(keys, rules or {}), **least}, lambda _: None)


def schema_of(keys: Mapping[str, DeclaredKey], rules: Schema) -> Schema:
    """The schema of a mapping with these keys and no others, and with rules for those that depend on each other."""
    needed = [name for name, one in keys.items() if one.write]
    beside: list[Json] = [where(has(name), has(one.needs[0])) for name, one in keys.items() if one.needs is not None]
    ruled = rules.get("allOf", [])
    all_of = [*beside, *(ruled if isinstance(ruled, list) else [])]
    return {
        "type": "object",
        "properties": {name: one.schema for name, one in keys.items()},
        **({"required": [*needed]} if needed else {}),
        "additionalProperties": False,
        **rules,
        **({"allOf": all_of} if all_of else {}),
    }


def read_keys(found: Field, declared: type[T]) -> T:
    """What a class declares, read from a section. Faults are noted, and the first raised where a value must be."""
    values: dict[str, object] = {}
    lacking: Fault | None = None
    for field, name, one in _declared(declared):
        try:
            if name in found:
                values[field.name] = one.read(found.field(name))
            elif one.write:
                raise Fault(found.line, f"{found.where} has no {name!r}; write {one.write}")
            if name in found and one.needs is not None and one.needs[0] not in found:
                raise found.field(name).fault(one.needs[1])
        except InputError as error:
            fault = error if isinstance(error, Fault) else Fault(found.line_of(name), str(error))
            found.faults.add(fault.line, str(fault))
            has_default = field.default is not MISSING or field.default_factory is not MISSING
            lacking = lacking if has_default else lacking or fault
    if lacking is not None:
        raise lacking
    make: Callable[..., T] = declared
    return make(**values)


def _told(kind: Kind[object], meaning: str, examples: Sequence[Json]) -> Schema:
    return {"description": meaning, **kind.schema, **({"examples": [*examples]} if examples else {})}


def _declared(declared: type[object]) -> Iterator[tuple[dataclasses.Field[object], str, DeclaredKey]]:
    if not dataclasses.is_dataclass(declared):
        raise TypeError(f"{declared} is no dataclass, so it declares no keys")
    for field in dataclasses.fields(declared):
        if _METADATA in field.metadata:
            yield field, field.metadata[_METADATA].name or field.name, field.metadata[_METADATA]
