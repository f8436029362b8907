"""A real MLflow store in a SQLite file: what is logged of a study there, and what is read of runs by whomever."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import trimtuner as tt
from trimtuner.cli import app_of
from trimtuner.integrations.tracking import TrackedStudy
from trimtuner.problem.history import History, Measurement, Outcome, Trial
from trimtuner.records import Attempt
from written_jobs import write_job

if TYPE_CHECKING:  # and where it is used: to import it takes seconds, of whoever collects these tests
    import mlflow

os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")  # read when mlflow is imported
for _name in ("mlflow", "alembic"):  # the second for a store in a database
    if importlib.util.find_spec(_name) is None:
        pytest.skip(f"{_name} is not installed; install trimtuner[mlflow]", allow_module_level=True)

app = app_of()

# MLflow asks SQLAlchemy for something that 2.1 calls old.
pytestmark = [
    pytest.mark.xdist_group("mlflow"),  # one run, and one slow import, for all of them
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),
]

SECRET = "s3cret"  # noqa: S105  (of nobody)
SPACE = tt.Space(
    {
        "learning_rate": tt.Choice([1e-3, 1e-2], scale="log"),
        "depth": tt.Choice(["2", "10"]),  # names, though they look like numbers
        "nesterov": tt.Choice([True, False]),
    },
    fractions=[0.25, 1],
    snapshots=True,
)
CONFIG = {"learning_rate": 1e-2, "depth": "10", "nesterov": False}


def ours() -> ModuleType:
    """What is tested, which imports MLflow with it."""
    return importlib.import_module("trimtuner.integrations.mlflow")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("store")
    with contextlib.chdir(folder):  # where MLflow makes an empty folder for artifacts
        yield f"sqlite:///{folder}/mlflow.db"


@pytest.fixture(scope="module")
def client(store) -> mlflow.MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=store)


@pytest.fixture
def experiment(request) -> str:
    return request.node.name


def study(name: str = "study", **options: object) -> tt.Study:
    return tt.Study(SPACE, maximize="accuracy", method="random", name=name, **options)


def tell_three(of: tt.Study) -> None:
    """Two that measure, the first with a snapshot if it passes one, and one that fails."""
    for number in range(3):
        trial = of.ask()
        if number == 2:
            of.tell(trial, failed="oom", time=3.0, cost=0.25)
            continue
        snapshots = {0.25: {"accuracy": 0.5, "time": 1.5, "cost": 0.1}} if trial.fraction == 1 else {}
        of.tell(trial, accuracy=0.75 + number / 8, time=4.0, cost=0.5, snapshots=snapshots)


def runs_in(client: mlflow.MlflowClient, experiment: str) -> dict[str | None, mlflow.entities.Run]:
    """Runs by the number of their trial; the study's own under None."""
    place = client.get_experiment_by_name(experiment).experiment_id
    found = client.search_runs([place])
    runs = {run.data.tags.get("trimtuner.trial"): run for run in found}
    assert len(runs) == len(found)
    return runs


def log_run(client, experiment, params, metrics, status="FINISHED", seconds=2.0):
    """A run as somebody else's script would log it; metrics are of one step, or of several by their step."""
    from mlflow.entities import Metric, Param

    found = client.get_experiment_by_name(experiment)
    place = client.create_experiment(experiment) if found is None else found.experiment_id
    run = client.create_run(place, start_time=1_000_000, run_name="somebody's")
    steps = {name: value if isinstance(value, dict) else {0: value} for name, value in metrics.items()}
    values = [Metric(name, value, 1_000_000 + step, step) for name, at in steps.items() for step, value in at.items()]
    client.log_batch(run.info.run_id, values, [Param(name, str(value)) for name, value in params.items()])
    client.set_terminated(run.info.run_id, status, 1_000_000 + round(1000 * seconds))
    return run.info.run_id


def as_set(measurements) -> set[tuple[str, float, str]]:
    return {(str(dict(m.configuration)), m.fraction, str(sorted(m.metrics.items()))) for m in measurements}


