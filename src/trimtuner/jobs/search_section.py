"""Who decides what to test, and when enough is known; names and options are those of the methods."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args, get_origin, get_type_hints

from trimtuner.decisions.stopping import LittleImprovement, NotWorthItsPrice, Stop
from trimtuner.errors import InputError, nearest
from trimtuner.jobs.tree import plain_scalar
from trimtuner.keys import kinds
from trimtuner.keys.declared import key, keys_of, optional, read_keys, schema_of, section
from trimtuner.keys.fields import Field, shortened
from trimtuner.keys.kinds import Kind, Schema
from trimtuner.problem.expressions import Value
from trimtuner.tuning.methods import Method, split_text
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import METHODS

_DEFAULT = "trimtuner"
_MOST_EARLIER = 20
_EARLIER = "a list of job files of earlier studies, such as [../last-month/job.yaml]"

# What each option means, and the bounds that its method demands.
_OPTIONS: Mapping[str, tuple[str, Schema]] = {
    "horizon": ("How many trials a choice looks ahead; 0 judges every trial by itself.", {"minimum": 0}),
    "filter": (
        "Which candidates are scored: `cea` those with the highest constrained accuracy, `random` some at random, "
        "`direct` and `cmaes` those that such a search visits, `none` all.",
        {},
    ),
    "beta": ("The share of the candidates that the filter keeps.", {"exclusiveMinimum": 0, "maximum": 1}),
    "initial": ("How many configurations are tested before the model decides.", {"minimum": 1}),
    "ignore_constraints": ("Say that you know: this method does not look at the job's constraints.", {}),
    "trees": ("How many trees the model has.", {"minimum": 2}),
    "initial_budget": (
        "USD for the first trials. Without it a tenth of the budget, or 3 % of the space where there is none.",
        {"exclusiveMinimum": 0},
    ),
    "model": ("What predicts: `gp` a Gaussian process, `trees` bagged trees.", {}),
    "stop_below": (
        "The search ends when no trial promises to improve the best measured by this share; 0 never ends it.",
        {"minimum": 0},
    ),
    "literal": ("The method as its paper prints it, without what we changed.", {}),
    "overhead": ("Seconds that deciding on a trial takes, counted as if the trial took them.", {"minimum": 0}),
    "scale": ("How the models read the share of the data: on a `log` scale, or a `linear` one.", {}),
    "dropping": ("Whether what does badly on little data is dropped early, as Hyperband does.", {}),
    "eta": ("Of so many configurations, one goes on to more data.", {"exclusiveMinimum": 1}),
}


@dataclass(frozen=True)
class StopKeys:
    """When to stop before the budget is used; the first rule that holds ends the search."""

    little_improvement: Stop | None = optional(
        kinds.made(kinds.number("a share of the best measured", above=0, most=1), LittleImprovement),
        "Stop when no trial promises to improve the best measured by this share of it.",
        examples=[0.05],
    )
    not_worth_its_price: Stop | None = optional(
        kinds.word_or(
            True,
            NotWorthItsPrice(),
            kinds.made(
                kinds.number("what one unit of the goal is worth in USD, or true for a cost", above=0), NotWorthItsPrice
            ),
        ),
        "Stop when even knowing everything would be worth less than the next trial costs: what one unit of the goal is "
        "worth in USD, or `true` where the goal is a cost. 1000: a hundredth more of accuracy is worth 10 USD.",
        examples=[True, 1000],
    )

    def joined(self) -> Stop | None:
        """One rule of all that are given."""
        first, second = self.little_improvement, self.not_worth_its_price
        return second if first is None else first if second is None else first | second


_STOP = kinds.made(section(StopKeys, "a mapping such as {little_improvement: 0.05}"), StopKeys.joined)


def _check_method(found: str) -> None:
    name, _ = split_text(found)
    if name not in METHODS:
        raise InputError(f"method {shortened(name)} is none of {', '.join(METHODS)}{nearest(name, METHODS)}")


def _with_options(method: Method) -> str:
    """A pattern for the method's name, and options after a colon."""
    one = rf"\s*{kinds.either(method.options)}\s*=[^,]*[^,\s][^,]*"
    options = f"(?:{one}(?:,{one})*)?" if method.options else ""
    return rf"{method.name}\s*(?::{options})?"


