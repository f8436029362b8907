"""One search of the comparison: what determines it, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate

from benchmarks.papers.jobs import Job, full_data_only, load
from trimtuner.engines.table import Table
from trimtuner.study.replay import ReplayMoment, replay

LEAST_ACCURACY = 0.85
MOST_SECONDS = 300.0


class Goal(StrEnum):
    """The two problems of the papers."""

    ACCURACY = "accuracy"  # most accurate at full data within a limit on cost
    COST = "cost"  # cheapest at any fraction that is accurate and fast enough, within an exploration budget


@dataclass(frozen=True)
class Search:
    """Everything that determines one search."""

    job: Job
    method: str
    seed: int
    goal: Goal
    trials: int
    budget: float | None = None  # USD
    is_on_full_data: bool = False  # the smaller fractions are no part of its space
    has_snapshots: bool = True  # a run measures the smaller fractions on its way, for nothing

    @property
    def limits(self) -> tuple[str, ...]:
        """The constraints of the search, as texts."""
        if self.goal is Goal.ACCURACY:
            return (f"cost <= {self.job.cost_limit:g}",)
        return (f"accuracy >= {LEAST_ACCURACY:g}", f"time <= {MOST_SECONDS:g}")

    def identity(self) -> dict[str, object]:
        """The search in plain values, but for its length: a longer one passes all that a shorter one does.

        Where its table lies on the disk is no part of it.
        """
        return {
            "job": self.job.name,
            "method": self.method,
            "seed": self.seed,
            "goal": self.goal.value,
            "limits": list(self.limits),
            "budget": self.budget,
            "full_data": self.is_on_full_data,
            "snapshots": self.has_snapshots,
        }


@dataclass(frozen=True)
class Trace:
    """What is kept of a search: one entry for each trial, in order."""

    spent: tuple[float, ...]  # USD so far
    seconds: tuple[float, ...]  # of training so far
    ask_seconds: tuple[float, ...]  # CPU seconds of this ask, with fitting the models
    quality: tuple[float, ...]  # of the recommendation, as a share of the best (Eq. 7 where it breaks a limit)
    feasible: tuple[bool, ...]  # the recommendation, in truth
    fraction: tuple[float, ...]  # of the data, in this trial

    @classmethod
    def of(cls, moments: Sequence[ReplayMoment]) -> Trace:
        """From a replay; figures need no more than six digits."""
        return cls(
            spent=_rounded(moment.spent for moment in moments),
            seconds=_rounded(moment.time for moment in moments),
            ask_seconds=_rounded(moment.ask_seconds for moment in moments),
            quality=_rounded(moment.quality for moment in moments),
            feasible=tuple(moment.is_feasible for moment in moments),
            fraction=_rounded(moment.fraction for moment in moments),
        )

    @classmethod
    def from_plain(cls, columns: Mapping[str, Sequence[float]]) -> Trace:
        """The trace that ``as_plain`` made plain."""
        return cls(
            spent=tuple(columns["spent"]),
            seconds=tuple(columns["seconds"]),
            ask_seconds=tuple(columns["ask_seconds"]),
            quality=tuple(columns["quality"]),
            feasible=tuple(bool(flag) for flag in columns["feasible"]),
            fraction=tuple(columns["fraction"]),
        )

    def as_plain(self) -> dict[str, list[float]]:
        """Columns of numbers; claims as 0 or 1."""
        columns = {field.name: list(getattr(self, field.name)) for field in fields(self)}
        return columns | {"feasible": [int(flag) for flag in self.feasible]}

    def first(self, trials: int) -> Trace:
        """As if the search had ended after so many trials."""
        return Trace(*(getattr(self, field.name)[:trials] for field in fields(self)))

    @property
    def total_seconds(self) -> tuple[float, ...]:
        """Training and asking, so far."""
        overhead = accumulate(self.ask_seconds)
        return tuple(trained + asked for trained, asked in zip(self.seconds, overhead, strict=True))


def longest_of_each(searches: Iterable[Search]) -> list[Search]:
    """Each search once, as long as anyone needs it, in the order of first mention."""
    longest: dict[Search, Search] = {}
    for search in searches:
        same = replace(search, trials=0)
        if same not in longest or longest[same].trials < search.trials:
            longest[same] = search
    return list(longest.values())


def run_search(search: Search) -> Trace:
    """The search itself, against the table of its job."""
    is_least_cost = search.goal is Goal.COST
    run = replay(
        _table(search.job, search.is_on_full_data),
        search.method,
        search.seed,
        search.trials,
        constraints=search.limits,
        snapshots=search.has_snapshots,
        minimize="cost" if is_least_cost else None,
        budget=search.budget,
        until_best=is_least_cost,  # those methods recommend what they measured: nothing changes after the best
    )
    return Trace.of(run.moments)


@cache
def _table(job: Job, is_on_full_data: bool) -> Table:
    table = load(job)
    return full_data_only(table) if is_on_full_data else table


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)
