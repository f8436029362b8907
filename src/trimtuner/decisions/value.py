"""What a trial is expected to add to the worth of the recommendation: the knowledge gradient, constraints included.

For each candidate and each imagined answer the contenders' means and chances move along their lines (see outlook), the
recommendation is the contender with the highest expected worth × P(feasible), and its value is averaged over answers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.entropy import draw_contenders, draw_running
from trimtuner.decisions.outlook import Outlook, quadrature

_CHUNK_CELLS = 60_000  # (candidate, contender) cells at a time, to stay in the processor's cache
_ROUNDING = 1e-9  # of the worth: less is the error of the arithmetic and of the transforms' own quadrature


@dataclass(frozen=True)
class ValueOfRecommendation(Acquisition):
    """Expected rise, by the trial, of worth × P(feasible) of what would be recommended; in the goal's units."""

    roots: int = 3

    def score(self, outlook: Outlook) -> Floats:
        """Never below 0: knowing more cannot make the best choice worse. A trial that fails teaches nothing of it."""
        chunk = max(1, _CHUNK_CELLS // len(outlook.contenders))
        parts = [slice(start, start + chunk) for start in range(0, len(outlook.candidates), chunk)]
        rise = np.concatenate([self._rise(outlook, part) for part in parts]) * outlook.running
        # What numerical error alone would leave is no value: 1e-12 over the cost must not choose the trial.
        return np.where(rise > _ROUNDING * float(outlook.value_at_contenders.max()), rise, 0.0)

    def _rise(self, outlook: Outlook, part: slice) -> Floats:
        """How much the best contender is expected to beat the present one after the answer of each candidate.

        Both are valued under the same answers: with few roots the mean of a curved value is not the value at the mean,
        and the difference of the two would count as a gain.
        """
        belief, names = outlook.belief, outlook.scene.quantity_names
        points, weights = quadrature(self.roots, 1)
        deviations = points[:, 0].tolist()
        worths = [belief.worth(outlook.goal_after(part, deviation)) for deviation in deviations]
        chances = [
            [outlook.chance_after(constraint, part, deviation) for deviation in deviations]
            for constraint in belief.problem.constraints
        ]
        goal_axis = names.index(belief.quantity_name(belief.problem.goal.metric))
        axes = [names.index(belief.quantity_name(constraint.metric)) for constraint in belief.problem.constraints]
        running = belief.running_at_targets[outlook.contenders]
        present = int(outlook.value_at_contenders.argmax())
        total = np.zeros(len(worths[0]))
        for roots in itertools.product(range(self.roots), repeat=len(names)):
            met = belief.chance_of_all([chance[roots[axis]] for chance, axis in zip(chances, axes, strict=True)])
            value = worths[roots[goal_axis]] * running * met
            total += float(np.prod(weights[list(roots)])) * (value.max(axis=1) - value[:, present])
        return total


def value_of_knowing_everything(outlook: Outlook, samples: int = 512) -> float:
    """E[max v] - max E[v] over the contenders: what perfect knowledge of them would add to the recommendation."""
    belief, goal = outlook.belief, outlook.belief.problem.goal
    drawn = {metric: draw_contenders(outlook, metric, samples)[0] for metric in outlook.scene.metrics}
    # Unlike the expected worth, a sample's is not cut off at the floor: that would hide what the doubtful may lose.
    value = goal.sign * belief.quantity_of(goal.metric).transform.inverse(drawn[goal.metric]) - belief.floor
    running = draw_running(outlook, samples)
    if running is not None:
        value = value * running
    for constraint in belief.problem.constraints:
        limit = belief.transformed_limit(constraint)
        within = drawn[constraint.metric] <= limit if constraint.is_upper else drawn[constraint.metric] >= limit
        value = value * within
    # The same samples on both sides: what chance alone puts into the greatest mean is then in both.
    known = np.maximum(value.max(axis=1), 0.0).mean()
    return float(max(known - max(value.mean(axis=0).max(), 0.0), 0.0))
