"""The study: ask, tell, recommend, optimize, on jobs whose answers are known."""

import copy
import dataclasses
import itertools
import math
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.tuning import tuner

METHODS = ["trimtuner", "trimtuner-gp", "trimtuner-dt"]
FRACTIONS = [0.1, 0.5, 1.0]
PRICE = {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}  # USD per hour, by size


def priced_space(**changes):
    """Sizes 1 to 4, two modes, each size at its own price."""
    configurations = [{"size": size, "mode": mode} for size in PRICE for mode in ("sync", "async")]
    prices = [PRICE[configuration["size"]] for configuration in configurations]
    return tt.Space.from_configs(configurations, price_per_hour=prices, **{"fractions": FRACTIONS, **changes})


def job(config, fraction):
    """Larger sizes and 'async' are more accurate; an hour at full data, so that the cost in USD is the price."""
    accuracy = (0.5 + 0.1 * config["size"] + 0.03 * (config["mode"] == "async")) * fraction**0.1
    return {"accuracy": accuracy, "time": 3600.0 * fraction, "latency_ms": 10.0 * config["size"]}


def study_of(space=None, **settings):
    return tt.Study(space or priced_space(), **{"maximize": "accuracy", **settings})


def run(study, trials, function=job):
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, **function(trial.config, trial.fraction))
    return study


def exhausted(study, function=job):
    """The study when it has asked for everything there is."""
    while True:
        try:
            run(study, 1, function)
        except tt.SearchOver:
            return study


def fully_measured(space=None, function=job, method="trimtuner", **settings):
    """A study that knows everything: a history is a value, so the quickest method may gather it for any other."""
    space = space or priced_space()
    settings = settings if "minimize" in settings else {"maximize": "accuracy", **settings}
    study = tt.Study(space, method=method, **settings)
    study.history = exhausted(tt.Study(space, method="trimtuner-dt", **settings), function).history
    return study


def places(history):
    return [(tuple(sorted(config.items())), fraction) for config, fraction in history.tested()]


# --- ask and tell -----------------------------------------------------------------------------------------------------


def test_a_trial_has_a_number_a_configuration_and_a_fraction():
    study = study_of()
    trial = study.ask()
    assert trial.number == 0
    assert isinstance(trial.config, dict)
    study.problem.space.check(trial.config)
    assert trial.fraction in FRACTIONS
    assert trial.snapshots == ()


def test_telling_moves_money_and_history():
    study = study_of()
    trial = study.ask()
    study.tell(trial, accuracy=0.91, time=34.2)
    expected = 34.2 * PRICE[trial.config["size"]] / 3600
    assert study.spent == pytest.approx(expected)
    (outcome,) = study.history.outcomes
    assert outcome.trial == trial
    assert outcome.measurements[0].metrics == pytest.approx({"accuracy": 0.91, "time": 34.2, "cost": expected})
    assert study.history.pending == ()


def test_a_failure_is_charged_and_not_asked_again():
    study = study_of(tt.Space.from_configs([{"a": 1}, {"a": 2}], price_per_hour=[3600.0, 3600.0]))
    first = study.ask()
    study.tell(first, failed="oom", time=12.0)
    assert study.spent == pytest.approx(12.0)
    assert [outcome.failed for outcome in study.history.failures] == ["oom"]
    assert study.ask().config != first.config


