"""A job file becomes a job: every section, in YAML 1.2 and nothing older."""

import math
from pathlib import Path

import pytest

from trimtuner.decisions.stopping import LittleImprovement
from trimtuner.jobs.job import Job, problem_of
from trimtuner.jobs.load import load_job
from trimtuner.jobs.problem_section import Budget
from trimtuner.jobs.studies import JobStudy
from trimtuner.jobs.tree import plain_scalar
from trimtuner.keys.faults import JobFileError
from trimtuner.problem.catalog import built_in_catalog
from trimtuner.problem.parameters import Choice, Float, Int

DESIGN = """\
name: mnist-cnn
goal: {maximize: accuracy}
constraints: ["cost <= 0.10 USD", "time <= 20min", "latency_ms <= 40"]
budget: {money: 25 USD, time: 12h, trials: 200}
data: {fractions: [1/60, 1/10, 1/4, 1/2, 1], snapshots: true}
parameters:
  learning_rate: {values: [1e-3, 1e-4, 1e-5], scale: log}
  batch_size: {min: 16, max: 512, scale: log2, type: int}
  optimizer: {values: [sgd, adam]}
  momentum: {min: 0.0, max: 0.99, when: "optimizer == 'sgd'"}
cloud:
  catalog: builtin
  vm_type: [t2.small, t2.medium, t2.xlarge, t2.2xlarge]
  vm_count: {min: 1, max: 80, rule: "vm_count * vcpus in [8, 16, 32, 48, 64, 80]"}
  helpers: [t2.2xlarge]
run:
  command: [python, train.py, "--lr={learning_rate}", "--batch={batch_size}", "--momentum={momentum}",
            "--optimizer={optimizer}", "--fraction={fraction}"]
  timeout: 30min
  secrets: [WANDB_API_KEY]
engine: {type: local, parallel: 2}
search: {method: trimtuner, seed: 0}
"""

SMALL = """\
name: small
goal: {maximize: accuracy}
parameters:
  rate: {values: [0.1, 0.2]}
run:
  command: [python, train.py, "{rate}"]
"""


def job_of(folder: Path, text: str) -> Job:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return load_job(path)


def test_the_job_file_of_the_design_is_read_word_for_word(tmp_path):
    job = job_of(tmp_path, DESIGN)
    assert (job.name, job.goal.metric, job.goal.direction) == ("mnist-cnn", "accuracy", "maximize")
    assert [(c.metric, c.is_upper, c.limit) for c in job.constraints] == [
        ("cost", True, 0.10),
        ("time", True, 1200.0),
        ("latency_ms", True, 40.0),
    ]
    assert job.budget == Budget(25.0, 12 * 3600.0, 200)
    assert job.space.fractions == (1 / 60, 1 / 10, 1 / 4, 1 / 2, 1.0)
    assert job.space.snapshots
    assert job.space.parameters["learning_rate"] == Choice([1e-3, 1e-4, 1e-5], "log")
    assert job.space.parameters["batch_size"] == Int(16, 512, "log2")
    assert job.space.parameters["momentum"] == Float(0.0, 0.99, when="optimizer == 'sgd'")
    assert job.space.cloud is not None
    assert {c.vm_count * job.space.cloud.vms[c.vm_type].vcpus for c in job.space.cloud.clusters} == {
        8,
        16,
        32,
        48,
        64,
        80,
    }
    assert job.space.cloud.helpers == ("t2.2xlarge",)
    assert (job.run.timeout, job.run.secrets) == (1800.0, ("WANDB_API_KEY",))
    assert (job.engine.parallel, job.search.method, job.search.seed) == (2, "trimtuner", 0)


def test_what_is_left_out_has_documented_defaults(tmp_path):
    job = job_of(tmp_path, SMALL)
    assert job.space.fractions == (1.0,)
    assert not job.space.snapshots
    assert job.constraints == ()
    assert job.budget == Budget(None, None, None)
    assert job.run.timeout == 3600.0
    assert job.run.working_directory == tmp_path
    assert job.run.retries == {"preempted": 2}
    assert (job.run.memory, job.run.metrics_file, job.run.environment) == (None, None, {})
    assert job.storage == tmp_path / "small.db"
    assert (job.engine.type, job.engine.parallel) == ("local", 1)


