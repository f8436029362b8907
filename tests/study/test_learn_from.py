"""Studies that learn from earlier ones: from the first trial, as they were when the study was made, and for free."""

import math

import numpy as np
import pytest

import trimtuner as tt
from trimtuner.errors import InputError, NoAnswer
from trimtuner.problem.earlier import Earlier
from trimtuner.records import DefinitionDiffers
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import TRIMTUNER

FRACTIONS = (0.1, 1.0)
PRICES = [1.0 + 0.1 * x for x in range(12)]


def space(prices=PRICES, fractions=FRACTIONS):
    return tt.Space.from_configs([{"x": x} for x in range(len(prices))], price_per_hour=prices, fractions=fractions)


def accuracy(config, fraction):
    """The best is at 7; a tenth of the data costs a tenth of the odds."""
    return 1.0 / (1.0 + math.exp(-(3.0 - 0.2 * (config["x"] - 7) ** 2 + 0.4 * math.log(fraction))))


def train(config, fraction):
    return {"accuracy": accuracy(config, fraction), "time": 100.0 * fraction**0.8}


def ran(trials, **settings):
    """A random search, which asks at once and tests on all of the data."""
    given = {"maximize": "accuracy", "method": "random", "seed": 3, "name": "october", **settings}
    study = tt.Study(space(), **given)
    study.optimize(train, trials=trials)
    return study


@pytest.fixture(scope="module")
def october():
    return ran(12)


def new_study(*earlier, **settings):
    return tt.Study(space(), **{"maximize": "accuracy", "learn_from": earlier, **settings})


def test_the_first_trial_is_what_the_earlier_study_would_recommend_on_the_least_data(october):
    trial = new_study(october).ask()
    assert (trial.config, trial.fraction) == ({"x": 7}, 0.1)
    assert new_study(october, seed=1).ask().config == {"x": 7}  # whatever chance says


def test_the_first_trial_keeps_the_limits_and_prices_of_the_new_study(october):
    dear_from_4 = [1.0] * 4 + [10.0] * 8
    study = tt.Study(
        space(dear_from_4), maximize="accuracy", constraints=["cost <= 0.1 USD"], learn_from=[october]
    )  # 100 s at 10 USD per hour are 0.28
    assert study.ask().config == {"x": 3}


def test_after_one_measurement_it_recommends_what_a_cold_start_cannot_know(october):
    study = new_study(october)
    study.optimize(train, trials=1)
    assert study.recommend().config == {"x": 7}


def test_after_a_few_that_came_out_as_foreseen_it_believes_what_the_earlier_study_did(october):
    study = new_study(october)
    study.optimize(train, trials=3)
    belief = study.belief_at_hand(study.history)
    foreseen = study.recipe.expect(study.problem, belief.pool)
    cold = tuner.believe(study.problem, TRIMTUNER, study.history, study.seed)
    warm, alone, before = (one.expected("accuracy", belief.targets) for one in (belief, cold, foreseen))
    assert np.abs(warm - before).mean() < 0.5 * np.abs(alone - before).mean()


def test_an_earlier_study_that_predicts_the_new_one_comes_to_count_for_almost_all(october):
    study = new_study(october)
    study.optimize(train, trials=4)
    weights = study.belief_at_hand(study.history).weights_of(0)
    assert weights["accuracy"] > 0.8
    assert weights["time"] > 0.8


def test_an_earlier_study_that_misleads_comes_to_count_for_almost_nothing():
    contrary = tt.Study(space(), maximize="accuracy", method="random", name="contrary")
    contrary.optimize(lambda c, f: {"accuracy": 1.0 - accuracy(c, f), "time": 100.0 * f**0.8}, trials=12)
    study = new_study(contrary)
    study.optimize(train, trials=5)
    assert study.belief_at_hand(study.history).weights_of(0)["accuracy"] < 0.1


def test_nothing_is_recommended_before_something_was_measured(october):
    with pytest.raises(NoAnswer):
        new_study(october).recommend()


def test_the_money_of_the_earlier_study_is_not_charged(october):
    study = new_study(october, budget=1.0)
    assert (study.spent, len(study.history.measurements)) == (0.0, 0)
    study.optimize(train, trials=2)
    assert study.spent == pytest.approx(sum(outcome.cost for outcome in study.history.outcomes))


def test_the_same_study_asks_the_same_trials(october):
    one, other = (new_study(october, seed=5) for _ in range(2))
    one.optimize(train, trials=4)
    other.optimize(train, trials=4)
    assert one.history == other.history


def test_what_was_learnt_from_is_frozen_when_the_study_is_made(tmp_path):
    old = ran(6, storage=tmp_path / "old.db")
    study = new_study(old, storage=tmp_path / "new.db", name="new")
    study.optimize(train, trials=4)
    untouched = new_study(old, name="copy")
    untouched.history = study.history
    expected = untouched.ask()
    old.optimize(train, trials=5)  # it goes on
    again = new_study(old, storage=tmp_path / "new.db", name="new")
    assert again.recipe.earlier[0].earlier.plain == study.recipe.earlier[0].earlier.plain
    assert again.ask() == expected


