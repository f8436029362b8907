"""Choice, Int and Float: what they accept, and how values become numbers in [0, 1] and back."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.problem.values import plain_value

scales = st.sampled_from(["linear", "log", "log2"])


@pytest.mark.parametrize(
    ("choice", "column"),
    [
        (tt.Choice([1e-3, 1e-4, 1e-5], scale="log"), [1.0, 0.5, 0.0]),
        (tt.Choice([16, 64, 256], scale="log2"), [0.0, 0.5, 1.0]),
        (tt.Choice([10, 20, 40]), [0.0, 1 / 3, 1.0]),
        (tt.Choice([-1, 1, 0]), [0.0, 1.0, 0.5]),
        (tt.Choice(["sync", "async"]), [0.0, 1.0]),
        (tt.Choice([True, False]), [0.0, 1.0]),
        (tt.Choice([7]), [0.0]),
        (tt.Choice(["only"]), [0.0]),
    ],
)
def test_numbers_are_placed_on_their_scale_and_two_names_at_its_ends(choice, column):
    assert choice.columns_of_values()[:, 0] == pytest.approx(column, abs=1e-12)
    assert choice.columns_of_values().shape[1] == 1


@pytest.mark.parametrize("count", [3, 4, 7])
def test_three_or_more_names_are_all_one_apart(count):
    choice = tt.Choice([f"name {i}" for i in range(count)])
    columns = choice.columns_of_values()
    distances = np.linalg.norm(columns[:, None] - columns[None], axis=2)
    assert choice.columns_of_values().shape[1] == count
    assert distances == pytest.approx(1.0 - np.eye(count))


def test_numbers_without_a_scale_are_linear_and_names_have_none():
    assert tt.Choice([1, 2.5]).scale == "linear"
    assert tt.Choice(["a", "b"]).scale is None
    assert tt.Choice([1, "b"]).scale is None
    assert tt.Choice([True, False]).scale is None


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tt.Choice([]), "at least one value"),
        (lambda: tt.Choice([1, 2, 1.0]), "1 is listed twice"),
        (lambda: tt.Choice(["a", "b", "a"]), "'a' is listed twice"),
        (lambda: tt.Choice([True, False, True]), "listed twice"),
        (lambda: tt.Choice([np.int64(3), 3]), "3 is listed twice"),
        (lambda: tt.Choice(["a", "b"], scale="log"), "needs numbers"),
        (lambda: tt.Choice([True, False], scale="linear"), "needs numbers"),
        (lambda: tt.Choice([0, 1], scale="log"), "needs values above 0, but the smallest is 0"),
        (lambda: tt.Choice([-1, 1], scale="log2"), "needs values above 0"),
        (lambda: tt.Choice([1, 2], scale="lgo"), r"none of linear, log, log2; did you mean 'log'\?"),
        (lambda: tt.Choice([1, 2], scale=["log"]), "none of linear, log, log2"),
        (lambda: tt.Choice([1, math.nan]), "must be finite"),
        (lambda: tt.Choice([1, math.inf]), "must be finite"),
        (lambda: tt.Choice([{1}]), "a number, a text, true/false, None or a tuple"),
        (lambda: tt.Choice([[[1], 2]]), "a number, a text, true/false, None or a tuple"),
        (lambda: tt.Choice("adam"), "are a list"),
        (lambda: tt.Choice(16), "are a list"),
        (lambda: tt.Choice([1e308, -1e308]), "too large"),
        (lambda: tt.Choice([1, 2], when="x ="), "is not a condition"),
        (lambda: tt.Choice([1, 2], when=3), "a condition is a text"),
        (lambda: tt.Int(1.0, 3), "whole numbers, not 1.0"),
        (lambda: tt.Int("1", 3), "whole numbers, not '1'"),
        (lambda: tt.Int(True, 3), "whole numbers, not True"),
        (lambda: tt.Int(3, 3), "min must be below max"),
        (lambda: tt.Int(4, 3), "min must be below max"),
        (lambda: tt.Int(0, 3, scale="log"), "needs values above 0"),
        (lambda: tt.Int(1, 3, scale="cubic"), "none of linear, log, log2"),
        (lambda: tt.Int(0, 10**400), "too large"),
        (lambda: tt.Float(0.0, math.inf), "finite numbers, not inf"),
        (lambda: tt.Float(math.nan, 1.0), "finite numbers, not nan"),
        (lambda: tt.Float("0", 1.0), "finite numbers, not '0'"),
        (lambda: tt.Float(False, 1.0), "finite numbers, not False"),
        (lambda: tt.Float(1.0, 1.0), "min must be below max"),
        (lambda: tt.Float(0.0, 1.0, scale="log"), "needs values above 0"),
        (lambda: tt.Float(-1e308, 1e308), "too large"),
        (lambda: tt.Float(1e200, math.nextafter(1e200, 2e200), scale="log"), "too close"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(make, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        make()


def test_one_and_true_are_different_values():
    choice = tt.Choice([1, True, "1"])
    assert [choice.position(value) for value in (1, True, "1")] == [0, 1, 2]


def test_a_value_that_is_not_offered_is_refused_with_the_nearest():
    with pytest.raises(tt.InputError, match=r"'snyc' is not one of .*did you mean 'sync'\?"):
        tt.Choice(["sync", "async"]).position("snyc")


def test_numpy_values_become_plain_ones():
    choice = tt.Choice(np.array([16, 256]))
    assert choice.values == (16, 256)
    assert all(type(value) is int for value in choice.values)
    assert type(plain_value(np.float64(0.5))) is float
    assert type(plain_value(np.str_("a"))) is str
    assert plain_value(np.bool_(True)) is True
    assert type(tt.Int(np.int64(1), np.int64(4)).min) is int


def test_a_condition_is_kept_with_its_parameter():
    for parameter in (tt.Choice([1, 2], when="a == 1"), tt.Int(1, 2, when="a == 1"), tt.Float(1, 2, when="a == 1")):
        assert parameter.when.text == "a == 1"
    assert tt.Float(0, 1).when is None


@pytest.mark.parametrize(
    ("parameter", "unit", "value"),
    [
        (tt.Float(1e-4, 1.0, scale="log"), 0.5, 1e-2),
        (tt.Float(-1, 3), 0.25, 0.0),
        (tt.Float(1, 16, scale="log2"), 0.75, 8.0),
        (tt.Int(16, 256, scale="log2"), 0.5, 64),
        (tt.Int(0, 10), 0.5, 5),
        (tt.Int(1, 1000, scale="log"), 1 / 3, 10),
    ],
)
def test_a_coordinate_is_a_share_of_the_way_on_the_scale(parameter, unit, value):
    assert parameter.decode(unit) == pytest.approx(value)
    assert float(parameter.encode(np.array(float(value)))) == pytest.approx(unit)


bounds = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).map(sorted).filter(lambda pair: pair[0] < pair[1])


@given(bounds, scales, st.data())
def test_every_whole_number_survives_the_way_to_a_coordinate_and_back(pair, scale, data):
    parameter = tt.Int(*pair, scale=scale)
    value = data.draw(st.integers(*pair))
    unit = float(parameter.encode(np.array(float(value))))
    assert 0.0 <= unit <= 1.0
    assert parameter.decode(unit) == value


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e6), scales, st.floats(0, 1))
def test_a_float_survives_the_way_to_a_coordinate_and_back_and_stays_within_its_bounds(low, factor, scale, unit):
    parameter = tt.Float(low, low * factor, scale=scale)
    value = parameter.decode(unit)
    assert parameter.min <= value <= parameter.max
    again = float(parameter.encode(np.array(value)))
    assert 0.0 <= again <= 1.0
    assert again == pytest.approx(unit, abs=1e-5)


@pytest.mark.parametrize("scale", ["linear", "log", "log2"])
@given(unit=st.floats(0, 1))
def test_a_float_has_no_more_digits_than_a_person_would_write(scale, unit):
    value = tt.Float(1e-5, 0.1, scale=scale).decode(unit)
    assert len(f"{value:.15g}".split("e")[0].replace(".", "").strip("0")) <= 6


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_coordinate_is_never_a_smaller_value(low, width, first, second):
    assume(first <= second)
    parameter = tt.Float(low, low + width)
    assert parameter.decode(first) <= parameter.decode(second)


def test_the_ends_are_the_bounds_and_both_belong():
    for parameter in (tt.Int(3, 70), tt.Int(3, 70, scale="log"), tt.Float(3, 70, scale="log2")):
        assert parameter.decode(0.0) == 3
        assert parameter.decode(1.0) == 70
    assert tt.Int(3, 70).count == 68
