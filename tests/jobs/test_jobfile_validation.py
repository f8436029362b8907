"""What a job would do and cost is told before it starts; a first job file is ready; a changed problem is seen."""

import json
from pathlib import Path

import pytest

from trimtuner.errors import InputError
from trimtuner.jobs.differing import description_of
from trimtuner.jobs.job import Job
from trimtuner.jobs.load import load_job
from trimtuner.jobs.starter import init_text, write_init
from trimtuner.jobs.validation import validate_text, validation
from trimtuner.keys.quantities import duration_text
from trimtuner.records.differences import differences

JOB = """\
name: priced
goal: {maximize: accuracy}
constraints: ["cost <= 0.10 USD", "time <= 20min"]
budget: {money: 10 USD}
data: {fractions: [1/10, 1]}
parameters:
  rate: {values: [0.1, 0.2, 0.3]}
  optimizer: {values: [sgd, adam]}
  momentum: {values: [0.5, 0.9], when: "optimizer == 'sgd'"}
cloud:
  vms:
    small: {vcpus: 1, memory_gib: 2, price_per_hour: 1}
    large: {vcpus: 4, memory_gib: 8, price_per_hour: 3}
  vm_count: [1, 2]
run:
  command: [sh, -c, "true", "{rate}", "{optimizer}", "--momentum={momentum}", "{fraction}"]
  timeout: 1793s
search: {method: trimtuner, seed: 0}
"""


def job_of(folder: Path, *changes: tuple[str, str]) -> Job:
    text = JOB
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "priced.yaml"
    path.write_text(text)
    return load_job(path)


TO_THE_TIMEOUT = ("timeout: 1793s", "timeout: 1793s\n  stop_at_limits: false")


def test_the_worst_case_is_the_timeout_at_the_price_and_says_what_the_money_allows(tmp_path):
    found = validation(job_of(tmp_path, TO_THE_TIMEOUT), {})
    assert found["is_valid"]
    assert found["errors"] == found["warnings"] == []
    # 3 rates × (2 momenta for sgd + adam) × 2 types × 2 counts
    assert found["space"] == {
        "configurations": 3 * 3 * 4,
        "fractions": [0.1, 1.0],
        "snapshots": False,
        "candidates": 3 * 3 * 4 * 2,
    }
    assert found["price_per_hour"] == {"least": 1.0, "most": 6.0}
    assert found["worst_case"] == {"cheapest_usd": 0.5, "dearest_usd": 3.0}
    assert found["budget"] == {
        "money_usd": 10.0,
        "seconds": None,
        "trials": None,
        "least_trials": 3,
        "most_trials_at_worst": 20,
    }
    assert json.loads(json.dumps(found)) == found


def test_a_trial_that_is_stopped_over_a_limit_costs_no_more_at_worst(tmp_path):
    """A fifth over 0.10 USD, and 7 s at 1 or 6 USD an hour; ten dollars then pay for 75 of the dearest."""
    found = validation(job_of(tmp_path), {})
    cheapest, dearest = 0.12 + 7 / 3600, 0.12 + 6 * 7 / 3600
    assert found["worst_case"] == pytest.approx({"cheapest_usd": cheapest, "dearest_usd": dearest})
    assert found["budget"]["least_trials"] == int(10 / dearest)
    assert "the timeout, or a fifth over cost <= 0.10 USD and time <= 20min, and 7 s" in validate_text(
        job_of(tmp_path), {}
    )


def test_a_trial_that_is_the_mean_of_several_runs_is_not_stopped(tmp_path):
    repeated = job_of(tmp_path, ("timeout: 1793s", "timeout: 1793s\n  repeats: 2"))
    assert validation(repeated, {})["worst_case"] == {"cheapest_usd": 0.5, "dearest_usd": 3.0}


def test_the_text_has_the_same_numbers_for_a_person(tmp_path):
    text = validate_text(job_of(tmp_path, TO_THE_TIMEOUT), {})
    for piece in (
        "36 configurations",
        "72 candidates",
        "1 to 6 USD per hour",
        "0.5 to 3 USD",
        "the timeout, and 7 s around it",
        "3 of the dearest",
    ):
        assert piece in text
    assert text.startswith("priced: ready to run\n")


