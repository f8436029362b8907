"""What any tracker is told of a study: every ended trial as a run, once, and the recommendation beside them.

Trackers count steps in whole numbers, so a step is a millionth of the data: a snapshot at a quarter of it is at step
250000, and the metric ``fraction`` tells the share itself.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import History, Outcome
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.rows import FRACTION
from trimtuner.records import Attempt
from trimtuner.study.study import Study
from trimtuner.tuning.recommendation import Recommendation

CHARGED = "trimtuner.charged"  # USD of all attempts at the trial; cost is that of what was measured
SPENT = "trimtuner.spent"
RECOMMENDED = "recommended"

_STEPS = 1_000_000
_MARK = "trimtuner.json"  # in a run's folder, once all of the run is there


@dataclass(frozen=True)
class Logged:
    """How many trials were logged now, and how many before; those under way are logged once they have ended."""

    added: int
    known: int
    running: int


@dataclass(frozen=True)
class TrackedStudy:
    """What is logged of a study; its id tells studies of the same name apart, and is letters and digits only."""

    name: str
    id: str
    history: History
    recommendation: Recommendation | None
    attempts: tuple[Attempt, ...] = ()  # when trials ran, where a record knows it

    @property
    def outcomes(self) -> list[Outcome]:
        """Every trial that has ended, in the order of their numbers."""
        return sorted(self.history.outcomes, key=lambda one: one.trial.number)

    def times_of(self, outcome: Outcome) -> tuple[float, float]:
        """When a trial began and ended, in seconds since 1970; where nobody wrote it down, it ended just now."""
        attempts = [one for one in self.attempts if one.trial == outcome.trial.number]
        if not attempts or attempts[-1].ended_at is None:
            end = time.time()
            return end - (outcome.time or 0.0), end
        return attempts[0].started_at or attempts[0].asked_at, attempts[-1].ended_at

    @property
    def recommended(self) -> dict[str, float]:
        """What was spent, and what the recommendation is expected to measure, if there is one."""
        best = self.recommendation
        values = {SPENT: self.history.spent}
        if best is not None:
            values |= {f"{RECOMMENDED}.{name}": float(one) for name, one in best.estimates.items()}
            values[f"{RECOMMENDED}.chance_feasible"] = best.chance_feasible
        return values

    @property
    def recommended_config(self) -> dict[str, Value]:
        """The configuration that is recommended, with the share of the data; nothing before something was measured."""
        best = self.recommendation
        return {} if best is None else {**best.config, FRACTION: best.fraction}


@dataclass(frozen=True)
class Noted:
    """Values at one step of a trial, and how many seconds after its start."""

    step: int
    seconds: float
    values: Mapping[str, float]


def tracked_of(study: Study) -> TrackedStudy:
    """A study in Python, which is told apart by its name alone: give two that are logged to one place two names."""
    recommendation = study.recommend() if study.history.measurements else None
    id_from_name = hashlib.sha256(study.name.encode()).hexdigest()[:32]
    return TrackedStudy(study.name, id_from_name, study.history, recommendation)


def params_of(outcome: Outcome) -> dict[str, Value]:
    """What the trial was told: its configuration, and the share of the data."""
    return {**outcome.trial.config, FRACTION: outcome.trial.fraction}


def notes_of(outcome: Outcome) -> list[Noted]:
    """What was measured at each share, in order, and at last what was paid."""
    measured = [
        Noted(_step(one.fraction), one.metrics.get(TIME, 0.0), {**one.metrics, FRACTION: one.fraction})
        for one in outcome.measurements
    ]
    paid = {CHARGED: outcome.cost}
    if outcome.failed is not None:
        paid |= {COST: outcome.cost, **({} if outcome.time is None else {TIME: outcome.time})}
    return [*measured, Noted(_step(outcome.trial.fraction), outcome.time or 0.0, paid)]


def another_trial(name: str, outcome: Outcome, place: str) -> InputError:
    """That a trial of this number is there already, and is not this one."""
    return InputError(
        f"trial {outcome.trial.number} of a study {name!r} is there already, and it is another one ({place}); "
        "give this study another name, or log it elsewhere"
    )


# Of trackers that keep a run in a folder


def is_logged(folder: Path, outcome: Outcome, name: str) -> bool:
    """Whether all of the trial is in the folder; an error where another is."""
    found = _mark_in(folder)
    if found is not None and found != _digest_of(outcome):
        raise another_trial(name, outcome, str(folder))
    return found is not None


def mark_logged(folder: Path, outcome: Outcome) -> None:
    """Write down that all of the trial is in the folder."""
    mark(folder, _digest_of(outcome))


def mark(folder: Path, text: str) -> None:
    """Write down what is in the folder, now that all of it is."""
    (folder / _MARK).write_text(json.dumps({"logged": text}) + "\n")


def is_marked(folder: Path, text: str) -> bool:
    """Whether all of this is in the folder."""
    return _mark_in(folder) == text


def remove_half_written(folder: Path) -> None:
    """Take away a run whose writer did not live to its end; what is marked is left alone."""
    if folder.is_dir() and _mark_in(folder) is None:
        shutil.rmtree(folder)


def _mark_in(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / _MARK).read_text())["logged"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _digest_of(outcome: Outcome) -> str:
    """Of what stays the same when a failure is forgotten."""
    told = [params_of(outcome), outcome.failed, outcome.cost, outcome.time]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _step(fraction: float) -> int:
    return round(fraction * _STEPS)
