"""Every named method on one page."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from trimtuner.decisions.acquisition import (
    Acquisition,
    AtTargets,
    ConstrainedImprovement,
    CostWithOverhead,
    ExpectedCost,
    ProofOfCheapest,
    ProofOfRecommendation,
    RegardlessOfLimits,
    ShareAtTargets,
)
from trimtuner.decisions.designs import AcrossFractions, AsLongAs, CheapStart, LatinHypercube, RandomSearch, WhileCheap
from trimtuner.decisions.entropy import (
    ChanceIncumbentFeasible,
    ConstrainedAccuracyOfIncumbent,
    DivergenceFromUniform,
    InformationAboutBest,
    ValueOfRecommendation,
)
from trimtuner.decisions.filters import (
    BestIncumbentToCome,
    ClimbAsEarned,
    Filter,
    HighestConstrainedAccuracy,
    KeepAll,
    KeepRandom,
    SearchByCMAES,
    SearchByDirect,
)
from trimtuner.decisions.halving import Bohb, DropUnderperformers, Hyperband
from trimtuner.decisions.incumbents import (
    FEASIBLE_ENOUGH,
    BestMeasured,
    BestPredicted,
    BestPredictedFeasible,
    BestPredictedOfTested,
    BestSurelyFeasible,
    MostExpected,
    trust_if_sure,
)
from trimtuner.decisions.learning import WithinLimits
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.stopping import LittleImprovement
from trimtuner.errors import InputError, nearest
from trimtuner.models.forest import OneThreshold, SomeColumns
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely, Sampled
from trimtuner.models.kernels import (
    Basis,
    FractionKernel,
    FractionWalk,
    Kernel,
    Matern52,
    OwnDeparture,
    linear_basis,
    log_basis,
    log_quadratic_basis,
    quadratic_basis,
)
from trimtuner.models.trees import BaggedTrees, PlainTrees
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.tuning.methods import Method, split_text
from trimtuner.tuning.recipe import Recipe, WhereTested

FilterName: TypeAlias = Literal["cea", "none", "random", "direct", "cmaes"]
ScaleName: TypeAlias = Literal["log", "linear"]
ModelName: TypeAlias = Literal["gp", "trees"]


def over_fractions(*bases: Basis) -> tuple[Kernel, ...]:
    """For each basis: a trend shared by all configurations, and each configuration's own departure from it."""
    return tuple(FractionKernel(basis) + Matern52() * FractionKernel(basis) for basis in bases)


def learning_trust(*bases: Basis) -> tuple[Kernel, ...]:
    """The same, but curves may bend as no basis foresees, those of neighbours together and each on its own.

    How much is learnt from the job: that is how far its sub-samples can be trusted.
    """
    return tuple(
        FractionKernel(basis) + Matern52() * (FractionKernel(basis) + FractionWalk()) + OwnDeparture()
        for basis in bases
    )


# No single shape over the fraction suits all jobs: three are fitted, and weighed by their evidence.
PROCESS = GaussianProcess(over_fractions(log_basis, quadratic_basis, linear_basis), MostLikely())
FULL_DATA_PROCESS = GaussianProcess((Matern52(),), MostLikely())


def fabolas_process(basis: Basis) -> GaussianProcess:
    """FABOLAS's (thesis, Eq. 2.24): k_5/2(x, x') · φ(s)ᵀ Σ φ(s') with a basis φ, and sampled hyper-parameters."""
    return GaussianProcess((Matern52() * FractionKernel(basis),), Sampled(12, thinning=3))


# Of accuracy φ = (1, (1-s)²), of log time φ = (1, s), which (1, 1-s) spans. FABOLAS's own programs, which the thesis
# builds on (7.2), read s on a log scale; there O(s^α), from which 2.4.1 derives the basis, is a line.
FABOLAS_BASES: dict[ScaleName, tuple[Basis, Basis]] = {
    "log": (log_quadratic_basis, log_basis),
    "linear": (quadratic_basis, linear_basis),
}

