"""Calibration and stopping, from made-up searches with known answers, and one real search for what they are made of."""

import math

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.calibration_figures import (
    Finished,
    brier,
    coverage,
    endings,
    finished_of,
    reliability,
    share_of,
    stopping_row,
    worth_in_usd,
)
from benchmarks.calibration_searches import (
    ACCURACY_GOAL,
    COLUMNS,
    COST_GOAL,
    Search,
    Watch,
    deviations,
    run_search,
)
from benchmarks.kept import Kept, load_table, unit_of
from benchmarks.least_cost import scenarios_of
from trimtuner.decisions.belief import interval_deviations
from trimtuner.decisions.stopping import NotWorthItsPrice, Stop
from trimtuner.study.replay import replay
from trimtuner.tuning import tuner
from trimtuner.tuning.recipes import recipe_named
from trimtuner.tuning.recommendation import recommendation_from

SEED, TRIALS = 3, 7


def columns_of(rows=4, **known):
    """A search in which nothing is known but this."""
    columns = {name: [None] * rows for name in COLUMNS}
    return (
        columns
        | {"spent": [float(row + 1) for row in range(rows)], "quality": [1.0] * rows, "cpu": [0.1] * rows}
        | known
    )


def made_up(goal=ACCURACY_GOAL, seed=0, **known):
    columns = columns_of(**known)
    arrays = {name: np.array([math.nan if v is None else v for v in values]) for name, values in columns.items()}
    return Finished(Search("digits", goal, seed, 4), arrays)


def test_recommendations_are_counted_by_what_they_say_and_measured_ones_apart():
    one = made_up(chance=[0.2, 0.9, 1.0, 1.0], feasible=[0, 1, 1, 1], measured=[0, 0, 0, 1])
    two = made_up(chance=[0.4, 0.93, 0.97, 0.97], feasible=[1, 0, 1, 1], measured=[0, 0, 0, 0])
    bins = {found.low: found for found in reliability([one, two])}
    assert [bins[low].feasible.count for low in (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)] == [2, 0, 0, 0, 2, 3]
    assert bins[0.9].said == pytest.approx(0.915)
    assert bins[0.9].feasible.value == 0.5
    assert bins[0.95].feasible.value == 1.0
    assert bins[0.95].feasible.searches == 2


def test_the_brier_score_is_the_mean_squared_error_of_forecasts():
    one = made_up(chance=[0.5, 1.0, 0.0, 1.0], feasible=[1, 1, 1, 0], measured=[0, 0, 0, 1])
    score, of_the_share = brier([one])
    assert score == pytest.approx((0.25 + 0.0 + 1.0) / 3)
    assert of_the_share == 0.0
    assert all(math.isnan(value) for value in brier([made_up()]))


def test_an_interval_comes_from_whole_searches_not_from_their_rows():
    # Ten searches that are always right and ten that never are: a thousand rows say no more than twenty searches.
    rows = [np.full(50, float(number < 10)) for number in range(20)]
    share = share_of(rows)
    assert (share.value, share.count, share.searches) == (0.5, 1000, 20)
    assert share.low == pytest.approx(0.28, abs=0.05)
    assert share.high == pytest.approx(0.72, abs=0.05)


def test_searches_that_all_agree_leave_a_doubt_that_shrinks_with_their_number():
    few, many = share_of([np.ones(100)] * 2), share_of([np.ones(1)] * 100)
    assert few.low == pytest.approx(0.025**0.5)
    assert many.low == pytest.approx(0.025**0.01)
    assert few.high == many.high == 1.0
    assert share_of([np.zeros(3)] * 5).high == pytest.approx(1.0 - 0.025**0.2)
    assert str(share_of([np.array([])])) == "-"


def test_few_searches_that_do_not_agree_say_nothing_of_the_spread():
    share = share_of([np.array([1.0, 0.0])] * 4)
    assert (share.value, share.low, share.high) == (0.5, 0.0, 1.0)


def test_coverage_is_the_share_of_deviations_within_the_interval():
    one = made_up(z_accuracy=[0.1, -1.2, 2.5, None], z_cost=[3.0, None, None, None])
    assert coverage([one], "z_accuracy", 0.5).value == pytest.approx(1 / 3)
    assert coverage([one], "z_accuracy", 0.8).value == pytest.approx(2 / 3)
    assert coverage([one], "z_accuracy", 0.9).value == 1.0
    assert coverage([one], "z_cost", 0.9).value == 0.0


def test_the_rule_ends_a_search_when_the_gain_is_not_above_the_price():
    one = made_up(gain=[None, 0.5, 0.2, None], price=[None, 1.0, 1.0, None])
    assert stopping_row(one, 1.0, 1) == 1
    assert stopping_row(one, 5.0, 1) == 2
    assert stopping_row(one, 6.0, 1) is None
    assert stopping_row(one, 1.0, 3) == 2


def test_what_stopping_saves_and_loses():
    unit = unit_of(load_table("digits"))
    spent = [usd * unit for usd in (1.0, 2.0, 3.0, 8.0)]
    known = {"spent": spent, "quality": [0.5, 0.9, 0.95, 1.0], "feasible": [0, 0, 1, 1]}
    stopped = made_up(COST_GOAL, gain=[None, 0.5, 0.2, None], price=[None, 1.0, 1.0, None], **known)
    never = made_up(COST_GOAL, gain=[None, 9.0, 9.0, None], price=[None, 1.0, 1.0, None], **known)
    (ending,) = endings([stopped, never], 1.0)
    assert (ending.trials, ending.is_feasible) == (2, False)
    assert ending.spent == pytest.approx(2.0)
    assert ending.saved == pytest.approx(0.75)
    assert ending.lost == pytest.approx(0.1)
    assert endings([stopped, never], 5.0)[0].trials == 3


