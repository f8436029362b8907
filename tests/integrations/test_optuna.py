"""The Optuna sampler, against Optuna."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from pathlib import Path

import digits_job
import optuna
import pytest
from optuna.trial import TrialState

import trimtuner as tt
from trimtuner.integrations.optuna import TrimTunerSampler, fraction_of
from trimtuner.integrations.optuna.trials import history_of
from trimtuner.problem.problem import Problem
from trimtuner.tuning.recipe import WhereTested
from trimtuner.tuning.recipes import recipe_named

optuna.logging.set_verbosity(optuna.logging.WARNING)

FRACTIONS = [0.25, 1]


def sampler_for_digits(seed: int = 0) -> TrimTunerSampler:
    table = digits_job.digits()
    return TrimTunerSampler(space=table.space, constraints=table.constraints, metric="accuracy", seed=seed)


def study_of(sampler: TrimTunerSampler, **more: object) -> optuna.Study:
    return optuna.create_study(direction="maximize", sampler=sampler, **more)


RANDOM = recipe_named("random").but(tests=WhereTested.ANYWHERE)  # the mechanics do not hang on the method


def random_sampler(**more: object) -> TrimTunerSampler:
    return TrimTunerSampler(**{"fractions": FRACTIONS, "method": RANDOM, **more})


def small_job(trial: optuna.Trial) -> float:
    x, y = trial.suggest_int("x", 0, 9), trial.suggest_categorical("y", ["a", "b"])
    trial.set_user_attr("time", 10.0 * fraction_of(trial))
    return fraction_of(trial) * (x + (y == "b"))


def places(study: optuna.Study) -> list[tuple[object, ...]]:
    return [(*sorted(trial.params.items()), trial.user_attrs["fraction"]) for trial in study.trials]


def problem_of(space: tt.Space, constraints: list[str] | None = None) -> Problem:
    return tt.Study(space, maximize="value", constraints=constraints or []).problem


SMALL_SPACE = tt.Space({"x": tt.Int(0, 9), "y": tt.Choice(["a", "b"])}, fractions=FRACTIONS)


# What it is for


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_the_best_feasible_configuration_is_found_where_random_sampling_is_still_far_from_it(seed):
    table = digits_job.digits()
    sampler = TrimTunerSampler(
        fractions=table.space.fractions, constraints=table.constraints, metric="accuracy", seed=seed
    )
    study = study_of(sampler)
    study.optimize(digits_job.train, n_trials=25)
    best = sampler.recommendation(study)
    found = table.cell({name: best.config[name] for name in table.space.names}, 1.0)
    assert digits_job.is_within_limits(found.metrics["cost"])
    assert sampler.as_study(study).spent == pytest.approx(digits_job.spent(study))
    assert found.metrics["accuracy"] >= 0.97 * digits_job.best_accuracy()
    others = [accuracy_by_random_sampling(digits_job.spent(study), seed) for seed in range(20)]
    assert sum(others) / len(others) < 0.85 * found.metrics["accuracy"]


def accuracy_by_random_sampling(budget: float, seed: int) -> float:
    """The best within the limits that Optuna's random sampler has measured when so much is spent."""
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed))
    study.optimize(digits_job.train_on_all_data, n_trials=1)
    while digits_job.spent(study) < budget:
        study.optimize(digits_job.train_on_all_data, n_trials=1)
    return max((t.value for t in study.trials if digits_job.is_within_limits(t.user_attrs["cost"])), default=0.0)


def test_it_asks_what_a_study_of_ours_asks():
    table = digits_job.digits()
    theirs = study_of(sampler_for_digits(seed=3))
    theirs.optimize(digits_job.train, n_trials=8)
    ours = tt.Study(table.space, maximize="accuracy", constraints=table.constraints, seed=3)
    for trial in theirs.trials:
        asked = ours.ask()
        assert (trial.params, trial.user_attrs["fraction"]) == (asked.config, asked.fraction)
        ours.tell_report(asked, table.cell(asked.config, asked.fraction).metrics, {})


# Optuna's own views


def test_best_trial_is_the_best_within_the_limits_on_all_of_the_data():
    sampler = random_sampler(constraints=["cost <= 5"], fractions=[0.25, 0.5, 1])
    study = study_of(sampler)

    def job(trial: optuna.Trial) -> float:
        value = small_job(trial)
        trial.set_user_attr("cost", fraction_of(trial) * (trial.params["x"] + 1))
        return value

    study.optimize(job, n_trials=30)
    by_hand = [t for t in study.trials if t.user_attrs["fraction"] == 1 and t.user_attrs["cost"] <= 5]
    assert study.best_value == max(t.value for t in by_hand)
    assert study.best_trial.number in {t.number for t in by_hand}
    assert study.best_value < max(t.value for t in study.trials)  # some broke the limit, and were better


