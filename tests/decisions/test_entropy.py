"""Information about the best, against closed forms and against sampling the conditioned Gaussian directly.

d   difference of the contenders' means      s²  variance of the difference     u   how far an answer moves d
Of two contenders the first is best with p = Φ(d / s); after an answer of deviation z, with Φ((d + u z) / √(s² - u²)).
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from decisions.fakes import (
    DEEP_FLOOR,
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
from trimtuner.decisions import entropy
from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.entropy import ChanceIncumbentFeasible, DivergenceFromUniform, InformationAboutBest
from trimtuner.decisions.incumbents import trust_if_sure
from trimtuner.decisions.outlook import quadrature

seeds = st.integers(0, 10_000)
MANY = 20_000  # samples
A_SMALL, B_SMALL, A_FULL, B_FULL = range(4)  # places in a space of two configurations at two fractions


def two_configurations(mean, covariance, noise=1e-9):
    """Scores of A and B at half and at full data, without constraints."""
    space = space_of(2)
    return belief_of(problem_of(space), {"score": (IDENTITY, gaussian_over(space, mean, covariance, noise))})


def random_belief(seed, count=6, *constraints):
    generator = np.random.default_rng(seed)
    space = space_of(count, generator.uniform(1000.0, 4000.0, count).tolist())
    quantities = {
        name: (
            transform,
            gaussian_over(space, generator.normal(size=2 * count), random_covariance(2 * count, generator), 0.1),
        )
        for name, transform in (("score", IDENTITY), ("time", LOG))
    }
    return belief_of(problem_of(space, *constraints), quantities)


def entropy_of(*chances):
    chances = np.array([p for p in chances if p > 0])
    return float(-(chances * np.log(chances)).sum())


def error_of_entropy(samples, *chances):
    """Standard error of a plug-in entropy, √(Var(log p) / n), and its bias, (cells - 1) / 2n."""
    chances = np.array([p for p in chances if p > 0])
    spread = max(float((chances * np.log(chances) ** 2).sum()) - entropy_of(*chances) ** 2, 0.0)
    return np.sqrt(spread / samples) + (len(chances) - 1) / (2 * samples)


# --- nothing to learn


@pytest.mark.parametrize("roots", [1, 2, 3, 6])
def test_a_candidate_independent_of_every_contender_scores_exactly_zero(roots):
    generator = np.random.default_rng(1)
    space = space_of(3)
    covariance = np.zeros((6, 6))
    covariance[:3, :3], covariance[3:, 3:] = random_covariance(3, generator), random_covariance(3, generator)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, generator.normal(size=6), covariance)),
        "time": (LOG, gaussian_over(space, generator.normal(size=6), covariance)),
    }
    belief = belief_of(problem_of(space, "time <= 1s"), quantities)
    scores = InformationAboutBest(roots=roots).score(outlook_of(belief, [0, 1, 2]))
    np.testing.assert_array_equal(scores, 0.0)


def test_a_candidate_that_tells_only_about_infeasible_configurations_tells_nothing():
    """A configuration at half data speaks of itself at full data; B's time is a hundred deviations over the limit."""
    space = space_of(3)
    covariance = np.eye(6) + 0.9 * (np.eye(6, k=3) + np.eye(6, k=-3))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [0.0, 0.0, 0.0, 0.0, 5.0, 0.1], covariance)),
        "time": (LOG, gaussian_over(space, [0.0, 100.0, 0.0, 0.0, 100.0, 0.0], 1.0)),
    }
    belief = belief_of(problem_of(space, "time <= 1000s"), quantities)
    told = InformationAboutBest(samples=2000, roots=3).score(outlook_of(belief, [0, 1]))
    assert told[1] == 0.0
    assert told[0] > 0.1


def test_what_cannot_change_the_answer_scores_the_same_with_one_root_or_many():
    """A leads B by a hundred deviations: whatever comes out, A is best."""
    belief = two_configurations([0.0, 0.0, 100.0, 0.0], random_covariance(4, np.random.default_rng(0)))
    for roots in (1, 2, 5):
        np.testing.assert_array_equal(InformationAboutBest(roots=roots).score(outlook_of(belief)), 0.0)


# --- bounds


