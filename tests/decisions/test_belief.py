"""Belief: cost read from time and price, probabilities in closed form, and measurements that decide."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import lognorm, norm
from scipy.stats import t as student

from decisions.fakes import (
    IDENTITY,
    LOG,
    LOGIT,
    KnownSurrogate,
    LearningSurrogate,
    SharedSlope,
    belief_of,
    failed,
    gaussian_of_times,
    gaussian_over,
    history_of,
    measurement,
    mixture,
    problem_of,
    ran,
    random_covariance,
    space_of,
    trial,
)
from trimtuner.decisions import learning
from trimtuner.decisions.belief import CAUTION, Places, interval_deviations
from trimtuner.errors import NoAnswer
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely
from trimtuner.models.kernels import FractionKernel, Matern52, log_basis
from trimtuner.models.posterior import Prediction
from trimtuner.problem.earlier import Earlier

moderate = st.floats(-3.0, 3.0)
variances = st.floats(0.01, 4.0)


def learn(problem, history, surrogate, seed=0):
    return learning.learn(problem, problem.space.pool(), history, learning.Way(surrogate), seed)


def everywhere(belief):
    return Places.product(belief.pool, belief.problem.space.fractions)


# --- cost is time and price


def timed_belief(prices, *constraints, mean=4.0, variance=0.25, **goal):
    """As many configurations as prices, with the same belief about the time of each, at full data only."""
    space = space_of(len(prices), prices, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, mean, variance)),
    }
    return belief_of(problem_of(space, *constraints, **goal), quantities, spent=1.0)


def test_the_same_time_at_double_the_price_is_expected_to_cost_double():
    belief = timed_belief([0.7, 1.4])
    cost = belief.expected("cost", everywhere(belief))
    assert cost[1] == pytest.approx(2.0 * cost[0], rel=1e-12)


@given(moderate, variances, st.floats(0.01, 50.0))
def test_the_expected_cost_is_the_log_normal_mean_of_the_time_at_the_price(mean, variance, price):
    belief = timed_belief([price, 1.0], mean=mean, variance=variance)
    expected_seconds = lognorm.mean(s=np.sqrt(variance), scale=np.exp(mean))
    cost = belief.expected("cost", everywhere(belief))
    np.testing.assert_allclose(cost, expected_seconds * np.array([price, 1.0]) / 3600.0, rtol=1e-9)


@given(moderate, variances, st.floats(0.01, 50.0), st.floats(0.5, 2.0))
def test_the_chance_to_stay_below_a_cost_is_that_of_the_log_normal(mean, variance, price, share_of_median):
    limit = share_of_median * np.exp(mean) * price / 3600.0
    belief = timed_belief([price, 2.0 * price], f"cost <= {float(limit)}", mean=mean, variance=variance)
    expected = [
        lognorm.cdf(limit, s=np.sqrt(variance), scale=np.exp(mean) * one / 3600.0) for one in (price, 2.0 * price)
    ]
    np.testing.assert_allclose(belief.feasible_at_targets, expected, rtol=1e-6, atol=1e-12)


@given(moderate, variances, st.floats(0.01, 0.99))
def test_the_chance_that_a_user_is_told_is_that_of_the_law_of_the_intervals(mean, variance, share):
    """Student's t with two degrees of freedom, as scipy has it: a limit at its quantile is kept in that share."""
    limit = float(np.exp(mean + student.ppf(share, 2) * np.sqrt(variance)))
    belief = timed_belief([1.0, 2.0], f"time <= {limit!r}", mean=mean, variance=variance)
    np.testing.assert_allclose(belief.chance_feasible(everywhere(belief)), share, rtol=1e-4)
    assert belief.feasible_at(0) == pytest.approx(share, rel=1e-4)


