"""A trial that is the mean of several runs, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev

from trimtuner.problem.history import Measurement, Outcome
from trimtuner.problem.problem import TIME


def mean_of(last: Outcome, runs: Sequence[Sequence[Measurement]]) -> Outcome:
    """The outcome of two runs or more: the mean of each metric, with its standard deviation.

    Its time is that of all runs, its cost that of the last one, to which that of every earlier attempt is added. What
    only some of them measured on their way is left out.
    """
    by_fraction = [{one.fraction: one for one in measured} for measured in runs]
    shared = [one.fraction for one in last.measurements if all(one.fraction in found for found in by_fraction)]
    means = [_mean([found[fraction] for found in by_fraction]) for fraction in shared]
    seconds = [measured[-1].metrics[TIME] for measured in runs if TIME in measured[-1].metrics]
    return replace(last, measurements=tuple(means), time=sum(seconds) if seconds else last.time)


def _mean(runs: Sequence[Measurement]) -> Measurement:
    names = [name for name in runs[-1].metrics if all(name in one.metrics for one in runs)]
    values = {name: [one.metrics[name] for one in runs] for name in names}
    return replace(
        runs[-1],
        metrics={name: fmean(found) for name, found in values.items()},
        runs=len(runs),
        spread={name: stdev(found) for name, found in values.items()},
    )
