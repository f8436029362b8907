"""Where trials run, and how many side by side; each engine declares its own keys."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from trimtuner.engines.local.settings import LocalSettings
from trimtuner.engines.protocol import Settings
from trimtuner.jobs.engines import DEFAULT_ENGINE, ENGINES
from trimtuner.keys.declared import DeclaredKey, key, keys_of, read_keys, schema_of
from trimtuner.keys.fields import Field
from trimtuner.keys.kinds import Kind, Schema, has, one_of, only, where, whole_number


@dataclass(frozen=True)
class EngineChoice:
    """Where trials run, and how many side by side."""

    type: str = key(
        one_of(ENGINES),
        "; ".join(f"`{name}`: {one.is_what}" for name, one in ENGINES.items()) + ".",
        default=DEFAULT_ENGINE,
    )
    parallel: int = key(
        whole_number("a number of trials", 1, 1000), "How many trials run side by side.", default=1, examples=[4]
    )
    settings: Settings = dataclasses.field(default_factory=LocalSettings)


def keys_of_engine(name: str) -> dict[str, DeclaredKey]:
    """The keys that only this type of engine has, or a few others with it."""
    return keys_of(ENGINES[name].settings)


def _engine(field: Field) -> EngineChoice:
    section = field.section(tuple(_KEYS), "a mapping such as {type: local, parallel: 2}")
    choice = read_keys(section, EngineChoice)
    for name in section.keys:
        homes = [one for one in ENGINES if name in keys_of_engine(one)]
        if homes and choice.type not in homes:
            section.field(name).note(f"it is for type {' or '.join(homes)}, this is {choice.type}")
    return dataclasses.replace(choice, settings=read_keys(section, ENGINES[choice.type].settings))


def _is_type(name: str) -> Schema:
    """The condition that the engine is of this type; also where none is written, if that means this one."""
    told: Schema = {} if name == DEFAULT_ENGINE else has("type")
    return {"properties": {"type": {"const": name}}, **told}


def _rules_of(name: str) -> Schema:
    own = keys_of_engine(name)
    needed = [one for one, declared in own.items() if declared.write]
    return where(_is_type(name), {**only((*keys_of(EngineChoice), *own)), **(has(*needed) if needed else {})})


_KEYS = keys_of(EngineChoice) | {name: one for engine in ENGINES for name, one in keys_of_engine(engine).items()}
# What an engine needs is needed only where it is chosen.
_OPTIONAL = {name: dataclasses.replace(one, write="") for name, one in _KEYS.items()}
ENGINE = Kind(_engine, schema_of(_OPTIONAL, {"allOf": [*map(_rules_of, ENGINES)]}))
