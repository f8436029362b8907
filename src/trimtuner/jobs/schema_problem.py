"""The schema of what is wanted, within which limits, and what the search may use."""

from __future__ import annotations

from trimtuner.jobs.problem_section import LONGEST_CONSTRAINT, METRIC_NAME, MOST_TRIALS
from trimtuner.jobs.schema_kinds import (
    CONSTRAINT,
    DURATION,
    MONEY,
    key,
    list_of,
    mapping,
    name_other_than,
    whole_number,
)
from trimtuner.problem.problem import COST, TIME

GOAL = key(
    "What you want. `cost` (USD) and `time` (seconds) are measured by trimtuner; every other metric is what your "
    "command reports. Both keys together ask for the trade-off between the two: the best of one for every value of "
    "the other.",
    {
        **mapping(
            {
                "maximize": key(
                    "The metric to make as large as the constraints allow.",
                    name_other_than(METRIC_NAME, ("fraction", COST, TIME)),
                    examples=["accuracy"],
                ),
                "minimize": key(
                    "The metric to make as small as the constraints allow. With `cost` or `time`, and a constraint on "
                    "how good the result must be, the share of the data is chosen too.",
                    name_other_than(METRIC_NAME, ("fraction",)),
                    examples=[COST, TIME, "loss"],
                ),
            }
        ),
        "minProperties": 1,
    },
    examples=[{"maximize": "accuracy"}, {"minimize": COST}, {"maximize": "accuracy", "minimize": COST}],
)

CONSTRAINTS = key(
    "What must hold for the recommendation, each a text `metric <= limit` or `metric >= limit`. They are meant for a "
    "training on all of the data; with `minimize: cost` or `minimize: time`, on the recommended share of it. `cost` "
    "takes `USD` or `cents`, `time` takes `ms`, `s`, `min`, `h` or `d`, any other metric a plain number; shares such "
    "as accuracy are from 0 to 1.",
    list_of({**CONSTRAINT, "maxLength": LONGEST_CONSTRAINT}),
    default=[],
    examples=[["cost <= 0.10 USD", "time <= 20min", "latency_ms <= 40"]],
)

BUDGET = key(
    "What the whole search may use. Without it the search goes on until everything is tested or you stop it.",
    {
        **mapping(
            {
                "money": key(
                    "A hard cap in USD: a trial starts only if its worst case, its time-out at the price of its "
                    "machines, still fits. `USD`, `cents`, or a plain number of USD.",
                    MONEY,
                    examples=["25 USD", "50 cents", 2.5],
                ),
                "time": key(
                    "How long trials may take, one after the other and over all runs of the study: when ended ones "
                    "took so long in all, no more are started. With its unit.",
                    DURATION,
                    examples=["12h", "90min"],
                ),
                "trials": key("The most trials, failed ones included.", whole_number(1, MOST_TRIALS), examples=[200]),
            }
        ),
        "minProperties": 1,
    },
    examples=[{"money": "25 USD", "time": "12h", "trials": 200}],
)