ASK_SECONDS = 0.2  # what an ask of FABOLAS or Fabulinus takes (docs/performance.md): their C_overhead

INFORMATION = InformationAboutBest() * ChanceIncumbentFeasible()  # numerator of α_T, Eq. 5 of the TrimTuner paper

TRIMTUNER_GP = Recipe(
    surrogate=PROCESS,
    design=AcrossFractions(),
    filter=HighestConstrainedAccuracy(0.10),
    acquisition=INFORMATION / ExpectedCost(),
    incumbent=BestPredictedFeasible(),
)
TRIMTUNER_DT = TRIMTUNER_GP.but(surrogate=BaggedTrees())
# Eq. 5 as it is printed: divergence from uniform, of who is the most accurate, limits or not; P ≥ 0.9 or nothing.
PRINTED_INFORMATION = RegardlessOfLimits(DivergenceFromUniform()) * ChanceIncumbentFeasible(trust=trust_if_sure)
TRIMTUNER_GP_AS_PRINTED = TRIMTUNER_GP.but(
    surrogate=fabolas_process(log_quadratic_basis),
    time_surrogate=fabolas_process(log_basis),
    time_growth=0.0,
    acquisition=PRINTED_INFORMATION / ExpectedCost(),
    incumbent=BestSurelyFeasible(FEASIBLE_ENOUGH),
)
TRIMTUNER_DT_AS_PRINTED = TRIMTUNER_GP_AS_PRINTED.but(surrogate=PlainTrees(OneThreshold(), 64), time_surrogate=None)
# When no single trial can change the recommendation: the best hope on all of the data, if it can be afforded yet.
VALUE = (
    (ValueOfRecommendation() / ExpectedCost())
    .otherwise(AtTargets(ConstrainedImprovement()))
    .otherwise(InformationAboutBest() / ExpectedCost())
)
# The least cost on all of the data: the cheapest machines are the slowest, so that a cheap start that climbs as it has
# earned it looks for long at what breaks the deadline; and what was measured within it is worth more than a forecast.
LEAST_ON_FULL_DATA = Recipe(
    surrogate=FULL_DATA_PROCESS,
    design=LatinHypercube(5),
    acquisition=ConstrainedImprovement(),
    incumbent=BestMeasured(),
)


def insured(value: Acquisition) -> ShareAtTargets:
    """What value chooses, and the insurance against small fractions that mislead: proof first, then EI_c."""
    proof = ProofOfRecommendation(AtTargets(ConstrainedImprovement()), MostExpected())
    return ShareAtTargets(ProofOfCheapest(value, MostExpected()), proof)


TRIMTUNER = Recipe(
    # Whether curves keep to a simple shape on this job, or wander, is for the evidence to say.
    surrogate=GaussianProcess(
        over_fractions(log_basis, quadratic_basis) + learning_trust(log_basis, quadratic_basis), MostLikely()
    ),
    quality_growth=0.4,
    time_growth=WithinLimits(),
    design=WhileCheap(CheapStart(3)),
    filter=ClimbAsEarned(0.5),
    acquisition=insured(VALUE),
    incumbent=MostExpected(),
    small=0.06,  # what is less tells so little more cheaply that it is not worth its price
    takes_snapshots=True,
    least_on_full_data=LEAST_ON_FULL_DATA,
)


def several_fractions(problem: Problem) -> str | None:
    """For methods that learn from less than all of the data."""
    if any(fraction < 1.0 for fraction in problem.space.fractions):
        return None
    return "this method tests on less than all of the data, and the space offers no fraction below 1; add some"


def goal_at_full_data(problem: Problem) -> str | None:
    """For methods whose resource is the fraction: more of it must be better."""
    if problem.goal.metric not in (COST, TIME):
        return None
    return (
        "this method gives more data to what did well on less, which says nothing about the least "
        f"{problem.goal.metric} over fractions; use nephele, or maximize an accuracy"
    )


def no_constraints(problem: Problem) -> str | None:
    """For methods that know no limits."""
    if not problem.constraints:
        return None
    limits = ", ".join(constraint.text for constraint in problem.constraints)
    return (
        f"this method does not look at limits, and may test and recommend what breaks {limits}; use eic or trimtuner, "
        "or say that you know with the option ignore_constraints=true"
    )


