"""Optuna's distributions as parameters: the same values, neither more nor fewer."""

from __future__ import annotations

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as some
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import trimtuner as tt
from trimtuner.integrations.optuna import TrimTunerSampler, fraction_of
from trimtuner.integrations.optuna.distributions import parameter_of, value_at, value_within
from trimtuner.tuning.recipes import recipe_named

optuna.logging.set_verbosity(optuna.logging.WARNING)


@some.composite
def distributions(draw: some.DrawFn) -> CategoricalDistribution | FloatDistribution | IntDistribution:
    low, width = draw(some.integers(1, 50)), draw(some.integers(0, 500))
    kind = draw(some.sampled_from(["int", "step", "log int", "float", "float step", "log", "names", "numbers"]))
    if kind == "step":
        step = draw(some.integers(2, 30))
        return IntDistribution(low, low + step * width, step=step)
    if kind in ("int", "log int"):
        return IntDistribution(low, low + width, log=kind == "log int")
    if kind == "float step":
        step = draw(some.sampled_from([0.1, 0.25, 0.3, 1.0]))
        return FloatDistribution(float(low), low + round(step * width, 2), step=step)
    if kind in ("float", "log"):
        return FloatDistribution(low / 100, low / 100 + width, log=kind == "log")
    if kind == "names":
        return CategoricalDistribution(["adam", "sgd", True])
    return CategoricalDistribution([1 << number for number in range(width % 9 + 1)])


@given(distributions(), some.floats(0.0, 1.0, exclude_max=True))
def test_every_value_drawn_is_one_that_the_distribution_offers(distribution, unit):
    value = value_at("x", distribution, unit)
    assert distribution._contains(distribution.to_internal_repr(value))
    assert value_within("x", distribution, value) == value


@given(distributions())
def test_every_value_of_the_parameter_is_offered_after_rounding(distribution):
    parameter = parameter_of("x", distribution)
    listed = parameter.values if isinstance(parameter, tt.Choice) else [parameter.decode(u / 40) for u in range(41)]
    for value in listed:
        rounded = value_within("x", distribution, value)
        assert distribution._contains(distribution.to_internal_repr(rounded))


@pytest.mark.parametrize(
    ("distribution", "parameter"),
    [
        (IntDistribution(1, 9), tt.Int(1, 9)),
        (IntDistribution(1, 900, log=True), tt.Int(1, 900, scale="log")),
        (IntDistribution(2, 10, step=4), tt.Choice([2, 6, 10])),
        (IntDistribution(0, 1000, step=5), tt.Int(0, 1000)),  # too many to list
        (IntDistribution(3, 3), tt.Choice([3])),
        (FloatDistribution(0.1, 0.5), tt.Float(0.1, 0.5)),
        (FloatDistribution(1e-4, 1e-1, log=True), tt.Float(1e-4, 1e-1, scale="log")),
        (FloatDistribution(0.0, 1.0, step=0.5), tt.Choice([0.0, 0.5, 1.0])),
        (CategoricalDistribution(["adam", "sgd"]), tt.Choice(["adam", "sgd"])),
        (CategoricalDistribution([1, 2, 3]), tt.Choice([1, 2, 3])),
        (CategoricalDistribution([16, 32, 128]), tt.Choice([16, 32, 128], scale="log")),  # a factor of 8: in logs
    ],
)
def test_a_distribution_is_the_parameter_with_the_same_values(distribution, parameter):
    assert parameter_of("x", distribution) == parameter


@pytest.mark.parametrize(
    ("name", "distribution", "complaint"),
    [
        ("x", CategoricalDistribution([float("inf"), 1.0]), "the choices of 'x': a value must be finite"),
        ("model/x", IntDistribution(1, 2), "no name for a parameter"),
    ],
)
def test_what_a_parameter_cannot_be_is_refused_when_it_is_first_suggested(name, distribution, complaint):
    study = optuna.create_study(sampler=TrimTunerSampler())
    with pytest.raises(tt.InputError, match=complaint):
        study.optimize(lambda trial: trial._suggest(name, distribution), n_trials=1)


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (IntDistribution(0, 9), 10),
        (IntDistribution(0, 9), 2.5),
        (IntDistribution(0, 9), "2"),
        (FloatDistribution(0.0, 1.0), -0.1),
        (CategoricalDistribution(["a", "b"]), "c"),
    ],
)
def test_a_value_that_is_not_offered_is_refused(distribution, value):
    with pytest.raises(tt.InputError, match="not among what the objective suggests"):
        value_within("x", distribution, value)


def test_what_is_suggested_and_recommended_keeps_to_the_steps():
    sampler = TrimTunerSampler(fractions=[0.5, 1], method=recipe_named("random"))
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def job(trial: optuna.Trial) -> float:
        trial.set_user_attr("time", fraction_of(trial))
        return trial.suggest_int("x", 0, 1000, step=5) + trial.suggest_float("y", 0, 1, step=0.001)

    study.optimize(job, n_trials=6)
    configs = [*(trial.params for trial in study.trials), sampler.recommendation(study).config]
    assert len(configs) == 7
    for config in configs:
        assert config["x"] % 5 == 0
        assert config["y"] * 1000 == pytest.approx(round(config["y"] * 1000))