@given(moderate, variances, st.floats(0.01, 0.99))
def test_where_the_least_is_sought_the_chance_of_what_is_picked_counts_twice(mean, variance, share):
    """A limit at the quantile of a share is kept with that chance by a place that nobody picked; picks are worse."""
    limit = float(np.exp(mean + student.ppf(share, 2) * np.sqrt(variance)))
    belief = timed_belief([1.0, 2.0], f"time <= {limit!r}", mean=mean, variance=variance, minimize="cost")
    np.testing.assert_allclose(belief.chance_feasible(everywhere(belief)), share, rtol=1e-4)
    assert belief.feasible_at(0) == pytest.approx(share**2, rel=1e-3)
    np.testing.assert_allclose(belief.chances_at(0), [share**2], rtol=1e-3)


@given(moderate, variances, st.floats(0.1, 10.0))
def test_a_limit_within_the_interval_is_not_said_to_be_kept_in_more_than_19_cases_of_20(mean, variance, ratio):
    """What is beyond the upper end of a 90 % interval is one case in twenty; told together, the two must agree."""
    limit = float(np.exp(mean) * ratio)
    belief = timed_belief([1.0, 2.0], f"time <= {limit!r}", mean=mean, variance=variance)
    _, high = belief.interval("time", everywhere(belief))
    kept = belief.chance_feasible(everywhere(belief))
    assert ((high <= limit) == (kept >= 0.95)).all() or np.allclose(kept, 0.95)


def test_a_limit_on_time_does_not_depend_on_the_price():
    belief = timed_belief([1.0, 8.0], "time <= 90s")
    expected = norm.cdf((np.log(90.0) - 4.0) / 0.5)
    np.testing.assert_allclose(belief.feasible_at_targets, expected)


def test_a_lower_limit_has_the_complementary_chance_of_an_upper_one():
    upper, lower = timed_belief([1.0, 2.0], "time <= 70s"), timed_belief([1.0, 2.0], "time >= 70s")
    total = upper.chance_feasible(everywhere(upper)) + lower.chance_feasible(everywhere(lower))
    np.testing.assert_allclose(total, 1.0)


def test_constraints_are_taken_as_independent_so_their_chances_multiply():
    space = space_of(2, [1.0, 2.0], fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [1.0, 2.0], 0.25)),
        "time": (LOG, gaussian_over(space, 4.0, 0.25)),
    }
    belief = belief_of(problem_of(space, "time <= 60s", "score >= 1.5"), quantities)
    in_time = norm.cdf((np.log(60.0) - 4.0) / 0.5)
    np.testing.assert_allclose(belief.feasible_at_targets, in_time * norm.cdf([-1.0, 1.0]))
    told_in_time = student.cdf((np.log(60.0) - 4.0) / 0.5, 2)
    expected = told_in_time * student.cdf([-1.0, 1.0], 2)
    np.testing.assert_allclose(belief.chance_feasible(everywhere(belief)), expected, rtol=1e-4)  # noise adds a little


def test_limits_on_cost_and_time_of_one_run_are_met_together_so_the_tighter_decides():
    """At 3600 USD an hour a second costs a dollar: cost ≤ 40 is time ≤ 40 s, tighter than 60 s."""
    space = space_of(1, [3600.0], fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, [1.0])), "time": (LOG, gaussian_over(space, 4.0, 0.25))}
    belief = belief_of(problem_of(space, "time <= 60s", "cost <= 40"), quantities)
    np.testing.assert_allclose(belief.feasible_at_targets, norm.cdf((np.log(40.0) - 4.0) / 0.5))
    expected = student.cdf((np.log(40.0) - 4.0) / 0.5, 2)
    np.testing.assert_allclose(belief.chance_feasible(everywhere(belief)), expected, rtol=1e-4)  # noise adds a little


# --- one quantity or two


def told(position, fraction, **metrics):
    return ran(position, position, fraction, **metrics)


def exact_surrogate(space):
    """Independent places, next to no noise: what was measured is what is believed."""
    return LearningSurrogate(gaussian_over(space, 0.0, 1.0, noise=1e-10))


