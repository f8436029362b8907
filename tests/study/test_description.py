"""One study by every door: what Python code begins a job file goes on with, and the other way round."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.decisions.stopping import AfterTrials
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.problem import Problem
from trimtuner.records import DefinitionDiffers, RecordsView
from trimtuner.study.description import Description
from trimtuner.study.explaining import explain_text
from trimtuner.study.telling import status
from trimtuner.tuning.recipes import METHODS, recipe_named

JOB = """\
name: doors
goal: {maximize: accuracy}
constraints: ["time <= 1200 s"]
parameters:
  rate: {values: [0.1, 0.2, 0.4]}
  depth: {values: [1, 2]}
data: {fractions: [0.5, 1]}
run: {command: [python3, "{rate}", "{depth}", "{fraction}"]}
search: {method: METHOD, seed: 7}
storage: doors.db
"""


def job_file(folder: Path, text: str = JOB, method: str = "trimtuner-dt") -> Path:
    path = folder / "job.yaml"
    path.write_text(text.replace("METHOD", json.dumps(method)))
    return path


def in_python(folder: Path, **changes: object) -> tt.Study:
    space = tt.Space({"rate": tt.Choice([0.1, 0.2, 0.4]), "depth": tt.Choice([1, 2])}, fractions=[0.5, 1])
    settings = {"constraints": ["time <= 20min"], "method": "trimtuner-dt", "seed": 7, "name": "doors", **changes}
    return tt.Study(space, maximize="accuracy", storage=folder / "doors.db", **settings)


def by_job(folder: Path, **changes: str) -> tt.Study:
    return JobStudy.at(job_file(folder, **changes)).open_to_run()[0]


def measure(study: tt.Study, trials: int) -> None:
    for _ in range(trials):
        trial = study.ask()
        value = 0.9 - abs(trial.config["rate"] - 0.2) + 0.01 * trial.config["depth"] - 0.1 * (1 - trial.fraction)
        study.tell(trial, accuracy=value, time=60.0 * trial.fraction)


DOORS = {"python": in_python, "job file": by_job}


@pytest.mark.parametrize("first", DOORS)
@pytest.mark.parametrize("second", DOORS)
def test_a_study_goes_on_by_whatever_door_it_is_opened(tmp_path, first, second):
    measure(DOORS[first](tmp_path), 3)
    later = DOORS[second](tmp_path)
    assert len(later.history.outcomes) == 3
    (tmp_path / "whole").mkdir()
    measure(whole := in_python(tmp_path / "whole"), 3)
    assert later.ask() == whole.ask()


@pytest.mark.parametrize(
    "text",
    [
        "goal: {minimize: cost}\nconstraints: [accuracy >= 0.8]\n"
        "cloud: {vms: {a: {vcpus: 2, memory_gib: 4, price_per_hour: 0.5}}, vm_count: [1, 4]}\n"
        "parameters: {rate: {type: float, min: 0.01, max: 1, scale: log}}\n",
        "goal: {maximize: accuracy, minimize: cost}\nbudget: {money: 3 USD}\n"
        "configs: [{x: 1, price_per_hour: 0.1}, {x: 2, price_per_hour: 0.2}]\n",
        "goal: {maximize: accuracy}\nparameters: {kind: {values: [a, b]}, "
        "depth: {type: int, min: 1, max: 9, when: \"kind == 'a'\"}}\n",
    ],
)
def test_what_a_job_file_says_is_described_as_the_same_python_code_would(tmp_path, text):
    of = JobStudy.at(job_file(tmp_path, f"name: doors\nrun: {{command: [python3, x]}}\n{text}storage: doors.db\n"))
    of.open_to_run()
    goal, problem = of.job.goal, of.problem
    maximize = goal.metric if goal.direction == "maximize" else None
    opened = tt.Study(
        problem.space,
        maximize=maximize,
        minimize=goal.against if maximize else goal.metric,
        constraints=[constraint.text for constraint in problem.constraints],
        storage=tmp_path / "doors.db",
        name="doors",
    )
    assert opened.description.digest == of.description.digest


def test_a_cap_is_not_lifted_by_not_naming_it(tmp_path):
    in_python(tmp_path, budget=2.5)
    assert in_python(tmp_path).problem.budget == 2.5
    with RecordsView(tmp_path / "doors.db") as records:
        assert records.open("doors").status().budget == 2.5


@pytest.mark.parametrize("other", ["trimtuner-dt:beta=0.2", "trimtuner-gp"])
def test_another_method_or_option_is_another_study(tmp_path, other):
    in_python(tmp_path)
    with pytest.raises(DefinitionDiffers, match=r"method: was 'trimtuner-dt'|options\.beta: was 0\.1, is 0\.2"):
        in_python(tmp_path, method=other)


def test_an_option_is_the_same_by_its_value_however_it_is_written(tmp_path):
    in_python(tmp_path, method="trimtuner-dt:beta=0.10")
    by_job(tmp_path, method="trimtuner-dt")


def test_an_option_that_a_method_has_gained_since_makes_no_other_study_of_it():
    space = tt.Space({"x": tt.Int(1, 9)}, fractions=[0.5, 1])
    one, other = (
        Description(Problem.of(space, "accuracy", None, [], None), f"trimtuner-dt:beta={beta}", 0)
        for beta in (0.1, 0.2)
    )
    before = {**one.plain, "options": {key: told for key, told in one.plain["options"].items() if key != "beta"}}
    assert one.differences_from(before) == ()
    assert other.differences_from(before) == ("options.beta: was 0.1, is 0.2",)


def test_a_record_begun_with_one_recipe_is_not_continued_with_another(tmp_path):
    own = recipe_named("trimtuner-dt").but(confidence=0.8)
    measure(in_python(tmp_path, method=own), 2)
    assert len(in_python(tmp_path, method=recipe_named("trimtuner-dt").but(confidence=0.8)).history.outcomes) == 2
    with pytest.raises(DefinitionDiffers, match=r"recipe\.confidence: was 0\.8, is 0\.7"):
        in_python(tmp_path, method=own.but(confidence=0.7))


def test_when_a_recipe_stops_is_no_more_part_of_it_than_what_it_may_spend(tmp_path):
    own = recipe_named("trimtuner-dt").but(confidence=0.8)
    in_python(tmp_path, method=own)
    assert in_python(tmp_path, method=own.but(stop=AfterTrials(9))).history.outcomes == ()


@given(name=st.sampled_from(sorted(METHODS)), seed=st.integers(0, 5), limit=st.integers(1, 3))
def test_a_description_is_plain_json_and_says_how_it_differs_from_another(name, seed, limit):
    space = tt.Space({"x": tt.Int(1, 9)}, fractions=[0.5, 1])
    problem = Problem.of(space, "accuracy", None, [f"time <= {limit}"], None)
    one = Description(problem, name, seed)
    assert one.differences_from(json.loads(json.dumps(one.plain))) == ()
    other = Description(Problem.of(space, "accuracy", None, ["time <= 4"], None), name, seed + 1)
    assert one.differences_from(other.plain) == (
        f"constraints.time.at_most: was 4.0, is {limit}.0",
        f"seed: was {seed + 1}, is {seed}",
    )


def test_status_and_explanations_are_the_same_in_python_and_of_a_job_file(tmp_path):
    code = in_python(tmp_path, constraints=["time <= 1200 s"])
    measure(code, 5)
    state = JobStudy.at(job_file(tmp_path)).judged_state()
    told, wanted = code.status(), status(state)
    for one in (told, wanted):
        one["recommendation"].pop("command")  # which only a job file has
    assert told == wanted
    assert code.explain(2) == explain_text(state, 2)
    assert code.explain(code.history.outcomes[2].trial) == code.explain(2)
    assert code.explain().splitlines()[0] == "recommended:"
    with pytest.raises(tt.InputError, match="there is no trial 9; there were 5"):
        code.explain(9)


# Records that version 0.1 made


@pytest.fixture(params=["command_line", "python"])
def of_before(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a record of three trials, begun by version 0.1 by one door or the other."""
    packed = Path(__file__).with_name("begun_by_0_1") / f"{request.param}.db.gz"
    with gzip.open(packed) as old, (tmp_path / "doors.db").open("wb") as new:
        shutil.copyfileobj(old, new)
    return tmp_path