def test_a_preempted_trial_is_charged_and_may_be_asked_again():
    study = study_of(tt.Space.from_configs([{"a": 1}, {"a": 2}], price_per_hour=[3600.0, 3600.0]))
    for _ in range(2):
        study.tell(study.ask(), accuracy=0.5, time=1.0)
    with pytest.raises(tt.SearchOver):
        study.ask()

    study = study_of(tt.Space.from_configs([{"a": 1}, {"a": 2}], price_per_hour=[3600.0, 3600.0]))
    study.tell(study.ask(), failed="preempted", time=5.0)
    assert study.spent == pytest.approx(5.0)
    asked = []
    for _ in range(2):
        trial = study.ask()
        asked.append(trial.config["a"])
        study.tell(trial, accuracy=0.5, time=1.0)
    assert sorted(asked) == [1, 2]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_asked_twice_and_everything_is_asked_once(method):
    study = exhausted(study_of(method=method))
    assert len(study.history.outcomes) == 8 * 3
    assert len(set(places(study.history))) == 8 * 3
    with pytest.raises(tt.SearchOver, match="nothing left to ask"):
        study.ask()


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(["tell", "fail", "wait"]), min_size=3, max_size=8))
def test_nothing_is_asked_twice_whatever_ends_well_fails_or_is_under_way(seed, fates):
    study = study_of(seed=seed)
    asked = []
    for fate in fates:
        trial = study.ask()
        asked.append((tuple(trial.config.items()), trial.fraction))
        if fate == "tell":
            study.tell(trial, **job(trial.config, trial.fraction))
        elif fate == "fail":
            study.tell(trial, failed="oom", time=1.0)
    assert len(set(asked)) == len(asked)


def test_several_trials_under_way_are_all_distinct():
    study = study_of()
    trials = [study.ask() for _ in range(6)]
    assert [trial.number for trial in trials] == list(range(6))
    assert len({(tuple(trial.config.items()), trial.fraction) for trial in trials}) == 6
    assert study.history.pending == tuple(trials)


@pytest.mark.parametrize("method", METHODS)
def test_several_trials_asked_of_a_model_are_all_distinct(method):
    study = run(study_of(method=method), 4)
    trials = [study.ask() for _ in range(8)]
    assert len({(tuple(trial.config.items()), trial.fraction) for trial in trials}) == 8
    assert not set(places(run(study_of(method=method), 4).history)) & {
        (tuple(sorted(trial.config.items())), trial.fraction) for trial in trials
    }


def test_trials_may_be_told_in_any_order():
    study = study_of()
    trials = [study.ask() for _ in range(4)]
    for trial in reversed(trials):
        study.tell(trial, **job(trial.config, trial.fraction))
    assert [outcome.trial.number for outcome in study.history.outcomes] == [3, 2, 1, 0]
    study.recommend()


def test_changing_what_was_asked_or_told_changes_nothing_in_the_study():
    study = study_of()
    trial = study.ask()
    before = study.history
    config = dict(trial.config)
    trial.config["size"] = 99
    assert study.history == before
    assert study.history.pending[0].config == config


# --- pure in the history ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("done", [0, 1, 7])
def test_asking_the_tuner_is_pure(method, done):
    study = run(study_of(method=method, constraints=["cost <= 2"]), done)
    before = study.history
    snapshot = copy.deepcopy(before)
    arguments = (study.problem, study.recipe, study.history, study.seed)
    assert tuner.ask(*arguments) == tuner.ask(*arguments) == study.ask()
    assert before == snapshot


@pytest.mark.parametrize("method", METHODS)
def test_two_studies_with_one_seed_are_identical(method):
    first, second = (run(study_of(method=method, seed=5, constraints=["cost <= 2"]), 12) for _ in range(2))
    assert first.history == second.history
    assert first.recommend() == second.recommend()


def test_a_study_goes_on_from_a_history_as_if_never_interrupted():
    whole = run(study_of(seed=3), 12)
    part = run(study_of(seed=3), 7)
    resumed = study_of(seed=3)
    resumed.history = pickle.loads(pickle.dumps(part.history))  # noqa: S301  (our own bytes)
    assert run(resumed, 5).history == whole.history


def test_recommending_changes_neither_the_history_nor_what_is_asked_next():
    study, other = run(study_of(seed=1), 6), run(study_of(seed=1), 6)
    before = study.history
    assert study.recommend() == study.recommend()
    assert study.history is before
    assert study.ask() == other.ask()