def test_time_and_cost_share_one_quantity_where_cost_follows_from_time():
    space = space_of(3, [3.6, 7.2, 36.0])
    history = history_of(
        told(0, 0.5, accuracy=0.5, time=10.0, cost=0.01),
        told(1, 0.5, accuracy=0.6, time=20.0, cost=0.04),
    )
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert set(belief.quantities) == {"accuracy", "time"}
    assert belief.quantity_of("cost") is belief.quantity_of("time")
    np.testing.assert_allclose(belief.expected("cost", everywhere(belief))[:2], [0.01, 0.04], rtol=1e-6)


def test_a_told_cost_that_differs_from_time_at_the_price_is_a_quantity_of_its_own():
    """A minimum charge of 100 s: the bill is not the time."""
    space = space_of(3, [3.6, 7.2, 36.0])
    history = history_of(
        told(0, 0.5, accuracy=0.5, time=10.0, cost=0.1),
        told(1, 0.5, accuracy=0.6, time=20.0, cost=0.2),
    )
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert belief.quantity_of("cost") is not belief.quantity_of("time")
    np.testing.assert_allclose(belief.expected("cost", everywhere(belief))[:2], [0.1, 0.2], rtol=1e-6)
    np.testing.assert_allclose(belief.expected("time", everywhere(belief))[:2], [10.0, 20.0], rtol=1e-6)


def test_without_prices_a_told_cost_is_modelled_as_it_is():
    space = space_of(3)
    history = history_of(told(0, 0.5, accuracy=0.5, cost=0.3), told(1, 0.5, accuracy=0.6, cost=0.7))
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert belief.effort_metric == "cost"
    np.testing.assert_allclose(belief.expected("cost", everywhere(belief))[:2], [0.3, 0.7], rtol=1e-6)


def test_without_prices_or_costs_a_trial_is_charged_by_its_time():
    space = space_of(3)
    history = history_of(told(0, 0.5, accuracy=0.5, time=30.0), told(1, 0.5, accuracy=0.6, time=12.0))
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert belief.effort_metric == "time"
    assert belief.spent == 42.0


def test_a_cost_that_only_some_trials_told_is_no_measure_of_effort():
    space = space_of(3)
    history = history_of(told(0, 0.5, accuracy=0.5, time=30.0), told(1, 0.5, accuracy=0.6, time=12.0, cost=0.1))
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert belief.effort_metric == "time"
    assert belief.spent == 42.0
    np.testing.assert_allclose(belief.expected(belief.effort_metric, everywhere(belief))[:2], [30.0, 12.0], rtol=1e-6)


def test_effort_is_money_where_prices_are_known():
    space = space_of(2, [3.6, 3.6])
    history = history_of(told(0, 0.5, accuracy=0.5, time=10.0, cost=0.01))
    belief = learn(problem_of(space, maximize="accuracy"), history, exact_surrogate(space))
    assert belief.effort_metric == "cost"
    assert belief.spent == 0.01


def test_before_any_evidence_time_and_cost_grow_with_the_data_but_not_as_fast():
    """A model that knows nothing but the mean of what it saw, at a tenth of the data."""
    space = space_of(3, [3.6] * 3, fractions=(0.1, 1.0))
    history = history_of(
        told(0, 0.1, accuracy=0.5, time=10.0, cost=0.01), told(1, 0.1, accuracy=0.6, time=10.0, cost=0.01)
    )
    belief = learn(problem_of(space, maximize="accuracy"), history, MeanSurrogate())
    for metric, seen in (("time", 10.0), ("cost", 0.01)):
        expected = belief.expected(metric, everywhere(belief))
        np.testing.assert_allclose(expected[:3], seen, rtol=1e-6)
        assert (seen < expected[3:]).all()
        assert (expected[3:] < 10.0 * seen).all()


class MeanSurrogate:
    """Believes the mean of the targets everywhere."""

    def fit(self, rows, targets, scale, generator):  # noqa: ARG002
        return mixture(SharedSlope(lambda where: np.zeros(len(where)), level=float(targets.mean())))