@pytest.mark.parametrize(
    ("method", "tested", "said"),
    [
        ("trimtuner", [0.05, 1.0], "; tests at fractions 0.05, 1 only"),
        ("eic", [1.0], "; tests at fractions 1 only"),
        ("hyperband", [0.01, 0.05, 1.0], " at a time\n"),
    ],
)
def test_which_of_the_shares_the_method_tests_on_is_said(tmp_path, method, tested, said):
    job = job_of(tmp_path, ("[1/10, 1]", "[1/100, 1/20, 1]"), ("method: trimtuner", f"method: {method}"))
    assert validation(job, {})["search"]["tested_fractions"] == tested
    assert said in validate_text(job, {})


def test_a_budget_that_fits_nothing_is_an_error(tmp_path):
    job = job_of(tmp_path, ("money: 10 USD", "money: 0.4 USD"), TO_THE_TIMEOUT)
    (error,) = validation(job, {})["errors"]
    assert "not even the cheapest trial fits" in error
    assert "not ready to run" in validate_text(job, {})
    assert validation(job_of(tmp_path, ("money: 10 USD", "money: 0.5 USD"), TO_THE_TIMEOUT), {})["errors"] == []


def test_a_budget_that_excludes_the_dearest_machines_is_a_warning(tmp_path):
    (warning,) = validation(job_of(tmp_path, ("money: 10 USD", "money: 2 USD"), TO_THE_TIMEOUT), {})["warnings"]
    assert "the dearest machines reserve 3 USD a trial" in warning


def test_a_continuous_space_has_no_number_of_configurations(tmp_path):
    job = job_of(tmp_path, ("rate: {values: [0.1, 0.2, 0.3]}", "rate: {min: 0.0, max: 1.0}"))
    space = validation(job, {})["space"]
    assert (space["configurations"], space["candidates"]) == (None, None)
    assert "more configurations than can be listed" in validate_text(job, {})


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("{method: trimtuner, seed: 0}", "{method: ei}", "ei refuses this job: this method does not look at limits"),
        ("[1/10, 1]}", "[1]}\nengine: {parallel: 1}", None),
        ("timeout: 1793s", "working_directory: absent", "run.working_directory: there is no folder"),
        ("timeout: 1793s", f"working_directory: {'x' * 300}", "run.working_directory: there is no folder"),
        ("seed: 0", "stop: {not_worth_its_price: true}", "cannot tell what accuracy is worth"),
        ("seed: 0", "stop: {not_worth_its_price: 100}", None),
    ],
)
def test_what_cannot_run_is_an_error(tmp_path, old, new, error):
    errors = validation(job_of(tmp_path, (old, new)), {})["errors"]
    assert [error in text for text in errors] == [True] if error else errors == []


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("command: [sh,", "command: [no-such-program,", "the program 'no-such-program' is not found"),
        ("command: [sh,", "command: [./no-such-script,", "the program './no-such-script' is not found"),
        (', "{rate}"', "", "{rate} is in no word"),
        (', "{fraction}"', "", "{fraction} is in no word"),
        ('"--momentum={momentum}"', '--momentum, "{momentum}"', "write both in one word: '--momentum={momentum}'"),
        ("timeout: 1793s", "secrets: [API_KEY]", "run.secrets: API_KEY is not set"),
        ("timeout: 1793s", "environment: {API_KEY: hunter2}", "API_KEY looks like a secret"),
        ("budget: {money: 10 USD}\n", "", "there is no budget"),
        ("timeout: 1793s", "timeout: 10min", "'time <= 20min' allows more than run.timeout"),
        ("{maximize: accuracy}", "{minimize: cost}", "nothing says how good the result must be"),
    ],
)
def test_what_looks_wrong_is_a_warning(tmp_path, old, new, warning):
    job = job_of(tmp_path, (old, new))
    found = validation(job, {})
    assert [warning in text for text in found["warnings"]] == [True], found["warnings"]
    assert "hunter2" not in validate_text(job, {})


def test_a_password_in_the_address_of_the_record_is_a_warning_that_does_not_show_it(tmp_path):
    """Nobody listens there, which is a warning as well: the record may be in reach of whoever runs the job."""
    nowhere = "127.0.0.1:9/studies"
    job = job_of(tmp_path, ("name: priced", f"name: priced\nstorage: postgresql://me:hunter2@{nowhere}"))
    warning, unread = validation(job, {})["warnings"]
    assert "PGPASSWORD" in warning
    assert ".pgpass" in warning
    assert "could not be compared with its record" in unread
    told = validate_text(job, {}) + json.dumps(validation(job, {}))
    assert f"postgresql://me@{nowhere}" in told
    assert "hunter2" not in told
    job = job_of(tmp_path, ("name: priced", f"name: priced\nstorage: postgresql://me@{nowhere}"))
    (unread,) = validation(job, {})["warnings"]
    assert "could not be compared with its record" in unread
    assert validation(job, {})["is_valid"]


