"""Outlooks that follow from another: after an imagined answer, on some of the candidates, regardless of limits.

An imagined answer must do to an outlook exactly what conditioning the posteriors on it does, for every kind of model.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from decisions.fakes import (
    IDENTITY,
    LOG,
    KnownGaussian,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    history_of,
    measurement,
    outlook_of,
    problem_of,
    ran,
    random_covariance,
    space_of,
)
from trimtuner.decisions.acquisition import (
    ConstrainedExpectedAccuracy,
    ConstrainedImprovement,
    ExpectedCost,
    RegardlessOfLimits,
)
from trimtuner.decisions.belief import Places
from trimtuner.decisions.entropy import (
    ChanceIncumbentFeasible,
    ConstrainedAccuracyOfIncumbent,
    InformationAboutBest,
    ValueOfRecommendation,
)
from trimtuner.decisions.learning import Way, learn
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.outlook import Outlook, mixed_quadrature
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely
from trimtuner.models.kernels import FractionKernel, Matern52, log_basis
from trimtuner.models.trees import BaggedTrees
from trimtuner.tuning.recipes import INFORMATION, fabolas

ACQUISITIONS = {
    "cost": ExpectedCost(),
    "cea": ConstrainedExpectedAccuracy(),
    "improvement": ConstrainedImprovement(),
    "plain improvement": RegardlessOfLimits(ConstrainedImprovement()),
    "value": ValueOfRecommendation(),
    "chance": ChanceIncumbentFeasible(),
    "accuracy of incumbent": ConstrainedAccuracyOfIncumbent(),
    "information": InformationAboutBest(),
    "gain per price": Lookahead(ConstrainedImprovement(), ExpectedCost(), only_predicted_feasible=False),
}
SURROGATES = {
    "process": GaussianProcess((FractionKernel(log_basis) + Matern52() * FractionKernel(log_basis),), MostLikely()),
    "trees": BaggedTrees(16),
}
COUNT = 5  # configurations, at two fractions: places 0 to 4 at a half, 5 to 9 on all of the data
ALMOST = {"rtol": 1e-8, "atol": 1e-8}

every_acquisition = pytest.mark.parametrize("acquisition", ACQUISITIONS.values(), ids=ACQUISITIONS)
every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES)
candidates = st.integers(0, 2 * COUNT - 1)
deviations = st.floats(-2.5, 2.5)
seeds = st.integers(0, 10_000)


def known_belief(seed, *limits, minimize=None, measurements=None):
    """Scores and times that vary together over all places, with noise; a USD a second."""
    generator = np.random.default_rng(seed)
    space = space_of(COUNT, [3600.0] * COUNT)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, generator.normal(size=10), random_covariance(10, generator), 0.1)),
        "time": (
            LOG,
            gaussian_of_times(space, np.exp(generator.normal(size=10)), random_covariance(10, generator), 0.2),
        ),
    }
    return belief_of(problem_of(space, *limits, minimize=minimize), quantities, measurements)


def learnt_belief(surrogate):
    """From six runs, two of them of targets."""
    space = space_of(COUNT, [3600.0, 1800.0, 3600.0, 7200.0, 900.0])
    told = [(0, 0.5, 0.6, 2.0), (1, 0.5, 0.7, 5.0), (2, 1.0, 0.8, 3.0), (3, 0.5, 0.5, 1.0), (4, 1.0, 0.9, 9.0)]
    outcomes = [
        ran(number, x, fraction, accuracy=accuracy, time=seconds, cost=seconds * space.pool().prices_per_hour[x] / 3600)
        for number, (x, fraction, accuracy, seconds) in enumerate(told)
    ]
    problem = problem_of(space, "cost <= 3", "time <= 6s", maximize="accuracy")
    return learn(problem, space.pool(), history_of(*outcomes), Way(surrogate), seed=0)


def answers_at(outlook, candidate, deviation):
    """What the deviations amount to, on each model's own scale."""
    return {
        name: float(
            outlook.predictions[name].mean[candidate]
            + deviation.get(name, 0.0)
            * math.sqrt(
                outlook.predictions[name].variance[candidate] + outlook.belief.quantities[name].posterior.noise_variance
            )
        )
        for name in outlook.scene.quantity_names
    }


