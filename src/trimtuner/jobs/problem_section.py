"""What is wanted, within which limits, and what the search may use."""

from __future__ import annotations

import re

from trimtuner.jobs.fields import SECTIONS, Field, shortened
from trimtuner.jobs.job import Budget
from trimtuner.jobs.quantities import duration, money
from trimtuner.jobs.tree import ScalarNode
from trimtuner.problem.problem import Constraint, Direction, Goal, goal_of

METRIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize")
LONGEST_CONSTRAINT = 200
MOST_TRIALS = 1_000_000


def read_goal(field: Field) -> Goal:
    """The section ``goal``."""
    section = field.section(SECTIONS["goal"], "a mapping such as {maximize: accuracy}")
    named = {direction: _metric(section.field(direction)) for direction in _DIRECTIONS if direction in section}
    if not named:
        raise field.fault(
            "give a goal, {maximize: accuracy} or {minimize: cost}; both for the best accuracy at every cost"
        )
    with field.blamed():
        return goal_of(named.get("maximize"), named.get("minimize"))


def _metric(field: Field) -> str:
    metric = field.text("the name of a metric, such as accuracy")
    if not METRIC_NAME.fullmatch(metric):
        raise field.fault(
            f"{shortened(metric)} is no name for a metric; use the letters a to z, digits and underscores"
        )
    if metric == "fraction":
        raise field.fault("'fraction' is the share of the data, not a metric")
    return metric


def read_constraints(field: Field) -> tuple[Constraint, ...]:
    """The section ``constraints``: each with its unit."""
    if isinstance(field.node, ScalarNode) and isinstance(field.node.value, str):
        raise field.fault(f"it is a list of texts; write [{shortened(field.node.value)}]")
    found: list[Constraint] = []
    for item in field.items("a list of texts such as ['cost <= 0.10 USD', 'time <= 20min']"):
        with field.faults.collecting(item.line):
            text = item.text("a text such as 'cost <= 0.10 USD'")
            if len(text) > LONGEST_CONSTRAINT:
                raise item.fault(f"more than {LONGEST_CONSTRAINT} characters")
            found.append(Constraint.parse(text))
    return tuple(found)


def read_budget(field: Field) -> Budget:
    """The section ``budget``."""
    section = field.section(SECTIONS["budget"], "a mapping such as {money: 25 USD, time: 12h, trials: 200}")
    if not section.keys:
        raise field.fault("it is empty; leave it out, or write {money: 25 USD}")
    return Budget(
        section.read("money", money, None),
        section.read("time", duration, None),
        section.read("trials", lambda one: one.whole_number("a number of trials", 1, MOST_TRIALS), None),
    )
