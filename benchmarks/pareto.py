"""How good the front of accuracy against cost is for the money spent on it, for ours and for others, by replay.

    python -m benchmarks.pareto                    # cnn and rnn, seeds 8000 to 8007: nothing was chosen on these
    python -m benchmarks.pareto --tables digits kernel flights forest --first-seed 0 --seeds 4
    python -m benchmarks.pareto --entrants qnehvi  # where botorch is installed (benchmarks/peers/requirements.txt)

The regret of a front: limits L lie evenly in logarithms between the cheapest and the dearest configuration of the true
front at full data. For each, the best true accuracy within L, less the true accuracy of what is recommended for L; a
recommendation that breaks L in truth, fails, or is missing, counts as accuracy 0. The mean over the limits. The tables'
own limits are left out: the whole curve is wanted. Money is in mean full-data runs; a trial that passes a mark counts
to the next, and a search of 60 trials ends before the last marks if it spent less. Others test on full data only, for
they know no fractions, and recommend what they measured.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

import trimtuner as tt
from benchmarks.peers.job import Job, Numbers, Outcome, Proposal
from benchmarks.peers.peer import FULL, Record
from benchmarks.peers.search import Loop
from trimtuner.arrays import Floats
from trimtuner.decisions.pareto import undominated
from trimtuner.engines.table import ConfigurationKey, Table
from trimtuner.errors import NoAnswer, SearchOver
from trimtuner.problem.problem import COST
from trimtuner.study.replay import tell_from_table

MARKS = (1.0, 2.0, 4.0, 8.0)  # mean full-data runs
LIMITS = 25
MOST_TRIALS = 60
FIRST_SEED, SEEDS = 8000, 8
STARTUP_TRIALS = 5  # of Optuna's samplers, instead of ten: in their favour
POPULATION = 10  # of NSGA-II, instead of 50, which would be random search to the end

Curve: TypeAlias = Sequence[tuple[float, ConfigurationKey]]  # price and configuration, the cheapest first
Moment: TypeAlias = tuple[float, Curve]  # USD spent, and what is recommended then
Entrant: TypeAlias = Callable[[Table, int], Iterator[Moment]]  # a table and a seed


@dataclass(frozen=True)
class Truth:
    """The true cost and accuracy of every configuration that runs on all of the data."""

    points: Mapping[ConfigurationKey, tuple[float, float]]

    @classmethod
    def of(cls, table: Table) -> Truth:
        full = {key: cell for (key, fraction), cell in table.cells.items() if fraction == FULL and cell.failed is None}
        return cls({key: (cell.metrics[COST], cell.metrics[table.maximize or ""]) for key, cell in full.items()})

    def limits(self) -> list[float]:
        """From the cheapest on the true front to the dearest, evenly in logarithms."""
        costs, accuracies = (np.array(one) for one in zip(*self.points.values(), strict=True))
        front = costs[undominated(costs, accuracies, np.ones(len(costs), dtype=bool))]
        return [float(one) for one in np.geomspace(front[0], front[-1], LIMITS) * (1 + 1e-9)]

    def best_within(self, limit: float) -> float:
        return max(accuracy for cost, accuracy in self.points.values() if cost <= limit)

    def regret(self, curve: Curve) -> float:
        return float(np.mean([self.best_within(one) - self._reached(curve, one) for one in self.limits()]))

    def _reached(self, curve: Curve, limit: float) -> float:
        named = [key for price, key in curve if price <= limit]
        cost, accuracy = self.points.get(named[-1], (math.inf, 0.0)) if named else (math.inf, 0.0)
        return accuracy if cost <= limit else 0.0


def search_ours(method: str) -> Entrant:
    """A method of the package."""

    def search(table: Table, seed: int) -> Iterator[Moment]:
        study = tt.Study(table.space, maximize=table.maximize, minimize=COST, method=method, seed=seed)
        for _ in range(MOST_TRIALS):
            try:
                trial = study.ask()
            except SearchOver:
                return
            tell_from_table(study, table, trial)
            yield study.spent, _curve_of(study)

    return search


def _curve_of(study: tt.Study) -> Curve:
    try:
        front = study.front()
    except NoAnswer:
        return ()
    return [(price, tuple(point.config.items())) for price, point in zip(front.prices, front, strict=True)]


class OptunaFront:
    """Optuna with two goals, accuracy and the logarithm of the cost, every trial on all of the data.

    Parameters are told as in ``benchmarks.peers.optuna_peers``, and a failure as the worst of both seen so far.
    """

    def __init__(self, job: Job, record: Record, sampler: object) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._job, self._record = job, record
        self._distributions = {
            one.name: FloatDistribution(0.0, 1.0) if isinstance(one, Numbers) else CategoricalDistribution(one.values)
            for one in job.parameters
        }
        self._study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def ask(self) -> Proposal | None:
        self._open = self._study.ask(self._distributions)
        return self._job.nearest(self._open.params), FULL

    def tell(self, outcome: Outcome) -> None:
        self._study.tell(self._open, self._values(outcome))

    def learn(self, outcome: Outcome) -> None:
        import optuna

        self._study.add_trial(
            optuna.trial.create_trial(
                params=self._job.wish_for(outcome.position),
                distributions=self._distributions,
                values=self._values(outcome),
            )
        )

    def recommend(self) -> int | None:
        return self._record.best_at_full_data()

    def _values(self, outcome: Outcome) -> list[float]:
        if outcome.accuracy is not None:
            return [outcome.accuracy, math.log(outcome.cost)]
        ran = [one for one in self._record.at(FULL) if one.accuracy is not None] or [outcome]
        return [min(one.accuracy or 0.0 for one in ran), math.log(max(one.cost for one in ran))]


def search_optuna(sampler_of: Callable[[int], object]) -> Entrant:
    """One of Optuna's samplers."""
    return lambda table, seed: _search_peer(table, seed, lambda job, record: OptunaFront(job, record, sampler_of(seed)))


