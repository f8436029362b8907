"""W&B's offline runs and TensorBoard's events, read back with the readers of the libraries themselves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trimtuner as tt
from trimtuner.cli import app_of
from written_jobs import write_job

pytestmark = pytest.mark.xdist_group("trackers")  # one slow import for all of them

SPACE = tt.Space(
    {"rate": tt.Choice([1e-3, 1e-2], scale="log"), "depth": tt.Choice(["2", "10"]), "nesterov": tt.Choice([True])},
    fractions=[0.25, 1],
    snapshots=True,
)


def told_study(name: str = "digits") -> tt.Study:
    """Two that measure, each with a snapshot if it passes one, and one that fails."""
    of = tt.Study(SPACE, maximize="accuracy", method="random", name=name)
    for number in range(3):
        trial = of.ask()
        if number == 2:
            of.tell(trial, failed="oom", time=3.0, cost=0.25)
            continue
        snapshots = {0.25: {"accuracy": 0.5, "time": 1.5, "cost": 0.1}} if trial.fraction == 1 else {}
        of.tell(trial, accuracy=0.75 + number / 8, time=4.0, cost=0.5, snapshots=snapshots)
    return of


def expected_steps(outcome) -> dict[int, float]:
    """Accuracy by step: a millionth of the data each."""
    return {round(1e6 * one.fraction): one.metrics["accuracy"] for one in outcome.measurements}


# -- W&B -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wandb_log():
    pytest.importorskip("wandb")
    from trimtuner.integrations.wandb import log_study

    return log_study


def read_run(folder: Path) -> dict[str, list[dict]]:
    """The records of a run by their kind, as W&B's own command reads them."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    records: dict[str, list[dict]] = {}
    for line in done.stdout.splitlines():
        record = json.loads(line)
        records.setdefault(record["type"], []).append(record[record["type"]])
    return records


def runs_in(folder: Path) -> dict[str, Path]:
    return {one.name.split("-", 4)[4]: one for one in (folder / "wandb").glob("offline-run-*")}