def test_a_trial_says_by_how_much_it_breaks_each_limit():
    study = study_of(random_sampler(constraints=["cost <= 3", "latency_ms >= 7"]))

    def job(trial: optuna.Trial) -> float:
        trial.set_user_attr("cost", 5.0)
        trial.set_user_attr("latency_ms", 9.0)
        return small_job(trial)

    study.optimize(job, n_trials=1)
    trial = study.trials[0]
    expected = {"cost <= 3": 2.0, "latency_ms >= 7": -2.0, "fraction >= 1": 0.75}
    assert trial.constraints == expected


def test_where_the_least_cost_is_wanted_any_share_of_the_data_is_an_answer():
    sampler = random_sampler(constraints=["accuracy >= 0.5"], metric="cost")
    study = optuna.create_study(direction="minimize", sampler=sampler)

    def job(trial: optuna.Trial) -> float:
        trial.set_user_attr("accuracy", 0.9)
        return 1.0 + small_job(trial)

    study.optimize(job, n_trials=6)
    assert "fraction >= 1" not in study.trials[0].constraints
    assert study.best_value == min(trial.value for trial in study.trials)


def test_a_recommendation_that_is_enqueued_runs_on_all_of_the_data():
    sampler = random_sampler()
    study = study_of(sampler)
    study.optimize(small_job, n_trials=4)
    best = sampler.recommendation(study)
    study.enqueue_trial(dict(best.config))
    study.optimize(small_job, n_trials=1)
    assert study.trials[-1].params == best.config
    assert study.trials[-1].user_attrs["fraction"] == 1.0


def test_an_enqueued_trial_may_name_its_share_of_the_data():
    study = study_of(random_sampler())
    study.enqueue_trial({"x": 3, "y": "a"}, user_attrs={"fraction": 0.25})
    study.optimize(small_job, n_trials=1)
    assert study.trials[0].value == 0.25 * 3


def test_an_enqueued_trial_outside_of_the_space_is_refused_before_it_runs():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    study.enqueue_trial({"x": 3, "y": "c"})
    with pytest.raises(tt.InputError, match="'c' is not one of"):
        study.optimize(lambda _: pytest.fail("it ran"), n_trials=1)


# Everything is in the trials


def test_two_samplers_on_the_same_trials_propose_the_same():
    first = study_of(sampler_for_digits())
    first.optimize(digits_job.train, n_trials=5)
    second = study_of(sampler_for_digits())
    second.add_trials(first.trials)
    for study in (first, second):
        trial = study.ask()
        digits_job.suggest(trial)
    assert first.trials[-1].params == second.trials[-1].params
    assert first.trials[-1].user_attrs == second.trials[-1].user_attrs


def test_a_sampler_that_was_pickled_proposes_the_same():
    first = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    first.optimize(small_job, n_trials=3)
    second = study_of(pickle.loads(pickle.dumps(first.sampler)))  # noqa: S301  (our own)
    second.add_trials(first.trials)
    for study in (first, second):
        study.optimize(small_job, n_trials=2)
    assert places(first) == places(second)


def test_a_study_that_is_resumed_goes_on_as_if_it_had_never_stopped(tmp_path: Path):
    whole = study_of(random_sampler())
    whole.optimize(small_job, n_trials=8)
    address = f"sqlite:///{tmp_path / 'study.db'}"
    for _ in range(2):
        part = study_of(random_sampler(), storage=address, study_name="study", load_if_exists=True)
        part.optimize(small_job, n_trials=4)
    assert places(part) == places(whole)


def test_parallel_trials_never_measure_the_same_twice():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    study.optimize(small_job, n_trials=30, n_jobs=5)
    assert len(study.trials) == 30
    assert len(set(places(study))) == 30


@pytest.mark.slow
def test_processes_on_one_storage_never_measure_the_same_twice(tmp_path: Path):
    address = f"sqlite:///{tmp_path / 'study.db'}"
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None), storage=address, study_name="study")
    script = (
        "import sys, optuna, test_optuna as here\n"
        "sampler = here.random_sampler(space=here.SMALL_SPACE, fractions=None)\n"
        "study = optuna.load_study(study_name='study', storage=sys.argv[1], sampler=sampler)\n"
        "study.optimize(here.small_job, n_trials=12)\n"
    )
    command = [sys.executable, "-c", script, address]
    workers = [subprocess.Popen(command, cwd=Path(__file__).parent) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert len(set(places(study))) == len(study.trials) == 36


def test_trials_of_another_sampler_are_learnt_from():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))

    def job(trial: optuna.Trial) -> float:
        trial.set_user_attr("time", 10.0)
        return float(trial.suggest_int("x", 0, 9) + (trial.suggest_categorical("y", ["a", "b"]) == "b"))

    study.optimize(job, n_trials=4)
    history = history_of(problem_of(SMALL_SPACE), study.trials, 4)
    assert [outcome.measurements[0].metrics["value"] for outcome in history.outcomes] == [t.value for t in study.trials]
    assert {measurement.fraction for measurement in history.measurements} == {1.0}


