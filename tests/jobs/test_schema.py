"""The schema of the job file and its reader agree: no false alarm, and whatever one value can get wrong is seen."""

import copy
import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator
from test_jobfile import DESIGN
from test_jobfile_fuzz import SEEDS, mutated
from typer.testing import CliRunner

from trimtuner.cli import app_of
from trimtuner.engines.protocol import EXIT, LOST, OUT_OF_MEMORY, PREEMPTED, SIGNAL, TIMEOUT, UNAVAILABLE
from trimtuner.errors import InputError
from trimtuner.jobs.cloud_section import CloudKeys, SpotKeys, VmKeys
from trimtuner.jobs.engine_section import EngineChoice, keys_of_engine
from trimtuner.jobs.engines import ENGINES
from trimtuner.jobs.job import JobKeys
from trimtuner.jobs.load import load_job
from trimtuner.jobs.problem_section import Budget, GoalKeys
from trimtuner.jobs.run_section import Retries, TrialCommand
from trimtuner.jobs.schema import job_schema, schema_text, write_schema
from trimtuner.jobs.search_section import Search, StopKeys, options_of
from trimtuner.jobs.space_section import Data
from trimtuner.jobs.starter import SCHEMA_FILE, init_text, write_init_with_schema
from trimtuner.jobs.tree import plain_scalar, tree_of
from trimtuner.keys.declared import keys_of
from trimtuner.keys.faults import Faults, JobFileError
from trimtuner.keys.fields import Field, ListNode, MappingNode, ScalarNode
from trimtuner.keys.quantities import CONSTRAINT, DURATION, MEMORY, MONEY, SHARE
from trimtuner.problem.problem import Constraint
from trimtuner.tuning.recipes import METHODS
from written_jobs import write_job

app = app_of()

SCHEMA = job_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*/job.yaml"))

# Every key that stands in no other's way.
FULL = {
    "name": "full",
    "goal": {"maximize": "accuracy"},
    "constraints": ["cost <= 0.10 USD", "time <= 20min"],
    "budget": {"money": "25 USD", "time": "12h", "trials": 200},
    "data": {"fractions": ["1/60", 0.25, 1], "snapshots": True},
    "parameters": {
        "rate": {"values": [0.001, 0.0001], "scale": "log"},
        "batch": {"min": 2, "max": 4, "scale": "log2", "type": "int"},
        "optimizer": {"values": ["sgd", "adam"]},
        "nesterov": {"values": [True, False], "when": "optimizer == 'sgd'"},
        "layers": {"value": 3},
    },
    "cloud": {
        "catalog": "aws",
        "region": "us-east-1",
        "vms": {"own": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.05, "gpus": 0, "spot_price_per_hour": 0.02}},
        "vm_type": ["t2.small", "own"],
        "vm_count": {"min": 1, "max": 2, "rule": "vm_count * vcpus <= 8"},
        "market": ["on_demand", "spot"],
        "spot": {"discount": 0.65, "interruptions_per_hour": 0.05},
        "helpers": "t2.small",
    },
    "run": {
        "command": ["python", "train.py", "--rate={rate}", 3],
        "working_directory": ".",
        "environment": {"THREADS": 1},
        "secrets": ["WANDB_API_KEY"],
        "timeout": "30min",
        "memory": "4GiB",
        "retries": {"preempted": 3},
        "metrics": {"file": "metrics-{trial}.jsonl"},
    },
    "engine": {"type": "ray", "parallel": 2, "address": "auto", "copy": True, "wait": "10min"},
    "search": {
        "method": "nephele",
        "options": {"horizon": 1, "trees": 5},
        "seed": 0,
        "stop": {"little_improvement": 0.1, "not_worth_its_price": 1000},
    },
    "storage": "full.db",
}
AWS = {
    "type": "aws",
    "region": "eu-west-1",
    "image": "ami-1",
    "user": "ubuntu",
    "key_name": "k",
    "key_file": "k.pem",
    "security_groups": ["sg-1"],
    "subnet": "subnet-1",
    "instance_profile": "p",
    "disk_gib": 100,
    "connect_to": "private",
    "ssh_config": "c",
    "setup": ["ls"],
    "exclude": "*.ckpt",
    "wait": "1h",
    "ready_within": "5min",
    "look_in": ["eu-1"],
}
SMALL = {
    "name": "small",
    "goal": {"minimize": "loss"},
    "run": {"command": ["train"], "metrics": "stdout"},
    "parameters": {"momentum": {"min": 0.5, "max": 0.9, "type": "float"}},
    "cloud": {"vms": {"own": {"vcpus": 1, "memory_gib": 2, "price_per_hour": 0.1}}, "vm_count": [1, 2]},
    "search": {"method": "trimtuner", "learn_from": ["last-month/job.yaml"]},
}
LISTED = {
    "name": "listed",
    "goal": {"minimize": "cost"},
    "run": {"command": ["train"]},
    "configs": [{"rate": 0.1, "price_per_hour": 1}, {"rate": 0.2, "price_per_hour": 2}],
}
JOBS = [
    FULL,
    {**FULL, "engine": AWS},
    {**FULL, "engine": {"type": "replay", "table": "digits", "pace": 9}},
    SMALL,
    LISTED,
]


