"""The earlier studies of the warm-start benchmark are changed in the way their names say, and in no other."""

import numpy as np
import pytest

from benchmarks.tables.public_jobs import family_of, public_jobs
from benchmarks.warm_start import halve_the_data, invert, permute, related_to, report, reprice
from trimtuner.engines.table import Table
from trimtuner.problem.problem import COST, TIME

DIGITS = Table.find("digits")


def column(table, metric, fraction=1.0):
    return np.array([table.cell(one, fraction).metrics[metric] for one in table.configurations])


def test_other_prices_change_the_cost_alone_by_one_factor_for_each_vm_type():
    changed = reprice(DIGITS, seed=1)
    np.testing.assert_array_equal(column(changed, TIME), column(DIGITS, TIME))
    np.testing.assert_array_equal(column(changed, "accuracy"), column(DIGITS, "accuracy"))
    ratios = column(changed, COST) / column(DIGITS, COST)
    types = np.array([one["vm_type"] for one in DIGITS.configurations])
    for vm_type in set(types):
        assert ratios[types == vm_type] == pytest.approx(ratios[types == vm_type][0])
    assert 0.5 <= ratios.min() < ratios.max() <= 2.0


@pytest.mark.parametrize("name", ["lcb126025", "lcb189873", "rpart334"])
def test_a_related_public_job_is_another_one_of_the_family_each_in_its_turn(name):
    family = {one for one in public_jobs() if family_of(one) == family_of(name)}
    assert {related_to(name, seed) for seed in range(len(family) - 1)} == family - {name}


def test_half_of_the_data_is_all_of_it_there():
    changed = halve_the_data(DIGITS, seed=1)
    assert changed.space.fractions == (0.125, 0.25, 0.5, 1.0)
    np.testing.assert_array_equal(column(changed, "accuracy", 1.0), column(DIGITS, "accuracy", 0.5))


def test_inverted_accuracies_rank_the_other_way_round_between_the_same_ends():
    changed = invert(DIGITS, seed=1)
    before, after = column(DIGITS, "accuracy"), column(changed, "accuracy")
    assert (after.min(), after.max()) == pytest.approx((before.min(), before.max()))
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(-1.0)
    np.testing.assert_array_equal(column(changed, TIME), column(DIGITS, TIME))


def test_permuted_measurements_are_the_same_ones_elsewhere_at_each_ones_own_price():
    changed = permute(DIGITS, seed=1)
    for metric in ("accuracy", TIME):
        assert sorted(column(changed, metric)) == sorted(column(DIGITS, metric))
        assert abs(np.corrcoef(column(changed, metric), column(DIGITS, metric))[0, 1]) < 0.3
    prices = np.array([DIGITS.space.price_per_hour(dict(one)) for one in DIGITS.configurations])
    np.testing.assert_allclose(column(changed, COST), column(changed, TIME) * prices / 3600.0)


def test_the_report_compares_each_seed_with_its_own_cold_start():
    found = {
        ("cnn", "cold", 1): (1.0, 2.0),
        ("cnn", "half", 1): (0.5, 0.5),
        ("cnn", "cold", 2): (3.0, 4.0),
        ("cnn", "half", 2): (0.5, 4.0),
    }
    line = report(found).splitlines()[-1]
    # Ratios: 1/2 and 1/6 at 95 %, 1/4 and 1 at 99 %; geometric means 0.29 and 0.50.
    assert line == "| half | cnn | 2 | 2.00 / 3.00 | 0.50 / 2.25 | 0.25 / 0.75 | 0.29 / 0.50 | 0.50 / 1.00 |"