@pytest.fixture(scope="module")
def written(wandb_log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wandb")
    of = told_study()
    logged = wandb_log(of, "vision", folder)
    assert (logged.added, logged.known, logged.running) == (3, 0, 0)
    return of, folder


def test_a_trial_is_an_offline_run_with_its_configuration_its_steps_and_how_it_ended(written):
    of, folder = written
    runs = runs_in(folder)
    assert runs.keys() == {"0", "1", "2", "after-3"}
    for outcome in of.history.outcomes:
        trial = outcome.trial
        records = read_run(runs[str(trial.number)])
        run = records["run"][0]
        assert (run["project"], run["run_group"], run["job_type"]) == ("vision", "digits", "trial")
        config = run["config"]["update"]
        assert {name: config[name] for name in trial.config} == trial.config
        assert (config["fraction"], config["trimtuner"]["trial"]) == (trial.fraction, trial.number)
        items = [one["item"] for one in records["history"]]
        assert {one["_step"]: one["accuracy"] for one in items if "accuracy" in one} == expected_steps(outcome)
        assert (items[-1]["trimtuner.charged"], items[-1]["cost"]) == (outcome.cost, outcome.cost)
        assert records["exit"][0].get("exit_code", 0) == (1 if outcome.failed else 0)
    assert config["trimtuner"]["state"] == "oom"


def test_the_recommendation_is_a_run_beside_them(written):
    of, folder = written
    records = read_run(runs_in(folder)["after-3"])
    best = of.recommend()
    assert records["run"][0]["config"]["update"]["trimtuner"]["recommended"] == {**best.config, "fraction": 1}
    item = records["history"][-1]["item"]
    assert item["recommended.accuracy"] == pytest.approx(float(best.accuracy))
    assert item["trimtuner.spent"] == of.spent


def test_offline_runs_have_nothing_of_the_machine_but_its_name(written):
    _, folder = written
    files = {path.name for path in (folder / "wandb").rglob("*") if path.is_file() and ".log" not in path.name}
    assert {name for name in files if not name.endswith(".wandb")} == {"trimtuner.json"}


def test_what_was_logged_is_not_logged_again_and_a_half_written_run_is(wandb_log, written):
    of, folder = written
    before = runs_in(folder)
    assert wandb_log(of, "vision", folder).added == 0
    assert runs_in(folder) == before
    (before["1"] / "trimtuner.json").unlink()  # as if killed before its end
    logged = wandb_log(of, "vision", folder)
    assert (logged.added, logged.known) == (1, 2)
    assert runs_in(folder).keys() == before.keys()


def test_another_study_of_the_same_name_is_refused_before_anything_is_written(wandb_log, written):
    _, folder = written
    before = runs_in(folder)
    with pytest.raises(tt.InputError, match=r"trial 0 of a study 'digits' is there already, and it is another one"):
        wandb_log(other_study(), "vision", folder)
    assert runs_in(folder) == before


def other_study() -> tt.Study:
    of = tt.Study(SPACE, maximize="accuracy", method="random", name="digits")
    of.tell(of.ask(), accuracy=0.5, time=99.0, cost=9.0)
    return of


def test_a_folder_that_cannot_be_written_is_said(wandb_log, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tt.InputError, match="W&B could not write its runs to"):
        wandb_log(told_study(), "vision", tmp_path / "file")


# -- TensorBoard -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def board_log():
    pytest.importorskip("tensorboard")
    from trimtuner.integrations.tensorboard import log_study

    return log_study


def read_events(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def plugin_data(events, tag: str):
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    return HParamsPluginData.FromString(events.SummaryMetadata(tag).plugin_data.content)


def plain(value) -> object:
    """Of protobuf's values: a text, a number, or yes or no."""
    return getattr(value, value.WhichOneof("kind"))


def test_a_trial_is_a_folder_of_events_with_its_hyper_parameters(board_log, tmp_path):
    of = told_study()
    logged = board_log(of, tmp_path)
    assert (logged.added, logged.known, logged.running) == (3, 0, 0)
    for outcome in of.history.outcomes:
        events = read_events(tmp_path / "digits" / f"trial-{outcome.trial.number}")
        start = plugin_data(events, "_hparams_/session_start_info").session_start_info
        params = {name: plain(value) for name, value in start.hparams.items()}
        assert params == {**outcome.trial.config, "fraction": outcome.trial.fraction}
        steps = {one.step: one.value for one in events.Scalars("accuracy")} if outcome.measurements else {}
        assert steps == pytest.approx(expected_steps(outcome))
        assert [one.value for one in events.Scalars("trimtuner.charged")] == [outcome.cost]
        end = plugin_data(events, "_hparams_/session_end_info").session_end_info
        assert end.status == (2 if outcome.failed else 1)  # of TensorBoard's: failure, success
        assert end.end_time_secs - start.start_time_secs == pytest.approx(outcome.time)


def test_the_recommendation_is_a_line_over_the_trials(board_log, tmp_path):
    of = told_study()
    board_log(of, tmp_path)
    of.tell(of.ask(), accuracy=0.99, time=4.0, cost=0.5)
    logged = board_log(of, tmp_path)
    assert (logged.added, logged.known) == (1, 3)
    events = read_events(tmp_path / "digits" / "recommended")
    assert [one.step for one in events.Scalars("trimtuner.spent")] == [3, 4]
    (text,) = events.Tensors("recommended.config")[-1].tensor_proto.string_val
    assert json.loads(text) == {**of.recommend().config, "fraction": 1}


def test_events_of_another_study_are_left_alone_and_no_path_is_made_of_a_name(board_log, tmp_path):
    board_log(told_study(), tmp_path)
    with pytest.raises(tt.InputError, match="is there already, and it is another one"):
        board_log(other_study(), tmp_path)
    board_log(told_study("../../outside"), tmp_path / "in")
    assert {one.parent for one in (tmp_path / "in").iterdir()} == {tmp_path / "in"}
    assert not (tmp_path / "outside").exists()


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("wandb_log", "board_log")
def test_a_job_is_exported_to_both_and_only_once(tmp_path, monkeypatch):
    path = write_job(tmp_path, trials=2)
    monkeypatch.chdir(tmp_path)
    app = app_of()
    assert CliRunner().invoke(app, ["run", str(path), "--quiet"]).exit_code == 0
    for way, hint in ((["--to-wandb", "vision"], "wandb sync"), (["--to-tensorboard", "logs"], "--logdir logs")):
        first, again = (CliRunner().invoke(app, ["export", str(path), *way]).stdout for _ in range(2))
        assert first.startswith("2 trials logged, 0 there already")
        assert hint in first
        assert again.startswith("0 trials logged, 2 there already")
    refused = CliRunner().invoke(app, ["export", str(path), "--to-wandb", "x", "--to-tensorboard", "y"])
    assert "--to-wandb and --to-tensorboard are 2 ways to export" in str(refused.exception)
