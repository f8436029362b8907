"""``trimtuner best --format``: what launches the winner says the same as the study, and no value in it is code."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from trimtuner.commands import cli
from trimtuner.commands.launch import kubernetes, sagemaker
from trimtuner.commands.launch.formats import FORMATS, write_launch
from trimtuner.commands.launch.plan import Home, Plan, one_line, plan_of
from trimtuner.commands.launch.sagemaker import TRAINING_TYPES
from trimtuner.engines.protocol import Machines
from trimtuner.errors import InputError
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.catalog import built_in_listings
from trimtuner.tuning.recommendation import Estimate, Recommendation
from written_jobs import trimtuner, write_job

pytestmark = pytest.mark.xdist_group("launch")  # they share a search

HOSTILE = "it's \"$(touch oops)\" `touch oops` ${HOME} $(WANDB_API_KEY) {{ }} # \\ \t| é\u2028\n- next: !!str 'y'\n"
WORDS_OF_YAML_1_1 = {"no": "yes", "on": "off", "true": "null", "N": "1:30", "E": "1e3", "O": "0o14", "EMPTY": ""}
PLAN = Plan(
    study="digits",
    command=("python3", "train.py", "--rate=0.1"),
    working_directory=Path("/srv/job"),
    environment={"PYTHONUNBUFFERED": "1"},
    secrets=(),
    hyperparameters={"rate": "0.1"},
    deadline_seconds=600,
    memory_bytes=None,
    machines=Machines("m5.large", 1, "on_demand", 2, 8.0),
    home=Home("aws", "eu-west-1"),
    expected={"accuracy": "0.93 (0.91 to 0.95)"},
    is_measured=False,
    story=("The recommendation",),
)
HOSTILE_PLAN = replace(
    PLAN,
    study=f"a {HOSTILE}",
    command=("python3", "train.py", HOSTILE),
    environment={**WORDS_OF_YAML_1_1, "A": HOSTILE},
    hyperparameters={"text": HOSTILE},
    story=(one_line(f"The recommendation of {HOSTILE}"),),
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def parsed(text: str, version: tuple[int, int] = (1, 1)) -> list[dict]:
    """YAML as SkyPilot and Kubernetes read it: by the rules of 1.1."""
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    return list(reader.load_all(text))


def text_of(form: str, plan: Plan) -> str:
    return FORMATS[form].text(plan)


def task_of(plan: Plan) -> dict:
    (task,) = parsed(text_of("skypilot", plan))
    return task


def job_of(plan: Plan) -> dict:
    return parsed(text_of("kubernetes", plan))[-1]


def container_of(plan: Plan) -> dict:
    (container,) = job_of(plan)["spec"]["template"]["spec"]["containers"]
    return container


def request_of(plan: Plan) -> dict:
    return json.loads(text_of("sagemaker", plan))


def run_script(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        ["bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def put_in_by_kubernetes(text: str, variables: dict[str, str]) -> str:
    """Its documented rule: $$ is a dollar; $(NAME) is the variable, or stays where there is none."""
    return re.sub(
        r"\$\$|\$\(([^)]*)\)", lambda m: "$" if m[0] == "$$" else variables.get(m[1], m[0]), text, flags=re.DOTALL
    )


# What the study says


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    """A short search on this machine."""
    path = write_job(tmp_path_factory.mktemp("launch"), trials=6, nap=0)
    trimtuner("run", path, "-q")
    return path


@pytest.fixture
def best(monkeypatch, capsys, searched):
    """Run ``trimtuner best`` on it, in this process: exit code, standard output and standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trimtuner", "best", str(searched), *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run


