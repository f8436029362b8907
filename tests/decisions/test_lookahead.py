"""Lookahead against EXPLOREPATHS of the thesis (Algorithm 3), written out here once more, naively and apart.

Γ is what may start a path; the algorithm's N are the roots for the cost's quantity, its M those for every other.
"""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from decisions.fakes import (
    IDENTITY,
    LOG,
    Given,
    KnownGaussian,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    random_covariance,
    space_of,
)
from trimtuner.decisions.acquisition import ConstrainedImprovement, ExpectedCost
from trimtuner.decisions.entropy import ValueOfRecommendation
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.errors import SearchOver
from trimtuner.problem.space import Space
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import lynceus, nephele

OUTSIDE = -1.0
GROWTH = 0.8  # a belief adds 0.8 log(fraction) to the model of log time
NOISE = 0.1
seeds = st.integers(0, 10_000)
EI_C = ConstrainedImprovement()


# --- Algorithm 3 once more


@dataclass(frozen=True)
class State:
    """S and β of the algorithm, with numpy alone: one joint normal for the score and one for log time."""

    score: KnownGaussian
    time: KnownGaussian
    best: float | None  # larger is better, on the goal's scale
    left: float


@dataclass(frozen=True)
class Naive:
    """Minimise the cost under score ≥ limit (Nephele), or maximise the score under cost ≤ limit (TrimTuner)."""

    fractions: np.ndarray  # of each place
    prices: np.ndarray  # USD a second, of each place
    minimizes_cost: bool
    limit: float
    confidence: float
    cost_roots: int
    other_roots: int
    discount: float

    def log_cost(self, state, place):
        mean = state.time.mean[place] + GROWTH * math.log(self.fractions[place]) + math.log(self.prices[place])
        return mean, state.time.matrix[place, place]

    def score(self, state, place):
        return state.score.mean[place], state.score.matrix[place, place]

    def cost(self, state, place):
        mean, variance = self.log_cost(state, place)
        return math.exp(mean + variance / 2.0)

    def is_open(self, state, place):
        """C ≤ β, and the predicted means within the limits."""
        mean, variance = self.log_cost(state, place)
        if mean + norm.ppf(self.confidence) * math.sqrt(variance + NOISE) > math.log(max(state.left, 1e-300)):
            return False
        return self.score(state, place)[0] >= self.limit if self.minimizes_cost else mean <= math.log(self.limit)

    def improvement(self, state, place):
        """EI_c."""
        score, cost = self.score(state, place), self.log_cost(state, place)
        if self.minimizes_cost:
            chance = norm.sf(self.limit, score[0], math.sqrt(score[1]))
            mean, deviation = -cost[0], math.sqrt(cost[1])
        else:
            chance = norm.cdf(math.log(self.limit), cost[0], math.sqrt(cost[1]))
            mean, deviation = score[0], math.sqrt(score[1])
        if state.best is None:
            return chance
        z = (mean - state.best) / deviation
        return deviation * (norm.pdf(z) + z * norm.cdf(z)) * chance

    def imagine(self, state, place, z_cost, z_score):
        """S ∪ (x, s, c, a) and β - c."""
        told_time = state.time.mean[place] + z_cost * math.sqrt(state.time.matrix[place, place] + NOISE)
        told_score = state.score.mean[place] + z_score * math.sqrt(state.score.matrix[place, place] + NOISE)
        log_cost = told_time + GROWTH * math.log(self.fractions[place]) + math.log(self.prices[place])
        if self.minimizes_cost:
            counts, goal = told_score >= self.limit, -log_cost
        else:
            counts, goal = log_cost <= math.log(self.limit) and self.fractions[place] == 1.0, told_score
        row = state.score.rows[[place]]
        return State(
            state.score.condition(row, np.array([told_score])),
            state.time.condition(row, np.array([told_time])),
            max(goal, -math.inf if state.best is None else state.best) if counts else state.best,
            state.left - math.exp(log_cost),
        )

    def explore_paths(self, place, horizon, state, untested):
        """(R, C) of lines 10 to 29."""
        R, C = self.improvement(state, place), self.cost(state, place)
        if horizon == 0:
            return R, C
        rest = untested - {place}
        for (z_cost, w_cost), (z_score, w_score) in itertools.product(
            gauss_hermite(self.cost_roots), gauss_hermite(self.other_roots)
        ):
            imagined = self.imagine(state, place, z_cost, z_score)
            omega = [other for other in sorted(rest) if self.is_open(imagined, other)]
            if not omega:
                continue
            following = max(omega, key=lambda other: self.improvement(imagined, other))
            r, c = self.explore_paths(following, horizon - 1, imagined, rest)
            R, C = R + self.discount * w_cost * w_score * r, C + self.discount * w_cost * w_score * c
        return R, C

    def scores(self, state, horizon):
        places = set(range(len(self.fractions)))
        ratios = []
        for place in sorted(places):
            R, C = self.explore_paths(place, horizon, state, places) if self.is_open(state, place) else (OUTSIDE, 1.0)
            ratios.append(R / C)
        return np.array(ratios)