def single_goal(problem: Problem) -> str | None:
    """For methods that work towards one number, whatever it costs or whatever it is good for."""
    if problem.goal.against is None:
        return None
    return (
        f"this method knows one goal, not {problem.goal.metric} against {problem.goal.against}; use trimtuner, "
        "trimtuner-gp, trimtuner-dt, eic, eic-usd or random, or give one goal"
    )


def trimtuner(horizon: int = 0) -> Recipe:
    """The default; see docs/decisions and TRIMTUNER."""
    if horizon == 0:
        return TRIMTUNER
    least = LEAST_ON_FULL_DATA.but(acquisition=_lookahead(ConstrainedImprovement(), ExpectedCost(), horizon))
    return TRIMTUNER.but(acquisition=_lookahead_of_value(horizon), least_on_full_data=least)


def trimtuner_gp(
    filter: FilterName = "cea",  # noqa: A002
    beta: float = 0.10,
    horizon: int = 0,
    literal: bool = False,
) -> Recipe:
    """The TrimTuner paper's method with Gaussian processes; ``literal``: to the letter, without what we changed."""
    recipe = TRIMTUNER_GP_AS_PRINTED if literal else TRIMTUNER_GP
    recipe = recipe.but(filter=_filter_named(filter, beta))
    information = PRINTED_INFORMATION if literal else INFORMATION
    return recipe if horizon == 0 else recipe.but(acquisition=_lookahead(information, ExpectedCost(), horizon))


def trimtuner_dt(
    filter: FilterName = "cea",  # noqa: A002
    beta: float = 0.10,
    horizon: int = 0,
    literal: bool = False,
) -> Recipe:
    """The TrimTuner paper's method with bagged trees; ``literal``: to the letter, without what we changed."""
    trees = TRIMTUNER_DT_AS_PRINTED if literal else TRIMTUNER_DT
    recipe = trimtuner_gp(filter, beta, horizon, literal)
    return recipe.but(surrogate=trees.surrogate, time_surrogate=trees.time_surrogate)


def fabolas(
    initial: int = 1, ignore_constraints: bool = False, overhead: float = ASK_SECONDS, scale: ScaleName = "log"
) -> Recipe:
    """Eq. 2.25 of the thesis; ``initial`` configurations are tested at every fraction below 1 first."""
    of_accuracy, of_time = FABOLAS_BASES[scale]
    return Recipe(
        surrogate=fabolas_process(of_accuracy),
        time_surrogate=fabolas_process(of_time),
        time_growth=0.0,
        design=AcrossFractions(_at_least("initial", initial, 1)),
        acquisition=RegardlessOfLimits(InformationAboutBest()) / CostWithOverhead(_no_less("overhead", overhead, 0.0)),
        incumbent=BestPredictedOfTested(),
        needs=(single_goal, several_fractions, *(() if ignore_constraints else (no_constraints,))),
    )


def fabulinus(beta: float = 0.10, horizon: int = 0, overhead: float = ASK_SECONDS, scale: ScaleName = "log") -> Recipe:
    """Eq. 4.4 of the thesis: FABOLAS's score times the CEA of the incumbent to come; never a test on full data."""
    incumbent = ConstrainedAccuracyOfIncumbent(0.99, trust=trust_if_sure)
    gain, price = RegardlessOfLimits(InformationAboutBest()) * incumbent, CostWithOverhead(overhead)
    return fabolas(overhead=overhead, scale=scale).but(
        design=AcrossFractions(share=0.03),
        filter=BestIncumbentToCome(_share("beta", beta), incumbent),
        acquisition=gain / price if horizon == 0 else _lookahead(gain, price, horizon),
        incumbent=BestSurelyFeasible(0.99),
        tests=WhereTested.BELOW_FULL,
        needs=(single_goal, several_fractions),
    )


