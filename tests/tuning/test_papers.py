"""Each named method is what its authors wrote: every constant, with the place where it is printed.

"Thesis" is Mendes' dissertation (2019), its pages those of its table of contents (2.4.1 p. 16, 2.4.2 p. 19, 3.2 p. 26,
4.2 p. 32, 4.2.2 p. 34, 6.2 p. 40, 6.5 p. 56, 7.2 p. 60, chapter 8 p. 67); "paper" is the one on TrimTuner.
What a constant does is shown where that is not said by the part itself.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from decisions.fakes import (
    IDENTITY,
    LOG,
    belief_of,
    gaussian_of_times,
    gaussian_over,
    measurement,
    outlook_of,
    problem_of,
    random_covariance,
    space_of,
)
from trimtuner.decisions.acquisition import (
    ConstrainedImprovement,
    CostWithOverhead,
    ExpectedCost,
    RegardlessOfLimits,
)
from trimtuner.decisions.designs import AcrossFractions, AsLongAs, LatinHypercube
from trimtuner.decisions.entropy import (
    ChanceIncumbentFeasible,
    ConstrainedAccuracyOfIncumbent,
    DivergenceFromUniform,
    InformationAboutBest,
)
from trimtuner.decisions.filters import BestIncumbentToCome, HighestConstrainedAccuracy, KeepAll
from trimtuner.decisions.halving import DropUnderperformers, Hyperband
from trimtuner.decisions.incumbents import (
    BestMeasured,
    BestPredictedFeasible,
    BestPredictedOfTested,
    BestSurelyFeasible,
    trust_if_sure,
)
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.stopping import LittleImprovement
from trimtuner.models.forest import OneThreshold, SomeColumns
from trimtuner.models.gaussian_process import GaussianProcess, Sampled
from trimtuner.models.kernels import FractionKernel, Matern52
from trimtuner.models.trees import PlainTrees
from trimtuner.problem.history import History, Measurement, Outcome, Trial
from trimtuner.tuning.recipe import WhereTested
from trimtuner.tuning.recipes import ASK_SECONDS, FULL_DATA_PROCESS, recipe_named

FRACTIONS = np.array([1 / 60, 0.1, 0.25, 0.5, 1.0])  # paper, Table I


def basis_of(surrogate):
    """The one basis of a process with FABOLAS's kernel: Matérn 5/2 × (1, φ(s)) (thesis, Eq. 2.24)."""
    assert isinstance(surrogate, GaussianProcess)
    (kernel,) = surrogate.kernels
    assert kernel == Matern52() * FractionKernel(kernel.right.basis)
    return kernel.right.basis


def spans_one_and(basis, function):
    """Whether (1, φ) spans (1, function) on the fractions: the residual of the regression is none."""
    features = np.column_stack([np.ones(len(FRACTIONS)), basis(FRACTIONS)])
    wanted = function(FRACTIONS)
    found = features @ np.linalg.lstsq(features, wanted, rcond=None)[0]
    return bool(np.allclose(found, wanted))


# --- FABOLAS: thesis 2.4.1, Eq. 2.24 and 2.25; paper, Eq. 3


def on_log_scale(s):
    """The fraction on a log scale, 0 for a hundredth of the data and 1 for all of it."""
    return np.log(100.0 * s) / np.log(100.0)


@pytest.mark.parametrize(("text", "scale"), [("fabolas", on_log_scale), ("fabolas:scale=linear", lambda s: s)])
def test_fabolas_knows_accuracy_by_one_and_the_square_of_what_is_missing_and_time_by_one_and_s(text, scale):
    """φ_f = (1, (1-s)²) for the loss and φ_c = (1, s) for log time (thesis 2.4.1, p. 16 ff.)."""
    recipe = recipe_named(text)
    assert spans_one_and(basis_of(recipe.surrogate), lambda s: (1.0 - scale(s)) ** 2)
    assert not spans_one_and(basis_of(recipe.surrogate), scale)
    assert spans_one_and(basis_of(recipe.time_surrogate), scale)
    assert not spans_one_and(basis_of(recipe.time_surrogate), lambda s: (1.0 - scale(s)) ** 2)


def test_on_fabolas_scale_a_power_of_the_data_is_a_line_and_nothing_else_is_expected_of_time():
    """O(s^α) for an arbitrary α, from which the thesis derives the basis of log time (2.4.1)."""
    recipe = recipe_named("fabolas")
    assert recipe.time_growth == 0.0
    for alpha in (0.3, 1.0, 2.0):
        assert spans_one_and(basis_of(recipe.time_surrogate), lambda s, alpha=alpha: np.log(7.0 * s**alpha))
    assert not spans_one_and(basis_of(recipe_named("fabolas:scale=linear").time_surrogate), np.log)