@pytest.mark.parametrize("storage", [None, "study.db"], ids=["in memory", "recorded"])
def test_a_belief_is_at_hand_until_something_happens(storage, tmp_path):
    study = study_of(storage=None if storage is None else tmp_path / storage)
    run(study, 2)
    assert study.belief_at_hand(study.history) is None
    study.recommend()
    known = study.belief_at_hand(study.history)
    assert known is not None
    assert study.recommend() == study.recommend()
    assert study.belief_at_hand(study.history) is known
    run(study, 1)
    assert study.belief_at_hand(study.history) is None


def test_seeds_differ():
    starts = {tuple(study_of(seed=seed).ask().config.items()) for seed in range(12)}
    assert len(starts) > 1


@settings(max_examples=8)
@given(st.integers(0, 2**64), st.integers(0, 5), st.sampled_from(METHODS))
def test_the_same_seed_and_history_ask_the_same(seed, done, method):
    first, second = (run(study_of(seed=seed, method=method), done) for _ in range(2))
    assert first.ask() == second.ask()


# --- recommend --------------------------------------------------------------------------------------------------------


def test_there_is_no_answer_before_anything_is_measured():
    study = study_of()
    with pytest.raises(tt.NoAnswer, match="nothing has been measured yet"):
        study.recommend()
    study.tell(study.ask(), failed="oom", time=1.0)
    study.ask()
    with pytest.raises(tt.NoAnswer):
        study.recommend()