def conditioned(belief, outlook, chosen, answers):
    """The belief whose posteriors were conditioned on the answers at these candidates."""
    quantities = dict(belief.quantities)
    for name in outlook.scene.quantity_names:
        told = np.array([answer[name] for answer in answers])
        posterior = quantities[name].posterior.condition(outlook.candidates.rows[chosen], told)
        quantities[name] = replace(quantities[name], posterior=posterior)
    return replace(belief, quantities=quantities)


def steps_from(outlook, candidate):
    """How far a deviation in the candidate's answer moves every mean."""
    return outlook.after(candidate, {}).answers[-1].steps


def assert_alike(imagined, real):
    """Two outlooks on the same candidates and contenders believe the same."""
    np.testing.assert_array_equal(imagined.contenders, real.contenders)
    for name in imagined.belief.quantities:
        np.testing.assert_allclose(imagined.predictions[name], real.predictions[name], **ALMOST)
    for name in imagined.scene.quantity_names:
        for one in range(len(imagined.candidates)):
            np.testing.assert_allclose(steps_from(imagined, one)[name], steps_from(real, one)[name], **ALMOST)
    for metric in imagined.scene.metrics:
        np.testing.assert_allclose(imagined.at_candidates(metric), real.at_candidates(metric), **ALMOST)
        name = real.belief.quantity_name(metric)
        np.testing.assert_allclose(imagined.answer_at_candidates(name), real.answer_at_candidates(name), **ALMOST)
        np.testing.assert_allclose(imagined.contender_prediction(metric), real.contender_prediction(metric), **ALMOST)
        np.testing.assert_allclose(imagined.cross_covariance(metric), real.cross_covariance(metric), **ALMOST)
        np.testing.assert_allclose(imagined.contender_covariance(metric), real.contender_covariance(metric), **ALMOST)
        np.testing.assert_allclose(imagined.movement(metric), real.movement(metric), **ALMOST)
    np.testing.assert_allclose(imagined.effort, real.effort, **ALMOST)
    np.testing.assert_allclose(imagined.effort_at_most(0.9), real.effort_at_most(0.9), **ALMOST)
    np.testing.assert_allclose(imagined.chance_feasible, real.chance_feasible, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(imagined.value_at_contenders, real.value_at_contenders, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(imagined.is_predicted_feasible, real.is_predicted_feasible)


# --- an imagined answer is conditioning


@settings(max_examples=15)
@given(seeds, candidates, deviations, deviations)
def test_an_imagined_answer_does_what_conditioning_on_it_does(seed, candidate, score, time):
    seen = [measurement(1, 1.0, score=0.4, time=2.0, cost=2.0)]
    belief = known_belief(seed, "cost <= 2", measurements=seen)
    outlook, deviation = outlook_of(belief), {"score": score, "time": time}
    answer = answers_at(outlook, candidate, deviation)
    real = outlook_of(conditioned(belief, outlook, [candidate], [answer]))
    assert_alike(outlook.after(candidate, deviation), real)


@every_surrogate
@pytest.mark.parametrize("candidate", [0, 4, 6, 7])
def test_an_imagined_answer_does_what_conditioning_a_learnt_model_does(surrogate, candidate):
    belief = learnt_belief(surrogate)
    outlook, deviation = outlook_of(belief), {"accuracy": 0.7, "time": -1.3}
    answer = answers_at(outlook, candidate, deviation)
    real = outlook_of(conditioned(belief, outlook, [candidate], [answer]))
    assert_alike(outlook.after(candidate, deviation), real)


@every_surrogate
@pytest.mark.parametrize(("first", "second"), [(5, 6), (0, 5), (3, 3)], ids=["two", "one configuration", "repeated"])
def test_two_imagined_answers_do_what_conditioning_on_both_at_once_does(surrogate, first, second):
    belief = learnt_belief(surrogate)
    outlook = outlook_of(belief)
    one = outlook.after(first, {"accuracy": 1.0, "time": 0.5})
    two = one.after(second, {"accuracy": -0.4, "time": -1.5})
    answers = [
        answers_at(outlook, first, {"accuracy": 1.0, "time": 0.5}),
        answers_at(one, second, {"accuracy": -0.4, "time": -1.5}),
    ]
    assert_alike(two, outlook_of(conditioned(belief, outlook, [first, second], answers)))


@settings(max_examples=15)
@given(seeds, candidates, candidates, deviations, deviations)
def test_the_order_of_two_answers_does_not_matter(seed, first, second, z_first, z_second):
    belief = known_belief(seed, "time <= 2s")
    outlook = outlook_of(belief)
    forth = outlook.after(first, {"score": z_first, "time": -z_first}).after(second, {"score": z_second, "time": 1.0})
    one = outlook.after(first, {"score": z_first, "time": -z_first})
    told_first = answers_at(outlook, first, {"score": z_first, "time": -z_first})
    told_second = answers_at(one, second, {"score": z_second, "time": 1.0})

    def in_deviations(view, candidate, answer):
        spread = {name: answers_at(view, candidate, {name: 1.0})[name] for name in answer}
        middle = answers_at(view, candidate, {})
        return {name: (answer[name] - middle[name]) / (spread[name] - middle[name]) for name in answer}

    other = outlook.after(second, in_deviations(outlook, second, told_second))
    back = other.after(first, in_deviations(other, first, told_first))
    assert_alike(forth, back)


@every_acquisition
@pytest.mark.parametrize("seed", range(3))
def test_after_an_imagined_answer_a_candidate_scores_as_under_the_conditioned_belief(acquisition, seed):
    """The answer is at a half of the data, and so is itself no best measured."""
    seen = [measurement(1, 1.0, score=0.4, time=2.0, cost=2.0)]
    belief = known_belief(seed, "cost <= 2.5", measurements=seen)
    outlook, deviation = outlook_of(belief), {"score": 0.8, "time": -0.6}
    real = outlook_of(conditioned(belief, outlook, [3], [answers_at(outlook, 3, deviation)]))
    np.testing.assert_allclose(
        acquisition.score(outlook.after(3, deviation)), acquisition.score(real), rtol=1e-6, atol=1e-9
    )


def test_a_trial_tells_its_cost_also_where_no_goal_or_limit_reads_it():
    outlook = outlook_of(known_belief(0))
    after = outlook.after(2, {"score": 1.0, "time": 0.0})
    assert outlook.scene.quantity_names == ("score",)
    assert outlook.scene.answered_names == ("score", "time")
    np.testing.assert_array_equal(after.at_candidates("time").mean, outlook.at_candidates("time").mean)
    assert (after.at_candidates("time").variance < outlook.at_candidates("time").variance).all()
    assert (after.at_candidates("score").variance < outlook.at_candidates("score").variance).all()


def test_no_imagined_answer_moves_a_measured_contender():
    seen = [measurement(2, 1.0, score=1.5, time=2.0, cost=2.0)]
    outlook = outlook_of(known_belief(5, "time <= 3s", measurements=seen)).after(7, {"score": 2.0, "time": 2.0})
    column = outlook.contenders.tolist().index(2)
    for metric, value in (("score", 1.5), ("time", math.log(2.0))):
        assert outlook.contender_prediction(metric).mean[column] == pytest.approx(value, rel=1e-15)
        assert outlook.contender_prediction(metric).variance[column] == 0.0
        np.testing.assert_array_equal(outlook.cross_covariance(metric)[:, column], 0.0)


@given(seeds, candidates, deviations)
def test_doubt_never_grows_with_an_answer_and_does_not_depend_on_it(seed, candidate, deviation):
    outlook = outlook_of(known_belief(seed))
    before = outlook.at_candidates("score").variance
    after = outlook.after(candidate, {"score": deviation}).at_candidates("score").variance
    assert (after <= before + 1e-12).all()
    np.testing.assert_array_equal(after, outlook.after(candidate, {"score": 0.0}).at_candidates("score").variance)


@given(seeds, candidates)
def test_answers_weighed_by_their_chance_leave_every_mean_where_it_was(seed, candidate):
    outlook = outlook_of(known_belief(seed))
    points, weights = mixed_quadrature((3,))
    means = [outlook.after(candidate, {"score": z}).at_candidates("score").mean for z in points[:, 0].tolist()]
    np.testing.assert_allclose(weights @ np.array(means), outlook.at_candidates("score").mean, atol=1e-12)


def test_mixed_quadrature_gives_each_dimension_its_own_roots():
    """Three roots know E z⁴ = 3; one root takes the second dimension for its mean."""
    points, weights = mixed_quadrature((3, 1))
    assert points.shape == (3, 2)
    assert weights @ points[:, 0] ** 4 == pytest.approx(3.0)
    np.testing.assert_allclose(points[:, 1], 0.0, atol=1e-15)


# --- the best measured so far


@given(seeds, candidates, deviations, deviations, st.sampled_from([None, -1.0, 0.5]))
def test_an_imagined_answer_is_the_best_measured_exactly_when_it_is_within_the_limits_on_all_of_the_data(
    seed, candidate, score, time, before
):
    done = () if before is None else (measurement(1, 1.0, score=before, time=1.0, cost=1.0),)
    belief = known_belief(seed, "time <= 2s", measurements=[measurement(0, 0.5, score=-9.0, time=1.0, cost=1.0), *done])
    outlook = outlook_of(belief)
    answered = answers_at(outlook, candidate, {"score": score, "time": time})
    growth = belief.offset("time", outlook.candidates)[candidate]
    counts = candidate >= COUNT and answered["time"] + growth <= math.log(2.0)
    expected = max(
        (value for value in (before, answered["score"] if counts else None) if value is not None), default=None
    )
    assert outlook.best_measured == before
    assert outlook.after(candidate, {"score": score, "time": time}).best_measured == (
        None if expected is None else pytest.approx(expected, abs=1e-9)
    )


@pytest.mark.parametrize(("limit", "is_within"), [("cost <= 1.01", True), ("cost <= 0.99", False)])
def test_a_limit_on_the_cost_is_held_against_the_imagined_cost(limit, is_within):
    """A second at 3600 USD an hour is a dollar."""
    space = space_of(2, [3600.0] * 2, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, 4.0)), "time": (LOG, gaussian_of_times(space, np.ones(2)))}
    outlook = outlook_of(belief_of(problem_of(space, limit), quantities))
    assert outlook.after(0, {}).best_measured == (pytest.approx(4.0) if is_within else None)