def test_fabolas_samples_its_hyper_parameters_and_divides_information_by_cost_and_overhead():
    """Eq. 2.25: ES / (C(x, s) + C_overhead), limits ignored; MCMC (2.4.1); the incumbent is one that was tested."""
    recipe = recipe_named("fabolas")
    assert recipe.surrogate.hyper_parameters == recipe.time_surrogate.hyper_parameters == Sampled(12, thinning=3)
    information = RegardlessOfLimits(InformationAboutBest(roots=1))
    assert recipe.acquisition == information / CostWithOverhead(ASK_SECONDS)
    assert recipe_named("fabolas:overhead=840").acquisition == information / CostWithOverhead(840.0)  # paper, Table III
    assert (recipe.incumbent, recipe.filter, recipe.tests) == (BestPredictedOfTested(), KeepAll(), WhereTested.ANYWHERE)
    assert recipe.design == AcrossFractions(1)


# --- Fabulinus: thesis 4.2 and 7.2


def test_fabulinus_is_fabolas_with_a_ninety_nine_percent_rule_ten_percent_of_configurations_and_three_to_begin_with():
    """4.2: incumbent with P > 99 %; 4.2.2: Γ by CEA (Eq. 4.5); 7.2: 3 % of the search space; s < 1 only (4.1)."""
    recipe, fabolas = recipe_named("fabulinus"), recipe_named("fabolas")
    cea = ConstrainedAccuracyOfIncumbent(0.99, roots=1, trust=trust_if_sure)
    assert recipe.acquisition == fabolas.acquisition.gain * cea / CostWithOverhead(ASK_SECONDS)
    assert recipe.filter == BestIncumbentToCome(0.10, cea)
    assert recipe.incumbent == BestSurelyFeasible(0.99)
    assert recipe.design == AcrossFractions(share=0.03)
    assert recipe.tests is WhereTested.BELOW_FULL
    assert (recipe.surrogate, recipe.time_surrogate) == (fabolas.surrogate, fabolas.time_surrogate)


def test_fabulinus_recommends_nothing_that_meets_the_limit_in_ninety_five_of_a_hundred_cases_only():
    """Log time is N(0, 1) and N(-1.645, 1) deviations round the limit: P = 0.95, against P = 0.998 of a lesser one."""
    space = space_of(2, fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [9.0, 1.0])),
        "time": (LOG, gaussian_over(space, [-1.645, -2.9])),
    }
    belief = belief_of(
        problem_of(space, "time <= 1s"), quantities, [measurement(0, 0.5, score=0.0, time=1.0, cost=1.0)]
    )
    assert recipe_named("fabulinus").incumbent.choose(belief) == 1
    assert recipe_named("trimtuner-gp:literal=true").incumbent.choose(belief) == 0  # 0.9 is enough there


def test_fabulinus_begins_with_three_of_a_hundred_configurations_at_every_fraction_below_one():
    problem = problem_of(space_of(100, fractions=(0.1, 0.5, 1.0), snapshots=True))
    design, history, asked = recipe_named("fabulinus").design, History(), []
    for _ in range(20):
        step = design.next_step(problem, problem.space.pool(), history, 0)
        if step is None:
            break
        asked.append(step)
        history = history_with(history, step)
    assert len(asked) == 3
    assert all((step.fraction, step.snapshots) == (0.5, (0.1,)) for step in asked)


def history_with(history, step):
    trial = Trial(history.next_number, {"x": step.position}, step.fraction, step.snapshots, "design")
    told = tuple(
        Measurement(trial.config, fraction, {"score": 0.5, "time": 1.0})
        for fraction in (*step.snapshots, step.fraction)
    )
    outcomes = (*history.outcomes, Outcome(trial, told, None, 0.0, 1.0))
    return replace(history, outcomes=outcomes, next_number=history.next_number + 1)


def test_what_fabulinus_adds_to_fabolas_is_a_factor_the_accuracy_of_the_incumbent_to_come_times_its_chance():
    """Eq. 4.4: ES_C / a_F = CEA(x, s). No answer moves the contenders: the CEA is 3 × Φ(2.5) for every candidate."""
    space = space_of(2)
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [1.0, 1.0, 3.0, 1.0], np.diag([1.0, 1.0, 1e-9, 1e-9]))),
        "time": (LOG, gaussian_over(space, [0.0, 0.0, -2.5, -2.5])),
    }
    seen = [measurement(0, 0.5, score=0.0, time=1.0)]
    outlook = outlook_of(belief_of(problem_of(space, "time <= 1s"), quantities, seen), [0, 1])
    cea = recipe_named("fabulinus").acquisition.gain.right.score(outlook)
    np.testing.assert_allclose(cea, 3.0 * 0.99379, rtol=1e-4)