@settings(max_examples=15)
@given(seeds, st.sampled_from([1, 2]))
def test_information_is_finite_never_negative_and_at_most_the_log_of_the_possible_outcomes(seed, roots):
    """Outcomes: each contender, or none of them feasible."""
    outlook = outlook_of(random_belief(seed, 6, "cost <= 1.0"))
    scores = InformationAboutBest(roots=roots).score(outlook)
    assert np.isfinite(scores).all()
    assert (scores >= 0.0).all()
    assert (scores <= np.log(len(outlook.contenders) + 1)).all()


# --- closed forms for two contenders


def test_a_noiseless_candidate_that_reveals_the_better_of_two_gains_the_whole_entropy():
    """B is known to be 0, A ~ N(0.5, 1); A at half data is A at full data."""
    covariance = np.zeros((4, 4))
    covariance[np.ix_([A_SMALL, A_FULL], [A_SMALL, A_FULL])] = 1.0
    belief = two_configurations([0.5, 0.0, 0.5, 0.0], covariance)
    chance = norm.cdf(0.5)
    scores = InformationAboutBest(samples=MANY).score(outlook_of(belief, [A_SMALL, B_SMALL]))
    tolerance = 4.0 * error_of_entropy(MANY, chance, 1.0 - chance)
    assert scores[0] == pytest.approx(entropy_of(chance, 1.0 - chance), abs=tolerance)
    assert scores[1] == 0.0


def test_at_even_odds_an_answer_one_deviation_off_reveals_the_better_of_two():
    """With two roots, z = ±1, both answers settle it: the gain is log 2."""
    covariance = np.zeros((4, 4))
    covariance[np.ix_([A_SMALL, A_FULL], [A_SMALL, A_FULL])] = 1.0
    belief = two_configurations([0.0] * 4, covariance)
    scores = InformationAboutBest(samples=MANY, roots=2).score(outlook_of(belief, [A_SMALL]))
    assert scores[0] == pytest.approx(np.log(2.0), abs=4.0 / np.sqrt(MANY))