def test_for_the_least_cost_an_imagined_answer_counts_at_any_fraction_and_less_is_better():
    space = space_of(2, [3600.0] * 2)
    times = gaussian_of_times(space, np.array([1.0, 2.0, 4.0, 8.0]))
    seen = [measurement(0, 1.0, time=3.0, cost=3.0)]
    outlook = outlook_of(belief_of(problem_of(space, minimize="cost"), {"time": (LOG, times)}, seen))
    assert outlook.best_measured == pytest.approx(-math.log(3.0))
    bests = [outlook.after(one, {}).best_measured for one in range(4)]
    np.testing.assert_allclose(bests, -np.log([1.0, 2.0, 3.0, 3.0]), atol=1e-9)


def test_the_best_of_two_imagined_answers_counts():
    space = space_of(3, fractions=(1.0,))
    belief = belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, [1.0, 3.0, 2.0], 0.0))})
    path = outlook_of(belief).after(1, {}).after(2, {})
    assert path.best_measured == pytest.approx(3.0)


# --- what is left of the budget


@given(seeds, candidates, candidates, deviations, deviations)
def test_what_is_left_falls_by_the_cost_of_each_imagined_answer(seed, first, second, z_first, z_second):
    outlook = replace(outlook_of(known_belief(seed, "cost <= 2")), left=100.0)
    one = outlook.after(first, {"score": 0.3, "time": z_first})
    two = one.after(second, {"score": 0.3, "time": z_second})
    for view, before, candidate, z in ((one, outlook, first, z_first), (two, one, second, z_second)):
        growth = 0.8 * math.log(view.candidates.fractions[candidate])
        cost = math.exp(answers_at(before, candidate, {"time": z})["time"] + growth)  # a USD a second
        assert before.left - view.left == pytest.approx(cost, rel=1e-9)