def test_the_script_trains_the_winner_and_its_metric_is_the_one_expected(best, tmp_path):
    winner = json.loads(best("--json")[1])
    script = tmp_path / "winner.sh"
    code, told, _ = best("--format", "bash", "--output", script)
    assert code == 0
    assert told == f"wrote {script}; launch it with: bash {script}\n"
    done = subprocess.run(["bash", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout.removeprefix("::metric "))["accuracy"]
    x, fraction = winner["config"]["x"], winner["fraction"]
    assert measured == pytest.approx((1 - (x - 0.6) ** 2) * fraction**0.1)


def test_the_script_tells_the_study_and_what_to_expect_and_the_same_each_time(best):
    (_, first, _), (_, second, _) = best("--format", "bash"), best("--format", "bash")
    assert first == second
    comment = [line for line in first.splitlines() if line.startswith("# ")]
    assert comment[0] == "# The recommendation of the trimtuner study quick:"
    assert any(re.fullmatch(r"#   accuracy: [\d.]+( \([\d.]+ to [\d.]+\))?", line) for line in comment)
    assert any(line.startswith("#   cost: ") for line in comment)
    assert any(line.startswith("# What to expect (") and line.endswith("engine local:") for line in comment)


def test_a_file_that_is_there_is_never_written_over(best, tmp_path):
    (tmp_path / "mine").write_text("mine")
    code, _, told = best("--format", "bash", "-o", tmp_path / "mine")
    assert code == 2
    assert "is there already" in told
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "kubernets"], "did you mean 'kubernetes'?"),
        (["--format", "bash", "--json"], "choose one"),
        (["--output", "x"], "say --format"),
    ],
)
def test_a_wrong_wish_is_one_line_that_says_what_to_do(best, words, says):
    code, out, told = best(*words)
    assert (code, out) == (2, "")
    assert says in told
    assert len(told.splitlines()) == 1


def recommended(**changes: object) -> Recommendation:
    values: dict[str, object] = {
        "config": {"vm_type": "small", "vm_count": 1, "x": 0.6},
        "fraction": 1.0,
        "estimates": {"accuracy": Estimate(0.9, 0.8, 0.95), "time": Estimate(30.0, 20.0, 40.2)},
        "feasible": {"cost <= 1 USD": 0.97},
        "chance_feasible": 0.97,
        "is_measured": False,
    }
    return Recommendation(**{**values, **changes})


def test_a_run_that_will_take_longer_than_any_trial_is_not_ended_at_their_time_out(searched):
    of = JobStudy.at(searched)
    assert of.job.run.timeout == 20.0
    assert plan_of(of, recommended(), 0).deadline_seconds == 41  # the end of the interval, in whole seconds
    short = recommended(estimates={"time": Estimate(3.0, 2.0, 4.0)})
    assert plan_of(of, short, 0).deadline_seconds == 20


def test_a_prediction_and_a_measurement_are_told_apart(searched):
    of = JobStudy.at(searched)
    assert any("(predicted" in line for line in plan_of(of, recommended(), 0).story)
    assert any("(measured)" in line for line in plan_of(of, recommended(is_measured=True), 0).story)


def test_what_meets_no_limit_is_not_called_recommended(searched):
    of = JobStudy.at(searched)
    assert plan_of(of, recommended(chance_feasible=0.2), 0).story[0].startswith("The least infeasible")


def test_machines_of_the_job_files_own_have_no_provider(searched):
    of = JobStudy.at(searched)
    plan = plan_of(of, recommended(), 0)
    assert plan.home is None
    assert plan.machines is not None
    assert (plan.machines.vm_type, plan.machines.vcpus) == ("small", 1)
    assert plan.hyperparameters == {"x": "0.6"}


@pytest.mark.parametrize(
    ("cloud", "engine", "home"),
    [
        ("{catalog: gcp, vm_type: [c2-standard-16]}", "local", Home("gcp", "us-central1")),
        ("{catalog: aws, region: eu-west-1, vm_type: [m5.large]}", "local", Home("aws", "eu-west-1")),
        (
            "{vms: {m5.large: {vcpus: 2, memory_gib: 8, price_per_hour: 1}}}",
            "aws, region: eu-west-3",
            Home("aws", "eu-west-3"),
        ),
    ],
)
def test_the_provider_is_that_of_the_catalog_or_of_the_engine(tmp_path, searched, cloud, engine, home):
    (tmp_path / "train.py").touch()
    text = re.sub(r"cloud:\n(  .*\n)+", f"cloud: {cloud}\n", searched.read_text())
    path = tmp_path / "job.yaml"
    path.write_text(re.sub(r"type: local", f"type: {engine}", text))
    of = JobStudy.at(path)
    vm_type = next(iter(of.job.space.cloud.vms))
    wanted = recommended(config={"vm_type": vm_type, "vm_count": 1, "x": 0.6})
    assert plan_of(of, wanted, 0).home == home