def test_the_problem_of_a_job_has_its_money_as_budget(tmp_path):
    problem = problem_of(job_of(tmp_path, DESIGN))
    assert problem.budget == 25.0
    assert problem.goal.metric == "accuracy"
    assert len(problem.constraints) == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("0o10", 8),
        ("010", 10),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("1/60", "1/60"),
        ("~", None),
        ("null", None),
        ("", None),
        ("NULL", None),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("inf", "inf"),
        ("9" * 25, math.inf),
        ("9" * 5000, math.inf),
        ("=", "="),
        ("<<", "<<"),
        ("\u0661", "\u0661"),
    ],
)
def test_bare_words_are_what_yaml_1_2_says(text, value):
    found = plain_scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_traps_of_yaml_1_1_stay_texts_in_a_job(tmp_path):
    text = SMALL.replace("[0.1, 0.2]", "[no, on, 1_000, 2001-01-01, 0o10, 1e-3, '5', true]")
    values = job_of(tmp_path, text).space.parameters["rate"].values
    assert values == ("no", "on", "1_000", "2001-01-01", 8, 1e-3, "5", True)
    assert [type(value) for value in values[4:]] == [int, float, str, bool]


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "1e999", "9" * 30, "[[1]]", "[.inf]", "{a: 1}"])
def test_what_is_no_finite_value_is_refused_as_a_choice(tmp_path, value):
    with pytest.raises(JobFileError, match=r"job\.yaml:4: "):
        job_of(tmp_path, SMALL.replace("[0.1, 0.2]", f"[0.1, {value}]"))


def test_quotients_are_exact(tmp_path):
    text = SMALL + "data: {fractions: [1/3, 1 / 60, '1/7', 0.25, 1]}\n"
    assert job_of(tmp_path, text).space.fractions == (1 / 60, 1 / 7, 0.25, 1 / 3, 1.0)


@pytest.mark.parametrize(
    ("written", "read"),
    [("25 USD", 25.0), ("25", 25.0), ("2.5", 2.5), ("50 cents", 0.5), ("'$'", None), ("1e-2 usd", 0.01)],
)
def test_money_is_in_dollars(tmp_path, written, read):
    text = (
        SMALL + f"cloud: {{vms: {{a: {{vcpus: 1, memory_gib: 1, price_per_hour: 1}}}}}}\nbudget: {{money: {written}}}\n"
    )
    if read is None:
        with pytest.raises(JobFileError, match=r"job\.yaml:8: budget\.money"):
            job_of(tmp_path, text)
    else:
        assert job_of(tmp_path, text).budget.money == pytest.approx(read)


def test_machines_may_stand_in_the_job_file(tmp_path):
    text = SMALL + (
        "cloud:\n"
        "  vms:\n"
        "    big: {vcpus: 4, memory_gib: 8, price_per_hour: 2, spot_price_per_hour: 0.5, gpus: 1}\n"
        "    small: {vcpus: 1, memory_gib: 2, price_per_hour: 1, spot_price_per_hour: 0.25}\n"
        "  vm_count: [1, 4]\n"
        "  market: [on_demand, spot]\n"
    )
    job = job_of(tmp_path, text)
    price = job.space.price_per_hour
    assert price({"rate": 0.1, "vm_type": "big", "vm_count": 4, "market": "spot"}) == 2.0
    assert price({"rate": 0.1, "vm_type": "small", "vm_count": 1, "market": "on_demand"}) == 1.0
    assert len(job.space.pool()) == 2 * 2 * 2 * 2


