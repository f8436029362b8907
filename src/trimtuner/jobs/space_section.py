"""What may be chosen: parameters, cloud or a list of configurations, and the shares of the data."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trimtuner.errors import InputError
from trimtuner.jobs.cloud_section import PRICE
from trimtuner.keys import kinds
from trimtuner.keys.declared import key, keys_of, optional, read_keys, schema_of, section
from trimtuner.keys.faults import Fault
from trimtuner.keys.fields import Field, shortened
from trimtuner.keys.kinds import Kind, Schema
from trimtuner.keys.quantities import SHARE
from trimtuner.problem.axes import Configuration
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Expression, Value
from trimtuner.problem.parameters import Choice, Float, Int, NoDefault, Parameter, Scale
from trimtuner.problem.space import Space
from trimtuner.problem.values import told_apart

RUN_PLACEHOLDERS = ("fraction", "trial", "snapshots")
MACHINE_PLACEHOLDERS = ("vm_type", "vm_count", "market", "vcpus", "memory_gib", "gpus")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FREE_NAME: Schema = {**kinds.like(_NAME), "not": {"enum": [*RUN_PLACEHOLDERS]}}
_SCALES: tuple[Scale, ...] = ("linear", "log", "log2")
_TYPES: tuple[Literal["int", "float"], ...] = ("int", "float")
_FORMS: Mapping[str, tuple[str, ...]] = {
    "values": ("values", "scale", "when", "default"),
    "value": ("value", "when", "default"),
    "min": ("min", "max", "scale", "type", "when", "default"),
    "max": ("min", "max", "scale", "type", "when", "default"),
}
_EXAMPLE = "a mapping such as {values: [16, 256]}, {min: 0.0, max: 0.9} or {value: 3}"
_PRICE = "price_per_hour"
_MOST_PARAMETERS = 200
_MOST_CONFIGURATIONS = 5000


@dataclass(frozen=True)
class Data:
    """The shares of the data to test on, and whether a run passes the smaller ones."""

    fractions: tuple[float, ...] = key(
        kinds.list_of(
            SHARE,
            "a list of shares such as [1/60, 1/10, 0.25, 1]",
            empty="the list is empty; write the shares of the data to test on, such as [0.1, 1]",
            again="this share is there already; list each once",
        ),
        "The shares of the data to test on, each above 0 and at most 1: numbers, or quotients such as `1/60`. Your "
        "command finds the share of its trial in `{fraction}`. Not every method tests on all of them: of several "
        "below 6 % the default takes the largest. `trimtuner validate` says on which it does.",
        default=(1.0,),
        examples=[["1/60", "1/10", 0.25, 1]],
    )
    snapshots: bool = key(
        kinds.BOOLEAN,
        "Whether one run passes the smaller shares on its way and reports at each of them, as a training over epochs "
        "does. Such reports are free. Your command finds the shares in `{snapshots}`.",
        default=False,
    )


DATA = section(Data, "a mapping such as {fractions: [1/10, 1], snapshots: true}")


def _check_name(name: str, reserved: Sequence[str] = RUN_PLACEHOLDERS) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{shortened(name)} is no name for a parameter; use the letters a to z, digits and underscores, at most 64"
        )
    if name in reserved:
        raise InputError(f"the parameter {name!r} has the name of a placeholder with its own meaning; rename it")


# Parameters


_VALUES = kinds.list_of(kinds.VALUE, "a list such as [16, 256]")
_BOUND = Kind(lambda field: kinds.finite_number(field, "a number"), {"type": "number"})


@dataclass(frozen=True)
class ParameterKeys:
    """One parameter, as it is written: a list of values, a constant or a range."""

    values: tuple[Value, ...] | None = optional(
        Kind(_VALUES.read, {**_VALUES.schema, "minItems": 1, "uniqueItems": True}),
        "The values to choose from: numbers, texts, true and false, `null` or lists of these, each once. A command "
        "finds a list as JSON has it, `[64, 64]`, and nothing as `null`.",
        examples=[[16, 64, 256], ["sgd", "adam"], [None, 4, 16], [[32], [64, 64]]],
    )
    value: Value | None = optional(kinds.SCALAR, "The one value of a constant, for use in the command.", examples=[3])
    min: float | None = optional(_BOUND, "The least of a range.", examples=[16, 0.0])
    max: float | None = optional(_BOUND, "The most of a range, itself included.", examples=[512, 0.99])
    scale: Scale = key(
        kinds.one_of(_SCALES),
        "How distances between numbers are meant; `log` and `log2` need values above 0.",
        default="linear",
    )
    type: Literal["int", "float"] | None = optional(
        kinds.one_of(_TYPES),
        "Whether a range holds whole numbers only. It may be left out where `min` or `max` has a point, which means "
        "`float`.",
    )
    when: str | None = optional(
        kinds.condition("a condition such as \"optimizer == 'sgd'\""),
        "The parameter counts only where this holds: a condition on machines and on parameters above it. Where it does "
        "not, words of the command that name the parameter are left out.",
        examples=["optimizer == 'sgd'"],
    )
    default: Value | NoDefault = key(
        kinds.VALUE,
        "For a parameter that is added to a study which has begun: the value that all its trials had so far. What they "
        "measured then counts.",
        default=NoDefault.GIVEN,
        examples=[16],
    )


_PARAMETER_RULES: Schema = {
    "allOf": [
        kinds.where(kinds.has("values"), kinds.only(_FORMS["values"])),
        kinds.where(kinds.has("value"), kinds.only(_FORMS["value"])),
        kinds.where({"anyOf": [kinds.has("values"), kinds.has("value")]}, {}, kinds.has("min", "max")),
        kinds.where(
            {"properties": {"type": {"const": "int"}}, **kinds.has("type")},
            {"properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}},
        ),
    ]
}


def _parameter(field: Field) -> Parameter:
    form = next((key for key in _FORMS if key in field.mapping(_EXAMPLE)), None)
    if form is None:
        raise field.fault(f"it has neither 'values', nor 'min' and 'max', nor 'value'; write {_EXAMPLE}")
    section = field.section(_FORMS[form], _EXAMPLE)
    with field.faults.all_or_none():
        found = read_keys(section, ParameterKeys)
    if found.when is not None:
        with section.field("when").blamed():
            Expression(found.when)
    with section.field("default" if "default" in section else form).blamed():
        if found.value is not None:
            return Choice([found.value], when=found.when, default=found.default)
        if found.values is not None:
            return Choice(found.values, found.scale if "scale" in section else None, found.when, found.default)
        return _range(section, found)


def _range(section: Field, found: ParameterKeys) -> Parameter:
    low, high = found.min, found.max
    if low is None or high is None:
        bound = "min" if low is None else "max"
        raise Fault(section.line, f"{section.where} has no {bound!r}; write {bound}: a number")
    if found.type is None and isinstance(low, int) and isinstance(high, int):
        raise section.field("min").fault("min and max are whole numbers; say which are meant, type: int or type: float")
    if found.type != "int":
        return Float(low, high, found.scale, found.when, found.default)
    if not isinstance(low, int) or not isinstance(high, int):
        raise section.field("type").fault("an int needs a min and a max without a point")
    return Int(low, high, found.scale, found.when, found.default)


_NAMED_PARAMETERS = kinds.mapping_of(
    Kind(_parameter, schema_of(keys_of(ParameterKeys), _PARAMETER_RULES)),
    "a mapping of names, each with {values: […]}, {min: …, max: …} or {value: …}",
    _check_name,
    _FREE_NAME,
)


def _parameters(field: Field) -> dict[str, Parameter]:
    named = field.mapping("a mapping of names, each with {values: […]}, {min: …, max: …} or {value: …}").keys
    if not named:
        raise field.fault("it is empty; leave it out, or name what may be chosen")
    if len(named) > _MOST_PARAMETERS:
        raise field.fault(f"{len(named)} parameters; {_MOST_PARAMETERS} is the most")
    return _NAMED_PARAMETERS.read(field)


PARAMETERS = Kind(_parameters, {**_NAMED_PARAMETERS.schema, "minProperties": 1, "maxProperties": _MOST_PARAMETERS})


# Configurations one by one


@dataclass(frozen=True)
class Listed:
    """A configuration that is written out, and its price where prices matter."""

    price_per_hour: float | None = optional(PRICE, "What an hour of this configuration costs, in USD.")
    values: Configuration = dataclasses.field(default_factory=dict)


def _listed(item: Field) -> Listed:
    section = item.mapping("a configuration such as {learning_rate: 0.1, price_per_hour: 0.05}")
    listed = read_keys(section, Listed)
    for name, one in section:
        if name not in keys_of(Listed):
            _check_name(name)
            listed.values[name] = kinds.VALUE.read(one)
    if not listed.values:
        raise item.fault("it chooses nothing; write at least one parameter")
    return listed


CONFIGS = kinds.list_of(
    Kind(
        _listed,
        {
            **schema_of(
                keys_of(Listed), {"minProperties": 1, **kinds.where(kinds.has(*keys_of(Listed)), {"minProperties": 2})}
            ),
            "propertyNames": _FREE_NAME,
            "additionalProperties": kinds.VALUE.schema,
        },
    ),
    "a list of configurations such as {learning_rate: 0.1, price_per_hour: 0.05}",
    most=_MOST_CONFIGURATIONS,
    empty="the list of configurations is empty; there is nothing to choose from",
)


# All of it together


@dataclass(frozen=True)
class Offer:
    """The space, and what placeholders may name; None where that is not known for faults."""

    space: Space | None = None
    names: frozenset[str] | None = None
    conditional: frozenset[str] = frozenset()  # names that have no value in some configurations
    configs: tuple[Configuration, ...] | None = None  # where they are listed one by one


def offer_of(
    root: Field,
    data: Data,
    parameters: Mapping[str, Parameter] | None,
    cloud: Cloud | None,
    configs: Sequence[Listed] | None,
) -> Offer:
    """The space of the job file, from its parameters and cloud, or from its list of configurations."""
    if "configs" not in root:
        return _composed(root, data, parameters, cloud)
    for name in ("parameters", "cloud"):
        if name in root:
            beside = f"{name!r} beside 'configs' (line {root.line_of('configs')}); keep one of them"
            root.faults.add(root.line_of(name), beside)
    return Offer() if configs is None else _enumerated(root.field("configs"), data, configs)


def _composed(root: Field, data: Data, parameters: Mapping[str, Parameter] | None, cloud: Cloud | None) -> Offer:
    if "parameters" not in root and "cloud" not in root:
        raise Fault(root.line, "there is nothing to choose; write 'parameters:', 'cloud:' or both, or 'configs:'")
    before = len(root.faults)
    # As written, faulty or not, so that one fault does not make others.
    written = _check_names(root, cloud)
    names = frozenset((*written, *(MACHINE_PLACEHOLDERS if "cloud" in root else ())))
    conditional = frozenset(name for name, one in (parameters or {}).items() if one.when is not None)
    is_lacking = ("parameters" in root and parameters is None) or ("cloud" in root and cloud is None)
    if is_lacking or len(root.faults) > before:
        return Offer(None, names, conditional)
    with root.field("parameters" if "parameters" in root else "cloud").blamed():
        space = Space(parameters or {}, cloud=cloud, fractions=data.fractions, snapshots=data.snapshots)
        if conditional:
            space.pool()  # every condition is asked once, so that none fails in the middle of a search
    return Offer(space, names, conditional)


def _check_names(root: Field, cloud: Cloud | None) -> tuple[str, ...]:
    """The names of the parameters; noted are those that machines have, and conditions on what is not above them."""
    if "parameters" not in root:
        return ()
    section = root.field("parameters")
    has_markets = cloud is None or len(cloud.markets) > 1
    machines = ("vm_type", "vm_count", *(["market"] if has_markets else [])) if "cloud" in root else ()
    for position, (name, one) in enumerate(section):
        with section.faults.collecting(section.line_of(name)):
            _check_name(name, (*RUN_PLACEHOLDERS, *(MACHINE_PLACEHOLDERS if machines else ())))
            if "when" in one:
                _check_condition(one.field("when"), {*machines, *section.keys[:position]})
    return section.keys


def _check_condition(field: Field, known: set[str]) -> None:
    text = keys_of(ParameterKeys)["when"].read(field)
    with field.blamed():
        Expression(str(text)).require_names(frozenset(known), "only machines and parameters above it may be named;")


def _enumerated(field: Field, data: Data, configs: Sequence[Listed]) -> Offer:
    items = field.items("")
    _refuse_repeats(items, configs)
    prices = [one.price_per_hour for one in configs if one.price_per_hour is not None]
    if prices and len(prices) < len(items):
        lacking = next(item for item, one in zip(items, configs, strict=True) if one.price_per_hour is None)
        raise lacking.fault("it has no price_per_hour, though others have; give all a price, or none")
    values = tuple(one.values for one in configs)
    names = frozenset(name for one in values for name in one)
    with field.blamed():
        space = Space.from_configs(
            values, price_per_hour=prices or None, fractions=data.fractions, snapshots=data.snapshots
        )
    conditional = frozenset(name for name in names if any(name not in one for one in values))
    return Offer(space, names, conditional, values)


def _refuse_repeats(items: Sequence[Field], configs: Sequence[Listed]) -> None:
    seen: dict[frozenset[tuple[str, Hashable]], int] = {}
    for position, config in enumerate(configs):
        same = frozenset((name, told_apart(value)) for name, value in config.values.items())
        first = seen.setdefault(same, position)
        if first != position:
            raise items[position].fault(f"the same configuration as item {first + 1}; remove one")
