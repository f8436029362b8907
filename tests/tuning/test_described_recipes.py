"""A recipe as plain values: the same wherever it is made, and different where a constant is."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.designs import CheapStart
from trimtuner.decisions.learning import Inheritance
from trimtuner.decisions.stopping import AfterMoney, AfterTime, AfterTrials
from trimtuner.errors import InputError
from trimtuner.models.trees import BaggedTrees
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import Measurement
from trimtuner.problem.parameters import Choice
from trimtuner.problem.space import Space
from trimtuner.tuning.recipes import METHODS, TRIMTUNER, TRIMTUNER_DT, recipe_named

VALUES = {
    "horizon": (0, 2),
    "filter": ("cea", "none", "random", "direct", "cmaes"),
    "beta": (0.1, 0.2),
    "initial": (1, 5),
    "ignore_constraints": (False, True),
    "trees": (5, 6),
    "initial_budget": (None, 2.5),
    "model": ("gp", "trees"),
    "stop_below": (0, 0.1),
    "eta": (3.0, 4.0),
    "literal": (False, True),
    "overhead": (0.2, 60.0),
    "scale": ("log", "linear"),
    "dropping": (False, True),
}


def choices_of(name):
    options = METHODS[name].options
    return [dict(zip(options, values, strict=True)) for values in product(*(VALUES[option] for option in options))]


EVERY_CHOICE = [(name, options) for name in METHODS for options in choices_of(name)]


def text_of(recipe):
    return json.dumps(recipe.described(), allow_nan=False, sort_keys=True)


def text_by_choice():
    return [text_of(recipe_named(name, **options)) for name, options in EVERY_CHOICE]


@pytest.mark.parametrize("name", METHODS)
def test_methods_with_other_options_have_other_descriptions_exactly_where_they_are_other_methods(name):
    recipes = [METHODS[name].recipe(options) for options in choices_of(name)]
    for one in recipes:
        for other in recipes:
            assert (text_of(one) == text_of(other)) == (one == other)


def test_descriptions_are_the_same_in_another_process():
    script = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    script += f"from {os.path.basename(__file__)[:-3]} import text_by_choice; print(*text_by_choice(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.splitlines() == text_by_choice()


def test_a_part_is_its_name_and_its_constants():
    described = TRIMTUNER_DT.described()
    assert described["filter"] == {"HighestConstrainedAccuracy": {"share": 0.1}}
    assert described["surrogate"] == {"BaggedTrees": {"count": 64, "basis": {"function": "log_basis"}}}
    assert described["tests"] == "WhereTested.ANYWHERE"
    assert described["acquisition"]["Per"]["price"] == {"ExpectedCost": {}}


@given(st.floats(0.01, 0.99), st.integers(1, 50), st.floats(0.1, 1e9), st.integers(1, 10**6))
def test_every_constant_is_in_the_description(share, trees, money, trials):
    recipe = TRIMTUNER_DT.but(
        surrogate=BaggedTrees(trees),
        filter=replace(TRIMTUNER_DT.filter, share=share),
        stop=AfterMoney(money) & AfterTrials(trials),
    )
    described = json.loads(text_of(recipe))
    assert described["surrogate"]["BaggedTrees"]["count"] == trees
    assert described["filter"]["HighestConstrainedAccuracy"]["share"] == share
    assert described["stop"]["Both"]["left"]["AfterMoney"]["usd"] == money
    assert described["stop"]["Both"]["right"]["AfterTrials"]["trials"] == trials


def test_equal_methods_have_one_description_however_their_numbers_were_written():
    one, other = TRIMTUNER.but(stop=AfterTime("2h")), TRIMTUNER.but(stop=AfterTime(7200))
    assert one == other
    assert text_of(one) == text_of(other)


def test_what_no_json_number_can_say_is_said_in_words():
    assert TRIMTUNER.but(confidence=float("inf")).described()["confidence"] == {"number": "inf"}


def test_a_mapping_is_told_in_one_order():
    one, other = ({"b": 1, 1: "x", "a": (2.5,)}, {"a": (2.5,), 1: "x", "b": 1})
    texts = [text_of(TRIMTUNER.but(design=WithPart(mapping))) for mapping in (one, other)]
    assert texts[0] == texts[1]


def test_earlier_studies_are_not_part_of_the_method():
    before = Earlier("before", (Measurement({"x": 1}, 1.0, {"accuracy": 0.5}),), (None,))
    learning = TRIMTUNER.but(earlier=(Inheritance(before, Space({"x": Choice([1, 2])})),))
    assert learning.described() == TRIMTUNER.described()


@dataclass(frozen=True)
class WithPart:
    part: object
    seen: list = field(default_factory=list, compare=False)  # what does not make two of them differ is not told


@pytest.mark.parametrize("part", [lambda s: s, partial(abs, 1), ExpectedCost().score, object(), ExpectedCost, {1, 2}])
def test_what_cannot_be_written_down_is_refused_with_its_place_and_what_to_do(part):
    recipe = TRIMTUNER.but(design=WithPart((1, {"deep": part})))
    with pytest.raises(InputError, match=r"design\.part\[1\]\['deep'\].*(top of a module|frozen dataclass)"):
        recipe.described()


def test_a_function_within_a_function_is_refused():
    def needs_a_name(_):
        return None

    with pytest.raises(InputError, match=r"needs\[0\].*define it at the top of a module"):
        TRIMTUNER.but(needs=(needs_a_name,)).described()


def test_parts_of_others_are_named_with_their_module_and_ours_without():
    described = TRIMTUNER.but(design=WithPart(CheapStart(3)), needs=(text_of,)).described()
    assert described["design"] == {f"{__name__}.WithPart": {"part": {"CheapStart": {"count": 3}}}}
    assert described["needs"] == [{"function": f"{__name__}.text_of"}]
