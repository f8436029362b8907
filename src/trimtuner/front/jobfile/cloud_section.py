"""The machines that may be rented: from the built-in catalogue, a CSV of one's own, or the job file itself."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import InputError, nearest
from trimtuner.front.jobfile.faults import Fault
from trimtuner.front.jobfile.fields import SECTIONS, Field, Section, one_of, shortened
from trimtuner.front.jobfile.tree import MappingNode, ScalarNode, plain_scalar
from trimtuner.problem.cloud import MARKETS, VM, Cloud, Market, built_in_catalog

_BUILT_IN = ("builtin", "aws")
_VM_KEYS = ("vcpus", "memory_gib", "price_per_hour", "gpus", "spot_price_per_hour")
_VM_EXAMPLE = "a mapping such as {vcpus: 2, memory_gib: 4, price_per_hour: 0.0464}"
_NEEDED_COLUMNS = ("vm_type", "vcpus", "memory_gib", "price_per_hour")
_VM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,63}")
_LARGEST_CSV = 4 * 2**20  # bytes
_MOST_COUNTS = 1000
_MOST_CLUSTERS = 50_000
_MOST_OF_A_KIND = 10_000  # vCPUs, GPUs
_MOST_MEMORY_GIB = 1e6
_LEAST, _MOST_PRICE = 1e-9, 1e5  # USD per hour


@dataclass(frozen=True)
class _Counts:
    """How many VMs may be rented, and the rule for valid pairs of type and count."""

    values: tuple[int, ...] = (1,)
    rule: Field | None = None


def read_cloud(field: Field, folder: Path) -> Cloud | None:
    """The section ``cloud``; nothing where it has faults, which are noted."""
    before = len(field.faults)
    section = field.section(SECTIONS["cloud"], "a mapping such as {catalog: builtin, vm_type: [t2.small, t2.medium]}")
    counts = section.read("vm_count", _counts, _Counts())
    markets = section.read("market", _markets, ("on_demand",))
    known = _known(section, folder)
    if len(field.faults) > before:
        return None
    types = section.read("vm_type", lambda one: _offered_types(one, known), tuple(known))
    helpers = section.read("helpers", lambda one: _types(one, known), ())
    if len(field.faults) > before:
        return None
    _check_size(field, len(types) * len(counts.values) * len(markets))
    _check_spot(section, markets, {name: known[name] for name in types})
    with (counts.rule or field).blamed():
        rule = None if counts.rule is None else counts.rule.text("a rule such as 'vm_count * vcpus <= 80'")
        return Cloud(known, vm_types=types, vm_count=counts.values, rule=rule, market=markets, helpers=helpers)


def read_price(field: Field) -> float:
    """USD per hour."""
    return float(field.number("a price in USD per hour", above=_LEAST, most=_MOST_PRICE))


def _known(section: Section, folder: Path) -> dict[str, VM]:
    if "catalog" not in section and "vms" not in section:
        raise Fault(section.own_line, "cloud has no VM types; write 'catalog: builtin' (or a CSV), or 'vms:'")
    if "vm_type" not in section and section.read("catalog", _is_built_in, default=False):
        raise section.field("catalog").fault("the built-in catalogue needs 'vm_type: […]', those to choose from")
    from_catalog = section.read("catalog", lambda one: _catalog(one, folder), {})
    return {**from_catalog, **section.read("vms", _vms, {})}


def _is_built_in(field: Field) -> bool:
    return isinstance(field.node, ScalarNode) and field.node.value in _BUILT_IN


def _catalog(field: Field, folder: Path) -> Mapping[str, VM]:
    text = field.text("'builtin' or the path of a CSV")
    if text in _BUILT_IN:
        return built_in_catalog()
    if not text.lower().endswith(".csv"):
        raise field.fault(f"{shortened(text)} is neither 'builtin' nor the path of a CSV{nearest(text, _BUILT_IN)}")
    return _vms_of_csv(field, text, _rows(field, folder / text))


def _rows(field: Field, path: Path) -> list[list[str]]:
    if not os.path.isfile(path):  # unlike Path.is_file, also for a name that is too long
        raise field.fault(f"there is no file {shortened(str(path))}; the path is from the folder of the job file")
    if path.stat().st_size > _LARGEST_CSV:
        raise field.fault(f"the CSV is larger than {_LARGEST_CSV // 2**20} MiB")
    try:
        return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise field.fault(f"the CSV cannot be read: {type(error).__name__}") from None


def _vms_of_csv(field: Field, name: str, rows: list[list[str]]) -> dict[str, VM]:
    header = rows[0] if rows else []
    for column in _NEEDED_COLUMNS:
        if column not in header:
            raise field.fault(f"{name}:1: there is no column {column!r}; it needs {', '.join(_NEEDED_COLUMNS)}")
    for column in header:
        if column not in ("vm_type", *_VM_KEYS) and nearest(column, _VM_KEYS):
            raise field.fault(f"{name}:1: unknown column {shortened(column)}{nearest(column, _VM_KEYS)}")
    found: dict[str, VM] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise field.fault(f"{name}:{number}: {len(row)} values for {len(header)} columns")
        values = dict(zip(header, row, strict=True))
        vm_type = values.pop("vm_type")
        if vm_type in found:
            raise field.fault(f"{name}:{number}: {shortened(vm_type)} is there already; keep one row of each type")
        _check_vm_name(vm_type)
        found[vm_type] = _vm(_row_section(field, f"{name}:{number}", values))
    return found


def _row_section(field: Field, where: str, values: Mapping[str, str]) -> Section:
    """A row as if it stood in the job file, where the catalogue is named."""
    written = {key: text.strip() for key, text in values.items() if key in _VM_KEYS and text.strip()}
    entries = {key: ScalarNode(field.line, text, plain_scalar(text)) for key, text in written.items()}
    node = MappingNode(field.line, entries, dict.fromkeys(entries, field.line), len(entries) + 1)
    return Section(node, where, field.line, field.faults)


def _vms(field: Field) -> dict[str, VM]:
    section = field.named_fields("a mapping of VM types, each {vcpus: …, memory_gib: …, price_per_hour: …}")
    found: dict[str, VM] = {}
    for name, one in section:
        with field.faults.collecting(section.line(name)):
            _check_vm_name(name)
            found[name] = _vm(one.section(_VM_KEYS, _VM_EXAMPLE))
    return found


def _vm(section: Section) -> VM:
    before = len(section.faults)
    vcpus = section.required("vcpus", _vcpus, "vcpus: 2")
    memory_gib = section.required("memory_gib", _memory_gib, "memory_gib: 4")
    price = section.required("price_per_hour", read_price, "price_per_hour: 0.0464 (USD)")
    gpus = section.read("gpus", _gpus, 0)
    spot = section.read("spot_price_per_hour", read_price, None)
    if vcpus is None or memory_gib is None or price is None or len(section.faults) > before:
        return VM(vcpus=1, memory_gib=1.0, price_per_hour=1.0)  # stands in until the faults are told
    return VM(vcpus, memory_gib, price, gpus, spot)


def _vcpus(field: Field) -> int:
    return field.whole_number("a whole number", 1, _MOST_OF_A_KIND)


def _gpus(field: Field) -> int:
    return field.whole_number("a whole number", 0, _MOST_OF_A_KIND)


def _memory_gib(field: Field) -> float:
    return float(field.number("an amount of memory in GiB", above=_LEAST, most=_MOST_MEMORY_GIB))


def _check_vm_name(name: str) -> None:
    if not _VM_NAME.fullmatch(name):
        raise InputError(f"{shortened(name)} is no name for a VM type; use letters, digits and . _ : / + -")


def _offered_types(field: Field, known: Mapping[str, VM]) -> tuple[str, ...]:
    names = _types(field, known)
    for name in names:
        if names.count(name) > 1:
            raise field.fault(f"{name!r} is there twice; list each once")
    return names


def _types(field: Field, known: Mapping[str, VM]) -> tuple[str, ...]:
    names: list[str] = []
    for item in field.one_or_more("a list of VM types such as [t2.small, t2.medium]"):
        name = item.text("the name of a VM type")
        if name not in known:
            raise item.fault(f"{shortened(name)} is no known VM type{nearest(name, known)}")
        names.append(name)
    if not names:
        raise field.fault("the list is empty")
    return tuple(names)


def _markets(field: Field) -> tuple[Market, ...]:
    found = tuple(one_of(item, MARKETS) for item in field.one_or_more("a list of on_demand, spot or both"))
    if not found or len(set(found)) < len(found):
        raise field.fault("write on_demand, spot or both, each once")
    return found


def _check_size(field: Field, clusters: int) -> None:
    if clusters > _MOST_CLUSTERS:
        raise field.fault(f"{clusters} triples of VM type, count and market; {_MOST_CLUSTERS} is the most")


def _check_spot(section: Section, markets: tuple[Market, ...], offered: Mapping[str, VM]) -> None:
    if "spot" not in markets:
        return
    for name, vm in offered.items():
        if vm.spot_price_per_hour is None:
            raise section.field("market").fault(
                f"{name} has no spot price (the built-in catalogue has none, as they change by the hour); "
                "give spot_price_per_hour under 'vms:' or in a CSV, or leave spot out"
            )


def _counts(field: Field) -> _Counts:
    if isinstance(field.node, MappingNode):
        return _counts_with_rule(field)
    return _Counts(_count_list(field))


def _counts_with_rule(field: Field) -> _Counts:
    section = field.section(("min", "max", "values", "rule"), "a mapping")
    rule = section.field("rule") if "rule" in section else None
    if "values" in section:
        for key in ("min", "max"):
            if key in section:
                raise section.field(key).fault("either 'values', or 'min' and 'max'")
        return _Counts(_count_list(section.field("values")), rule)
    least = section.read("min", _count, 1)
    most = section.required("max", _count, "max: 8")
    if most is None:
        return _Counts()
    if not least <= most < least + _MOST_COUNTS:
        raise field.fault(f"from {least} to {most}: min must be at most max, and {_MOST_COUNTS} counts are the most")
    return _Counts(tuple(range(least, most + 1)), rule)


def _count_list(field: Field) -> tuple[int, ...]:
    counts = tuple(_count(item) for item in field.one_or_more("a count, a list of them, or {min: 1, max: 8}"))
    if not counts or len(set(counts)) < len(counts):
        raise field.fault("write at least one count, and each once")
    return counts


def _count(field: Field) -> int:
    return field.whole_number("a count of VMs", 1, 100_000)