def test_a_trial_costs_at_most_its_cautious_effort_in_nine_cases_of_ten():
    belief = timed_belief([3600.0, 7200.0], mean=1.0, variance=0.25)
    median, spread = np.exp(1.0) * np.array([1.0, 2.0]), np.sqrt(0.25 + 1e-6)
    np.testing.assert_allclose(
        belief.effort_at_most(belief.predict("cost", everywhere(belief)), CAUTION),
        median * np.exp(norm.ppf(0.9) * spread),
        rtol=1e-4,
    )


def test_nothing_can_be_believed_before_something_is_measured():
    space = space_of(2)
    problem = problem_of(space, maximize="accuracy")
    for history in (history_of(), history_of(failed(0, 0, 0.5)), history_of(pending=[trial(0, 0, 0.5)])):
        with pytest.raises(NoAnswer, match="run at least one trial"):
            learn(problem, history, exact_surrogate(space))


# --- measurements decide


def measured_belief(accuracy, time, *constraints):
    """Two configurations; the first is measured at full data, and the model is off on purpose."""
    space = space_of(2, [3600.0, 3600.0])
    measurements = [measurement(0, 1.0, accuracy=accuracy, time=time, cost=time)]
    quantities = {
        "accuracy": (LOGIT, gaussian_over(space, -1.0, 0.5)),
        "time": (LOG, gaussian_over(space, 2.0, 0.5)),
    }
    return belief_of(problem_of(space, *constraints, maximize="accuracy"), quantities, measurements)


def test_at_a_measured_target_the_goal_is_the_measurement_without_variance():
    belief = measured_belief(0.93, 5.0)
    assert belief.goal_at_targets.variance[0] == 0.0
    assert belief.worth_at_targets[0] == pytest.approx(0.93, abs=1e-12)
    assert belief.goal_at_targets.mean[1] == -1.0
    assert belief.goal_at_targets.variance[1] == 0.5


@pytest.mark.parametrize(("time", "chance"), [(4.999, 1.0), (5.0, 1.0), (5.001, 0.0)])
def test_at_a_measured_target_a_limit_is_met_or_not(time, chance):
    belief = measured_belief(0.9, time, "cost <= 5")
    assert belief.chances_at_targets[0, 0] == chance
    assert belief.feasible_at_targets[0] == chance
    assert 0.0 < belief.feasible_at_targets[1] < 1.0


def test_a_measurement_below_full_data_decides_no_target():
    space = space_of(2)
    problem = problem_of(space, maximize="accuracy")
    quantities = {"accuracy": (LOGIT, gaussian_over(space, 0.3, 0.5))}
    belief = belief_of(problem, quantities, [measurement(0, 0.5, accuracy=0.9)])
    assert not belief.measured_targets
    np.testing.assert_array_equal(belief.goal_at_targets.variance, 0.5)


def test_a_value_without_variance_is_within_its_limit_or_not():
    belief = measured_belief(0.9, 5.0, "accuracy >= 0.9")
    constraint = belief.problem.constraints[0]
    limit = belief.transformed_limit(constraint)
    known = Prediction(np.array([limit - 1e-9, limit, limit + 1e-9]), np.zeros(3))
    np.testing.assert_array_equal(belief.chance(constraint, known), [0.0, 1.0, 1.0])


# --- pending trials