def test_machines_may_stand_in_a_csv_of_ones_own(tmp_path):
    (tmp_path / "prices.csv").write_text(
        "region,vm_type,vcpus,memory_gib,price_per_hour,spot_price_per_hour\nx,a1,2,4,0.5,\nx,b1,4,8,1.0,0.3\n"
    )
    job = job_of(tmp_path, SMALL + "cloud: {catalog: prices.csv, vm_count: 2}\n")
    assert job.space.cloud is not None
    assert {name: vm.price_per_hour for name, vm in job.space.cloud.vms.items()} == {"a1": 0.5, "b1": 1.0}
    assert job.space.cloud.vms["b1"].spot_price_per_hour == 0.3
    assert job.space.price_per_hour({"rate": 0.1, "vm_type": "b1", "vm_count": 2}) == 2.0


@pytest.mark.parametrize(
    ("catalog", "region", "vm_type", "price"),
    [
        ("builtin", "", "t2.small", 0.023),
        ("aws", ", region: eu-west-1", "t2.small", 0.025),
        ("azure", "", "Standard_D4s_v3", 0.192),
        ("azure", ", region: westeurope", "Standard_D4s_v3", 0.24),
        ("gcp", "", "n1-standard-4", 4 * 0.031611 + 15 * 0.004237),
        ("own.csv", ", region: there", "a", 0.7),
    ],
)
def test_a_catalog_has_a_price_for_each_region(tmp_path, catalog, region, vm_type, price):
    (tmp_path / "own.csv").write_text(
        "region,vm_type,vcpus,memory_gib,price_per_hour\nhere,a,2,4,0.5\nthere,a,2,4,0.7\n"
    )
    job = job_of(tmp_path, SMALL + f"cloud: {{catalog: {catalog}{region}, vm_type: {vm_type}}}\n")
    found = job.space.price_per_hour({"rate": 0.1, "vm_type": vm_type, "vm_count": 1})
    assert found == pytest.approx(price, rel=1e-5)


def test_spot_is_described_for_all_machines_or_for_each(tmp_path):
    text = SMALL + (
        "cloud:\n  catalog: aws\n  vm_type: [t2.small, own]\n  market: [on_demand, spot]\n"
        "  spot: {discount: 0.6, interruptions_per_hour: 0.05}\n"
        "  vms:\n    own: {vcpus: 1, memory_gib: 2, price_per_hour: 1, spot_price_per_hour: 0.5,"
        " spot_interruptions_per_hour: 0.2}\n"
    )
    cloud = job_of(tmp_path, text).space.cloud
    assert cloud is not None
    assert cloud.vms["t2.small"].spot_price_per_hour == pytest.approx(0.023 * 0.4)
    assert cloud.vms["t2.small"].spot_interruptions_per_hour == 0.05
    assert (cloud.vms["own"].spot_price_per_hour, cloud.vms["own"].spot_interruptions_per_hour) == (0.5, 0.2)


def test_inline_machines_add_to_the_catalog_and_replace_its_prices(tmp_path):
    text = SMALL + (
        "cloud:\n  catalog: builtin\n  vm_type: [t2.small, t2.medium]\n"
        "  vms:\n    t2.small: {vcpus: 1, memory_gib: 2, price_per_hour: 9}\n"
    )
    cloud = job_of(tmp_path, text).space.cloud
    assert cloud is not None
    assert cloud.vms["t2.small"].price_per_hour == 9
    assert cloud.vms["t2.medium"] == built_in_catalog()["t2.medium"]


def test_configurations_may_be_listed_with_their_prices(tmp_path):
    text = """\
name: listed
goal: {minimize: cost}
constraints: ["accuracy >= 0.9"]
configs:
  - {rate: 0.1, vm_type: a, price_per_hour: 1}
  - {rate: 0.2, vm_type: b, price_per_hour: 3}
  - {rate: 0.2, vm_type: b, extra: 1, price_per_hour: 4}
run: {command: [train, "{rate}", "{vm_type}", "--extra={extra}"]}
"""
    job = job_of(tmp_path, text)
    assert len(job.space.pool()) == 3
    assert job.space.price_per_hour({"rate": 0.2, "vm_type": "b"}) == 3.0
    assert job.run.command_for({"rate": 0.2, "vm_type": "b"}, 1.0, 0) == ("train", "0.2", "b")