def gauss_hermite(count):
    nodes, weights = np.polynomial.hermite.hermgauss(count)
    return list(zip((math.sqrt(2.0) * nodes).tolist(), (weights / math.sqrt(math.pi)).tolist(), strict=True))


def both(seed, minimizes_cost, left=math.inf, cost_roots=3, other_roots=1, discount=0.9, proven=True):
    """The same tiny problem twice: an outlook of the package, and a state with the naive algorithm for it."""
    generator = np.random.default_rng(seed)
    count = 3  # configurations, at two fractions: six places
    prices = generator.uniform(0.5, 2.0, count)  # USD a second
    space = space_of(count, (3600.0 * prices).tolist())
    score = gaussian_over(space, generator.normal(0.6, 0.7, 6), random_covariance(6, generator), NOISE)
    time = gaussian_over(space, generator.normal(0.0, 0.7, 6), 0.5 * random_covariance(6, generator), NOISE)
    seen = [measurement(0, 0.5, score=-9.0, time=5.0, cost=5.0)]  # beyond every limit
    if proven:
        seen.append(measurement(1, 1.0, score=1.0, time=1.0, cost=1.0))
    problem = problem_of(space, "score >= 0.2", minimize="cost") if minimizes_cost else problem_of(space, "cost <= 1.5")
    belief = belief_of(problem, {"score": (IDENTITY, score), "time": (LOG, time)}, seen)
    outlook = replace(outlook_of(belief), left=left, confidence=0.8)
    naive = Naive(
        np.repeat([0.5, 1.0], count),
        np.tile(prices, 2),
        minimizes_cost,
        0.2 if minimizes_cost else 1.5,
        0.8,
        cost_roots,
        other_roots,
        discount,
    )
    best = 0.0 if minimizes_cost else 1.0  # the log of a cost of 1, or a score of 1
    return outlook, naive, State(score, time, best if proven else None, left)


@pytest.mark.parametrize("proven", [False, True], ids=["nothing proven", "one proven"])
@pytest.mark.parametrize("left", [math.inf, 4.0], ids=["no budget", "budget"])
@pytest.mark.parametrize("minimizes_cost", [True, False], ids=["least cost", "most score"])
@pytest.mark.parametrize(("horizon", "other_roots"), [(0, 1), (1, 1), (1, 3), (2, 1)])
def test_scores_are_those_of_the_algorithm_written_out(horizon, other_roots, minimizes_cost, left, proven):
    inside = outside = 0
    for seed in range(4):
        outlook, naive, state = both(seed, minimizes_cost, left, 3, other_roots, 0.9, proven)
        scores = Lookahead(EI_C, ExpectedCost(), horizon, cost_roots=3, other_roots=other_roots).score(outlook)
        expected = naive.scores(state, horizon)
        inside += int((expected >= 0.0).sum())
        outside += int((expected < 0.0).sum())
        outside_score = OUTSIDE if (expected >= 0.0).any() else 0.0  # Γ is empty: line 4, any one at random
        np.testing.assert_allclose(scores, np.where(expected < 0.0, outside_score, expected), rtol=1e-7, atol=1e-9)
    assert inside >= 6
    assert outside >= 1


def test_two_steps_ahead_with_roots_for_every_quantity_is_the_algorithm_written_out():
    outlook, naive, state = both(3, minimizes_cost=True, left=6.0, other_roots=3, discount=0.7)
    scores = Lookahead(EI_C, ExpectedCost(), 2, cost_roots=3, other_roots=3, discount=0.7).score(outlook)
    expected = naive.scores(state, 2)
    assert (expected > 0.0).sum() >= 2
    np.testing.assert_allclose(scores, np.where(expected < 0.0, OUTSIDE, expected), rtol=1e-7, atol=1e-9)