@pytest.mark.parametrize(
    ("method", "constraints", "best"),
    [
        ("trimtuner", [], {"size": 4, "mode": "async"}),
        ("trimtuner-dt", ["cost <= 2"], {"size": 2, "mode": "async"}),  # an hour of size 2 costs exactly 2 USD
        ("trimtuner-gp", ["cost <= 3.5", "latency_ms <= 25"], {"size": 2, "mode": "async"}),
        ("trimtuner", ["cost <= 3.5", "latency_ms <= 40", "time <= 60min"], {"size": 3, "mode": "async"}),
        ("trimtuner-gp", ["latency_ms >= 15", "cost <= 2.5"], {"size": 2, "mode": "async"}),
        ("trimtuner-dt", ["cost <= 3.5", "latency_ms <= 40", "time <= 60min"], {"size": 3, "mode": "async"}),
    ],
)
def test_when_everything_is_measured_the_best_feasible_configuration_is_recommended(method, constraints, best):
    study = fully_measured(method=method, constraints=constraints)
    recommended = study.recommend()
    assert recommended.config == best
    assert recommended.fraction == 1.0
    assert recommended.is_measured
    assert recommended.is_feasible
    assert recommended.chance_feasible == 1.0
    assert recommended.feasible == dict.fromkeys(constraints, 1.0)
    assert recommended.accuracy == pytest.approx(job(best, 1.0)["accuracy"])
    assert recommended.accuracy.low == recommended.accuracy.high == recommended.accuracy.mean
    assert recommended.cost == pytest.approx(PRICE[best["size"]])
    assert recommended.time == pytest.approx(3600.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_least_cost_with_enough_accuracy_may_be_on_less_than_all_data(method):
    # accuracy = (0.5 + 0.1 size + 0.03 async) fraction^0.1, cost = size * fraction; enough is 0.7.
    cells = [({"size": s, "mode": m}, f) for s in PRICE for m in ("sync", "async") for f in FRACTIONS]
    feasible = [(PRICE[c["size"]] * f, c, f) for c, f in cells if job(c, f)["accuracy"] >= 0.7]
    cost, config, fraction = min(feasible, key=lambda one: one[0])
    assert fraction < 1

    study = fully_measured(minimize="cost", constraints=["accuracy >= 0.7"], method=method)
    best = study.recommend()
    assert (best.config["size"], best.fraction) == (config["size"], fraction)
    assert best.cost == pytest.approx(cost)
    assert best.accuracy >= 0.7


@pytest.mark.parametrize("method", METHODS)
def test_the_least_loss_is_at_full_data(method):
    def train(config, fraction):
        return {"loss": -config["size"] - fraction, "time": 60.0 * fraction}

    best = fully_measured(function=train, minimize="loss", method=method).recommend()
    assert (best.config["size"], best.fraction) == (4, 1.0)
    assert best.loss == -5.0


def test_where_nothing_is_feasible_the_recommendation_says_so():
    study = fully_measured(constraints=["cost <= 0.5"])  # the cheapest costs 1 USD at full data
    best = study.recommend()
    assert not best.is_feasible
    assert best.feasible == {"cost <= 0.5": 0.0}
    assert "least infeasible" in str(best)


@pytest.mark.parametrize("method", METHODS)
def test_a_recommendation_after_one_trial_is_a_configuration_of_the_space_with_sane_figures(method):
    study = run(study_of(method=method, constraints=["cost <= 2", "latency_ms <= 25"]), 1)
    best = study.recommend()
    study.problem.space.check(dict(best.config))
    assert best.fraction == 1.0
    assert 0.0 <= best.chance_feasible <= 1.0
    assert set(best.feasible) == {"cost <= 2", "latency_ms <= 25"}
    assert all(0.0 <= chance <= 1.0 for chance in best.feasible.values())
    for estimate in (best.accuracy, best.cost, best.time, best.latency_ms):
        assert estimate.low <= estimate.high
        assert math.isfinite(estimate.mean)
    assert 0.0 <= best.accuracy.low <= best.accuracy <= best.accuracy.high <= 1.0
    assert best.cost.low > 0
    assert best.time.low > 0


def test_a_recommendation_is_a_value_that_can_be_copied_stored_and_shown():
    best = run(study_of(constraints=["cost <= 2"]), 5).recommend()
    assert copy.deepcopy(best) == best
    again = pickle.loads(pickle.dumps(best))  # noqa: S301  (our own bytes)
    assert again == best
    assert (again.cost.low, again.cost.high) == (best.cost.low, best.cost.high)
    assert dataclasses.asdict(best)["estimates"]["cost"] == best.cost
    assert "size = " in str(best)
    assert "P(cost <= 2) = " in str(best)


def test_an_estimate_is_a_number_with_an_interval():
    estimate = tt.Estimate(2.0, 1.5, 3.0)
    assert estimate + 1 == 3.0
    assert (estimate.mean, estimate.low, estimate.high) == (2.0, 1.5, 3.0)
    assert repr(estimate) == "2 (1.5 to 3)"


def test_a_recommendation_without_an_estimate_says_which_it_has():
    best = run(study_of(), 4).recommend()
    with pytest.raises(AttributeError, match="no 'latency'; its estimates are accuracy, cost, time"):
        _ = best.latency


# --- budget -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_search_ends_before_its_budget_is_passed(method):
    space = tt.Space.from_configs([{"a": a} for a in range(20)], price_per_hour=[1.0] * 20)
    study = study_of(space, budget=10.0, method=method)  # every trial costs 1 USD
    with pytest.raises(tt.SearchOver, match="budget of 10 USD"):
        run(study, 20, lambda config, _: {"accuracy": 0.5 + 0.01 * config["a"], "time": 3600.0})
    assert 8.0 <= study.spent <= 10.0
    study.recommend()


def test_trials_under_way_count_against_the_budget():
    space = tt.Space.from_configs([{"a": a} for a in range(20)], price_per_hour=[1.0] * 20)
    study = run(study_of(space, budget=8.5), 4, lambda config, _: {"accuracy": 0.01 * config["a"], "time": 3600.0})
    with pytest.raises(tt.SearchOver, match="budget"):
        all(iter(study.ask, None))
    assert 3 <= len(study.history.pending) <= 4


def test_an_overspent_budget_ends_the_search_at_once():
    study = study_of(budget=1.0)
    study.tell(study.ask(), accuracy=0.5, cost=1.5)
    before = study.history
    with pytest.raises(tt.SearchOver, match=r"1 USD is spent"):
        study.ask()
    assert study.history == before


def test_failures_use_up_the_budget():
    study = study_of(budget=3.0)
    for _ in range(3):
        study.tell(study.ask(), failed="oom", cost=1.0)
    with pytest.raises(tt.SearchOver):
        study.ask()


def test_with_little_money_left_only_what_is_affordable_is_asked():
    # Known by now: full data costs 10 USD, a tenth of it 1 USD.
    def train(config, fraction):
        return {"accuracy": 0.1 * config["a"], "time": 3600.0 * fraction}

    space = tt.Space.from_configs([{"a": a} for a in range(10)], price_per_hour=[10.0] * 10, fractions=[0.1, 1])
    known = run(study_of(space, method="trimtuner-dt"), 8, train)
    assert {measurement.fraction for measurement in known.history.measurements} == {0.1, 1.0}
    study = study_of(space, budget=known.spent + 5.0)
    study.history = known.history
    exhausted(study, train)
    asked = [outcome.trial.fraction for outcome in study.history.outcomes[8:]]
    assert asked == [0.1] * len(asked)
    assert 3 <= len(asked) <= 5
    assert study.spent <= study.problem.budget


# --- optimize ---------------------------------------------------------------------------------------------------------


def test_optimize_runs_the_function_and_recommends():
    study = study_of(constraints=["cost <= 2"])
    best = study.optimize(job, trials=24)
    assert len(study.history.outcomes) == 24
    assert best == study.recommend()
    assert best.config == {"size": 2, "mode": "async"}


def test_optimize_ends_early_when_nothing_is_left():
    study = study_of()
    assert study.optimize(job, trials=100) is not None
    assert len(study.history.outcomes) == 24


def test_optimize_measures_time_unless_it_is_returned():
    def slow(config, _):
        time.sleep(0.02)
        return {"accuracy": 0.1 * config["size"]}

    study, began = study_of(), time.perf_counter()
    study.optimize(slow, trials=2)
    assert sum(outcome.time for outcome in study.history.outcomes) <= time.perf_counter() - began
    for outcome in study.history.outcomes:
        assert outcome.time >= 0.02
        assert outcome.cost == pytest.approx(outcome.time * PRICE[outcome.trial.config["size"]] / 3600)
    study.optimize(job, trials=1)
    assert study.history.outcomes[-1].time == 3600.0 * study.history.outcomes[-1].trial.fraction


def test_optimize_takes_time_from_a_returned_cost_where_prices_are_known_and_else_measures_it():
    priced, unpriced = study_of(), study_of(tt.Space({"size": tt.Choice([1, 2])}))
    began = time.perf_counter()
    for study in (priced, unpriced):
        study.optimize(lambda *_: {"accuracy": 0.5, "cost": 2.0}, trials=1)
    (outcome,) = priced.history.outcomes
    assert outcome.time == pytest.approx(2.0 * 3600 / PRICE[outcome.trial.config["size"]])
    assert 0 < unpriced.history.outcomes[0].time <= time.perf_counter() - began


def test_the_function_gets_a_configuration_of_its_own():
    def greedy(config, fraction):
        result = job(config, fraction)
        config.clear()
        return result

    study = study_of()
    study.optimize(greedy, trials=3)
    assert all(len(outcome.trial.config) == 2 for outcome in study.history.outcomes)


def test_an_exception_becomes_a_failed_trial_that_is_charged():
    def sometimes(config, fraction):
        if config["mode"] == "async":
            raise OSError("disk full")
        return job(config, fraction)

    study = study_of(tt.Space.from_configs([{"size": s, "mode": m} for s in PRICE for m in ("sync", "async")]))
    best = study.optimize(sometimes, trials=8)
    kinds = {outcome.trial.config["mode"]: outcome.failed for outcome in study.history.outcomes}
    assert kinds == {"sync": None, "async": "OSError"}
    assert best.config["mode"] == "sync"
    assert all(outcome.time > 0 for outcome in study.history.failures)


def fails_with(error, on):
    """A job that raises on the trials with these numbers."""
    count = itertools.count()

    def function(config, fraction):
        if next(count) in on:
            raise error
        return job(config, fraction)

    return function


class _PrivateError(Exception):
    pass


LONG_NAME = type("E" * 200, (Exception,), {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "oom"),
        (ValueError("bad"), "ValueError"),
        (_PrivateError(), "_PrivateError"),
        (LONG_NAME(), "E" * 64),
    ],
)
def test_the_kind_of_a_failure_is_the_name_of_the_exception(error, kind):
    study = study_of()
    study.optimize(fails_with(error, on={1}), trials=3)
    assert [outcome.failed for outcome in study.history.outcomes] == [None, kind, None]
    assert study.history.outcomes[1].cost > 0