def test_secrets_at_hand_are_looked_for_by_name_and_never_shown(tmp_path):
    job = job_of(tmp_path, ("timeout: 1793s", "secrets: [API_KEY]"))
    assert validation(job, {"API_KEY": "hunter2"})["warnings"] == []
    assert "hunter2" not in validate_text(job, {"API_KEY": "hunter2"})
    assert "hunter2" not in repr(job)


@pytest.mark.parametrize(("seconds", "text"), [(0.5, "0.5s"), (90, "1.5min"), (3600, "1h"), (172800, "2d")])
def test_durations_are_short(seconds, text):
    assert duration_text(seconds) == text


def test_a_first_job_file_loads_and_is_ready_to_run(tmp_path):
    path = tmp_path / "first.yaml"
    write_init(path)
    (without_script,) = (text for text in validation(load_job(path), {})["warnings"] if "train.py" in text)
    assert "there is no file 'train.py'" in without_script
    (tmp_path / "train.py").touch()
    found = validation(load_job(path), {})
    assert found["name"] == "first"
    assert found["errors"] == []
    assert [text for text in found["warnings"] if "is not found on this machine" not in text] == []
    assert found["space"]["candidates"] == 5 * 6 * 3 * 2 * 5


@pytest.mark.parametrize("name", ["a", "2024", "no", "1e5", "x" * 64, "a.b-c_d", "null"])
def test_a_first_job_file_keeps_any_right_name(tmp_path, name):
    path = tmp_path / "job.yaml"
    path.write_text(init_text(name))
    assert load_job(path).name == name


@pytest.mark.parametrize("name", ["", "..", "-x", "a/b", "a b", "x" * 65, "a\nb", 'a"b', "é"])
def test_a_first_job_file_refuses_a_wrong_name(name):
    with pytest.raises(InputError, match="no name for a study"):
        init_text(name)


def test_a_first_job_file_never_replaces_another(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("precious")
    with pytest.raises(InputError, match="is there already"):
        write_init(path)
    assert path.read_text() == "precious"
    with pytest.raises(InputError, match="cannot be written"):
        write_init(tmp_path / "absent" / "x.yaml")


@pytest.mark.parametrize("file", ["my job (1).yaml", ".hidden", "é.yaml", "x" * 90 + ".yaml"])
def test_a_first_job_file_is_named_after_its_file_as_well_as_may_be(tmp_path, file):
    write_init(tmp_path / file)
    assert load_job(tmp_path / file).name


def test_the_same_problem_written_otherwise_has_the_same_definition(tmp_path):
    one = description_of(job_of(tmp_path)).plain
    other = description_of(
        job_of(
            tmp_path,
            ('"cost <= 0.10 USD", "time <= 20min"', "cost <= 10 cents, time <= 1200 s"),
            ("[1/10, 1]", "[1, 0.1]"),
            ("{method: trimtuner, seed: 0}", '{method: "trimtuner:horizon=0"}'),
            ("money: 10 USD", "money: 11 USD"),
            ("timeout: 1793s", "timeout: 31min"),
            ("name: priced", "name: other"),
        )
    ).plain
    assert differences(one, other) == []
    assert one == other


def test_a_definition_survives_json_in_any_order_of_keys(tmp_path):
    one = description_of(job_of(tmp_path)).plain
    assert json.loads(json.dumps(one)) == one
    assert differences(json.loads(json.dumps(one, sort_keys=True)), one) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("seed: 0", "seed: 1", "seed: was 0, is 1"),
        ("maximize: accuracy", "minimize: loss", "goal.maximize: was 'accuracy', is gone"),
        ("20min", "21min", "constraints.time.at_most: was 1200.0, is 1260.0"),
        (', "time <= 20min"', "", "constraints.time: was {'at_most': 1200.0}, is gone"),
        ("[1/10, 1]", "[1/8, 1]", "fractions: was [0.1, 1.0], is [0.125, 1.0]"),
        ("[1/10, 1]", "[1/10, 1], snapshots: true", "snapshots: was False, is True"),
        ("[0.1, 0.2, 0.3]", "[0.1, 0.2]", "parameters.rate.values: was [0.1, 0.2, 0.3], is [0.1, 0.2]"),
        ("when: \"optimizer == 'sgd'\"", "when: \"optimizer == 'adam'\"", "parameters.momentum.when: was"),
        ("price_per_hour: 3", "price_per_hour: 4", "cloud.price_per_hour.1 x large on_demand: was 3.0, is 4.0"),
        ("vm_count: [1, 2]", "vm_count: [1]", "cloud.price_per_hour.2 x small on_demand: was 2.0, is gone"),
        ("vcpus: 4", "vcpus: 2", "cloud.vm_type.large.vcpus: was 4, is 2"),
        ("method: trimtuner", "method: random", "method: was 'trimtuner', is 'random'"),
        ("method: trimtuner", "method: 'trimtuner:horizon=1'", "options.horizon: was 0, is 1"),
    ],
)
def test_another_problem_is_told_apart_in_words(tmp_path, old, new, line):
    before, after = description_of(job_of(tmp_path)).plain, description_of(job_of(tmp_path, (old, new))).plain
    found = differences(before, after)
    assert any(text.startswith(line) for text in found), found
    assert differences(after, before)