def _tpe(seed: int) -> object:
    import optuna

    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS)


def _nsga2(seed: int) -> object:
    import optuna

    return optuna.samplers.NSGAIISampler(seed=seed, population_size=POPULATION)


class HypervolumeImprovement:
    """BoTorch's log noisy expected hypervolume improvement over all configurations, never one twice.

    Rows, models and their fits are those of ``benchmarks.peers.botorch_peers``; three random trials come first. The
    reference point, as BoTorch advises, lies a tenth of the range seen below the worst on the front in each goal.
    """

    def __init__(self, job: Job, record: Record, seed: int) -> None:
        import torch

        from benchmarks.peers.botorch_peers import FIRST_TRIALS, Fitter

        torch.manual_seed(seed)
        self._job, self._record, self._fitter = job, record, Fitter(every=3)
        self._rows = torch.tensor(job.features)
        self._first = [int(one) for one in np.random.default_rng(seed).permutation(job.count)[:FIRST_TRIALS]]

    def ask(self) -> Proposal | None:
        seen = self._record.at(FULL)
        if len(seen) < len(self._first):
            return self._first[len(seen)], FULL
        tested = {one.position for one in seen}
        untested = [one for one in range(self._job.count) if one not in tested]
        return (untested[self._best(seen, untested)], FULL) if untested else None

    def tell(self, outcome: Outcome) -> None:
        """All is in the record."""

    learn = tell

    def recommend(self) -> int | None:
        return self._record.best_at_full_data()

    def _best(self, seen: Sequence[Outcome], untested: Sequence[int]) -> int:
        import torch
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.models import SingleTaskGP
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated

        ran = [one for one in seen if one.accuracy is not None]
        if not ran:
            return 0
        rows = self._rows[[one.position for one in ran]]
        goals = torch.tensor([[one.accuracy, -math.log(one.cost)] for one in ran])
        model = self._fitter.fit(SingleTaskGP(rows, goals))
        with torch.no_grad():
            reference = infer_reference_point(goals[is_non_dominated(goals)])
            acquisition = qLogNoisyExpectedHypervolumeImprovement(model, reference, rows, prune_baseline=True)
            return int(acquisition(self._rows[list(untested)].unsqueeze(-2)).argmax())