def test_a_folder_that_is_not_there_is_named(searched, tmp_path):
    of = JobStudy.at(searched)
    with pytest.raises(InputError, match="cannot be written"):
        write_launch(plan_of(of, recommended(), 0), "bash", tmp_path / "none" / "x.sh")


# No value is code


def test_a_hostile_value_reaches_the_command_as_it_is_and_runs_nothing(tmp_path):
    show = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    plan = replace(HOSTILE_PLAN, working_directory=tmp_path, command=("python3", "-c", show, HOSTILE, "a=b", "-x"))
    done = run_script(text_of("bash", plan), tmp_path)
    arguments, environment = json.loads(done.stdout)
    assert arguments == [HOSTILE, "a=b", "-x"]
    assert {name: environment[name] for name in plan.environment} == plan.environment
    assert list(tmp_path.iterdir()) == []


def test_the_first_word_is_a_program_even_if_a_shell_would_read_it_otherwise(tmp_path):
    program = tmp_path / "a=b"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    plan = replace(PLAN, working_directory=tmp_path, command=("a=b",))
    assert run_script(text_of("bash", plan), tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}").stdout == "ran\n"


def test_a_secret_is_demanded_by_name_and_handed_on(tmp_path):
    plan = replace(PLAN, working_directory=tmp_path, secrets=("API_KEY",), command=("printenv", "API_KEY"))
    without = run_script(text_of("bash", plan), tmp_path)
    assert without.returncode != 0
    assert "API_KEY: is a secret of this job" in without.stderr
    assert run_script(text_of("bash", plan), tmp_path, API_KEY="k1").stdout == "k1\n"


@pytest.mark.parametrize("form", FORMATS)
def test_the_value_of_a_secret_stands_in_no_format(form, monkeypatch):
    monkeypatch.setenv("API_KEY", "very-secret")
    text = text_of(form, replace(PLAN, secrets=("API_KEY",)))
    assert "API_KEY" in text
    assert "very-secret" not in text


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_hostile_text_reads_back_as_the_same_text_from_yaml(version):
    (task,) = parsed(text_of("skypilot", HOSTILE_PLAN), version)
    assert task["envs"] == HOSTILE_PLAN.environment
    (job,) = parsed(text_of("kubernetes", HOSTILE_PLAN), version)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert put_in_by_kubernetes(container["command"][2], {"WANDB_API_KEY": "leaked"}) == HOSTILE
    assert job["metadata"]["annotations"]["trimtuner/study"] == HOSTILE_PLAN.study


@given(word=texts, value=texts)
def test_any_text_reads_back_from_every_yaml(word, value):
    plan = replace(PLAN, command=("train", word), environment={"A": value}, story=(one_line(value),))
    task, container = task_of(plan), container_of(plan)
    assert task["envs"] == {"A": value}
    assert shlex.split(task["run"].split("exec -- ", 1)[1]) == ["timeout", "600", "train", word]
    assert put_in_by_kubernetes(container["command"][1], {}) == word
    assert put_in_by_kubernetes(container["env"][0]["value"], {"A": "x"}) == value


def test_hostile_text_reads_back_from_json():
    plan = replace(HOSTILE_PLAN, command=("python3", HOSTILE.splitlines()[0]), hyperparameters={"a": "$(touch x) {{}}"})
    request = request_of(plan)
    assert request["Environment"] == plan.environment
    assert request["AlgorithmSpecification"]["ContainerArguments"] == [plan.command[1]]
    assert request["HyperParameters"] == plan.hyperparameters


@given(study=texts)
def test_any_study_has_a_name_that_every_service_takes(study):
    name = replace(PLAN, study=study).name
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?", name)


# SkyPilot


def test_skypilot_rents_what_was_chosen():
    task = task_of(replace(PLAN, machines=Machines("m5.large", 4, "spot", 2, 8.0)))
    assert task["resources"] == {"infra": "aws/eu-west-1", "instance_type": "m5.large", "use_spot": True}
    assert task["num_nodes"] == 4
    assert task["workdir"] == "/srv/job"


