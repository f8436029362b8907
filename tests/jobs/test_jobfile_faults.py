"""Every fault of a job file is told with its line, what is wrong, and what to write instead."""

import os
import re
from pathlib import Path

import pytest

from trimtuner.errors import InputError
from trimtuner.jobs import tree
from trimtuner.jobs.load import load_job
from trimtuner.keys.faults import Fault, Faults, JobFileError

BASE = """\
name: faulty
goal: {maximize: accuracy}
constraints:
  - cost <= 0.10 USD
  - time <= 20min
budget:
  money: 25 USD
  time: 12h
  trials: 200
data:
  fractions: [1/60, 1/10, 0.25, 1]
  snapshots: true
parameters:
  rate:
    values: [1e-3, 1e-4]
    scale: log
  batch:
    min: 16
    max: 512
    type: int
  optimizer: {values: [sgd, adam]}
  momentum:
    min: 0.0
    max: 0.9
    when: optimizer == 'sgd'
cloud:
  catalog: builtin
  vm_type: [t2.small, t2.medium]
  vm_count:
    min: 1
    max: 8
    rule: vm_count * vcpus <= 8
  market: on_demand
  helpers: [t2.large]
run:
  command:
    - python
    - train.py
    - "--rate={rate}"
  timeout: 30min
  memory: 4GiB
  secrets: [WANDB_API_KEY]
  environment:
    DATA: /data
  retries:
    preempted: 3
  metrics: stdout
engine:
  type: local
  parallel: 2
search:
  method: trimtuner
  seed: 0
storage: faulty.db
"""


def error_of(folder: Path, content: str | bytes) -> JobFileError:
    path = folder / "job.yaml"
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    with pytest.raises(JobFileError) as caught:
        load_job(path)
    for line in str(caught.value).split("\n"):
        assert re.match(re.escape(str(path)) + r":[1-9][0-9]*: \S", line), line
        assert line.isprintable()
    return caught.value


def told(folder: Path, content: str | bytes) -> list[str]:
    """Each fault as ``line: text``."""
    return [line.removeprefix(f"{folder / 'job.yaml'}:") for line in str(error_of(folder, content)).split("\n")]


def changed(old: str, new: str) -> str:
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