def search_qnehvi(table: Table, seed: int) -> Iterator[Moment]:
    """BoTorch."""
    return _search_peer(table, seed, lambda job, record: HypervolumeImprovement(job, record, seed))


Peer: TypeAlias = OptunaFront | HypervolumeImprovement


def _search_peer(table: Table, seed: int, make: Callable[[Job, Record], Peer]) -> Iterator[Moment]:
    job = Job(replace(table, constraints=()))
    record = Record(job)
    loop = Loop(job, record, make(job, record), np.random.default_rng([seed, 3]))
    spent = 0.0
    for number, outcome in enumerate(loop.new_outcomes(), start=1):
        spent += outcome.cost
        yield spent, _measured_curve(job, record)
        if number >= MOST_TRIALS:
            return


def _measured_curve(job: Job, record: Record) -> Curve:
    ran = [one for one in record.at(FULL) if one.accuracy is not None]
    costs, accuracies = np.array([one.cost for one in ran]), np.array([one.accuracy for one in ran], dtype=float)
    front = undominated(costs, accuracies, np.ones(len(ran), dtype=bool))
    return [(ran[place].cost, tuple(job.configuration(ran[place].position).items())) for place in front.tolist()]


ENTRANTS: Mapping[str, Entrant] = {
    "trimtuner": search_ours("trimtuner"),
    "trimtuner-dt": search_ours("trimtuner-dt"),
    "eic-usd": search_ours("eic-usd"),
    "random": search_ours("random"),
    "optuna-tpe": search_optuna(_tpe),
    "optuna-nsga2": search_optuna(_nsga2),
    "qnehvi": search_qnehvi,
}
USUAL = ("trimtuner", "random", "optuna-tpe", "optuna-nsga2")


def regrets(table: Table, entrant: Entrant, seed: int) -> list[float]:
    """The regret of what was recommended when each mark was reached."""
    truth, costs = Truth.of(table), table.full_run_costs()
    unit = sum(costs) / len(costs)
    moments: list[Moment] = [(0.0, ())]
    for moment in entrant(table, seed):
        moments.append(moment)
        if moment[0] > MARKS[-1] * unit:
            break
    ends = [later for _, (later, _) in pairwise(moments)] + [math.inf]
    curves = [next(curve for (_, curve), end in zip(moments, ends, strict=True) if end > mark * unit) for mark in MARKS]
    return [truth.regret(curve) for curve in curves]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["cnn", "rnn"])
    parser.add_argument("--entrants", nargs="+", default=list(USUAL), choices=ENTRANTS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    chosen = parser.parse_args()
    print(f"| table | method | {' | '.join(f'{mark:g} runs' for mark in MARKS)} |")
    print(f"|---|---|{'---|' * len(MARKS)}")
    for name in chosen.tables:
        table = Table.find(name)
        for entrant in chosen.entrants:
            found = []
            for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
                found.append(regrets(table, ENTRANTS[entrant], seed))
                print(name, entrant, seed, *(f"{one:.3f}" for one in found[-1]), file=sys.stderr, flush=True)
            print(f"| {name} | {entrant} | {' | '.join(cells_of(np.array(found)))} |", flush=True)


def cells_of(found: Floats) -> list[str]:
    """Mean over the seeds and its standard error, at each mark."""
    errors = found.std(axis=0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else np.zeros(len(MARKS))
    return [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(found.mean(axis=0), errors, strict=True)]


if __name__ == "__main__":
    main()
