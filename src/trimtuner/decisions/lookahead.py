"""Lookahead (Algorithm 3 of the Nephele thesis, after Lynceus): gain per cost of a whole path of trials.

Γ   candidates predicted to be feasible, and affordable        Ω   the same after imagined answers
N   Gauss-Hermite roots of the cost's quantity                 M   roots of every other quantity
γ   discount of later steps                                    h   horizon: imagined trials after the first

A path starts at each candidate of Γ. For each root its answer is imagined, the belief moves, what it cost is taken off
the budget, and the path goes on with the best of Ω. Models are conditioned on imagined answers, not grown again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.outlook import Outlook, mixed_quadrature

By: TypeAlias = Literal["gain", "gain per price"]
_OUTSIDE = -1.0  # the score of what is not in Γ: below any gain


@dataclass(frozen=True)
class Lookahead(Acquisition):
    """Expected gain of the path that starts with a candidate, per its expected price."""

    gain: Acquisition
    price: Acquisition
    horizon: int = 0
    cost_roots: int = 3
    other_roots: int = 1
    discount: float = 0.9
    only_predicted_feasible: bool = True  # whether Γ and Ω leave out what is predicted to break a limit
    next_by: By = "gain"  # the thesis continues a path with the greatest EI_c, whatever it costs
    starts_at_most: int | None = None  # paths only from the best by gain per price; None: from all of Γ
    steps_at_most: int | None = None  # and only through the best so many by their gain per price now

    def score(self, outlook: Outlook) -> Floats:
        """Gain per price within Γ; where Γ is empty all are equal, so that a random one is taken."""
        allowed = self._allowed(outlook)
        if not allowed.any():
            return np.zeros(len(outlook.candidates))
        started = np.nonzero(allowed)[0]
        gains, prices = self._myopic(outlook.at(started) if len(started) < len(allowed) else outlook)
        if self.horizon > 0 and self.discount > 0.0:
            best = np.argsort(-gains / np.maximum(prices, 1e-300), kind="stable")
            taken = np.ones(len(allowed), dtype=bool)
            taken[started[best[: self.steps_at_most]] if self.steps_at_most is not None else slice(None)] = False
            if self.starts_at_most is not None:
                best = best[: self.starts_at_most]
                started, gains, prices = started[best], gains[best], prices[best]
            outlook.compute_columns(started)
            for number, start in enumerate(started.tolist()):
                gain, price = self._beyond(outlook, start, self.horizon, taken)
                gains[number] += gain
                prices[number] += price
        scores = np.full(len(allowed), _OUTSIDE)
        scores[started] = gains / np.maximum(prices, 1e-300)
        return scores

    def _beyond(self, outlook: Outlook, start: int, horizon: int, taken: Booleans) -> tuple[float, float]:
        """Expected gain and price, discounted, of the steps that follow the trial at ``start``."""
        cost_quantity = outlook.belief.quantity_name(outlook.belief.effort_metric)
        names = outlook.scene.answered_names
        roots = tuple(self.cost_roots if name == cost_quantity else self.other_roots for name in names)
        points, weights = mixed_quadrature(roots)
        taken = taken.copy()
        taken[start] = True
        total_gain = total_price = 0.0
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
            imagined = outlook.after(start, dict(zip(names, point, strict=True)))
            open_to_it = np.nonzero(self._allowed(imagined) & ~taken)[0]
            if not len(open_to_it):
                continue  # nothing affordable is predicted feasible: the path ends here
            gain, price, following = self._next_step(imagined, open_to_it)
            if horizon > 1:
                later_gain, later_price = self._beyond(imagined, following, horizon - 1, taken)
                gain, price = gain + later_gain, price + later_price
            total_gain += self.discount * weight * gain
            total_price += self.discount * weight * price
        return total_gain, total_price

    def _next_step(self, outlook: Outlook, open_to_it: Positions) -> tuple[float, float, int]:
        gains, prices = self._myopic(outlook.at(open_to_it))
        best = int(np.argmax(gains if self.next_by == "gain" else gains / np.maximum(prices, 1e-300)))
        return float(gains[best]), float(prices[best]), int(open_to_it[best])

    def _myopic(self, outlook: Outlook) -> tuple[Floats, Floats]:
        return self.gain.score(outlook).copy(), self.price.score(outlook).copy()

    def _allowed(self, outlook: Outlook) -> Booleans:
        """Γ, or Ω after imagined answers: which candidates a path may go through."""
        allowed = outlook.is_affordable
        return allowed & outlook.is_predicted_feasible if self.only_predicted_feasible else allowed