def read(text: str) -> object:
    """YAML 1.2 as plain values, by the reader of job files."""
    return plain(tree_of(text, Faults()))


def plain(node: object) -> object:
    if isinstance(node, MappingNode):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value if isinstance(node, ScalarNode) else None


def is_seen_right(value: object) -> bool:
    return VALIDATOR.is_valid(value)


def is_read(folder: Path, job: object) -> bool:
    """Whether the reader takes the job; JSON is YAML too."""
    path = folder / "job.yaml"
    path.write_text(json.dumps(job))
    try:
        load_job(path)
    except JobFileError:
        return False
    return True


def changed(job: dict, path: tuple, value: object) -> dict:
    """A copy with one value exchanged."""
    copied = copy.deepcopy(job)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copied


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The paths of all values inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in items for place in ((*path, key), *places(one, (*path, key)))]


def at(value: object, path: tuple) -> object:
    for key in path:
        value = value[key]
    return value


def keyed(schema: dict, path: tuple = ()) -> list[tuple[tuple, dict]]:
    """Every key of the schema with its own piece of it."""
    found = []
    for key, one in schema.get("properties", {}).items():
        found += [((*path, key), one), *keyed(one, (*path, key))]
    inner = [*schema.get("anyOf", []), schema.get("additionalProperties"), schema.get("items")]
    return found + [pair for one in inner if isinstance(one, dict) for pair in keyed(one, path)]


@pytest.mark.parametrize("draft", [Draft202012Validator, Draft7Validator])
def test_it_is_a_schema_also_for_editors_that_know_only_draft_7(draft):
    draft.check_schema(SCHEMA)
    for job in JOBS:
        assert draft(SCHEMA).is_valid(job)
        assert not draft(SCHEMA).is_valid({**job, "unknown": 1})


@pytest.mark.parametrize("text", [*SEEDS, DESIGN, init_text("x"), *(path.read_text() for path in EXAMPLES)])
def test_right_job_files_pass(text):
    assert list(VALIDATOR.iter_errors(read(text))) == []


def test_the_job_of_other_tests_passes(tmp_path):
    assert is_seen_right(read(write_job(tmp_path).read_text()))


@pytest.mark.parametrize("job", JOBS)
def test_the_jobs_of_these_tests_are_right(tmp_path, job):
    assert is_read(tmp_path, job)
    assert is_seen_right(job)


def test_a_goal_against_another_is_right():
    assert is_seen_right({**FULL, "goal": {"maximize": "accuracy", "minimize": "cost"}})


