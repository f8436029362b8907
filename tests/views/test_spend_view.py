"""Money: what was spent, what is left, and when it will be over, on hand-made histories."""

import pytest

from decisions.fakes import history_of, problem_of, ran, space_of
from trimtuner.views.spend import forecast_text, spend
from views.showing import Limits, Money, attempt, subject_of

SPACE = space_of(8, prices=[1.0] * 8)


def with_costs(*costs, **changes):
    outcomes = [ran(number, number, 1.0, score=1.0, cost=cost, time=10.0) for number, cost in enumerate(costs)]
    return subject_of(problem_of(SPACE, budget=changes.pop("budget", None)), history_of(*outcomes), **changes)


def test_what_is_left_is_the_budget_less_spent_and_reserved():
    assert Money(10.0, 3.0, 2.0).left == 5.0
    assert Money(10.0, 9.0, 2.0).left == 0.0
    assert Money(None, 9.0, 2.0).left is None


def test_the_steps_add_up_the_charges_in_the_order_of_the_ends():
    attempts = (
        attempt(0, 100.0, 101.0, 130.0, 0.5),
        attempt(1, 100.0, 101.0, 110.0, 0.25),
        attempt(2, 140.0, 141.0, None),
    )
    view = spend(with_costs(0.5, 0.25, attempts=attempts))
    assert view.steps == ((0.0, 0.0), (10.0, 0.25), (30.0, 0.75))


def test_without_attempts_one_trial_follows_the_other():
    assert spend(with_costs(0.5, 0.25)).steps == ((0.0, 0.0), (10.0, 0.5), (20.0, 0.75))


def test_money_runs_out_after_what_is_left_by_what_a_trial_costs():
    view = spend(with_costs(1.0, 3.0, budget=20.0))
    assert view.forecast.by == "money"
    assert view.forecast.trials_left == pytest.approx(16.0 / 2.0)
    assert view.forecast.seconds_left == pytest.approx(8 * 10.0)
    assert view.end == (pytest.approx(20.0 + 80.0), pytest.approx(4.0 + 16.0))
    assert forecast_text(view) == "At the pace of the last trials, money runs out after about 8 more, in about 80 s."


def test_what_runs_out_first_is_named():
    view = spend(with_costs(1.0, 3.0, budget=20.0, limits=Limits(trials=5)))
    assert (view.forecast.by, view.forecast.trials_left) == ("trials", 3.0)
    timed = spend(with_costs(1.0, 3.0, budget=20.0, limits=Limits(seconds=40.0)))
    assert (timed.forecast.by, timed.forecast.trials_left) == ("time", 2.0)


def test_the_pace_is_that_of_ends_with_as_many_side_by_side_as_there_are():
    attempts = tuple(attempt(number, 0.0, 0.0, 100.0 + 5.0 * number, 1.0) for number in range(4))
    view = spend(with_costs(1.0, 1.0, 1.0, 1.0, budget=10.0, attempts=attempts))
    assert view.forecast.seconds_left == pytest.approx(6 * 5.0)


@pytest.mark.parametrize(
    ("costs", "changes", "words"),
    [
        ((), {}, "Too little has ended"),
        ((1.0, 1.0), {}, "Nothing limits the search"),
        ((1.0, 1.0), {"limits": Limits(trials=2)}, "The search has used up its trials."),
    ],
)
def test_where_nothing_can_be_forecast_the_reason_is_said(costs, changes, words):
    view = spend(with_costs(*costs, **changes))
    assert words in forecast_text(view)
    assert view.end is None
