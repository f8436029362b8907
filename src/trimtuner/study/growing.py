"""What may be added to the space of a study that has begun: more values, wider ranges, machines, further parameters.

What was measured before counts: every old configuration is one of the new space, given the defaults of what it lacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from trimtuner.problem.parameters import NoDefault
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_number

Plain: TypeAlias = Mapping[str, object]

_MACHINES = ("price_per_hour", "interruptions_per_hour")  # of each choice of them, by name


def without_additions(old: Plain, new: Plain) -> dict[str, object]:
    """A description, without all that another does not have and that could be added to it."""
    left = dict(new)
    for key, remove in _REMOVERS.items():
        if key in old and key in new:
            left[key] = remove(old[key], new[key])
    return left


def lacking_defaults(old: Plain, space: Space) -> Iterator[str]:
    """A line for each new parameter whose value in what was measured nobody knows."""
    known = {str(one["name"]) for one in _mappings(old.get("parameters"))}
    for name, parameter in space.parameters.items():
        if name not in known and isinstance(parameter.default, NoDefault) and space.listed is None:
            yield (
                f"parameters.{name}: is new; give it a default, the value that all trials had so far, and the study "
                "goes on with it"
            )


def _listed_before(old: object, new: object) -> object:
    """Of a list, what was in it before."""
    if not isinstance(old, list) or not isinstance(new, list):
        return new
    known = {_key(one) for one in old}
    return [one for one in new if _key(one) in known]


def _key(value: object) -> str:
    """What two values that are the same share: 1 is 1.0, but neither is true."""
    return json.dumps(_in_floats(value), sort_keys=True)


def _in_floats(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _in_floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_in_floats(one) for one in value]
    return float(value) if is_number(value) else value


def _parameters_before(old: object, new: object) -> object:
    before = {str(one["name"]): one for one in _mappings(old)}
    return [_parameter_before(before[str(one["name"])], one) for one in _mappings(new) if str(one["name"]) in before]


def _parameter_before(old: Plain, new: Plain) -> Plain:
    if "values" in old and "values" in new:
        return {**new, "values": _listed_before(old["values"], new["values"])}
    low, high = (old.get("min"), new.get("min")), (old.get("max"), new.get("max"))
    bounds = [bound for bound in (*low, *high) if isinstance(bound, int | float)]
    if len(bounds) == 4 and bounds[1] <= bounds[0] and bounds[2] <= bounds[3]:
        return {**new, "min": old["min"], "max": old["max"]}
    return new


def _machines_before(old: object, new: object) -> object:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    names = [one["name"] for one in _mappings(old.get("vm_type"))]
    left = {**new, "vm_type": [one for one in _mappings(new.get("vm_type")) if one["name"] in names]}
    for key in _MACHINES:
        before, now = old.get(key, {}), new.get(key, {})
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            left[key] = {name: value for name, value in now.items() if name in old["price_per_hour"]}
    return {key: value for key, value in left.items() if value or key in old}


def _mappings(value: object) -> list[Plain]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


_REMOVERS: dict[str, Callable[[object, object], object]] = {
    "parameters": _parameters_before,
    "cloud": _machines_before,
    "configs": _listed_before,
    "fractions": _listed_before,
}
