"""The value of a trial for the recommendation: against the closed form, and against a Monte-Carlo knowledge gradient.

Of two contenders with means a and b that an answer moves apart by θ for each deviation, E max is
a Φ(d/θ) + b Φ(-d/θ) + θ φ(d/θ) with d = a - b.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from decisions.fakes import (
    IDENTITY,
    LOG,
    LOGIT,
    belief_of,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    random_covariance,
    space_of,
)
from trimtuner.decisions import entropy
from trimtuner.decisions.entropy import ValueOfRecommendation

seeds = st.integers(0, 10_000)
MANY = 40_000  # samples
MANY_ROOTS = 100
# A maximum of lines has a kink, where the rule is off by at most h²/8 of the jump in slope times the density there;
# the roots are h = π/√n apart in the middle.
KINK_ERROR = (np.pi**2 / MANY_ROOTS) / 8.0 * norm.pdf(0.0)


def random_belief(seed, count=5, *constraints, floor=-100.0, transform=IDENTITY, score=None):
    generator = np.random.default_rng(seed)
    space = space_of(count)
    quantities = {
        name: (
            one,
            gaussian_over(space, generator.normal(size=2 * count), random_covariance(2 * count, generator), 0.2),
        )
        for name, one in (("score", transform), ("time", LOG))
    }
    seen = [measurement(0, 0.5, score=floor if score is None else score, time=1.0)]
    return belief_of(problem_of(space, *constraints), quantities, seen)


def known(belief, name):
    return belief.quantities[name].posterior.members[0]


def movement_of(posterior, candidate, targets):
    deviation = np.sqrt(posterior.matrix[candidate, candidate] + posterior.noise_variance)
    return posterior.matrix[candidate, targets] / deviation


# --- nothing to gain


@pytest.mark.parametrize("roots", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_a_candidate_independent_of_every_contender_has_exactly_no_value(seed, roots):
    generator = np.random.default_rng(seed)
    space = space_of(4)
    covariance = np.zeros((8, 8))
    covariance[:4, :4], covariance[4:, 4:] = random_covariance(4, generator), random_covariance(4, generator)
    quantities = {
        "accuracy": (LOGIT, gaussian_over(space, generator.normal(size=8), covariance)),
        "time": (LOG, gaussian_over(space, generator.normal(size=8), covariance)),
    }
    problem = problem_of(space, "time <= 1s", maximize="accuracy")
    belief = belief_of(problem, quantities, [measurement(0, 0.5, accuracy=0.5, time=1.0)])
    scores = ValueOfRecommendation(roots).score(outlook_of(belief, [0, 1, 2, 3]))
    np.testing.assert_array_equal(scores, 0.0)


def test_an_answer_that_cannot_change_the_choice_has_exactly_no_value():
    """The first leads by fifty deviations: its own mean may move, but whatever comes out, it stays the choice."""
    generator = np.random.default_rng(6)
    space = space_of(3)
    mean = np.array([0.0, 0.0, 0.0, 50.0, 0.1, -0.3])
    belief = belief_of(
        problem_of(space), {"score": (IDENTITY, gaussian_over(space, mean, random_covariance(6, generator)))}
    )
    np.testing.assert_array_equal(ValueOfRecommendation().score(outlook_of(belief)), 0.0)


def test_one_root_sees_no_value_in_what_may_move_either_way():
    """At the mean answer the means stay as they are."""
    scores = ValueOfRecommendation(roots=1).score(outlook_of(random_belief(1)))
    np.testing.assert_array_equal(scores, 0.0)


@settings(max_examples=20)
@given(seeds, st.integers(1, 4))
def test_the_value_of_a_trial_is_finite_and_never_negative(seed, roots):
    belief = random_belief(seed, 5, "time <= 1.5s", transform=LOGIT, score=0.4)
    scores = ValueOfRecommendation(roots).score(outlook_of(belief))
    assert np.isfinite(scores).all()
    assert (scores >= 0.0).all()


# --- closed form and Monte Carlo


@pytest.mark.parametrize("seed", range(6))
def test_for_two_contenders_the_value_is_that_of_the_larger_of_two_correlated_normals(seed):
    belief = random_belief(seed, 2)
    posterior = known(belief, "score")
    first, second = posterior.mean[2:]
    scores = ValueOfRecommendation(MANY_ROOTS).score(outlook_of(belief))
    for candidate in range(4):
        moves = movement_of(posterior, candidate, [2, 3])
        apart = abs(moves[0] - moves[1])
        ratio = (first - second) / apart
        largest = first * norm.cdf(ratio) + second * norm.cdf(-ratio) + apart * norm.pdf(ratio)
        assert scores[candidate] == pytest.approx(largest - max(first, second), abs=apart * KINK_ERROR)


@pytest.mark.parametrize("seed", range(4))
def test_the_value_agrees_with_a_monte_carlo_knowledge_gradient(seed):
    """Draw an answer, condition by the textbook, take the best mean; on average, less the best mean of today."""
    belief = random_belief(seed, 5)
    posterior, targets = known(belief, "score"), np.arange(5, 10)
    scores = ValueOfRecommendation(MANY_ROOTS).score(outlook_of(belief))
    generator = np.random.default_rng([seed, 1])
    for candidate in range(0, 10, 3):
        variance = posterior.matrix[candidate, candidate] + posterior.noise_variance
        surprise = np.sqrt(variance) * generator.normal(size=MANY)
        after = posterior.mean[targets] + surprise[:, None] * posterior.matrix[candidate, targets] / variance
        gains = after.max(axis=1) - posterior.mean[targets].max()
        slopes = np.ptp(movement_of(posterior, candidate, targets))
        tolerance = 4.0 * gains.std() / np.sqrt(MANY) + slopes * KINK_ERROR
        assert scores[candidate] == pytest.approx(gains.mean(), abs=tolerance)


@pytest.mark.parametrize("seed", range(3))
def test_with_a_limit_the_value_is_of_the_goal_times_the_chance_to_meet_it(seed):
    """The recommendation is the contender with the most worth × P; both answers are drawn, and both models move."""
    belief = random_belief(seed, 4, "time <= 1.5s", floor=-6.0)
    targets = np.arange(4, 8)
    roots = 40
    scores = ValueOfRecommendation(roots).score(outlook_of(belief, [0, 3, 5]))
    generator = np.random.default_rng([seed, 2])
    score, time = known(belief, "score"), known(belief, "time")
    today = (score.mean[targets] + 6.0) * norm.cdf(
        (np.log(1.5) - time.mean[targets]) / np.sqrt(np.diag(time.matrix)[targets])
    )
    for candidate, found in zip([0, 3, 5], scores, strict=True):
        worth = score.mean[targets] + 6.0 + generator.normal(size=(MANY, 1)) * movement_of(score, candidate, targets)
        moves = movement_of(time, candidate, targets)
        spread = np.sqrt(np.diag(time.matrix)[targets] - moves**2)
        chance = norm.cdf((np.log(1.5) - time.mean[targets] - generator.normal(size=(MANY, 1)) * moves) / spread)
        gains = (worth * chance).max(axis=1) - today.max()
        # The kink now lies along a curve in two dimensions; its slope is at most that of the values themselves.
        steepest = np.ptp(movement_of(score, candidate, targets)) + 8.0 * np.abs(moves / spread).max() * norm.pdf(0.0)
        tolerance = 4.0 * gains.std() / np.sqrt(MANY) + steepest * (np.pi**2 / roots) / 8.0 * norm.pdf(0.0)
        assert found == pytest.approx(gains.mean(), abs=tolerance)


def test_the_value_of_learning_about_a_rival_grows_with_its_uncertainty():
    values = []
    for deviation in (0.5, 1.0, 2.0, 4.0):
        space = space_of(2, fractions=(1.0,))
        matrix = np.diag([1e-9, deviation**2])
        belief = belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, [1.0, 0.0], matrix))})
        values.append(ValueOfRecommendation(MANY_ROOTS).score(outlook_of(belief, [1]))[0])
    assert (np.diff(values) > 0).all()


def test_to_learn_about_a_rival_that_cannot_run_is_worth_nothing():
    space = space_of(2)
    covariance = np.eye(4) + 0.9 * (np.eye(4, k=2) + np.eye(4, k=-2))
    quantities = {"score": (IDENTITY, gaussian_over(space, [0.0, 0.0, 0.0, 0.0], covariance))}
    belief = belief_of(problem_of(space), quantities, failures=[(1, 1.0)])
    assert ValueOfRecommendation().score(outlook_of(belief, [1]))[0] == 0.0


# --- the same numbers however they are computed


def test_values_do_not_depend_on_how_candidates_are_chunked(monkeypatch):
    outlook = outlook_of(random_belief(2, 5, "time <= 1.5s", transform=LOGIT, score=0.4))
    together = ValueOfRecommendation().score(outlook)
    monkeypatch.setattr(entropy, "_CHUNK_CELLS", 1)
    np.testing.assert_allclose(ValueOfRecommendation().score(outlook), together, rtol=1e-9, atol=1e-12)


@settings(max_examples=10)
@given(seeds, st.sets(st.integers(0, 9), min_size=1))
def test_the_value_of_a_candidate_does_not_depend_on_who_is_scored_alongside(seed, chosen):
    belief = random_belief(seed, 5, "time <= 1.5s", transform=LOGIT, score=0.4)
    chosen = sorted(chosen)
    some, everyone = (ValueOfRecommendation().score(outlook_of(belief, one)) for one in (chosen, None))
    np.testing.assert_allclose(some, everyone[chosen], rtol=1e-9, atol=1e-12)