def test_it_has_the_keys_of_the_reader_and_no_others():
    sections = SCHEMA["properties"]
    assert set(sections) == set(keys_of(JobKeys))
    declared = {
        ("goal",): GoalKeys,
        ("budget",): Budget,
        ("data",): Data,
        ("cloud",): CloudKeys,
        ("cloud", "spot"): SpotKeys,
        ("run",): TrialCommand,
        ("run", "retries"): Retries,
        ("search",): Search,
        ("search", "stop"): StopKeys,
    }
    for path, one in declared.items():
        assert set(at_schema(path)["properties"]) == set(keys_of(one)), path
    assert set(sections["cloud"]["properties"]["vms"]["additionalProperties"]["properties"]) == set(keys_of(VmKeys))
    of_engines = {name for engine in ENGINES for name in keys_of_engine(engine)}
    assert set(sections["engine"]["properties"]) == {*keys_of(EngineChoice), *of_engines}


def at_schema(path: tuple) -> dict:
    schema = SCHEMA
    for name in path:
        schema = schema["properties"][name]
    return schema


def test_a_key_that_several_engines_have_is_the_same_to_all_of_them():
    for engine in ENGINES:
        for name, key in keys_of_engine(engine).items():
            assert key.schema == SCHEMA["properties"]["engine"]["properties"][name]


def test_kinds_of_failure_that_are_tried_again_are_those_that_engines_tell_apart():
    assert set(keys_of(Retries)) == {PREEMPTED, EXIT, SIGNAL, OUT_OF_MEMORY, TIMEOUT, LOST, UNAVAILABLE}


def test_every_key_is_described_and_its_defaults_and_examples_are_right():
    for path, one in keyed(SCHEMA):
        assert one["description"].endswith("."), path
        own = Draft202012Validator({**one, "$defs": SCHEMA["$defs"]})
        for value in [*one.get("examples", []), *([one["default"]] if "default" in one else [])]:
            assert list(own.iter_errors(value)) == [], path


def test_every_option_of_every_method_is_described_with_its_default():
    for method in METHODS.values():
        options = options_of(method)["properties"]
        assert set(options) == set(method.options)
        for name, default in method.options.items():
            assert options[name]["description"]
            assert options[name].get("default") == default
            if default is not None:
                search = {"method": method.name, "options": {name: default}}
                assert is_seen_right({**FULL, "search": search})


# What only the reader sees, by the place where it is written.
ONLY_THE_READER = {
    ("goal", "minimize"): "whether two are traded already, or both of them are what is paid",
    ("constraints",): "two that cannot both hold",
    (
        "parameters",
    ): "whether a command or condition names it, bounds that are the wrong way round, scales of numbers to 0",
    ("configs",): "whether all have a price, and each is there once",
    ("cloud", "vm_type"): "whether there are such machines",
    ("cloud", "helpers"): "whether there are such machines",
    ("cloud", "vms"): "whether others name these machines",
    ("cloud", "vm_count"): "conditions are a language of their own; how many counts lie in a range",
    ("cloud", "spot"): "whether a machine has a spot price",
    ("run", "command"): "whether there is such a parameter",
    ("run", "metrics"): "whether several trials would write the same file",
    ("run", "memory"): "how much it is",
    ("search", "method"): "whether it learns from others",
    ("search", "options"): "1e300 is a whole number to JSON",
    ("storage",): "what is in the way",
}
STRICTER = {("search", "options"): "a number in quotes is a number to the reader"}
ODD = [None, True, -1, 0, 1.5, 3, 1e300, "", "text", "3", [], [1], ["a", "a"], {}, {"a": 1}, [[]]]


def compare(folder: Path, job: dict, path: tuple, value: object) -> None:
    odd = changed(job, path, value)
    seen, taken = is_seen_right(odd), is_read(folder, odd)
    assert seen or not taken or is_in(STRICTER, path), f"a false alarm at {path}: {value!r}"
    assert taken or not seen or is_in(ONLY_THE_READER, path), (
        f"the schema takes {value!r} at {path}, the reader does not"
    )


def is_in(known: dict, path: tuple) -> bool:
    return any(path[: len(place)] == place for place in known)