def test_skypilot_is_told_the_size_where_the_machine_is_no_providers():
    task = task_of(replace(PLAN, home=None, machines=Machines("mine", 1, "on_demand", 2, 4.5, 1)))
    wanted = {"cpus": "2+", "memory": "4.5+", "accelerators": "<name of the GPU>:1", "use_spot": False}
    assert task["resources"] == wanted
    assert "resources" not in task_of(replace(PLAN, home=None, machines=None))
    assert task_of(replace(PLAN, home=None, machines=None, memory_bytes=2**31))["resources"] == {"memory": "2+"}


def test_skypilot_asks_for_secrets_at_launch():
    text = text_of("skypilot", replace(PLAN, secrets=("API_KEY",)))
    (task,) = parsed(text)
    assert task["secrets"] == {"API_KEY": None}
    assert "--secret API_KEY" in text


def test_on_skypilot_the_command_starts_on_the_first_machine_and_finds_the_others(tmp_path):
    several = replace(
        PLAN,
        machines=Machines("m5.large", 3, "on_demand", 2, 8.0),
        command=("printenv", "TRIMTUNER_HEAD", "TRIMTUNER_WORKERS"),
    )
    script, addresses = task_of(several)["run"], "10.0.0.1\n10.0.0.2\n10.0.0.3\n"
    head = run_script(script, tmp_path, SKYPILOT_NODE_RANK="0", SKYPILOT_NODE_IPS=addresses.strip())
    assert head.stdout.split() == ["10.0.0.1", "10.0.0.1,10.0.0.2,10.0.0.3"]
    other = run_script(script, tmp_path, SKYPILOT_NODE_RANK="1", SKYPILOT_NODE_IPS=addresses.strip())
    assert (other.returncode, other.stdout) == (0, "")


# Kubernetes


def test_a_kubernetes_job_is_tried_once_until_its_deadline():
    spec = job_of(PLAN)["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert "completions" not in spec


def test_a_kubernetes_job_fits_on_a_node_of_its_type_and_asks_for_more_than_half_of_it():
    plan = replace(PLAN, machines=Machines("p3.2xlarge", 1, "on_demand", 8, 61.0, 1))
    assert job_of(plan)["spec"]["template"]["spec"]["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "p3.2xlarge"
    }
    resources = container_of(plan)["resources"]
    assert resources["limits"] == {"cpu": "8", "memory": "62464Mi", "nvidia.com/gpu": "1"}
    assert resources["requests"]["nvidia.com/gpu"] == "1"
    assert 4000 < int(resources["requests"]["cpu"].removesuffix("m")) < 8000
    assert 31232 < int(resources["requests"]["memory"].removesuffix("Mi")) < 62464


def test_on_kubernetes_a_machine_of_ones_own_is_a_size_and_no_machine_is_no_size():
    own = replace(PLAN, home=None, machines=Machines("mine", 1, "on_demand", 2, 4.0))
    assert "nodeSelector" not in job_of(own)["spec"]["template"]["spec"]
    assert container_of(own)["resources"]["requests"] == {"cpu": "2000m", "memory": "4096Mi"}
    none = replace(PLAN, home=None, machines=None)
    assert "resources" not in container_of(none)
    assert "# The job names no machines" in text_of("kubernetes", none)


def test_several_machines_are_an_indexed_job_whose_pods_find_each_other():
    plan = replace(PLAN, machines=Machines("m5.large", 3, "on_demand", 2, 8.0))
    service, job = parsed(text_of("kubernetes", plan))
    assert service["spec"] == {"clusterIP": "None", "selector": {"job-name": "digits"}}
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    variables = {one["name"]: one["value"] for one in container_of(plan)["env"]}
    assert variables["TRIMTUNER_HEAD"] == "digits-0.digits"  # pods of an indexed job are <job>-<index>
    assert variables["TRIMTUNER_WORKERS"] == "digits-0.digits,digits-1.digits,digits-2.digits"


def test_kubernetes_secrets_are_keys_of_a_secret_and_spot_is_a_note():
    plan = replace(PLAN, secrets=("API_KEY",), machines=Machines("m5.large", 1, "spot", 2, 8.0))
    reference = {"secretKeyRef": {"name": "digits-secrets", "key": "API_KEY"}}
    assert {"name": "API_KEY", "valueFrom": reference} in container_of(plan)["env"]
    text = text_of("kubernetes", plan)
    (note,) = [line for line in text.splitlines() if "spot nodes" in line]
    assert note.startswith("# ")
    assert "eks.amazonaws.com/capacityType: SPOT" in note


# SageMaker


@pytest.fixture(scope="module")
def training_job():
    """The request of CreateTrainingJob, as botocore knows it."""
    session = pytest.importorskip("botocore.session").get_session()
    return session.get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def filled_in(request: dict) -> dict:
    """The request with what a person puts in for the places between < and >."""
    request["RoleArn"] = "arn:aws:iam::123456789012:role/train"
    request["AlgorithmSpecification"]["TrainingImage"] = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/digits:1"
    request["OutputDataConfig"]["S3OutputPath"] = "s3://bucket/digits"
    return request


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, machines=Machines("m5.large", 4, "spot", 2, 8.0)),
        replace(PLAN, command=("train",), secrets=("API_KEY",)),
        replace(HOSTILE_PLAN, command=("train", "$(touch x) {{}}"), hyperparameters={}),
    ],
)
def test_the_request_is_one_that_sagemaker_takes(plan, training_job):
    from botocore.validate import ParamValidator

    request = filled_in(request_of(plan))
    report = ParamValidator().validate(request, training_job)
    assert not report.has_errors(), report.generate_report()
    assert (
        request["ResourceConfig"]["InstanceType"] in training_job.members["ResourceConfig"].members["InstanceType"].enum
    )
    letters = re.compile(r"[A-Za-z0-9 _.:/=+@-]*")  # those of the service's own pattern, without \p{L}
    assert all(letters.fullmatch(tag[part]) for tag in request["Tags"] for part in ("Key", "Value"))


