"""What every method keeps, whatever it is made of: on jobs of both families, and on awkward ones.

The job is known by formula: `accuracy` is best near a rate of 10^-2 and grows with the workers, `seconds` falls with
them, and so slowly that more workers cost more.
"""

import copy
import itertools
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from decisions.fakes import KnownSurrogate, gaussian_of_times, gaussian_over, problem_of, space_of
from trimtuner.decisions.learning import TIME_GROWTH
from trimtuner.errors import InputError, NoAnswer, SearchOver
from trimtuner.problem.history import PREEMPTED, History, Trial
from trimtuner.problem.parameters import Choice, Float
from trimtuner.problem.problem import Problem
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import Space
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import WhereTested
from trimtuner.tuning.recipes import METHODS, recipe_named
from trimtuner.tuning.tuner import ask, believe, recommend

VARIANTS = [
    "nephele:horizon=1",
    "nephele:horizon=2",
    "lynceus:horizon=1",
    "trimtuner:horizon=1",
    "trimtuner-gp:horizon=1",
    "trimtuner-dt:horizon=1",
    "trimtuner-dt:filter=none",
    "trimtuner-dt:filter=random",
    "trimtuner-dt:filter=direct",
    "trimtuner-dt:filter=cmaes",
    "cherrypick:model=trees",
]
BLIND = {"ei", "fabolas"}  # to limits
NEEDS_LESS_DATA = {"fabulinus", "fabolas", "hyperband", "bohb"}
NEEDS_GOAL_AT_FULL_DATA = {"hyperband", "bohb"}
WITHOUT_A_MODEL = {"random", "hyperband", "bohb"}
FULL_DATA_ONLY = {"nephele", "lynceus", "cherrypick", "eic", "eic-usd", "ei", "random"}  # for an accuracy
SAMPLED = {"fabulinus", "fabolas"}  # slow: their processes are sampled
NAMES = [*METHODS, *VARIANTS]
every_method = pytest.mark.parametrize(
    "name", [*METHODS, *(pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS)]
)

FRACTIONS = (0.1, 0.5, 1.0)
RATES = (1e-4, 1e-2, 1e-1)
WORKERS = (1, 2, 4)
CONFIGURATIONS = [{"rate": rate, "workers": workers} for rate in RATES for workers in WORKERS]
COST_LIMIT = 1.6  # USD: one or two workers at full data, not four
ACCURACY_LIMIT = 0.8
SEED = 3


def plain(name):
    return name.partition(":")[0]


def recipe_of(name):
    """The recipe; those that know no limits are told that we know."""
    return recipe_named(name, **({"ignore_constraints": True} if name in BLIND else {}))


def price_per_hour(configuration):
    return float(configuration["workers"])


def seconds(configuration, fraction):
    return 3600.0 * (0.05 + 0.95 * fraction) / configuration.get("workers", 1) ** 0.6


def accuracy(configuration, fraction):
    distance = math.log10(configuration["rate"]) + 2.2
    full = 0.87 - 0.09 * distance**2 + 0.03 * math.log2(configuration.get("workers", 1))
    return max(full - 0.05 * configuration.get("momentum", 0.0) - 0.12 * (1.0 - fraction) ** 2, 0.05)


def cost(configuration, fraction):
    return seconds(configuration, fraction) * price_per_hour(configuration) / 3600.0


def measured(configuration, fraction):
    return {"accuracy": accuracy(configuration, fraction), "time": seconds(configuration, fraction)}


# --- problems


def listed(configurations=CONFIGURATIONS, fractions=FRACTIONS, priced=True, snapshots=False):
    prices = [price_per_hour(one) for one in configurations] if priced else None
    return Space.from_configs(configurations, price_per_hour=prices, fractions=fractions, snapshots=snapshots)


