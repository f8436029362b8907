"""Made-up jobs have the trouble that they are named for, and a known best."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmarks.hard_jobs import FRACTIONS, TROUBLES, make_job
from trimtuner.problem.problem import COST, TIME

SEEDS = [1, 2, 3]


def column(table, metric, fraction):
    return np.array([table.cell(c, fraction).metrics.get(metric, np.nan) for c in table.configurations])


def correlation(table, fraction):
    some, full = column(table, "accuracy", fraction), column(table, "accuracy", 1.0)
    ran = ~np.isnan(some) & ~np.isnan(full)
    return spearmanr(some[ran], full[ran]).statistic


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_job_has_every_cell_and_a_limit_that_half_of_it_meets(trouble):
    table = make_job(trouble, 1)
    assert len(table.cells) == len(table.configurations) * len(FRACTIONS)
    limit = float(table.constraints[0].split("<=")[1])
    assert np.mean(column(table, COST, 1.0) <= limit) == pytest.approx(0.5, abs=0.01)


def test_the_same_seed_is_the_same_job():
    assert make_job("rare", 4).cells == make_job("rare", 4).cells
    assert make_job("rare", 4).cells != make_job("rare", 5).cells


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_fraction_says_as_much_as_the_trouble_has_it(seed):
    """Rank correlations of three jobs; the mix is by construction, ranks and wiggles move it a little."""
    for trouble, expected in (("easy", 0.9), ("silent", 0.0), ("contrary", -0.4)):
        assert correlation(make_job(trouble, seed), FRACTIONS[0]) == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("seed", SEEDS)
def test_failures_are_where_they_should_be(seed):
    small, full = make_job("fails-small", seed), make_job("fails-full", seed)
    for table, failing in ((small, {1 / 64, 1 / 16}), (full, {1.0})):
        failed = {fraction for (_, fraction), cell in table.cells.items() if cell.failed}
        assert failed == failing


@pytest.mark.parametrize("seed", SEEDS)
def test_time_grows_faster_than_the_data_on_a_steep_job(seed):
    table = make_job("steep", seed)
    growth = np.log(column(table, TIME, 1.0) / column(table, TIME, 0.25)) / np.log(4.0)
    assert np.median(growth) > 1.3


@pytest.mark.parametrize("seed", SEEDS)
def test_few_are_near_the_best_on_a_rare_job(seed):
    table = make_job("rare", seed)
    limit = float(table.constraints[0].split("<=")[1])
    accuracy = np.where(column(table, COST, 1.0) <= limit, column(table, "accuracy", 1.0), 0.0)
    assert np.mean(accuracy >= 0.99 * accuracy.max()) <= 0.03
