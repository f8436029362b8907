"""A recommendation: a configuration, what it is expected to measure, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import numpy as np

from trimtuner.decisions.belief import LIKELY, Belief, Places
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import COST, TIME


class Estimate(float):
    """A predicted value, usable as a number, with the interval that should hold it in 90 % of cases."""

    low: float
    high: float

    def __new__(cls, mean: float, low: float, high: float) -> Estimate:
        """The number is the mean."""
        self = super().__new__(cls, mean)
        self.low, self.high = float(low), float(high)
        return self

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]
        """What a copy is made of."""
        return self.mean, self.low, self.high

    @property
    def mean(self) -> float:
        """The expected value, a plain number."""
        return float(self)

    def __repr__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Recommendation:
    """The configuration to train, with estimates at ``fraction`` (full data unless the least cost is wanted).

    On machines that may be taken away, time and cost hold what interruptions are expected to add, measured or not.
    """

    config: Mapping[str, Value]
    fraction: float
    estimates: Mapping[str, Estimate]
    feasible: Mapping[str, float]  # constraint, as written: the probability that it holds
    chance_feasible: float  # all of them together, and that the job runs at all
    is_measured: bool  # whether exactly this was tested: then the estimates are measurements

    @property
    def is_feasible(self) -> bool:
        """Whether it more likely than not meets every constraint; if not, it is the least infeasible one known."""
        return self.chance_feasible >= LIKELY

    def __getattr__(self, name: str) -> Estimate:
        estimates = self.__dict__.get("estimates", {})
        if name in estimates:
            found: Estimate = estimates[name]
            return found
        known = ", ".join(estimates)
        raise AttributeError(f"a recommendation has no {name!r}; its estimates are {known}")

    def __repr__(self) -> str:
        word = "measured" if self.is_measured else "predicted"
        told = "".join(f", {name}={one!r}" for name, one in self.estimates.items())
        chance = f", P(all limits)={self.chance_feasible:.2f}" if self.feasible else ""
        return f"Recommendation({dict(self.config)!r}, fraction={self.fraction:.4g}, {word}{told}{chance})"

    def _repr_html_(self) -> str:
        """The recommendation as a table, for a notebook."""
        word = "measured" if self.is_measured else "predicted"
        rows = [(name, str(value)) for name, value in self.config.items()]
        rows.append(("share of the data", f"{self.fraction:.3g}"))
        rows += [(f"{word} {name}", repr(one)) for name, one in self.estimates.items()]
        rows += [(f"P({constraint})", f"{chance:.2f}") for constraint, chance in self.feasible.items()]
        body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
        head = "recommended" if self.is_feasible else "least infeasible: nothing known is likely to meet every limit"
        return f"<table><caption>{head}</caption><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        lines = [f"{name} = {value}" for name, value in self.config.items()]
        lines += [f"{name}: {estimate!r}" for name, estimate in self.estimates.items()]
        lines += [f"P({constraint}) = {chance:.2f}" for constraint, chance in self.feasible.items()]
        if not self.is_feasible:
            lines.append("nothing known is likely to meet every constraint; this is the least infeasible")
        return "\n".join(lines)


def recommendation_from(belief: Belief, target: int) -> Recommendation:
    """Read the belief at one target."""
    place = belief.targets.at(np.array([target]))
    measurement = belief.measured_targets.get(target)
    estimates = {}
    for metric in dict.fromkeys((*belief.problem.metrics, COST, TIME)):
        if measurement is not None and metric in measurement.metrics:
            value = measurement.metrics[metric]
            estimates[metric] = Estimate(value, value, value)
        elif belief.quantity_name(metric) in belief.quantities:
            estimates[metric] = _estimate(belief, metric, place)
    chances = belief.chances_at(target)
    return Recommendation(
        config=belief.pool.configuration(int(place.positions[0])),
        fraction=float(place.fractions[0]),
        estimates=estimates,
        feasible={c.text: float(p) for c, p in zip(belief.problem.constraints, chances, strict=True)},
        chance_feasible=belief.feasible_at(target),
        is_measured=measurement is not None,
    )


def _estimate(belief: Belief, metric: str, place: Places) -> Estimate:
    quantity, (mean, variance) = belief.quantity_of(metric), belief.predict(metric, place)
    # What a run would measure, not what is true without noise.
    expected = quantity.transform.expectation(mean, variance + quantity.posterior.noise_variance)
    low, high = belief.interval(metric, place)
    return Estimate(float(expected[0]), float(low[0]), float(high[0]))
