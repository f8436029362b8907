"""How two definitions of a study differ, for a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trimtuner.errors import cut
from trimtuner.problem.expressions import Value
from trimtuner.problem.values import is_number

_MOST_DIFFERENCES = 12
_DIGESTS = {"space": "the values, machines or prices differ (of these, only a digest is kept)"}


@dataclass(frozen=True)
class Comparison:
    """How a study differs from what a record has, a line each; if not at all, what it adds to that.

    ``complete`` makes an old configuration one of the study with what is added.
    """

    differences: tuple[str, ...]
    additions: tuple[str, ...] = ()
    complete: Callable[[Mapping[str, Value]], dict[str, Value]] = dict


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One line for each difference, such as ``seed: was 0, is 1``; none where the definitions are the same."""
    found = list(_differences("", dict(old), dict(new)))
    if len(found) <= _MOST_DIFFERENCES:
        return found
    return [*found[:_MOST_DIFFERENCES], f"and {len(found) - _MOST_DIFFERENCES} more"]


def _differences(where: str, old: object, new: object) -> Iterator[str]:
    if _is_same(old, new):
        return
    if where in _DIGESTS and isinstance(old, str) and isinstance(new, str):
        yield f"{where}: {_DIGESTS[where]}"
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from _differences_by_key(where, old, new)
    elif _has_names(old) and _has_names(new):
        yield from _differences_by_name(where, _by_name(old), _by_name(new))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(new[0], dict):
        for position, (before, after) in enumerate(zip(old, new, strict=True), start=1):
            yield from _differences(f"{where}, item {position}", before, after)
    elif isinstance(old, list) and isinstance(new, list) and new and isinstance(new[0], dict):
        yield f"{where}: {len(old)} were listed, now {len(new)}"
    else:
        yield f"{where}: was {cut(repr(old))}, is {cut(repr(new))}"


def _is_same(old: object, new: object) -> bool:
    """Python takes True for 1; a definition does not."""
    return json.dumps(old) == json.dumps(new) or (old == new and is_number(old) and is_number(new))


def _differences_by_key(where: str, old: dict[str, object], new: dict[str, object]) -> Iterator[str]:
    for key in {**old, **new}:
        place = f"{where}.{key}" if where else key
        if key not in new:
            yield f"{place}: was {cut(repr(old[key]))}, is gone"
        elif key not in old:
            yield f"{place}: is new, {cut(repr(new[key]))}"
        else:
            yield from _differences(place, old[key], new[key])


def _differences_by_name(where: str, old: dict[str, object], new: dict[str, object]) -> Iterator[str]:
    yield from _differences_by_key(where, old, new)
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        yield f"{where}: the order was {', '.join(old)}, is {', '.join(new)}"


def _has_names(value: object) -> bool:
    """Whether it is a list of things with names, no two the same."""
    if not isinstance(value, list):
        return False
    names = [item.get("name") for item in value if isinstance(item, dict)]
    return len(names) == len(value) and all(isinstance(name, str) and names.count(name) == 1 for name in names)


def _by_name(value: object) -> dict[str, object]:
    """A list of things with names, each without its name."""
    found: dict[str, object] = {}
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            found[str(item["name"])] = {key: one for key, one in item.items() if key != "name"}
    return found