def test_another_order_of_parameters_is_another_problem(tmp_path):
    moved = ("  rate: {values: [0.1, 0.2, 0.3]}\n  optimizer: {values: [sgd, adam]}\n",)
    swapped = "  optimizer: {values: [sgd, adam]}\n  rate: {values: [0.1, 0.2, 0.3]}\n"
    found = differences(
        description_of(job_of(tmp_path)).plain, description_of(job_of(tmp_path, (*moved, swapped))).plain
    )
    assert found == ["parameters: the order was rate, optimizer, momentum, is optimizer, rate, momentum"]


def test_true_and_one_are_different_values(tmp_path):
    ones = description_of(job_of(tmp_path, ("[0.1, 0.2, 0.3]", "[1, 2]"))).plain
    trues = description_of(job_of(tmp_path, ("[0.1, 0.2, 0.3]", "[true, 2]"))).plain
    assert differences(ones, trues)


def test_listed_configurations_define_the_problem_with_their_prices(tmp_path):
    path = tmp_path / "listed.yaml"

    def definition(configs: str) -> dict:
        path.write_text(f"name: x\ngoal: {{maximize: a}}\nconfigs: {configs}\nrun: {{command: [sh]}}\n")
        return description_of(load_job(path)).plain

    one = definition("[{a: 1, price_per_hour: 1}, {a: 2, price_per_hour: 1}]")
    dearer = definition("[{a: 1, price_per_hour: 1}, {a: 2, price_per_hour: 2}]")
    shorter = definition("[{a: 1, price_per_hour: 1}]")
    unpriced = definition("[{a: 1}, {a: 2}]")
    assert differences(one, dearer) == ["configs, item 2.price_per_hour: was 1.0, is 2.0"]
    assert differences(one, shorter) == ["configs: 2 were listed, now 1"]
    assert differences(one, unpriced)
    assert differences(one, description_of(job_of(tmp_path)).plain)


FREE = """
name: free
goal: {{maximize: accuracy}}
budget: {{time: {time}}}
parameters: {{x: {{values: [1, 2]}}}}
cloud: {{vms: {{node: {{vcpus: 1, memory_gib: 1, price_per_hour: 0}}}}, vm_count: [2, 4]}}
run: {{command: [train, "{{x}}"], timeout: 1h}}
"""


def test_machines_without_a_price_are_capped_in_hours(tmp_path):
    (tmp_path / "job.yaml").write_text(FREE.format(time="10h"))
    text = validate_text(load_job(tmp_path / "job.yaml"), {})
    assert "price     none; machines are paid for in hours" in text
    assert "budget    10 machine-hours" in text


def test_a_cap_in_hours_that_fits_no_trial_is_an_error(tmp_path):
    (tmp_path / "job.yaml").write_text(FREE.format(time="2h"))  # two machines for an hour, and the way to their end
    found = validation(load_job(tmp_path / "job.yaml"), {})
    assert not found["is_valid"]
    assert "machine-hours" in found["errors"][0]