# --- Γ


@pytest.mark.parametrize(("horizon", "discount"), [(0, 0.9), (1, 0.0), (3, 0.0)])
@settings(max_examples=10)
@given(seed=seeds)
def test_without_a_future_the_score_is_gain_per_price(horizon, discount, seed):
    outlook, _, _ = both(seed, minimizes_cost=True)
    scores = Lookahead(EI_C, ExpectedCost(), horizon, discount=discount).score(outlook)
    inside = outlook.is_predicted_feasible
    if inside.any():
        np.testing.assert_array_equal(scores[inside], (EI_C.score(outlook) / outlook.effort)[inside])


@settings(max_examples=10)
@given(seed=seeds, horizon=st.integers(0, 2))
def test_what_is_not_in_the_feasible_set_scores_below_all_that_is(seed, horizon):
    outlook, _, _ = both(seed, minimizes_cost=True, left=4.0)
    scores = Lookahead(EI_C, ExpectedCost(), horizon).score(outlook)
    inside = outlook.is_predicted_feasible & outlook.is_affordable
    if inside.any() and not inside.all():
        assert scores[~inside].max() < scores[inside].min()


@pytest.mark.parametrize("horizon", [0, 1])
def test_where_nothing_is_predicted_feasible_and_affordable_all_score_alike(horizon):
    """Line 4: any one at random."""
    outlook, _, _ = both(0, minimizes_cost=True)
    lookahead = Lookahead(EI_C, ExpectedCost(), horizon)
    assert np.ptp(lookahead.score(replace(outlook, left=1e-9))) == 0.0
    hopeless = problem_of(outlook.belief.problem.space, "score >= 1000", minimize="cost")
    belief = replace(outlook.belief, problem=hopeless)
    assert np.ptp(lookahead.score(outlook.believing(belief))) == 0.0


def test_what_is_predicted_to_break_a_limit_may_start_a_path_where_that_is_allowed():
    outlook, _, _ = both(2, minimizes_cost=True)
    assert not outlook.is_predicted_feasible.all()
    open_to_all = Lookahead(EI_C, ExpectedCost(), 0, only_predicted_feasible=False)
    np.testing.assert_array_equal(open_to_all.score(outlook), EI_C.score(outlook) / outlook.effort)


# --- the budget along the path


def known_times(seconds, left=math.inf, *limits, deviations=1.0):
    """Scores in doubt and independent, times known, a USD a second; a score of 0 is proven elsewhere."""
    count = len(seconds)
    space = space_of(count + 1, [3600.0] * (count + 1), fractions=(1.0,))
    variances = np.append(np.broadcast_to(deviations, count) ** 2.0, 0.0)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0, variances)),
        "time": (LOG, gaussian_of_times(space, np.append(seconds, 1.0))),
    }
    seen = [measurement(count, 1.0, score=0.0, time=1.0, cost=1.0)]
    return replace(outlook_of(belief_of(problem_of(space, *limits), quantities, seen), range(count)), left=left)


ONE_EACH = Given(lambda view: np.ones(len(view.candidates)))


@pytest.mark.parametrize("limits", [(), ("cost <= 9",)], ids=["cost not imagined", "cost imagined"])
@pytest.mark.parametrize(("left", "following"), [(1.2, 0), (1.6, 1), (2.1, 2), (math.inf, 3)])
def test_a_path_goes_on_for_as_long_as_something_is_left(left, following, limits):
    """A dollar for the first trial, half a dollar for each of the others; each gains 1, and nothing is discounted."""
    outlook = known_times([1.0, 0.5, 0.5, 0.5], left, *limits)
    scores = Lookahead(ONE_EACH, ExpectedCost(), horizon=3, discount=1.0).score(outlook)
    assert scores[0] == pytest.approx((1.0 + following) / (1.0 + 0.5 * following), rel=1e-6)


def test_with_enough_left_for_one_trial_only_looking_ahead_changes_nothing():
    outlook = known_times([1.0, 0.9, 0.8], left=1.5, deviations=[1.0, 2.0, 3.0])
    near, far = (Lookahead(EI_C, ExpectedCost(), horizon).score(outlook) for horizon in (0, 2))
    np.testing.assert_array_equal(near, far)
    richer = replace(outlook, left=2.0)
    assert (Lookahead(EI_C, ExpectedCost(), 2).score(richer) != near).all()


