"""The least cost where nothing but all of the data can be tested: the default gives way to another recipe."""

import pytest

import trimtuner as tt
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.stopping import AfterTrials
from trimtuner.problem.problem import Problem
from trimtuner.tuning.recipes import LEAST_ON_FULL_DATA, TRIMTUNER, TRIMTUNER_GP, recipe_named

MACHINES = tt.Cloud({"small": tt.VM(vcpus=2, memory_gib=4, price_per_hour=0.1)}, vm_count=range(1, 41))
DEADLINE = 300.0


def problem(fractions=(1.0,), **goal):
    space = tt.Space({"x": tt.Choice([1, 2, 3])}, cloud=MACHINES, fractions=fractions)
    return Problem.of(space, goal.get("maximize"), goal.get("minimize"), goal.get("constraints", ()), None, None)


@pytest.mark.parametrize("metric", ["cost", "time"])
def test_the_least_cost_or_time_on_all_of_the_data_has_a_recipe_of_its_own(metric):
    suited = TRIMTUNER.suited_to(problem(minimize=metric))
    assert suited == LEAST_ON_FULL_DATA


@pytest.mark.parametrize(
    "other",
    [
        problem((0.1, 1.0), minimize="cost"),  # smaller shares can be tested
        problem(maximize="accuracy"),
        problem(minimize="loss"),
        problem(maximize="accuracy", minimize="cost"),  # the best is wanted for every price
    ],
)
def test_any_other_problem_has_the_default(other):
    assert TRIMTUNER.suited_to(other) is TRIMTUNER


def test_a_recipe_without_another_one_stays_what_it_is():
    assert TRIMTUNER_GP.suited_to(problem(minimize="cost")) is TRIMTUNER_GP
    assert "least_on_full_data" not in TRIMTUNER_GP.described()
    assert TRIMTUNER.described()["least_on_full_data"] == LEAST_ON_FULL_DATA.described()


def test_the_stop_rule_goes_along():
    suited = TRIMTUNER.stopping_also(AfterTrials(7)).suited_to(problem(minimize="cost"))
    assert suited.stop == AfterTrials(7)


def test_so_does_the_horizon():
    suited = recipe_named("trimtuner:horizon=2").suited_to(problem(minimize="cost"))
    assert isinstance(suited.acquisition, Lookahead)
    assert suited.acquisition.horizon == 2


def seconds(machines):
    """Amdahl's law: a fixed part, and one that is shared: within the deadline from 15 machines on."""
    return 30.0 + 4000.0 / machines


def test_what_is_proven_is_recommended_and_the_cheapest_within_the_deadline_is_found():
    study = tt.Study(tt.Space({}, cloud=MACHINES), minimize="cost", constraints=[f"time <= {DEADLINE}"], seed=3)
    usd = {count: count * 0.1 * seconds(count) / 3600 for count in range(1, 41) if seconds(count) <= DEADLINE}
    for _ in range(14):
        trial = study.ask()
        study.tell(trial, time=seconds(trial.config["vm_count"]))
        proven = [one for one in study.history.measurements if one.metrics["time"] <= DEADLINE]
        if proven:
            recommended = study.recommend()
            assert recommended.is_measured
            assert recommended.chance_feasible == 1.0
            assert recommended.cost == min(one.metrics["cost"] for one in proven)
    assert study.recommend().config == {"vm_type": "small", "vm_count": min(usd, key=usd.get)}


def test_while_everything_measured_breaks_the_deadline_that_is_said():
    study = tt.Study(tt.Space({}, cloud=MACHINES), minimize="cost", constraints=["time <= 1"], seed=0)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, time=seconds(trial.config["vm_count"]))
    recommended = study.recommend()
    assert recommended.chance_feasible == 0.0
    assert not recommended.is_feasible
