"""Finished searches, found by the figure they are for."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.papers.cache import Cache
from benchmarks.papers.experiments import Experiment, Plan
from benchmarks.papers.jobs import Job
from benchmarks.papers.searches import Trace


@dataclass(frozen=True)
class Measured:
    """One line of a figure with what its searches found; those not finished are left out."""

    panel: str
    label: str
    wanted: int
    is_on_full_data: bool
    initial: int  # trials before a model is used
    traces: tuple[Trace, ...]


@dataclass(frozen=True)
class Results:
    """What a plan wanted, and what there is of it."""

    plan: Plan
    cache: Cache

    def lines(self, experiment: Experiment, job: Job) -> list[Measured]:
        """The lines of an experiment that have at least one finished search."""
        found = []
        for line in self.plan.lines(experiment, job):
            traces = tuple(trace for search in line.searches if (trace := self.cache.find(search)) is not None)
            if traces:
                is_on_full_data = line.searches[0].is_on_full_data
                found.append(
                    Measured(line.panel, line.label, len(line.searches), is_on_full_data, line.initial, traces)
                )
        return found

    def line(self, experiment: Experiment, job: Job, label: str, panel: str | None = None) -> Measured | None:
        """One line; nothing where it was not run."""
        matching = (line for line in self.lines(experiment, job) if line.label == label and panel in (None, line.panel))
        return next(matching, None)

    def traces(self, experiment: Experiment, job: Job, label: str, panel: str | None = None) -> tuple[Trace, ...]:
        """The finished searches of one line; none where it was not run."""
        line = self.line(experiment, job, label, panel)
        return () if line is None else line.traces

    def done(self) -> tuple[int, int]:
        """How many of the searches are finished."""
        searches = self.plan.searches()
        return sum(search in self.cache for search in searches), len(searches)
