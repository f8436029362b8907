"""How time is expected to grow with the data before there is evidence, and what limits on a run say about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.belief import Places
from trimtuner.problem.problem import COST, TIME, Constraint, Problem

TIME_GROWTH = 0.8  # time ~ fraction^0.8 before any evidence: most jobs have a fixed part, few grow faster than the data


@dataclass(frozen=True)
class WithinLimits:
    """Time grows like fraction^``usual`` before any evidence, or as slowly as limits on a run's cost or time call for.

    Nobody sets a limit that nothing can keep. So when trials on 3 % of the data take half of what a run on all of it
    may take, small fractions save little on this job; by the usual growth every run would break the limit.
    """

    usual: float = TIME_GROWTH


def growth_to_keep_limits(problem: Problem, quantity: str, places: Places, values: Floats) -> float:
    """The growth with the data by which half of the trials would just keep every limit on a full run; never below 0.

    Infinite where there is no such limit, or no trial on less than all of the data.
    """
    known = [
        limit
        for constraint in problem.limits_on_full_runs
        if (limit := _limit_on(constraint, quantity, places)) is not None
    ]
    is_below = places.fractions < 1.0
    if not known or not is_below.any():
        return math.inf
    room = np.log(np.min(known, axis=0)) - np.log(values)
    return max(0.0, float(np.median(room[is_below] / -np.log(places.fractions[is_below]))))


def _limit_on(constraint: Constraint, quantity: str, places: Places) -> Floats | None:
    """The limit at each place in the units of the quantity, seconds or USD; None where it says nothing about it."""
    if (constraint.metric == COST) == (quantity == COST):
        return np.full(len(places), constraint.limit)
    prices = places.pool.prices_per_hour
    if constraint.metric == TIME or prices is None:
        return None
    return np.asarray(constraint.limit * 3600.0 / prices[places.positions])
