"""Whole searches of a small job whose best feasible configuration is known by formula."""

import math

import pytest

from trimtuner.errors import SearchOver
from trimtuner.problem.history import History
from trimtuner.problem.problem import Problem
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import Space
from trimtuner.tuning.recipes import METHODS
from trimtuner.tuning.tuner import ask, believe

RATES = [10.0 ** (-5.0 + 0.4 * step) for step in range(10)]
WORKERS = [1, 2, 4, 8, 16, 32]
CONFIGURATIONS = [{"rate": rate, "workers": workers} for rate in RATES for workers in WORKERS]
FRACTIONS = (0.05, 0.25, 1.0)
LIMIT = 0.11  # USD, at full data
TRIALS = 30


def price_per_hour(configuration):
    return 0.06 * configuration["workers"]


def seconds(configuration, fraction):
    """A fixed part and one that grows with the data; twice the workers are not twice as fast."""
    return 3600.0 * (0.05 + 0.95 * fraction) / configuration["workers"] ** 0.6


def cost(configuration, fraction):
    return seconds(configuration, fraction) * price_per_hour(configuration) / 3600.0


def accuracy(configuration, fraction):
    """Best at a rate near 10^-2.6 and with many workers; more data helps, most of all where it is bad."""
    distance = math.log10(configuration["rate"]) + 2.6
    full = 0.93 - 0.09 * distance**2 + 0.006 * math.log2(configuration["workers"])
    return max(full - 0.12 * (1.0 - fraction) ** 2 - 0.05 * (1.0 - fraction) * distance**2, 0.05)


def job(*constraints, snapshots=False, maximize="accuracy", minimize=None):
    prices = [price_per_hour(configuration) for configuration in CONFIGURATIONS]
    space = Space.from_configs(CONFIGURATIONS, price_per_hour=prices, fractions=FRACTIONS, snapshots=snapshots)
    return Problem.of(space, maximize, minimize, constraints, None)


def measured(configuration, fraction):
    return {"accuracy": accuracy(configuration, fraction), "time": seconds(configuration, fraction)}


def search(problem, recipe, seed, trials=TRIALS, fails=lambda _: False):
    """Ask and tell; the recommended (configuration, fraction), and the history."""
    history = History()
    for _ in range(trials):
        try:
            one = ask(problem, recipe, history, seed)
        except SearchOver:
            break
        if fails(one):
            outcome = outcome_of_failure(problem, one, "oom", {"time": 1.0})
        else:
            snapshots = {fraction: measured(one.config, fraction) for fraction in one.snapshots}
            outcome = outcome_of_success(problem, one, measured(one.config, one.fraction), snapshots)
        history = history.with_asked(one).with_told(outcome)
    belief = believe(problem, recipe, history, seed)
    target = belief.targets.at([recipe.incumbent.choose(belief)])
    return belief.pool.configuration(int(target.positions[0])), float(target.fractions[0]), history


def best_feasible(is_feasible=lambda configuration: cost(configuration, 1.0) <= LIMIT):
    return max(filter(is_feasible, CONFIGURATIONS), key=lambda configuration: accuracy(configuration, 1.0))


def test_the_job_has_one_best_configuration_and_the_limit_matters():
    assert best_feasible()["workers"] == 4
    assert best_feasible(lambda _: True)["workers"] == 32


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_finds_the_best_feasible_configuration_within_thirty_trials(method, seed):
    found, fraction, history = search(job(f"cost <= {LIMIT}"), METHODS[method], seed)
    assert fraction == 1.0
    assert found == best_feasible()
    assert len(history.outcomes) == TRIALS
