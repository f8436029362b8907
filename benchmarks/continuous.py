"""Jobs without a table: every parameter is a number between bounds, and every tool proposes what it likes.

``python -m benchmarks.continuous`` (with the packages of ``make peers``) replays the public jobs, interpolated in all
parameters at once: log odds of accuracy and the logarithm of time on each share of the data, by radial basis functions
that grow in proportion to the distance, through every configuration of the table. So they are smoother than a training,
and the best configurations lie at those of the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.special import expit, logit
from scipy.stats import qmc

import trimtuner as tt
from benchmarks.kept import Columns, Kept, options, run_missing, table_digest, write_page
from benchmarks.papers.searches import Trace
from benchmarks.peers.entrants import entrant_named
from benchmarks.peers.job import Job, Numbers, Outcome, Proposal
from benchmarks.peers.peer import MakePeer
from benchmarks.peers.ratios import each_tool, ratios
from benchmarks.peers.report import grouped, summary
from benchmarks.peers.search import BUDGET_UNITS, play
from benchmarks.peers.store import Search, read_finished
from benchmarks.tables.public_jobs import public_jobs, read_public_job
from benchmarks.variants import PLAIN
from trimtuner.arrays import Floats
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import OVER_LIMIT
from trimtuner.problem.problem import COST, OVERRUN, TIME, Constraint
from trimtuner.study.replay import ReplayMoment, ReplayRun

NAME, PAGE = "continuous", "continuous.md"
FIRST_SEED, SEEDS = 7200, 4  # one search of these was looked at: the report says which
TOOLS = ("trimtuner", "dehb", "smac-mf", "eic", "botorch", "optuna-tpe")
SECONDS_PER_HOUR = 3600.0  # a public job costs 1 USD an hour
LOOKED_AT, CLOSELY = 2**15, 40  # configurations to find the best among, and those that its like is looked for around
REACHES = (0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Smooth:
    """A public job between its measurements. A place is a row of numbers from 0 to 1, one for each parameter."""

    name: str

    @cached_property
    def parameters(self) -> tuple[Numbers, ...]:
        """Each with its bounds for values."""
        return tuple(Numbers(one.name, (one.values[0], one.values[-1])) for one in self._listed.parameters)

    @cached_property
    def whole(self) -> frozenset[str]:
        """The names of those that are whole numbers."""
        first = self._listed.configuration(0)
        return frozenset(one.name for one in self.parameters if isinstance(first[one.name], int))

    @cached_property
    def fractions(self) -> tuple[float, ...]:
        return self._listed.fractions

    @cached_property
    def limit(self) -> float:
        """USD of a run on all of the data."""
        return self._listed.constraints[0].limit

    @cached_property
    def unit(self) -> float:
        """USD of a mean run on all of the data."""
        return float(self._measured(self._even)[1][:, -1].mean())

    @cached_property
    def best(self) -> float:
        """About the best accuracy within the limit: of many spread evenly, then of many near the best of them."""
        generator = np.random.default_rng(0)
        best = self._best_of(np.vstack([self._listed.features, self._even]))
        for reach in REACHES:
            steps = generator.normal(size=(100, *best.shape)) * reach * (generator.random((100, *best.shape)) < 0.5)
            best = self._best_of(np.vstack([best, np.clip(best + steps, 0.0, 1.0).reshape(-1, best.shape[1])]))
        return float(self._measured(best)[0][:, -1].max())

    def configuration(self, place: Sequence[float]) -> dict[str, Value]:
        """Numbers between the bounds, whole ones where those of the table are."""
        found: dict[str, Value] = {}
        for one, share in zip(self.parameters, place, strict=True):
            low, high = one.values
            value = low * (high / low) ** share if one.is_log else low + share * (high - low)
            found[one.name] = round(value) if one.name in self.whole else value
        return found

    def place(self, configuration: Mapping[str, Value]) -> list[float]:
        """Where it lies."""
        found = []
        for one in self.parameters:
            (low, high), value = one.values, float(configuration[one.name])
            found.append(math.log(value / low) / math.log(high / low) if one.is_log else (value - low) / (high - low))
        return found

    def run(self, configuration: Mapping[str, Value], fraction: float) -> tuple[float, float]:
        """Accuracy and USD."""
        accuracy, cost = self._measured(np.array([self.place(configuration)]))
        column = self.fractions.index(fraction)
        return float(accuracy[0, column]), float(cost[0, column])

    def quality(self, configuration: Mapping[str, Value]) -> float:
        """Accuracy_C as a share of the best; a tool may find a little better than that."""
        accuracy, cost = self.run(configuration, 1.0)
        return accuracy / self.best * min(1.0, self.limit / cost)

    def is_feasible(self, configuration: Mapping[str, Value]) -> bool:
        return self.run(configuration, 1.0)[1] <= self.limit

    @cached_property
    def _listed(self) -> Job:
        return Job(read_public_job(self.name))

    @cached_property
    def _even(self) -> Floats:
        return qmc.Sobol(len(self.parameters), seed=0).random(LOOKED_AT)

    @cached_property
    def _interpolated(self) -> RBFInterpolator:
        job, shares = self._listed, self.fractions
        cells = [[job.measure((position, share)) for share in shares] for position in range(job.count)]
        accuracy = np.array([[cell.accuracy for cell in row] for row in cells], dtype=float)
        cost = np.array([[cell.cost for cell in row] for row in cells])
        targets = np.hstack([logit(np.clip(accuracy, 1e-4, 1.0 - 1e-4)), np.log(cost)])
        return RBFInterpolator(job.features, targets, kernel="linear")

    def _measured(self, places: Floats) -> tuple[Floats, Floats]:
        """Accuracy and USD, a column for each share."""
        found = self._interpolated(places)
        return expit(found[:, : len(self.fractions)]), np.exp(found[:, len(self.fractions) :])

    def _best_of(self, places: Floats) -> Floats:
        accuracy, cost = self._measured(places)
        within = places[cost[:, -1] <= self.limit]
        return within[np.argsort(-accuracy[cost[:, -1] <= self.limit, -1])[:CLOSELY]]


@cache
def smooth(name: str) -> Smooth:
    """One in each process: to find its best takes some seconds."""
    return Smooth(name)


class FreeJob(Job):
    """A smooth job as a peer sees it: whatever it wishes for is a configuration."""

    def __init__(self, of: Smooth) -> None:
        self._of = of
        self._places: list[list[float]] = []
        self._known: dict[tuple[Value, ...], int] = {}
        self.fractions, self.parameters = of.fractions, of.parameters
        self.constraints = (Constraint.parse(f"cost <= {of.limit!r}"),)

    @property
    def count(self) -> int:
        return len(self._places)

    @property
    def features(self) -> Floats:
        """Of all that was wished for so far."""
        return np.array(self._places)

    def configuration(self, position: int) -> dict[str, Value]:
        return self._of.configuration(self._places[position])

    def measure(self, proposal: Proposal) -> Outcome:
        position, fraction = proposal
        accuracy, cost = self._of.run(self.configuration(position), fraction)
        return Outcome(position, fraction, accuracy, {COST: cost, TIME: cost * SECONDS_PER_HOUR}, cost)

    def charge(self, outcome: Outcome) -> float:
        """What the trial is charged: no more than if it had been stopped, well over a limit, as ours are."""
        return min(outcome.cost, OVERRUN * self._of.limit)

    def nearest(self, wish: Mapping[str, str | float]) -> int:
        """The wish itself, with whole numbers where they must be; what was wished for before is the same again."""
        configuration = self._of.configuration([float(wish[one.name]) for one in self.parameters])
        key = tuple(configuration.values())
        if key not in self._known:
            self._known[key] = len(self._places)
            self._places.append(self._of.place(configuration))
        return self._known[key]


def run_one(search: Search) -> Columns:
    """The search, in columns; money in units."""
    of = smooth(search.table)
    if entrant_named(search.peer).maker is None:
        run = search_with(search.peer, of, search.seed, search.trials)
    else:
        run = play(FreeJob(of), of, of.unit, _maker(search.peer), search.seed, search.trials)
    trace = Trace.of(run.moments).as_plain()
    return trace | {"spent": [float(f"{(usd or 0.0) / of.unit:.6g}") for usd in trace["spent"]]}


def _maker(peer: str) -> MakePeer:
    if peer == "botorch":
        from benchmarks.peers.botorch_peers import ImprovementAnywhere

        return ImprovementAnywhere
    entrant = entrant_named(peer)
    return getattr(import_module(f"benchmarks.peers.{entrant.module}"), str(entrant.maker))


def search_with(method: str, of: Smooth, seed: int, trials: int) -> ReplayRun:
    """By a method of ours; runs of the default are stopped over a limit, those of others only charged as if."""
    study = tt.Study(
        tt.Space({one.name: _parameter(one, of) for one in of.parameters}, fractions=list(of.fractions)),
        maximize="accuracy",
        constraints=[f"time <= {of.limit * SECONDS_PER_HOUR!r}"],
        method=method,
        seed=seed,
    )
    moments: list[ReplayMoment] = []
    spent, most = 0.0, OVERRUN * of.limit
    started = time.process_time()

    def tell(trial: tt.Trial) -> tt.Trial:
        nonlocal spent
        accuracy, cost = of.run(trial.config, trial.fraction)
        if cost > most and method == "trimtuner":
            study.tell(trial, failed=OVER_LIMIT, time=most * SECONDS_PER_HOUR)
        else:
            study.tell(trial, accuracy=accuracy, time=cost * SECONDS_PER_HOUR)
        spent += min(cost, most)
        return trial

    for trial in study.in_turn(tell, trials):
        config = study.recommend().config if study.history.measurements else {}
        asking = time.process_time() - started
        quality = of.quality(config) if config else 0.0
        is_feasible = bool(config) and of.is_feasible(config)
        moments.append(ReplayMoment(spent, quality, config, 1.0, trial.fraction, 0.0, asking, 0.0, is_feasible))
        if spent >= BUDGET_UNITS * of.unit:
            break
        started = time.process_time()
    return ReplayRun(seed, tuple(moments))


def _parameter(one: Numbers, of: Smooth) -> tt.Int | tt.Float:
    low, high = one.values
    scale = "log" if one.is_log else "linear"
    return tt.Int(int(low), int(high), scale=scale) if one.name in of.whole else tt.Float(low, high, scale=scale)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__.splitlines()[0], NAME)
    parser.set_defaults(processes=2, first_seed=FIRST_SEED, seeds=SEEDS)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS, metavar="T", help=", ".join(TOOLS))
    chosen = parser.parse_args(arguments)
    names = chosen.tables or public_jobs()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if not chosen.report_only:
        searches = [
            Search(name, PLAIN, tool, seed, chosen.trials, table_digest(name), entrant_named(tool).version())
            for seed in seeds
            for name in names
            for tool in chosen.tools
        ]
        run_missing(searches, run_one, Kept(chosen.cache), chosen.processes, chosen.again)
    finished = [one for one in read_finished(chosen.cache) if one.search.seed in seeds]
    jobs = {name: groups for (name, _), groups in grouped(finished).items()}
    text = (
        f"Written by `python -m benchmarks.continuous` ({len(finished)} searches, seeds {seeds[0]} to {seeds[-1]}). "
        "The [public jobs](peers.md) between their measurements: accuracy and time are interpolated in all parameters "
        "at once, through the 240 configurations of each, and every tool proposes any numbers between the bounds; "
        "elsewhere all of them choose from a table. Budget, money, limits and what is charged are as there. Of "
        "ours, [decision 57](../decisions/0057-nothing-to-climb.md) was found on one of these searches (`rpart1485`, "
        "seed 7200) and held against four of these jobs with other seeds; nothing else was chosen on them, and nothing "
        "for the others. They are set up as there, BoTorch with its own "
        "optimiser. *Tuned on* and *kept aside* is said of their tables. The best is that of "
        f"{LOOKED_AT:,} configurations and of many near the best of them."
    )
    paragraphs = ["# Numbers between bounds", text, *each_tool(jobs), *ratios(jobs), *summary(jobs)]
    print(write_page(chosen.out, PAGE, paragraphs))


if __name__ == "__main__":
    main()
