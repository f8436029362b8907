"""What makes a study this study and no other, as plain JSON."""

from __future__ import annotations

from trimtuner.jobs.job import Job
from trimtuner.keys.kinds import Json
from trimtuner.problem.cloud import Cloud, Cluster
from trimtuner.problem.parameters import Choice, Int, Parameter
from trimtuner.problem.problem import Constraint, Goal
from trimtuner.tuning.recipes import METHODS

_VERSION = 1


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
