"""The comparison with the papers from end to end: plan, run what is missing, report."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.papers.cache import Cache
from benchmarks.papers.experiments import Experiment, Plan, experiments_named
from benchmarks.papers.jobs import CNN, RNN, Job, digest, load, multilayer
from benchmarks.papers.plots import require_matplotlib
from benchmarks.papers.report import write_report
from benchmarks.papers.results import Results
from benchmarks.papers.runner import run_missing
from benchmarks.papers.searches import Search
from trimtuner import __version__
from trimtuner.tuning.recipes import recipe_named


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    seeds: int
    trials: int
    only: tuple[str, ...]
    multilayer: Path | None
    cache: Path
    out: Path
    jobs: int
    is_report_only: bool


def run_paper(request: Request) -> str:
    """Run what is missing, write the report; what to tell the user."""
    require_matplotlib()
    plan = _plan(request)
    cache = Cache(request.cache, marks)
    if not request.is_report_only:
        run_missing(plan.searches(), cache, request.jobs)
    path = write_report(Results(plan, cache), request.out)
    return f"the report is {path}"


def _plan(request: Request) -> Plan:
    jobs = (CNN, RNN) if request.multilayer is None else (CNN, RNN, multilayer(request.multilayer))
    for job in jobs:
        _digest(job)
    experiments = experiments_named(request.only) if request.only else tuple(Experiment)
    return Plan(jobs, experiments, request.seeds, request.trials)


def marks(search: Search) -> dict[str, str]:
    """A method whose parts or constants were changed has no results yet, whatever it is called."""
    return {"version": __version__, "table": _digest(search.job), "recipe": recipe_digest(search.method)}


@cache
def recipe_digest(method: str) -> str:
    """A short name for the parts of a method and their constants."""
    described = json.dumps(recipe_named(method).described(), sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:12]


@cache
def _digest(job: Job) -> str:
    return digest(load(job))
