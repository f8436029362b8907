"""Made-up training jobs, each with one trouble that real jobs have: the known worst cases of searching on sub-samples.

Each is a table like the measured ones, drawn from a seed: smooth random functions of the hyper-parameters and machines
(Gaussian bumps, so that nothing is made of what the models assume), with the trouble put in by construction.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from trimtuner.arrays import Floats
from trimtuner.engines.table import Cell, Table
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.space import Space

FRACTIONS = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0)
_SPEED_AND_PRICE = {"small": (1.0, 0.02), "medium": (1.7, 0.05), "large": (4.0, 0.2)}
_GRID = {
    "learning_rate": (1e-4, 1e-3, 1e-2, 1e-1),
    "batch_size": (16, 64, 256),
    "width": (32, 128, 512),
    "vm_type": tuple(_SPEED_AND_PRICE),
    "vm_count": (1, 2, 4),
}


@dataclass(frozen=True)
class Trouble:
    """How a made-up job departs from an easy one."""

    rank_correlation: float = 0.9  # of accuracy at the smallest fraction with accuracy on all data, about
    growth: tuple[float, float] = (0.8, 1.0)  # exponents of time over the data
    fixed_share: float = 0.05  # of the full run's time that any run takes
    fails_below: float = 0.0  # fraction at and below which a third of the configurations fail
    fails_at_full: bool = False  # a sixth of the configurations fails on more than half of the data
    peak: float = 0.0  # how much the best stand out from the good: few are within 1 % of the best
    level: float = 2.0  # mean log odds of accuracy on full data
    wiggle: float = 0.05  # deviation of each run's own log odds: what no model can know


TROUBLES = {
    "easy": Trouble(),
    "silent": Trouble(rank_correlation=0.0),
    "contrary": Trouble(rank_correlation=-0.4),
    "fails-small": Trouble(rank_correlation=0.6, fails_below=1 / 16),
    "fails-full": Trouble(rank_correlation=0.6, fails_at_full=True),
    "steep": Trouble(rank_correlation=0.6, growth=(1.3, 2.0), fixed_share=0.0),
    "rare": Trouble(rank_correlation=0.6, peak=1.0, level=0.5),
}


def make_job(trouble: str, seed: int) -> Table:
    """The job with that trouble; another seed is another job of the kind."""
    how, draw = TROUBLES[trouble], np.random.default_rng([seed, list(TROUBLES).index(trouble)])
    configurations = [dict(zip(_GRID, values, strict=True)) for values in itertools.product(*_GRID.values())]
    places = np.array(
        [[list(_GRID[name]).index(c[name]) / (len(_GRID[name]) - 1) for name in _GRID] for c in configurations]
    )
    true, other, work = (_random_function(draw, places) for _ in range(3))
    if how.peak:
        true = _standardised(np.exp(how.peak * true))
    other = _standardised(other - (other @ true) / (true @ true) * true)  # so that the correlation is the one asked for
    growth = how.growth[0] + (how.growth[1] - how.growth[0]) * _ranks(_random_function(draw, places))
    fragile = _random_function(draw, places)
    speed, price = np.array([_SPEED_AND_PRICE[c["vm_type"]] for c in configurations]).T
    count = places[:, -1] * 0 + np.array([c["vm_count"] for c in configurations])
    full_time = 300.0 * np.exp(0.5 * work) / (speed * count**0.7)
    cells = {}
    for s in FRACTIONS:
        rho = 1.0 - (1.0 - how.rank_correlation) * math.log(s) / math.log(FRACTIONS[0])
        mixed = rho * true + math.sqrt(max(1.0 - rho**2, 0.0)) * other
        odds = how.level + 1.2 * mixed + 0.5 * math.log(s) + how.wiggle * draw.normal(size=len(mixed))
        time = (
            full_time
            * (how.fixed_share + (1 - how.fixed_share) * s**growth)
            * np.exp(0.03 * draw.normal(size=len(mixed)))
        )
        for number, configuration in enumerate(configurations):
            failed = (s <= how.fails_below and fragile[number] > 0.43) or (
                how.fails_at_full and s > 0.5 and fragile[number] > 0.97
            )
            metrics = {TIME: float(time[number]), COST: float(time[number] * price[number] * count[number] / 3600.0)}
            if not failed:
                metrics["accuracy"] = float(expit(odds[number]))
            cells[tuple(configuration.items()), s] = Cell(metrics, "error" if failed else None)
    full_costs = [cells[tuple(c.items()), 1.0].metrics[COST] for c in configurations]
    space = Space.from_configs(configurations, price_per_hour=price * count, fractions=FRACTIONS)
    limit = f"cost <= {float(np.quantile(full_costs, 0.5)):.4g}"
    return Table(f"{trouble}-{seed}", trouble, space, configurations, cells, "accuracy", None, (limit,))


def _random_function(draw: np.random.Generator, places: Floats) -> Floats:
    """A sum of broad and narrow bumps and a slope, with mean 0 and deviation 1 over the places."""
    value = places @ draw.normal(size=places.shape[1])
    for width in (0.8, 0.8, 0.8, 0.5, 0.5, 0.5):
        stretch = draw.uniform(0.5, 2.0, places.shape[1])
        squared = ((places - draw.random(places.shape[1])) ** 2 * stretch).sum(axis=1)
        value = value + draw.normal() * np.exp(-0.5 * squared / width**2)
    return _standardised(value)


def _standardised(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std())


def _ranks(values: Floats) -> Floats:
    return np.asarray(values.argsort().argsort() / (len(values) - 1))