def test_no_trial_is_imagined_twice_on_one_path():
    """Two candidates and a horizon of 5: a path has two steps."""
    scores = Lookahead(ONE_EACH, ExpectedCost(), horizon=5, discount=1.0).score(known_times([1.0, 0.5]))
    np.testing.assert_allclose(scores, (1.0 + 1.0) / (1.0 + 0.5), rtol=1e-6)


# --- the discount


@pytest.mark.parametrize("discount", [0.1, 0.5, 1.0])
def test_each_later_step_is_discounted_once_more(discount):
    """1 + γ (1 + γ) of gain for 1 + γ (½ + γ ½) dollars."""
    outlook = known_times([1.0, 0.5, 0.5])
    scores = Lookahead(ONE_EACH, ExpectedCost(), horizon=2, discount=discount).score(outlook)
    later = discount * (1.0 + discount)
    assert scores[0] == pytest.approx((1.0 + later) / (1.0 + 0.5 * later), rel=1e-6)


@settings(max_examples=10)
@given(seed=seeds)
def test_half_the_discount_halves_what_follows(seed):
    """At a price of 1 a step, with a next step on every path: score (1 + γ) - gain now is γ × gain to come."""
    outlook, _, _ = both(seed, minimizes_cost=False)
    to_come = []
    for discount in (1.0, 0.5):
        lookahead = Lookahead(EI_C, ONE_EACH, 1, 3, 3, discount, only_predicted_feasible=False)
        to_come.append((lookahead.score(outlook) * (1.0 + discount) - EI_C.score(outlook)) / discount)
    np.testing.assert_allclose(to_come[0], to_come[1], rtol=1e-9, atol=1e-12)


# --- what looking ahead is good for


def door_and_treasure():
    """Three configurations: a safe one, a door, and a treasure that is predicted to break the limit on time.

    The treasure's score may be 30 times as far above the best as that of the safe one. Its log time is 0.2, above the
    limit of 0, and moves by 0.9 a deviation with the answer of the door: one answer of three lets it in.
    """
    log_seconds = np.array([-2.0, -2.0, 0.2])
    times = np.diag([1e-9, 1.0, 1.0])
    times[1, 2] = times[2, 1] = 0.9
    prices = 3600.0 / np.exp(log_seconds + np.diag(times) / 2.0)  # so that each is expected to cost a dollar
    space = space_of(4, [*prices, 3600.0], fractions=(1.0,))
    covariance = np.zeros((4, 4))
    covariance[:3, :3] = times
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0, [1.0, 0.81, 900.0, 0.0])),
        "time": (LOG, gaussian_over(space, np.append(log_seconds, 0.0), covariance)),
    }
    seen = [measurement(3, 1.0, score=0.0, time=1.0, cost=1.0)]
    return outlook_of(belief_of(problem_of(space, "time <= 1s"), quantities, seen), range(3))


def test_looking_ahead_prefers_the_door_to_a_greater_gain_that_leads_nowhere():
    outlook = door_and_treasure()
    np.testing.assert_allclose(outlook.effort, 1.0, rtol=1e-9)
    safe, door, treasure = range(3)
    near = Lookahead(EI_C, ExpectedCost(), 0).score(outlook)
    far = Lookahead(EI_C, ExpectedCost(), 1).score(outlook)
    assert near[safe] > near[door] > near[treasure] == OUTSIDE
    assert far[door] > far[safe] > far[treasure] == OUTSIDE
    # A sixth of the weight is on the answer that lets the treasure in, of gain 30 φ(0) and more than half a chance.
    assert near[safe] == pytest.approx(norm.pdf(0.0), rel=1e-6)
    assert far[door] > (near[door] + 0.9 / 6.0 * 30.0 * norm.pdf(0.0) * 0.5) / 2.0


@pytest.mark.parametrize(("next_by", "following"), [("gain", (1.0, 4.0)), ("gain per price", (0.5, 0.5))])
def test_a_path_goes_on_by_gain_or_by_gain_per_price_as_asked(next_by, following):
    """After the first the rest gain 1 for 4 dollars, or ½ for half a dollar."""
    gains = {0: 1.0, 1: 1.0, 2: 0.5}
    by_hand = Given(lambda view: np.array([gains[one] for one in view.candidates.positions.tolist()]))
    outlook = known_times([1.0, 4.0, 0.5])
    scores = Lookahead(by_hand, ExpectedCost(), 1, discount=1.0, next_by=next_by).score(outlook)
    gain, price = following
    assert scores[0] == pytest.approx((1.0 + gain) / (1.0 + price), rel=1e-6)


