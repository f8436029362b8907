"""Numbers in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.tuning.recommendation import Estimate
from trimtuner.views.words import (
    chance,
    changed,
    configuration,
    count_of,
    estimate,
    placed,
    seconds,
    share,
    usd,
    usd_together,
)


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "0 USD"),
        (1e-8, "under 0.0001 cents"),
        (0.00018, "0.018 cents"),
        (0.0099, "0.99 cents"),
        (0.01, "0.01 USD"),
        (0.25, "0.25 USD"),
        (9.876, "9.88 USD"),
        (1234.5, "1,234.50 USD"),
    ],
)
def test_money_has_as_many_digits_as_it_needs(amount, words):
    assert usd(amount) == words


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ((0.00003, 0.0, 0.00997, 0.01), ("0.003 cents", "0 cents", "0.997 cents", "1 cent")),
        ((0.005, 1.0), ("0.5 cents", "100 cents")),
        ((0.02, 0.98, 1.0), ("0.02 USD", "0.98 USD", "1 USD")),
        ((0.003, 25.0), ("0.3 cents", "25.00 USD")),  # nobody counts 2,500 cents, nor the noughts of 0.003 USD
    ],
)
def test_sums_of_one_sentence_are_in_one_unit_unless_they_are_far_apart(amounts, words):
    assert usd_together(*amounts) == words


@given(st.floats(1e-6, 1e9))
def test_money_is_right_to_half_a_percent_and_has_no_exponent(amount):
    words, unit = usd(amount).split(" ")
    assert "e" not in words
    assert float(words.replace(",", "")) * {"USD": 1.0, "cents": 0.01, "cent": 0.01}[unit] == pytest.approx(
        amount, rel=5e-3
    )


@pytest.mark.parametrize(
    ("amount", "words"),
    [(5.0, "5 s"), (119.0, "119 s"), (180.0, "3.0 min"), (9000.0, "2.5 h"), (200_000.0, "2.3 days")],
)
def test_a_duration_is_told_in_the_unit_that_suits_it(amount, words):
    assert seconds(amount) == words


@pytest.mark.parametrize(
    ("probability", "words"), [(0.0, "0.00"), (0.001, "<0.01"), (0.5, "0.50"), (0.999, ">0.99"), (1.0, "1.00")]
)
def test_rounding_makes_no_certainty(probability, words):
    assert chance(probability) == words


def test_configurations_counts_and_changes():
    assert configuration({"rate": 0.00010, "kind": "tree", "deep": True}) == "rate=0.0001 kind=tree deep=True"
    assert placed({"x": 1}, 0.25) == "x=1 on 25 % of the data"
    assert placed({"x": 1}, 1.0) == "x=1"
    assert share(1.0) == "all"
    assert (count_of(1, "trial"), count_of(2000, "trial")) == ("1 trial", "2,000 trials")
    assert (changed(0), changed(1), changed(3)) == ("never changed", "changed once", "changed 3 times")
    assert estimate("cost", Estimate(1.0, 0.5, 2.0)) == "1 USD (0.5 USD to 2 USD)"
    assert estimate("cost", None) == "-"