def most_accurate(space=None, *, budget=None):
    """Family A: the best accuracy within a limit on the cost at full data."""
    return Problem.of(space or listed(), "accuracy", None, [f"cost <= {COST_LIMIT}"], budget)


def cheapest(space=None, *, budget=12.0):
    """Family B: the least cost over configuration and fraction of what is accurate enough and fast enough."""
    return Problem.of(space or listed(), None, "cost", [f"accuracy >= {ACCURACY_LIMIT}", "time <= 55min"], budget)


def unpriced():
    return Problem.of(listed(priced=False), "accuracy", None, ["time <= 50min"], None)


def endless():
    """A space that cannot be enumerated, with a parameter that is not always there."""
    parameters = {
        "optimizer": Choice(["sgd", "adam"]),
        "rate": Float(1e-5, 1e-1, scale="log"),
        "momentum": Float(0.0, 0.99, when="optimizer == 'sgd'"),
    }
    return Problem.of(Space(parameters, fractions=FRACTIONS), "accuracy", None, ["time <= 2h"], None)


PROBLEMS = {
    "most accurate": most_accurate,
    "cheapest": cheapest,
    "unpriced": unpriced,
    "endless": endless,
    "failing": most_accurate,
    "snapshots": lambda: most_accurate(listed(snapshots=True)),
}


PAPERS_FAMILIES = ("most accurate", "cheapest")  # the variants of methods are run on these only


def is_served(name, problem):
    try:
        recipe_of(name).check(problem)
    except InputError:
        return False
    return True


def pairs(*families, names=NAMES):
    """Methods and the problems they serve; what is refused has tests of its own."""
    asked = [(name, family) for family in families for name in names if family in PAPERS_FAMILIES or name in METHODS]
    served = [(name, family) for name, family in asked if is_served(name, PROBLEMS[family]())]
    return pytest.mark.parametrize(
        ("name", "family"),
        [pytest.param(*one, marks=marks_of(one[0])) for one in served],
    )


def marks_of(name):
    """In one process, which then makes each search once; variants of methods with the soak."""
    together = pytest.mark.xdist_group(f"searches of {name}")
    return [together, pytest.mark.slow] if name in VARIANTS else [together]


# --- searches


def fails(family, trial):
    return family == "failing" and trial.config["workers"] == 4


def told(problem, trial, has_failed=False):
    if has_failed:
        return outcome_of_failure(problem, trial, "oom", {"time": 60.0})
    snapshots = {fraction: measured(trial.config, fraction) for fraction in trial.snapshots}
    return outcome_of_success(problem, trial, measured(trial.config, trial.fraction), snapshots)


def trials_of(name, family):
    return 5 if plain(name) in SAMPLED or family == "endless" else 7


def run_until_over(problem, recipe, outcome, history=None, at_most=40):
    """Every trial until the search is over, the history then, and why it was over."""
    history, trials = history or History(), []
    while len(trials) <= at_most:
        try:
            trial = ask(problem, recipe, history, SEED)
        except SearchOver as over:
            return trials, history, str(over)
        trials.append(trial)
        history = history.with_asked(trial)
        ended = outcome(trial)
        history = history if ended is None else history.with_told(ended)
    raise AssertionError(f"{at_most} trials were made, and the search is not over")


@cache
def searched(name, family):
    """A search, as the (history, trial asked for then) of each step; the history at the end; whether it was over."""
    problem, recipe = PROBLEMS[family](), recipe_of(name)
    history, steps = History(), []
    for _ in range(trials_of(name, family)):
        try:
            trial = ask(problem, recipe, history, SEED)
        except SearchOver:
            return problem, recipe, steps, history
        steps.append((history, trial))
        history = history.with_asked(trial).with_told(told(problem, trial, fails(family, trial)))
    return problem, recipe, steps, history


def place(problem, trial):
    return problem.space.key(trial.config), trial.fraction


def places(problem, trial):
    """All that the trial will measure."""
    return [(problem.space.key(trial.config), fraction) for fraction in (*trial.snapshots, trial.fraction)]