def test_the_worth_of_a_hundredth_is_counted_in_full_runs_and_a_cost_in_runs():
    assert worth_in_usd(Search("digits", COST_GOAL, 0, 1), 3.0) == 3.0
    unit = unit_of(load_table("digits"))
    assert 0.01 * worth_in_usd(Search("digits", ACCURACY_GOAL, 0, 1), 3.0) == pytest.approx(3.0 * unit)


@pytest.mark.parametrize("goal", [ACCURACY_GOAL, COST_GOAL])
def test_the_search_is_that_of_replay(goal):
    search = Search("digits", goal, SEED, TRIALS)
    columns = run_search(search)
    scenario = scenarios_of("digits")[0]
    more = {"constraints": scenario.limits, "minimize": "cost", "budget": scenario.budget} if goal == COST_GOAL else {}
    run = replay(load_table("digits"), "trimtuner", SEED, TRIALS, snapshots=False, **more)
    assert columns["spent"] == pytest.approx([one.spent for one in run.moments], rel=1e-5)
    assert columns["quality"] == pytest.approx([one.quality for one in run.moments], rel=1e-5)
    assert columns["chance"] == pytest.approx([one.chance_feasible for one in run.moments], rel=1e-5)
    assert [bool(one) for one in columns["feasible"]] == [one.is_feasible for one in run.moments]


def test_what_is_kept_of_the_rule_decides_as_the_rule_does():
    reasons = []

    class Asked(Stop):
        def reason(self, history, prospect):
            reasons.append(rule.reason(history, prospect))

    search = Search("digits", ACCURACY_GOAL, SEED, TRIALS)
    (one,) = finished_of([search], _kept(search, run_search(search)))
    is_known = np.isfinite(one["gain"])
    enough = np.sort(one["price"][is_known] / one["gain"][is_known])
    worth = float(np.sqrt(enough[-1] * enough[-2]))  # one trial alone does not pay, by more than rounding
    rule = NotWorthItsPrice(worth)
    study = search.study(Asked())
    for _ in range(TRIALS):
        trial = study.ask()
        cell = load_table("digits").cell(trial.config, trial.fraction)
        study.tell_report(trial, cell.metrics, {}, cell.failed)
    fired = [number for number, reason in enumerate(reasons) if reason is not None]
    assert fired == [stopping_row(one, worth, 1) + 1]  # judged when asking the trial after that row


def test_a_deviation_is_within_the_interval_of_the_recommendation_or_not():
    search = Search("digits", ACCURACY_GOAL, SEED, TRIALS)
    study = search.study(Watch())
    for _ in range(4):
        trial = study.ask()
        cell = load_table("digits").cell(trial.config, trial.fraction)
        study.tell_report(trial, cell.metrics, {}, cell.failed)
    belief = tuner.believe(study.problem, recipe_named("trimtuner"), study.history, SEED)
    target = next(one for one in range(len(belief.targets)) if one not in belief.measured_targets)
    estimate = recommendation_from(belief, target).estimates["cost"]
    assert deviations(belief, target, "cost", estimate.low) == pytest.approx(-interval_deviations(0.9), abs=1e-4)
    assert deviations(belief, target, "cost", estimate.high) == pytest.approx(interval_deviations(0.9), abs=1e-4)


def test_the_report_is_made_from_the_kept_searches_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "run_search", None)  # nothing may run
    known = {"chance": [0.6, 0.9, 0.99, 1.0], "feasible": [0, 1, 1, 1], "measured": [0, 0, 0, 1]}
    known |= {"z_accuracy": [0.1, -2.0, 0.5, None], "z_cost": [0.2, 0.3, 0.4, None]}
    known |= {"gain": [None, 0.5, 0.2, None], "price": [None, 1.0, 1.0, None]}
    kept = Kept(tmp_path / "kept.jsonl")
    searches = [Search("digits", goal, seed, 4) for goal in (ACCURACY_GOAL, COST_GOAL) for seed in range(3)]
    for search in searches[:-1]:
        kept.add(search, columns_of(**known))
    page = calibration.write_report(Kept(tmp_path / "kept.jsonl"), searches, tmp_path).read_text(encoding="utf-8")
    assert (tmp_path / "plots" / "calibration.png").stat().st_size > 0
    assert "from 5 searches of the default (best accuracy: 3; least cost: 2)" in page
    assert "| best accuracy | 0.5 to 0.7 | 3 | 3 | 0.600 | 0.000 [0.000, 0.708] |" in page
    assert "| least cost | measured | 2 | 2 | 1 | 1.000 [0.158, 1.000] |" in page
    assert "| best accuracy | accuracy | 9 | 0.667 [0.000, 1.000] |" in page
    assert "| least cost | the run is made once | 0 of 2 | 2 / 2 |" in page
    assert "| least cost | the run is made 10 times | 2 of 2 | - |" in page


def _kept(search, columns):
    class One:
        def find(self, asked):
            return columns if asked == search else None

    return One()
