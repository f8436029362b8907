"""Views 7 and 8: every trial. When and on which machines it ran, how it ended, what it measured and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.problem.problem import Problem
from trimtuner.records import Attempt
from trimtuner.state import StudyState
from trimtuner.views.words import machines

RUNNING, DONE = "running", "ok"
UNWATCHED = "unwatched"  # its run is gone; it goes on until its time-out, or until another run takes it over
UNCOLLECTED = "uncollected"  # its run is gone and its time-out has passed: the next run will tell how it ended


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
    state: str  # ok, running (or unwatched, uncollected), or the kind of failure
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
    breaks: tuple[str, ...] = ()  # the limited metrics that it measured beyond their limits, where these are meant


def told_metrics(subject: StudyState) -> tuple[str, ...]:
    """The goal and what is limited, besides cost and time, which every trial has."""
    return subject.problem.reported_metrics


def timeline(subject: StudyState) -> tuple[Bar, ...]:
    """View 7."""
    trials = {trial.number: trial for trial in subject.trials}
    if not subject.attempts:
        return tuple(_bars_of_memory(subject))
    begin = min(one.asked_at for one in subject.attempts)
    return tuple(_bar(subject, trials[one.trial], one, begin) for one in subject.attempts if one.trial in trials)


def counts_by_state(bars: tuple[Bar, ...]) -> dict[str, int]:
    """How many attempts are in each state, the most frequent first."""
    return dict(Counter(bar.state for bar in bars).most_common())


def rows(subject: StudyState) -> tuple[Row, ...]:
    """View 8."""
    outcomes = {outcome.trial.number: outcome for outcome in subject.history.outcomes}
    last = {one.trial: one for one in subject.attempts}
    return tuple(_row(subject, trial, outcomes.get(trial.number), last.get(trial.number)) for trial in subject.trials)


def _bar(subject: StudyState, trial: Trial, one: Attempt, begin: float) -> Bar:
    is_running = one.ended_at is None
    start = one.started_at or one.asked_at
    end = _due(subject, one) if one.ended_at is None else one.ended_at
    return Bar(
        trial=one.trial,
        attempt=one.attempt,
        begin=max(start - begin, 0.0),
        end=max(end - begin, start - begin, 0.0),
        is_running=is_running,
        machines=machines(trial.config),
        market=_market(trial),
        state=_state_of_open(subject, one) if is_running else one.failed or DONE,
        usd=one.reserve if one.charge is None else one.charge,
    )


def _state_of_open(subject: StudyState, one: Attempt | None) -> str:
    if one is None or one.trial not in subject.unwatched:
        return RUNNING
    return UNCOLLECTED if _due(subject, one) < subject.now else UNWATCHED


def _due(subject: StudyState, one: Attempt) -> float:
    """Until when an attempt that nobody saw the end of can have run: until now, or to its limit."""
    limit = subject.problem.trial_limit
    if limit is None or one.trial not in subject.unwatched:
        return subject.now
    return min(subject.now, (one.started_at or one.asked_at) + limit)


def _bars_of_memory(subject: StudyState) -> list[Bar]:
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


def broken_limits(problem: Problem, outcome: Outcome) -> tuple[str, ...]:
    """The metrics that a trial measured beyond their limits, on a share of the data where these are meant."""
    final = _final(outcome)
    if final is None or final.fraction not in problem.target_fractions:
        return ()
    limits = [one for one in problem.constraints if one.metric in final.metrics]
    return tuple(dict.fromkeys(one.metric for one in limits if not one.is_met(final.metrics[one.metric])))


def _final(outcome: Outcome | None) -> Measurement | None:
    """What a trial measured on the share of the data that it was asked for."""
    measured = () if outcome is None else outcome.measurements
    return measured[-1] if outcome and measured and measured[-1].fraction == outcome.trial.fraction else None


def _row(subject: StudyState, trial: Trial, outcome: Outcome | None, last: Attempt | None) -> Row:
    measured = () if outcome is None else outcome.measurements
    final = _final(outcome)
    on_the_way = tuple((m.fraction, dict(m.metrics)) for m in measured if m is not final)
    return Row(
        trial=trial.number,
        origin=trial.origin,
        config=dict(trial.config),
        fraction=trial.fraction,
        state=_state_of_open(subject, last) if outcome is None else outcome.failure or DONE,
        cost=None if outcome is None else outcome.cost,
        time=None if outcome is None else outcome.time,
        metrics={} if final is None else dict(final.metrics),
        snapshots=on_the_way,
        attempts=1 if last is None else last.attempt,
        log=None if last is None or subject.log_of is None else subject.log_of(trial.number, last.attempt),
        breaks=() if outcome is None else broken_limits(subject.problem, outcome),
    )


def state_words(row: Row) -> str:
    """How a trial stands, such as ``ok, breaks cost (2 attempts)``."""
    broken = f", breaks {' and '.join(row.breaks)}" if row.breaks else ""
    again = f" ({row.attempts} attempts)" if row.attempts > 1 else ""
    return f"{row.state}{broken}{again}"


def _market(trial: Trial) -> str | None:
    found = trial.config.get("market")
    return None if found is None else str(found)
