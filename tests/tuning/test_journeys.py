"""Whole searches of a small job whose best feasible configuration is known by formula."""

import math

import pytest

from trimtuner.errors import SearchOver
from trimtuner.problem.history import History
from trimtuner.problem.problem import Problem
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import Space
from trimtuner.tuning.recipes import TRIMTUNER, TRIMTUNER_DT, recipe_named
from trimtuner.tuning.tuner import ask, believe

RATES = [10.0 ** (-5.0 + 0.4 * step) for step in range(10)]
WORKERS = [1, 2, 4, 8, 16, 32]
CONFIGURATIONS = [{"rate": rate, "workers": workers} for rate in RATES for workers in WORKERS]
FRACTIONS = (0.05, 0.25, 1.0)
LIMIT = 0.12  # USD, at full data
TRIALS = 30


def price_per_hour(configuration):
    return 0.06 * configuration["workers"]


def seconds(configuration, fraction):
    """A fixed part and one that grows with the data; twice the workers are not twice as fast."""
    return 3600.0 * (0.05 + 0.95 * fraction) / configuration["workers"] ** 0.6


def cost(configuration, fraction):
    return seconds(configuration, fraction) * price_per_hour(configuration) / 3600.0


def accuracy(configuration, fraction):
    """Best at a rate near 10^-2.6 and with many workers; more data helps, most of all where the rate is bad."""
    distance = math.log10(configuration["rate"]) + 2.6
    full = 0.87 - 0.09 * distance**2 + 0.015 * math.log2(configuration["workers"])
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


def is_affordable(configuration):
    return cost(configuration, 1.0) <= LIMIT


def best_of(is_feasible):
    return max(filter(is_feasible, CONFIGURATIONS), key=lambda configuration: accuracy(configuration, 1.0))


def test_the_job_has_a_best_configuration_that_the_limit_excludes_and_one_that_it_allows():
    assert best_of(is_affordable)["workers"] == 4
    assert best_of(lambda _: True)["workers"] == 32
    assert sum(map(is_affordable, CONFIGURATIONS)) == 30


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-gp"])
def test_with_processes_the_best_feasible_configuration_is_found_within_thirty_trials(method, seed):
    found, fraction, _ = search(job(f"cost <= {LIMIT}"), recipe_named(method), seed)
    assert fraction == 1.0
    assert found == best_of(is_affordable)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_with_trees_a_feasible_configuration_within_five_percent_of_the_best_is_found(seed):
    """Trees know no slopes, so that neighbours in accuracy are alike to them."""
    found, _, _ = search(job(f"cost <= {LIMIT}"), TRIMTUNER_DT, seed)
    assert is_affordable(found)
    assert accuracy(found, 1.0) >= 0.95 * accuracy(best_of(is_affordable), 1.0)


@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-gp"])
def test_where_runs_report_on_their_way_the_best_is_found_as_well(method):
    found, _, history = search(job(f"cost <= {LIMIT}", snapshots=True), recipe_named(method), 0, trials=20)
    assert found == best_of(is_affordable)
    assert len(history.measurements) > len(history.outcomes)


def test_without_limits_the_most_accurate_configuration_is_found():
    found, _, _ = search(job(), TRIMTUNER, 1)
    assert found == best_of(lambda _: True)


@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-gp", "trimtuner-dt"])
def test_where_half_of_all_configurations_fail_one_that_runs_is_recommended_and_few_trials_are_lost(method):
    """Four workers and more run out of memory. Chance alone would lose half of the trials."""
    recipe = recipe_named(method)
    found, _, history = search(job(f"cost <= {LIMIT}"), recipe, 0, fails=lambda one: one.config["workers"] >= 4)
    best = best_of(lambda configuration: configuration["workers"] < 4)
    assert found["workers"] < 4
    assert accuracy(found, 1.0) >= 0.95 * accuracy(best, 1.0)
    assert len(history.failures) < TRIALS / 3


def test_the_cheapest_way_to_an_accuracy_is_found_at_whatever_fraction_it_lies():
    """Every configuration at every fraction is a target; the cheapest that is good enough is known by enumeration."""
    places = [(one, fraction) for one in CONFIGURATIONS for fraction in FRACTIONS if accuracy(one, fraction) >= 0.8]
    cheapest = min(places, key=lambda place: cost(*place))
    found, fraction, _ = search(job("accuracy >= 0.8", maximize=None, minimize="cost"), TRIMTUNER, 0)
    assert (found, fraction) == cheapest
    assert fraction < 1.0
