"""What a study saves that learns from an earlier one, and what it loses when the earlier one misleads.

Run from the repository's root: ``python -m benchmarks.warm_start cnn rnn --first-seed 9100``. For each seed the
same search is made cold and warm. The earlier study is a search of its own, with another seed, on a table that differs:

``prices``    every VM type has another price, by up to a factor of two either way
``limit``     the limit on cost is the tight one of ``benchmarks.variants``
``half``      it had half of the data: what it took for all of it was 1/2
``noise``     its accuracies were measured on another day (cnn and rnn)
``related``   another job with the same parameters (cnn for rnn, kernel for linear; of public jobs any of the family)
``inverted``  the same job with its accuracies turned upside down: the best was the worst; times are true
``permuted``  the same job with its configurations shuffled: neither accuracies nor times are true
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np

from benchmarks.kept import load_table
from benchmarks.tables.public_jobs import family_of, public_jobs
from benchmarks.variants import disturb, tighten
from trimtuner.engines.table import Cell, Table
from trimtuner.errors import InputError
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import Measurement, Trial
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.space import Space
from trimtuner.study.replay import replay, tell_from_table
from trimtuner.study.study import Study
from trimtuner.tuning.recipes import TRIMTUNER

UNITS = 20.0  # mean full runs, at which a search is cut off; also what one that does not settle counts
TRIALS = 40
EARLIER_TRIALS = 30
EARLIER_SEEDS = 50_000  # seeds of earlier studies are those of the new ones and this
LEVELS = (0.95, 0.99)
RELATED = {"cnn": "rnn", "rnn": "cnn", "kernel": "linear", "linear": "kernel"}


def reprice(table: Table, seed: int) -> Table:
    """Last month's prices: every VM type at a price of its own, between half and twice what it is now."""
    draw = np.random.default_rng([seed, 3])
    types = sorted({str(one.get("vm_type")) for one in table.configurations})
    factors = {vm_type: math.exp(draw.uniform(-math.log(2.0), math.log(2.0))) for vm_type in types}
    prices = [
        (table.space.price_per_hour(dict(one)) or 0.0) * factors[str(one.get("vm_type"))]
        for one in table.configurations
    ]
    by_key = {tuple(one.items()): price for one, price in zip(table.configurations, prices, strict=True)}
    cells = {
        place: replace(cell, metrics={**cell.metrics, COST: cell.metrics[TIME] * by_key[place[0]] / 3600.0})
        for place, cell in table.cells.items()
    }
    space = Space.from_configs(table.configurations, price_per_hour=prices, fractions=table.space.fractions)
    return replace(table, space=space, cells=cells)


def halve_the_data(table: Table, seed: int) -> Table:  # noqa: ARG001 (every change has the same form)
    """As if there had been half of the data: a fraction of it is twice the fraction of all."""
    kept = tuple(2.0 * fraction for fraction in table.space.fractions if fraction <= 0.5)
    cells = {(key, 2.0 * fraction): cell for (key, fraction), cell in table.cells.items() if fraction <= 0.5}
    return replace(table, space=table.space.with_fractions(kept), cells=cells)


def invert(table: Table, seed: int) -> Table:  # noqa: ARG001
    """Accuracies upside down, at each fraction between the same ends."""
    metric = table.maximize or ""
    ends: dict[float, list[float]] = defaultdict(list)
    for (_, fraction), cell in table.cells.items():
        if metric in cell.metrics:
            ends[fraction].append(cell.metrics[metric])

    def inverted(cell: Cell, fraction: float) -> Cell:
        if metric not in cell.metrics:
            return cell
        value = min(ends[fraction]) + max(ends[fraction]) - cell.metrics[metric]
        return replace(cell, metrics={**cell.metrics, metric: value})

    return replace(table, cells={place: inverted(cell, place[1]) for place, cell in table.cells.items()})


def permute(table: Table, seed: int) -> Table:
    """Every configuration with what another one measured; its price is its own."""
    order = np.random.default_rng([seed, 4]).permutation(len(table.configurations)).tolist()
    cells: dict[tuple[tuple[tuple[str, object], ...], float], Cell] = {}
    for position, configuration in enumerate(table.configurations):
        price = table.space.price_per_hour(dict(configuration)) or 0.0
        for fraction in table.space.fractions:
            cell = table.cell(table.configurations[order[position]], fraction)
            metrics = {**cell.metrics, COST: cell.metrics[TIME] * price / 3600.0}
            cells[tuple(configuration.items()), fraction] = replace(cell, metrics=metrics)
    return replace(table, cells=cells)  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[Table, int], Table]] = {
    "prices": reprice,
    "limit": tighten,
    "half": halve_the_data,
    "noise": disturb,
    "inverted": invert,
    "permuted": permute,
}
KINDS = ("prices", "limit", "half", "noise", "related", "inverted", "permuted")


