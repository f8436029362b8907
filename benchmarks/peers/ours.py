"""`trimtuner` and `eic`: this package's default, and its EI_c with a Gaussian process at full data, by `replay`.

Nothing is made in their favour: no snapshots (a run would measure the smaller fractions on its way), the default
options, and the recommendation is the one the study gives, from its models.
"""

from __future__ import annotations

from benchmarks.peers.search import BUDGET_UNITS
from benchmarks.scoring import Scorer
from benchmarks.variants import Variant
from trimtuner.study.replay import ReplayRun, replay


def search_with(method: str, variant: Variant, seed: int, trials: int) -> ReplayRun:
    """Replayed on what is measured, judged by the truth."""
    run = replay(variant.measured, method, seed, trials, BUDGET_UNITS, snapshots=False)
    return Scorer(variant.truth).rescore(run)
