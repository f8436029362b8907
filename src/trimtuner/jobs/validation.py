"""What a job would do and cost at worst, told before anything is started."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.errors import InputError, TrimTunerError
from trimtuner.jobs.checks import errors_of, warnings_of
from trimtuner.jobs.differing import differences_from_record, refusal, ways_on
from trimtuner.jobs.job import Job, limited_problem_of, problem_of
from trimtuner.keys.faults import one_printable_line
from trimtuner.keys.kinds import Json, as_json
from trimtuner.keys.quantities import duration_text
from trimtuner.problem.problem import limits_in_words
from trimtuner.problem.space import Space

_LARGEST_COUNT = 2**53  # beyond it, readers of JSON round


@dataclass(frozen=True)
class WorstCase:
    """What is reserved for an attempt at a trial, in USD: until it is ended, and the time that takes, at its price."""

    cheapest: float
    dearest: float
    dearest_price: float  # an hour

    @classmethod
    def of(cls, job: Job) -> WorstCase | None:
        """Of the cheapest and the dearest machines; nothing where no price is known."""
        prices = prices_per_hour(job.space)
        if prices is None:
            return None
        problem = limited_problem_of(job)
        cheapest, dearest = (problem.worst_cost(float(price)) or 0.0 for price in (prices.min(), prices.max()))
        return cls(cheapest, dearest, float(prices.max()))

    def trials_within(self, money: float) -> tuple[int, int]:
        """How many fit for sure, whatever they choose; and how many where all choose the cheapest machines."""
        least, most = (math.floor(money / price * (1 + 1e-12)) for price in (self.dearest, self.cheapest))
        return least, most


def prices_per_hour(space: Space) -> Floats | None:
    """USD per hour of every choice of machines, where known."""
    if space.cloud is not None:
        if space.cloud.is_free:
            return None
        return np.array([space.cloud.price_per_hour(cluster) for cluster in space.cloud.clusters])
    return space.pool().prices_per_hour if space.has_prices else None


@dataclass(frozen=True)
class Findings:
    """What is wrong with a job (it cannot be run), what looks wrong, and how it differs from its record."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    differing: tuple[str, ...]

    @classmethod
    def of(cls, job: Job, environment: Mapping[str, str] | None = None) -> Findings:
        """``environment`` is where secrets are looked for (by name only), os.environ by default."""
        errors, warnings = _checked(job, os.environ if environment is None else environment)
        try:
            differing = tuple(one_printable_line(one) for one in differences_from_record(job))
        except TrimTunerError as error:  # such as a server that is out of reach from here
            unread = one_printable_line(f"storage: the job could not be compared with its record: {error}")
            return cls(errors, (*warnings, unread), ())
        return cls((*errors, refusal(job, differing)) if differing else errors, warnings, differing)


def require_valid(job: Job) -> tuple[str, ...]:
    """What to warn of before the job is run; an error where it cannot be run. Its record is for the run to compare."""
    errors, warnings = _checked(job, os.environ)
    if errors:
        raise InputError("\n".join(errors))
    return warnings