def test_when_the_first_three_trials_all_raise_the_exception_passes_on():
    study = study_of()
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda *_: 1 / 0, trials=10)
    assert [outcome.failed for outcome in study.history.outcomes] == ["ZeroDivisionError"] * 3
    assert study.spent > 0
    assert study.history.pending == ()


def test_a_function_that_only_raised_is_mended_and_nothing_is_held_against_the_configurations():
    study = study_of(stop=tt.AfterTrials(4))
    with pytest.raises(ZeroDivisionError) as raised:
        study.optimize(lambda *_: 1 / 0, trials=10)
    first = [dict(outcome.trial.config) for outcome in study.history.outcomes]
    (note,) = raised.value.__notes__
    assert note.startswith("3 trials that failed before anything was measured are forgotten; their cost of ")
    assert study.history.failures == ()
    assert study.spent > 0
    study.optimize(job, trials=10)
    mended = study.history.outcomes[3:]
    assert [outcome.trial.number for outcome in mended] == [3, 4, 5, 6]  # all four trials are left
    assert [dict(outcome.trial.config) for outcome in mended[:3]] == first


def test_what_raises_where_it_was_forgotten_before_is_learnt_from():
    study = study_of()
    for held in (0, 3, 3):
        with pytest.raises(ZeroDivisionError):
            study.optimize(lambda *_: 1 / 0, trials=3)
        assert len(study.history.failures) == held
    assert len(study.history.outcomes) == 9