def test_a_trial_that_reports_too_little_is_charged_and_teaches_nothing():
    study = study_of(random_sampler())
    study.optimize(small_job, n_trials=2)
    with pytest.warns(UserWarning, match="2 trials of the study teach nothing, the last trial 1: .*'latency_ms'"):
        history = history_of(problem_of(SMALL_SPACE, ["latency_ms <= 9"]), study.trials, 2)
    assert not history.measurements
    assert not history.failures
    assert [outcome.time for outcome in history.outcomes] == [t.user_attrs["time"] for t in study.trials]


def test_before_any_trial_has_ended_there_is_no_answer():
    sampler = random_sampler()
    study = study_of(sampler)
    study.ask()
    with pytest.raises(tt.NoAnswer, match="no trial of this study has ended yet"):
        sampler.recommendation(study)


# What goes wrong


def test_failures_are_told_with_their_kind():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))

    def job(trial: optuna.Trial) -> float:
        small_job(trial)
        if trial.number == 0:
            trial.set_user_attr("failed", "oom")
            raise MemoryError
        if trial.number == 1:
            raise RuntimeError
        if trial.number == 2:
            raise optuna.TrialPruned
        return math.inf if trial.number == 3 else 1.0

    study.optimize(job, n_trials=5, catch=(MemoryError, RuntimeError))
    history = history_of(problem_of(SMALL_SPACE), study.trials, 5)
    assert [outcome.failed for outcome in history.outcomes] == ["oom", "failed", "pruned", "diverged", None]
    assert [outcome.time for outcome in history.outcomes] == [t.user_attrs["time"] for t in study.trials]


def test_a_trial_whose_process_died_is_nobodys_fault():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    lost = study.ask()
    lost.suggest_int("x", 0, 9)
    study._storage.set_trial_state_values(lost._trial_id, TrialState.FAIL)  # as Optuna does when a heartbeat stops
    history = history_of(problem_of(SMALL_SPACE), study.trials, 1)
    assert [outcome.failed for outcome in history.outcomes] == ["preempted"]
    assert not history.failures


def test_a_trial_under_way_is_pending_with_all_that_was_chosen_for_it():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    trial = study.ask()  # nothing is suggested yet
    (pending,) = history_of(problem_of(SMALL_SPACE), study.trials, 1).pending
    assert pending.config == {"x": trial.suggest_int("x", 0, 9), "y": trial.suggest_categorical("y", ["a", "b"])}
    assert pending.fraction == fraction_of(trial)


def test_a_metric_that_is_missing_is_named_and_the_study_can_go_on():
    study = study_of(random_sampler(constraints=["latency_ms <= 9"]))
    with pytest.raises(tt.InputError, match="trial 0 reports no 'latency_ms'"):
        study.optimize(small_job, n_trials=3)

    def mended(trial: optuna.Trial) -> float:
        trial.set_user_attr("latency_ms", 1.0)
        return small_job(trial)

    with pytest.warns(UserWarning, match="1 trials of the study teach nothing, the last trial 0"):
        study.optimize(mended, n_trials=2)
    assert len(study.trials) == 3


def test_several_objectives_are_refused_and_no_trial_is_left_running():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=random_sampler())
    with pytest.raises(tt.InputError, match="one objective, but the study has 2"):
        study.optimize(lambda trial: (trial.number, 2.0), n_trials=1)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


def test_what_the_space_offers_and_the_objective_does_not_is_refused():
    study = study_of(random_sampler(space=tt.Space({"x": tt.Choice([11, 12])}), fractions=None))
    with pytest.raises(tt.InputError, match=r"x=1[12] of the space is not among what the objective suggests"):
        study.optimize(lambda trial: trial.suggest_int("x", 0, 9), n_trials=1)


def test_what_the_objective_suggests_and_the_space_does_not_have_is_refused():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    with pytest.raises(tt.InputError, match="suggests 'z', but the space has here only x, y"):
        study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=1)


@pytest.mark.filterwarnings("ignore:'x1' is not suggested alike")  # that is what is refused here
def test_trials_without_a_parameter_in_common_are_refused():
    study = study_of(random_sampler())
    with pytest.raises(tt.InputError, match="no parameter in common"):
        study.optimize(lambda trial: trial.suggest_float(f"x{trial.number}", 0, 1), n_trials=3)


