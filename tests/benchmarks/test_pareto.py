"""The regret of a front, on made-up truths with known answers."""

import pytest

from benchmarks.pareto import LIMITS, MARKS, Truth, regrets, search_ours
from trimtuner.engines.table import Table

CHEAP, MIDDLE, BEST, BEATEN = ((("x", number),) for number in range(4))
TRUTH = Truth({CHEAP: (1.0, 0.5), MIDDLE: (10.0, 0.8), BEST: (100.0, 0.9), BEATEN: (50.0, 0.7)})
# 25 limits at 10^(k/12), k = 0 to 24: 12 below 10, 12 from there, and the last; 3 from 5 to 10, 3 from 50 to 100.
IDEAL = (12 * 0.5 + 12 * 0.8 + 0.9) / 25


def test_limits_go_from_the_cheapest_on_the_true_front_to_its_dearest():
    limits = TRUTH.limits()
    assert len(limits) == LIMITS
    assert (limits[0], limits[12], limits[-1]) == pytest.approx((1.0, 10.0, 100.0))


@pytest.mark.parametrize(
    ("curve", "regret"),
    [
        ([(1.0, CHEAP), (10.0, MIDDLE), (100.0, BEST)], 0.0),
        ([], IDEAL),
        ([(1.0, CHEAP)], IDEAL - 0.5),
        ([(10.0, MIDDLE)], (12 * 0.5 + 0.1) / 25),  # below it there is no answer
        ([(1.0, CHEAP), (9.0, MIDDLE)], 0.1 / 25),  # believed a little cheaper than it is, but no limit lies between
        ([(1.0, CHEAP), (5.0, MIDDLE)], (3 * 0.5 + 0.1) / 25),  # three limits at which it was named and breaks them
        ([(1.0, CHEAP), (10.0, MIDDLE), (50.0, BEATEN), (100.0, BEST)], 3 * 0.1 / 25),
        ([(1.0, (("x", 9),))], IDEAL),  # it fails in truth
    ],
)
def test_the_regret_of_a_front_with_a_known_answer(curve, regret):
    assert TRUTH.regret(curve) == pytest.approx(regret)


def test_a_mark_is_judged_by_what_was_recommended_before_the_trial_that_passed_it():
    table = Table.find("digits")
    costs = table.full_run_costs()
    unit, truth = sum(costs) / len(costs), Truth.of(table)
    perfect = [(cost, key) for key, (cost, _) in truth.points.items() if cost <= truth.limits()[0]]

    def entrant(table, seed):  # noqa: ARG001
        yield 0.5 * unit, ()
        yield 3.0 * unit, perfect
        yield 9.0 * unit, ()

    before, after = truth.regret(()), truth.regret(perfect)
    assert regrets(table, entrant, 0) == [before, before, after, after]
    assert MARKS == (1.0, 2.0, 4.0, 8.0)


def test_a_method_of_ours_gets_better_with_the_money_it_spends():
    first, *_, last = regrets(Table.find("kernel"), search_ours("random"), 1)
    assert last < first