def test_a_trial_is_a_run_with_its_configuration_metrics_and_state(store, client, experiment):
    of = study("digits")
    tell_three(of)
    ours().log_study(of, store, experiment)
    runs = runs_in(client, experiment)
    assert runs.keys() == {None, "0", "1", "2"}
    for outcome in of.history.outcomes:
        trial, run = outcome.trial, runs[str(outcome.trial.number)]
        assert run.data.params == {
            name: str(value) for name, value in {**trial.config, "fraction": trial.fraction}.items()
        }
        assert run.data.metrics["cost"] == run.data.metrics["trimtuner.charged"] == outcome.cost
        assert run.data.metrics["time"] == outcome.time
        assert run.data.tags["mlflow.parentRunId"] == runs[None].info.run_id
        assert run.data.tags["trimtuner.study"] == "digits"
        assert run.info.end_time - run.info.start_time == 1000 * outcome.time
    assert runs["1"].data.metrics["accuracy"] == 0.875
    assert [runs[number].info.status for number in "012"] == ["FINISHED", "FINISHED", "FAILED"]
    assert runs["2"].data.tags["trimtuner.state"] == "oom"
    assert "accuracy" not in runs["2"].data.metrics
    best = of.recommend()
    assert json.loads(runs[None].data.tags["trimtuner.recommended"]) == {**best.config, "fraction": best.fraction}
    assert runs[None].data.metrics["trimtuner.spent"] == 1.25


def test_what_was_logged_is_read_as_it_was_measured(store, experiment):
    of = study()
    tell_three(of)
    ours().log_study(of, store, experiment)
    found = ours().measurements_from(store, experiment, of.problem)
    assert len(found.measurements) == len(of.history.measurements)
    assert as_set(found.measurements) == as_set(of.history.measurements)
    assert found.skipped == {"FAILED": 1}


def test_snapshots_are_steps_and_come_back_as_measurements(store, client, experiment):
    trial = Trial(0, CONFIG, 1.0, (0.25,))
    measurements = tuple(
        Measurement(CONFIG, fraction, {"accuracy": accuracy, "time": time})
        for fraction, accuracy, time in ((0.25, 0.5, 2.0), (1.0, 0.75, 5.0))
    )
    history = History((Outcome(trial, measurements, None, 0.0, 5.0),), (), 1)
    ours().log_progress(TrackedStudy("study", "abc", history, None), store, experiment)
    run = runs_in(client, experiment)["0"]
    logged = client.get_metric_history(run.info.run_id, "accuracy")
    assert {(one.step, one.value, one.timestamp - run.info.start_time) for one in logged} == {
        (250_000, 0.5, 2000),
        (1_000_000, 0.75, 5000),
    }
    assert as_set(ours().measurements_from(store, experiment, study().problem).measurements) == as_set(measurements)


def test_logging_again_adds_only_what_is_new(store, client, experiment):
    of = study()
    tell_three(of)
    assert ours().log_study(of, store, experiment).added == 3
    before = runs_in(client, experiment)
    again = ours().log_study(of, store, experiment)
    assert (again.added, again.known, again.running) == (0, 3, 0)
    assert {key: run.to_dictionary() for key, run in runs_in(client, experiment).items()} == {
        key: run.to_dictionary() for key, run in before.items()
    }
    trial = of.ask()
    assert ours().log_study(of, store, experiment).running == 1
    of.tell(trial, accuracy=0.99, time=1.0, cost=0.5)
    assert ours().log_study(of, store, experiment).added == 1
    after = runs_in(client, experiment)
    assert after.keys() - before.keys() == {str(trial.number)}
    assert after[None].data.metrics["trimtuner.spent"] == 1.75


def test_a_run_that_was_left_half_written_is_completed(store, client, experiment, monkeypatch):
    from mlflow import MlflowClient

    of = study()
    tell_three(of)

    def fall_over(*_, **__):
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_batch", fall_over)
        with pytest.raises(tt.InputError, match="ConnectionError"):
            ours().log_study(of, store, experiment)
    assert ours().log_study(of, store, experiment).added == 3
    assert runs_in(client, experiment).keys() == {None, "0", "1", "2"}
    assert as_set(ours().measurements_from(store, experiment, of.problem).measurements) == as_set(
        of.history.measurements
    )


