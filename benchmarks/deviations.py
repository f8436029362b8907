"""What each departure of ours from the papers is worth: the method with that one taken back, replayed.

``python -m benchmarks.deviations`` writes docs/results/deviations.md in about twenty CPU minutes; jobs, limits, trials
and seeds are those of the papers' report. What is finished is kept, and a run goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from unittest.mock import patch

import numpy as np
from scipy.special import ndtr

from benchmarks.kept import Columns, Kept, options, run_missing, write_page
from benchmarks.papers.experiments import FIRST_SEED, NEPHELE_TRIALS, TRIMTUNER_SEEDS, TRIMTUNER_TRIALS
from benchmarks.papers.jobs import CNN, RNN, full_data_only, load
from benchmarks.papers.markdown import centre_and_ends, mean_and_deviation, table
from benchmarks.papers.searches import LEAST_ACCURACY, MOST_SECONDS
from trimtuner.arrays import Floats
from trimtuner.decisions.acquisition import Acquisition, ExpectedCost, RegardlessOfLimits
from trimtuner.decisions.entropy import ChanceIncumbentFeasible, DivergenceFromUniform, InformationAboutBest
from trimtuner.decisions.incumbents import FEASIBLE_ENOUGH, BestSurelyFeasible, trust_if_sure
from trimtuner.decisions.lookahead import Lookahead
from trimtuner.decisions.outlook import Outlook
from trimtuner.models.forest import OneThreshold
from trimtuner.models.gaussian_process import GaussianProcess, Sampled
from trimtuner.models.kernels import Matern52, log_basis, log_quadratic_basis
from trimtuner.models.posterior import Identity
from trimtuner.models.trees import PlainTrees
from trimtuner.problem.problem import COST
from trimtuner.study.replay import replay
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import (
    TRIMTUNER_DT,
    TRIMTUNER_DT_AS_PRINTED,
    TRIMTUNER_GP,
    TRIMTUNER_GP_AS_PRINTED,
    eic,
    fabolas_process,
    recipe_named,
)

PAGE = "deviations.md"
LEVEL = 0.9  # of the best feasible accuracy, as in the papers
JOBS = {job.name: job for job in (CNN, RNN)}
AS_IT_STANDS = "accuracy as it stands, not its log odds"
IN_DOLLARS = "improvement in USD, not in their logarithm"


def _taken_back(ours: Recipe, with_their_models: Recipe, printed: Recipe) -> dict[str, Recipe]:
    """Each departure alone, then all of them together."""
    information, chance = InformationAboutBest(), ChanceIncumbentFeasible()
    if_sure = ChanceIncumbentFeasible(trust=trust_if_sure)
    return {
        "as ours": ours,
        "divergence from uniform, not the fall of the entropy": ours.but(
            acquisition=DivergenceFromUniform() * chance / ExpectedCost()
        ),
        "p_opt of accuracy alone, whatever the limits": ours.but(
            acquisition=RegardlessOfLimits(information) * chance / ExpectedCost()
        ),
        "P ≥ 0.9 or nothing": ours.but(
            acquisition=information * if_sure / ExpectedCost(), incumbent=BestSurelyFeasible(FEASIBLE_ENOUGH)
        ),
        "the paper's models": with_their_models,
        "no growth of time with the data before evidence": ours.but(time_growth=0.0),
        AS_IT_STANDS: ours,
        "to the letter: all of these but the scale of accuracy": printed,
    }


@dataclass(frozen=True)
class ImprovementInDollars(Acquisition):
    """EI_c of a cost in USD, as the thesis has it (Eq. 2.8), where ours counts its logarithm.

    For log Y ~ N(μ, σ²): E[max(b - Y, 0)] = b Φ(z) - exp(μ + σ²/2) Φ(z - σ), z = (log b - μ) / σ.
    """

    def score(self, outlook: Outlook) -> Floats:
        """EI × P(feasible); the chance alone until something feasible was measured."""
        if outlook.best_measured is None:
            return outlook.chance_feasible
        mean, variance = outlook.at_candidates(COST)
        log_best, deviation = -outlook.best_measured, np.sqrt(np.maximum(variance, 1e-24))
        z = (log_best - mean) / deviation
        saved = np.exp(log_best) * ndtr(z) - np.exp(mean + variance / 2.0) * ndtr(z - deviation)
        return np.maximum(saved, 0.0) * outlook.chance_feasible


def _in_dollars(method: str) -> dict[str, Recipe]:
    """A method of least cost by its name, and the same with EI in USD."""
    ours = recipe_named(method)
    assert isinstance(ours.acquisition, Lookahead)
    return {"as ours": ours, IN_DOLLARS: ours.but(acquisition=replace(ours.acquisition, gain=ImprovementInDollars()))}


_SAMPLED = GaussianProcess((Matern52(),), Sampled(12, thinning=3))
VARIANTS: Mapping[str, Mapping[str, Recipe]] = {
    "trimtuner-gp": _taken_back(
        TRIMTUNER_GP,
        TRIMTUNER_GP.but(
            surrogate=fabolas_process(log_quadratic_basis), time_surrogate=fabolas_process(log_basis), time_growth=0.0
        ),
        TRIMTUNER_GP_AS_PRINTED,
    ),
    "trimtuner-dt": _taken_back(
        TRIMTUNER_DT,
        TRIMTUNER_DT.but(surrogate=PlainTrees(OneThreshold(), 64), time_growth=0.0),
        TRIMTUNER_DT_AS_PRINTED,
    ),
    "eic": {"as ours": eic(), "12 sampled hyper-parameters, not the likeliest": eic().but(surrogate=_SAMPLED)},
}
LEAST_COST: Mapping[str, Mapping[str, Mapping[str, Recipe]]] = {
    method: {name: _in_dollars(f"{method}:initial_budget={job.initial_budget:g}") for name, job in JOBS.items()}
    for method in ("nephele", "lynceus")
}


@dataclass(frozen=True)
class Search:
    """One search."""

    method: str
    variant: str
    job: str
    seed: int

    def identity(self) -> dict[str, object]:
        """As the file of results knows it: with all that the recipe is made of."""
        recipe = recipe_of(self).described()
        return {"variant": self.variant, "job": self.job, "seed": self.seed, "recipe": recipe}


def recipe_of(search: Search) -> Recipe:
    """What it searches with."""
    return variants_of(search.method, search.job)[search.variant]


def run_search(search: Search) -> Columns:
    """USD to the level for good (for the least cost: to the best), and the share of the best at the end."""
    if search.method in LEAST_COST:
        return _run_least_cost(search)
    job = JOBS[search.job]
    limits = (f"cost <= {job.cost_limit:g}",)
    with _scales(search.variant):
        run = replay(load(job), recipe_of(search), search.seed, TRIMTUNER_TRIALS, constraints=limits, snapshots=True)
    return {"usd": [run.settled(LEVEL)], "share": [run.moments[-1].quality]}


def _run_least_cost(search: Search) -> Columns:
    """As the papers' report runs it (Figs. 6.10 and 6.11)."""
    job, table = JOBS[search.job], load(JOBS[search.job])
    run = replay(
        full_data_only(table) if search.method == "lynceus" else table,
        recipe_of(search),
        search.seed,
        NEPHELE_TRIALS,
        constraints=(f"accuracy >= {LEAST_ACCURACY:g}", f"time <= {MOST_SECONDS:g}"),
        snapshots=False,
        minimize=COST,
        budget=job.budget,
        until_best=True,
    )
    return {"usd": [run.settled(1.0)], "share": [run.moments[-1].quality]}


