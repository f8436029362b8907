"""A job with a goal of two metrics, from its file to the answer, on a table whose front is known."""

import json

import pytest
from typer.testing import CliRunner

from trimtuner.cli import app_of
from trimtuner.commands.verbs.shared import EXIT_NO_ANSWER
from trimtuner.errors import InputError
from trimtuner.jobs.differing import description_of
from trimtuner.jobs.load import load_job
from written_jobs import trimtuner

app = app_of()

JOB = """
name: curve
goal: {maximize: accuracy, minimize: cost}
budget: {trials: 12}
data: {fractions: [0.1, 1]}
parameters:
  units: {values: [1, 2, 4, 8]}
cloud:
  vms:
    slow: {vcpus: 1, memory_gib: 2, price_per_hour: 0.36}
    fast: {vcpus: 2, memory_gib: 4, price_per_hour: 3.6}
run: {command: [python, train.py, "--units={units}"], timeout: 10min}
engine: {type: replay, table: measured.csv, pace: 10000}
search: {method: random, seed: 1}
"""
DESCRIPTION = """
title = "made up"
snapshots = false
[configuration]
vm_type = "vm_type"
units = "units"
[fraction]
column = "fraction"
full = 1.0
[metrics]
accuracy = "accuracy"
time = "time"
[price_per_hour]
column = "price_per_hour"
[problem]
maximize = "accuracy"
"""


def accuracy(units, fraction=1.0):
    return 0.9 - 0.4 * fraction**-0.1 / units


pytestmark = pytest.mark.xdist_group("front-job")  # one run for all of them


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Everything measured: on the slow machine 10 s a unit at 0.0001 USD a second, on the fast one half the time."""
    folder = tmp_path_factory.mktemp("curve")
    rows = ["vm_type,units,fraction,accuracy,time,price_per_hour"]
    for vm_type, speed, price in (("slow", 1, 0.36), ("fast", 2, 3.6)):
        for units in (1, 2, 4, 8):
            for fraction in (0.1, 1.0):
                seconds = 10.0 * units * fraction / speed
                rows.append(f"{vm_type},{units},{fraction},{accuracy(units, fraction)},{seconds},{price}")
    (folder / "measured.csv").write_text("\n".join(rows))
    (folder / "measured.toml").write_text(DESCRIPTION)
    path = folder / "job.yaml"
    path.write_text(JOB)
    told = trimtuner("run", path).stdout
    assert "<- knee" in told
    return path


def ask(*words):
    """The command line in this process, which is quicker."""
    return CliRunner().invoke(app, [str(word) for word in words])


def test_best_lists_the_front_from_the_cheapest_with_the_knee_and_its_command(job):
    told = ask("best", job).stdout
    lines = told.splitlines()
    assert lines[0] == "the best accuracy for every cost:"
    assert [line.split()[:2] for line in lines[2:6]] == [[usd, "cents"] for usd in ("0.1", "0.2", "0.4", "0.8")]
    assert [("<- knee" in line, "measured" in line) for line in lines[2:6]] == [
        (False, True),
        (True, True),
        (False, True),
        (False, True),
    ]
    assert "train it with: python train.py --units=2" in told


def test_best_within_a_limit_names_the_best_that_costs_no_more(job):
    told = ask("best", job, "--within", "0.5 cents")
    assert "units = 4" in told.stdout
    assert "knee" not in told.stdout
    assert json.loads(ask("best", job, "--within", "0.008", "--json").stdout)["config"]["units"] == 8


def test_best_below_the_cheapest_has_no_answer_and_a_limit_that_is_none_is_refused(job):
    told = ask("best", job, "--within", "0.0001")
    assert told.exit_code == EXIT_NO_ANSWER
    assert "the cheapest on the front is at 0.001" in told.stderr
    refused = ask("best", job, "--within", "a lot")
    assert isinstance(refused.exception, InputError)


def test_scripts_get_the_whole_front_with_the_knee_marked(job):
    told = json.loads(ask("best", job, "--json").stdout)
    assert (told["price_metric"], told["quality_metric"]) == ("cost", "accuracy")
    assert [point["config"]["units"] for point in told["front"]] == [1, 2, 4, 8]
    assert [point["is_knee"] for point in told["front"]] == [False, True, False, False]
    assert [point["price"] for point in told["front"]] == pytest.approx([0.001, 0.002, 0.004, 0.008])
    assert told["config"] == told["front"][1]["config"]


def test_everything_that_tells_of_a_study_tells_of_this_one(job, tmp_path):
    assert "<- knee" in ask("status", job).stdout
    assert "these are on the front" in ask("explain", job).stdout
    assert ask("validate", job).exit_code == 0
    page = tmp_path / "report.html"
    assert ask("report", job, "-o", page).exit_code == 0
    written = page.read_text()
    assert "maximize accuracy, minimize cost" in written
    assert "it is the knee of the front of accuracy against cost" in written
    assert "next on the front" in written
    assert "the knee is at cost 0.2 cents" in written


def test_a_loss_against_cost_is_told_everywhere_too(job, tmp_path):
    """The same measurements, read as a loss of 1 - accuracy."""
    folder = job.parent
    head, *rows = (folder / "measured.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    lines = [",".join([*one[:3], str(1.0 - float(one[3])), *one[4:]]) for one in cells]
    (tmp_path / "measured.csv").write_text("\n".join([head.replace("accuracy", "loss"), *lines]))
    described = DESCRIPTION.replace('maximize = "accuracy"', 'minimize = "loss"')
    (tmp_path / "measured.toml").write_text(described.replace("accuracy", "loss"))
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("{maximize: accuracy, minimize: cost}", "{minimize: [loss, cost]}"))
    assert "<- knee" in ask("run", path, "--quiet").stdout
    told = json.loads(ask("best", path, "--json").stdout)
    assert (told["price_metric"], told["quality_metric"]) == ("cost", "loss")
    assert [point["config"]["units"] for point in told["front"]] == [1, 2, 4, 8]
    assert [point["is_knee"] for point in told["front"]] == [False, True, False, False]
    assert ask("best", path).stdout.startswith("the best loss for every cost:")
    page = tmp_path / "report.html"
    assert ask("report", path, "-o", page).exit_code == 0
    written = page.read_text()
    assert "minimize loss, minimize cost" in written
    assert "it is the knee of the front of loss against cost" in written
    assert "the knee is at cost 0.2 cents" in written


def test_a_price_that_is_money_needs_prices(tmp_path):
    path = tmp_path / "job.yaml"
    text = JOB[: JOB.index("cloud:")] + JOB[JOB.index("run:") :]
    path.write_text(text.replace("measured.csv", "digits"))
    told = ask("validate", path)
    assert "it speaks of money, and no machine has a price" in str(told.exception)


def test_the_definition_of_a_job_with_one_goal_is_as_it_was(job, tmp_path):
    assert description_of(load_job(job)).plain["goal"] == {"maximize": "accuracy", "minimize": "cost"}
    for goal in ({"maximize": "accuracy"}, {"minimize": "cost"}):
        path = tmp_path / "job.yaml"
        path.write_text(JOB.replace("{maximize: accuracy, minimize: cost}", json.dumps(goal)))
        assert description_of(load_job(path)).plain["goal"] == goal