def nephele(horizon: int = 0, trees: int = 5, initial_budget: float | None = None, dropping: bool = False) -> Recipe:
    """Algorithms 2 and 3 of the thesis; ``dropping``: with Hyperband's early dropping, which it leaves to others."""
    hypercube = LatinHypercube(initial_budget=_above_zero("initial_budget", initial_budget))
    recipe = Recipe(
        surrogate=PlainTrees(SomeColumns(), _at_least("trees", trees, 2)),
        time_growth=0.0,
        design=hypercube,
        acquisition=Lookahead(ConstrainedImprovement(), ExpectedCost(), _at_least("horizon", horizon, 0)),
        incumbent=BestMeasured(),
        tests=WhereTested.WHERE_MEANT,
        confidence=0.5,  # the predicted cost itself must fit
        needs=(single_goal,),
    )
    return recipe.but(design=AsLongAs(Hyperband(), hypercube), filter=DropUnderperformers()) if dropping else recipe


def lynceus(horizon: int = 0, trees: int = 5, initial_budget: float | None = None) -> Recipe:
    """Nephele on all of the data, but for Γ: whatever fits the budget with P ≥ 0.99 (thesis 2.4.2)."""
    return nephele(trees=trees, initial_budget=initial_budget).but(
        acquisition=Lookahead(
            ConstrainedImprovement(), ExpectedCost(), _at_least("horizon", horizon, 0), only_predicted_feasible=False
        ),
        tests=WhereTested.FULL,
        confidence=0.99,
    )


def cherrypick(
    initial_budget: float | None = None, model: ModelName = "gp", trees: int = 5, stop_below: float = 0.1
) -> Recipe:
    """EI_c with a Gaussian process until little is left to gain."""
    return Recipe(
        surrogate=FULL_DATA_PROCESS if model == "gp" else PlainTrees(SomeColumns(), _at_least("trees", trees, 2)),
        design=LatinHypercube(initial_budget=_above_zero("initial_budget", initial_budget)),
        acquisition=ConstrainedImprovement(),
        incumbent=BestMeasured(),
        tests=WhereTested.FULL,
        stop=None if stop_below == 0 else LittleImprovement(_above("stop_below", stop_below, 0.0), after=6),
        needs=(single_goal,),
    )


def eic(initial: int = 4) -> Recipe:
    """The TrimTuner paper's first baseline."""
    return Recipe(
        surrogate=FULL_DATA_PROCESS,
        design=LatinHypercube(_at_least("initial", initial, 1)),
        acquisition=ConstrainedImprovement(),
        incumbent=BestPredictedFeasible(),
        tests=WhereTested.FULL,
    )


def eic_usd(initial: int = 4) -> Recipe:
    """The second: EI_c for each dollar."""
    return eic(initial).but(acquisition=ConstrainedImprovement() / ExpectedCost())


def ei(initial: int = 4, ignore_constraints: bool = False) -> Recipe:
    """Expected improvement alone, whatever the limits and the price."""
    return eic(initial).but(
        acquisition=RegardlessOfLimits(ConstrainedImprovement()),
        incumbent=BestPredicted(),
        needs=(single_goal,) if ignore_constraints else (single_goal, no_constraints),
    )


def random() -> Recipe:
    """No model: the control that every method must beat."""
    return Recipe(
        surrogate=BaggedTrees(8), design=RandomSearch(), incumbent=BestMeasured(), tests=WhereTested.WHERE_MEANT
    )  # the surrogate only fills in what was not measured


def hyperband(eta: float = 3.0) -> Recipe:
    """Successive halving over fractions, in brackets."""
    return random().but(
        design=Hyperband(_above("eta", eta, 1.0)),
        tests=WhereTested.ANYWHERE,
        needs=(single_goal, several_fractions, goal_at_full_data),
    )


def bohb(eta: float = 3.0) -> Recipe:
    """The same, with configurations drawn where good ones were found."""
    return hyperband(eta).but(design=Bohb(_above("eta", eta, 1.0)))


_LIMITS, _NO_LIMITS, _LEAST = "best goal within limits", "best goal, no limits", "least cost"
_FRACTIONS = "fractions below 1"

