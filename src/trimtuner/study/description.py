"""What makes a study this study and no other, the same through every door: as plain JSON, and how two differ in words.

The problem and who searches it are part of it, in their order; not where trials run, nor what they may cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trimtuner.errors import InputError
from trimtuner.problem.cloud import Cloud, Cluster
from trimtuner.problem.expressions import Value
from trimtuner.problem.parameters import Choice, Int, Parameter
from trimtuner.problem.problem import Constraint, Problem
from trimtuner.problem.space import Space
from trimtuner.records.differences import Comparison, differences
from trimtuner.study.growing import lacking_defaults, without_additions
from trimtuner.tuning.methods import split_text
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import METHODS

OWN_RECIPE = "a recipe"  # the name of a method that has none
_VERSION = 1
_OF_METHOD = ("options", "recipe")


@dataclass(frozen=True)
class Description:
    """A study's identity: two with the same are the same study, and go on from each other's record."""

    problem: Problem
    method: str | Recipe  # ``nephele`` or ``nephele:horizon=1``; a recipe of one's own
    seed: int
    options: Mapping[str, Value] = field(default_factory=dict)  # of the method, besides those in its text
    learn_from: tuple[str, ...] = ()  # earlier studies, as the user named them

    @property
    def method_name(self) -> str:
        """The method as it is shown."""
        return self.method if isinstance(self.method, str) else OWN_RECIPE

    @cached_property
    def plain(self) -> dict[str, object]:
        """The description as JSON that does not hang on the door, the version's defaults or the user's units."""
        space = self.problem.space
        return {
            "version": _VERSION,
            "goal": self._goal(),
            "constraints": [_constraint(constraint) for constraint in self.problem.constraints],
            "fractions": [*space.fractions],
            "snapshots": space.snapshots,
            **_choices(space),
            **self._who_searches(),
            "seed": self.seed,
            # Only where there is any, so that studies of before are still the same.
            **({"learn_from": [*self.learn_from]} if self.learn_from else {}),
        }

    @property
    def digest(self) -> str:
        """A short name of the whole."""
        return hashlib.sha256(json.dumps(self.plain, sort_keys=True).encode()).hexdigest()[:16]

    def differences_from(self, stored: Mapping[str, object]) -> tuple[str, ...]:
        """How it differs from what a record says, a line each; none where it is the same study, or more of it."""
        return self.compared_with(stored).differences

    def compared_with(self, stored: Mapping[str, object]) -> Comparison:
        """How it differs from what a record says; where it only adds to the space of the same study, what it adds."""
        if _is_of_before(stored):
            return Comparison(self._differences(_in_terms_of_before(stored), self._as_before()))
        found = self._differences(stored, without_additions(stored, self.plain))
        lacking = tuple(lacking_defaults(stored, self.problem.space))
        if found or lacking:
            return Comparison(lacking if not found else (*self._differences(stored, self.plain), *lacking))
        return Comparison((), self._differences(stored, self.plain), self.problem.space.completed)

    def _differences(self, stored: Mapping[str, object], described: Mapping[str, object]) -> tuple[str, ...]:
        old, new = dict(stored), dict(described)
        if old.get("method") != new["method"]:  # whose options and parts are then others, too
            old, new = ({key: told for key, told in one.items() if key not in _OF_METHOD} for one in (old, new))
        elif isinstance(options := old.get("options"), Mapping):
            # A method that has gained an option since does by default what it did before.
            old["options"] = {**_options(METHODS[str(new["method"])].options), **options}
        return tuple(differences(old, new))

    def _goal(self) -> dict[str, object]:
        goal = self.problem.goal
        words = {"maximize": goal.maximized, "minimize": goal.minimized}
        return {word: metrics for word, metrics in words.items() if metrics is not None}

    def _who_searches(self) -> dict[str, object]:
        if isinstance(self.method, Recipe):
            # When it stops is no more part of it than what it may spend.
            parts = {name: part for name, part in self.method.described().items() if name != "stop"}
            return {"method": OWN_RECIPE, "recipe": parts}
        return _method(self.method, self.options)

    def _as_before(self) -> dict[str, object]:
        """In the words of a record that Python code began with version 0.1, which kept only a digest of the space."""
        space = self.problem.space
        return {
            "goal": str(self.problem.goal),
            "constraints": [_constraint(constraint) for constraint in self.problem.constraints],
            "parameters": [*space.names],
            "space": _digest_of_pool(space),
            "fractions": [*space.fractions],
            "snapshots": space.snapshots,
            # Of a recipe it kept nothing: whatever recipe opens the record is taken for it, and kept from then on.
            **({"method": OWN_RECIPE} if isinstance(self.method, Recipe) else _method(self.method, self.options)),
            "seed": self.seed,
            **({"learn_from": [*self.learn_from]} if self.learn_from else {}),
        }


def _is_of_before(stored: Mapping[str, object]) -> bool:
    return "version" not in stored and isinstance(stored.get("space"), str)


def _in_terms_of_before(stored: Mapping[str, object]) -> dict[str, object]:
    """What a record of before says, its texts read: limits by their meaning, the method with its options."""
    method, limits = stored.get("method"), stored.get("constraints")
    read: dict[str, object] = dict(stored)
    try:
        if isinstance(limits, list):
            read["constraints"] = [_constraint(Constraint.parse(text)) for text in limits]
        if isinstance(method, str) and method != OWN_RECIPE:
            read |= _method(method, {})
    except InputError:  # no text of ours: it differs as it stands
        return dict(stored)
    return read


def _method(text: str, options: Mapping[str, Value]) -> dict[str, object]:
    """With the defaults of this version: a search goes on as it began."""
    name, written = split_text(text)
    return {"method": name, "options": _options(METHODS[name].chosen({**written, **options}))}


def _options(chosen: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in sorted(chosen.items()) if isinstance(value, str | bool | int | float)}


def _constraint(constraint: Constraint) -> dict[str, object]:
    """By its meaning, so that 20min and 1200s are the same."""
    return {"name": constraint.metric, "at_most" if constraint.is_upper else "at_least": constraint.limit}


def _choices(space: Space) -> dict[str, object]:
    if space.listed is not None:
        scales: dict[str, object] = {name: choice.scale for name, choice in space.scaled_by_hand.items()}
        configs: list[object] = [
            {
                "values": {name: _json(value) for name, value in config.items()},
                "price_per_hour": space.price_per_hour(config),
            }
            for config in space.listed
        ]
        return {"configs": configs, **({"scales": scales} if scales else {})}
    return {
        "parameters": [_parameter(name, parameter) for name, parameter in space.parameters.items()],
        "cloud": None if space.cloud is None else _cloud(space.cloud),
    }


def _json(value: Value) -> object:
    """As JSON gives it back, which knows lists only."""
    return [*value] if isinstance(value, tuple) else value


def _parameter(name: str, parameter: Parameter) -> dict[str, object]:
    when = None if parameter.when is None else parameter.when.text
    if isinstance(parameter, Choice):
        return {"name": name, "values": [*map(_json, parameter.values)], "scale": parameter.scale, "when": when}
    kind = "int" if isinstance(parameter, Int) else "float"
    bounds: dict[str, object] = {"min": parameter.min, "max": parameter.max}
    return {"name": name, "type": kind, **bounds, "scale": parameter.scale, "when": when}


def _cloud(cloud: Cloud) -> dict[str, object]:
    """What the machines are, and every choice of them with its price, helpers included: rule and markets are in it."""
    machines: list[object] = [
        {"name": name, "vcpus": vm.vcpus, "memory_gib": vm.memory_gib, "gpus": vm.gpus}
        for name, vm in cloud.vms.items()
    ]
    prices: dict[str, object] = {_cluster_name(cluster): cloud.price_per_hour(cluster) for cluster in cloud.clusters}
    interruptions: dict[str, object] = {
        _cluster_name(cluster): cloud.interruptions_per_hour(cluster)
        for cluster in cloud.clusters
        if cloud.interruptions_per_hour(cluster)
    }
    # Only where there are any, so that studies of before are still the same.
    told: dict[str, object] = {"interruptions_per_hour": interruptions} if interruptions else {}
    return {"vm_type": machines, "helpers": [*cloud.helpers], "price_per_hour": prices, **told}


def _cluster_name(cluster: Cluster) -> str:
    return f"{cluster.vm_count} x {cluster.vm_type} {cluster.market}"


def _digest_of_pool(space: Space) -> str:
    """Of every configuration, its price and its risk; of a sample where they cannot be listed."""
    pool = space.pool()
    prices = None if pool.prices_per_hour is None else pool.prices_per_hour.tolist()
    configurations = [pool.configuration(position) for position in range(len(pool))]
    risk: Sequence[object] = [] if pool.interruptions_per_hour is None else [pool.interruptions_per_hour.tolist()]
    return hashlib.sha256(json.dumps([configurations, prices, *risk]).encode()).hexdigest()[:16]
