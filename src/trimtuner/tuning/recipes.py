"""Every named method on one page."""

from __future__ import annotations

from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.designs import CheapStart, OneAcrossFractions
from trimtuner.decisions.entropy import ChanceIncumbentFeasible, InformationAboutBest
from trimtuner.decisions.filters import ClimbAsEarned, HighestConstrainedAccuracy
from trimtuner.decisions.incumbents import BestPredictedFeasible, MostExpected
from trimtuner.decisions.value import ValueOfRecommendation
from trimtuner.errors import InputError, nearest
from trimtuner.models.gaussian_process import GaussianProcess
from trimtuner.models.hyperparameters import MostLikely
from trimtuner.models.kernels import (
    Basis,
    FractionKernel,
    Kernel,
    Matern52,
    linear_basis,
    log_basis,
    quadratic_basis,
)
from trimtuner.models.trees import BaggedTrees
from trimtuner.tuning.recipe import Recipe


def over_fractions(*bases: Basis) -> tuple[Kernel, ...]:
    """For each basis: a trend shared by all configurations, and each configuration's own departure from it."""
    return tuple(FractionKernel(basis) + Matern52() * FractionKernel(basis) for basis in bases)


# No single shape over the fraction suits all jobs: three are fitted, and weighed by their evidence.
PROCESS = GaussianProcess(over_fractions(log_basis, quadratic_basis, linear_basis), MostLikely())

TRIMTUNER_GP = Recipe(
    surrogate=PROCESS,
    design=OneAcrossFractions(),
    filter=HighestConstrainedAccuracy(0.10),
    acquisition=InformationAboutBest() * ChanceIncumbentFeasible() / ExpectedCost(),
    incumbent=BestPredictedFeasible(0.90),
)
TRIMTUNER_DT = TRIMTUNER_GP.but(surrogate=BaggedTrees())
TRIMTUNER = TRIMTUNER_GP.but(
    design=CheapStart(3),
    filter=ClimbAsEarned(0.3),
    acquisition=(ValueOfRecommendation() / ExpectedCost()).otherwise(InformationAboutBest() / ExpectedCost()),
    incumbent=MostExpected(),
    takes_snapshots=True,
)

METHODS = {"trimtuner": TRIMTUNER, "trimtuner-gp": TRIMTUNER_GP, "trimtuner-dt": TRIMTUNER_DT}


def recipe_named(name: str) -> Recipe:
    """The recipe of a method; an error lists the names."""
    if name not in METHODS:
        raise InputError(f"method {name!r} is none of {', '.join(METHODS)}{nearest(str(name), METHODS)}")
    return METHODS[name]
