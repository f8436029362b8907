"""What every filter promises: one suite over all of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.fakes import IDENTITY, LOG, belief_of, gaussian_over, measurement, outlook_of, problem_of, space_of
from trimtuner.decisions.entropy import ConstrainedAccuracyOfIncumbent
from trimtuner.decisions.filters import (
    BestIncumbentToCome,
    ClimbAsEarned,
    HighestConstrainedAccuracy,
    KeepAll,
    KeepRandom,
    SearchByCMAES,
    SearchByDirect,
)
from trimtuner.decisions.halving import DropUnderperformers

EXACT_SHARE = {"random": KeepRandom, "cea": HighestConstrainedAccuracy}
UP_TO_SHARE = {"direct": SearchByDirect, "cma-es": SearchByCMAES}
BY_CONFIGURATION = {
    "gamma": lambda share: BestIncumbentToCome(share, ConstrainedAccuracyOfIncumbent()),
    "dropping": lambda share: DropUnderperformers(1.0 + 1.0 / share),
}
EVERY_FILTER = {
    "all": lambda _: KeepAll(),
    "climb": ClimbAsEarned,
    **EXACT_SHARE,
    **UP_TO_SHARE,
    **BY_CONFIGURATION,
}

every_filter = pytest.mark.parametrize("make", EVERY_FILTER.values(), ids=EVERY_FILTER)
shares = st.sampled_from([0.001, 0.1, 0.2, 0.5, 1.0])
counts = st.sampled_from([1, 2, 3, 17, 40])
seeds = st.integers(0, 10_000)


def setting(count, seed, flat=False):
    """Candidates and a score over them; with ``flat`` nothing tells any two candidates apart."""
    generator = np.random.default_rng(seed)
    space = space_of(count, [3600.0] * count)

    def numbers():
        return np.zeros(2 * count) if flat else generator.normal(size=2 * count)

    quantities = {
        "score": (IDENTITY, gaussian_over(space, numbers())),
        "time": (LOG, gaussian_over(space, numbers())),
    }
    seen = [measurement(0, 0.5, score=-3.0, time=1.0, cost=1.0)]
    outlook = outlook_of(belief_of(problem_of(space, "cost <= 1"), quantities, seen))
    scores = numbers()
    return outlook, lambda positions: scores[positions]


def keep(one, count, seed, flat=False):
    outlook, score_of = setting(count, seed, flat)
    return one.keep(outlook, score_of, np.random.default_rng(seed))


@every_filter
@settings(max_examples=25)
@given(share=shares, count=counts, seed=seeds, flat=st.booleans())
def test_a_filter_keeps_a_subset_without_duplicates_and_at_least_one(make, share, count, seed, flat):
    kept = keep(make(share), count, seed, flat)
    assert len(kept) >= 1
    assert len(set(kept.tolist())) == len(kept)
    assert set(kept.tolist()) <= set(range(2 * count))


@every_filter
@settings(max_examples=10)
@given(share=shares, count=counts, seed=seeds)
def test_a_filter_keeps_the_same_for_the_same_generator(make, share, count, seed):
    np.testing.assert_array_equal(keep(make(share), count, seed), keep(make(share), count, seed))


@every_filter
def test_a_filter_leaves_the_outlook_as_it_is(make):
    outlook, score_of = setting(10, 1)
    before = outlook.candidates.rows.copy()
    make(0.3).keep(outlook, score_of, np.random.default_rng(0))
    np.testing.assert_array_equal(outlook.candidates.rows, before)


@pytest.mark.parametrize("make", EXACT_SHARE.values(), ids=EXACT_SHARE)
@settings(max_examples=25)
@given(share=shares, count=counts, seed=seeds)
def test_a_share_is_rounded_up_to_whole_candidates(make, share, count, seed):
    assert len(keep(make(share), count, seed)) == math.ceil(round(share * 2 * count, 9))


@pytest.mark.parametrize("make", UP_TO_SHARE.values(), ids=UP_TO_SHARE)
@settings(max_examples=25)
@given(share=shares, count=counts, seed=seeds, flat=st.booleans())
def test_a_search_looks_at_its_share_at_most(make, share, count, seed, flat):
    assert len(keep(make(share), count, seed, flat)) <= math.ceil(round(share * 2 * count, 9))
