"""Round trips: what comes back is what was written, to the type and the last digit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.errors import InputError
from trimtuner.records.codec import (
    configuration_key,
    decode_configuration,
    encode_configuration,
    encode_definition,
    encode_recommended,
)
from trimtuner.records.errors import RecordError
from trimtuner.records.money import money_left, to_nanos, to_usd

any_text = st.text(st.characters(codec=None), max_size=8)  # lone surrogates and NUL included
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text
values = scalars | st.lists(scalars, max_size=3).map(tuple)
configurations = st.dictionaries(any_text, values, max_size=5)


@given(configurations)
def test_a_configuration_comes_back_with_its_types_order_and_every_digit(configuration):
    back = decode_configuration(encode_configuration(configuration))
    assert [(name, type(value), repr(value)) for name, value in back.items()] == [
        (name, type(value), repr(value)) for name, value in configuration.items()
    ]


@given(configurations)
def test_the_text_is_ascii_so_that_any_database_holds_it(configuration):
    assert encode_configuration(configuration).isascii()


def test_one_and_true_and_text_stay_apart():
    four = {"a": 1, "b": 1.0, "c": True, "d": "1"}
    assert encode_configuration(four) == '{"a":1,"b":1.0,"c":true,"d":"1"}'


def test_numpy_values_are_written_as_plain_ones():
    assert decode_configuration(encode_configuration({"a": np.int64(3), "b": np.float64(0.1)})) == {"a": 3, "b": 0.1}


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, [[1]], (math.nan,), b"x", {1}])
def test_what_no_configuration_can_hold_is_refused(bad):
    with pytest.raises(InputError):
        encode_configuration({"a": bad})


def test_a_number_too_long_to_be_written_is_refused():
    for write in (encode_configuration, configuration_key):
        with pytest.raises(InputError, match="cannot be written"):
            write({"a": 10**5000})


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="no text"):
        encode_configuration({1: 2})


def test_infinity_in_a_tampered_file_is_refused():
    with pytest.raises(RecordError, match="no JSON"):
        decode_configuration('{"a": Infinity}')


@given(configurations)
def test_order_and_whole_floats_do_not_make_another_configuration(configuration):
    turned = {
        name: float(value) if type(value) is int and abs(value) < 2**53 else value
        for name, value in reversed(list(configuration.items()))
    }
    assert configuration_key(turned) == configuration_key(configuration)


def test_what_a_space_tells_apart_has_keys_of_its_own():
    keys = {configuration_key({"a": value}) for value in (1, True, "1", 1.5, 0, False, "", "True")}
    assert len(keys) == 8
    assert configuration_key({"a": 0.0}) == configuration_key({"a": -0.0})


def test_no_recommendation_is_no_text():
    assert encode_recommended(None) is None


def test_a_definition_does_not_hang_on_the_order_of_its_keys():
    assert encode_definition({"a": 1, "b": (2, 3)}) == encode_definition({"b": [2, 3], "a": 1})


@pytest.mark.parametrize("bad", [{"a": math.inf}, {"a": object()}, ["a"], {"a": 1, 2: 3}])
def test_a_definition_that_is_no_json_is_refused(bad):
    with pytest.raises(InputError):
        encode_definition(bad)


@given(st.integers(0, 10**15))
def test_money_comes_back_exactly(nanos):
    assert to_nanos(to_usd(nanos), "it") == nanos


@given(st.lists(st.integers(0, 10**6).map(lambda cents: cents / 100), max_size=30))
def test_amounts_in_cents_add_up_exactly(amounts):
    assert sum(to_nanos(amount, "it") for amount in amounts) == sum(round(amount * 100) for amount in amounts) * 10**7


@pytest.mark.parametrize("bad", [-0.01, math.inf, math.nan, 1e10, True, "1", None])
def test_what_is_no_amount_is_refused(bad):
    with pytest.raises(InputError, match="the price"):
        to_nanos(bad, "the price")


def test_what_is_left_is_the_budget_without_what_is_spent_and_reserved_and_never_below_nothing():
    assert money_left(2.0, 0.5, 0.25) == 1.25
    assert money_left(2.0, 1.5, 1.0) == 0.0
    assert money_left(None, 1.5, 1.0) is None
