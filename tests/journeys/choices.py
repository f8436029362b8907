"""What a study may be made of, and rows of choices in which every two that can meet do meet: a covering array."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import TypeAlias

import trimtuner as tt
from trimtuner.errors import InputError
from trimtuner.problem.problem import Problem
from trimtuner.tuning.recipes import METHODS, recipe_named

Choice: TypeAlias = str | int
Journey: TypeAlias = Mapping[str, Choice]
Pair: TypeAlias = tuple[tuple[str, Choice], tuple[str, Choice]]

CHOICES: dict[str, tuple[Choice, ...]] = {
    "method": tuple(METHODS),
    "parameters": ("list", "names", "int", "float", "log", "conditional", "constant", "yes or no", "configs", "lists"),
    "machines": ("none", "one", "own", "catalog", "counts", "markets", "helpers"),
    "limits": ("none", "cost", "time", "own metric", "several", "impossible"),
    "interruption": ("none", "interrupt", "twice", "kill", "edited"),
    "goal": ("best", "least cost", "loss", "trade-off", "loss trade-off"),
    "shares": ("one", "two", "five", "snapshots"),
    "failures": ("none", "some", "kinds", "all"),
    "size": ("few", "hundreds", "millions"),
    "parallel": (1, 2, 4),
    "noise": ("none", "some"),
    "engine": ("local", "replay"),
    "store": ("sqlite", "postgres"),
    "running": ("once", "repeats", "all nodes", "checkpoint"),
    "between": ("nothing", "enqueued", "grown"),
    "options": ("default", "other"),
}
_OTHER_OPTIONS = {
    "trimtuner-gp": "literal=true",
    "trimtuner-dt": "literal=true",
    "fabulinus": "scale=linear",
    "fabolas": "scale=linear",
    "nephele": "dropping=true",
    "lynceus": "trees=7",
    "cherrypick": "model=trees",
    "eic": "initial=3",
    "hyperband": "eta=2",
}
_ORDER = {name: place for place, name in enumerate(CHOICES)}
_BEST_OF = 4  # rows, of which the one that meets most pairs is taken


def is_allowed(chosen: Journey, name: str | None = None) -> bool:
    """Whether a person could mean this, as far as it is chosen; ``name``: only by the rules that concern it."""
    rules = _RULES if name is None else _RULES_ABOUT[name]
    return all(rule(*(chosen[one] for one in names)) for names, rule in rules if all(one in chosen for one in names))


def covering(seed: int) -> Iterator[Journey]:
    """Rows in which every pair of choices that can meet does so; the first ones meet most."""
    chance = random.Random(seed)  # noqa: S311
    every = (pair for names in combinations(CHOICES, 2) for pair in _pairs_of(*names))
    left = dict.fromkeys(pair for pair in every if is_allowed(dict(pair)))  # in an order that no hash decides
    seen: set[tuple[str, Choice]] = set()
    while left:
        wanted = max(left, key=lambda pair: (sum(choice not in seen for choice in pair), chance.random()))
        found = [_completed(chance, dict(wanted), left) for _ in range(_BEST_OF)]
        left.pop(wanted)  # met below, or a third choice always stands between the two
        rows = [row for row in found if row is not None]
        if rows:
            row = max(rows, key=lambda one: sum(pair in left for pair in pairs_in(one)))
            for pair in pairs_in(row):
                left.pop(pair, None)
            seen |= set(row.items())
            yield {name: row[name] for name in CHOICES}


def _completed(chance: random.Random, row: Journey, left: Mapping[Pair, None]) -> Journey | None:
    """The rest chosen one by one, each for the pairs that it meets; nothing where it cannot be completed."""
    name = next((one for one in _MOST_BOUND_FIRST if one not in row), None)
    if name is None:
        return row
    allowed = [value for value in CHOICES[name] if is_allowed({**row, name: value}, name)]
    chance.shuffle(allowed)
    allowed.sort(key=lambda value: -sum(_pair(name, value, *one) in left for one in row.items()))
    rest = (_completed(chance, {**row, name: value}, left) for value in allowed)
    return next((found for found in rest if found is not None), None)


def pairs_in(row: Journey) -> set[Pair]:
    """What meets in a row."""
    return {_pair(*one, *other) for one, other in combinations(row.items(), 2)}


def _pairs_of(name: str, other: str) -> list[Pair]:
    return [_pair(name, value, other, another) for value in CHOICES[name] for another in CHOICES[other]]


def _pair(name: str, value: Choice, other: str, another: Choice) -> Pair:
    pair = ((name, value), (other, another))
    return pair if _ORDER[name] < _ORDER[other] else (pair[1], pair[0])


def has_prices(machines: Choice) -> bool:
    """Whether every trial has a price."""
    return machines != "none"


def constraints_of(goal: Choice, limits: Choice) -> list[str]:
    """The limits in the words of a job file."""
    found = {
        "none": [],
        "cost": ["cost <= 0.5 USD"],
        "time": ["time <= 15s"],
        "own metric": ["size_mb <= 80"],
        "several": ["cost <= 0.5 USD", "time <= 15s", "size_mb <= 80"],
        "impossible": ["size_mb <= 0.001"],
    }[str(limits)]
    return [*(["accuracy >= 0.3"] if goal == "least cost" else []), *found]


def goal_of(goal: Choice) -> dict[str, str | list[str]]:
    """The goal in the words of a job file."""
    return {
        "best": {"maximize": "accuracy"},
        "least cost": {"minimize": "cost"},
        "loss": {"minimize": "loss"},
        "trade-off": {"maximize": "accuracy", "minimize": "cost"},
        "loss trade-off": {"minimize": ["loss", "cost"]},
    }[str(goal)]


def fractions_of(shares: Choice) -> list[float]:
    """The shares of the data."""
    return {"one": [1.0], "two": [0.25, 1.0]}.get(str(shares), [0.0625, 0.125, 0.25, 0.5, 1.0])


def method_of(method: Choice, goal: Choice, limits: Choice, options: Choice) -> str:
    """The method as a job file names it: those that know no limits are told to leave them aside."""
    ignores = "ignore_constraints" in METHODS[str(method)].options and constraints_of(goal, limits)
    told = [_OTHER_OPTIONS[str(method)]] if options == "other" else []
    told += ["ignore_constraints=true"] if ignores else []
    return f"{method}:{','.join(told)}" if told else str(method)


@cache
def _serves(method: Choice, goal: Choice, limits: Choice, shares: Choice, machines: Choice) -> bool:
    """Whether the method takes the problem, by its own word."""
    priced = has_prices(machines)
    if not priced and (goal in ("least cost", "trade-off", "loss trade-off") or limits in ("cost", "several")):
        return False
    space = tt.Space.from_configs(
        [{"x": 1}, {"x": 2}], price_per_hour=[1.0, 2.0] if priced else None, fractions=fractions_of(shares)
    )
    budget = 5.0 if priced else None
    stated = goal_of(goal)
    try:
        problem = Problem.of(
            space, stated.get("maximize"), stated.get("minimize"), constraints_of(goal, limits), budget, 20
        )
        recipe_named(method_of(method, goal, limits, "default")).check(problem)
    except InputError:
        return False
    return True


_RULES: list[tuple[tuple[str, ...], Callable[..., bool]]] = [
    (("goal", "machines"), lambda goal, machines: has_prices(machines) or goal in ("best", "loss")),
    (("limits", "machines"), lambda limits, machines: has_prices(machines) or limits not in ("cost", "several")),
    (("method", "options"), lambda method, options: options == "default" or method in _OTHER_OPTIONS),
    (("method", "goal", "limits", "shares", "machines"), _serves),
    # A list of configurations has its prices with it, and is as long as somebody cared to write.
    (("parameters", "machines"), lambda parameters, machines: parameters != "configs" or machines in ("none", "one")),
    (("parameters", "size"), lambda parameters, size: parameters != "configs" or size != "millions"),
    # The table that a replay plays: numbers in lists and two machines, one metric, nothing fails or varies.
    (("engine", "parameters"), lambda engine, parameters: engine != "replay" or parameters == "list"),
    (("engine", "machines"), lambda engine, machines: engine != "replay" or machines == "own"),
    (("engine", "size"), lambda engine, size: engine != "replay" or size == "hundreds"),
    (("engine", "goal"), lambda engine, goal: engine != "replay" or "loss" not in goal),
    (("engine", "limits"), lambda engine, limits: engine != "replay" or limits in ("none", "cost", "time")),
    (("engine", "shares"), lambda engine, shares: engine != "replay" or shares != "snapshots"),
    (("engine", "failures"), lambda engine, failures: engine != "replay" or failures == "none"),
    (("engine", "noise"), lambda engine, noise: engine != "replay" or noise == "none"),
    (("engine", "running"), lambda engine, running: engine != "replay" or running == "once"),
    (("engine", "between"), lambda engine, between: engine != "replay" or between != "grown"),
    # What a list of configurations holds, and the one machine that it means, are written out.
    (("parameters", "between"), lambda parameters, between: parameters != "configs" or between != "grown"),
    (("parameters", "running"), lambda parameters, running: parameters != "configs" or running != "all nodes"),
    (("machines", "running"), lambda machines, running: machines != "none" or running != "all nodes"),
]
_RULES_ABOUT = {name: [rule for rule in _RULES if name in rule[0]] for name in CHOICES}
_MOST_BOUND_FIRST = sorted(
    CHOICES, key=lambda name: (-len(_RULES_ABOUT[name]), _ORDER[name])
)  # so that few steps are in vain