def test_the_base_of_these_tests_has_no_fault(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(BASE)
    assert load_job(path).name == "faulty"


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        # keys
        ("parameters:", "paramters:", 13, r"unknown key 'paramters' in the job file; did you mean 'parameters'\?"),
        ("  snapshots: true", "  snapshot: true", 12, r"unknown key 'snapshot' in data; did you mean 'snapshots'\?"),
        ("    scale: log", "    distribution: log", 16, r"in parameters.rate; here it is called 'scale'"),
        ("  timeout: 30min", "  parallel: 2", 40, r"unknown key 'parallel' in run; it belongs under engine:"),
        ("  seed: 0", "  xyz: 0", 53, r"unknown key 'xyz' in search; it knows method, options, seed, stop"),
        ("  trials: 200", "  money: 3", 9, r"the key 'money' stands here again; line 7 has it"),
        ("  seed: 0", "  <<: {seed: 0}", 53, r"no merge keys"),
        ("name: faulty\n", "", 1, r"the job file has no 'name'; write name: mnist"),
        ("goal: {maximize: accuracy}", "", 1, r"the job file has no 'goal'; write goal: \{maximize: accuracy\}"),
        # name and goal
        ("name: faulty", "name: ../evil", 1, r"name: '../evil' is no name for a study"),
        ("name: faulty", 'name: "a\\tb"', 1, r"name: .*control character"),
        ("name: faulty", 'name: ".."', 1, r"is no name for a study"),
        ("name: faulty", "name: " + "x" * 65, 1, r"is no name for a study"),
        ("name: faulty", "name: 2024", 1, r'put it in quotes: "2024"'),
        ("name: faulty", "name:", 1, r"name: nothing is not the name"),
        ("name: faulty", "name: [a]", 1, r"name: a list is not the name"),
        ("{maximize: accuracy}", "accuracy", 2, r"goal: 'accuracy' is not a mapping such as \{maximize: accuracy\}"),
        ("{maximize: accuracy}", "{maximize: a, minimize: a}", 2, r"cannot be both large and small"),
        ("{maximize: accuracy}", "{maximise: a}", 2, r"did you mean 'maximize'\?"),
        ("{maximize: accuracy}", "{maximize: cost}", 2, r"cost is to be small: minimize it"),
        ("{maximize: accuracy}", "{maximize: 'a b'}", 2, r"no name for a metric"),
        ("{maximize: accuracy}", "{maximize: fraction}", 2, r"the share of the data"),
        # constraints and budget
        ("cost <= 0.10 USD", "cost <= 0.10 EUR", 4, r"unknown unit 'EUR'"),
        ("time <= 20min", "time <= 20mins", 5, r"unknown unit 'mins'.*did you mean 'min'\?"),
        ("time <= 20min", "{time: 20}", 5, r"constraints, item 2: a mapping is not a text"),
        ("time <= 20min", "accuracy >= 85", 5, r"85 % is 0.85"),
        ("time <= 20min", "cost >= 1 USD", 3, r"cannot both hold"),
        ("time <= 20min", "time <= 0s", 5, r"can never hold"),
        ("  money: 25 USD", "  money: 25 EUR", 7, r"budget.money: unknown unit 'EUR'"),
        ("  money: 25 USD", "  money: 0", 7, r"budget.money: 0 is not an amount"),
        ("  money: 25 USD", "  money: -3 USD", 7, r"must be above 0"),
        ("  money: 25 USD", "  money: .inf", 7, r"budget.money: .inf is not an amount of money such as 25 USD"),
        ("  money: 25 USD", "  money: true", 7, r"budget.money"),
        ("  money: 25 USD", "  money: 1_000", 7, r"'1_000' is not a number"),
        ("  time: 12h", "  time: 12", 8, r"budget.time: 12 has no unit; write 12s, 12min"),
        ("  time: 12h", "  time: 12 hrs", 8, r"unknown unit 'hrs'"),
        ("  trials: 200", "  trials: 0", 9, r"budget.trials: 0 is not a number of trials from 1"),
        ("  trials: 200", "  trials: 2.5", 9, r"budget.trials: 2.5"),
        # data
        ("0.25, 1]", "0.25, 2]", 11, r"data.fractions, item 4: 2 is not a share of the data"),
        ("1/60", "1/0", 11, r"data.fractions, item 1: a quotient over 0"),
        ("1/60", "1/10", 11, r"item 2: this share is there already"),
        ("1/60", "1//60", 11, r"'1//60' is not a share"),
        ("[1/60, 1/10, 0.25, 1]", "[]", 11, r"the list is empty"),
        ("[1/60, 1/10, 0.25, 1]", "0.5", 11, r"0.5 is not a list of shares"),
        ("snapshots: true", "snapshots: yes", 12, r"data.snapshots: 'yes' is not true or false"),
        # parameters
        ("[1e-3, 1e-4]", "[1e-3, 1e-3]", 15, r"parameters.rate.values: the value 0.001 is listed twice"),
        ("[1e-3, 1e-4]", "[0, 1e-4]", 15, r"needs values above 0"),
        ("[1e-3, 1e-4]", "0.1", 15, r"parameters.rate.values: 0.1 is not a list such as \[16, 256\]"),
        ("    scale: log", "    scale: lgo", 16, r"'lgo' is none of linear, log, log2; did you mean 'log'\?"),
        ("{values: [sgd, adam]}", "[sgd, adam]", 21, r"parameters.optimizer: a list is not a mapping such as \{values"),
        ("{values: [sgd, adam]}", "{choices: [sgd]}", 21, r"neither 'values', nor 'min' and 'max', nor 'value'"),
        ("{values: [sgd, adam]}", '{values: ["a\\nb"]}', 21, r"line break or control character"),
        ("    min: 16", "    min: 600", 18, r"min must be below max"),
        ("    min: 16", "    min: 1.5", 20, r"an int needs a min and a max without a point"),
        ("    min: 16", "    min: low", 18, r"parameters.batch.min: 'low' is not a number"),
        ("    max: 512\n", "", 17, r"parameters.batch has no 'max'"),
        ("    type: int", "    type: integer", 20, r"'integer' is none of int, float; did you mean 'int'\?"),
        ("    type: int\n", "", 18, r"say which are meant, type: int or type: float"),
        ("  batch:", "  batch size:", 17, r"'batch size' is no name for a parameter"),
        ("  batch:", "  fraction:", 17, r"the parameter 'fraction' has the name of a placeholder"),
        ("  batch:", "  vm_type:", 17, r"the parameter 'vm_type' has the name of a placeholder"),
        ("optimizer == 'sgd'", "optimiser == 'sgd'", 25, r"names 'optimiser'.*did you mean 'optimizer'\?"),
        ("optimizer == 'sgd'", "optimizer ==", 25, r"is not a condition"),
        ("optimizer == 'sgd'", "__import__('os')", 25, r"uses Call"),
        ("optimizer == 'sgd'", "optimizer * 2 > 1", 13, r"calculates with '(sgd|adam)', which is not a number"),
        ("optimizer == 'sgd'", "3", 25, r'3 is no text to YAML; put it in quotes: "3"'),
        # cloud
        (
            "catalog: builtin",
            "catalog: bultin",
            27,
            r"neither 'builtin' nor the path of a CSV; did you mean 'builtin'\?",
        ),
        ("catalog: builtin", "catalog: absent.csv", 27, r"there is no file '"),
        ("catalog: builtin", f"catalog: {'x' * 300}.csv", 27, r"there is no file"),
        ("catalog: builtin", "catalog: 3", 27, r"cloud.catalog"),
        ("  catalog: builtin\n", "", 26, r"cloud has no VM types"),
        ("  vm_type: [t2.small, t2.medium]\n", "", 27, r"needs 'vm_type: \[…\]'"),
        (
            "[t2.small, t2.medium]",
            "[t2.small, t2.meduim]",
            28,
            r"'t2.meduim' is no known VM type; did you mean 't2.med",
        ),
        ("[t2.small, t2.medium]", "[]", 28, r"the list is empty"),
        ("[t2.small, t2.medium]", "[t2.small, t2.small]", 28, r"'t2.small' is there twice"),
        ("vcpus <= 8", "vcpus > 1000", 32, r"cloud.vm_count.rule: .*is true for no pair"),
        ("vcpus <= 8", "cpus <= 8", 32, r"names 'cpus'.*did you mean 'vcpus'\?"),
        ("vcpus <= 8", "vcpus ** 8 == 1", 32, r"uses Pow"),
        ("    max: 8\n", "    max: 0\n", 31, r"cloud.vm_count.max: 0 is not a count of VMs from 1"),
        ("    max: 8\n", "    max: 99999\n", 29, r"1000 counts are the most"),
        ("    max: 8\n", "", 29, r"cloud.vm_count has no 'max'"),
        ("market: on_demand", "market: spto", 33, r"'spto' is none of on_demand, spot; did you mean 'spot'\?"),
        ("market: on_demand", "market: [on_demand, spot]", 33, r"t2.small has no spot price"),
        (
            "catalog: builtin",
            "catalog: builtin\n  region: us-est-1",
            28,
            r"cloud.region: builtin has no region 'us-est-1'",
        ),
        ("catalog: builtin", "catalog: builtin\n  region: ''", 28, r"cloud.region: builtin has no region ''"),
        ("catalog: builtin", "catalog: builtin\n  region: 3", 28, r"cloud.region: 3 is no text to YAML"),
        ("catalog: builtin", "region: us-east-1", 26, r"cloud has no VM types"),
        ("catalog: builtin", "vms: {a: {}}\n  region: x", 28, r"cloud.region: it picks rows of a catalog"),
        (
            "market: on_demand",
            "spot: {discount: 1}",
            33,
            r"cloud.spot.discount: discount=1.0 must be from 0 to below 1",
        ),
        ("market: on_demand", "spot: {discount: much}", 33, r"cloud.spot.discount: 'much' is not a share"),
        ("market: on_demand", "spot: 0.65", 33, r"cloud.spot: 0.65 is not a mapping such as"),
        ("market: on_demand", "spot: {interruptions_per_hour: -1}", 33, r"-1 is not a number of interruptions"),
        ("market: on_demand", "spot: {interruptions_per_hour: 1e9}", 33, r"at most 1000"),
        ("market: on_demand", "spot: {discuont: 0.5}", 33, r"unknown key 'discuont' .*did you mean 'discount'\?"),
        (
            "market: on_demand",
            "market: spot\n  spot: {interruptions_per_hour: 1}",
            33,
            r"write 'spot: \{discount: 0.65\}'",
        ),
        ("helpers: [t2.large]", "helpers: [t2.lrage]", 34, r"did you mean 't2.large'\?"),
        # run
        ("- python\n", "- ''\n", 37, r"the first word is the program to run"),
        ("- python\n", '- "{rate}"\n', 37, r"the first word is the program to run"),
        ("{rate}", "{rat}", 39, r"run.command, item 3: unknown placeholder \{rat\}; did you mean 'rate'\?"),
        ("{rate}", "{rate", 39, r"a single '\{'; write '\{\{'"),
        ("{rate}", "{WANDB_API_KEY}", 39, r"is a secret"),
        ('"--rate={rate}"', "{rate}", 39, r"a mapping is not a word; put words with braces in quotes"),
        ('"--rate={rate}"', "[--rate={rate}]", 39, r"a brace inside a bare word; put the word in quotes"),
        ("timeout: 30min", "timeout: 0s", 40, r"run.timeout: '0s' is not a duration.*above 0"),
        ("timeout: 30min", "timeout: -1h", 40, r"run.timeout"),
        ("timeout: 30min", "timeout: 90", 40, r"run.timeout: 90 has no unit; write 90s, 90min"),
        ("timeout: 30min", "timeout: 30 parsecs", 40, r"unknown unit 'parsecs'"),
        ("timeout: 30min", "timeout: 1e9 d", 40, r"run.timeout"),
        ("memory: 4GiB", "memory: 4gib", 41, r"unknown unit 'gib'.*did you mean 'GiB'\?"),
        ("memory: 4GiB", "memory: 4", 41, r"put it in quotes|4 is no text"),
        ("memory: 4GiB", "memory: 0GiB", 41, r"above 0"),
        ("DATA: /data", "1DATA: /data", 44, r"'1DATA' is no name for an environment variable"),
        ("DATA: /data", "TRIMTUNER_STUDY: x", 44, r"begins with TRIMTUNER_"),
        ("DATA: /data", "WANDB_API_KEY: x", 44, r"WANDB_API_KEY is among the secrets"),
        ("DATA: /data", "DATA: [a]", 44, r"a list is not a text or a number"),
        ("preempted: 3", "preemted: 3", 46, r"unknown key 'preemted' in run.retries; did you mean 'preempted'\?"),
        ("preempted: 3", "preempted: -1", 46, r"-1 is not a count from 0"),
        (
            "metrics: stdout",
            "metrics: stderr",
            47,
            r"'stderr' is not stdout or a mapping such as \{file: metrics.jsonl\}",
        ),
        ("metrics: stdout", "metrics: {file: ../x}", 47, r"inside the working directory"),
        ("metrics: stdout", "metrics: {file: /etc/x}", 47, r"inside the working directory"),
        ("metrics: stdout", "metrics: {file: m.jsonl}", 35, r"2 trials side by side would write the same file"),
        # engine, search, storage
        ("type: local", "type: kubernetes", 49, r"'kubernetes' is none of local, ray, aws, slurm, replay"),
        ("type: local", "address: auto", 49, r"engine.address: it is for type ray, this is local"),
        ("type: local", "type: ray\n  region: x", 50, r"engine.region: it is for type aws, this is ray"),
        ("type: local", "type: ray\n  address: 'x; rm'", 50, r"address of a Ray cluster, such as auto"),
        ("type: local", "type: ray\n  copy: maybe", 50, r"'maybe' is not true or false"),
        ("type: local", "type: aws\n  image: '$(x)'", 50, r"a name as AWS gives it"),
        ("type: local", "type: aws\n  key_name: k", 50, r"it needs 'key_file'"),
        ("type: local", "type: aws\n  wait: 10", 50, r"10 has no unit"),
        ("type: local", "type: aws\n  connect_to: pubic", 50, r"did you mean 'public'\?"),
        ("type: local", "type: aws\n  setup: pip install x", 50, r"a list of words"),
        ("type: local", "type: replay", 48, r"engine has no 'table'"),
        ("type: local", "type: locla", 49, r"did you mean 'local'\?"),
        ("parallel: 2", "parallel: 0", 50, r"engine.parallel: 0 is not a number of trials from 1"),
        ("method: trimtuner", "method: trimtunr", 52, r"did you mean 'trimtuner'\?"),
        ("method: trimtuner", "method: nephele:horizn=1", 52, r"has no option 'horizn'.*did you mean 'horizon'\?"),
        ("method: trimtuner", "method: nephele:horizon", 52, r"not of the form option=value"),
        ("  seed: 0", "  options: {horizn: 1}", 53, r"did you mean 'horizon'\?"),
        ("  seed: 0", "  options: {text: 1}", 53, r"has no option 'text'"),
        ("  seed: 0", "  seed: -1", 53, r"search.seed: -1 is not a seed"),
        ("  seed: 0", "  seed: 1.0", 53, r"search.seed: 1.0 is not a seed"),
        ("  seed: 0", "  stop: {little_improvment: 1}", 53, r"did you mean 'little_improvement'\?"),
        ("  seed: 0", "  stop: {little_improvement: 2}", 53, r"above 0 and at most 1"),
        ("storage: faulty.db", "storage: mysql://user:hunter2@host/db", 54, r"in a file or in PostgreSQL"),
        ("storage: faulty.db", "storage: postgresql://user:p@hunter2@host/db", 54, r"storage: .*an @ too many"),
        ("storage: faulty.db", "storage: postgresql://user:hunter2", 54, r"no address of a database"),
        ("storage: faulty.db", "storage: job.yaml", 54, r"a file of its own"),
        ("storage: faulty.db", f"storage: {'x' * 300}.db", 54, r"storage: a path of more than 4000 bytes, or 240"),
        ("storage: faulty.db", f"storage: {'xyz/' * 1000}a.db", 54, r"storage: a path of more than 4000 bytes"),
    ],
)
def test_a_fault_is_told_with_its_line_and_what_to_write(tmp_path, old, new, line, text):
    faults = told(tmp_path, changed(old, new))
    assert any(re.match(rf"{line}: .*{text}", fault) for fault in faults), faults
    assert "hunter2" not in str(faults)


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ("", 1, "the job file is empty"),
        ("# only a comment\n", 1, "the job file is empty"),
        ("just a text\n", 1, "is not a mapping of keys"),
        ("- a\n- b\n", 1, "a list is not a mapping of keys"),
        ("name: x\ngoal:\n\tmaximize: y\n", 3, "a tab where YAML wants spaces"),
        ("name: x\ngoal: {maximize: y\n", 2, "not closed"),
        ("name: 'x\n", 1, "never closed"),
        ("name: x\n  goal: y\n", 2, "wrong indentation"),
        ("name: x\n- goal\n", 2, "does not fit the lines above"),
        ("name: @x\n", 1, "cannot begin a bare word"),
        ("name: x\n---\nname: y\n", 2, "a second document"),
        ("name: x\ngoal: !!python/object/apply:os.system [id]\n", 2, "tags .* are refused"),
        ("name: !secret x\n", 1, "tags .* are refused"),
        ("name: x\ngoal: *x\n", 2, "this alias .* has no finished anchor"),
        ("name: &a [*a]\n", 1, "this alias .* has no finished anchor"),
        ("name: x\n? [a, b]\n: 3\n", 2, "a key is one word"),
        ('name: "\\UFFFFFFFF"\n', 1, "cannot be read as YAML"),
        ('name: "\\ud800"\n', 1, "surrogate"),
        ("name: a\nb: \x07\n", 2, r"U\+0007 is not allowed"),
        ("name: a\rb: c\n", 1, r"U\+000D is not allowed"),
        ("a: " + "[" * 50 + "\n", 1, "levels deep"),
        (b"name: x\ngoal: \xff\n", 2, "not UTF-8"),
        ("name: x\n".encode("utf-16"), 1, "not UTF-8"),
        ("#" * (2**20 + 1), 1, "larger than 1 MiB"),
        ("%YAML 3.0\n---\nname: x\n", 1, "not YAML"),
    ],
)
def test_what_is_no_yaml_of_ours_is_refused_at_its_line(tmp_path, content, line, text):
    faults = told(tmp_path, content)
    assert any(re.match(rf"{line}: .*{text}", fault) for fault in faults), faults


