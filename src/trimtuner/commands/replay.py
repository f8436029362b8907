"""What ``trimtuner replay`` runs and prints."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from trimtuner.engines.table import Table, known_tables
from trimtuner.study.replay import LEVELS, ReplayRun, replay
from trimtuner.tuning.recipes import recipe_named

# Exploration money, in mean full-data runs, at which the quality so far is reported.
CURVE_RUNS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)


@dataclass(frozen=True)
class ReplayRequest:
    """Which searches of which table to run."""

    table: str
    methods: tuple[str, ...]
    first_seed: int
    seeds: int
    trials: int
    budget_runs: float | None
    constraints: Sequence[str] | None
    snapshots: bool | None  # None: as the table's description says
    jobs: int


def describe_tables() -> list[dict[str, object]]:
    """Every table that can be found by name."""
    found = [(name, Table.find(name)) for name in known_tables()]
    return [
        {
            "name": name,
            "title": table.title,
            "configurations": len(table.configurations),
            "fractions": len(table.space.fractions),
        }
        for name, table in found
    ]


def run_replays(request: ReplayRequest, advance: Callable[[], None]) -> dict[str, list[ReplayRun]]:
    """All searches, grouped by method; each on one thread, so that CPU seconds mean the same everywhere."""
    for method in request.methods:
        recipe_named(method)
    Table.find(request.table)
    seeds = range(request.first_seed, request.first_seed + request.seeds)
    tasks = [(request, method, seed) for method in request.methods for seed in seeds]
    found: dict[str, list[ReplayRun]] = {method: [] for method in request.methods}
    with ProcessPoolExecutor(request.jobs) as pool:
        runs = map(_run_one, tasks) if request.jobs == 1 else pool.map(_run_one, tasks)
        for (_, method, _), run in zip(tasks, runs, strict=True):
            found[method].append(run)
            advance()
    return found


def _run_one(task: tuple[ReplayRequest, str, int]) -> ReplayRun:
    one, method, seed = task
    return replay(Table.find(one.table), method, seed, one.trials, one.budget_runs, one.constraints, one.snapshots)


@dataclass(frozen=True)
class Spread:
    """Statistics of a figure over seeds."""

    mean: float
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Nothing where there is nothing to summarise."""
        if not values:
            return None
        return cls(statistics.fmean(values), statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class LevelFigures:
    """How the searches got to one share of the best feasible value; money in USD."""

    level: float
    settled: int  # searches whose recommendation stayed that good to the end
    searches: int
    settled_usd: Spread | None
    first_hit_usd: Spread | None
    changes_after: Spread | None


@dataclass(frozen=True)
class MethodFigures:
    """Everything that the searches with one method came to."""

    method: str
    levels: tuple[LevelFigures, ...]
    quality_at_runs: Mapping[str, float]  # money spent, in mean full-data runs: Accuracy_C as a share of the best
    final_quality: float
    spent_usd: float
    ask_cpu_seconds: Spread | None
    runs: Sequence[ReplayRun]


@dataclass(frozen=True)
class Summary:
    """What ``replay`` prints: for a person, or as JSON."""

    table: str
    title: str
    constraints: Sequence[str]
    mean_full_run_usd: float
    trials: int
    first_seed: int
    seeds: int
    methods: Sequence[MethodFigures]

    def as_json(self) -> dict[str, object]:
        """The summary in plain values, for scripts."""
        return asdict(self)


def summarise(request: ReplayRequest, results: Mapping[str, list[ReplayRun]]) -> Summary:
    """Figures over seeds for each method, and every search in full."""
    table = Table.find(request.table)
    costs = table.full_run_costs()
    unit = sum(costs) / len(costs)
    return Summary(
        table=table.name,
        title=table.title,
        constraints=table.constraints if request.constraints is None else tuple(request.constraints),
        mean_full_run_usd=unit,
        trials=request.trials,
        first_seed=request.first_seed,
        seeds=request.seeds,
        methods=[_figures(method, runs, unit) for method, runs in results.items()],
    )


def _figures(method: str, runs: Sequence[ReplayRun], unit: float) -> MethodFigures:
    return MethodFigures(
        method=method,
        levels=tuple(_level_figures(runs, level) for level in LEVELS),
        quality_at_runs={
            f"{spent:g}": statistics.fmean(run.quality_at(spent * unit) for run in runs) for spent in CURVE_RUNS
        },
        final_quality=statistics.fmean(run.moments[-1].quality for run in runs),
        spent_usd=statistics.fmean(run.moments[-1].spent for run in runs),
        ask_cpu_seconds=Spread.of([moment.ask_seconds for run in runs for moment in run.moments]),
        runs=runs,
    )


def _level_figures(runs: Sequence[ReplayRun], level: float) -> LevelFigures:
    settled = [cost for run in runs if (cost := run.settled(level)) is not None]
    hits = [cost for run in runs if (cost := run.first_hit(level)) is not None]
    changes = [float(count) for run in runs if (count := run.changes_after(level)) is not None]
    return LevelFigures(level, len(settled), len(runs), Spread.of(settled), Spread.of(hits), Spread.of(changes))


def text_of(summary: Summary) -> str:
    """The summary for a person."""
    last = summary.first_seed + summary.seeds - 1
    limits = ", ".join(summary.constraints) or "no constraint"
    lines = [
        summary.title,
        f"{limits}; one full-data run costs {summary.mean_full_run_usd:.4g} USD on average; "
        f"seeds {summary.first_seed} to {last}, {summary.trials} trials at most",
        "",
        "USD until the recommendation is at a share of the best feasible value, for good or for the first time",
        f"{'method':<14}{'level':>6}{'settled':>9}{'mean':>9}{'median':>9}{'most':>9}"
        f"{'first: median':>15}{'changes':>9}",
    ]
    lines += [_level_line(one.method, level) for one in summary.methods for level in one.levels]
    lines += ["", "Quality of the recommendation (Accuracy_C as a share of the best) by money spent, in full-data runs"]
    lines.append(f"{'method':<14}" + "".join(f"{runs:>7g}" for runs in CURVE_RUNS))
    for one in summary.methods:
        lines.append(f"{one.method:<14}" + "".join(f"{share:>7.3f}" for share in one.quality_at_runs.values()))
    lines.append("")
    lines += [
        f"{one.method}: {_figure(one.ask_cpu_seconds, 'mean', '.3f')} CPU seconds per ask "
        f"(most {_figure(one.ask_cpu_seconds, 'most', '.3f')}); "
        f"{one.spent_usd:.4g} USD spent, final quality {one.final_quality:.3f}"
        for one in summary.methods
    ]
    return "\n".join(lines)


def _level_line(method: str, figures: LevelFigures) -> str:
    seeds = f"{figures.settled}/{figures.searches}"
    return (
        f"{method:<14}{figures.level:>6.0%}{seeds:>9}{_figure(figures.settled_usd, 'mean', '.3g'):>9}"
        f"{_figure(figures.settled_usd, 'median', '.3g'):>9}{_figure(figures.settled_usd, 'most', '.3g'):>9}"
        f"{_figure(figures.first_hit_usd, 'median', '.3g'):>15}{_figure(figures.changes_after, 'mean', '.1f'):>9}"
    )


def _figure(spread: Spread | None, statistic: str, form: str) -> str:
    return "never" if spread is None else format(getattr(spread, statistic), form)


@contextmanager
def progress_on_terminal(total: int) -> Iterator[Callable[[], None]]:
    """A counter on standard error where that is a terminal; silence elsewhere."""
    done = 0
    shown = sys.stderr.isatty()

    def advance() -> None:
        nonlocal done
        done += 1
        if shown:
            print(f"\r{done} of {total} searches", end="", file=sys.stderr, flush=True)

    yield advance
    if shown:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