def test_where_the_cost_is_not_imagined_what_is_left_falls_by_its_median():
    space = space_of(2, [3600.0, 7200.0], fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_of_times(space, np.array([1.0, 3.0]), 0.5)),
    }
    outlook = replace(outlook_of(belief_of(problem_of(space), quantities)), left=10.0)
    assert outlook.after(1, {"score": 1.0}).left == pytest.approx(10.0 - 6.0)


def test_without_prices_what_is_left_is_seconds():
    space = space_of(2, fractions=(1.0,))
    belief = belief_of(
        problem_of(space, minimize="time"), {"time": (LOG, gaussian_of_times(space, np.array([1.0, 3.0])))}
    )
    assert replace(outlook_of(belief), left=10.0).after(1, {"time": 0.0}).left == pytest.approx(7.0)


def test_without_a_budget_nothing_is_ever_short():
    outlook = outlook_of(known_belief(0)).after(1, {"time": 2.0})
    assert outlook.left == math.inf
    assert outlook.is_affordable.all()


@given(seeds, st.floats(0.05, 0.99))
def test_the_dearest_that_a_trial_may_be_is_not_passed_with_just_the_confidence(seed, confidence):
    outlook = outlook_of(known_belief(seed))
    mean, variance = outlook.at_candidates("cost")
    most = outlook.effort_at_most(confidence)
    chance = norm.cdf(np.log(most), mean, np.sqrt(variance + 0.2))  # the noise of a measured time is 0.2
    np.testing.assert_allclose(chance, confidence, rtol=1e-9)


