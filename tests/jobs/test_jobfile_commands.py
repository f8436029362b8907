"""Placeholders in a command: plain substitution in each word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.engines.supervising.environment import nodes_at, record_of
from trimtuner.engines.supervising.nodes import as_written, command_of
from trimtuner.errors import InputError
from trimtuner.jobs.commands import Word
from trimtuner.jobs.load import load_job
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.history import Trial
from trimtuner.problem.values import written

JOB = """\
name: words
goal: {maximize: accuracy}
data: {fractions: [1/10, 1], snapshots: true}
parameters:
  optimizer: {values: [sgd, adam]}
  nesterov: {values: [true, false]}
  momentum: {min: 0.0, max: 0.9, when: "optimizer == 'sgd'"}
cloud:
  vms: {tiny: {vcpus: 2, memory_gib: 0.5, price_per_hour: 1}}
run:
  command: [train, "--optimizer={optimizer}", "--nesterov={nesterov}", "--momentum={momentum}", "{{{optimizer}}}",
            "{vm_count}x{vm_type}/{market}:{vcpus}", "--fraction={fraction}", "--trial={trial}",
            "--report-at={snapshots}", 3, true]
"""


def run_of(tmp_path, text=JOB):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return load_job(path).run


def test_a_command_is_rendered_word_by_word(tmp_path):
    config = {"optimizer": "sgd", "nesterov": True, "momentum": 0.1 + 0.2, "vm_type": "tiny", "vm_count": 1}
    assert run_of(tmp_path).command_for(config, 0.1, 7, (0.05, 0.025)) == (
        "train",
        "--optimizer=sgd",
        "--nesterov=true",
        "--momentum=0.30000000000000004",
        "{sgd}",
        "1xtiny/on_demand:2",
        "--fraction=0.1",
        "--trial=7",
        "--report-at=0.05,0.025",
        "3",
        "true",
    )


SPREAD = """\
name: words
goal: {maximize: accuracy}
parameters: {rate: {values: [1, 2]}}
cloud:
  vms: {tiny: {vcpus: 2, memory_gib: 0.5, price_per_hour: 1}, wide: {vcpus: 4, memory_gib: 1, price_per_hour: 3}}
  vm_count: [1, 3]
  helpers: [vm_type]
run:
  command: [train, "{rate}", "{node_rank}/{world_size}", "{{node_rank}}", "{checkpoint}"]
  nodes: all
"""


def launch_of(tmp_path, text, config):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return JobStudy.at(path).launch("study", Trial(0, config, 1.0), 1)


def test_what_is_known_only_where_a_command_starts_is_put_in_there(tmp_path):
    launch = launch_of(tmp_path, SPREAD, {"rate": 1, "vm_type": "wide", "vm_count": 3})
    record = record_of(launch, "/attempt", "/work")
    record["checkpoint"] = "/kept"
    _, _, third, helper = nodes_at(launch, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], 20000)
    assert command_of(record, third) == ["train", "1", "2/4", "{node_rank}", "/kept"]
    assert command_of(record, helper) == ["train", "1", "3/4", "{node_rank}", "/kept"]
    assert as_written(launch.command) == ("train", "1", "{node_rank}/{world_size}", "{node_rank}", "{checkpoint}")


def test_a_command_on_every_machine_has_the_vcpus_of_one_and_a_helper_may_be_of_their_type(tmp_path):
    launch = launch_of(tmp_path, SPREAD, {"rate": 1, "vm_type": "wide", "vm_count": 3})
    assert (launch.nodes, launch.node_count, launch.vcpus) == ("all", 4, 4)
    assert launch.machines.helpers == ("wide",)
    on_head = launch_of(
        tmp_path,
        SPREAD.replace("nodes: all", "nodes: head").replace("{node_rank}/{world_size}", "x"),
        {"rate": 1, "vm_type": "wide", "vm_count": 3},
    )
    assert (on_head.node_count, on_head.vcpus) == (1, 12)


def test_a_parameter_goes_before_a_placeholder_of_the_same_name(tmp_path):
    text = SPREAD.replace("rate: {values", "world_size: {values").replace('"{rate}", ', "")
    launch = launch_of(tmp_path, text, {"world_size": 2, "vm_type": "wide", "vm_count": 3})
    assert as_written(launch.command)[1] == "{node_rank}/2"


def test_a_rank_is_asked_for_only_where_there_are_ranks(tmp_path):
    with pytest.raises(InputError, match=r"\{node_rank\} is of a command that starts on every machine.*nodes: all"):
        run_of(tmp_path, SPREAD.replace("  nodes: all\n", ""))


def test_the_word_of_an_inactive_parameter_is_left_out_and_so_is_that_of_no_snapshots(tmp_path):
    config = {"optimizer": "adam", "nesterov": False, "vm_type": "tiny", "vm_count": 1}
    words = run_of(tmp_path).command_for(config, 1.0, 0)
    assert not any("momentum" in word or "report-at" in word for word in words)
    assert words[:3] == ("train", "--optimizer=adam", "--nesterov=false")
    assert len(words) == 9


def test_values_are_never_read_as_placeholders_themselves():
    assert Word.parse("{a}-{b}").filled({"a": "{b}", "b": "$(rm -rf /)"}) == "{b}-$(rm -rf /)"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63))
def test_numbers_read_back_as_the_same_number(value):
    assert type(value)(written(value)) == value
    assert json.loads(written(value)) == value


@given(st.text())
def test_doubled_braces_give_any_text_back(text):
    assert Word.parse(text.replace("{", "{{").replace("}", "}}")).filled({}) == text


@given(st.text(alphabet="{}ab_.:![]0 ", max_size=12))
def test_a_word_is_either_refused_or_has_plain_names(text):
    try:
        word = Word.parse(text)
    except InputError:
        return
    assert all(name.isidentifier() for name in word.names)


@pytest.mark.parametrize(
    "word", ["{a.b}", "{a!r}", "{a:3d}", "{}", "{0}", "{a[0]}", "{__class__.x}", "{ a }", '{"a": 1}']
)
def test_formats_attributes_and_positions_are_refused(word):
    with pytest.raises(InputError, match="plain name"):
        Word.parse(word)


@pytest.mark.parametrize("word", ["{", "}", "a{b", "a}b", "{{{", "}}}"])
def test_a_single_brace_is_refused(word):
    with pytest.raises(InputError, match=r"a single '[{}]'"):
        Word.parse(word)
