"""What each part of the default is for: the method without it, replayed; prints the table of docs/method.md.

Run from the repository's root: ``python -m benchmarks.ablations``, about twenty CPU minutes.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

from benchmarks.variants import make_variant
from trimtuner.decisions.acquisition import ExpectedCost
from trimtuner.decisions.designs import AcrossFractions
from trimtuner.decisions.entropy import InformationAboutBest
from trimtuner.decisions.filters import KeepAll
from trimtuner.decisions.incumbents import BestPredictedFeasible
from trimtuner.decisions.learning import TIME_GROWTH
from trimtuner.engines.table import Table
from trimtuner.models.gaussian_process import GaussianProcess, MostLikely
from trimtuner.models.kernels import log_basis, quadratic_basis
from trimtuner.study.replay import LEVELS, replay
from trimtuner.tuning.recipes import PROCESS, TRIMTUNER, VALUE, insured, learning_trust, over_fractions

UNITS = 20.0  # mean full runs, at which a search is cut off; also what one that does not settle counts
TRIALS = 100
TABLES = (("cnn", "plain"), ("rnn", "tight"), ("flights", "plain"))
ABLATIONS = {
    "the default": TRIMTUNER,
    "no walk": TRIMTUNER.but(surrogate=PROCESS),
    "always the walk": TRIMTUNER.but(
        surrogate=GaussianProcess(learning_trust(log_basis, quadratic_basis), MostLikely())
    ),
    "one shape": TRIMTUNER.but(
        surrogate=GaussianProcess(over_fractions(log_basis) + learning_trust(log_basis), MostLikely())
    ),
    "no usual growth": TRIMTUNER.but(quality_growth=0.0),
    "no insurance": TRIMTUNER.but(acquisition=VALUE),
    "limits unheard": TRIMTUNER.but(time_growth=TIME_GROWTH),
    "information only": TRIMTUNER.but(acquisition=insured(InformationAboutBest() / ExpectedCost())),
    "no climb": TRIMTUNER.but(filter=KeepAll()),
    "dear start": TRIMTUNER.but(design=AcrossFractions()),
    "sure only": TRIMTUNER.but(incumbent=BestPredictedFeasible(0.90)),
}


def settled(ablation: str, name: str, variant: str, seed: int) -> list[float | None]:
    """Full runs until the recommendation was at each level for good."""
    table = make_variant(variant, Table.find(name), seed).measured
    run = replay(table, ABLATIONS[ablation], seed, TRIALS, UNITS, snapshots=False)
    unit = fmean(table.full_run_costs())
    return [None if usd is None else usd / unit for usd in map(run.settled, LEVELS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=8000)
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    print("| | " + " | ".join(f"{name}, {variant}" for name, variant in TABLES) + " |")
    print("|---" * (len(TABLES) + 1) + "|")
    with ProcessPoolExecutor(chosen.processes) as pool:
        for ablation in ABLATIONS:
            cells = []
            for name, variant in TABLES:
                count = len(seeds)
                runs = list(pool.map(settled, [ablation] * count, [name] * count, [variant] * count, seeds))
                means = [fmean(UNITS if one[level] is None else one[level] for one in runs) for level in range(3)]
                done = sum(one[-1] is not None for one in runs)
                cells.append(" / ".join(f"{mean:.2f}" for mean in means) + ("" if done == count else f" ({done})"))
            print(f"| {ablation} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
