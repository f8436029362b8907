"""The Ray Tune searcher, against Ray Tune."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trimtuner as tt
from trimtuner.engines.ray.surroundings import prepare_to_start

if TYPE_CHECKING:
    from trimtuner.integrations.ray_tune import TrimTunerSearch

pytestmark = pytest.mark.xdist_group("ray")

SPACE = tt.Space(
    {"x": tt.Choice([1, 2, 3])},
    cloud=tt.Cloud({"small": tt.VM(vcpus=1, memory_gib=1, price_per_hour=36.0)}),  # a cent a second
    fractions=[0.5, 1],
)


@pytest.fixture(scope="module", autouse=True)
def _ray_is_imported_as_the_engine_needs_it() -> None:
    prepare_to_start()


def searcher(space: tt.Space = SPACE, **more: object) -> TrimTunerSearch:
    from trimtuner.integrations.ray_tune import TrimTunerSearch

    return TrimTunerSearch(space, **{"metric": "accuracy", **more})


def told(search: TrimTunerSearch) -> list[tuple[str | None, float]]:
    """The kind of failure of each trial that ended, and what it cost."""
    return [(outcome.failed, outcome.cost) for outcome in search.study.history.outcomes]


@pytest.mark.slow
def test_a_tuner_finds_the_best_within_the_limit_and_ends_when_everything_is_tested():
    command = [sys.executable, str(Path(__file__).with_name("tune_run.py"))]
    with tempfile.TemporaryDirectory(
        prefix="ray-", ignore_cleanup_errors=True
    ) as folder:  # its sockets need a short path
        run = subprocess.run([*command, folder], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads(run.stdout.splitlines()[-1])
    tested = sorted((config["width"], config["fraction"]) for config, _ in report["trials"])
    assert tested == [(width, fraction) for width in (1, 2, 3, 4) for fraction in (0.5, 1.0)]
    assert [(config["width"], config["fraction"]) for config, is_errored in report["trials"] if is_errored] == [
        (4, 1.0)
    ]
    assert report["failed"] == ["error"]
    assert report["config"] == {"vm_type": "small", "vm_count": 1, "width": 2}  # 3 costs 3 USD, 4 fails
    assert report["cost"] == 2.0
    assert report["restored"]


def test_a_suggestion_has_the_configuration_and_the_share_of_the_data():
    suggested = searcher(fraction_key="share").suggest("a")
    assert suggested.keys() == {"vm_type", "vm_count", "x", "share"}
    assert suggested["share"] == 0.5


def test_time_is_ray_tunes_unless_reported():
    search = searcher()
    search.suggest("a")
    search.suggest("b")
    search.on_trial_complete("a", {"accuracy": 0.5, "time_total_s": 7.0, "training_iteration": 1})
    search.on_trial_complete("b", {"accuracy": 0.5, "time_total_s": 7.0, "time": 3.0})
    assert told(search) == [(None, pytest.approx(0.07)), (None, pytest.approx(0.03))]


def test_a_trial_that_errs_is_charged_for_what_it_had_trained_by_its_last_report():
    search = searcher()
    search.suggest("a")
    search.on_trial_result("a", {"accuracy": 0.4, "time_total_s": 5.0})
    search.on_trial_complete("a", error=True)
    assert told(search) == [("error", pytest.approx(0.05))]


def test_a_trial_that_ray_tune_takes_back_is_nobodys_fault():
    search = searcher()
    search.suggest("a")
    search.on_trial_complete("a")
    assert [kind for kind, _ in told(search)] == ["preempted"]


def test_a_metric_that_is_no_number_any_more_is_a_training_that_diverged():
    search = searcher()
    search.suggest("a")
    search.on_trial_complete("a", {"accuracy": math.nan, "time_total_s": 2.0})
    assert [kind for kind, _ in told(search)] == ["diverged"]


def test_a_metric_that_is_missing_is_named_and_the_trial_is_charged():
    search = searcher()
    search.suggest("a")
    with pytest.raises(tt.InputError, match="reports no 'accuracy'"):
        search.on_trial_complete("a", {"acuracy": 0.5, "time_total_s": 2.0})
    assert [kind for kind, _ in told(search)] == ["bad metric"]
    assert search.suggest("b") is not None


def test_reports_at_smaller_fractions_are_snapshots_where_the_space_has_them():
    search = searcher(tt.Space({"x": tt.Choice([1, 2])}, fractions=[0.1, 0.5, 1], snapshots=True), method="fabolas")
    suggested = search.suggest("a")
    assert suggested["fraction"] == 0.5
    search.on_trial_result("a", {"accuracy": 0.3, "fraction": 0.1, "time_total_s": 1.0})
    search.on_trial_complete("a", {"accuracy": 0.6, "fraction": 0.5, "time_total_s": 4.0})
    measured = [(m.fraction, m.metrics["accuracy"], m.metrics["time"]) for m in search.study.history.measurements]
    assert measured == [(0.1, 0.3, 1.0), (0.5, 0.6, 4.0)]


def test_a_trial_that_is_ended_before_its_fraction_keeps_what_it_measured_on_the_way():
    search = searcher(tt.Space({"x": tt.Choice([1, 2])}, fractions=[0.1, 0.5, 1], snapshots=True), method="fabolas")
    search.suggest("a")
    search.on_trial_result("a", {"accuracy": 0.3, "fraction": 0.1, "time_total_s": 1.0})
    search.on_trial_complete("a", {"accuracy": 0.3, "fraction": 0.1, "time_total_s": 1.0})
    assert [kind for kind, _ in told(search)] == ["stopped early"]
    assert [measurement.fraction for measurement in search.study.history.measurements] == [0.1]


def test_it_waits_while_what_is_under_way_may_leave_money_and_finishes_when_nothing_is():
    search = searcher(tt.Space({"x": tt.Choice([1])}))
    search.suggest("a")
    assert search.suggest("b") is None
    search.on_trial_complete("a", {"accuracy": 0.5, "time": 1.0})
    assert search.suggest("c") == search.FINISHED


def test_a_searcher_that_was_saved_goes_on_as_if_it_had_never_stopped(tmp_path: Path):
    search, again = searcher(), searcher()
    for number in range(4):
        x = search.suggest(str(number))["x"]
        search.on_trial_complete(str(number), {"accuracy": x / 4, "time": float(x)}, error=number == 2)
    search.suggest("under way")
    search.save(str(tmp_path / "state"))
    again.restore(str(tmp_path / "state"))
    assert again.study.history == search.study.history
    assert again.suggest("next") == search.suggest("next")
    again.on_trial_complete("under way", {"accuracy": 0.5, "time": 1.0})
    assert len(told(again)) == 5


@pytest.mark.parametrize("text", ["", "{}}", '[{"trial_id": "a"}]', '[{"trial_id": "a", "asked": 3}]', "3"])
def test_a_file_that_no_searcher_saved_is_refused(tmp_path: Path, text: str):
    (tmp_path / "state").write_text(text)
    with pytest.raises(tt.InputError, match="is not what such a searcher has saved"):
        searcher().restore(str(tmp_path / "state"))


def test_what_the_searcher_chooses_may_not_be_in_the_param_space_nor_another_goal_in_the_tuner():
    search = searcher()
    with pytest.raises(tt.InputError, match="param_space gives 'x'"):
        search.set_search_properties(None, None, {"x": 3})
    with pytest.raises(tt.InputError, match="TuneConfig says min of 'loss'"):
        search.set_search_properties("loss", "min", {"data": "mnist"})
    assert search.set_search_properties("accuracy", "max", {"data": "mnist"}) is False


def test_a_parameter_that_is_called_like_the_fraction_is_refused():
    with pytest.raises(tt.InputError, match="fraction_key="):
        searcher(tt.Space({"fraction": tt.Choice([1, 2])}))
