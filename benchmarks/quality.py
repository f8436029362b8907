"""What each method spends until its recommendation is good, on every table at hand: 20 seeds, 60 trials.

Run by ``make bench``. The seeds are fixed here and nothing was chosen on them. Where the paper's tables are absent,
only the shipped one is replayed, and that is said.
"""

from __future__ import annotations

import argparse

from trimtuner.commands.replay import ReplayRequest, run_replays, summarise, text_of
from trimtuner.engines.table import known_tables

PAPER_METHODS = ("trimtuner-dt", "trimtuner-gp")
FIRST_SEED = 4000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    for table in known_tables():
        report(table, PAPER_METHODS, None, chosen)
        report(table, ("trimtuner",), False, chosen)  # every (configuration, fraction) a trial of its own


def report(table: str, methods: tuple[str, ...], snapshots: bool | None, chosen: argparse.Namespace) -> None:
    request = ReplayRequest(
        table=table,
        methods=methods,
        first_seed=FIRST_SEED,
        seeds=chosen.seeds,
        trials=chosen.trials,
        budget_runs=None,
        constraints=None,
        snapshots=snapshots,
        jobs=chosen.jobs,
    )
    results = run_replays(request, lambda: None)
    print(text_of(summarise(request, results)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