def test_the_score_of_fabulinus_is_that_of_fabolas_times_cea():
    generator = np.random.default_rng(4)
    space = space_of(6, generator.uniform(1000.0, 4000.0, 6).tolist())
    quantities = {
        "score": (IDENTITY, gaussian_over(space, generator.uniform(1.0, 2.0, 12), random_covariance(12, generator))),
        "time": (LOG, gaussian_over(space, generator.normal(size=12), random_covariance(12, generator))),
    }
    seen = [measurement(0, 0.5, score=0.0, time=1.0)]
    outlook = outlook_of(belief_of(problem_of(space, "time <= 3s"), quantities, seen))
    fabolas, fabulinus = recipe_named("fabolas").acquisition, recipe_named("fabulinus").acquisition
    cea = ConstrainedAccuracyOfIncumbent(0.99, trust=trust_if_sure).score(outlook)
    assert np.ptp(cea) > 0.0
    np.testing.assert_allclose(fabulinus.score(outlook), fabolas.score(outlook) * cea, rtol=1e-12)


def test_fabulinus_looks_ahead_along_paths_of_information_times_cea():
    """Left to future work (thesis, chapter 8)."""
    recipe, ahead = recipe_named("fabulinus"), recipe_named("fabulinus:horizon=1")
    assert (ahead.acquisition.gain, ahead.acquisition.price) == (recipe.acquisition.gain, recipe.acquisition.price)
    assert (ahead.acquisition.horizon, ahead.acquisition.discount) == (1, 0.9)
    assert ahead.but(acquisition=None) == recipe.but(acquisition=None)


# --- Nephele: thesis 3.2 and 6.2; Lynceus: 2.4.2; CherryPick: 2.4.2


@pytest.mark.parametrize("name", ["nephele", "lynceus", "cherrypick:model=trees"])
def test_the_trees_of_nephele_lynceus_and_cherrypick_are_five_of_wekas_random_trees(name):
    """6.2: Weka's random tree, unpruned, an ensemble of 5."""
    assert recipe_named(name).surrogate == PlainTrees(SomeColumns(), 5)


def test_nephele_is_algorithms_two_and_three():
    """Γ by predicted means (Alg. 3, line 2), N = 3 and M = 1 (6.5), γ = 0.9 (6.2), h = 0 but for 6.5."""
    recipe = recipe_named("nephele")
    assert recipe.acquisition == Lookahead(
        ConstrainedImprovement(), ExpectedCost(), 0, 3, 1, 0.9, only_predicted_feasible=True, next_by="gain"
    )
    assert (recipe.confidence, recipe.time_growth) == (0.5, 0.0)
    assert recipe.incumbent == BestMeasured()  # Alg. 2, line 16: the cheapest of the training set
    assert isinstance(recipe.design, LatinHypercube)


def test_the_set_of_lynceus_is_what_fits_the_budget_with_ninety_nine_percent_and_nothing_else():
    """2.4.2: "predicted with a probability higher than 99% to have a cost that is lower than the available budget"."""
    recipe = recipe_named("lynceus")
    assert recipe.confidence == 0.99
    assert not recipe.acquisition.only_predicted_feasible
    assert replace(recipe.acquisition, only_predicted_feasible=True) == recipe_named("nephele").acquisition
    assert recipe.tests is WhereTested.FULL


def test_lynceus_scores_what_is_predicted_to_be_too_slow_and_nothing_that_may_cost_more_than_is_left():
    """Log cost is N(0, 0.3²): of 2 USD left it keeps to 99 %, for e^(2.326 × 0.3) = 2.01, not quite; of 2.02 it does.

    Both candidates are predicted to break the limit on time, which is no matter to Lynceus; Nephele has an empty set.
    """
    space = space_of(2, [3600.0, 3600.0], fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, [1.0, 2.0])),
        "time": (LOG, gaussian_of_times(space, [1.0, 1.0], 0.09)),
    }
    seen = [measurement(0, 0.5, score=0.0, time=1.0, cost=1.0)]
    outlook = outlook_of(belief_of(problem_of(space, "time <= 0.9s"), quantities, seen))
    lynceus, nephele = recipe_named("lynceus"), recipe_named("nephele")
    for left, is_inside in ((2.00, False), (2.02, True)):
        seen_by_it = replace(outlook, left=left, confidence=lynceus.confidence)
        assert (lynceus.acquisition.score(seen_by_it) > 0.0).all() == is_inside
    assert not nephele.acquisition.score(replace(outlook, left=9.0, confidence=nephele.confidence)).any()