@pytest.mark.parametrize("roots", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_information_about_two_contenders_is_that_of_the_closed_form(seed, roots):
    generator = np.random.default_rng(seed)
    mean, matrix = 0.5 * generator.normal(size=4), random_covariance(4, generator)
    belief = two_configurations(mean, matrix, noise=0.05)
    scores = InformationAboutBest(samples=MANY, roots=roots).score(outlook_of(belief, [A_SMALL, B_SMALL, B_FULL]))
    difference = mean[A_FULL] - mean[B_FULL]
    variance = matrix[A_FULL, A_FULL] + matrix[B_FULL, B_FULL] - 2.0 * matrix[A_FULL, B_FULL]
    before = norm.cdf(difference / np.sqrt(variance))
    points, weights = quadrature(roots, 1)
    for candidate, score in zip([A_SMALL, B_SMALL, B_FULL], scores, strict=True):
        moves = (matrix[candidate, A_FULL] - matrix[candidate, B_FULL]) / np.sqrt(matrix[candidate, candidate] + 0.05)
        after = norm.cdf((difference + moves * points[:, 0]) / np.sqrt(variance - moves**2))
        gain = entropy_of(before, 1.0 - before) - weights @ [entropy_of(p, 1.0 - p) for p in after]
        tolerance = error_of_entropy(MANY, before, 1.0 - before) + max(
            error_of_entropy(MANY, p, 1.0 - p) for p in after
        )
        assert score == pytest.approx(max(gain, 0.0), abs=4.0 * tolerance)


def test_the_noisier_the_candidate_the_less_it_tells():
    """p after the mean answer is Φ(d / √(s² - u²)), and u falls with the noise."""
    covariance = np.diag([1.0, 1.0, 1.0, 1.0])
    covariance[A_SMALL, A_FULL] = covariance[A_FULL, A_SMALL] = 0.95
    scores = [
        InformationAboutBest(samples=MANY).score(
            outlook_of(two_configurations([0.0, 0.0, 1.0, 0.0], covariance, noise), [A_SMALL])
        )[0]
        for noise in (0.01, 0.3, 1.0, 3.0, 30.0)
    ]
    assert (np.diff(scores) < 0).all()
    assert scores[-1] < 0.1 * scores[0]


# --- Matheron's rule against sampling the conditioned Gaussian


@pytest.mark.parametrize("seed", range(5))
def test_conditioned_samples_agree_with_samples_of_the_conditioned_gaussian(seed):
    """Two contenders, a score and a time with a limit; the answer is the expected one."""
    belief = random_belief(seed, 2, "time <= 1.2s")
    outlook = outlook_of(belief, [A_SMALL, B_SMALL])
    scores = InformationAboutBest(samples=MANY).score(outlook)
    generator = np.random.default_rng([seed, 99])
    before = shares_of_best(belief, {}, generator)
    for candidate, score in zip((A_SMALL, B_SMALL), scores, strict=True):
        after = shares_of_best(belief, {candidate: 0.0}, generator)
        # Both sides are sampled, before and after the answer.
        tolerance = 2.0 * (error_of_entropy(MANY, *before) + error_of_entropy(MANY, *after))
        assert score == pytest.approx(max(entropy_of(*before) - entropy_of(*after), 0.0), abs=3.0 * tolerance)


def shares_of_best(belief, answered, generator):
    """How often A, B or neither is the feasible best, after the expected answers at some places."""
    draws = {}
    for name in ("score", "time"):
        known = belief.quantities[name].posterior.members[0]
        for place in answered:
            known = known.condition(known.rows[[place]], known.mean[[place]])
        at = [A_FULL, B_FULL]
        draws[name] = generator.multivariate_normal(known.mean[at], known.matrix[np.ix_(at, at)], size=MANY)
    reachable = np.where(draws["time"] <= np.log(1.2), draws["score"], -np.inf)
    best = np.where(np.isinf(reachable).all(axis=1), 2, reachable.argmax(axis=1))
    return np.bincount(best, minlength=3) / MANY


# --- the same numbers however they are computed


def test_the_same_seed_gives_the_same_scores_and_another_seed_others():
    belief = random_belief(3, 6, "cost <= 1.0")
    first, again = (InformationAboutBest().score(outlook_of(belief, seed=(7, 1))) for _ in range(2))
    other = InformationAboutBest().score(outlook_of(belief, seed=(7, 2)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("acquisition", [InformationAboutBest(), InformationAboutBest(roots=2)])
def test_scores_do_not_depend_on_how_candidates_are_chunked(acquisition, monkeypatch):
    outlook = outlook_of(random_belief(5, 6, "cost <= 1.0"))
    together = acquisition.score(outlook)
    monkeypatch.setattr(entropy, "_CELLS_AT_A_TIME", 1)
    np.testing.assert_array_equal(acquisition.score(outlook), together)


@settings(max_examples=10)
@given(seeds, st.sets(st.integers(0, 11), min_size=1))
def test_the_score_of_a_candidate_does_not_depend_on_who_is_scored_alongside(seed, chosen):
    belief = random_belief(seed, 6, "cost <= 1.0")
    chosen = sorted(chosen)
    for acquisition in (InformationAboutBest(), ChanceIncumbentFeasible(roots=2)):
        some, everyone = acquisition.score(outlook_of(belief, chosen)), acquisition.score(outlook_of(belief))
        np.testing.assert_allclose(some, everyone[chosen], atol=1e-12)


def test_cost_and_time_read_from_one_model_are_one_sample():
    """At 3600 USD an hour cost is time: a limit on one and the same limit on both leave the same information."""
    space = space_of(4, [3600.0] * 4)
    generator = np.random.default_rng(8)
    quantities = {
        name: (transform, gaussian_over(space, generator.normal(size=8), random_covariance(8, generator), 0.1))
        for name, transform in (("score", IDENTITY), ("time", LOG))
    }
    one = outlook_of(belief_of(problem_of(space, "time <= 1.5s"), quantities))
    both = outlook_of(belief_of(problem_of(space, "time <= 1.5s", "cost <= 1.5"), quantities))
    # Contenders are chosen as if constraints were independent, but four of four always contend.
    np.testing.assert_allclose(InformationAboutBest().score(one), InformationAboutBest().score(both), atol=1e-12)


# --- failures and measured contenders


def test_a_contender_that_cannot_run_is_never_the_best():
    """B leads but failed at full data; what B at half data tells is of no use."""
    space = space_of(2)
    covariance = np.eye(4) + 0.9 * (np.eye(4, k=2) + np.eye(4, k=-2))
    quantities = {"score": (IDENTITY, gaussian_over(space, [0.0, 3.0, 0.0, 3.0], covariance))}
    belief = belief_of(problem_of(space), quantities, failures=[(1, 1.0)])
    np.testing.assert_array_equal(InformationAboutBest(roots=2).score(outlook_of(belief, [B_SMALL])), 0.0)


def test_a_measured_contender_on_its_limit_is_feasible_in_every_sample():
    """A measured best and exactly at the limit, B fifty deviations below it: A is best, nothing is left to learn."""
    space = space_of(2)
    together = np.eye(4) + 0.9 * (np.eye(4, k=2) + np.eye(4, k=-2))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [0.0, -50.0, 0.0, -50.0], together)),
        "time": (LOG, gaussian_over(space, np.log(5.0), together)),
    }
    done = [measurement(0, 1.0, score=0.0, time=5.0)]
    belief = belief_of(problem_of(space, "time <= 5s"), quantities, done)
    np.testing.assert_array_equal(InformationAboutBest(roots=2).score(outlook_of(belief, [B_SMALL])), 0.0)
    np.testing.assert_array_equal(ChanceIncumbentFeasible(roots=2).score(outlook_of(belief, [B_SMALL])), 1.0)


