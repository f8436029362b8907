"""Views 7 and 8: every trial. When and on which machines it ran, how it ended, what it measured and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Outcome, Trial
from trimtuner.records import Attempt
from trimtuner.views.subject import Subject
from trimtuner.views.words import machines

RUNNING, DONE = "running", "ok"


@dataclass(frozen=True)
class Bar:
    """One attempt at a trial, from its start to its end. Seconds are since the first trial was asked."""

    trial: int
    attempt: int
    begin: float
    end: float
    is_running: bool
    machines: str | None
    market: str | None
    state: str  # ok, running, or the kind of failure
    usd: float  # charged; of one under way, what is reserved


@dataclass(frozen=True)
class Row:
    """One trial."""

    trial: int
    origin: str
    config: Mapping[str, Value]
    fraction: float
    state: str
    cost: float | None
    time: float | None
    metrics: Mapping[str, float]
    snapshots: tuple[tuple[float, Mapping[str, float]], ...]
    attempts: int
    log: Path | None


def told_metrics(subject: Subject) -> tuple[str, ...]:
    """The goal and what is limited, besides cost and time, which every trial has."""
    return subject.problem.reported_metrics


def timeline(subject: Subject) -> tuple[Bar, ...]:
    """View 7."""
    trials = {trial.number: trial for trial in subject.trials}
    if not subject.attempts:
        return tuple(_bars_of_memory(subject))
    begin = min(one.asked_at for one in subject.attempts)
    return tuple(_bar(trials[one.trial], one, begin, subject.now) for one in subject.attempts if one.trial in trials)


def counts_by_state(bars: tuple[Bar, ...]) -> dict[str, int]:
    """How many attempts are in each state, the most frequent first."""
    return dict(Counter(bar.state for bar in bars).most_common())


def rows(subject: Subject) -> tuple[Row, ...]:
    """View 8."""
    outcomes = {outcome.trial.number: outcome for outcome in subject.history.outcomes}
    last = {one.trial: one.attempt for one in subject.attempts}
    return tuple(_row(subject, trial, outcomes.get(trial.number), last.get(trial.number)) for trial in subject.trials)


def _bar(trial: Trial, one: Attempt, begin: float, now: float) -> Bar:
    is_running = one.ended_at is None
    start = one.started_at or one.asked_at
    return Bar(
        trial=one.trial,
        attempt=one.attempt,
        begin=max(start - begin, 0.0),
        end=max((now if one.ended_at is None else one.ended_at) - begin, start - begin, 0.0),
        is_running=is_running,
        machines=machines(trial.config),
        market=_market(trial),
        state=RUNNING if is_running else one.failed or DONE,
        usd=one.reserve if one.charge is None else one.charge,
    )


def _bars_of_memory(subject: Subject) -> list[Bar]:
    """One trial after the other, since nobody wrote down when."""
    clock, bars = 0.0, []
    for outcome in subject.history.outcomes:
        end, trial = clock + (outcome.time or 0.0), outcome.trial
        state = outcome.failure or DONE
        bars.append(
            Bar(trial.number, 1, clock, end, False, machines(trial.config), _market(trial), state, outcome.cost)
        )
        clock = end
    return bars


def _row(subject: Subject, trial: Trial, outcome: Outcome | None, last: int | None) -> Row:
    measured = () if outcome is None else outcome.measurements
    final = measured[-1] if measured and measured[-1].fraction == trial.fraction else None
    on_the_way = tuple((m.fraction, dict(m.metrics)) for m in measured if m is not final)
    return Row(
        trial=trial.number,
        origin=trial.origin,
        config=dict(trial.config),
        fraction=trial.fraction,
        state=RUNNING if outcome is None else outcome.failure or DONE,
        cost=None if outcome is None else outcome.cost,
        time=None if outcome is None else outcome.time,
        metrics={} if final is None else dict(final.metrics),
        snapshots=on_the_way,
        attempts=last or 1,
        log=None if last is None or subject.log_of is None else subject.log_of(trial.number, last),
    )


def _market(trial: Trial) -> str | None:
    found = trial.config.get("market")
    return None if found is None else str(found)
