"""Bad input: a clear error that says what, where and what now, and the study as it was before."""

import copy
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtuner as tt

CONFIGURATIONS = [{"a": a} for a in range(1, 7)]


def space(**changes):
    return tt.Space.from_configs(
        CONFIGURATIONS, price_per_hour=[1.0] * 6, **{"fractions": [0.1, 0.5, 1.0], "snapshots": True, **changes}
    )


def study_under_way(done=4, **changes):
    """A study with some trials told and two pending."""
    study = tt.Study(space(), **{"maximize": "accuracy", "constraints": ["cost <= 1", "latency_ms <= 40"], **changes})
    for _ in range(done):
        trial = study.ask()
        study.tell(trial, accuracy=0.1 * trial.config["a"], time=100.0 * trial.fraction, latency_ms=10.0)
    study.ask()
    study.ask()
    return study


GOOD = {"accuracy": 0.9, "time": 30.0, "latency_ms": 12.0}


STUDY = functools.cache(study_under_way)


@pytest.fixture
def study():
    return copy.deepcopy(STUDY())


@pytest.fixture
def trial(study):
    return study.history.pending[0]


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"accuracy": 0.9, "time": 30.0}, "reports no 'latency_ms', which the goal or a constraint is about"),
        (
            {**GOOD, "accuracy": math.nan},
            "accuracy=nan is not finite; if the training diverged, tell failed='diverged'",
        ),
        ({**GOOD, "accuracy": math.inf}, "accuracy=inf is not finite"),
        ({**GOOD, "latency_ms": -math.inf}, "latency_ms=-inf is not finite"),
        ({**GOOD, "accuracy": -0.2}, "accuracy=-0.2 is below 0; accuracy is a share from 0 to 1"),
        ({**GOOD, "time": -30.0}, "time=-30 must be above 0 seconds"),
        ({**GOOD, "time": 0}, "time=0 must be above 0 seconds"),
        ({**GOOD, "time": math.nan}, "time=nan is not finite"),
        ({**GOOD, "cost": -1.0}, "cost=-1 must be above 0 USD"),
        ({**GOOD, "cost": math.inf}, "cost=inf is not finite"),
        ({**GOOD, "accuracy": 91.0}, "accuracy=91 is above 1; accuracy is a share from 0 to 1, so 91 % is 0.91"),
        ({**GOOD, "accuracy": "high"}, "accuracy='high' is not a number"),
        ({**GOOD, "accuracy": "0.9"}, "accuracy='0.9' is not a number"),
        ({**GOOD, "accuracy": None}, "accuracy=None is not a number"),
        ({**GOOD, "accuracy": True}, "accuracy=True is not a number"),
        ({**GOOD, "accuracy": np.array([0.1, 0.2])}, "is not a number"),
        ({"accuracy": 0.9, "latency_ms": 12.0}, "neither time= (seconds) nor cost= (USD)"),
        ({}, "reports no 'accuracy'"),
        ({"failed": "oom"}, "neither time= (seconds) nor cost= (USD)"),
        ({"failed": "oom", "accuracy": 0.3, "time": 3}, "failed, so it has no 'accuracy'; tell only time= or cost="),
        ({"failed": "oom", "time": math.nan}, "time=nan is not finite"),
        ({"failed": "oom", "time": -1}, "time=-1 must be above 0 seconds"),
        ({"failed": "", "time": 1}, "must name the kind of failure"),
        ({"failed": 137, "time": 1}, "must name the kind of failure"),
        ({**GOOD, "snapshots": {0.3: GOOD}}, "fraction 0.3 is none of those offered"),
        ({**GOOD, "snapshots": {0: GOOD}}, "fraction 0.0 is none of those offered"),
        ({**GOOD, "snapshots": {1.0: GOOD}}, "is not on the way to the trial's fraction"),
        ({**GOOD, "snapshots": {"0.1": GOOD}}, "a number, not '0.1'"),
        ({**GOOD, "snapshots": [0.1]}, "must be a dict"),
    ],
)
def test_a_report_that_cannot_be_used_leaves_the_study_as_it_was(study, trial, told, complaint):
    before = study.history
    with pytest.raises(tt.InputError) as caught:
        study.tell(trial, **told)
    assert complaint in str(caught.value)
    assert study.history == before
    study.tell(trial, **GOOD)
    assert len(study.history.outcomes) == len(before.outcomes) + 1


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from(["accuracy", "time", "cost", "latency_ms", "loss"]),
        st.floats() | st.integers() | st.sampled_from(["1", None, True, 1j, [], b""]),
    )
)
def test_whatever_is_told_is_taken_whole_or_refused_whole(metrics):
    study = tt.Study(space(), maximize="accuracy", constraints=["latency_ms <= 40"])
    trial = study.ask()
    before = study.history
    try:
        study.tell(trial, **metrics)
    except tt.InputError:
        assert study.history == before
        return
    (measurement,) = study.history.measurements
    assert all(math.isfinite(value) for value in measurement.metrics.values())
    assert measurement.metrics.keys() >= {"accuracy", "latency_ms", "time", "cost"}
    assert measurement.metrics["time"] > 0
    assert measurement.metrics["cost"] > 0
    assert 0 <= measurement.metrics["accuracy"] <= 1
    assert study.spent > 0