def _scales(variant: str) -> AbstractContextManager[object]:
    """Which scale a metric has is no part of a recipe; accuracy has limits of its own on none of these jobs."""
    if variant != AS_IT_STANDS:
        return nullcontext()
    return patch("trimtuner.models.posterior.Logit", Identity)


def variants_of(method: str, job: str) -> Mapping[str, Recipe]:
    """Their names and recipes."""
    return LEAST_COST[method][job] if method in LEAST_COST else VARIANTS[method]


def searches(seeds: Sequence[int]) -> list[Search]:
    """All of them, seed by seed."""
    return [
        Search(method, variant, job, seed)
        for seed in seeds
        for method in (*VARIANTS, *LEAST_COST)
        for job in JOBS
        for variant in variants_of(method, job)
    ]


def lines_of(method: str, job: str, kept: Kept, seeds: Sequence[int]) -> list[list[str]]:
    """A line for each variant of a method."""
    lines = []
    for variant in variants_of(method, job):
        found = [one for seed in seeds if (one := kept.find(Search(method, variant, job, seed))) is not None]
        if not found:
            continue
        usd = [inf if one["usd"][0] is None else one["usd"][0] for one in found]
        shares = [share for one in found if (share := one["share"][0]) is not None]
        settled = f"{sum(one < inf for one in usd)} of {len(found)}"
        lines.append([variant, settled, centre_and_ends(usd), mean_and_deviation(shares)])
    return lines


def main() -> None:
    parser = options(__doc__.splitlines()[0], "deviations")
    parser.set_defaults(seeds=TRIMTUNER_SEEDS, first_seed=FIRST_SEED)
    chosen = parser.parse_args()
    seeds, kept = range(chosen.first_seed, chosen.first_seed + chosen.seeds), Kept(chosen.cache)
    if not chosen.report_only:
        run_missing(searches(seeds), run_search, kept, chosen.processes, chosen.again)
    paragraphs = [
        "# What our departures from the papers are worth",
        f"Written by `python -m benchmarks.deviations`: {TRIMTUNER_TRIALS} trials, the papers' limits, seeds "
        f"{seeds[0]} to {seeds[-1]}. Each line is the method with one departure taken back, the last with all of them "
        "that the paper has an equation for. USD to 90 % of the best feasible accuracy for good (median [10th, 90th "
        "percentile]; *never* where a search does not get there), and the share of the best that is recommended at "
        "the end (mean ± standard deviation; scaled down where it breaks the limit, Eq. 7). "
        "`nephele` and `lynceus` look for the least cost with the budgets of the papers' report, and the USD are those "
        "to the best.",
    ]
    for method in (*VARIANTS, *LEAST_COST):
        to = "the best" if method in LEAST_COST else "90 %"
        header = ["", "there for good", f"USD to {to} for good", "share of the best at the end"]
        for job, told in JOBS.items():
            paragraphs += [f"## {method}, {told.title}", table(header, lines_of(method, job, kept, seeds))]
    print(write_page(chosen.out, PAGE, paragraphs))


if __name__ == "__main__":
    main()