def recommended(problem, recipe, history):
    belief = believe(problem, recipe, history, SEED)
    target = belief.targets.at(np.array([recommend(recipe, belief, history)]))
    return belief.pool.configuration(int(target.positions[0])), float(target.fractions[0])


def offered(problem, recipe):
    """The fractions that the method may test, by what it says of itself."""
    return {
        WhereTested.ANYWHERE: problem.space.fractions,
        WhereTested.BELOW_FULL: tuple(f for f in problem.space.fractions if f < 1.0),
        WhereTested.WHERE_MEANT: problem.target_fractions,
        WhereTested.FULL: (1.0,),
    }[recipe.tests]


def recommendable(problem, recipe):
    return (1.0,) if recipe.tests is WhereTested.FULL else problem.target_fractions


def is_allowed(problem, configuration, fraction):
    metrics = {**measured(configuration, fraction), "cost": cost(configuration, fraction)}
    return all(constraint.is_met(metrics[constraint.metric]) for constraint in problem.constraints)


EVERYWHERE = pairs(*PROBLEMS)


# --- asking


@EVERYWHERE
def test_asking_again_gives_the_same_trial_and_leaves_the_history_as_it_was(name, family):
    _, _, steps, _ = searched(name, family)
    for history, trial in (steps[0], steps[-1]):
        before = copy.deepcopy(history)
        assert ask(PROBLEMS[family](), recipe_of(name), history, SEED) == trial
        assert history == before


@EVERYWHERE
def test_a_search_never_asks_the_same_twice(name, family):
    problem, _, steps, _ = searched(name, family)
    seen = [one for _, trial in steps for one in places(problem, trial)]
    assert len(seen) == len(set(seen))


@EVERYWHERE
def test_every_trial_is_in_the_space_and_at_a_fraction_that_the_method_tests(name, family):
    problem, recipe, steps, _ = searched(name, family)
    for number, (_, trial) in enumerate(steps):
        problem.space.check(trial.config)
        assert trial.number == number
        assert trial.fraction in offered(problem, recipe)
        assert set(trial.snapshots) <= {f for f in problem.space.fractions if f < trial.fraction}


@EVERYWHERE
def test_what_was_recommended_when_a_trial_was_asked_is_in_the_space(name, family):
    problem, recipe, steps, _ = searched(name, family)
    for _, trial in steps:
        if trial.recommended is not None:
            configuration, fraction = trial.recommended
            problem.space.check(dict(configuration))
            assert fraction in recommendable(problem, recipe)


@EVERYWHERE
def test_the_recommendation_is_in_the_space_and_where_the_goal_is_meant_after_any_number_of_trials(name, family):
    problem, recipe, steps, end = searched(name, family)
    histories = [history for history, _ in steps if history.measurements]
    for history in (histories[0], end):
        configuration, fraction = recommended(problem, recipe, history)
        problem.space.check(configuration)
        assert fraction in recommendable(problem, recipe)


@pytest.mark.parametrize("name", ["trimtuner", "trimtuner-gp", "trimtuner-dt", "fabolas", "eic", "eic-usd", "ei"])
def test_a_design_of_a_few_trials_ends_where_the_space_cannot_be_enumerated(name):
    """One configuration at two fractions, or three or four trials: all shorter than the search."""
    _, _, steps, _ = searched(name, "endless")
    assert steps[-1][1].origin == "model"


RATE_ONLY = Space({"rate": Float(1e-5, 1e-1, scale="log")}, fractions=FRACTIONS)