def test_pending_trials_reduce_the_variance_and_leave_the_mean():
    generator = np.random.default_rng(4)
    space = space_of(4)
    prior = gaussian_over(space, generator.normal(size=8), random_covariance(8, generator), noise=0.1)
    done = ran(0, 0, 0.5, accuracy=0.5, time=2.0)
    pending = [trial(1, 1, 0.5), trial(2, 2, 1.0)]
    problem = problem_of(space, maximize="accuracy")
    before = learn(problem, history_of(done), KnownSurrogate(prior, prior))
    after = learn(problem, history_of(done, pending=pending), KnownSurrogate(prior, prior))
    at = [1, 6]  # configuration 1 at the first fraction, configuration 2 at the second
    seen = prior.matrix[np.ix_(at, at)] + 0.1 * np.eye(2)
    explained = np.diag(prior.matrix[:, at] @ np.linalg.solve(seen, prior.matrix[at]))
    for metric in ("accuracy", "time"):
        mean, variance = after.predict(metric, everywhere(after))
        np.testing.assert_allclose(mean, before.predict(metric, everywhere(before)).mean, atol=1e-12)
        np.testing.assert_allclose(variance, np.diag(prior.matrix) - explained, atol=1e-12)
        assert (variance < before.predict(metric, everywhere(before)).variance).all()


# --- targets


def test_the_best_accuracy_is_wanted_at_full_data_only():
    space = space_of(3, fractions=(0.1, 0.5, 1.0))
    belief = belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, 0.0))})
    np.testing.assert_array_equal(belief.targets.positions, [0, 1, 2])
    np.testing.assert_array_equal(belief.targets.fractions, 1.0)


def test_the_least_cost_has_a_target_at_every_fraction():
    space = space_of(3, [1.0, 2.0, 3.0], fractions=(0.1, 0.5, 1.0))
    measurements = [
        measurement(1, 0.1, accuracy=0.6, time=3600.0, cost=2.0),
        measurement(2, 0.5, accuracy=0.9, time=3600.0, cost=3.0),
    ]
    quantities = {
        "accuracy": (LOGIT, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_of_times(space, np.full(9, 1800.0))),
    }
    belief = belief_of(problem_of(space, "accuracy >= 0.8", minimize="cost"), quantities, measurements)
    assert len(belief.targets) == 9
    assert set(belief.measured_targets) == {1, 5}
    np.testing.assert_array_equal(belief.chances_at_targets[0, [1, 5]], [0.0, 1.0])
    np.testing.assert_allclose(belief.goal_at_targets.mean[[1, 5]], -np.log([2.0, 3.0]))
    np.testing.assert_allclose(belief.goal_at_targets.mean[0], -np.log(0.5))


# --- limits out of range


@pytest.mark.parametrize(
    ("constraint", "chance"),
    [("score <= 1.5", 1.0), ("score >= 1.5", 0.0), ("score >= -0.5", 1.0), ("score <= -0.5", 0.0)],
)
def test_a_limit_outside_the_range_of_a_share_is_always_or_never_met(constraint, chance):
    space = space_of(3)
    quantities = {"score": (LOGIT, gaussian_over(space, [-9.0, 0.0, 9.0] * 2, 4.0))}
    belief = belief_of(problem_of(space, constraint), quantities, [measurement(0, 1.0, score=0.5)])
    np.testing.assert_array_equal(belief.chance_feasible(everywhere(belief)), chance)
    np.testing.assert_array_equal(belief.feasible_at_targets, chance)


@pytest.mark.parametrize(("constraint", "chance"), [("latency <= 0", 0.0), ("latency >= -1", 1.0)])
def test_a_limit_that_is_not_above_zero_is_always_or_never_met_by_what_is(constraint, chance):
    space = space_of(2)
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0)), "latency": (LOG, gaussian_over(space, -5.0, 9.0))}
    belief = belief_of(problem_of(space, constraint), quantities)
    np.testing.assert_array_equal(belief.chance_feasible(everywhere(belief)), chance)


# --- worth


def test_the_worth_of_an_accuracy_is_the_expected_accuracy():
    space = space_of(2, fractions=(1.0,))
    mean, variance = np.array([0.4, -1.2]), np.array([0.7, 0.2])
    belief = belief_of(
        problem_of(space, maximize="accuracy"),
        {"accuracy": (LOGIT, gaussian_over(space, mean, np.diag(variance)))},
        [measurement(0, 0.5, accuracy=0.2)],
    )
    expected = [
        quad(lambda z, m=m, v=v: expit(m + np.sqrt(v) * z) * norm.pdf(z), -9, 9)[0]
        for m, v in zip(mean, variance, strict=True)
    ]
    # The share is pulled off 0 and 1 by 0.2 % before its logit is taken, hence the tolerance.
    np.testing.assert_allclose(belief.worth_at_targets, expected, atol=0.002)