def test_paths_start_only_from_so_many_of_the_best_by_gain_per_price():
    seconds = [1.0, 4.0, 0.5, 2.0]
    outlook = known_times(seconds)
    few = Lookahead(ONE_EACH, ExpectedCost(), 1, starts_at_most=2).score(outlook)
    every = Lookahead(ONE_EACH, ExpectedCost(), 1).score(outlook)
    np.testing.assert_array_equal(few, [every[0], OUTSIDE, every[2], OUTSIDE])


def test_paths_lead_only_through_so_many_of_the_best_by_gain_per_price():
    """The best two are the third and the first: to the one of them that did not start the path, or to the first."""
    outlook = known_times([1.0, 4.0, 0.5, 2.0])
    scores = Lookahead(ONE_EACH, ExpectedCost(), 1, discount=1.0, steps_at_most=2).score(outlook)
    np.testing.assert_allclose(scores, 2.0 / np.array([1.0 + 0.5, 4.0 + 1.0, 0.5 + 1.0, 2.0 + 1.0]), rtol=1e-6)


@pytest.mark.parametrize("horizon", [0, 1, 2])
def test_an_order_of_the_candidates_is_only_an_order(horizon):
    outlook, _, _ = both(3, minimizes_cost=True, left=6.0)
    order = np.array([4, 1, 5, 0, 3, 2])
    lookahead = Lookahead(EI_C, ExpectedCost(), horizon)
    np.testing.assert_allclose(
        lookahead.score(outlook.at(order)), lookahead.score(outlook)[order], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("starts_at_most", [None, 2])
def test_a_lookahead_that_sees_no_gain_anywhere_gives_way_to_the_other_score(starts_at_most):
    """The other score must decide although what starts no path scores below 0 and not 0."""
    nothing = Given(lambda view: np.zeros(len(view.candidates)))
    other = Given(lambda view: np.arange(len(view.candidates)))
    lookahead = Lookahead(nothing, ExpectedCost(), 1, starts_at_most=starts_at_most)
    scores = lookahead.otherwise(other).score(known_times([1.0, 4.0, 0.5, 2.0]))
    np.testing.assert_array_equal(scores, [0.0, 1.0, 2.0, 3.0])


@settings(max_examples=5)
@given(seed=seeds)
def test_any_gain_can_be_looked_ahead_of(seed):
    outlook, _, _ = both(seed, minimizes_cost=False, left=8.0)
    scores = Lookahead(ValueOfRecommendation(), ExpectedCost(), 1, only_predicted_feasible=False).score(outlook)
    assert np.isfinite(scores).all()
    assert (scores[~outlook.is_affordable] == OUTSIDE).all() or not outlook.is_affordable.any()


# --- Nephele on all of the data only is Lynceus, but for the set that they choose from


def asks_of(recipe, budget):
    """A whole search on a small table: what was asked, until the budget or the space is used up."""
    space = Space.from_configs(
        [{"workers": workers, "batch": batch} for workers in (1, 2, 4, 8) for batch in (16, 64, 256)],
        price_per_hour=[float(workers) for workers in (1, 2, 4, 8) for _ in range(3)],
        fractions=(1.0,),
    )
    study = Study(space, minimize="cost", constraints=["accuracy >= 0.1"], method=recipe, seed=5, budget=budget)
    asked = []
    for _ in range(8):
        try:
            trial = study.ask()
        except SearchOver:
            break
        asked.append((trial.config, trial.fraction, trial.origin))
        workers, batch = trial.config["workers"], trial.config["batch"]
        seconds = 3600.0 * (0.2 + 1.0 / workers**0.7) * (64.0 / batch) ** 0.3
        study.tell(trial, accuracy=0.9 - 0.02 * math.log2(batch / 16.0) - 0.01 * workers, time=seconds)
    return asked


@pytest.mark.parametrize("horizon", [0, 1])
@pytest.mark.parametrize("budget", [None, 14.0], ids=["no budget", "budget"])
def test_nephele_with_all_of_the_data_only_asks_what_lynceus_asks(horizon, budget):
    """Where their sets are the same: with a limit that nothing is predicted to break."""
    asked = asks_of(lynceus(horizon), budget)
    assert asked == asks_of(nephele(horizon).but(confidence=0.99), budget)
    assert any(origin == "model" for _, _, origin in asked)
