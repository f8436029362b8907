"""Every method on the measurements of the TrimTuner paper: after a few trials it beats a configuration at random."""

from functools import cache
from itertools import cycle
from statistics import median

import pytest

from trimtuner.engines.table import Table
from trimtuner.problem.problem import Constraint
from trimtuner.study.replay import replay
from trimtuner.tuning.recipes import METHODS

TABLES = ["cnn", "rnn"]
TRIALS = dict.fromkeys(METHODS, 12) | {
    "fabulinus": 8,  # slow: their processes are sampled
    "fabolas": 8,
    "nephele": 30,  # those on a budget first spend a tenth of it at random
    "lynceus": 30,
    "cherrypick": 30,
    "hyperband": 125,  # its first bracket, over five fractions, is 81 + 27 + 9 + 3 + 1 trials
    "bohb": 125,
}
BUDGET_USD = {"cnn": 20.0, "rnn": 4.0}
LEAST_COST = {"nephele", "lynceus", "cherrypick"}  # born for the cheapest run that is accurate enough
ACCURACY_LIMIT = 0.85


@cache
def table_named(name):
    return Table.find(name)


def goal_of(method, name):
    """What the method was made for, in the words of a replay."""
    if method in LEAST_COST:
        return {"minimize": "cost", "constraints": [f"accuracy >= {ACCURACY_LIMIT}"], "budget": BUDGET_USD[name]}
    if method in ("ei", "fabolas"):
        return {"constraints": []}
    return {}


def qualities_at_full_data(table, goal):
    """What each configuration on all of the data is worth as a recommendation, by Eq. 7 of the paper."""
    texts = goal.get("constraints", table.constraints)
    constraints = [Constraint.parse(text) for text in texts]
    metric, is_least = ("cost", True) if "minimize" in goal else ("accuracy", False)
    fractions = table.space.fractions if is_least else (1.0,)
    values = list(table.feasible_values(metric, constraints, fractions))
    best = min(values) if is_least else max(values)
    for (_, fraction), cell in table.cells.items():
        if fraction == 1.0:
            share = min(best / cell.metrics[metric], 1.0) if is_least else cell.metrics[metric] / best
            for constraint in constraints:
                value = cell.metrics[constraint.metric]
                excess = sorted((value, constraint.limit)) if not constraint.is_met(value) else (1.0, 1.0)
                share *= excess[0] / excess[1]
            yield share


def random_configuration(table, goal):
    return median(qualities_at_full_data(table, goal))


@pytest.mark.parametrize(("method", "name"), list(zip(METHODS, cycle(TABLES), strict=False)))
def test_after_a_few_trials_every_method_beats_a_configuration_at_random(method, name):
    """One search of each; of the default, which proves what it recommends early and may be unlucky, the middle one."""
    table, goal = table_named(name), goal_of(method, name)
    seeds = range(3) if method == "trimtuner" else range(1)
    last = [replay(table, method, seed, TRIALS[method], **goal).moments[-1] for seed in seeds]
    assert random_configuration(table, goal) < median(one.quality for one in last)
    assert all(one.quality <= 1.0 or not one.is_feasible for one in last)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_with_other_seeds_too_every_method_beats_a_configuration_at_random(method, name):
    """In the median of six searches, and on both tables."""
    table, goal = table_named(name), goal_of(method, name)
    qualities = [replay(table, method, seed, TRIALS[method], **goal).moments[-1].quality for seed in range(6)]
    assert random_configuration(table, goal) < median(qualities)