def _checked(job: Job, environment: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    worst = WorstCase.of(job)
    errors = errors_of(job, None if worst is None else worst.cheapest)
    return errors, warnings_of(job, None if worst is None else worst.dearest, environment)


def validation(job: Job, environment: Mapping[str, str] | None = None) -> dict[str, Json]:
    """All of it for scripts."""
    worst, found = WorstCase.of(job), Findings.of(job, environment)
    return {
        "name": job.name,
        "file": str(job.path),
        "is_valid": not found.errors,
        "errors": [*found.errors],
        "warnings": [*found.warnings],
        "differs_from_record": [*found.differing],
        "space": _space(job.space),
        "price_per_hour": _price_range(job.space),
        "worst_case": None if worst is None else {"cheapest_usd": worst.cheapest, "dearest_usd": worst.dearest},
        "timeout_seconds": job.run.timeout,
        "budget": _budget(job, worst),
        "search": {
            "method": job.search.method,
            "options": as_json(job.search.options),
            "seed": job.search.seed,
            "tested_fractions": [*_tested(job)],
        },
        "engine": {"type": job.engine.type, "parallel": job.engine.parallel},
        "command": [*job.run.command],
        "working_directory": str(job.run.working_directory),
        "storage": str(job.storage),
    }


def validate_text(job: Job, environment: Mapping[str, str] | None = None) -> str:
    """All of it for a person."""
    worst, found = WorstCase.of(job), Findings.of(job, environment)
    rows = {
        "space": _space_text(job.space),
        "price": _price_text(job.space),
        "at worst": "unknown without prices" if worst is None else _worst_text(job, worst),
        "budget": _budget_text(job, worst),
        "search": _search_text(job),
        "command": f"{' '.join(job.run.command)!r} in {job.run.working_directory}",
        "record": str(job.storage),
    }
    lines = [f"{job.name}: {'not ready to run' if found.errors else 'ready to run'}"]
    lines += [f"  {title:<9} {text}" for title, text in rows.items()]
    lines += [*(f"error: {text}" for text in found.errors), *(f"warning: {text}" for text in found.warnings)]
    return "\n".join([*lines, ways_on(job)] if found.differing else lines)


def configuration_count(space: Space) -> int | None:
    """How many configurations there are; None where they cannot be counted, or not in JSON."""
    if space.is_enumerable:
        return len(space.pool())
    return None if space.size > _LARGEST_COUNT else int(space.size)


def _space(space: Space) -> dict[str, Json]:
    count = configuration_count(space)
    return {
        "configurations": count,
        "fractions": [*space.fractions],
        "snapshots": space.snapshots,
        "candidates": None if count is None else count * len(space.fractions),
    }


def _price_range(space: Space) -> dict[str, Json] | None:
    prices = prices_per_hour(space)
    return None if prices is None else {"least": float(prices.min()), "most": float(prices.max())}


def _budget(job: Job, worst: WorstCase | None) -> dict[str, Json]:
    money = job.budget.money
    fitting = None if worst is None or money is None else worst.trials_within(money)
    return {
        "money_usd": money,
        "seconds": job.budget.seconds,
        "trials": job.budget.trials,
        "least_trials": fitting and fitting[0],
        "most_trials_at_worst": fitting and fitting[1],
    }


def _tested(job: Job) -> tuple[float, ...]:
    """The shares of the data that the method would test on, of those that the job offers."""
    problem = problem_of(job)
    return job.search.recipe.suited_to(problem).tested_fractions(problem)


def _search_text(job: Job) -> str:
    told = f"{job.search.method}, seed {job.search.seed}; {job.engine.type}, {job.engine.parallel} at a time"
    tested = _tested(job)
    return told if tested == job.space.fractions else f"{told}; tests at fractions {_listed(tested)} only"


def _listed(fractions: Iterable[float]) -> str:
    return ", ".join(f"{fraction:.4g}" for fraction in fractions)


def _space_text(space: Space) -> str:
    count = configuration_count(space)
    shares = _listed(space.fractions)
    passed = ", smaller ones passed on the way" if space.snapshots else ""
    if count is None:
        return f"more configurations than can be listed, at fractions {shares}{passed}"
    total = count * len(space.fractions)
    return f"{count:,} configurations at {len(space.fractions)} fractions ({shares}{passed}): {total:,} candidates"


def _price_text(space: Space) -> str:
    prices = prices_per_hour(space)
    if space.cloud is not None and space.cloud.is_free:
        return "none; machines are paid for in hours"
    return "none known" if prices is None else f"{prices.min():.4g} to {prices.max():.4g} USD per hour"


def _worst_text(job: Job, worst: WorstCase) -> str:
    problem = limited_problem_of(job)
    until_timeout = replace(problem, ended_within=None)
    is_sooner = problem.worst_cost(worst.dearest_price) != until_timeout.worst_cost(worst.dearest_price)
    sooner = f", or a fifth over {limits_in_words(problem.limits_on_full_runs)}" if is_sooner else ""
    return (
        f"{worst.cheapest:.4g} to {worst.dearest:.4g} USD a trial: {duration_text(job.run.timeout)}, the timeout"
        f"{sooner}, and {job.engine.settings.ended_within_seconds:g} s around it, at its price; reserved while it runs"
    )


def _budget_text(job: Job, worst: WorstCase | None) -> str:
    budget = job.budget
    parts = []
    if budget.money is not None:
        parts.append(f"{budget.money:g} USD")
        if worst is not None:
            least, most = worst.trials_within(budget.money)
            parts[-1] += f" (if every trial took as long as it may: {least:,} of the dearest, {most:,} of the cheapest)"
    if budget.seconds is not None:
        cloud = job.space.cloud
        is_hard = cloud is not None and cloud.is_free
        parts.append(f"{budget.seconds / 3600:g} machine-hours" if is_hard else duration_text(budget.seconds))
    if budget.trials is not None:
        parts.append(f"{budget.trials:,} trials")
    return ", ".join(parts) or "none"
