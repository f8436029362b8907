"""What makes a study this study and no other, as plain JSON; and how two of them differ, for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from trimtuner.front.jobfile.fields import shortened
from trimtuner.front.jobfile.job import Job, Json
from trimtuner.problem.cloud import Cloud, Cluster
from trimtuner.problem.parameters import Choice, Int, Parameter
from trimtuner.problem.problem import Constraint, Goal
from trimtuner.tuning.recipes import METHODS

_VERSION = 1
_MOST_DIFFERENCES = 12


def definition_of(job: Job) -> dict[str, Json]:
    """The problem and who searches it: not where it runs, nor what it may spend. Order is part of it."""
    return {
        "version": _VERSION,
        "goal": _goal(job.goal),
        "constraints": [_constraint(constraint) for constraint in job.constraints],
        "fractions": [*job.space.fractions],
        "snapshots": job.space.snapshots,
        **_choices(job),
        "method": job.search.method,
        "options": _options(job),
        "seed": job.search.seed,
        # Only where there is any, so that studies of before are still the same.
        **({"learn_from": [*job.search.learn_from]} if job.search.learn_from else {}),
    }


def differences(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[str]:
    """One line for each difference, such as ``seed: was 0, is 1``; none where the definitions are the same."""
    found = list(_differences("", dict(old), dict(new)))
    if len(found) <= _MOST_DIFFERENCES:
        return found
    return [*found[:_MOST_DIFFERENCES], f"and {len(found) - _MOST_DIFFERENCES} more"]


def _goal(goal: Goal) -> dict[str, Json]:
    wanted: dict[str, Json] = {goal.direction: goal.metric}
    return wanted if goal.against is None else {**wanted, "minimize": goal.against}


def _constraint(constraint: Constraint) -> dict[str, Json]:
    """By its meaning, so that 20min and 1200s are the same."""
    return {"name": constraint.metric, "at_most" if constraint.is_upper else "at_least": constraint.limit}


def _choices(job: Job) -> dict[str, Json]:
    if job.configs is not None:
        return {
            "configs": [
                {"values": {**config}, "price_per_hour": job.space.price_per_hour(config)} for config in job.configs
            ]
        }
    cloud = job.space.cloud
    return {
        "parameters": [_parameter(name, parameter) for name, parameter in job.space.parameters.items()],
        "cloud": None if cloud is None else _cloud(cloud),
    }


def _parameter(name: str, parameter: Parameter) -> dict[str, Json]:
    when = None if parameter.when is None else parameter.when.text
    if isinstance(parameter, Choice):
        return {"name": name, "values": [*parameter.values], "scale": parameter.scale, "when": when}
    kind = "int" if isinstance(parameter, Int) else "float"
    bounds: dict[str, Json] = {"min": parameter.min, "max": parameter.max}
    return {"name": name, "type": kind, **bounds, "scale": parameter.scale, "when": when}


def _cloud(cloud: Cloud) -> dict[str, Json]:
    """What the machines are, and every choice of them with its price, helpers included: rule and markets are in it."""
    machines: list[Json] = [
        {"name": name, "vcpus": vm.vcpus, "memory_gib": vm.memory_gib, "gpus": vm.gpus}
        for name, vm in cloud.vms.items()
    ]
    prices: dict[str, Json] = {_cluster_name(cluster): cloud.price_per_hour(cluster) for cluster in cloud.clusters}
    # Only where there are any, so that studies of before are still the same.
    interruptions: dict[str, Json] = {
        _cluster_name(cluster): cloud.interruptions_per_hour(cluster)
        for cluster in cloud.clusters
        if cloud.interruptions_per_hour(cluster)
    }
    told: dict[str, Json] = {"interruptions_per_hour": interruptions} if interruptions else {}
    return {"vm_type": machines, "helpers": [*cloud.helpers], "price_per_hour": prices, **told}


def _cluster_name(cluster: Cluster) -> str:
    return f"{cluster.vm_count} x {cluster.vm_type} {cluster.market}"


def _options(job: Job) -> dict[str, Json]:
    """With the defaults of this version: a search goes on as it began."""
    method = METHODS[job.search.method]
    chosen = {**method.options, **job.search.options}
    return {name: value for name, value in sorted(chosen.items()) if isinstance(value, str | bool | int | float)}


def _differences(where: str, old: Json, new: Json) -> Iterator[str]:
    if _is_same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _differences_by_key(where, old, new)
    elif _has_names(old) and _has_names(new):
        yield from _differences_by_name(where, _by_name(old), _by_name(new))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(new[0], dict):
        for position, (before, after) in enumerate(zip(old, new, strict=True), start=1):
            yield from _differences(f"{where}, item {position}", before, after)
    elif isinstance(old, list) and isinstance(new, list) and new and isinstance(new[0], dict):
        yield f"{where}: {len(old)} were listed, now {len(new)}"
    else:
        yield f"{where}: was {shortened(old)}, is {shortened(new)}"


def _is_same(old: Json, new: Json) -> bool:
    """Python takes True for 1; a definition does not."""
    return json.dumps(old) == json.dumps(new) or (old == new and _is_number(old) and _is_number(new))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _differences_by_key(where: str, old: dict[str, Json], new: dict[str, Json]) -> Iterator[str]:
    for key in {**old, **new}:
        place = f"{where}.{key}" if where else key
        if key not in new:
            yield f"{place}: was {shortened(old[key])}, is gone"
        elif key not in old:
            yield f"{place}: is new, {shortened(new[key])}"
        else:
            yield from _differences(place, old[key], new[key])


def _differences_by_name(where: str, old: dict[str, Json], new: dict[str, Json]) -> Iterator[str]:
    yield from _differences_by_key(where, old, new)
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        yield f"{where}: the order was {', '.join(old)}, is {', '.join(new)}"


def _has_names(value: Json) -> bool:
    """Whether it is a list of things with names, no two the same."""
    if not isinstance(value, list):
        return False
    names = [item.get("name") for item in value if isinstance(item, dict)]
    return len(names) == len(value) and all(isinstance(name, str) and names.count(name) == 1 for name in names)


def _by_name(value: Json) -> dict[str, Json]:
    """A list of things with names, each without its name."""
    found: dict[str, Json] = {}
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            found[str(item["name"])] = {key: one for key, one in item.items() if key != "name"}
    return found