def test_more_configurations_may_be_listed_than_other_lists_hold(tmp_path):
    listed = "".join(f"  - {{rate: {number}, price_per_hour: 1}}\n" for number in range(1200))
    head = "name: listed\ngoal: {minimize: cost}\nconstraints: [accuracy >= 0.9]\nrun: {command: [train, '{rate}']}\n"
    assert len(job_of(tmp_path, f"{head}configs:\n{listed}").space.pool()) == 1200


def test_the_run_section_takes_every_key(tmp_path):
    text = SMALL.replace("name: small", "name: small\nstorage: records/study.db") + (
        "  working_directory: jobs\n"
        "  environment: {OMP_NUM_THREADS: 1, DEBUG: true, OCTAL: 0o10, EMPTY: ''}\n"
        "  memory: 1.5GiB\n"
        "  retries: {preempted: 5, oom: 1}\n"
        "  metrics: {file: 'out/metrics-{trial}.jsonl'}\n"
        "engine: {parallel: 3}\n"
    )
    job = job_of(tmp_path, text)
    assert job.run.working_directory == tmp_path / "jobs"
    assert job.run.environment == {"OMP_NUM_THREADS": "1", "DEBUG": "true", "OCTAL": "0o10", "EMPTY": ""}
    assert job.memory_bytes_for({"rate": 0.1}) == 1.5 * 2**30
    assert job.run.retries == {"preempted": 5, "oom": 1}
    assert job.run.metrics_file_for(7) == "out/metrics-7.jsonl"
    assert job.storage == tmp_path / "records" / "study.db"


@pytest.mark.parametrize("name", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_record_may_be_on_a_server_and_logs_are_then_beside_the_job_file(tmp_path, name):
    job = job_of(tmp_path, SMALL.replace("name: small", f"name: small\nstorage: {name}://me:hunter2@host:5433/studies"))
    assert str(job.storage) == "postgresql://me@host:5433/studies"
    assert "hunter2" not in repr(job)
    assert JobStudy(job).folder == tmp_path / "small.trials"


def test_the_memory_may_be_that_of_the_vm_type(tmp_path):
    job = job_of(tmp_path, DESIGN.replace("timeout: 30min", "memory: vm"))
    assert job.memory_bytes_for({"vm_type": "t2.medium", "vm_count": 4}) == 4 * 2**30


def test_options_of_a_method_come_from_its_text_or_its_key(tmp_path):
    in_text = job_of(tmp_path, SMALL + 'search: {method: "nephele:horizon=1,trees=7"}\n').search
    by_key = job_of(tmp_path, SMALL + "search: {method: nephele, options: {horizon: 1, trees: 7}}\n").search
    assert in_text == by_key
    assert in_text.recipe == by_key.recipe


def test_stop_rules_join_those_of_the_method(tmp_path):
    job = job_of(tmp_path, SMALL + "search: {method: cherrypick, stop: {little_improvement: 0.05}}\n")
    own = job_of(tmp_path, SMALL + "search: {method: cherrypick}\n").search.recipe.stop
    assert job.search.stop == LittleImprovement(0.05)
    assert job.search.recipe.stop == own | LittleImprovement(0.05)


def test_anchors_and_aliases_save_writing(tmp_path):
    text = SMALL.replace("rate: {values: [0.1, 0.2]}", "rate: &r {values: [0.1, 0.2]}\n  decay: *r")
    assert job_of(tmp_path, text).space.parameters["decay"] == Choice([0.1, 0.2])


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_job(path).name == "small"
    path.write_bytes(SMALL.replace("name:", "nmae:").replace("\n", "\r\n").encode())
    with pytest.raises(JobFileError, match=r"job\.yaml:1: unknown key 'nmae'"):
        load_job(path)


def test_a_constant_is_a_choice_of_one(tmp_path):
    job = job_of(tmp_path, SMALL.replace("{values: [0.1, 0.2]}", "{value: adam}"))
    assert job.space.parameters["rate"] == Choice(["adam"])