def test_the_worth_of_a_cost_is_what_it_saves_over_the_dearest_seen():
    space = space_of(2, fractions=(1.0,))
    seen = [measurement(0, 0.5, cost=8.0), measurement(1, 0.5, cost=5.0)]
    belief = belief_of(
        problem_of(space, minimize="cost"), {"cost": (LOG, gaussian_over(space, np.log([2.0, 30.0]), 0.0))}, seen
    )
    np.testing.assert_allclose(belief.worth_at_targets, [6.0, 0.0], atol=1e-12)


def test_a_maximised_goal_that_was_negative_is_measured_from_the_worst_seen():
    space = space_of(2, fractions=(1.0,))
    seen = [measurement(0, 0.5, score=-4.0), measurement(1, 0.5, score=3.0)]
    belief = belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, [1.0, -6.0]))}, seen)
    np.testing.assert_allclose(belief.worth_at_targets, [5.0, 0.0])


# --- failures


def test_a_failed_target_does_not_run_and_a_measured_one_does():
    space = space_of(5)
    history = history_of(
        ran(0, 0, 1.0, accuracy=0.5, time=1.0),
        failed(1, 1, 1.0),
        failed(2, 3, 0.5),
        ran(3, 4, 0.5, accuracy=0.5, time=1.0),
    )
    known = gaussian_over(space, 0.0)
    belief = learn(problem_of(space, maximize="accuracy"), history, KnownSurrogate(known, known))
    assert belief.running_at_targets[0] == 1.0
    assert belief.running_at_targets[1] == 0.0
    assert (belief.running_at_targets[2:] > 0.0).all()
    assert (belief.running_at_targets[2:] < 1.0).all()
    np.testing.assert_array_equal(belief.feasible_at_targets, belief.running_at_targets)


def test_preempted_trials_say_nothing_about_where_jobs_fail():
    space = space_of(5)
    done = ran(0, 0, 1.0, accuracy=0.5, time=1.0)
    known = gaussian_over(space, 0.0)
    problem = problem_of(space, maximize="accuracy")
    belief = learn(problem, history_of(done, failed(1, 1, 1.0, "preempted")), KnownSurrogate(known, known))
    np.testing.assert_array_equal(belief.running_at_targets, 1.0)
    assert not belief.failed


# --- how things usually grow with the data


@dataclass(frozen=True)
class Level:
    """A model that has learnt nothing but the mean of what it was given."""

    def fit(self, rows, targets, scale, generator):  # noqa: ARG002
        return mixture(SharedSlope(lambda at: np.zeros(len(at)), level=float(np.mean(targets))))


def grown(metric, quality_growth, *, seen_at=0.25, value=0.3, **goal):
    """The model's word for half and all of the data after one measurement on a quarter, on the transformed scale."""
    space = space_of(2, fractions=(0.25, 0.5, 1.0))
    problem = problem_of(space, **goal)
    history = history_of(ran(0, 0, seen_at, **{metric: value}, time=60.0))
    belief = learning.learn(problem, space.pool(), history, learning.Way(Level(), quality_growth=quality_growth), 0)
    places = Places(space.pool(), np.array([1, 1]), np.array([0.5, 1.0]))
    before = belief.quantity_of(metric).transform.forward(np.array(value))
    return belief.predict(metric, places).mean - before, belief.predict("time", places).mean - np.log(60.0)


def test_log_odds_of_an_accuracy_are_expected_to_rise_with_the_logarithm_of_the_data():
    rise, _ = grown("accuracy", 0.4, maximize="accuracy")
    np.testing.assert_allclose(rise, [0.4 * np.log(2), 0.4 * np.log(4)], rtol=1e-9)