@pytest.mark.parametrize("door", DOORS)
def test_a_record_of_before_is_gone_on_with_by_every_door(of_before, door):
    study = DOORS[door](of_before)
    assert len(study.history.outcomes) == 3
    assert study.recommend().config == {"rate": 0.2, "depth": 2}
    assert DOORS[door](of_before).history == study.history
    with RecordsView(of_before / "doors.db") as records:
        assert study.description.differences_from(records.open("doors").definition) == ()


def test_a_record_of_before_is_read_without_being_changed(of_before):
    bytes_before = (of_before / "doors.db").read_bytes()
    state = JobStudy.at(job_file(of_before)).judged_state()
    assert state.differing == ()
    assert len(state.history.outcomes) == 3
    assert (of_before / "doors.db").read_bytes() == bytes_before


@pytest.mark.parametrize("door", DOORS)
def test_a_record_of_before_tells_how_another_study_differs(of_before, door):
    with pytest.raises(tt.InputError, match="seed: was 7, is 8"):
        in_python(of_before, seed=8) if door == "python" else by_job(of_before, text=JOB.replace("seed: 7", "seed: 8"))


def test_of_a_space_of_before_only_a_digest_is_known(of_before):
    space = tt.Space({"rate": tt.Choice([0.1, 0.2, 0.5]), "depth": tt.Choice([1, 2])}, fractions=[0.5, 1])
    with pytest.raises(DefinitionDiffers, match=r"only a digest is kept|parameters\.rate\.values"):
        tt.Study(
            space,
            maximize="accuracy",
            constraints=["time <= 20min"],
            method="trimtuner-dt",
            seed=7,
            storage=of_before / "doors.db",
            name="doors",
        )
