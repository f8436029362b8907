"""Searches on the measurements of the TrimTuner paper: cheaper than its public code, in every seed."""

from functools import cache

import pytest

from trimtuner.engines.table import Table
from trimtuner.study.replay import replay

# USD until the public code's recommendation is at 90 % of the optimum for good: the median of 10 seeds of its trees.
PUBLIC_CODE_USD = {"cnn": 1.44, "rnn": 0.242}
TRIALS = 60
FEW_TRIALS = 20


@cache
def table_named(name):
    return Table.find(name)


def settles_for_less(name, method, seed, trials):
    settled = replay(table_named(name), method, seed, trials).settled(0.90)
    return settled is not None and settled < PUBLIC_CODE_USD[name]


@pytest.mark.parametrize(("name", "method"), [("cnn", "trimtuner-dt"), ("rnn", "trimtuner")])
def test_a_search_settles_at_90_percent_for_less_than_the_public_code(name, method):
    assert settles_for_less(name, method, 0, FEW_TRIALS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4000, 4020))
@pytest.mark.parametrize("method", ["trimtuner", "trimtuner-dt", "trimtuner-gp"])
@pytest.mark.parametrize("name", ["cnn", "rnn"])
def test_every_search_settles_at_90_percent_for_less_than_the_public_code(name, method, seed):
    assert settles_for_less(name, method, seed, TRIALS)


def test_two_searches_with_one_seed_are_identical():
    table = table_named("rnn")
    first, second = (replay(table, "trimtuner", 7, 12) for _ in range(2))
    assert [(m.config, m.fraction, m.spent, m.quality) for m in first.moments] == [
        (m.config, m.fraction, m.spent, m.quality) for m in second.moments
    ]
