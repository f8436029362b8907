"""The market as a parameter like any other, on a job whose every number is a formula.

On all of its data the job takes 10 hours or more; spot costs 40 % of on demand. Alone on one machine with x = 1:

    Λ per hour    on demand    spot, 12 h     spot, 1 h at 1/16 of the data
    0             12 USD       4.8 USD        0.4 USD (1.0 on demand)
    0.01          12 USD       5.1 USD        0.4 USD
    0.3           12 USD       47.5 USD       0.5 USD
"""

import math

import pytest

import trimtuner as tt
from trimtuner.jobs.differing import description_of
from trimtuner.jobs.load import load_job
from trimtuner.problem.problem import Problem
from trimtuner.study.description import Description


def space_with(rate):
    vm = tt.VM(4, 16, 1.0, spot_price_per_hour=0.4, spot_interruptions_per_hour=rate)
    cloud = tt.Cloud({"a": vm}, vm_count=[1, 2], market=["on_demand", "spot"])
    return tt.Space({"x": tt.Choice([1, 2, 3, 4])}, cloud=cloud, fractions=[1 / 16, 1 / 4, 1.0])


def hours(config, fraction):
    return 10.0 * fraction**0.9 * (1.0 + 0.2 * config["x"]) / config["vm_count"] ** 0.8


def accuracy(config, fraction):
    return 0.95 - 0.02 * abs(config["x"] - 2) + 0.04 * math.log2(fraction)


def expected_cost(config, fraction, rate):
    """USD of getting through, by the formula of starting again."""
    needed, load = hours(config, fraction), rate * config["vm_count"] * (config["market"] == "spot")
    total = math.expm1(load * needed) / load if load else needed
    return total * config["vm_count"] * (0.4 if config["market"] == "spot" else 1.0)


def searched(rate, method="trimtuner", trials=26):
    """A study over the job: the cheapest run whose accuracy is at least 0.88, which takes all of the data."""
    study = tt.Study(space_with(rate), minimize="cost", constraints=["accuracy >= 0.88"], method=method, seed=0)
    asked = []
    for _ in range(trials):
        trial = study.ask()
        config, fraction = trial.config, trial.fraction
        study.tell(trial, accuracy=accuracy(config, fraction), time=3600.0 * hours(config, fraction))
        asked.append((dict(config), fraction))
    return asked, study.recommend()


@pytest.mark.parametrize(
    ("rate", "market"), [pytest.param(0.0, "spot", marks=pytest.mark.slow), (0.01, "spot"), (0.3, "on_demand")]
)
def test_the_market_that_is_cheaper_with_its_risk_is_recommended(rate, market):
    _, recommended = searched(rate)
    assert recommended.config["market"] == market
    assert recommended.fraction == 1.0
    configurations = [
        {"vm_count": count, "market": where, "x": x}
        for count in (1, 2)
        for where in ("on_demand", "spot")
        for x in (1, 2, 3, 4)
    ]
    least = min(expected_cost(one, 1.0, rate) for one in configurations if accuracy(one, 1.0) >= 0.88)
    assert expected_cost(recommended.config, 1.0, rate) <= 1.1 * least
    assert float(recommended.cost) == pytest.approx(expected_cost(recommended.config, 1.0, rate), rel=0.1)


def test_short_trials_go_to_spot_while_the_recommendation_is_on_demand():
    asked, recommended = searched(0.3)
    assert recommended.config["market"] == "on_demand"
    small = [config["market"] for config, fraction in asked if fraction < 1.0]
    assert small.count("spot") >= 5
    assert all(config["market"] == "on_demand" for config, fraction in asked if fraction == 1.0)


def test_a_method_that_recommends_what_it_measured_counts_the_risk_of_running_it_again():
    _, recommended = searched(0.3, method="eic", trials=12)
    assert recommended.config["market"] == "on_demand"


def problem_with(rate):
    return Problem.of(space_with(rate), None, "cost", ["accuracy >= 0.88"], None)


def test_the_risk_is_part_of_what_a_study_is_only_where_there_is_some():
    calm, risky = (Description(problem_with(rate), "trimtuner", 0).digest for rate in (0.0, 0.3))
    assert calm != risky
    assert risky != Description(problem_with(0.2), "trimtuner", 0).digest


JOB = """\
name: market
goal: {{maximize: accuracy}}
parameters: {{rate: {{values: [0.1, 0.2]}}}}
cloud:
  vms: {{a: {{vcpus: 1, memory_gib: 2, price_per_hour: 1, spot_price_per_hour: 0.25{own}}}}}
  vm_count: [1, 2]
  market: [on_demand, spot]
run: {{command: [train, "{{rate}}"]}}
"""


def test_the_risk_is_part_of_what_a_job_is_only_where_there_is_some(tmp_path):
    found = {}
    for rate in ("0", "0.05"):
        path = tmp_path / f"{rate}.yaml"
        path.write_text(JOB.format(own=f", spot_interruptions_per_hour: {rate}"))
        found[rate] = description_of(load_job(path)).plain["cloud"]
    (tmp_path / "plain.yaml").write_text(JOB.format(own=""))
    assert found["0"] == description_of(load_job(tmp_path / "plain.yaml")).plain["cloud"]
    assert set(found["0"]) == {"vm_type", "helpers", "price_per_hour"}
    assert found["0.05"] == {
        **found["0"],
        "interruptions_per_hour": {"1 x a spot": 0.05, "2 x a spot": 0.1},
    }