def test_a_parameter_of_some_trials_only_is_chosen_at_random_and_that_is_said():
    study = study_of(random_sampler())

    def job(trial: optuna.Trial) -> float:
        if trial.number != 1:
            trial.suggest_float("momentum", 0, 1)
        return small_job(trial)

    study.optimize(job, n_trials=2)
    with pytest.warns(UserWarning, match="'momentum' is not suggested alike in every trial"):
        study.optimize(job, n_trials=1)
    assert 0 <= study.trials[2].params["momentum"] <= 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"constraints": ["cost < = 3"]}, "the constraint"),
        ({"fractions": [0, 1]}, "outside"),
        ({"method": "trimtunner"}, "did you mean 'trimtuner'"),
        ({"space": SMALL_SPACE, "fractions": [0.5, 1]}, "a tt.Space has its own"),
        ({"space": SMALL_SPACE.with_snapshots(True)}, "snapshots"),
    ],
)
def test_wrong_words_are_refused_at_once(words: dict[str, object], complaint: str):
    with pytest.raises(tt.InputError, match=complaint):
        TrimTunerSampler(**words)


# Money


CLOUD = tt.Cloud(
    {
        "small": tt.VM(vcpus=2, memory_gib=4, price_per_hour=0.05),
        "large": tt.VM(vcpus=4, memory_gib=8, price_per_hour=0.12),
    },
    vm_count=range(1, 5),
    rule="vm_count * vcpus <= 8",
)


def rented_job(trial: optuna.Trial) -> float:
    vm_type = trial.suggest_categorical("vm_type", ["small", "large"])
    vm_count = trial.suggest_int("vm_count", 1, 4)
    trial.set_user_attr("time", 3600.0 * fraction_of(trial))
    return trial.suggest_float("x", 0, 1) * vm_count * (2 if vm_type == "large" else 1)


def test_machines_keep_to_the_rule_of_the_cloud_and_cost_follows_from_their_price():
    sampler = TrimTunerSampler(fractions=FRACTIONS, cloud=CLOUD, method=RANDOM, constraints=["cost <= 0.1"])
    study = study_of(sampler)
    study.optimize(rented_job, n_trials=12)
    for trial in study.trials:
        vcpus, price = {"small": (2, 0.05), "large": (4, 0.12)}[trial.params["vm_type"]]
        assert trial.params["vm_count"] * vcpus <= 8
        cost = trial.user_attrs["fraction"] * trial.params["vm_count"] * price
        assert trial.constraints["cost <= 0.1"] == pytest.approx(cost - 0.1)


def test_the_loop_ends_by_itself_when_the_budget_is_spent():
    study = study_of(TrimTunerSampler(fractions=FRACTIONS, cloud=CLOUD, budget=0.2))
    study.optimize(rented_job, n_trials=100)
    spent = [
        CLOUD.vms[t.params["vm_type"]].price_per_hour * t.params["vm_count"] * t.user_attrs["fraction"]
        for t in study.trials
        if t.state is TrialState.COMPLETE
    ]
    assert len(study.trials) < 100
    assert sum(spent) <= 0.2
    with pytest.raises(tt.SearchOver):
        study.ask()
    assert TrialState.RUNNING not in {trial.state for trial in study.trials}


def test_the_loop_ends_by_itself_when_everything_is_tested():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    study.optimize(small_job, n_trials=100)
    assert sum(trial.state is TrialState.COMPLETE for trial in study.trials) == 10 * 2 * 2
    assert study.trials[-1].state is TrialState.PRUNED
    assert len(study.trials) == 10 * 2 * 2 + 1


def test_time_is_measured_where_it_is_not_reported():
    study = study_of(random_sampler(space=SMALL_SPACE, fractions=None))
    trial = study.ask()
    trial.suggest_int("x", 0, 9)
    trial.suggest_categorical("y", ["a", "b"])
    study.tell(trial, 1.0)
    (outcome,) = history_of(problem_of(SMALL_SPACE), study.trials, 1).outcomes
    assert outcome.time == pytest.approx(study.trials[0].duration.total_seconds(), abs=0.5)


@pytest.mark.parametrize(("module", "library"), [("optuna", "optuna"), ("ray_tune", "ray[tune]")])
def test_a_library_that_is_not_installed_is_named_with_what_installs_it(module: str, library: str):
    script = f"import sys; sys.modules[{library.split('[')[0]!r}] = None; import trimtuner.integrations.{module}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    extra = module.replace("_", "-")
    assert f"needs {library!r}; pip install 'trimtuner[{extra}]'" in run.stderr
