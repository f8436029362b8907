"""What `explain` says of a recommendation and of a trial: measurements as they were, money and time in their units."""

from dataclasses import replace

import pytest

import trimtuner as tt
from trimtuner.tuning import tuner

USD_PER_HOUR = 3600.0  # a dollar a second: the cost in USD is the time in seconds


@pytest.fixture
def study() -> tt.Study:
    space = tt.Space.from_configs([{"size": size} for size in (1, 2, 4, 8)], price_per_hour=[USD_PER_HOUR] * 4)
    study = tt.Study(space, minimize="cost", constraints=["accuracy >= 0.5"], method="eic:initial=2", seed=0)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, accuracy=0.9, time=float(trial.config["size"]))
    return study


def test_what_was_measured_stands_in_the_list_as_it_was_measured(study):
    rows = [line.split() for line in study.explain().split("the best five are")[1].splitlines()]
    told = {words[-1]: words[:2] for words in rows if "measured" in words}
    measured = {f"size={one.configuration['size']}": one.metrics["cost"] for one in study.history.measurements}
    assert told == {name: [f"{cost:g}", "USD"] for name, cost in measured.items()}


def test_what_a_trial_was_expected_to_cost_and_take_is_told_in_its_unit(study):
    number = len(study.history.outcomes)
    study.tell(study.ask(), accuracy=0.9, time=5.0)
    told = {line.split(":")[0].strip(): line.split()[-1] for line in study.explain(number).splitlines() if ": " in line}
    assert (told["cost"], told["time"]) == ("USD", "s")


@pytest.mark.parametrize("is_proof", [True, False])
def test_a_trial_of_what_was_recommended_says_that_it_is_one(study, is_proof):
    asked = tuner.ask(study.problem, study.recipe, study.history, 0)
    other = {"size": 2 if asked.config["size"] == 1 else 1}
    asked = replace(asked, recommended=(asked.config if is_proof else other, asked.fraction))
    study.history = study.history.with_asked(asked)
    study.tell(asked, accuracy=0.9, time=5.0)
    (said,) = (line for line in study.explain(asked.number).splitlines() if line.startswith("recommended at that time"))
    assert ("this very trial" in said) is is_proof
