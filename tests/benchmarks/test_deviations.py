"""The benchmark of departures: each variant departs from ours in what its name says, and no more."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.deviations import (
    AS_IT_STANDS,
    IN_DOLLARS,
    LEAST_COST,
    VARIANTS,
    ImprovementInDollars,
    Search,
    _scales,
    lines_of,
)
from trimtuner.models.posterior import Identity, Logit, transform_for
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import recipe_named

PARTS = {
    "as ours": set(),
    "divergence from uniform, not the fall of the entropy": {"acquisition"},
    "p_opt of accuracy alone, whatever the limits": {"acquisition"},
    "P ≥ 0.9 or nothing": {"acquisition", "incumbent"},
    "the paper's models": {"surrogate", "time_surrogate", "time_growth"},
    "no growth of time with the data before evidence": {"time_growth"},
    AS_IT_STANDS: set(),
    "12 sampled hyper-parameters, not the likeliest": {"surrogate"},
}


def differing_parts(one, other):
    return {part.name for part in fields(Recipe) if getattr(one, part.name) != getattr(other, part.name)}


@pytest.mark.parametrize("method", VARIANTS)
def test_a_variant_departs_in_what_it_says(method):
    ours = recipe_named(method)
    for variant, recipe in VARIANTS[method].items():
        if variant.startswith("to the letter"):
            assert recipe == recipe_named(f"{method}:literal=true")
        else:
            assert differing_parts(recipe, ours) <= PARTS[variant], variant
            assert bool(differing_parts(recipe, ours)) == bool(PARTS[variant]), variant


def test_the_scale_of_accuracy_is_exchanged_for_its_variant_only():
    shares = np.array([0.2, 0.9])
    with _scales("as ours"):
        assert isinstance(transform_for(shares, is_positive=False, more_is_better=True), Logit)
    with _scales(AS_IT_STANDS):
        assert isinstance(transform_for(shares, is_positive=False, more_is_better=True), Identity)


def test_a_line_counts_what_settled():
    class Pretended:
        def find(self, search: Search):
            return {"usd": [None if search.seed == 1 else 2.0], "share": [0.5]} if search.seed < 4 else None

    first = lines_of("eic", "cnn", Pretended(), range(9))[0]
    assert first[1] == "3 of 4"
    assert first[3] == "0.500 ± 0"


class OneCandidate:
    """Log cost ~ N(0, 1/4) at one candidate that is feasible, and the best measured at 1 USD."""

    best_measured = 0.0
    chance_feasible = np.array([1.0])

    def at_candidates(self, metric):
        assert metric == "cost"
        return np.array([0.0]), np.array([0.25])


def test_improvement_in_dollars_is_the_mean_of_what_is_saved():
    """Against the mean of max(1 - Y, 0) over the quantiles of log Y ~ N(0, 1/4)."""
    quantiles = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    mean = np.maximum(1.0 - np.exp(0.5 * quantiles), 0.0).mean()
    assert ImprovementInDollars().score(OneCandidate())[0] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("method", LEAST_COST)
@pytest.mark.parametrize("job", ["cnn", "rnn"])
def test_of_the_least_cost_only_the_gain_is_exchanged(method, job):
    ours, theirs = LEAST_COST[method][job]["as ours"], LEAST_COST[method][job][IN_DOLLARS]
    assert differing_parts(ours, theirs) == {"acquisition"}
    assert replace(theirs.acquisition, gain=ours.acquisition.gain) == ours.acquisition