def test_the_logarithm_of_a_loss_is_expected_to_fall_with_it():
    rise, _ = grown("loss", 0.4, value=3.0, minimize="loss")
    np.testing.assert_allclose(rise, [-0.4 * np.log(2), -0.4 * np.log(4)], rtol=1e-9)


def test_where_a_method_expects_no_growth_of_quality_only_time_grows():
    rise, longer = grown("accuracy", 0.0, maximize="accuracy")
    np.testing.assert_allclose(rise, 0.0, atol=1e-12)
    np.testing.assert_allclose(longer, [0.8 * np.log(2), 0.8 * np.log(4)], rtol=1e-9)


# --- what limits say about how time grows


def full_run_after(trials, limits, *, prices=None, goal=None, growth=None):
    """Seconds forecast for configuration 0 on all of the data, by a model that knows nothing but the growth."""
    space = space_of(4, prices, fractions=(0.0625, 0.25, 1.0))
    problem = problem_of(space, *limits, **(goal or {"maximize": "accuracy"}))
    history = history_of(*trials(space))
    way = learning.Way(Level(), time_growth=growth or learning.WithinLimits())
    belief = learning.learn(problem, space.pool(), history, way, 0)
    (seconds,) = np.exp(belief.predict("time", Places(space.pool(), np.array([0]), np.array([1.0]))).mean)
    return seconds


def timed(*seconds, fraction=0.0625):
    """Trials of configurations 0, 1, … on one share of the data, with what they took."""
    return lambda _: [
        ran(number, number, fraction, accuracy=0.5, time=time, cost=0.01 * time) for number, time in enumerate(seconds)
    ]


def test_a_limit_on_time_slows_the_growth_that_is_expected_until_the_trial_keeps_it():
    """60 s on a sixteenth: by the usual growth 551 s on all of the data, by a limit of 120 s just that."""
    assert full_run_after(timed(60.0), ["time <= 120s"]) == pytest.approx(120.0)
    assert full_run_after(timed(60.0), ["time <= 120s"], growth=0.8) == pytest.approx(60.0 * 16**0.8)


def test_a_generous_limit_leaves_the_usual_growth():
    assert full_run_after(timed(60.0), ["time <= 2h"]) == pytest.approx(60.0 * 16**0.8)
    assert full_run_after(timed(60.0), []) == pytest.approx(60.0 * 16**0.8)


def test_limits_are_heard_beside_an_earlier_study_too():
    """It may have been of a job whose small shares were cheap, and count for nothing here."""
    space = space_of(4, None, fractions=(0.0625, 0.25, 1.0))
    measured = [
        measurement(position, fraction, accuracy=0.5, time=60.0 * fraction)
        for position in range(4)
        for fraction in (0.0625, 1.0)
    ]
    earlier = learning.Inheritance(Earlier.of("before", measured, space), space)
    process = GaussianProcess((Matern52() * FractionKernel(log_basis),), MostLikely())
    way = learning.Way(process, time_growth=learning.WithinLimits())
    problem = problem_of(space, "time <= 120s", maximize="accuracy")
    history = history_of(*timed(60.0)(space))
    belief = learning.learn(problem, space.pool(), history, way, 0, [earlier])
    assert belief.quantities["time"].growth == pytest.approx(np.log(2.0) / np.log(16.0))


def test_time_is_never_expected_to_fall_with_the_data():
    assert full_run_after(timed(60.0), ["time <= 30s"]) == pytest.approx(60.0)


def test_half_of_the_trials_are_expected_to_keep_the_limit():
    """Of 30, 60 and 120 s the middle one: each is expected to double, and the model's word is their geometric mean."""
    assert full_run_after(timed(30.0, 60.0, 120.0), ["time <= 120s"]) == pytest.approx(120.0)