def new_places(number: int) -> list[tuple]:
    """Those that no job before has."""
    engines = [job["engine"]["type"] if "engine" in job else "" for job in JOBS]
    before = {(engines[i] if path[0] == "engine" else "", path) for i in range(number) for path in places(JOBS[i])}
    return [p for p in places(JOBS[number]) if (engines[number] if p[0] == "engine" else "", p) not in before]


def test_an_unknown_key_is_seen_wherever_the_reader_refuses_it(tmp_path):
    mappings = [
        (job, path)
        for number, job in enumerate(JOBS)
        for path in [(), *new_places(number)]
        if isinstance(at(job, path), dict)
    ]
    for job, path in mappings:
        odd = changed(job, (*path, "zzz"), 1)
        assert is_seen_right(odd) == is_read(tmp_path, odd), path
    assert len(mappings) > 30


@pytest.mark.parametrize("number", range(len(JOBS)))
def test_an_odd_value_is_seen_wherever_the_reader_refuses_it_for_itself(tmp_path, number):
    for path in new_places(number):
        for value in random.Random(str(path)).sample(ODD, 2):  # noqa: S311  (chance to try things)
            compare(tmp_path, JOBS[number], path, value)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(JOBS)))
def test_every_odd_value_is_seen_wherever_the_reader_refuses_it_for_itself(tmp_path, number):
    for path in new_places(number):
        for value in ODD:
            compare(tmp_path, JOBS[number], path, value)


@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        (("budget", "trials"), 1, 0),
        (("budget", "trials"), 1_000_000, 1_000_001),
        (("budget", "money"), 1e9, 1.1e9),
        (("data", "fractions"), [1], [1.01]),
        (("cloud", "vms", "own", "vcpus"), 10_000, 10_001),
        (("cloud", "vms", "own", "memory_gib"), 1e6, 1.1e6),
        (("cloud", "vms", "own", "price_per_hour"), 1e5, 1.1e5),
        (("cloud", "vms", "own", "price_per_hour"), 1e-8, 1e-9),
        (("cloud", "vm_count"), 1, 0),
        (("cloud", "vm_count"), 100_000, 100_001),
        (("cloud", "spot", "discount"), 0.999, 1),
        (("cloud", "spot", "interruptions_per_hour"), 1000, 1001),
        (("run", "retries", "preempted"), 20, 21),
        (("engine", "parallel"), 1000, 1001),
        (("search", "seed"), 2**32 - 1, 2**32),
        (("search", "options"), {"trees": 2}, {"trees": 1}),
        (("search", "options"), {"horizon": 0}, {"horizon": -1}),
        (("search", "options"), {"initial_budget": 0.01}, {"initial_budget": 0}),
        (("search",), {"method": "eic", "options": {"initial": 1}}, {"method": "eic", "options": {"initial": 0}}),
        (("search",), {"method": "bohb", "options": {"eta": 1.1}}, {"method": "bohb", "options": {"eta": 1}}),
        (("search",), {"method": "fabulinus", "options": {"beta": 1}}, {"method": "fabulinus", "options": {"beta": 0}}),
        (("search",), {"method": "cherrypick:stop_below=0"}, {"method": "cherrypick:stop_abve=0"}),
        (("search", "stop", "little_improvement"), 1, 1.01),
        (("name",), "a" * 64, "a" * 65),
    ],
)
def test_bounds_are_those_of_the_reader(tmp_path, path, right, wrong):
    job = changed(FULL, ("cloud", "vm_count"), 1)  # without the rule, that no large machine breaks
    assert is_seen_right(changed(job, path, right))
    assert is_read(tmp_path, changed(job, path, right))
    assert not is_seen_right(changed(job, path, wrong))
    assert not is_read(tmp_path, changed(job, path, wrong))


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({"configs": [{"rate": 1}]}, False),
        ({"engine": {"address": "auto"}}, False),
        ({"engine": {"type": "aws", "region": "eu-west-1"}}, True),
        ({"engine": {"type": "aws", "table": "digits"}}, False),
        ({"engine": {"type": "aws", "key_name": "k"}}, False),
        ({"engine": {"type": "replay"}}, False),
        ({"cloud": {"vm_type": "t2.small"}}, False),
        ({"cloud": {"catalog": "aws"}}, False),
        ({"cloud": {"catalog": "aws", "vm_type": "t2.smal"}}, False),
        ({"cloud": {"catalog": "aws", "vm_type": ["t2.small", "own"]}}, False),
        ({"cloud": {"catalog": "builtin", "vm_type": "t2.small", "region": "eastus"}}, False),
        ({"cloud": {"catalog": "azure", "vm_type": "Standard_D4s_v3", "region": "westeurope"}}, True),
        ({"cloud": {"vms": {"a b": {"vcpus": 1, "memory_gib": 1, "price_per_hour": 1}}}}, False),
        ({"cloud": {"vms": {"a": {"vcpus": 1, "price_per_hour": 1}}}}, False),
        ({"parameters": {"rate": {"values": [1], "min": 0}}}, False),
        ({"parameters": {"rate": {"min": 0.5}}}, False),
        ({"parameters": {"rate": {"min": 0.5, "max": 8, "type": "int"}}}, False),
        ({"parameters": {"rate": {"min": 1, "max": 8, "type": "int"}}}, True),
        ({"parameters": {"rate": {"value": 1, "scale": "log"}}}, False),
        ({"parameters": {"rate": {"value": 1}, "vcpus": {"value": 1}}}, False),
        ({"parameters": {"rate": {"value": 1}, "fraction": {"value": 1}}}, False),
        ({"search": {"method": "random", "options": {"trees": 3}}}, False),
        ({"search": {"options": {"horizon": 1}}}, True),
        ({"search": {"options": {"trees": 3}}}, False),
        ({"search": {"method": "nephele:horizon=1,trees=10"}}, True),
        ({"search": {"method": " nephele : horizon = 1"}}, True),
        ({"search": {"method": "nephele:"}}, True),
        ({"search": {"method": " random "}}, True),
        ({"search": {"method": "random:x=1"}}, False),
        ({"search": {"method": "nephele:horizon="}}, False),
        ({"search": {"method": "nephele:horizn=1"}}, False),
        ({"goal": {"maximize": "cost"}}, False),
        ({"goal": {}}, False),
        ({"storage": "postgresql://me@host/studies"}, True),
        ({"storage": "mysql://me@host/studies"}, False),
    ],
)
def test_keys_that_depend_on_each_other_are_seen(tmp_path, change, is_right):
    job = {**FULL, "run": {"command": ["train", "{rate}"]}, **change}
    assert is_seen_right(job) == is_right
    assert is_read(tmp_path, job) == is_right


