"""Find the best configuration for a training job, mostly on small shares of its data.

The public names are imported when first used, so that ``trimtuner --help`` need not wait for numpy and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtuner.decisions.acquisition import Acquisition, ConstrainedImprovement, ExpectedCost
    from trimtuner.decisions.designs import CheapStart, LatinHypercube, RandomSearch
    from trimtuner.decisions.entropy import InformationAboutBest, ValueOfRecommendation
    from trimtuner.decisions.incumbents import BestMeasured, BestPredictedFeasible, MostExpected
    from trimtuner.decisions.stopping import AfterMoney, AfterTime, AfterTrials, LittleImprovement, NotWorthItsPrice
    from trimtuner.errors import InputError, NoAnswer, SearchOver, TrimTunerError
    from trimtuner.models.trees import BaggedTrees
    from trimtuner.problem.cloud import Cloud
    from trimtuner.problem.history import History, Trial
    from trimtuner.problem.parameters import Choice, Float, Int
    from trimtuner.problem.space import Space
    from trimtuner.problem.vms import VM, Spot
    from trimtuner.reporting import report
    from trimtuner.study.study import Study
    from trimtuner.tuning.pareto import Front
    from trimtuner.tuning.recipe import Recipe, WhereTested
    from trimtuner.tuning.recipes import recipe_named
    from trimtuner.tuning.recommendation import Estimate, Recommendation

__version__ = "0.1.0"

_HOMES = {
    "VM": "problem.vms",
    "Acquisition": "decisions.acquisition",
    "AfterMoney": "decisions.stopping",
    "AfterTime": "decisions.stopping",
    "AfterTrials": "decisions.stopping",
    "BaggedTrees": "models.trees",
    "BestMeasured": "decisions.incumbents",
    "BestPredictedFeasible": "decisions.incumbents",
    "CheapStart": "decisions.designs",
    "Choice": "problem.parameters",
    "Cloud": "problem.cloud",
    "ConstrainedImprovement": "decisions.acquisition",
    "Estimate": "tuning.recommendation",
    "ExpectedCost": "decisions.acquisition",
    "Float": "problem.parameters",
    "Front": "tuning.pareto",
    "History": "problem.history",
    "InformationAboutBest": "decisions.entropy",
    "InputError": "errors",
    "Int": "problem.parameters",
    "LatinHypercube": "decisions.designs",
    "LittleImprovement": "decisions.stopping",
    "MostExpected": "decisions.incumbents",
    "NoAnswer": "errors",
    "NotWorthItsPrice": "decisions.stopping",
    "RandomSearch": "decisions.designs",
    "Recipe": "tuning.recipe",
    "Recommendation": "tuning.recommendation",
    "SearchOver": "errors",
    "Space": "problem.space",
    "Spot": "problem.vms",
    "Study": "study.study",
    "Trial": "problem.history",
    "TrimTunerError": "errors",
    "ValueOfRecommendation": "decisions.entropy",
    "WhereTested": "tuning.recipe",
    "recipe_named": "tuning.recipes",
    "report": "reporting",
}

__all__ = [
    "VM",
    "Acquisition",
    "AfterMoney",
    "AfterTime",
    "AfterTrials",
    "BaggedTrees",
    "BestMeasured",
    "BestPredictedFeasible",
    "CheapStart",
    "Choice",
    "Cloud",
    "ConstrainedImprovement",
    "Estimate",
    "ExpectedCost",
    "Float",
    "Front",
    "History",
    "InformationAboutBest",
    "InputError",
    "Int",
    "LatinHypercube",
    "LittleImprovement",
    "MostExpected",
    "NoAnswer",
    "NotWorthItsPrice",
    "RandomSearch",
    "Recipe",
    "Recommendation",
    "SearchOver",
    "Space",
    "Spot",
    "Study",
    "Trial",
    "TrimTunerError",
    "ValueOfRecommendation",
    "WhereTested",
    "recipe_named",
    "report",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'trimtuner' has no attribute {name!r}")
    found: object = getattr(import_module(f"trimtuner.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