def test_a_trial_is_affordable_up_to_exactly_what_is_left():
    space = space_of(3, [3600.0] * 3, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_of_times(space, [1.0, 2.0, 3.0])),
    }
    outlook = replace(outlook_of(belief_of(problem_of(space), quantities)), confidence=0.5)
    dearest = outlook.effort_at_most(0.5)
    np.testing.assert_allclose(dearest, [1.0, 2.0, 3.0])
    assert replace(outlook, left=float(dearest[1])).is_affordable.tolist() == [True, True, False]
    assert replace(outlook, left=float(np.nextafter(dearest[1], 0.0))).is_affordable.tolist() == [True, False, False]
    assert not replace(outlook, left=-1.0).is_affordable.any()


# --- predicted to be feasible


def test_predicted_feasible_is_what_the_means_say_and_on_the_limit_is_within():
    space = space_of(4, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [5.0, 5.0, 4.999, 9.0], 100.0)),
        "time": (LOG, gaussian_over(space, [0.0, 0.001, -1.0, -1.0], 100.0)),
    }
    outlook = outlook_of(belief_of(problem_of(space, "score >= 5", "time <= 1s"), quantities))
    assert outlook.is_predicted_feasible.tolist() == [True, False, False, True]
    assert outlook.regardless_of_limits.is_predicted_feasible.all()


def test_what_is_likelier_to_fail_than_to_run_is_not_predicted_feasible():
    space = space_of(2, fractions=(1.0,))
    quantities = {"score": (IDENTITY, gaussian_over(space, 0.0))}
    outlook = outlook_of(belief_of(problem_of(space), quantities, [measurement(0, 1.0, score=1.0)], [(1, 1.0)]))
    assert outlook.running[0] > 0.5 > outlook.running[1]
    assert outlook.is_predicted_feasible.tolist() == [True, False]