_METHOD_PATTERN = rf"^\s*{kinds.either(map(_with_options, METHODS.values()))}\s*$"


@dataclass(frozen=True)
class Search:
    """Who decides what to test."""

    method: str = key(
        kinds.text(
            "the name of a method, such as trimtuner",
            {"anyOf": [kinds.one_of(METHODS).schema, {"type": "string", "pattern": _METHOD_PATTERN}]},
            _check_method,
        ),
        "A method by its name, as `trimtuner methods` lists them; options may follow after a colon.",
        default=_DEFAULT,
        examples=["trimtuner", "nephele:horizon=1"],
    )
    options: Mapping[str, Value] = key(
        kinds.mapping_of(kinds.SCALAR, "a mapping of options of the method, such as {horizon: 1}", str, {}),
        "Options of the method, by name; each is given here or in the text of the method, not twice.",
        default={},
        examples=[{"horizon": 1}],
    )
    seed: int = key(kinds.whole_number("a seed", 0, 2**32 - 1), "What chance begins with.", default=0)
    stop: Stop | None = optional(  # besides the budget
        _STOP,
        "When to stop before the budget is used; the first rule that holds ends the search.",
        examples=[{"little_improvement": 0.05}],
    )
    learn_from: tuple[str, ...] = key(  # as written; what is there is read when the study is made, and not again
        kinds.list_of(kinds.text(_EARLIER), _EARLIER, most=_MOST_EARLIER),
        "Earlier studies to learn from: paths of their job files, from the folder of this one. How much they count is "
        "decided by how well they predict what is measured now. Only methods with a Gaussian process can.",
        default=(),
        examples=[["last-month/job.yaml"]],
    )

    @property
    def recipe(self) -> Recipe:
        """The method's recipe, with the stop rules of the job beside its own."""
        recipe = METHODS[self.method].recipe(self.options)
        return recipe if self.stop is None else recipe.stopping_also(self.stop)


def _search(field: Field) -> Search:
    section = field.section(tuple(keys_of(Search)), "a mapping such as {method: trimtuner, seed: 0}")
    found = read_keys(section, Search)
    name, texts = split_text(found.method)
    in_text = {option: value for option, one in texts.items() if (value := plain_scalar(one)) is not None}
    for option in found.options.keys() & in_text.keys():
        line = section.field("options").line_of(option)
        section.faults.add(line, f"option {option} is also in the text of the method; give it once")
    search = dataclasses.replace(found, method=name, options={**in_text, **found.options})
    with section.faults.collecting(section.line_of("options" if "options" in section else "method")):
        METHODS[name].recipe(search.options)
    if search.learn_from and not section.faults:
        with section.faults.collecting(section.line_of("learn_from")):
            search.recipe.require_learning()
    return search


# The schema of options


def options_of(method: Method) -> Schema:
    """The options of one method."""
    hints = get_type_hints(method.make)
    options = {name: _option(name, hints[name], default) for name, default in method.options.items()}
    return {"type": "object", "properties": {**options}, "additionalProperties": False}


def _option(name: str, hint: type, default: object) -> Schema:
    meaning, bounds = _OPTIONS[name]
    told: Schema = {"description": meaning, **bounds, **_kind(hint)}
    return {**told, "default": default} if isinstance(default, str | bool | int | float) else told


def _kind(hint: type) -> Schema:
    """What an option takes, by its type; an option that may be left out has no null."""
    if get_origin(hint) is types.UnionType:
        return _kind(get_args(hint)[0])
    if get_args(hint):
        return kinds.one_of(get_args(hint)).schema
    return {"type": {bool: "boolean", int: "integer", float: "number"}[hint]}


def _rule_of_options(method: Method) -> Schema:
    is_chosen: Schema = {"properties": {"method": {"pattern": rf"^\s*{method.name}\s*(?::|$)"}}}
    told: Schema = {} if method.name == _DEFAULT else kinds.has("method")
    return kinds.where({**is_chosen, **told}, {"properties": {"options": options_of(method)}})


SEARCH = Kind(_search, schema_of(keys_of(Search), {"allOf": [*map(_rule_of_options, METHODS.values())]}))