@pytest.mark.parametrize(
    ("stopped", "full_runs", "growth"),
    [
        (3, [], 0.5),
        (4, [], np.inf),
        (4, [200.0], 0.5),  # a full run that keeps the limit
        (5, [200.0], np.inf),
        (4, [250.0], np.inf),  # over the limit, though not by so much that it was stopped
    ],
)
def test_limits_say_nothing_of_growth_once_most_runs_were_stopped_for_breaking_one(stopped, full_runs, growth):
    """30, 60 and 120 s on a sixteenth keep 240 s if time grows like share^0.75, ^0.5 and ^0.25."""
    space = space_of(8, None, fractions=(0.0625, 0.25, 1.0))
    seconds = np.array([30.0, 60.0, 120.0, *full_runs])
    shares = np.where(np.arange(len(seconds)) < 3, 0.0625, 1.0)
    places = Places(space.pool(), np.arange(len(seconds)), shares)
    problem = problem_of(space, "time <= 240s", maximize="accuracy")
    assert learning.growth_to_keep_limits(problem, "time", places, seconds, stopped) == pytest.approx(growth)


def test_a_limit_on_cost_is_read_at_the_price_of_each_configuration():
    """At 36 USD an hour 1.2 USD are 120 s; the configuration at 3.6 USD an hour has ten times as long."""
    space_prices = [36.0, 3.6, 3.6, 3.6]

    def trials(_):
        return [ran(0, 0, 0.0625, accuracy=0.5, time=60.0, cost=0.6)]

    assert full_run_after(trials, ["cost <= 1.2"], prices=space_prices) == pytest.approx(120.0)
    assert full_run_after(trials, ["cost <= 1.2", "time <= 90s"], prices=space_prices) == pytest.approx(90.0)


def test_limits_that_hold_on_any_share_of_the_data_say_nothing_about_all_of_it():
    goal = {"minimize": "cost"}
    assert full_run_after(timed(60.0), ["time <= 120s"], goal=goal) == pytest.approx(60.0 * 16**0.8)


# --- places


@given(st.integers(1, 6), st.integers(1, 4))
def test_a_product_holds_every_configuration_at_every_fraction_where_it_says(count, level_count):
    levels = tuple((number + 1) / level_count for number in range(level_count))
    places = Places.product(space_of(count, fractions=levels).pool(), levels)
    pairs = [(position, fraction) for position in range(count) for fraction in levels]
    numbers = [places.number_of(*pair) for pair in pairs]
    assert sorted(numbers) == list(range(len(places)))
    for number, (position, fraction) in zip(numbers, pairs, strict=True):
        assert (places.positions[number], places.fractions[number]) == (position, fraction)


def test_the_rows_of_places_are_one_array_that_nobody_can_change():
    """Models know it by its identity, and would answer for what it was."""
    places = Places.product(space_of(2).pool(), (0.5, 1.0))
    assert places.rows is places.rows
    with pytest.raises(ValueError, match="read-only"):
        places.rows[0, 0] = 7.0


def test_a_model_is_fitted_when_first_read_and_once():
    space, fitted = space_of(3, [3.6, 7.2, 36.0]), []

    class Counting:
        def fit(self, rows, targets, scale, generator):
            fitted.append(scale)
            return exact_surrogate(space).fit(rows, targets, scale, generator)

    belief = learn(
        problem_of(space, maximize="accuracy"), history_of(told(0, 0.5, accuracy=0.5, time=10.0, cost=0.01)), Counting()
    )
    assert set(belief.quantities) == {"accuracy", "time"}
    assert fitted == []
    for _ in range(2):
        belief.predict("accuracy", belief.targets)
    assert len(fitted) == 1
    belief.predict("cost", belief.targets)
    belief.predict("time", belief.targets)
    assert len(fitted) == 2


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8, 0.9, 0.99])
def test_an_interval_reaches_as_far_as_students_t_with_two_degrees_of_freedom(share):
    assert interval_deviations(share) == pytest.approx(student.ppf(0.5 + share / 2.0, 2), abs=1e-9)
