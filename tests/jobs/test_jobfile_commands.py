"""Placeholders in a command: plain substitution in each word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.errors import InputError
from trimtuner.jobs.commands import Word
from trimtuner.jobs.load import load_job
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