# --- some of the candidates


@every_acquisition
@settings(max_examples=8)
@given(seed=seeds, positions=st.lists(candidates, min_size=1, max_size=6, unique=True))
def test_some_of_the_candidates_score_as_they_do_among_all(acquisition, seed, positions):
    seen = [measurement(1, 1.0, score=0.4, time=2.0, cost=2.0)]
    outlook = outlook_of(known_belief(seed, "cost <= 2.5", measurements=seen))
    chosen = np.array(positions)
    np.testing.assert_allclose(
        acquisition.score(outlook.at(chosen)), acquisition.score(outlook)[chosen], rtol=1e-12, atol=1e-15
    )


@every_acquisition
def test_some_of_some_after_an_answer_score_as_they_do_among_all(acquisition):
    outlook = replace(outlook_of(known_belief(4, "cost <= 2.5")), left=50.0, confidence=0.7)
    deviation = {"score": 0.5, "time": -0.5}
    straight = acquisition.score(outlook.after(6, deviation))
    nested = outlook.at(np.array([9, 6, 2, 0])).after(1, deviation).at(np.array([3, 0]))
    assert nested.left == outlook.after(6, deviation).left
    np.testing.assert_allclose(acquisition.score(nested), straight[[0, 9]], rtol=1e-12, atol=1e-15)


def test_columns_computed_at_once_are_those_computed_one_by_one_and_are_not_computed_again(monkeypatch):
    belief = known_belief(2, "time <= 1s")
    once, each = outlook_of(belief).at(np.array([7, 3, 1])), outlook_of(belief)
    expected = {place: steps_from(each, place) for place in (7, 1)}
    once.compute_columns(np.array([2, 0]))
    monkeypatch.setattr(KnownGaussian, "covariance", lambda *_: pytest.fail("computed again"))
    for name in ("score", "time"):
        np.testing.assert_array_equal(steps_from(once, 0)[name], expected[7][name])
        np.testing.assert_array_equal(steps_from(once, 2)[name], expected[1][name])


# --- regardless of limits


@every_acquisition
@settings(max_examples=5)
@given(seed=seeds, candidate=candidates)
def test_regardless_of_limits_an_outlook_is_that_of_the_problem_without_them(acquisition, seed, candidate):
    seen = [measurement(1, 1.0, score=0.4, time=2.0, cost=2.0)]
    limited = outlook_of(known_belief(seed, "cost <= 1.5", "score >= 0.5", measurements=seen))
    free = outlook_of(known_belief(seed, measurements=seen))
    np.testing.assert_array_equal(acquisition.score(limited.regardless_of_limits), acquisition.score(free))
    np.testing.assert_allclose(
        acquisition.score(limited.after(candidate, {"score": 0.4, "time": 1.0}).regardless_of_limits),
        acquisition.score(free.after(candidate, {"score": 0.4, "time": 1.0})),
    )
    chosen = np.array([8, 2, candidate])
    np.testing.assert_allclose(
        acquisition.score(limited.at(chosen).regardless_of_limits), acquisition.score(free)[chosen], rtol=1e-12
    )


@settings(max_examples=10)
@given(seeds)
def test_without_constraints_the_score_of_trimtuner_is_exactly_that_of_fabolas(seed):
    """Eq. 5 of the paper without its first line is Eq. 3, which has no overhead."""
    outlook = outlook_of(known_belief(seed))
    scores = (INFORMATION / ExpectedCost()).score(outlook)
    assert scores.any()
    np.testing.assert_array_equal(scores, fabolas(overhead=0.0).acquisition.score(outlook))


def test_under_constraints_the_score_of_trimtuner_is_not_that_of_fabolas():
    outlook = outlook_of(known_belief(0, "cost <= 1.5"))
    assert not np.allclose((INFORMATION / ExpectedCost()).score(outlook), fabolas().acquisition.score(outlook))


