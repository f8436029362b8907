"""The benchmark of intervals: what it counts, and one search of it."""

import numpy as np
import pytest

from benchmarks.intervals import ANY, ASIDE, FEWEST, RECOMMENDED, SAMPLED, TUNED_ON, Search, run_search, shares
from benchmarks.peers import ratios


def test_shares_are_of_distances_within_either_width():
    """1.6449 for a normal, 2.92 as shown: of 1, 2 and 4 deviations one is within the first and two within the other."""
    one = {"of": [ANY, ANY, ANY, RECOMMENDED], "accuracy": [1.0, -2.0, 4.0, 9.0], "cost": [0.0] * 4}
    assert shares([one], "accuracy", ANY) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert shares([one], "accuracy", RECOMMENDED) == (1, 0.0, 0.0)


def test_its_jobs_are_tuned_on_and_kept_aside_as_the_comparison_with_other_tools_has_them():
    assert {ratios.family(name) for name in TUNED_ON} <= set(ratios.TUNED_ON)
    assert {ratios.family(name) for name in ASIDE} <= set(ratios.ASIDE)


def test_a_search_judges_forecasts_alone(monkeypatch):
    monkeypatch.setattr("benchmarks.intervals.TRIALS", FEWEST + 1)
    found = run_search(Search("digits", 0))
    sampled = [one for one in found["of"] if one == ANY]
    assert len(sampled) == 2 * SAMPLED  # after the last two of five trials, which are on small shares
    assert all(np.isfinite(found[name]).all() and len(found[name]) == len(found["of"]) for name in ("accuracy", "cost"))
