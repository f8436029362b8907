"""A job file that offers more than its record: the same study, in which all that was measured counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtuner.errors import InputError
from trimtuner.jobs.studies import JobStudy
from trimtuner.jobs.validation import validate_text

JOB = """\
name: grows
goal: {maximize: accuracy}
data: {fractions: [0.5, 1]}
parameters:
  layers: {values: [[32], [64, 64]]}
  depth: {values: [null, 4]}
run: {command: [train, "{layers}", "{depth}", "{fraction}"]}
"""
MORE = JOB.replace("[null, 4]", "[null, 4, 8]").replace("run:", "  drop: {min: 0.0, max: 0.5, default: 0.1}\nrun:")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job of which two trials are measured."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    study, _ = JobStudy.at(path).open_to_run()
    for config, accuracy in (({"layers": (32,), "depth": None}, 0.5), ({"layers": (64, 64), "depth": 4}, 0.6)):
        study.enqueue(config)
        study.tell(study.ask(), accuracy=accuracy, time=1.0)
    return path


def test_a_list_and_nothing_reach_the_command_as_json(job):
    of = JobStudy.at(job)
    commands = [of.launch("s", trial, 1).command for trial in of.state().trials]
    assert commands == [("train", "[32]", "null", "1.0"), ("train", "[64, 64]", "4", "1.0")]


def test_what_a_job_file_adds_is_read_at_once_and_in_the_record_when_it_is_run(job):
    job.write_text(MORE)
    measured = [{"layers": (32,), "depth": None, "drop": 0.1}, {"layers": (64, 64), "depth": 4, "drop": 0.1}]
    state = JobStudy.at(job).judged_state()
    assert [trial.config for trial in state.trials] == measured
    assert state.differing == ()
    assert state.recommendation is not None
    assert not [event for event in state.record.events() if event.kind == "grown"]  # reading changes nothing
    study, memory = JobStudy.at(job).open_to_run()
    assert [outcome.trial.config for outcome in study.history.outcomes] == measured
    (grown,) = [event for event in memory.record.events() if event.kind == "grown"]
    assert len(grown.detail["added"]) == 2  # a value, and a parameter
    assert study.ask().config.keys() == {"layers", "depth", "drop"}


def test_a_parameter_without_a_default_is_refused_with_the_way_on(job):
    job.write_text(MORE.replace(", default: 0.1", ""))
    with pytest.raises(InputError, match=r"parameters.drop: is new; give it a default"):
        JobStudy.at(job).open_to_run()
    assert "give it a default" in validate_text(JobStudy.at(job).job)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [("default: 0.9", "default=0.9 is no number from 0.0 to 0.5"), ("default: x", "default='x' is no number")],
)
def test_a_default_that_is_not_offered_is_a_fault(job, written, complaint):
    job.write_text(MORE.replace("default: 0.1", written))
    with pytest.raises(InputError, match=complaint):
        JobStudy.at(job)