def test_once_something_was_measured_what_raises_is_learnt_from():
    study = run(study_of(), 1)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda *_: 1 / 0, trials=3)
    assert len(study.history.failures) == 3


def test_two_failures_before_a_success_pass_nothing_on():
    study = study_of()
    assert study.optimize(fails_with(ValueError(), on={0, 1, 3, 4, 5, 6}), trials=8) is not None
    assert len(study.history.failures) == 6


def test_a_loop_shorter_than_three_passes_on_its_last_exception():
    with pytest.raises(ValueError, match="only"):
        study_of().optimize(fails_with(ValueError("only"), on={0}), trials=1)


def test_an_interrupt_is_charged_as_a_preemption_and_passes_on():
    study = study_of()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(fails_with(KeyboardInterrupt(), on={2}), trials=5)
    assert [outcome.failed for outcome in study.history.outcomes] == [None, None, "preempted"]
    assert study.history.pending == ()
    assert not study.history.failures


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [(None, "returned None"), (0.9, r"returned 0\.9"), ({"acc": 0.9}, "no 'accuracy'"), ({"accuracy": 91}, "above 1")],
)
def test_a_function_that_returns_nonsense_ends_the_loop_with_its_trial_charged(returned, complaint):
    study = study_of()
    with pytest.raises(tt.InputError, match=complaint):
        study.optimize(lambda *_: returned, trials=5)
    assert [outcome.failed for outcome in study.history.outcomes] == ["bad metric"]
    assert study.history.pending == ()


# --- snapshots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["trimtuner-gp", "trimtuner-dt"])
def test_the_papers_design_is_one_run_with_snapshots_on_the_way(method):
    study = study_of(priced_space(snapshots=True), method=method)
    trial = study.ask()
    assert trial.fraction == 0.5  # the largest below full data
    assert trial.snapshots == (0.1,)


