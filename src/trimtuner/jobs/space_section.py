"""What may be chosen: parameters, cloud or a list of configurations, and the shares of the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtuner.errors import InputError
from trimtuner.jobs.cloud_section import read_cloud, read_price
from trimtuner.jobs.faults import Fault
from trimtuner.jobs.fields import SECTIONS, Field, Section, one_of, shortened
from trimtuner.jobs.quantities import share
from trimtuner.jobs.tree import MappingNode
from trimtuner.problem.axes import Configuration
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Expression, Value
from trimtuner.problem.parameters import Choice, Float, Int, Parameter, Scale
from trimtuner.problem.space import Space

RUN_PLACEHOLDERS = ("fraction", "trial", "snapshots")
MACHINE_PLACEHOLDERS = ("vm_type", "vm_count", "market", "vcpus", "memory_gib", "gpus")

PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
SCALES: tuple[Scale, ...] = ("linear", "log", "log2")
RANGE_TYPES: tuple[Literal["int", "float"], ...] = ("int", "float")
FORMS: Mapping[str, tuple[str, ...]] = {
    "values": ("values", "scale", "when"),
    "value": ("value", "when"),
    "min": ("min", "max", "scale", "type", "when"),
    "max": ("min", "max", "scale", "type", "when"),
}
_EXAMPLE = "a mapping such as {values: [16, 256]}, {min: 0.0, max: 0.9} or {value: 3}"
_PRICE = "price_per_hour"
MOST_PARAMETERS = 200
MOST_CONFIGURATIONS = 5000


@dataclass(frozen=True)
class Data:
    """The shares of the data to test on, and whether a run passes the smaller ones."""

    fractions: tuple[float, ...] = (1.0,)
    snapshots: bool = False


@dataclass(frozen=True)
class Offer:
    """The space, and what placeholders may name; None where that is not known for faults."""

    space: Space | None = None
    names: frozenset[str] | None = None
    conditional: frozenset[str] = frozenset()  # names that have no value in some configurations
    configs: tuple[Configuration, ...] | None = None  # where they are listed one by one


def read_data(field: Field) -> Data:
    """The section ``data``."""
    section = field.section(SECTIONS["data"], "a mapping such as {fractions: [1/10, 1], snapshots: true}")
    return Data(
        section.read("fractions", _fractions, Data.fractions),
        section.read("snapshots", Field.boolean, Data.snapshots),
    )


def read_offer(root: Section, folder: Path) -> Offer:
    """The space of the job file, from its parameters and cloud, or from its list of configurations."""
    before = len(root.faults)
    found_data = root.read("data", read_data, Data())
    if "configs" not in root:
        return _composed(root, folder, found_data, before)
    for key in ("parameters", "cloud"):
        if key in root:
            root.faults.add(root.line(key), f"{key!r} beside 'configs' (line {root.line('configs')}); keep one of them")
    return root.read("configs", lambda field: _listed(field, found_data), Offer())


def _composed(root: Section, folder: Path, found_data: Data, faults_before: int) -> Offer:
    if "parameters" not in root and "cloud" not in root:
        raise Fault(root.own_line, "there is nothing to choose; write 'parameters:', 'cloud:' or both, or 'configs:'")
    offered = root.read("cloud", lambda field: read_cloud(field, folder), None)
    machine_names = _machine_names(offered) if "cloud" in root else ()
    parameters = root.read("parameters", lambda field: _parameters(field, machine_names), {})
    names = frozenset((*_keys_below(root, "parameters"), *(MACHINE_PLACEHOLDERS if "cloud" in root else ())))
    conditional = frozenset(name for name, one in parameters.items() if one.when is not None)
    if len(root.faults) > faults_before:
        return Offer(None, names, conditional)
    with root.field("parameters" if "parameters" in root else "cloud").blamed():
        space = Space(parameters, cloud=offered, fractions=found_data.fractions, snapshots=found_data.snapshots)
        if conditional:
            space.pool()  # every condition is asked once, so that none fails in the middle of a search
    return Offer(space, names, conditional)


def _keys_below(root: Section, key: str) -> tuple[str, ...]:
    """As written, faulty or not, so that one fault does not make others."""
    node = root.node.entries.get(key)
    return tuple(node.entries) if isinstance(node, MappingNode) else ()


def _machine_names(offered: Cloud | None) -> tuple[str, ...]:
    is_choice_of_market = offered is None or len(offered.markets) > 1
    return ("vm_type", "vm_count", "market") if is_choice_of_market else ("vm_type", "vm_count")


def _fractions(field: Field) -> tuple[float, ...]:
    items = field.items("a list of shares such as [1/60, 1/10, 0.25, 1]")
    if not items:
        raise field.fault("the list is empty; write the shares of the data to test on, such as [0.1, 1]")
    shares = [share(item) for item in items]
    for position, one in enumerate(shares):
        if one in shares[:position]:
            raise items[position].fault("this share is there already; list each once")
    return tuple(shares)


def _parameters(field: Field, machine_names: tuple[str, ...]) -> dict[str, Parameter]:
    section = field.named_fields("a mapping of names, each with {values: […]}, {min: …, max: …} or {value: …}")
    if not section.keys:
        raise field.fault("it is empty; leave it out, or name what may be chosen")
    if len(section.keys) > MOST_PARAMETERS:
        raise field.fault(f"{len(section.keys)} parameters; {MOST_PARAMETERS} is the most")
    reserved = (*RUN_PLACEHOLDERS, *(MACHINE_PLACEHOLDERS if machine_names else ()))
    found: dict[str, Parameter] = {}
    for position, (name, one) in enumerate(section):
        with field.faults.collecting(section.line(name)):
            _check_name(name, reserved)
            found[name] = _parameter(one, (*machine_names, *section.keys[:position]))
    return found


def _check_name(name: str, reserved: tuple[str, ...]) -> None:
    if not PARAMETER_NAME.fullmatch(name):
        raise InputError(
            f"{shortened(name)} is no name for a parameter; use the letters a to z, digits and underscores, at most 64"
        )
    if name in reserved:
        raise InputError(f"the parameter {name!r} has the name of a placeholder with its own meaning; rename it")


def _parameter(field: Field, known: tuple[str, ...]) -> Parameter:
    form = next((key for key in FORMS if key in field.named_fields(_EXAMPLE)), None)
    if form is None:
        raise field.fault(f"it has neither 'values', nor 'min' and 'max', nor 'value'; write {_EXAMPLE}")
    section = field.section(FORMS[form], _EXAMPLE)
    if "when" not in section:
        return _unconditional(section, form, None)
    condition = section.field("when")
    with condition.blamed():
        text = condition.text("a condition such as \"optimizer == 'sgd'\"")
        Expression(text).require_names(frozenset(known), "only machines and parameters above it may be named;")
    return _unconditional(section, form, text)


def _unconditional(section: Section, form: str, when: str | None) -> Parameter:
    with section.field(form).blamed():
        if form == "value":
            return Choice([section.field("value").scalar()], when=when)
        if form == "values":
            items = section.field("values").items("a list such as [16, 256]")
            return Choice([item.scalar() for item in items], section.read("scale", _scale, None), when)
        return _range(section, when)


def _range(section: Section, when: str | None) -> Parameter:
    low, high = (section.required(key, _bound, f"{key}: a number") for key in ("min", "max"))
    scale: Scale = section.read("scale", _scale, "linear")
    kind = section.read("type", _type, None)
    if low is None or high is None:
        return Choice([0], when=when)  # stands in until the faults are told
    if kind is None and isinstance(low, int) and isinstance(high, int):
        raise section.field("min").fault("min and max are whole numbers; say which are meant, type: int or type: float")
    if kind != "int":
        return Float(low, high, scale, when)
    if not isinstance(low, int) or not isinstance(high, int):
        raise section.field("type").fault("an int needs a min and a max without a point")
    return Int(low, high, scale, when)


def _bound(field: Field) -> float:
    return field.number("a number")


def _scale(field: Field) -> Scale:
    return one_of(field, SCALES)


def _type(field: Field) -> Literal["int", "float"]:
    return one_of(field, RANGE_TYPES)


def _listed(field: Field, found_data: Data) -> Offer:
    """An explicit list of configurations, each with its price where prices matter."""
    items = field.items(
        "a list of configurations such as {learning_rate: 0.1, price_per_hour: 0.05}", MOST_CONFIGURATIONS
    )
    before = len(field.faults)
    configs: list[Configuration] = []
    prices: list[float | None] = []
    for item in items:
        with field.faults.collecting(item.line):
            config, price = _configuration(item)
            configs.append(config)
            prices.append(price)
    if len(field.faults) > before:
        return Offer()
    _refuse_repeats(items, configs)
    names = frozenset(name for config in configs for name in config)
    with field.blamed():
        space = Space.from_configs(
            configs,
            price_per_hour=_all_or_none(items, prices),
            fractions=found_data.fractions,
            snapshots=found_data.snapshots,
        )
    conditional = frozenset(name for name in names if any(name not in config for config in configs))
    return Offer(space, names, conditional, tuple(configs))


def _configuration(item: Field) -> tuple[Configuration, float | None]:
    section = item.named_fields("a configuration such as {learning_rate: 0.1, price_per_hour: 0.05}")
    price = section.read(_PRICE, read_price, None)
    config: Configuration = {}
    for name, one in section:
        if name != _PRICE:
            _check_name(name, RUN_PLACEHOLDERS)
            config[name] = one.scalar()
    if not config:
        raise item.fault("it chooses nothing; write at least one parameter")
    return config, price


def _all_or_none(items: list[Field], prices: list[float | None]) -> list[float] | None:
    known = [price for price in prices if price is not None]
    if known and len(known) < len(items):
        raise items[prices.index(None)].fault("it has no price_per_hour, though others have; give all a price, or none")
    return known or None


def _refuse_repeats(items: list[Field], configs: list[Configuration]) -> None:
    seen: dict[frozenset[tuple[str, Value, bool]], int] = {}
    for position, config in enumerate(configs):
        key = frozenset((name, value, isinstance(value, bool)) for name, value in config.items())
        first = seen.setdefault(key, position)
        if first != position:
            raise items[position].fault(f"the same configuration as item {first + 1}; remove one")