def test_a_bomb_of_aliases_is_refused_before_it_goes_off(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    (fault,) = told(tmp_path, "\n".join(lines))
    assert re.match(r"[456]: more than 50000 values, aliases written out", fault)


def test_independent_faults_are_told_together_in_the_order_of_the_file(tmp_path):
    text = BASE
    for old, new in [
        ("25 USD", "25 EUR"),
        ("optimizer == 'sgd'", "optimiser == 'sgd'"),
        ("t2.medium", "t2.meduim"),
        ("{rate}", "{rat}"),
        ("30min", "0s"),
        ("type: local", "type: kubernetes"),
        ("seed: 0", "sed: 0"),
    ]:
        text = text.replace(old, new)
    error = error_of(tmp_path, text)
    assert error.lines == (7, 25, 28, 39, 40, 49, 53)
    assert isinstance(error, InputError)


def test_one_fault_does_not_make_others(tmp_path):
    for old, new in [
        ("  rate:", "  rate: 3\n  rete:"),
        ("[1e-3, 1e-4]", "[]"),
        ("    min: 16", "    min: low"),
        ("    max: 512\n", ""),
        ("catalog: builtin", "catalog: bultin"),
        ("[1/60, 1/10, 0.25, 1]", "[0]"),
    ]:
        assert len(error_of(tmp_path, changed(old, new)).lines) == 1, new


def test_many_faults_are_cut_short(tmp_path):
    text = BASE + "".join(f"unknown{i}: 1\n" for i in range(50))
    faults = told(tmp_path, text)
    assert len(faults) == 21
    assert faults[-1].endswith("and 30 more faults")


@pytest.mark.parametrize(
    "secrets",
    [
        "[WANDB_API_KEY=hunter2hunter2]",
        "WANDB_API_KEY=hunter2hunter2",
        "{WANDB_API_KEY: hunter2hunter2}",
        "[hunter2hunter2]",
        "[{WANDB_API_KEY: hunter2hunter2}]",
        "[[hunter2hunter2]]",
        "[sk-hunter2hunter2]",
        "[*hunter2hunter2]",
        "[!hunter2hunter2 x]",
        "[@hunter2hunter2]",
        "['hunter2hunter2]",
        "[%hunter2hunter2 }]",
    ],
)
def test_what_may_be_a_secret_is_refused_without_being_shown(tmp_path, secrets):
    error = error_of(tmp_path, changed("[WANDB_API_KEY]", secrets))
    assert 42 in error.lines
    assert "hunter2" not in str(error)


def test_values_of_the_environment_are_not_shown(tmp_path):
    for value in ("[hunter2]", "{hunter2: hunter2}", '"hunter2\\0"'):
        assert "hunter2" not in str(error_of(tmp_path, changed("DATA: /data", f"DATA: {value}")))


def test_a_command_as_one_text_is_answered_with_the_list(tmp_path):
    text = BASE.replace(
        '  command:\n    - python\n    - train.py\n    - "--rate={rate}"\n', "  command: python train.py 'a b'\n"
    )
    assert any('write ["python", "train.py", "a b"]' in fault for fault in told(tmp_path, text))


def test_control_characters_never_reach_the_terminal(tmp_path):
    error = error_of(tmp_path, changed("name: faulty", 'name: "\\e[31mred"'))
    assert "\x1b" not in str(error)
    error_of(tmp_path, changed("  seed: 0", '  "se\\e[31med\\r\\n": 0'))
    error_of(tmp_path, changed("  seed: 0", '  options: {"h\\e[31m\\n": [1]}'))


@pytest.mark.parametrize(
    ("csv", "text"),
    [
        ("vm_type,vcpus,memory_gib\na,1,1\n", r"prices.csv:1: there is no column 'price_per_hour'"),
        ("", r"prices.csv:1: there is no column 'vm_type'"),
        ("vm_type,vcpus,memory_gib,price_per_hour\na,x,1,1\n", r"prices.csv:2.vcpus: 'x' is not a whole number"),
        ("vm_type,vcpus,memory_gib,price_per_hour\na,1,1,0\n", r"prices.csv:2.price_per_hour: 0 is not a price"),
        ("vm_type,vcpus,memory_gib,price_per_hour\na,1,1,\n", r"prices.csv:2 has no 'price_per_hour'"),
        ("vm_type,vcpus,memory_gib,price_per_hour\na,1,1\n", r"prices.csv:2: 3 values for 4 columns"),
        ("vm_type,vcpus,memory_gib,price_per_hour\na,1,1,1\na,1,1,1\n", r"prices.csv:3: 'a' is there already"),
        (
            "vm_type,vcpus,memory_gib,price_per_hour,spot_price_per_hr\na,1,1,1,1\n",
            r"did you mean 'spot_price_per_hour'",
        ),
        ('vm_type,vcpus,memory_gib,price_per_hour\n"a,1,1,1\n', r"cannot be read"),
        ("vm_type,vcpus,memory_gib,price_per_hour\n../a b,1,1,1\n", r"no name for a VM type"),
    ],
)
def test_faults_of_a_csv_are_told_at_the_line_that_names_it(tmp_path, csv, text):
    (tmp_path / "prices.csv").write_text(csv)
    faults = told(tmp_path, changed("catalog: builtin", "catalog: prices.csv"))
    assert any(re.match(rf"27: .*{text}", fault) for fault in faults), faults


@pytest.mark.parametrize(
    ("configs", "line", "text"),
    [
        ("  - {a: 1, price_per_hour: 1}\n  - {a: 1, price_per_hour: 2}\n", 5, "the same configuration as item 1"),
        ("  - {a: 1, price_per_hour: 1}\n  - {a: 2}\n", 5, "it has no price_per_hour, though others have"),
        ("  - {a: 1, price_per_hour: 0}\n", 4, "is not a price in USD per hour"),
        ("  - {price_per_hour: 1}\n", 4, "it chooses nothing"),
        ("  - 3\n", 4, "3 is not a configuration"),
        ("  - {a: [[1]]}\n", 4, "a list is not a number"),
        ("  - {a b: 1}\n", 4, "no name for a parameter"),
        ("  []\n", 3, "the list of configurations is empty"),
        ("  - {a: 1}\nparameters: {b: {value: 1}}\n", 5, "'parameters' beside 'configs'"),
        ("  - {a: 1}\nbudget: {money: 3}\n", 5, "no machine has a price"),
        ("  - {a: 1}\nconstraints: [cost <= 3]\n", 5, "no machine has a price"),
    ],
)
def test_faults_of_listed_configurations_are_told(tmp_path, configs, line, text):
    head = "name: x\ngoal: {maximize: accuracy}\nconfigs:\n"
    faults = told(tmp_path, f"{head}{configs}run: {{command: [train]}}\n")
    assert any(re.match(rf"{line}: .*{text}", fault) for fault in faults), faults


def test_nothing_to_choose_is_a_fault(tmp_path):
    text = "name: x\ngoal: {maximize: a}\nrun: {command: [train]}\n"
    assert told(tmp_path, text) == [
        "1: there is nothing to choose; write 'parameters:', 'cloud:' or both, or 'configs:'"
    ]


def test_a_file_that_cannot_be_read_is_told_without_a_line(tmp_path):
    with pytest.raises(JobFileError, match=r"absent\.yaml: there is no such file; 'trimtuner init'"):
        load_job(tmp_path / "absent.yaml")
    with pytest.raises(JobFileError, match="not a file"):
        load_job(tmp_path)
    with pytest.raises(JobFileError, match="there is no such file"):
        load_job(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(JobFileError, match="not a file"):
        load_job(tmp_path / "pipe.yaml")


def test_a_record_in_the_place_of_a_job_file_is_told_apart_from_a_bad_encoding(tmp_path):
    record = tmp_path / "x.db"
    record.write_bytes(b"SQLite format 3\0" + b"\xff" * 2_000_000)
    with pytest.raises(JobFileError, match="this is the record of a study, not a job file; give the job file"):
        load_job(record)


@pytest.mark.parametrize("before", ["", "a: ", "- ", "x: &a "])
@pytest.mark.parametrize("repeated", ["!", "!%41", "!a", "!!a:"])
def test_a_long_tag_is_refused_before_the_parser_takes_its_time(monkeypatch, before, repeated):
    def never(_text):
        raise AssertionError("for a MiB of this, the parser takes most of a minute")

    monkeypatch.setattr(tree, "_events", never)
    with pytest.raises(Fault, match="follow a '!'") as refused:
        tree.tree_of(f"name: x\n{before}{repeated * (2**20 // len(repeated))}\n", Faults())
    assert refused.value.line == 2


def test_texts_with_exclamation_marks_are_read():
    faults, text = Faults(), '{"a":"hi!","b":[' + ",".join(["1"] * 2000) + '], "c": "wow! such text"}'
    node = tree.tree_of(text, faults)
    assert not faults
    assert isinstance(node, tree.MappingNode)
    assert node.entries["a"] == tree.ScalarNode(1, "hi!", "hi!")


def test_a_sweep_of_wandb_is_known_for_what_it_is(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "program: train.py\nmethod: bayes\nmetric: {name: accuracy, goal: maximize}\n"
        "parameters:\n  lr: {distribution: log_uniform_values, min: 0.0001, max: 0.1}\n"
    )
    with pytest.raises(
        JobFileError, match=r"this is a sweep of W&B; 'trimtuner init job\.yaml' writes a job file"
    ) as told:
        load_job(path)
    assert len(str(told.value).splitlines()) == 1