def test_another_study_of_the_same_name_is_not_mixed_in(store, client, experiment):
    first, second = study(), study(seed=5)
    tell_three(first)
    tell_three(second)
    ours().log_study(first, store, experiment)
    before = runs_in(client, experiment).keys()
    with pytest.raises(tt.InputError, match="trial 0 of a study 'study' is there already, and it is another one"):
        ours().log_study(second, store, experiment)
    assert runs_in(client, experiment).keys() == before


def test_a_name_is_text_whatever_is_in_it(store, client, experiment):
    of = study("x' or tags.`a` != '\x1b[31m<b>\"")
    tell_three(of)
    ours().log_study(of, store, experiment)
    assert ours().log_study(of, store, experiment).known == 3
    assert runs_in(client, experiment)[None].data.tags["trimtuner.study"] == of.name


def test_a_record_knows_when_a_trial_ran(store, client, experiment):
    history = History((Outcome(Trial(0, CONFIG, 1.0), (), "preempted", 0.5, 3.0),), (), 1)
    attempts = (
        Attempt(0, 1, 99.0, 100.0, 110.0, "preempted", 1.0, 0.2),
        Attempt(0, 2, 110.0, 111.0, 114.5, "preempted", 1.0, 0.3),
    )
    ours().log_progress(TrackedStudy("study", "abc", history, None, attempts), store, experiment)
    run = runs_in(client, experiment)["0"]
    assert (run.info.start_time, run.info.end_time) == (100_000, 114_500)


def test_runs_of_others_need_only_the_names_of_the_study(store, client, experiment):
    log_run(client, experiment, {**CONFIG, "seed": 3}, {"accuracy": 0.75, "loss": float("nan")}, seconds=2.5)
    log_run(client, experiment, {**CONFIG, "fraction": 0.25}, {"accuracy": 0.5, "time": 7.0})
    log_run(client, experiment, {**CONFIG, "depth": "2"}, {"accuracy": {1: 0.1, 2: 0.25}, "fraction": 0.25})
    log_run(client, experiment, {}, {}, status="KILLED")
    found = ours().measurements_from(store, experiment, study().problem)
    assert as_set(found.measurements) == as_set(
        [
            Measurement(CONFIG, 1.0, {"accuracy": 0.75, "time": 2.5}),
            Measurement(CONFIG, 0.25, {"accuracy": 0.5, "time": 7.0}),
            Measurement({**CONFIG, "depth": "2"}, 0.25, {"accuracy": 0.25, "time": 2.0}),  # the last step's value
        ]
    )
    assert found.skipped == {"KILLED": 1}
    only = ours().measurements_from(store, experiment, study().problem, "params.fraction = '0.25'")
    assert [m.metrics["time"] for m in only.measurements] == [7.0]


def test_each_step_at_which_a_run_says_its_fraction_is_a_measurement(store, client, experiment):
    shares, accuracies = {500: 0.25, 2000: 1.0}, {500: 0.5, 900: 0.6, 2000: 0.75}
    log_run(client, experiment, CONFIG, {"fraction": shares, "accuracy": accuracies})
    found = ours().measurements_from(store, experiment, study().problem)
    assert as_set(found.measurements) == as_set(
        [
            Measurement(CONFIG, 0.25, {"accuracy": 0.5, "time": 0.5}),  # logged half a second after the start
            Measurement(CONFIG, 1.0, {"accuracy": 0.75, "time": 2.0}),
        ]
    )


@pytest.mark.parametrize(
    ("params", "metrics", "why"),
    [
        ({"depth": "3"}, {"accuracy": 0.5}, "3 is not one of"),
        ({"learning_rate": None}, {"accuracy": 0.5}, "no 'learning_rate'"),
        ({}, {"loss": 0.5}, "no 'accuracy', which the goal or a constraint is about"),
        ({}, {"accuracy": float("inf")}, "accuracy is inf, not a number"),
        ({}, {"accuracy": 75.0}, "accuracy=75 is above 1; accuracy is a share from 0 to 1"),
        ({"fraction": "0.3"}, {"accuracy": 0.5}, "fraction 0.3 is none of those offered"),
        ({"fraction": "a quarter"}, {"accuracy": 0.5}, "fraction is 'a quarter', not a number"),
        ({}, {"accuracy": 0.5, "time": 0.0}, "time=0 must be above 0 seconds"),
    ],
)
def test_a_run_that_cannot_be_used_is_named(store, client, params, metrics, why):
    experiment = f"unusable {why}"
    given = {name: value for name, value in {**CONFIG, **params}.items() if value is not None}
    run_id = log_run(client, experiment, given, metrics)
    with pytest.raises(tt.InputError, match=rf"^run \"somebody's\" \({run_id}\): .*{why}"):
        ours().measurements_from(store, experiment, study().problem)