# --- the chance that the next incumbent is feasible


def test_without_constraints_the_next_incumbent_is_feasible():
    np.testing.assert_array_equal(ChanceIncumbentFeasible().score(outlook_of(random_belief(0))), 1.0)


def test_without_constraints_trimtuner_is_fabolas():
    outlook = outlook_of(random_belief(4))
    trimtuner = InformationAboutBest() * ChanceIncumbentFeasible() / ExpectedCost()
    fabolas = InformationAboutBest() / ExpectedCost()
    np.testing.assert_array_equal(trimtuner.score(outlook), fabolas.score(outlook))


@settings(max_examples=20)
@given(seeds, st.sampled_from([1, 3]))
def test_for_one_contender_and_one_limit_the_chance_is_that_of_the_updated_model(seed, roots):
    """Φ((log limit - μ - u z) / √(v - u²)), averaged over the roots z."""
    generator = np.random.default_rng(seed)
    space = space_of(1)
    matrix, mean = random_covariance(2, generator), generator.normal(size=2)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, mean, matrix, noise=0.3)),
    }
    belief = belief_of(problem_of(space, "time <= 1.5s"), quantities)
    score = ChanceIncumbentFeasible(roots=roots).score(outlook_of(belief, [0]))
    moves = matrix[0, 1] / np.sqrt(matrix[0, 0] + 0.3)
    points, weights = quadrature(roots, 1)
    chances = norm.cdf((np.log(1.5) - mean[1] - moves * points[:, 0]) / np.sqrt(matrix[1, 1] - moves**2))
    assert score[0] == pytest.approx(weights @ chances, rel=1e-9)


def test_the_next_incumbent_is_the_best_among_those_trusted():
    """Targets: good but doubtful, fair and sure, bad and surer. The fair one is recommended, and its chance counts."""
    space = space_of(3, fractions=(1.0,))
    surer = np.array([0.5, 2.0, 4.0])  # deviations below the limit of 1 s
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [3.0, 2.0, 1.0])),
        "time": (LOG, gaussian_over(space, -surer, 1.0, noise=1e6)),  # an answer so noisy teaches nothing
    }
    belief = belief_of(problem_of(space, "time <= 1s"), quantities)
    scores = ChanceIncumbentFeasible().score(outlook_of(belief))
    np.testing.assert_allclose(scores, norm.cdf(2.0), rtol=1e-4)


def test_where_nothing_is_trusted_the_next_incumbent_is_the_one_with_the_most_to_expect():
    """Worth 3, 2, 1 times Φ(-1), Φ(1), Φ(1.2): the second, whose chance is Φ(1)."""
    space = space_of(3, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [3.0, 2.0, 1.0])),
        "time": (LOG, gaussian_over(space, [1.0, -1.0, -1.2], 1.0, noise=1e6)),
    }
    belief = belief_of(problem_of(space, "time <= 1s"), quantities, [measurement(0, 0.5, score=0.0, time=1.0)])
    np.testing.assert_allclose(ChanceIncumbentFeasible().score(outlook_of(belief)), norm.cdf(1.0), rtol=1e-4)


def test_an_answer_that_shows_the_constraint_broken_everywhere_leaves_no_chance():
    """One common factor drives every time: forty deviations over the limit."""
    space = space_of(3)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 0.0)),
        "time": (LOG, gaussian_over(space, 40.0, np.ones((6, 6)) + 1e-6 * np.eye(6))),
    }
    belief = belief_of(problem_of(space, "time <= 1s"), quantities)
    np.testing.assert_allclose(ChanceIncumbentFeasible().score(outlook_of(belief)), 0.0, atol=1e-12)