def is_taken(reader, value: object) -> bool:
    try:
        reader(Field(ScalarNode(1, str(value), value), "here", 1, Faults()))
    except InputError:
        return False
    return True


def fault_of_constraint(text: str) -> str | None:
    try:
        Constraint.parse(text)
    except InputError as error:
        return str(error)
    return None


DIGITS = st.text("0123456789", max_size=2)  # few: a pattern does not know what is too much
AMOUNTS = st.tuples(
    *(st.sampled_from(["", "+", "-", " "]), DIGITS, st.sampled_from(["", "."]), DIGITS),
    st.sampled_from(["", "e0", "E-2", "e"]),
).map("".join)
UNITS = [
    *("", "s", "S", "min", "Minutes", "h", "d", "ms", "x", "USD", "usd", "$", "cents", "B", "kB", "KB", "GiB", "gib"),
    *("/60", " / 7", "/0"),
]
QUANTITIES = st.tuples(AMOUNTS, st.sampled_from(["", " "]), st.sampled_from(UNITS), st.sampled_from(["", " "])).map(
    "".join
)


@pytest.mark.parametrize("kind", [MONEY, DURATION, MEMORY, SHARE])
@given(text=QUANTITIES)
@settings(max_examples=150, deadline=None)
def test_a_text_with_a_unit_is_right_to_both_or_to_none(kind, text):
    value = plain_scalar(text.strip())
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    seen, taken = Draft202012Validator(kind.schema).is_valid(value), is_taken(kind.read, value)
    assert seen or not taken
    is_above_one = kind is SHARE and "/" in text
    is_part_of_a_byte = kind is MEMORY and text.strip().endswith("B")
    assert taken or not seen or is_above_one or is_part_of_a_byte