def designed(name, accuracy_of, count, seed=SEED):
    """The first trials of a search of one continuous parameter, all of them by the design."""
    problem, recipe = Problem.of(RATE_ONLY, "accuracy", None, [], None), recipe_of(name)
    history, trials = History(), []
    for _ in range(count):
        trial = ask(problem, recipe, history, seed)
        trials.append(trial)
        metrics = {"accuracy": accuracy_of(trial.config["rate"]), "time": 10.0}
        history = history.with_asked(trial).with_told(outcome_of_success(problem, trial, metrics, {}))
    assert {trial.origin for trial in trials} == {"design"}
    return [(trial.config["rate"], trial.fraction) for trial in trials]


def rising(rate):
    return (math.log10(rate) + 5.0) / 4.0


def falling(rate):
    return 1.0 - rising(rate)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("trimtuner", 3),
        ("trimtuner-gp", 2),
        ("fabulinus", 6),
        ("nephele", 6),
        ("eic", 4),
        ("random", 6),
    ],
)
def test_a_design_does_not_look_at_results_where_the_space_cannot_be_enumerated_either(name, count):
    assert designed(name, rising, count) == designed(name, falling, count)


def test_one_configuration_across_fractions_is_one_where_the_space_cannot_be_enumerated_too():
    (one, first), (other, second) = designed("trimtuner-dt", rising, 2)
    assert one == other
    assert (first, second) == FRACTIONS[:2]


@pytest.mark.parametrize("seed", range(3))
def test_a_latin_hypercube_is_one_where_the_space_cannot_be_enumerated_too(seed):
    """Four trials: one in each quarter of the rates, but for the distance to the nearest of a thousand in the pool."""
    shares = sorted(rising(rate) for rate, _ in designed("eic", rising, 4, seed))
    assert all(0.25 * i - 0.002 <= share <= 0.25 * (i + 1) + 0.002 for i, share in enumerate(shares))


def test_the_seed_of_hashes_does_not_matter():
    """Sets and dicts come in another order in another process; trials do not."""
    one, other = (_asked_in_another_process(seed) for seed in ("1", "4242"))
    assert one == other
    assert one.count("\n") == 2 * 6


def _asked_in_another_process(hash_seed):
    script = (
        "from test_contract import searched\n"
        "for name in ('trimtuner', 'bohb'):\n"
        "    for _, trial in searched(name, 'most accurate')[2][:6]:\n"
        "        print(name, sorted(trial.config.items()), trial.fraction, trial.recommended)\n"
    )
    here = Path(__file__).parent
    found = [str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(found)}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return result.stdout


# --- several at once


@pairs("most accurate", "cheapest", "snapshots")
def test_trials_under_way_are_distinct_and_may_end_in_any_order(name, family):
    problem, recipe, steps, _ = searched(name, family)
    problem, recipe = replace(problem, budget=None), recipe.but(stop=None)
    history = steps[min(4, len(steps) - 1)][0]
    seen = {(problem.space.key(dict(one)), fraction) for one, fraction in history.tested()}
    under_way = []
    for _ in range(3):
        trial = ask(problem, recipe, history, SEED)
        under_way.append(trial)
        history = history.with_asked(trial)
    asked = [one for trial in under_way for one in places(problem, trial)]
    assert len(set(asked)) == len(asked)
    assert not seen & set(asked)
    for trial in reversed(under_way):
        history = history.with_told(told(problem, trial))
    following = ask(problem, recipe, history, SEED)
    assert not set(places(problem, following)) & {*seen, *asked}
    problem.space.check(recommended(problem, recipe, history)[0])


@pairs("most accurate", "cheapest")
def test_many_may_start_before_anything_is_known(name, family):
    problem, recipe = PROBLEMS[family](), recipe_of(name)
    history = History()
    for _ in range(6):
        history = history.with_asked(ask(problem, recipe, history, SEED))
    assert len({place(problem, trial) for trial in history.pending}) == 6


# --- failures


@pairs("failing")
def test_what_failed_is_not_recommended_while_something_ran(name, family):
    problem, recipe, _, history = searched(name, family)
    assert history.measurements
    configuration, fraction = recommended(problem, recipe, history)
    failed = {place(problem, outcome.trial) for outcome in history.failures}
    assert (problem.space.key(configuration), fraction) not in failed