def test_a_wrong_experiment_or_file_is_told_and_nothing_is_made(store, client, tmp_path):
    with pytest.raises(
        tt.InputError, match=r"no experiment 'nowhere' at sqlite.*; name one of those that there are: '"
    ):
        ours().measurements_from(store, "nowhere", study().problem)
    assert client.get_experiment_by_name("nowhere") is None
    missing = tmp_path / "missing.db"
    with pytest.raises(tt.InputError, match=r"no file .*missing\.db"):
        ours().measurements_from(f"sqlite:///{missing}", "nowhere", study().problem)
    assert not missing.exists()


@pytest.mark.parametrize(
    "address",
    [
        f"http://me:{SECRET}@127.0.0.1:9/",
        f"http://me:{SECRET}/@{SECRET}@127.0.0.1:9/?token={SECRET}",
        f"nonsense://me:{SECRET}@host/?password={SECRET}",
        f"mysql+nothing://me:{SECRET}@127.0.0.1/database",
        f"http://me:{SECRET}@[bad",
    ],
)
def test_an_address_that_does_not_work_is_an_error_without_its_password(address, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(tt.InputError, match=r"^MLflow at ") as told:
        ours().measurements_from(address, "experiment", study().problem)
    assert SECRET not in str(told.value)
    assert told.value.__suppress_context__


def test_a_password_is_not_told_in_whatever_form_the_library_writes_the_address(store, monkeypatch):
    from mlflow import MlflowClient

    def fall_over(*_):
        raise OSError(f"cannot reach https://me:{SECRET}@elsewhere/api now")

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", fall_over)
    with pytest.raises(tt.InputError, match=r"MLflow at sqlite.*: cannot reach https://elsewhere/api now"):
        ours().log_study(study(), store)


def test_a_job_is_exported_and_another_imports_what_it_measured(store, client, experiment, tmp_path):
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    one, other = (write_job(tmp_path / folder, trials=3, fail=1, method="random") for folder in ("one", "other"))
    assert call("run", one, "--quiet").exit_code == 0
    to, from_ = ("--to-mlflow", store, "--experiment", experiment), ("--from-mlflow", store, "--experiment", experiment)
    assert call("export", one, *to).stdout == "3 trials logged, 0 there already\n"
    assert call("export", one, *to).stdout == "0 trials logged, 3 there already\n"
    left_out = "runs left out because they are not FINISHED: 1 FAILED"
    assert call("import", other, *from_).stdout == f"2 measurements added, 0 known already; {left_out}\n"
    assert call("import", other, *from_).stdout == f"0 measurements added, 2 known already; {left_out}\n"
    measured = {line for line in call("export", one).stdout.splitlines() if line}
    assert {line for line in call("export", other).stdout.splitlines() if line} == measured
    run = runs_in(client, experiment)["0"]
    assert run.info.end_time - run.info.start_time < 20_000  # as the record says, not since it was logged


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["import"], "either a FILE, or --from-mlflow"),
        (["import", "rows.csv", "--from-mlflow", "sqlite:///x.db"], "either a FILE, or --from-mlflow"),
        (["import", "rows.csv", "--experiment", "x"], "are for MLflow"),
        (["export", "--experiment", "x"], "say where with --to-mlflow"),
        (["export", "--format", "json", "--to-mlflow", "sqlite:///x.db"], "choose one"),
    ],
)
def test_half_a_question_about_mlflow_is_refused(words, why, tmp_path):
    command, *others = words
    assert why in str(call(command, write_job(tmp_path), *others).exception)


def call(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])