@settings(max_examples=15)
@given(seeds, st.sampled_from([1, 2, 3]))
def test_the_chance_of_the_next_incumbent_is_a_probability(seed, roots):
    scores = ChanceIncumbentFeasible(roots=roots).score(outlook_of(random_belief(seed, 6, "cost <= 1.0", "score >= 0")))
    assert (scores >= 0.0).all()
    assert (scores <= 1.0 + 1e-12).all()


def test_without_constraints_a_failure_nearby_still_lowers_the_chance_of_the_next_incumbent():
    """Whoever is recommended must also run."""
    space = space_of(2)
    quantities = {"score": (IDENTITY, gaussian_over(space, [0.0, 0.0, 0.0, 9.0]))}
    belief = belief_of(problem_of(space), quantities, [measurement(0, 0.5, score=DEEP_FLOOR)], failures=[(1, 0.5)])
    outlook = outlook_of(belief, [0], contenders_at_most=1)
    assert 0.0 < belief.running_at_targets[outlook.contenders[0]] < 1.0
    assert ChanceIncumbentFeasible().score(outlook)[0] == belief.running_at_targets[outlook.contenders[0]]


# --- Eq. 5 as it is printed


@pytest.mark.parametrize("lead", [0.0, 0.7, 2.0])
def test_the_divergence_is_that_of_p_opt_after_the_trial_from_uniform_also_for_who_teaches_nothing(lead):
    """A leads B by ``lead`` with variance 1 each: p = Φ(lead / √2); KL = log 2 - H(p). No half tells of full data."""
    belief = two_configurations([0.0, 0.0, lead, 0.0], np.eye(4))
    chance = norm.cdf(lead / np.sqrt(2.0))
    expected = np.log(2.0) - entropy_of(chance, 1.0 - chance)
    said = DivergenceFromUniform(samples=MANY).score(outlook_of(belief, [A_SMALL, B_SMALL]))
    np.testing.assert_allclose(said, expected, atol=5 * error_of_entropy(MANY, chance, 1.0 - chance))
    np.testing.assert_array_equal(InformationAboutBest().score(outlook_of(belief, [A_SMALL])), 0.0)


@settings(max_examples=10)
@given(seeds)
def test_divergence_and_information_differ_by_the_same_for_all_candidates(seed):
    """Both are a constant less the entropy after the trial; where information is cut off at 0 it is less."""
    belief = random_belief(seed)
    divergence, information = (one().score(outlook_of(belief)) for one in (DivergenceFromUniform, InformationAboutBest))
    gap = divergence - information
    is_told = information > 0.0
    np.testing.assert_allclose(gap[is_told], gap[is_told].max() if is_told.any() else 0.0, atol=1e-6)


def test_uniform_is_over_all_targets_also_where_only_a_few_contend():
    """One of five is the best for sure: the divergence is log 5, though only two contend."""
    space = space_of(5)
    scores = gaussian_over(space, [0.0] * 5 + [100.0, 0.0, 0.0, 0.0, 0.0])
    belief = belief_of(problem_of(space), {"score": (IDENTITY, scores)})
    said = DivergenceFromUniform().score(outlook_of(belief, [0], contenders_at_most=2))
    np.testing.assert_allclose(said, np.log(5.0))


def test_to_the_letter_the_incumbent_to_come_is_one_that_is_sure_however_good_the_others():
    """P = Φ(1) = 0.84 of the better and Φ(2) = 0.98 of the other; in proportion the better is 100 × 0.84 / 0.9."""
    space = space_of(2)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [0.0, 0.0, 100.0, 1.0], 1e-9)),
        "time": (LOG, gaussian_over(space, [0.0, 0.0, -1.0, -2.0])),
    }
    outlook = outlook_of(
        belief_of(problem_of(space, "time <= 1s"), quantities, [measurement(0, 0.5, score=0.0, time=1.0)]), [0]
    )
    np.testing.assert_allclose(ChanceIncumbentFeasible(0.9).score(outlook), norm.cdf(1.0), rtol=1e-6)
    np.testing.assert_allclose(
        ChanceIncumbentFeasible(0.9, trust=trust_if_sure).score(outlook), norm.cdf(2.0), rtol=1e-6
    )