@pytest.mark.parametrize("name", NAMES)
def test_what_ran_on_less_data_and_failed_where_the_goal_is_meant_is_not_recommended(name):
    """All of the data does not fit into the memory of what does best on half of it."""
    problem, recipe = most_accurate(), recipe_of(name)
    best, second = {"rate": 1e-2, "workers": 2}, {"rate": 1e-2, "workers": 1}
    history = History()
    for number, (one, fraction) in enumerate([(best, 0.5), (second, 0.5), (best, 1.0), (second, 1.0)]):
        if number == 3 and plain(name) not in FULL_DATA_ONLY:
            continue  # one must have measured something that the method looks at
        trial = Trial(number, one, fraction)
        history = history.with_asked(trial).with_told(told(problem, trial, has_failed=number == 2))
    assert recommended(problem, recipe, history) != (best, 1.0)


TINY = [{"rate": 1e-2, "workers": 1}, {"rate": 1e-1, "workers": 4}]
TINY_FRACTIONS = (0.5, 1.0)
TINY_PROBLEMS = {
    "most accurate": lambda: most_accurate(listed(TINY, TINY_FRACTIONS)),
    "cheapest": lambda: cheapest(listed(TINY, TINY_FRACTIONS), budget=None),
}
tiny_pairs = pytest.mark.parametrize(
    ("name", "family"),
    [(name, family) for family in TINY_PROBLEMS for name in NAMES if is_served(name, TINY_PROBLEMS[family]())],
)


@tiny_pairs
def test_a_tiny_space_is_tested_to_the_end(name, family):
    problem, recipe = TINY_PROBLEMS[family](), recipe_of(name)
    trials, history, _ = run_until_over(problem, recipe, lambda trial: told(problem, trial))
    assert len({place(problem, trial) for trial in trials}) == len(trials) == 2 * len(offered(problem, recipe))
    assert recommended(problem, recipe, history)[0] in TINY


@tiny_pairs
def test_a_job_that_always_fails_ends_the_search_without_an_answer(name, family):
    problem, recipe = TINY_PROBLEMS[family](), recipe_of(name)
    trials, history, _ = run_until_over(problem, recipe, lambda trial: told(problem, trial, has_failed=True))
    assert len({place(problem, trial) for trial in trials}) == len(trials) == 2 * len(offered(problem, recipe))
    with pytest.raises(NoAnswer, match="nothing has been measured"):
        believe(problem, recipe, history, SEED)


@tiny_pairs
def test_pre_empted_trials_are_asked_again_and_not_held_against_the_configuration(name, family):
    problem, recipe = TINY_PROBLEMS[family](), recipe_of(name)
    history = History()
    for _ in range(6):  # more than there are places
        trial = ask(problem, recipe, history, SEED)
        history = history.with_asked(trial).with_told(outcome_of_failure(problem, trial, PREEMPTED, {"time": 60.0}))
    trials, history, _ = run_until_over(problem, recipe, lambda trial: told(problem, trial), history)
    assert len({place(problem, trial) for trial in trials}) == len(trials) == 2 * len(offered(problem, recipe))
    belief = believe(problem, recipe, history, SEED)
    np.testing.assert_array_equal(belief.chance_of_running.at(belief.targets.rows), 1.0)


# --- the whole space is known


def everything_measured(problem, configurations=CONFIGURATIONS):
    """A history from elsewhere: all there is, in an order that no method would choose."""
    history = History()
    for number, (fraction, one) in enumerate(itertools.product(problem.space.fractions, configurations)):
        trial = Trial(number, one, fraction)
        history = history.with_asked(trial).with_told(told(problem, trial))
    return history