# --- CEA of the incumbent to come (Eq. 4.5 of the thesis)


@pytest.mark.parametrize("roots", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_accuracy_of_the_next_incumbent_is_its_worth_times_its_chance_averaged_over_answers(seed, roots):
    """Redone with one conditioning an answer; scores stay above the floor of 0, so worth is the predicted score."""
    generator = np.random.default_rng(seed)
    space = space_of(3)
    scores = gaussian_over(space, generator.uniform(8.0, 9.0, 6), random_covariance(6, generator), 0.1)
    times = gaussian_over(space, generator.normal(scale=0.5, size=6), random_covariance(6, generator), 0.1)
    belief = belief_of(
        problem_of(space, "time <= 1s"),
        {"score": (IDENTITY, scores), "time": (LOG, times)},
        [measurement(0, 0.5, score=3.0, time=1.0)],
    )
    nodes, weights = np.polynomial.hermite.hermgauss(roots)
    rules = list(zip(math.sqrt(2.0) * nodes, weights / math.sqrt(math.pi), strict=True))
    targets = belief.targets.rows  # at a fraction of 1 nothing is added for growth with the data
    expected = []
    for place in range(6):
        row, total = scores.rows[[place]], 0.0
        for (z_score, w_score), (z_time, w_time) in itertools.product(rules, rules):
            told_score = scores.mean[place] + z_score * math.sqrt(scores.matrix[place, place] + 0.1)
            told_time = times.mean[place] + z_time * math.sqrt(times.matrix[place, place] + 0.1)
            worth = scores.condition(row, np.array([told_score])).predict(targets).mean
            mean, variance = times.condition(row, np.array([told_time])).predict(targets)
            chance = norm.cdf(-mean / np.sqrt(variance))
            incumbent = int(np.argmax(worth * np.minimum(chance / 0.99, 1.0)))
            total += w_score * w_time * worth[incumbent] * chance[incumbent]
        expected.append(total)
    acquisition = ConstrainedAccuracyOfIncumbent(confidence=0.99, roots=roots)
    np.testing.assert_allclose(acquisition.score(outlook_of(belief)), expected, rtol=1e-9)


def test_the_next_incumbent_is_the_one_that_the_trial_would_make_trusted():
    """Two contenders, 10 and 8 worth; the first meets its limit with a chance of ½ unless its time is better known.

    log-times are N(0, 1) and N(-9, 0): a sure second one. The limit is e^0.5 s, so P₁ = Φ(0.5) before. With noise of
    variance ⅓ the variance of a Gaussian of variance 1 falls to 1 - 1 / (4/3) = ¼, so P₁ = Φ(1) after its own trial.
    """
    space = space_of(2, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [10.0, 8.0], 0.0)),
        "time": (LOG, gaussian_over(space, [0.0, -9.0], [1.0, 0.0], noise=1.0 / 3.0)),
    }
    problem = problem_of(space, f"time <= {math.exp(0.5)!r}s")
    belief = belief_of(problem, quantities, [measurement(0, 0.5, score=1.0, time=1.0)])
    first, second = ConstrainedAccuracyOfIncumbent(confidence=0.99).score(outlook_of(belief))
    assert 10.0 * norm.cdf(1.0) / 0.99 > 8.0 > 10.0 * norm.cdf(0.5) / 0.99
    assert first == pytest.approx(10.0 * norm.cdf(1.0), rel=1e-9)
    assert second == pytest.approx(8.0, rel=1e-9)


def test_an_outlook_on_chosen_places_is_that_of_the_places():
    belief = known_belief(3, "cost <= 2")
    everywhere = Places.product(belief.pool, belief.problem.space.fractions)
    chosen = np.array([8, 1])
    np.testing.assert_allclose(
        outlook_of(belief).at(chosen).effort, Outlook.of(belief, everywhere.at(chosen), (0,)).effort, rtol=1e-12
    )
