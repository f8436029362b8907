"""What every acquisition promises: one suite over all of them, on beliefs of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.fakes import (
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
from trimtuner.decisions.acquisition import (
    ConstrainedExpectedAccuracy,
    CostWithOverhead,
    ExpectedCost,
    ProofOfCheapest,
    ProofOfRecommendation,
    ShareAtTargets,
)
from trimtuner.decisions.entropy import (
    ChanceIncumbentFeasible,
    DivergenceFromUniform,
    InformationAboutBest,
    ValueOfRecommendation,
)
from trimtuner.decisions.incumbents import MostExpected
from trimtuner.tuning.recipes import PRINTED_INFORMATION

ACQUISITIONS = {
    "cost": ExpectedCost(),
    "cea": ConstrainedExpectedAccuracy(),
    "information": InformationAboutBest(),
    "information-3": InformationAboutBest(roots=3),
    "chance": ChanceIncumbentFeasible(),
    "chance-3": ChanceIncumbentFeasible(roots=3),
    "value": ValueOfRecommendation(),
    "divergence": DivergenceFromUniform(),
    "eq-5-as-printed": PRINTED_INFORMATION / CostWithOverhead(3.0),
    "eq-5": InformationAboutBest() * ChanceIncumbentFeasible() / ExpectedCost(),
    "proof": ProofOfCheapest(ValueOfRecommendation(), MostExpected()),
    "proof-at-targets": ProofOfRecommendation(ValueOfRecommendation(), MostExpected()),
    "insured": ShareAtTargets(ValueOfRecommendation(), free_runs=0.0),
    "value-or-information": (ValueOfRecommendation() / ExpectedCost()).otherwise(
        InformationAboutBest() / ExpectedCost()
    ),
}
COUNT = 5  # configurations, at two fractions
CASES = [
    ("accuracy", ()),
    ("accuracy", ("cost <= 1.5",)),
    ("accuracy", ("cost <= 1.5", "time <= 1s", "accuracy >= 0.5")),
    ("cost", ("accuracy >= 0.5",)),
]

every_acquisition = pytest.mark.parametrize("acquisition", ACQUISITIONS.values(), ids=ACQUISITIONS)
situations = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "case": st.sampled_from(CASES),
        "measured": st.sets(st.integers(0, COUNT - 1), max_size=2),
        "fails": st.booleans(),
    }
)


def situation_of(seed, case, measured, fails):
    """A belief about shares and times; some targets measured, perhaps one failed."""
    goal, limits = case
    generator = np.random.default_rng(seed)
    space = space_of(COUNT, [3600.0] * COUNT)
    problem = problem_of(space, *limits, **({"minimize": goal} if goal == "cost" else {"maximize": goal}))
    quantities = {
        name: (transform, gaussian_over(space, generator.normal(size=10), random_covariance(10, generator), 0.05))
        for name, transform in (("accuracy", LOGIT), ("time", LOG))
    }
    seen = [measurement(0, 0.5, accuracy=0.4, time=1.0, cost=1.0)]
    seen += [measurement(one, 1.0, accuracy=0.6, time=1.2, cost=1.2) for one in sorted(measured)]
    failures = [(next(one for one in range(COUNT) if one not in measured), 1.0)] if fails else []
    return belief_of(problem, quantities, seen, failures)


@every_acquisition
@settings(max_examples=25)
@given(situation=situations)
def test_a_score_is_one_finite_number_a_candidate_and_not_negative(acquisition, situation):
    scores = acquisition.score(outlook_of(situation_of(**situation)))
    assert scores.shape == (2 * COUNT,)
    assert np.isfinite(scores).all()
    assert (scores >= 0.0).all()


@every_acquisition
@settings(max_examples=10)
@given(situation=situations)
def test_a_score_is_the_same_when_computed_again(acquisition, situation):
    first, second = (acquisition.score(outlook_of(situation_of(**situation))) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@every_acquisition
@settings(max_examples=10)
@given(situation=situations, order=st.permutations(range(2 * COUNT)))
def test_scores_follow_the_order_of_the_candidates(acquisition, situation, order):
    belief = situation_of(**situation)
    straight, shuffled = acquisition.score(outlook_of(belief)), acquisition.score(outlook_of(belief, order))
    np.testing.assert_allclose(shuffled, straight[list(order)], rtol=1e-9, atol=1e-12)


@every_acquisition
def test_one_candidate_alone_can_be_scored(acquisition):
    belief = situation_of(3, ("accuracy", ("cost <= 1.5",)), {1}, fails=True)
    assert acquisition.score(outlook_of(belief, [7])).shape == (1,)