def true_best(problem, recipe, is_feasible):
    places = [(one, f) for one in CONFIGURATIONS for f in recommendable(problem, recipe) if is_feasible(one, f)]
    if problem.goal.metric == "accuracy":
        return max(places, key=lambda one: accuracy(*one))
    return min(places, key=lambda one: cost(*one))


@pairs("most accurate", "cheapest", "unpriced")
def test_when_everything_is_measured_the_true_best_is_recommended_by_every_method(name, family):
    """Within the limits; those that know none recommend the best whatever the limits."""
    problem, recipe = PROBLEMS[family](), recipe_of(name)

    def is_feasible(configuration, fraction):
        return plain(name) in BLIND or is_allowed(problem, configuration, fraction)

    assert recommended(problem, recipe, everything_measured(problem)) == true_best(problem, recipe, is_feasible)


@pairs("most accurate", "cheapest")
def test_when_everything_is_measured_the_search_is_over(name, family):
    problem = PROBLEMS[family]()
    with pytest.raises(SearchOver):
        ask(problem, recipe_of(name), everything_measured(problem), SEED)


def test_the_true_best_differs_with_limits_and_without_and_with_less_data():
    """Or the claims above would say little."""
    accurate, cheap = most_accurate(), cheapest()
    everywhere, full = recipe_of("trimtuner"), recipe_of("lynceus")
    anything = lambda _, __: True  # noqa: E731
    within = {problem: lambda one, f, problem=problem: is_allowed(problem, one, f) for problem in (accurate, cheap)}
    assert true_best(accurate, full, within[accurate]) == ({"rate": 1e-2, "workers": 2}, 1.0)
    assert true_best(accurate, full, anything) == ({"rate": 1e-2, "workers": 4}, 1.0)
    assert true_best(cheap, everywhere, within[cheap]) == ({"rate": 1e-2, "workers": 4}, 0.1)
    assert true_best(cheap, full, within[cheap]) == ({"rate": 1e-2, "workers": 2}, 1.0)
    assert true_best(cheap, everywhere, anything)[0]["workers"] == 1


# --- measurements that a method has no use for


@pairs("most accurate", "cheapest")
def test_trials_at_fractions_that_a_method_does_not_test_do_not_disturb_it(name, family):
    """A history of another method: measured, failed, under way, recommended, all on a tenth of the data."""
    problem, recipe = PROBLEMS[family](), recipe_of(name)
    small = problem.space.fractions[0]
    history = History()
    for number, one in enumerate(CONFIGURATIONS[:4]):
        trial = Trial(number, one, small, recommended=(CONFIGURATIONS[0], problem.target_fractions[0]))
        history = history.with_asked(trial)
        if number < 3:
            history = history.with_told(told(problem, trial, has_failed=number == 2))
    seen = {place(problem, trial) for trial in (*history.pending, *(outcome.trial for outcome in history.outcomes))}
    for _ in range(3):
        trial = ask(problem, recipe, history, SEED)
        assert trial.fraction in offered(problem, recipe)
        assert not set(places(problem, trial)) & seen
        seen.update(places(problem, trial))
        history = history.with_asked(trial).with_told(told(problem, trial))
        configuration, fraction = recommended(problem, recipe, history)
        problem.space.check(configuration)
        assert fraction in recommendable(problem, recipe)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_who_tests_on_all_of_the_data_learns_nothing_from_less_and_all_others_do(name):
    problem, recipe = most_accurate(), recipe_of(name)
    trials = [Trial(number, CONFIGURATIONS[number], fraction) for number, fraction in enumerate((1.0, 0.1, 1.0, 0.5))]
    everything = tuple(told(problem, trial) for trial in trials)
    full = tuple(outcome for outcome in everything if outcome.trial.fraction == 1.0)
    one, other = (believe(problem, recipe, History(told_so), SEED).goal_at_targets for told_so in (everything, full))
    assert np.array_equal(one.mean, other.mean) == (name in FULL_DATA_ONLY)