@given(
    metric=st.sampled_from(["cost", "time", "accuracy", "latency_ms", "2x", ""]),
    operator=st.sampled_from(["<=", ">=", "<", ">", "==", "=<", " <= "]),
    limit=QUANTITIES,
)
@settings(max_examples=150, deadline=None)
def test_a_constraint_is_right_to_both_or_to_none(metric, operator, limit):
    text = f"{metric}{operator}{limit}"
    seen, fault = Draft202012Validator(CONSTRAINT).is_valid(text), fault_of_constraint(text)
    assert seen or fault is not None
    # What a limit must be is more than a pattern can say.
    assert not seen or fault is None or "can never hold" in fault or "a limit outside 0 to 1" in fault


FAMILY = {name: st.sampled_from(one["examples"]) for name, one in SCHEMA["properties"].items()}
NEEDED = ("name", "goal", "cloud", "parameters", "run")
OTHERS = SCHEMA["properties"].keys() - {*NEEDED, "configs"}


@given(
    job=st.fixed_dictionaries(
        {name: FAMILY[name] for name in NEEDED}, optional={name: FAMILY[name] for name in sorted(OTHERS)}
    )
)
@settings(max_examples=15, deadline=None)
def test_sections_as_the_schema_shows_them_go_together(tmp_path_factory, job):
    assert is_seen_right(job)
    assert is_read(tmp_path_factory.getbasetemp(), job)


def test_listed_configurations_as_the_schema_shows_them_are_read(tmp_path):
    (configs,) = SCHEMA["properties"]["configs"]["examples"]
    assert is_read(tmp_path, {**LISTED, "configs": configs})


def test_there_is_no_false_alarm_for_a_changed_file_that_is_still_right(tmp_path):
    path, right = tmp_path / "job.yaml", 0
    for number in range(80):
        content = mutated(random.Random(f"schema-{number}"))  # noqa: S311  (chance to try things)
        path.write_bytes(content)
        try:
            load_job(path)
        except JobFileError:
            continue
        right += 1
        assert list(VALIDATOR.iter_errors(read(content.decode("utf-8-sig")))) == []
    assert right > 10


def test_the_command_prints_the_schema(tmp_path):
    done = CliRunner().invoke(app, ["schema"])
    assert (done.exit_code, json.loads(done.stdout)) == (0, SCHEMA)
    file = tmp_path / "x.json"
    assert CliRunner().invoke(app, ["schema", "--output", str(file)]).exit_code == 0
    assert file.read_text() == schema_text()


def test_an_older_schema_is_replaced_and_no_other_file_is(tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"title": SCHEMA["title"], "description": "older"}))
    write_schema(file)
    assert json.loads(file.read_text()) == SCHEMA
    for text in ("name: a job\n", "{}", "[]", ""):
        file.write_text(text)
        with pytest.raises(InputError, match="is no schema of a job file; name another file"):
            write_schema(file)
        assert file.read_text() == text
    with pytest.raises(InputError, match="cannot be written"):
        write_schema(tmp_path / "absent" / "x.json")


def test_a_first_job_file_may_name_its_schema(tmp_path):
    path = tmp_path / "first.yaml"
    assert write_init_with_schema(path) == tmp_path / SCHEMA_FILE
    first, second, *_ = path.read_text().splitlines()
    assert (first, second) == (f"# yaml-language-server: $schema={SCHEMA_FILE}", f"# $schema: ./{SCHEMA_FILE}")
    assert load_job(path).name == "first"
    assert json.loads((tmp_path / SCHEMA_FILE).read_text()) == SCHEMA
    with pytest.raises(InputError, match="is there already"):
        write_init_with_schema(path)


def test_a_first_job_file_without_a_schema_points_at_none():
    assert "# yaml-language-server:" not in init_text("x")
    assert "$schema" not in init_text("x")
