"""How often the intervals that are shown hold the truth: of what is recommended, and of any configuration on full data.

``python -m benchmarks.intervals`` writes docs/results/intervals.md in about six CPU minutes. The width was chosen on
the jobs that the default was tuned on, and looked at once on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration_searches import ACCURACY_GOAL, Watch, deviations
from benchmarks.calibration_searches import Search as Study
from benchmarks.kept import Columns, Kept, identity_of, load_table, options, run_missing, unit_of, write_page
from benchmarks.papers.markdown import table
from trimtuner.arrays import Floats
from trimtuner.decisions.belief import INTERVAL, Belief, interval_deviations
from trimtuner.errors import SearchOver
from trimtuner.problem.problem import COST
from trimtuner.tuning import tuner

PAGE = "intervals.md"
NETS = ["lcb126025", "lcb146212", "lcb167152", "lcb168335", "lcb189873"]
TUNED_ON = ["cnn", "rnn", "digits", "flights", "linear", *NETS]
ASIDE = ["epochs", "forest", "kernel", "rpart1053", "rpart1485", "rpart40979", "rpart41143"]
NORMAL = 1.6449  # deviations either way that hold 90 % of a normal
TRIALS, UNITS = 60, 8.0  # a search ends after so many, or at the price of so many full runs
FEWEST = 4  # trials, before which nothing is judged
SAMPLED = 12  # configurations not yet measured on full data, after each trial
ANY, RECOMMENDED = 0.0, 1.0


@dataclass(frozen=True)
class Search:
    """One search of the default."""

    table: str
    seed: int

    def identity(self) -> dict[str, object]:
        """As the file of results knows it."""
        return identity_of(self.table, "trimtuner", self.seed, TRIALS) | {"units": UNITS, "sampled": SAMPLED}


def run_search(search: Search) -> Columns:
    """How far the truth was from each forecast, in its deviations, and of what it was a forecast."""
    measured, generator = load_table(search.table), np.random.default_rng(search.seed)
    study = Study(search.table, ACCURACY_GOAL, search.seed, TRIALS).study(Watch())
    columns: Columns = {"of": [], "accuracy": [], "cost": []}
    belief: Belief | None = None
    for _ in range(TRIALS):
        if study.spent >= UNITS * unit_of(measured):
            break
        try:
            trial = tuner.ask(study.problem, study.recipe, study.history, search.seed, belief)
        except SearchOver:
            break
        study.history = study.history.with_asked(trial)
        cell = measured.cell(trial.config, trial.fraction)
        study.tell_report(trial, cell.metrics, {}, cell.failed)
        belief = tuner.believe(study.problem, study.recipe, study.history, search.seed)
        if len(study.history.outcomes) < FEWEST:
            continue
        free = np.setdiff1d(np.arange(len(belief.targets)), list(belief.measured_targets))
        named = tuner.recommend(study.recipe, belief, study.history)
        drawn = generator.choice(free, size=min(SAMPLED, len(free)), replace=False)
        for what, targets in ((RECOMMENDED, [named] if named in free else []), (ANY, drawn.tolist())):
            for target in targets:
                truth = measured.cell(belief.pool.configuration(int(belief.targets.positions[target])), 1.0)
                if truth.failed is None:
                    columns["of"].append(what)
                    for column, metric in (("accuracy", measured.maximize or ""), ("cost", COST)):
                        columns[column].append(deviations(belief, target, metric, truth.metrics[metric]))
    return columns


def shares(found: Sequence[Columns], column: str, what: float) -> tuple[int, float, float]:
    """How many forecasts there were, and the shares that a normal's interval and ours held."""
    distances: Floats = np.concatenate([np.abs(_numbers(one, column))[_numbers(one, "of") == what] for one in found])
    if not len(distances):
        return 0, float("nan"), float("nan")
    within = [float((distances <= width).mean()) for width in (NORMAL, interval_deviations(INTERVAL))]
    return len(distances), within[0], within[1]


def _numbers(one: Columns, column: str) -> Floats:
    return np.array(one[column], dtype=float)


def _line(name: str, found: Sequence[Columns]) -> list[str]:
    cells = [name]
    for what in (RECOMMENDED, ANY):
        for column in ("accuracy", "cost"):
            count, normal, ours = shares(found, column, what)
            cells.append(f"{normal:.2f} → {ours:.2f} ({count})" if count else "-")
    return cells


def main() -> None:
    parser = options(__doc__.splitlines()[0], "intervals")
    parser.set_defaults(seeds=2, processes=2)
    chosen = parser.parse_args()
    seeds, kept = range(chosen.first_seed, chosen.first_seed + chosen.seeds), Kept(chosen.cache)
    if not chosen.report_only:
        wanted = [Search(name, seed) for seed in seeds for name in (*TUNED_ON, *ASIDE)]
        run_missing(wanted, run_search, kept, chosen.processes, chosen.again)
    header = ["job", "recommended: accuracy", "cost", "any: accuracy", "cost"]
    paragraphs = [
        "# Do the intervals hold what they say",
        f"Written by `python -m benchmarks.intervals`, seeds {seeds[0]} to {seeds[-1]}: the default's searches to "
        f"{TRIALS} trials or {UNITS:g} full runs. From the {FEWEST}th trial on, what a run on full data is forecast to "
        f"measure is held against the truth: of what is recommended, where it was not measured, and of {SAMPLED} "
        "others. The share of 90 % intervals that held it: with a normal's width → as they are shown ([decision "
        "45](../decisions/0045-intervals-that-hold.md)); in brackets how many forecasts. What is recommended was "
        "chosen for its forecast, and turns out worse than that more often. Of time the shares are those of cost: what "
        "is modelled is the time of a run, and its cost is that times a known price.",
    ]
    for words, names in (("on which the width was chosen", TUNED_ON), ("kept aside", ASIDE)):
        found = {name: [one for seed in seeds if (one := kept.find(Search(name, seed)))] for name in names}
        lines = [_line(name, some) for name, some in found.items() if some]
        if lines:
            everything = _line("all", [one for some in found.values() for one in some])
            paragraphs += [f"## Jobs {words}", table(header, [*lines, everything])]
    print(write_page(chosen.out, PAGE, paragraphs))


if __name__ == "__main__":
    main()