def test_snapshots_are_told_and_charged_once():
    study = study_of(priced_space(snapshots=True), method="trimtuner-gp")
    trial = study.ask()
    study.tell(
        trial,
        **job(trial.config, trial.fraction),
        snapshots={fraction: job(trial.config, fraction) for fraction in trial.snapshots},
    )
    assert [m.fraction for m in study.history.measurements] == [0.1, 0.5]
    assert study.spent == pytest.approx(0.5 * PRICE[trial.config["size"]])
    following = study.ask()
    assert (following.config, following.fraction) not in [(trial.config, 0.1), (trial.config, 0.5)]


@pytest.mark.parametrize("method", METHODS)
def test_with_snapshots_nothing_measured_is_asked_again_and_smaller_fractions_are_only_those_not_yet_known(method):
    study = study_of(priced_space(snapshots=True), method=method)
    known = set()
    for _ in range(8):
        trial = study.ask()
        config = tuple(trial.config.items())
        assert (config, trial.fraction) not in known
        assert all(fraction < trial.fraction and (config, fraction) not in known for fraction in trial.snapshots)
        smaller = {fraction: job(trial.config, fraction) for fraction in trial.snapshots}
        study.tell(trial, **job(trial.config, trial.fraction), snapshots=smaller)
        known |= {(config, fraction) for fraction in (trial.fraction, *trial.snapshots)}
    assert len(study.history.measurements) == len(known)


def test_snapshots_may_be_left_untold():
    study = study_of(priced_space(snapshots=True), method="trimtuner-gp")
    trial = study.ask()
    study.tell(trial, **job(trial.config, trial.fraction))
    assert len(study.history.measurements) == 1


# --- all kinds of spaces ----------------------------------------------------------------------------------------------


def test_without_prices_a_study_works_with_time_alone():
    space = tt.Space({"size": tt.Choice([1, 2, 3]), "mode": tt.Choice(["sync", "async"])}, fractions=[0.5, 1])
    study = exhausted(study_of(space, constraints=["time <= 1h"]))
    best = study.recommend()
    assert best.config == {"size": 3, "mode": "async"}
    assert best.time == 3600.0
    assert study.spent == 0
    assert "cost" not in best.estimates


def test_without_prices_a_cost_may_be_told_with_every_trial():
    space = tt.Space({"size": tt.Choice([1, 2, 3])}, fractions=[0.5, 1])
    study = study_of(space, constraints=["cost <= 2"])
    exhausted(study, lambda config, f: {"accuracy": 0.1 * config["size"], "cost": f * config["size"]})
    assert study.recommend().config == {"size": 2}
    assert study.spent == pytest.approx(1.5 * (1 + 2 + 3))


VMS = {
    "small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.1, spot_price_per_hour=0.03),
    "large": tt.VM(vcpus=4, memory_gib=16, price_per_hour=0.4, spot_price_per_hour=0.12),
}


@pytest.mark.parametrize("method", [METHODS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in METHODS[1:])])
def test_a_continuous_conditional_space_with_machines_runs_from_end_to_end(method):
    space = tt.Space(
        {
            "optimizer": tt.Choice(["adam", "sgd"]),
            "rate": tt.Float(1e-4, 1e-1, scale="log"),
            "momentum": tt.Float(0, 0.99, when="optimizer == 'sgd'"),
            "batch": tt.Int(16, 512, scale="log2"),
            "shards": tt.Int(1, 8, when="vm_count > 1"),
        },
        cloud=tt.Cloud(VMS, vm_count=[1, 2, 4], rule="vm_count * vcpus <= 8", market=["on_demand", "spot"]),
        fractions=[0.1, 0.5, 1],
    )

    def train(config, fraction):
        space.check(config)
        closeness = -abs(math.log10(config["rate"]) + 2.5) - 0.5 * (config["optimizer"] == "adam")
        speed = config["vm_count"] * VMS[config["vm_type"]].vcpus
        return {"accuracy": 1 / (1 + math.exp(-2 - closeness)) * fraction**0.05, "time": 1000 * fraction / speed}

    first, second = (
        tt.Study(space, maximize="accuracy", constraints=["cost <= 0.05", "time <= 20min"], method=method, seed=2)
        for _ in range(2)
    )
    best = first.optimize(train, trials=8)
    second.optimize(train, trials=8)
    assert first.history == second.history
    assert len(set(places(first.history))) == 8
    space.check(dict(best.config))
    assert best.fraction == 1.0