def test_telling_twice_is_refused(study, trial):
    study.tell(trial, **GOOD)
    before = study.history
    with pytest.raises(tt.InputError, match="trial 4 was told already; a trial is told once"):
        study.tell(trial, **GOOD)
    with pytest.raises(tt.InputError, match="told already"):
        study.tell(trial, failed="oom", time=1.0)
    assert study.history == before


def test_a_trial_that_failed_cannot_be_told_again(study, trial):
    study.tell(trial, failed="oom", time=1.0)
    before = study.history
    with pytest.raises(tt.InputError, match="told already"):
        study.tell(trial, **GOOD)
    assert study.history == before


def test_a_trial_of_another_study_is_refused(study):
    before = study.history
    unknown = tt.Trial(99, {"a": 1}, 0.1)
    with pytest.raises(tt.InputError, match="trial 99 was not asked by this study; tell takes what ask returned"):
        study.tell(unknown, **GOOD)
    for pending in study.history.pending:
        other = tt.Trial(pending.number, {"a": pending.config["a"] % 6 + 1}, pending.fraction)
        with pytest.raises(tt.InputError, match="is of another study: its configuration or fraction differs"):
            study.tell(other, **GOOD)
        other = tt.Trial(pending.number, dict(pending.config), pending.fraction / 2)
        with pytest.raises(tt.InputError, match="is of another study"):
            study.tell(other, **GOOD)
    assert study.history == before


def test_a_trial_of_a_study_with_another_seed_is_refused():
    others = [tt.Study(space(), maximize="accuracy", seed=seed) for seed in range(1, 9)]
    study = tt.Study(space(), maximize="accuracy", seed=0)
    own = study.ask()
    foreign = next(trial for trial in (other.ask() for other in others) if trial.config != own.config)
    before = study.history
    with pytest.raises(tt.InputError, match="of another study"):
        study.tell(foreign, accuracy=0.5, time=1.0)
    assert study.history == before


@pytest.mark.parametrize("wrong", [None, 0, {"a": 1}, "trial 0"])
def test_what_is_no_trial_is_refused(study, wrong):
    before = study.history
    with pytest.raises(tt.InputError, match="tell takes a trial that ask returned"):
        study.tell(wrong, **GOOD)
    assert study.history == before


