"""What makes two studies the same: problem, method and seed in plain values, to be kept beside the record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from trimtuner.problem.problem import Problem


def definition_of(problem: Problem, method: str, seed: int, learn_from: Sequence[str] = ()) -> dict[str, object]:
    """A record made with another definition belongs to another study."""
    space = problem.space
    # Only where there is any, so that studies of before are still the same.
    earlier = {"learn_from": list(learn_from)} if learn_from else {}
    return {
        "goal": str(problem.goal),
        "constraints": [constraint.text for constraint in problem.constraints],
        "parameters": list(space.names),
        "space": _digest(problem),
        "fractions": list(space.fractions),
        "snapshots": space.snapshots,
        "method": method,
        "seed": seed,
        **earlier,
    }


def _digest(problem: Problem) -> str:
    """Of every configuration, its price and its risk; of a sample where they cannot be listed."""
    pool = problem.space.pool()
    prices = None if pool.prices_per_hour is None else pool.prices_per_hour.tolist()
    configurations = [pool.configuration(position) for position in range(len(pool))]
    # The risk only where there is any, so that studies of before are still the same.
    risk = [] if pool.interruptions_per_hour is None else [pool.interruptions_per_hour.tolist()]
    return hashlib.sha256(json.dumps([configurations, prices, *risk]).encode()).hexdigest()[:16]