def test_cherrypick_ends_below_ten_percent_after_six():
    """2.4.2: EI_c with Matérn 5/2; it stops below a threshold (CherryPick: 10 %) and after at least 6 trials."""
    recipe = recipe_named("cherrypick")
    assert recipe.surrogate == FULL_DATA_PROCESS
    assert recipe.surrogate.kernels == (Matern52(),)
    assert recipe.acquisition == ConstrainedImprovement()
    assert recipe.stop == LittleImprovement(0.1, after=6)


def test_nephele_with_dropping_begins_with_hyperbands_brackets_and_drops_two_of_three_by_their_rank():
    """Left to future work (thesis, chapter 8); η = 3 as Hyperband has it."""
    plain, dropping = recipe_named("nephele:initial_budget=2"), recipe_named("nephele:initial_budget=2,dropping=true")
    assert dropping.design == AsLongAs(Hyperband(3.0), plain.design)
    assert dropping.filter == DropUnderperformers(3.0)
    assert dropping.but(design=plain.design, filter=plain.filter) == plain


# --- TrimTuner: paper, III and IV


def test_trimtuner_to_the_letter_is_equation_five_as_printed():
    """Alg. 1: one configuration at 4 fractions, β = 10 %, P ≥ 0.9; Eq. 5: KL from uniform, S^A only, one root."""
    recipe = recipe_named("trimtuner-gp:literal=true")
    divergence = RegardlessOfLimits(DivergenceFromUniform(roots=1))
    assert recipe.acquisition == divergence * ChanceIncumbentFeasible(0.9, 1, trust_if_sure) / ExpectedCost()
    assert recipe.incumbent == BestSurelyFeasible(0.9)
    assert recipe.filter == HighestConstrainedAccuracy(0.10)
    assert recipe.design == AcrossFractions(1)
    fabolas = recipe_named("fabolas")  # III-A: "see [8] for details"
    assert (recipe.surrogate, recipe.time_surrogate) == (fabolas.surrogate, fabolas.time_surrogate)
    assert recipe.time_growth == 0.0


def test_trimtuner_to_the_letter_with_trees_has_bagged_extra_trees_and_no_more():
    """III-A: Extra Trees, each on data drawn with replacement; mean and deviation of the ensemble."""
    trees, processes = recipe_named("trimtuner-dt:literal=true"), recipe_named("trimtuner-gp:literal=true")
    assert trees.surrogate == PlainTrees(OneThreshold(), 64)
    assert trees.but(surrogate=processes.surrogate, time_surrogate=processes.time_surrogate) == processes
    assert trees.time_surrogate is None


def test_the_letter_takes_the_same_options():
    recipe = recipe_named("trimtuner-dt:literal=true,filter=none,horizon=2")
    assert recipe.filter == KeepAll()
    assert recipe.acquisition.horizon == 2
    assert recipe.acquisition.gain == recipe_named("trimtuner-gp:literal=true").acquisition.gain


def test_the_baselines_are_expected_improvement_within_limits_and_the_same_per_dollar():
    """IV: EI_c and EI_c/USD with GPs, 4 samples by Latin hypercube, full data only."""
    eic, per_dollar = recipe_named("eic"), recipe_named("eic-usd")
    assert eic.acquisition == ConstrainedImprovement()
    assert per_dollar.but(acquisition=eic.acquisition) == eic
    assert eic.design == LatinHypercube(4)
    assert eic.incumbent == BestPredictedFeasible(0.9)
    assert eic.surrogate == FULL_DATA_PROCESS


def test_of_two_that_promise_the_same_the_one_at_half_the_price_is_worth_twice_as_much_per_dollar():
    """EI_c/USD is a quotient: equal EI_c and costs of 1, 2 and 4 USD give scores of 4 : 2 : 1."""
    space = space_of(4, [3600.0, 7200.0, 14400.0, 3600.0], fractions=(1.0,))
    quantities = {
        "score": (IDENTITY, gaussian_over(space, 1.0)),
        "time": (LOG, gaussian_of_times(space, 1.0)),
    }
    seen = [measurement(3, 1.0, score=1.0, time=1.0, cost=1.0)]
    outlook = outlook_of(belief_of(problem_of(space, "time <= 9s"), quantities, seen), [0, 1, 2])
    plain, per_dollar = (recipe_named(name).acquisition.score(outlook) for name in ("eic", "eic-usd"))
    np.testing.assert_allclose(plain, plain[0])
    np.testing.assert_allclose(per_dollar, plain[0] / np.array([1.0, 2.0, 4.0]))
    assert all(dear < cheap for cheap, dear in pairwise(per_dollar))