def test_without_prices_all_trials_must_report_alike():
    study = tt.Study(tt.Space({"a": tt.Choice([1, 2, 3])}), maximize="accuracy")
    study.tell(study.ask(), accuracy=0.5, cost=1.0)
    trial = study.ask()
    before = study.history
    with pytest.raises(tt.InputError, match="reports no cost=, as earlier trials did"):
        study.tell(trial, accuracy=0.5, time=1.0)
    assert study.history == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"function": None, "trials": 3}, "optimize takes a function"),
        ({"function": {"accuracy": 1}, "trials": 3}, "optimize takes a function"),
        ({"function": lambda *_: {}, "trials": 0}, "trials=0 must be a whole number from 1"),
        ({"function": lambda *_: {}, "trials": -1}, "trials=-1 must be"),
        ({"function": lambda *_: {}, "trials": 2.5}, "trials=2.5 must be"),
        ({"function": lambda *_: {}, "trials": "3"}, "trials='3' must be"),
        ({"function": lambda *_: {}, "trials": True}, "trials=True must be"),
    ],
)
def test_a_loop_that_cannot_be_run_is_refused_before_it_starts(study, arguments, complaint):
    before = study.history
    with pytest.raises(tt.InputError, match=complaint):
        study.optimize(**arguments)
    assert study.history == before


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"method": "trimtunner"}, r"method 'trimtunner' is none of trimtuner, .*; did you mean 'trimtuner'\?"),
        ({"method": "trimtuner-gpp"}, r"did you mean 'trimtuner-gp'\?"),
        ({"method": "random forest"}, "is none of trimtuner"),
        ({"method": None}, "must be the name of a method"),
        ({"method": ["trimtuner"]}, "must be the name of a method"),
        ({"method": 3}, "must be the name of a method"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0"),
        ({"seed": 1.5}, "seed=1.5 must be"),
        ({"seed": "0"}, "seed='0' must be"),
        ({"seed": True}, "seed=True must be"),
        ({"seed": None}, "seed=None must be"),
        ({"budget": 0}, "budget=0 must be an amount of USD above 0"),
        ({"budget": -5}, "budget=-5 must be"),
        ({"budget": math.nan}, "budget=nan must be"),
        ({"budget": "25 USD"}, "budget='25 USD' must be"),
        ({"maximize": None}, "give a goal"),
        ({"minimize": "accuracy"}, "cannot be both large and small"),
        ({"maximize": "cost", "minimize": "time"}, "cost is to be small"),
        ({"maximize": 3}, "3 is no name for a metric"),
        ({"maximize": "top-5"}, "'top-5' is no name for a metric"),
        ({"constraints": "cost <= 1"}, "write a list"),
        ({"constraints": [("cost", 1)]}, "a constraint is a text such as"),
        ({"constraints": [None]}, "a constraint is a text such as"),
        ({"constraints": 1}, "must be a list of texts"),
        ({"constraints": ["cost <= 1 EUR"]}, "unknown unit 'EUR'; cost takes usd"),
        ({"constraints": ["time <= 20 mins"]}, r"unknown unit 'mins'.*did you mean 'min'\?"),
        ({"constraints": ["time <= twenty"]}, "'twenty' is not a number"),
        ({"constraints": ["cheap"]}, "is not of the form 'metric <= number'"),
        ({"constraints": ["time <= 1min", "time >= 2min"]}, "'time <= 1min' and 'time >= 2min' cannot both hold"),
        ({"constraints": ["accuracy >= 85"]}, "accuracy is a share; 85 % is 0.85"),
        ({"constraints": ["cost <= 0"]}, "can never hold: cost is above 0"),
    ],
)
def test_a_study_that_cannot_be_meant_is_refused(settings, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        tt.Study(space(), **{"maximize": "accuracy", **settings})


@pytest.mark.parametrize("wrong", [None, {"a": [1, 2]}, [{"a": 1}], "mnist"])
def test_a_study_needs_a_space(wrong):
    with pytest.raises(tt.InputError, match=r"a study needs a tt\.Space"):
        tt.Study(wrong, maximize="accuracy")


VM = tt.VM(vcpus=2, memory_gib=4, price_per_hour=0.1)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tt.Space({}), "the space is empty; give parameters, a cloud, or both"),
        (lambda: tt.Space.from_configs([]), "the list of configurations is empty; there is nothing to choose from"),
        (
            lambda: tt.Cloud({"a": VM}, vm_count=[1, 3], rule="vm_count * vcpus == 5"),
            "is true for no pair of 1 VM types",
        ),
        (lambda: space(fractions=[0, 1]), "fraction 0 is outside (0, 1]; it is the share of the data to train on"),
        (lambda: space(fractions=[50, 100]), "fraction 50 is outside (0, 1]"),
        (lambda: space(fractions=[math.nan]), "fraction nan is outside (0, 1]"),
        (lambda: space(fractions=[-0.5, 1]), "fraction -0.5 is outside (0, 1]"),
        (
            lambda: tt.Space.from_configs([{"a": 1}, {"a": 2}, {"a": 1}]),
            "configurations 0 and 2 are the same: {'a': 1}; remove one",
        ),
        (lambda: tt.Space({"a": tt.Choice([1, 1])}), "the value 1 is listed twice"),
        (lambda: tt.VM(vcpus=1, memory_gib=1, price_per_hour=-1), "price_per_hour=-1 must be"),
        (
            lambda: tt.Space.from_configs([{"a": 1}, {"a": 2}], price_per_hour=[1, 0]),
            "price_per_hour of configuration 1 is 0; it must be above 0 USD per hour",
        ),
        (lambda: tt.Cloud({"a": VM}, market="spot"), "'a' has no spot_price_per_hour; give it in tt.VM"),
        (lambda: tt.Cloud({"a": VM}, vm_types=["b"]), "vm_types names 'b', which is no known VM type"),
        (lambda: tt.Cloud(catalog="aws", vm_types=["t2.smal"]), "did you mean 't2.small'?"),
    ],
)
def test_what_describes_nothing_is_refused_with_what_to_do(make, complaint):
    with pytest.raises(tt.InputError) as caught:
        make()
    assert complaint in str(caught.value)


def test_every_error_of_input_is_also_a_value_error():
    with pytest.raises(ValueError, match="the space is empty"):
        tt.Space({})


def test_an_ask_that_raises_leaves_the_study_as_it_was():
    study = tt.Study(tt.Space({"a": tt.Choice([1, 2]), "b": tt.Choice([1, 2], when="a")}), maximize="accuracy")
    before = study.history
    with pytest.raises(tt.InputError, match="compare it with something"):
        study.ask()
    assert study.history == before