def test_a_study_goes_on_when_the_record_it_learnt_from_is_gone(tmp_path):
    ran(6, storage=tmp_path / "old.db")
    source = str(tmp_path / "old.db")
    study = new_study(source, storage=tmp_path / "new.db", name="new")
    study.optimize(train, trials=2)
    before = study.recommend()
    for file in tmp_path.glob("old.db*"):
        file.unlink()
    assert new_study(source, storage=tmp_path / "new.db", name="new").recommend() == before


def test_another_list_of_earlier_studies_is_another_study(october, tmp_path):
    new_study(october, storage=tmp_path / "new.db", name="new")
    with pytest.raises(DefinitionDiffers):
        tt.Study(space(), maximize="accuracy", storage=tmp_path / "new.db", name="new")


def test_a_record_of_one_study_can_be_learnt_from_by_its_path(tmp_path):
    ran(6, storage=tmp_path / "old.db")
    study = new_study(tmp_path / "old.db")
    assert study.recipe.earlier[0].earlier.name == "october"
    assert len(study.recipe.earlier[0]) == 6


def test_a_record_of_several_studies_must_be_told_which(tmp_path):
    for name in ("one", "two"):
        ran(1, storage=tmp_path / "old.db", name=name)
    with pytest.raises(InputError, match="2 studies \\(one, two\\)"):
        new_study(tmp_path / "old.db")


@pytest.mark.parametrize("method", ["random", "hyperband", "trimtuner-dt", "nephele", "cherrypick:model=trees"])
def test_a_method_that_cannot_learn_from_another_study_says_so_and_makes_no_record(october, tmp_path, method):
    with pytest.raises(InputError, match="learn_from: this method has no Gaussian process"):
        new_study(october, method=method, storage=tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("method", ["trimtuner-gp", "eic"])
def test_every_method_with_a_gaussian_process_begins_with_what_was_best_before(october, method):
    assert new_study(october, method=method).ask().config == {"x": 7}


def test_a_study_with_nothing_in_common_is_refused_before_a_record_is_made(tmp_path):
    other = tt.Study(tt.Space({"y": tt.Choice([1, 2])}), maximize="accuracy", name="other")
    other.optimize(lambda config, _: {"accuracy": 0.5 * config["y"] / 2, "time": 1.0}, trials=2)
    with pytest.raises(InputError, match="nothing that 'other' measured can be placed"):
        new_study(other, storage=tmp_path / "new.db", name="new")
    with pytest.raises(InputError, match="measured nothing yet"):
        new_study(tt.Study(space(), maximize="accuracy"))


@pytest.mark.parametrize("wrong", ["old.db", 3, [3], [None]])
def test_what_is_no_list_of_studies_is_refused(wrong):
    with pytest.raises(InputError, match="learn_from"):
        tt.Study(space(), maximize="accuracy", learn_from=wrong)


def test_a_metric_that_the_earlier_study_did_not_measure_is_learnt_from_scratch(october):
    study = tt.Study(space(), maximize="accuracy", constraints=["latency <= 5"], learn_from=[october])
    study.optimize(lambda c, f: {**train(c, f), "latency": 1.0 + c["x"]}, trials=4)
    weights = study.belief_at_hand(study.history).weights_of(0)
    assert weights["latency"] == 0.0
    assert weights["accuracy"] > 0.0


def test_spaces_too_large_to_list_learn_too():
    def score(config, fraction):
        return {"accuracy": math.exp(-((math.log10(config["rate"]) + 2.0) ** 2)) * 0.9, "time": 10.0 * fraction}

    wide = tt.Space({"rate": tt.Float(1e-5, 1.0, scale="log")}, fractions=[0.1, 1.0])
    old = tt.Study(wide, maximize="accuracy", method="random", name="old")
    old.optimize(score, trials=15)
    narrow = tt.Space({"rate": tt.Float(1e-4, 1e-1, scale="log"), "new": tt.Int(1, 5)}, fractions=[0.1, 1.0])
    first = tt.Study(narrow, maximize="accuracy", learn_from=[old]).ask()
    assert abs(math.log10(first.config["rate"]) + 2.0) < 0.7


def test_an_empty_list_is_a_cold_start():
    cold = tt.Study(space(), maximize="accuracy", seed=4)
    same = tt.Study(space(), maximize="accuracy", seed=4, learn_from=[])
    assert cold.ask() == same.ask()
    assert same.recipe.earlier == ()


def test_the_fit_of_an_earlier_study_is_made_once(october, monkeypatch):
    study = new_study(october)
    study.optimize(train, trials=3)

    def refuse(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr("trimtuner.decisions.learning.Inheritance._fit", refuse)
    study.optimize(train, trials=2)


def test_earlier_measurements_need_no_machines_to_be_named():
    plain = Earlier.of("plain", ran(3).history.measurements, None)
    found = plain.rows_in(space())
    assert np.isfinite(found.rows).all()
    assert plain.machines == (None,) * 3
