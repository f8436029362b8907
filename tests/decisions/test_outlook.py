"""Outlook: contenders, how far an answer moves them, and the quadrature over answers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.fakes import (
    IDENTITY,
    LOG,
    belief_of,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    random_covariance,
    space_of,
)
from trimtuner.decisions.outlook import quadrature

seeds = st.integers(0, 10_000)


def random_belief(seed, count=5, noise=0.2, measurements=None):
    generator = np.random.default_rng(seed)
    space = space_of(count, generator.uniform(0.5, 2.0, count).tolist())
    quantities = {
        "score": (
            IDENTITY,
            gaussian_over(space, generator.normal(size=2 * count), random_covariance(2 * count, generator), noise),
        ),
        "time": (
            LOG,
            gaussian_over(space, generator.normal(size=2 * count), random_covariance(2 * count, generator), noise),
        ),
    }
    return belief_of(problem_of(space, "cost <= 0.001", "time <= 5s"), quantities, measurements)


# --- contenders


@given(seeds, st.integers(1, 8))
def test_contenders_are_as_many_as_asked_for_and_none_twice(seed, at_most):
    contenders = outlook_of(random_belief(seed), contenders_at_most=at_most).contenders
    assert len(contenders) == min(at_most, 5)
    assert len(set(contenders.tolist())) == len(contenders)
    assert set(contenders.tolist()) <= set(range(5))


@given(seeds, st.integers(1, 4))
def test_the_best_one_believed_in_is_always_a_contender(seed, at_most):
    """Believed in: as likely feasible as not, or, where nothing is, as likely as anything."""
    belief = random_belief(seed)
    feasible = belief.feasible_at_targets
    trusted = np.nonzero(feasible >= min(0.5, feasible.max()))[0]
    best = trusted[belief.goal_at_targets.mean[trusted].argmax()]
    assert best in outlook_of(belief, contenders_at_most=at_most).contenders


def test_of_two_alike_the_likelier_to_be_better_contends():
    """Targets: the best; one a deviation below; one three deviations below."""
    space = space_of(3, fractions=(1.0,))
    belief = belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, [-3.0, 0.0, -1.0]))})
    np.testing.assert_array_equal(outlook_of(belief, contenders_at_most=2).contenders, [1, 2])


def test_one_unlikely_to_be_feasible_does_not_contend_however_good():
    space = space_of(3, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [9.0, 0.0, -0.5])),
        "time": (LOG, gaussian_over(space, [9.0, 0.0, 0.0])),
    }
    belief = belief_of(problem_of(space, "time <= 20s"), quantities)
    np.testing.assert_array_equal(outlook_of(belief, contenders_at_most=2).contenders, [1, 2])


# --- movement


@given(seeds)
def test_movement_gives_the_textbook_mean_and_variance_after_any_answer(seed):
    belief = random_belief(seed)
    outlook = outlook_of(belief)
    targets = outlook.scene.contender_places
    for metric in ("score", "time", "cost"):
        posterior = belief.quantity_of(metric).posterior
        answer_mean, answer_variance = outlook.answer_at_candidates(belief.quantity_name(metric))
        mean, variance = outlook.contender_prediction(metric)
        for candidate in range(len(outlook.candidates)):
            for deviation in (-2.0, 0.0, 0.7):
                answer = answer_mean[candidate] + deviation * math.sqrt(answer_variance[candidate])
                after = posterior.condition(outlook.candidates.rows[[candidate]], np.array([answer]))
                expected = after.predict(targets.rows)
                movement = outlook.movement(metric)[candidate]
                moved = mean + movement * deviation - belief.offset(metric, targets)
                np.testing.assert_allclose(moved, expected.mean, atol=1e-9)
                np.testing.assert_allclose(variance - movement**2, expected.variance, atol=1e-9)


def test_an_answer_is_as_uncertain_as_the_value_and_its_noise_together():
    belief = random_belief(3, noise=0.2)
    outlook = outlook_of(belief)
    value = belief.predict("score", outlook.candidates).variance
    np.testing.assert_allclose(outlook.answer_at_candidates("score").variance, value + 0.2)


def test_no_answer_moves_a_measured_contender():
    done = measurement(2, 1.0, score=1.5, time=2.0, cost=0.0005)
    outlook = outlook_of(random_belief(5, measurements=[done]))
    column = outlook.contenders.tolist().index(2)
    assert outlook.scene.is_measured.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
    for metric, value in (("score", 1.5), ("time", math.log(2.0)), ("cost", math.log(0.0005))):
        np.testing.assert_array_equal(outlook.movement(metric)[:, column], 0.0)
        assert outlook.contender_prediction(metric).mean[column] == pytest.approx(value)
        assert outlook.contender_prediction(metric).variance[column] == 0.0


def test_metrics_read_from_one_quantity_are_imagined_once():
    outlook = outlook_of(random_belief(0))
    assert outlook.scene.metrics == ("score", "cost", "time")
    assert outlook.scene.quantity_names == ("score", "time")


# --- quadrature


@pytest.mark.parametrize("roots", [1, 2, 3, 5, 9])
def test_quadrature_integrates_polynomials_exactly_up_to_degree_twice_the_roots_less_one(roots):
    """E z^k is 0 for odd k and (k - 1)!! for even k."""
    points, weights = quadrature(roots, 1)
    for degree in range(2 * roots):
        moment = 0.0 if degree % 2 else float(np.prod(np.arange(degree - 1, 0, -2)))
        assert weights @ points[:, 0] ** degree == pytest.approx(moment, rel=1e-9, abs=1e-6)
    first_missed = float(np.prod(np.arange(2 * roots - 1, 0, -2)))
    assert weights @ points[:, 0] ** (2 * roots) != pytest.approx(first_missed, rel=1e-3)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("roots", [1, 2, 3, 4])
def test_quadrature_weights_are_probabilities(roots, dimensions):
    points, weights = quadrature(roots, dimensions)
    assert points.shape == (roots**dimensions, dimensions)
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1.0)


def test_one_root_is_the_mean():
    points, weights = quadrature(1, 3)
    np.testing.assert_allclose(points, 0.0, atol=1e-15)
    np.testing.assert_array_equal(weights, [1.0])


def test_quadrature_in_two_dimensions_takes_the_answers_as_independent():
    points, weights = quadrature(3, 2)
    first, second = points.T
    assert weights @ (first**2 * second**4) == pytest.approx(1.0 * 3.0)
    assert weights @ (first * second) == pytest.approx(0.0)