def test_sagemaker_spot_waits_longer_than_it_runs():
    spot = request_of(replace(PLAN, machines=Machines("m5.large", 1, "spot", 2, 8.0)))
    assert spot["EnableManagedSpotTraining"] is True
    stopping = spot["StoppingCondition"]
    assert stopping["MaxRuntimeInSeconds"] == 600 < stopping["MaxWaitTimeInSeconds"]
    assert request_of(PLAN)["StoppingCondition"] == {"MaxRuntimeInSeconds": 600}


def test_the_tags_say_what_to_expect():
    assert {"Key": "trimtuner:predicted-accuracy", "Value": "0.93 from 0.91 to 0.95"} in request_of(PLAN)["Tags"]


def test_every_type_of_the_catalog_that_sagemaker_has_is_known_and_no_other(training_job):
    theirs = {name.removeprefix("ml.") for name in training_job.members["ResourceConfig"].members["InstanceType"].enum}
    assert theirs >= TRAINING_TYPES
    ours = {listing.vm_type for listing in built_in_listings("aws")}
    assert ours & TRAINING_TYPES == ours & theirs


@pytest.mark.parametrize(
    ("machines", "home", "says"),
    [
        (
            Machines("t2.medium", 1, "on_demand", 2, 4.0),
            Home("aws", None),
            "<SageMaker has no t2.medium; .*2 vCPUs, 4 GiB>",
        ),
        (Machines("m5.large", 1, "on_demand", 2, 4.0), Home("gcp", None), "<SageMaker has no m5.large; .*>"),
        (None, None, "<an instance type .*>"),
    ],
)
def test_a_machine_that_sagemaker_has_not_is_a_place_to_fill_in(machines, home, says):
    request = request_of(replace(PLAN, machines=machines, home=home))
    assert re.fullmatch(says, request["ResourceConfig"]["InstanceType"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"command": ("train", "a\nb")}, "line break"),
        ({"command": ("train", "a" * 257)}, "257 letters"),
        ({"command": ("train",) * 102}, "words"),
        ({"environment": {"A": "a" * 513}}, "the variable A has 513"),
        ({"hyperparameters": {"a": "a\nb"}}, "line break"),
        ({"environment": {f"A{i}": "" for i in range(101)}}, "up to 100 variables"),
    ],
)
def test_what_sagemaker_would_refuse_is_said_before(changes, says):
    with pytest.raises(InputError, match=says):
        text_of("sagemaker", replace(PLAN, **changes))


def test_what_must_be_filled_in_stands_between_angle_brackets():
    for place in (sagemaker.ROLE, sagemaker.IMAGE, sagemaker.OUTPUT, kubernetes.IMAGE):
        assert re.fullmatch("<.+>", place)
