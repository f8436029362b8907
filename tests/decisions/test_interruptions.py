"""What interruptions add: the formula against its derivation, and how it enters what is believed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import trimtuner as tt
from decisions.fakes import IDENTITY, LOG, Given, belief_of, gaussian_over, problem_of
from trimtuner.decisions.acquisition import AtTargets, ShareAtTargets
from trimtuner.decisions.belief import CAUTION, Places
from trimtuner.decisions.interruptions import log_inflation
from trimtuner.decisions.learning import TIME_GROWTH
from trimtuner.decisions.outlook import Outlook
from trimtuner.problem.history import Measurement
from trimtuner.tuning.recommendation import recommendation_from

HOUR = 3600.0
rates = st.floats(1e-4, 2.0)
hours = st.floats(0.01, 20.0)


def expected_hours(rate, needed):
    return float(needed * np.exp(log_inflation(np.array(rate), np.log(np.array(needed * HOUR)))))


# --- the formula


@given(rates, hours)
def test_the_expected_time_solves_the_equation_of_starting_again(rate, needed):
    """E = exp(-ΛT) T + ∫ over x < T of Λ exp(-Λx) (x + E) dx, with the integral done by quadrature."""
    total = expected_hours(rate, needed)
    lost, _ = quad(lambda x: rate * np.exp(-rate * x) * (x + total), 0.0, needed)
    assert np.exp(-rate * needed) * needed + lost == pytest.approx(total, rel=1e-6)


def test_the_expected_time_is_that_of_many_runs_played_through():
    generator = np.random.default_rng(0)
    rate, needed, totals = 0.5, 3.0, []
    for _ in range(20_000):
        total = 0.0
        while (lived := generator.exponential(1.0 / rate)) < needed:
            total += lived
        totals.append(total + needed)
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - expected_hours(rate, needed)) < 4.0 * error


@pytest.mark.parametrize(
    ("rate", "needed", "total"),
    [(0.05, 1.0, 1.0254), (0.05, 8.0, 9.8365), (0.05, 24.0, 46.402), (0.3, 10.0, 63.618)],
)
def test_the_expected_time_is_exp_lambda_t_minus_one_over_lambda(rate, needed, total):
    assert (np.exp(rate * needed) - 1.0) / rate == pytest.approx(total, rel=1e-4)
    assert expected_hours(rate, needed) == pytest.approx(total, rel=1e-4)


@given(st.floats(-800.0, 800.0))
def test_without_interruptions_nothing_is_added_whatever_the_time(log_seconds):
    assert log_inflation(np.array([0.0]), np.array([log_seconds])).tolist() == [0.0]


@given(rates, hours, st.floats(1.0, 3.0))
def test_more_interruptions_or_a_longer_run_never_cost_less(rate, needed, factor):
    here = expected_hours(rate, needed) / needed
    assert here >= 1.0
    assert expected_hours(factor * rate, needed) / needed >= here
    assert expected_hours(rate, factor * needed) / (factor * needed) >= here


@given(st.floats(0.0, 1e8), st.floats(-1e4, 1e4))
def test_a_hopeless_run_is_a_large_number_and_no_warning(rate, log_seconds):
    added = log_inflation(np.array([rate]), np.array([log_seconds]))
    assert np.isfinite(added).all()
    assert 0.0 <= added[0] <= 50.0


# --- what is believed


def spot_space(rate):
    vm = tt.VM(1, 2, 1.0, spot_price_per_hour=0.25, spot_interruptions_per_hour=rate)
    cloud = tt.Cloud({"a": vm}, vm_count=[1, 2], market=["on_demand", "spot"])
    return tt.Space({"x": tt.Choice([1, 2])}, cloud=cloud, fractions=(0.5, 1.0))


def spot_belief(rate, *constraints, mean=0.0, measured=()):
    """The same undisturbed time everywhere, exp(mean) hours at full data, with some doubt."""
    space = spot_space(rate)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, mean + np.log(HOUR), 0.25)),
    }
    return belief_of(problem_of(space, *constraints), quantities, measured, spent=1.0)


def everywhere(belief):
    return Places.product(belief.pool, belief.problem.space.fractions)


def rates_of(belief, places):
    configurations = [belief.pool.configuration(int(position)) for position in places.positions]
    return np.array([0.3 * one["vm_count"] if one["market"] == "spot" else 0.0 for one in configurations])


def test_time_and_cost_are_read_with_what_interruptions_add_at_the_posterior_mean():
    belief, calm = spot_belief(0.3, mean=1.0), spot_belief(0.0, mean=1.0)
    places = everywhere(belief)
    needed = np.exp(1.0) * places.fractions**TIME_GROWTH
    expected_load = rates_of(belief, places) * needed
    inflation = np.where(expected_load > 0, np.expm1(expected_load) / np.maximum(expected_load, 1e-300), 1.0)
    for metric in ("time", "cost"):
        here, there = belief.predict(metric, places), calm.predict(metric, places)
        np.testing.assert_allclose(np.exp(here.mean - there.mean), inflation, rtol=1e-9)
        np.testing.assert_array_equal(here.variance, there.variance)
    np.testing.assert_array_equal(belief.predict("score", places).mean, calm.predict("score", places).mean)


def test_a_rate_of_zero_changes_not_a_bit():
    calm = spot_belief(0.0, "cost <= 1")
    assert calm.pool.interruptions_per_hour is None
    zeros = calm.pool.without_interruptions()
    zeros.interruptions_per_hour = np.zeros(len(zeros))
    risky = replace(calm, pool=zeros)
    for metric in ("time", "cost", "score"):
        one, other = (b.predict(metric, everywhere(b)) for b in (calm, risky))
        assert one.mean.tobytes() == other.mean.tobytes()
    assert calm.feasible_at_targets.tobytes() == risky.feasible_at_targets.tobytes()


def test_the_chance_to_stay_below_a_cost_falls_on_spot_alone():
    belief, calm = spot_belief(0.3, "cost <= 4", mean=2.0), spot_belief(0.0, "cost <= 4", mean=2.0)
    is_spot = rates_of(belief, belief.targets) > 0
    assert (belief.feasible_at_targets[is_spot] < calm.feasible_at_targets[is_spot]).all()
    np.testing.assert_array_equal(belief.feasible_at_targets[~is_spot], calm.feasible_at_targets[~is_spot])


def test_a_run_that_would_never_get_through_is_infeasible():
    belief = spot_belief(0.3, "cost <= 1000000", mean=8.0)  # 3000 hours
    is_spot = rates_of(belief, belief.targets) > 0
    np.testing.assert_allclose(belief.feasible_at_targets[is_spot], 0.0, atol=1e-12)
    assert (belief.feasible_at_targets[~is_spot] > 0.99).all()


def test_a_trial_is_expected_to_cost_what_its_interruptions_add():
    belief, calm = spot_belief(0.3, mean=1.0), spot_belief(0.0, mean=1.0)
    here, there = (Outlook.of(one, everywhere(one), (0,)) for one in (belief, calm))
    added = np.exp(belief.offset("cost", here.candidates) - calm.offset("cost", there.candidates))
    assert added.max() > 1.4
    np.testing.assert_allclose(here.effort, there.effort * added, rtol=1e-9)
    np.testing.assert_allclose(here.effort_at_most(CAUTION), there.effort_at_most(CAUTION) * added, rtol=1e-9)


def measured_belief(rate):
    configuration = {"vm_type": "a", "vm_count": 1, "market": "spot", "x": 1}
    told = Measurement(configuration, 1.0, {"score": 0.5, "time": 2.0 * HOUR, "cost": 0.5})
    return spot_belief(rate, "cost <= 0.6", measured=[told]), configuration


def test_what_was_measured_on_spot_costs_more_when_it_is_run_again():
    belief, configuration = measured_belief(0.3)
    target = belief.target_at(configuration, 1.0)
    inflation = (np.exp(0.3 * 2.0) - 1.0) / (0.3 * 2.0)  # 1.37: 0.5 USD become 0.685, above the limit
    assert belief.measured_targets[target].metrics["cost"] == pytest.approx(0.5 * inflation)
    assert belief.measured_targets[target].metrics["time"] == pytest.approx(2.0 * HOUR * inflation)
    assert belief.measured_targets[target].metrics["score"] == 0.5
    assert belief.feasible_at(target) == 0.0
    assert recommendation_from(belief, target).cost == pytest.approx(0.5 * inflation)
    calm, _ = measured_belief(0.0)
    assert calm.feasible_at(target) == 1.0
    assert calm.measured_targets[target] is calm.measurements[0]


def test_insurance_counts_what_runs_on_spot_did_cost_and_not_what_they_would_next_time():
    """0.5 USD went to all of the data, which would be 0.685 again; half of what is beyond one full run is 0.6."""
    belief, _ = measured_belief(0.3)
    price = Outlook.of(belief, everywhere(belief), (0,)).scene.target_price
    outlook = Outlook.of(replace(belief, spent=price + 1.2), everywhere(belief), (0,))
    anything = Given(lambda outlook: np.ones(len(outlook.candidates)))
    scores = ShareAtTargets(anything, AtTargets(anything), dear=1.0).score(outlook)
    np.testing.assert_array_equal(scores, outlook.candidates.fractions == 1.0)


def test_undisturbed_is_the_same_belief_without_the_risk():
    belief, configuration = measured_belief(0.3)
    calm = belief.undisturbed
    assert calm.pool.interruptions_per_hour is None
    assert calm.measured_targets[calm.target_at(configuration, 1.0)].metrics["cost"] == 0.5
    assert calm.undisturbed is calm
    places = everywhere(calm)
    np.testing.assert_array_equal(calm.offset("time", places), TIME_GROWTH * np.log(places.fractions))
