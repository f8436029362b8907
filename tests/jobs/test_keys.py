"""A key that is declared is read, is in the schema, and is on the reference page: all of it from one declaration."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tools.reference_pages import section_lines
from trimtuner.jobs.tree import tree_of
from trimtuner.keys.declared import key, required, section
from trimtuner.keys.faults import Fault, Faults
from trimtuner.keys.fields import Field
from trimtuner.keys.kinds import DURATION, PATH, one_of, one_or_more, text, whole_number


@dataclass(frozen=True)
class Oven:
    """A section that no job file has."""

    dish: str = required(text("a dish"), "What is baked.", write="dish: bread", examples=["bread"])
    degrees: int = key(whole_number("degrees", 50, 250), "How hot it is.", default=180, examples=[220])
    seconds: float = key(DURATION, "How long it takes.", name="time", default=1800.0)
    mode: str = key(one_of(("fan", "grill")), "How it is heated.", default="fan")
    trays: tuple[str, ...] = key(one_or_more(text("a tray"), "a list of trays"), "What is in it.", default=())
    recipe: Path | None = key(PATH, "Who wrote it.", default=None, needs=("mode", "it needs 'mode', how it is heated"))
    cook: str = "nobody"  # which is no key


OVEN = section(Oven, "a mapping such as {dish: bread}")


def read(content: str, faults: Faults) -> Oven:
    node = tree_of(content, faults)
    assert node is not None
    return OVEN.read(Field(node, "oven", node.line, faults))


def test_declared_keys_are_read_with_their_defaults():
    found = read("dish: pie\ntime: 20min\ntrays: top\nmode: grill\nrecipe: by/me.txt", Faults(Path("/home/job.yaml")))
    assert found == Oven("pie", 180, 1200.0, "grill", ("top",), Path("/home/by/me.txt"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("degrees: 100", "oven has no 'dish'; write dish: bread"),
        ("dish: pie\ndegrees: 500", "oven.degrees: 500 is not degrees from 50 to 250"),
        ("dish: pie\nmode: grll", "oven.mode: 'grll' is none of fan, grill; did you mean 'grill'?"),
        ("dish: pie\ndegres: 100", "unknown key 'degres' in oven; did you mean 'degrees'?"),
        ("dish: pie\nrecipe: x", "oven.recipe: it needs 'mode', how it is heated"),
        ("dish: pie\ncook: me", "unknown key 'cook' in oven; it knows dish, degrees, time, mode, trays, recipe"),
    ],
)
def test_faults_of_declared_keys_are_told(content, told):
    faults = Faults(Path("/home/job.yaml"))
    with faults.collecting(1):
        read(content, faults)
    assert str(faults.error(Path("job.yaml"))).endswith(f": {told}")
    assert len(faults) == 1


def test_faults_of_several_keys_are_told_at_once_also_where_a_value_must_be():
    faults = Faults()
    with pytest.raises(Fault, match="has no 'dish'"):
        read("degrees: 500\nmode: x\ntime: 3", faults)
    assert len(faults) == 4


def test_declared_keys_are_in_the_schema():
    validator = Draft202012Validator(OVEN.schema)
    assert list(OVEN.schema["properties"]) == ["dish", "degrees", "time", "mode", "trays", "recipe"]
    assert OVEN.schema["properties"]["time"]["default"] == "30min"
    assert validator.is_valid({"dish": "pie", "degrees": 250, "mode": "fan", "trays": ["a"], "recipe": "x"})
    wrong = [
        {},
        {"dish": 1},
        {"dish": "pie", "degrees": 251},
        {"dish": "pie", "recipe": "x"},
        {"dish": "p", "cook": "x"},
    ]
    assert not any(validator.is_valid(one) for one in wrong)


def test_declared_keys_are_on_the_reference_page():
    page = "\n".join(section_lines(("oven",), {"description": "Where it is hot.", **OVEN.schema}))
    assert "**Required.** What is baked. Such as `bread`." in page
    assert "| whole number from 50 to 250 | How hot it is. Default: `180`. Such as `220`." in page
    assert "`time`{ #oven-time " in page
    assert "How long it takes. Default: `30min`." in page
    assert "| `fan` or `grill` | How it is heated. Default: `fan`." in page
    assert "| text, or a list | What is in it." in page
