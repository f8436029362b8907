"""``search: learn_from`` of a job file: earlier jobs are read, never changed, and not needed once the study is made."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from trimtuner.errors import InputError
from trimtuner.jobs.load import load_job
from trimtuner.jobs.studies import JobStudy
from trimtuner.jobs.validation import validation
from trimtuner.keys.faults import JobFileError
from trimtuner.study.explaining import explain_text
from trimtuner.study.telling import status, status_text

JOB = """
name: {name}
goal: {{maximize: accuracy}}
data: {{fractions: [0.1, 1]}}
parameters:
  rate: {{values: [0.001, 0.01, 0.1, 1], scale: log}}
cloud:
  vms:
    {vm}: {{vcpus: 2, memory_gib: 4, price_per_hour: {price}}}
    other: {{vcpus: 8, memory_gib: 16, price_per_hour: 1.0}}
run: {{command: [python, train.py]}}
search: {search}
"""


def write_job(folder: Path, name: str, search: str = "{seed: 1}", vm: str = "here", price: float = 0.2) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "job.yaml"
    path.write_text(JOB.format(name=name, search=search, vm=vm, price=price))
    return path


def measure(path: Path, trials: int) -> None:
    """Run so many trials of the job; the best rate is 0.1."""
    study, _ = JobStudy.at(path).open_to_run()
    for _ in range(trials):
        trial = study.ask()
        odds = 2.0 - (math.log10(trial.config["rate"]) + 1.0) ** 2 + 0.4 * math.log(trial.fraction)
        study.tell(trial, accuracy=1.0 / (1.0 + math.exp(-odds)), time=60.0 * trial.fraction)


@pytest.fixture
def october(tmp_path):
    """The folder of an earlier job that has measured seven trials, on a machine of another name and price."""
    measure(write_job(tmp_path / "october", "october", "{method: random}", vm="before", price=0.1), 7)
    return tmp_path


LEARNING = "{learn_from: [../october/job.yaml]}"


def test_a_job_begins_with_what_the_earlier_one_found_best(october):
    study, _ = JobStudy.at(write_job(october / "new", "november", LEARNING)).open_to_run()
    assert study.ask().config["rate"] == 0.1


def test_the_earlier_record_is_not_changed_and_its_money_not_charged(october):
    record = october / "october" / "october.db"
    before = record.read_bytes()
    job = write_job(october / "new", "november", LEARNING)
    _, memory = JobStudy.at(job).open_to_run()
    assert record.read_bytes() == before
    assert (memory.record.spent, memory.history().measurements) == (0.0, ())


def test_status_and_explain_tell_what_it_learns_from_and_how_much_that_counts(october):
    job = write_job(october / "new", "november", LEARNING)
    measure(job, 3)
    (learnt,) = status(JobStudy.at(job).state())["learns_from"]
    assert (learnt["study"], learnt["measurements"], set(learnt["weights"])) == ("october", 7, {"accuracy", "time"})
    line = "learns from october (7 measurements): weight {accuracy:.2f} for accuracy, {time:.2f} for time"
    assert line.format(**learnt["weights"]) in explain_text(JobStudy.at(job).state(), None).splitlines()
    assert line.format(**learnt["weights"]) in status_text(JobStudy.at(job).state()).splitlines()


def test_the_first_trial_is_explained_by_the_earlier_study_and_the_second_by_the_design(october):
    job = write_job(october / "new", "november", LEARNING)
    measure(job, 2)
    look = JobStudy.at(job).state()
    assert "the first trial is what they would recommend" in explain_text(look, 0)
    assert "the design asked for it" in explain_text(look, 1)


def test_a_study_that_learns_from_nothing_does_not_speak_of_it(october):
    assert "learns_from" not in status(JobStudy.at(october / "october" / "job.yaml").state())


def test_the_next_trial_is_the_same_when_the_earlier_job_has_gone_on_or_is_gone(october):
    job = write_job(october / "new", "november", LEARNING)
    measure(job, 3)
    shutil.copytree(october / "new", october / "copy")
    expected = JobStudy.at(job).open_to_run()[0].ask()
    measure(october / "october" / "job.yaml", 1)
    shutil.rmtree(october / "october")
    assert JobStudy.at(october / "copy" / "job.yaml").open_to_run()[0].ask() == expected
    assert validation(load_job(job))["errors"] == []


def test_another_list_of_earlier_jobs_is_another_study(october):
    measure(write_job(october / "new", "november"), 1)
    with pytest.raises(InputError, match=r"learn_from: is new"):
        JobStudy.at(write_job(october / "new", "november", LEARNING)).open_to_run()


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("{learn_from: [../nowhere/job.yaml]}", "there is no job file ../nowhere/job.yaml"),
        ("{learn_from: [job.yaml]}", "job.yaml is this job itself"),
        ("{learn_from: [../idle/job.yaml]}", "../idle/job.yaml has no record yet"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_validate_and_of_run_and_makes_no_study(october, search, message):
    write_job(october / "idle", "idle")
    job = write_job(october / "new", "november", search)
    (told,) = validation(load_job(job))["errors"]
    assert message in told
    with pytest.raises(InputError, match=f"search.learn_from: {message}"):
        JobStudy.at(job).open_to_run()
    with pytest.raises(InputError, match="no study"):
        JobStudy.at(job).open_to_read()


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("{learn_from: [../october/job.yaml], method: random}", "learn_from: this method has no Gaussian process"),
        (
            "{learn_from: [../october/job.yaml], method: cherrypick, options: {model: trees}}",
            "no Gaussian process",
        ),
        ("{learn_from: ../october/job.yaml}", "a list of job files"),
        ("{learn_from: [3]}", "3 is no text"),
    ],
)
def test_what_is_no_list_of_jobs_or_has_no_use_for_one_is_a_fault_of_the_file(tmp_path, search, message):
    with pytest.raises(JobFileError, match=message):
        load_job(write_job(tmp_path / "new", "november", search))
