"""Find the best configuration for a training job, mostly on small shares of its data.

The public names are imported when first used, so that ``trimtuner --help`` need not wait for numpy and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtuner.decisions.stopping import AfterMoney, AfterTime, AfterTrials, LittleImprovement, NotWorthItsPrice
    from trimtuner.errors import InputError, NoAnswer, SearchOver, TrimTunerError
    from trimtuner.problem.cloud import Cloud
    from trimtuner.problem.history import History, Trial
    from trimtuner.problem.parameters import Choice, Float, Int
    from trimtuner.problem.space import Space
    from trimtuner.problem.vms import VM, Spot
    from trimtuner.reporting import report
    from trimtuner.study.study import Study
    from trimtuner.tuning.pareto import Front
    from trimtuner.tuning.recommendation import Estimate, Recommendation

__version__ = "0.1.0"

_HOMES = {
    "VM": "problem.vms",
    "AfterMoney": "decisions.stopping",
    "AfterTime": "decisions.stopping",
    "AfterTrials": "decisions.stopping",
    "Choice": "problem.parameters",
    "Cloud": "problem.cloud",
    "Estimate": "tuning.recommendation",
    "Float": "problem.parameters",
    "Front": "tuning.pareto",
    "History": "problem.history",
    "InputError": "errors",
    "Int": "problem.parameters",
    "LittleImprovement": "decisions.stopping",
    "NoAnswer": "errors",
    "NotWorthItsPrice": "decisions.stopping",
    "Recommendation": "tuning.recommendation",
    "SearchOver": "errors",
    "Space": "problem.space",
    "Spot": "problem.vms",
    "Study": "study.study",
    "Trial": "problem.history",
    "TrimTunerError": "errors",
    "report": "reporting",
}

__all__ = [
    "VM",
    "AfterMoney",
    "AfterTime",
    "AfterTrials",
    "Choice",
    "Cloud",
    "Estimate",
    "Float",
    "Front",
    "History",
    "InputError",
    "Int",
    "LittleImprovement",
    "NoAnswer",
    "NotWorthItsPrice",
    "Recommendation",
    "SearchOver",
    "Space",
    "Spot",
    "Study",
    "Trial",
    "TrimTunerError",
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