def test_a_method_on_all_of_the_data_can_take_over_from_one_that_recommended_less():
    """The cheapest on a tenth of the data is no target of lynceus, so it has no previous recommendation to keep."""
    problem = cheapest()
    before = Trial(0, CONFIGURATIONS[5], 0.1)
    after = Trial(1, CONFIGURATIONS[4], 1.0, recommended=(CONFIGURATIONS[5], 0.1))
    history = History()
    for trial in (before, after):
        history = history.with_asked(trial).with_told(told(problem, trial))
    assert recommended(problem, recipe_of("lynceus"), history) == (CONFIGURATIONS[4], 1.0)


def test_a_goal_at_full_data_can_take_over_from_one_over_fractions():
    problem = most_accurate()
    one = Trial(0, CONFIGURATIONS[4], 1.0, recommended=(CONFIGURATIONS[5], 0.1))
    history = History().with_asked(one).with_told(told(problem, one))
    assert recommended(problem, recipe_of("trimtuner-dt"), history)[1] == 1.0


# --- the budget


MODELLED = [name for name in NAMES if plain(name) not in WITHOUT_A_MODEL]
SIZES = range(6)


def usd(size, fraction):
    """What a trial costs in the jobs with a budget, and how many seconds it takes: they rent at 3600 USD an hour."""
    return (1.0 + 0.37 * size) * (0.1 + 0.9 * fraction)


def with_budget(budget, **goal):
    return problem_of(space_of(len(SIZES), [3600.0] * len(SIZES), FRACTIONS), budget=budget, **goal)


GOALS = {"most accurate": {"maximize": "accuracy"}, "cheapest": {"minimize": "cost"}}


def foreseeing(name, problem):
    """The method with models that know every cost, and nothing else; it does not end by itself."""
    recipe = recipe_of(name)
    space = recipe.narrow(problem).space
    times = gaussian_of_times(space, [usd(size, fraction) for fraction in space.fractions for size in SIZES])
    known = KnownSurrogate(share=gaussian_over(space, 0.0), positive=times)
    return recipe.but(surrogate=known, time_surrogate=None, time_growth=TIME_GROWTH, stop=None)


def paid(problem, trial):
    return outcome_of_success(problem, trial, {"accuracy": 0.5, "time": usd(trial.config["x"], trial.fraction)}, {})


@pytest.mark.parametrize("budget", [8.1, 10.4])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", MODELLED)
def test_where_costs_are_foreseen_the_budget_is_used_up_and_never_passed(name, goal, budget):
    """When the search is over, nothing that is left to test fits what is left of the money."""
    problem = with_budget(budget, **GOALS[goal])
    recipe = foreseeing(name, problem)
    _, history, why = run_until_over(problem, recipe, lambda trial: paid(problem, trial))
    assert history.spent <= budget
    assert f"the budget of {budget:g} USD has" in why or "every configuration has been tested" in why
    tested = {(one["x"], fraction) for one, fraction in history.tested()}
    possible = set(itertools.product(SIZES, offered(problem, recipe)))
    cheapest_left = min((usd(*one) for one in possible - tested), default=math.inf)
    assert cheapest_left > (budget - history.spent) * (1.0 - 1e-5)
    assert recommended(problem, recipe, history)[0]["x"] in SIZES


@pytest.mark.parametrize("name", MODELLED)
def test_trials_under_way_are_paid_for_before_the_next_is_asked(name):
    problem = with_budget(10.4, maximize="accuracy")
    recipe = foreseeing(name, problem)
    first = ask(problem, recipe, History(), SEED)
    history = History().with_asked(first).with_told(paid(problem, first))
    trials, _, _ = run_until_over(problem, recipe, lambda _: None, history)
    promised = history.spent + np.cumsum([usd(trial.config["x"], trial.fraction) for trial in trials])
    assert all(spent <= 10.4 for spent, trial in zip(promised, trials, strict=True) if trial.origin == "model")