def earlier_study(name: str, kind: str, seed: int) -> Earlier:
    """A search of the table in that form, as a new study would learn from it."""
    if kind == "related":
        related = related_to(name, seed)
        return _of_trials(load_table(related), _plain_trials(related, seed))
    changed = CHANGES[kind](load_table(name), seed)
    # What was measured otherwise, was measured at the trials of a search of the table as it is.
    trials = _plain_trials(name, seed) if kind in ("noise", "inverted", "permuted") else _trials_of(changed, seed)
    return _of_trials(changed, trials)


def related_to(name: str, seed: int) -> str:
    """A job with the same parameters: of the public ones, another one of the family for each seed."""
    if name in RELATED:
        return RELATED[name]
    family = [one for one in public_jobs() if family_of(one) == family_of(name)]
    return family[(family.index(name) + 1 + seed % (len(family) - 1)) % len(family)]


@cache
def _plain_trials(name: str, seed: int) -> tuple[Trial, ...]:
    return _trials_of(load_table(name), seed)


def _trials_of(table: Table, seed: int) -> tuple[Trial, ...]:
    study = Study(
        table.space.with_snapshots(False),
        maximize=table.maximize,
        constraints=table.constraints,
        seed=EARLIER_SEEDS + seed,
    )
    for _ in range(EARLIER_TRIALS):
        tell_from_table(study, table, study.ask())
    return tuple(outcome.trial for outcome in study.history.outcomes)


def _of_trials(table: Table, trials: Sequence[Trial]) -> Earlier:
    cells = [(trial, table.cell(trial.config, trial.fraction)) for trial in trials]
    ran = [Measurement(trial.config, trial.fraction, cell.metrics) for trial, cell in cells if cell.failed is None]
    return Earlier.of(table.name, ran, table.space)


def settled(name: str, kind: str, seed: int) -> tuple[float, ...]:
    """Full runs until the recommendation was at each level for good; ``kind`` is ``cold``, or the earlier study's."""
    table = load_table(name)
    recipe = TRIMTUNER
    if kind != "cold":
        recipe = recipe.learning_from([earlier_study(name, kind, seed)], table.space)
    run = replay(table, recipe, seed, TRIALS, UNITS, snapshots=False)
    unit = fmean(table.full_run_costs())
    return tuple(UNITS if usd is None else usd / unit for usd in map(run.settled, LEVELS))


def _searches(tables: Iterable[str], kinds: Sequence[str], seeds: Iterable[int]) -> Iterator[tuple[str, str, int]]:
    for seed in seeds:
        for name in tables:
            for kind in ("cold", *kinds):
                has_related = name in RELATED or name in public_jobs()
                if (kind != "related" or has_related) and (kind != "noise" or name in ("cnn", "rnn")):
                    yield name, kind, seed


def report(found: dict[tuple[str, str, int], tuple[float, ...]]) -> str:
    """A line for each table and kind: means of cold and warm, and of the paired ratios the middle and the worst."""
    lines = ["| earlier study | table | seeds | cold 95 / 99 % | warm 95 / 99 % | ratio of means | middle | worst |"]
    lines.append("|---" * 8 + "|")
    for kind in KINDS:
        for name in dict.fromkeys(name for name, _, _ in found):
            seeds = [seed for table, one, seed in found if (table, one) == (name, kind)]
            if seeds:
                lines.append(_line(kind, name, [(found[name, "cold", s], found[name, kind, s]) for s in seeds]))
    return "\n".join(lines)


def _line(kind: str, name: str, pairs: Sequence[tuple[tuple[float, ...], tuple[float, ...]]]) -> str:
    cold, warm = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    ratios = warm / cold
    told = [_two(cold.mean(axis=0)), _two(warm.mean(axis=0)), _two(warm.mean(axis=0) / cold.mean(axis=0))]
    return (
        f"| {kind} | {name} | {len(pairs)} | "
        + " | ".join([*told, _two(np.exp(np.log(ratios).mean(axis=0))), _two(ratios.max(axis=0))])
        + " |"
    )


def _two(values: np.ndarray) -> str:
    return " / ".join(f"{value:.2f}" for value in values.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=9100)
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    unknown = set(chosen.kinds) - set(KINDS)
    if unknown:
        raise InputError(f"there is no kind {', '.join(sorted(unknown))}; known are {', '.join(KINDS)}")
    searches = list(_searches(chosen.tables, chosen.kinds, range(chosen.first_seed, chosen.first_seed + chosen.seeds)))
    found: dict[tuple[str, str, int], tuple[float, ...]] = {}
    with ProcessPoolExecutor(chosen.processes) as pool:
        for search, result in zip(searches, pool.map(settled, *zip(*searches, strict=True)), strict=True):
            found[search] = result
            print(*search, *(f"{one:.3f}" for one in result), flush=True)
    print(report(found))


if __name__ == "__main__":
    main()
