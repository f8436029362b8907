"""What is wanted, within which limits, and what the search may use."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trimtuner.errors import InputError
from trimtuner.keys.declared import key, optional, section
from trimtuner.keys.fields import Field, shortened
from trimtuner.keys.kinds import Kind, Schema, like, list_of, made, one_or_more, text, whole_number
from trimtuner.keys.quantities import CONSTRAINT, DURATION, MONEY
from trimtuner.problem.problem import COST, TIME, Constraint, goal_of

_METRIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONGEST_CONSTRAINT = 200
_MOST_TRIALS = 1_000_000


def _metric(*others: str) -> Kind[str]:
    schema: Schema = {**like(_METRIC_NAME), "not": {"enum": ["fraction", *others]}}
    return text("the name of a metric, such as accuracy", schema, _check_metric)


def _check_metric(metric: str) -> None:
    if not _METRIC_NAME.fullmatch(metric):
        raise InputError(f"{shortened(metric)} is no name for a metric; use the letters a to z, digits and underscores")
    if metric == "fraction":
        raise InputError("'fraction' is the share of the data, not a metric")


@dataclass(frozen=True)
class GoalKeys:
    """The section ``goal``, as it is written."""

    maximize: str | None = optional(
        _metric(COST, TIME), "The metric to make as large as the constraints allow.", examples=["accuracy"]
    )
    minimize: tuple[str, ...] | None = optional(
        one_or_more(
            _metric(),
            "the name of a metric, or a list of two such as [loss, cost]",
            most=2,
            empty="it is empty; name a metric, or two such as [loss, cost]",
            again="{!r} against itself is no trade; [loss, cost] asks for the least loss at every cost",
        ),
        "The metric to make as small as the constraints allow. With `cost` or `time`, and a constraint on how good the "
        "result must be, the share of the data is chosen too. A list of two, such as `[loss, cost]`, asks for the "
        "least loss at every cost; `cost` or `time` is what is paid, of two others the last.",
        examples=[COST, TIME, "loss", ["loss", COST]],
    )


GOAL = made(
    section(
        GoalKeys,
        "a mapping such as {maximize: accuracy}",
        empty="give a goal, {maximize: accuracy} or {minimize: cost}; both for the best accuracy at every cost",
    ),
    lambda found: goal_of(found.maximize, found.minimize),
)


@dataclass(frozen=True)
class Budget:
    """What the search may use; None is no limit."""

    money: float | None = optional(
        MONEY,
        "A hard cap in USD: a trial starts only if its worst case, its time-out at the price of its machines, still "
        "fits. `USD`, `cents`, or a plain number of USD.",
        examples=["25 USD", "50 cents", 2.5],
    )
    seconds: float | None = key(
        DURATION,
        "How long trials may take, one after the other and over all runs of the study: when ended ones took so long in "
        "all, no more are started. With its unit. Where machines have the price 0, it is a hard cap on their hours: a "
        "trial starts only if its time-out on each of its machines still fits.",
        name="time",
        default=None,
        examples=["12h", "90min"],
    )
    trials: int | None = optional(
        whole_number("a number of trials", 1, _MOST_TRIALS), "The most trials, failed ones included.", examples=[200]
    )


BUDGET = section(
    Budget,
    "a mapping such as {money: 25 USD, time: 12h, trials: 200}",
    empty="it is empty; leave it out, or write {money: 25 USD}",
)


def _constraint(field: Field) -> Constraint:
    found = field.text("a text such as 'cost <= 0.10 USD'")
    if len(found) > _LONGEST_CONSTRAINT:
        raise field.fault(f"more than {_LONGEST_CONSTRAINT} characters")
    return Constraint.parse(found)


_CONSTRAINTS = list_of(
    Kind(_constraint, {**CONSTRAINT, "maxLength": _LONGEST_CONSTRAINT}),
    "a list of texts such as ['cost <= 0.10 USD', 'time <= 20min']",
)


def _constraints(field: Field) -> tuple[Constraint, ...]:
    if isinstance(field.value, str):
        raise field.fault(f"it is a list of texts; write [{shortened(field.value)}]")
    return _CONSTRAINTS.read(field)


CONSTRAINTS = Kind(_constraints, _CONSTRAINTS.schema)
