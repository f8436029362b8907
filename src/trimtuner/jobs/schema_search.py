"""The schema of who decides what to test, and when enough is known; names and options are those of the methods."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import get_args, get_origin, get_type_hints

from trimtuner.jobs.job import Search
from trimtuner.jobs.schema_kinds import (
    TEXT,
    VALUE,
    Schema,
    either,
    has,
    key,
    list_of,
    mapping,
    number_above,
    one_of,
    where,
    whole_number,
)
from trimtuner.jobs.search_section import MOST_EARLIER, STOP_KEYS
from trimtuner.tuning.methods import Method
from trimtuner.tuning.recipes import METHODS

_MOST_SEED = 2**32 - 1

# What each option means, and the bounds that its method demands.
_OPTIONS: Mapping[str, Schema] = {
    "horizon": key("How many trials a choice looks ahead; 0 judges every trial by itself.", {"minimum": 0}),
    "filter": key(
        "Which candidates are scored: `cea` those with the highest constrained accuracy, `random` some at random, "
        "`direct` and `cmaes` those that such a search visits, `none` all.",
        {},
    ),
    "beta": key("The share of the candidates that the filter keeps.", {"exclusiveMinimum": 0, "maximum": 1}),
    "initial": key("How many configurations are tested before the model decides.", {"minimum": 1}),
    "ignore_constraints": key("Say that you know: this method does not look at the job's constraints.", {}),
    "trees": key("How many trees the model has.", {"minimum": 2}),
    "initial_budget": key(
        "USD for the first trials. Without it a tenth of the budget, or 3 % of the space where there is none.",
        {"exclusiveMinimum": 0},
    ),
    "model": key("What predicts: `gp` a Gaussian process, `trees` bagged trees.", {}),
    "stop_below": key(
        "The search ends when no trial promises to improve the best measured by this share; 0 never ends it.",
        {"minimum": 0},
    ),
    "eta": key("Of so many configurations, one goes on to more data.", {"exclusiveMinimum": 1}),
}

_STOP: Mapping[str, Schema] = {
    "little_improvement": key(
        "Stop when no trial promises to improve the best measured by this share of it.",
        number_above(0, 1),
        examples=[0.05],
    ),
    "not_worth_its_price": key(
        "Stop when even knowing everything would be worth less than the next trial costs: what one unit of the goal is "
        "worth in USD, or `true` where the goal is a cost. 1000: a hundredth more of accuracy is worth 10 USD.",
        {"anyOf": [{"const": True}, number_above(0)]},
        examples=[True, 1000],
    ),
}


def options_of(method: Method) -> Schema:
    """The options of one method."""
    hints = get_type_hints(method.make)
    return mapping({name: _option(name, hints[name], default) for name, default in method.options.items()})


def _option(name: str, hint: type, default: object) -> Schema:
    told: Schema = {**_OPTIONS[name], **_kind(hint)}
    return {**told, "default": default} if isinstance(default, str | bool | int | float) else told


def _kind(hint: type) -> Schema:
    """What an option takes, by its type; an option that may be left out has no null."""
    if get_origin(hint) is types.UnionType:
        return _kind(get_args(hint)[0])
    if get_args(hint):
        return one_of(get_args(hint))
    return {"type": {bool: "boolean", int: "integer", float: "number"}[hint]}


def _with_options(method: Method) -> str:
    """A pattern for the method's name, and options after a colon."""
    one = rf"\s*{either(method.options)}\s*=[^,]*[^,\s][^,]*"
    options = f"(?:{one}(?:,{one})*)?" if method.options else ""
    return rf"{method.name}\s*(?::{options})?"


def _rule_of_options(method: Method) -> Schema:
    is_chosen: Schema = {"properties": {"method": {"pattern": rf"^\s*{method.name}\s*(?::|$)"}}}
    told: Schema = {} if method.name == Search.method else has("method")
    return where({**is_chosen, **told}, {"properties": {"options": options_of(method)}})


SEARCH = key(
    "Who decides what to test. The same seed makes the same choices.",
    {
        **mapping(
            {
                "method": key(
                    "A method by its name, as `trimtuner methods` lists them; options may follow after a colon.",
                    {
                        "anyOf": [
                            one_of(METHODS),
                            {"type": "string", "pattern": rf"^\s*{either(map(_with_options, METHODS.values()))}\s*$"},
                        ]
                    },
                    default=Search.method,
                    examples=["trimtuner", "nephele:horizon=1"],
                ),
                "options": key(
                    "Options of the method, by name; each is given here or in the text of the method, not twice.",
                    {"type": "object", "additionalProperties": VALUE},
                    default={},
                    examples=[{"horizon": 1}],
                ),
                "seed": key("What chance begins with.", whole_number(0, _MOST_SEED), default=Search.seed),
                "stop": key(
                    "When to stop before the budget is used; the first rule that holds ends the search.",
                    mapping({name: _STOP[name] for name in STOP_KEYS}),
                    default={},
                    examples=[{"little_improvement": 0.05}],
                ),
                "learn_from": key(
                    "Earlier studies to learn from: paths of their job files, from the folder of this one. How much "
                    "they count is decided by how well they predict what is measured now. Only methods with a Gaussian "
                    "process can.",
                    list_of(TEXT, most=MOST_EARLIER),
                    default=[],
                    examples=[["last-month/job.yaml"]],
                ),
            }
        ),
        "allOf": [_rule_of_options(method) for method in METHODS.values()],
    },
    examples=[{"method": "trimtuner", "seed": 0}],
)