def test_a_continuous_search_closes_in_on_the_optimum():
    # accuracy = 1 - (x - 0.7)²: the best of 1024 even points would do; so should twenty well-chosen trials.
    study = study_of(tt.Space({"x": tt.Float(0, 1)}))
    best = study.optimize(lambda config, _: {"accuracy": 1 - (config["x"] - 0.7) ** 2, "time": 1.0}, trials=20)
    assert best.config["x"] == pytest.approx(0.7, abs=0.1)


def test_a_finite_conditional_space_finds_its_best_configuration():
    space = tt.Space({"kind": tt.Choice(["a", "b"]), "depth": tt.Choice([1, 2, 3], when="kind == 'b'")})
    study = exhausted(study_of(space), lambda config, _: {"accuracy": 0.2 + 0.2 * config.get("depth", 0), "time": 1.0})
    assert len(study.history.outcomes) == 4
    assert study.recommend().config == {"kind": "b", "depth": 3}


@pytest.mark.parametrize("method", METHODS)
def test_a_space_of_one_configuration_and_one_fraction_can_be_studied(method):
    study = exhausted(
        study_of(tt.Space({"only": tt.Choice([1])}), method=method), lambda *_: {"accuracy": 1, "time": 1}
    )
    assert study.recommend().config == {"only": 1}


def test_a_space_without_full_data_recommends_for_full_data_all_the_same():
    study = run(study_of(priced_space(fractions=[0.1, 0.5])), 6)
    best = study.recommend()
    assert best.fraction == 1.0
    assert not best.is_measured


def test_where_jobs_of_one_kind_fail_the_other_kind_is_recommended():
    study = study_of()
    while True:
        try:
            trial = study.ask()
        except tt.SearchOver:
            break
        if trial.config["size"] >= 3:
            study.tell(trial, failed="oom", time=10.0)
        else:
            study.tell(trial, **job(trial.config, trial.fraction))
    assert study.recommend().config == {"size": 2, "mode": "async"}


# --- before anything is measured --------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshots", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_trial_may_be_under_way_before_anything_is_measured(method, snapshots):
    study = study_of(priced_space(snapshots=snapshots), method=method)
    with pytest.raises(tt.SearchOver):
        all(iter(study.ask, "never"))
    under_way = [(tuple(configuration.items()), fraction) for configuration, fraction in study.history.tested()]
    assert len(under_way) == len(set(under_way)) == 8 * 3  # a snapshot counts as under way with its run


@pytest.mark.parametrize("method", METHODS)
def test_a_job_that_always_fails_is_tried_everywhere_and_then_the_search_is_over(method):
    study = study_of(method=method)

    def fail_once():
        study.tell(study.ask(), failed="oom", time=1.0)

    with pytest.raises(tt.SearchOver):
        any(iter(fail_once, "never"))
    assert len(study.history.failures) == 8 * 3


def test_a_function_may_return_snapshots_of_smaller_fractions_charged_with_the_run():
    study = study_of(priced_space(snapshots=True), method="trimtuner-gp")

    def train(config, fraction):
        snapshots = {smaller: job(config, smaller) for smaller in (0.1, 0.5) if smaller < fraction}
        return {**job(config, fraction), "snapshots": snapshots}

    study.optimize(train, trials=1)
    (outcome,) = study.history.outcomes
    assert [m.fraction for m in outcome.measurements] == [0.1, 0.5]
    assert study.spent == outcome.measurements[-1].metrics["cost"]


def test_snapshots_that_are_no_mapping_are_refused_and_the_time_is_charged():
    study = study_of(priced_space(snapshots=True))
    with pytest.raises(tt.InputError, match="snapshots"):
        study.optimize(lambda config, fraction: {**job(config, fraction), "snapshots": 3}, trials=1)
    assert study.history.outcomes[0].failed == "bad metric"