@pytest.mark.parametrize("name", sorted(WITHOUT_A_MODEL))
def test_a_method_that_foresees_no_cost_stops_at_the_first_trial_that_passes_the_budget(name):
    study = Study(listed(), maximize="accuracy", constraints=[f"cost <= {COST_LIMIT}"], method=name, budget=3.0)
    spent = [0.0]
    while spent[-1] < 3.0:
        trial = study.ask()
        study.tell(trial, **measured(trial.config, trial.fraction))
        spent.append(study.spent)
    with pytest.raises(SearchOver, match="the budget of 3 USD is spent"):
        study.ask()
    assert study.recommend().config in CONFIGURATIONS


# --- what is refused


@pytest.mark.parametrize("name", sorted(BLIND))
def test_a_method_that_knows_no_limits_refuses_them_unless_told_that_we_know(name):
    problem = most_accurate()
    with pytest.raises(InputError, match=rf"cost <= {COST_LIMIT}.*ignore_constraints=true"):
        recipe_named(name).check(problem)
    recipe_named(f"{name}:ignore_constraints=true").check(problem)
    recipe_named(name).check(Problem.of(listed(), "accuracy", None, [], None))


@every_method
def test_a_space_without_less_data_is_refused_by_those_that_live_on_it_and_by_no_other(name):
    problem = most_accurate(listed(fractions=(1.0,)))
    if plain(name) in NEEDS_LESS_DATA:
        with pytest.raises(InputError, match="no fraction below 1"):
            recipe_of(name).check(problem)
    else:
        recipe_of(name).check(problem)


@every_method
@pytest.mark.parametrize("goal", ["cost", "time"])
def test_the_least_cost_or_time_is_refused_by_those_that_halve_and_by_no_other(name, goal):
    problem = Problem.of(listed(), None, goal, [f"accuracy >= {ACCURACY_LIMIT}"], None)
    if plain(name) in NEEDS_GOAL_AT_FULL_DATA:
        with pytest.raises(InputError, match=f"says nothing about the least {goal} over fractions"):
            recipe_of(name).check(problem)
    else:
        recipe_of(name).check(problem)


@every_method
def test_a_study_refuses_what_its_method_refuses(name):
    """The refusal comes when the study is made, not at its first trial."""
    recipe, full_only = recipe_of(name), listed(fractions=(1.0,))
    if plain(name) in NEEDS_LESS_DATA:
        with pytest.raises(InputError):
            Study(full_only, maximize="accuracy", method=recipe)
    else:
        assert Study(full_only, maximize="accuracy", method=recipe).ask().fraction == 1.0


# --- the long form


@pytest.mark.slow
@pytest.mark.parametrize("family", ["most accurate", "cheapest", "unpriced", "failing", "snapshots"])
@every_method
def test_a_whole_search_keeps_all_of_it(name, family):
    """To the last place: in the space, never twice, at fractions it tests; then it is over and has the best."""
    problem, recipe = PROBLEMS[family](), recipe_of(name).but(stop=None)
    if not is_served(name, problem):
        pytest.skip("refused")
    problem = replace(problem, budget=None)
    trials, history, why = run_until_over(problem, recipe, lambda trial: told(problem, trial, fails(family, trial)))
    assert "every configuration has been tested at every fraction" in why
    seen = [one for trial in trials for one in places(problem, trial)]
    assert len(set(seen)) == len(seen) == len(CONFIGURATIONS) * len(offered(problem, recipe))

    def is_feasible(configuration, fraction):
        runs = not (family == "failing" and configuration["workers"] == 4)
        return runs and (plain(name) in BLIND or is_allowed(problem, configuration, fraction))

    if recipe.tests is not WhereTested.BELOW_FULL:  # whose best at full data is a forecast
        assert recommended(problem, recipe, history) == true_best(problem, recipe, is_feasible)