METHODS = {
    method.name: method
    for method in (
        Method("trimtuner", trimtuner, _LIMITS, "-", "the default: the best configuration for the least money"),
        Method("trimtuner-gp", trimtuner_gp, _LIMITS, "-", "the paper's method, with Gaussian processes"),
        Method("trimtuner-dt", trimtuner_dt, _LIMITS, "-", "the paper's method, with trees: rugged or vast spaces"),
        Method("fabulinus", fabulinus, _LIMITS, _FRACTIONS, "when no trial may be on all of the data"),
        Method("fabolas", fabolas, _NO_LIMITS, _FRACTIONS, "accuracy at any price"),
        Method("nephele", nephele, f"{_LEAST}, any fraction", "a budget to keep", "the cheapest run that will do"),
        Method("lynceus", lynceus, f"{_LEAST}, full data", "a budget to keep", "as nephele, where all data is a must"),
        Method("cherrypick", cherrypick, f"{_LEAST}, full data", "-", "few parameters; it ends by itself"),
        Method("eic", eic, _LIMITS, "-", "data that cannot be sampled"),
        Method("eic-usd", eic_usd, _LIMITS, "-", "as eic, where prices differ a lot"),
        Method("ei", ei, _NO_LIMITS, "-", "the textbook baseline"),
        Method("random", random, _LIMITS, "-", "the control: what every other method must beat"),
        Method("hyperband", hyperband, _LIMITS, _FRACTIONS, "many cheap trials side by side; limits as measured"),
        Method("bohb", bohb, _LIMITS, _FRACTIONS, "as hyperband, for long searches"),
    )
}


def recipe_named(text: str, **options: object) -> Recipe:
    """The recipe of a method, such as ``nephele`` or ``nephele:horizon=1``; an error lists the names."""
    name, written = split_text(str(text))
    if name not in METHODS:
        raise InputError(f"method {name!r} is none of {', '.join(METHODS)}{nearest(name, METHODS)}")
    twice = written.keys() & options.keys()
    if twice:
        raise InputError(f"method {text!r} gives {', '.join(sorted(twice))} twice")
    return METHODS[name].recipe({**written, **options})


def _filter_named(name: FilterName, beta: float) -> Filter:
    share = _share("beta", beta)
    filters: dict[FilterName, Filter] = {
        "cea": HighestConstrainedAccuracy(share),
        "none": KeepAll(),
        "random": KeepRandom(share),
        "direct": SearchByDirect(share),
        "cmaes": SearchByCMAES(share),
    }
    return filters[name]


def _lookahead(gain: Acquisition, price: Acquisition, horizon: int) -> Lookahead:
    """Paths of trials of which only the last few decide: from the most promising starts, by gain per price."""
    return Lookahead(
        gain,
        price,
        _at_least("horizon", horizon, 0),
        only_predicted_feasible=False,  # a trial that breaks a limit may still teach
        next_by="gain per price",
        starts_at_most=4,
        steps_at_most=256,
    )


def _lookahead_of_value(horizon: int) -> Acquisition:
    value = _lookahead(ValueOfRecommendation(), ExpectedCost(), horizon)
    return insured(value.otherwise(replace(value, gain=InformationAboutBest())))


def _at_least(option: str, value: int, least: int) -> int:
    if value < least:
        raise InputError(f"option {option}={value} must be at least {least}")
    return value


def _above(option: str, value: float, limit: float) -> float:
    if not limit < value < float("inf"):
        raise InputError(f"option {option}={value:g} must be above {limit:g}")
    return value


def _no_less(option: str, value: float, least: float) -> float:
    if not least <= value < float("inf"):
        raise InputError(f"option {option}={value:g} must be at least {least:g}")
    return value


def _above_zero(option: str, value: float | None) -> float | None:
    return None if value is None else _above(option, value, 0.0)


def _share(option: str, value: float) -> float:
    if not 0.0 < value <= 1.0:
        raise InputError(f"option {option}={value:g} must be above 0 and at most 1")
    return value
