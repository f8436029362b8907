"""From what an engine saw of a trial to what it measured, or how it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trimtuner.engines.protocol import LOST, STOPPED, TIMEOUT, AttemptState, End
from trimtuner.errors import InputError
from trimtuner.problem.history import OVER_LIMIT, PREEMPTED, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem, limits_in_words
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success

SILENT = "silent"  # it ended well and said nothing
BAD_METRIC = "bad metric"  # what it said cannot be used
FRACTION = "fraction"
_TAKEN_AWAY = (LOST, STOPPED, PREEMPTED)  # ends that the command did not come to by itself


@dataclass(frozen=True)
class Verdict:
    """How one attempt came out; ``detail`` is for a person."""

    outcome: Outcome
    detail: str

    def with_earlier(self, usd: float) -> Outcome:
        """The outcome of the whole trial, when earlier attempts at it cost so much."""
        return replace(self.outcome, cost=self.outcome.cost + usd)


def judge_going_on(problem: Problem, trial: Trial, state: AttemptState, end: End, seconds_before: float) -> Verdict:
    """The outcome of an attempt that went on where others had come to: their time is part of it, and paid already."""
    charged = _failure(problem, trial, PREEMPTED, end, "").outcome
    reports = tuple(replace(one, seconds=one.seconds + seconds_before) for one in state.reports)
    whole = replace(end, seconds=end.seconds + seconds_before)
    verdict = judge(problem, trial, replace(state, reports=reports), whole)
    return replace(verdict, outcome=replace(verdict.outcome, cost=charged.cost))


def judge(problem: Problem, trial: Trial, state: AttemptState, end: End) -> Verdict:
    """The outcome of an attempt, charged for its time by our own clock, whatever the job says."""
    metrics, snapshots = _told(problem, trial, state)
    if end.kind in _TAKEN_AWAY and _is_all_measured(problem, trial, state):
        return _measured(problem, trial, state, end)
    if end.kind is not None:
        if _is_over_limit(problem, trial, end):
            broken = problem.limits_broken_after(end.seconds, problem.space.price_per_hour(trial.config))
            detail = f"stopped after {end.seconds:.3g} s, being over {limits_in_words(broken)}"
            return _failure(problem, trial, OVER_LIMIT, end, detail, snapshots)
        kind = PREEMPTED if end.kind in (LOST, STOPPED) else end.kind
        return _failure(problem, trial, kind, end, end.detail, snapshots)
    if not state.reports:
        wanted = f'; it should print a line such as ::metric {{"{problem.goal.metric}": 0.5}}'
        detail = f"it reported no metric{_bad(state) or wanted}"
        return _failure(problem, trial, BAD_METRIC if state.bad_lines else SILENT, end, detail)
    try:
        outcome = outcome_of_success(problem, trial, {**metrics, TIME: end.seconds}, snapshots)
    except InputError as error:
        return _failure(problem, trial, BAD_METRIC, end, f"{error}{_bad(state)}")
    return Verdict(outcome, "")


def _is_over_limit(problem: Problem, trial: Trial, end: End) -> bool:
    """Whether it was ended for its time, and that is well over what a limit on cost or time allows."""
    most = problem.seconds_until_stopped(problem.space.price_per_hour(trial.config))
    return end.kind == TIMEOUT and end.seconds >= most


def _is_all_measured(problem: Problem, trial: Trial, state: AttemptState) -> bool:
    """Whether the trial had said all that it had to, and was only not seen to leave.

    Where a line does not say which share it is of, it must be the only one: others may have reported every epoch.
    """
    needed = set(problem.reported_metrics)
    whole = [report.metrics for report in state.reports if needed <= report.metrics.keys()]
    own = [one for one in whole if _offered(problem, one.get(FRACTION, trial.fraction)) == trial.fraction]
    return bool(own) and (len(state.reports) == 1 or FRACTION in own[-1])


def _measured(problem: Problem, trial: Trial, state: AttemptState, end: End) -> Verdict:
    """As if it had left with its last word, which took it so long; it is charged for all of its time."""
    charged = _failure(problem, trial, PREEMPTED, end, "").outcome
    left = replace(end, kind=None, seconds=min(state.reports[-1].seconds, end.seconds))
    verdict = judge(problem, trial, state, left)
    return replace(verdict, outcome=replace(verdict.outcome, cost=charged.cost, time=charged.time))


def _failure(
    problem: Problem,
    trial: Trial,
    kind: str,
    end: End,
    detail: str,
    snapshots: Mapping[float, Mapping[str, float]] | None = None,
) -> Verdict:
    """What it measured on its way is measured, however it ended; unless that itself cannot be used."""
    spent = {TIME: max(end.seconds, 1e-9)}  # of what never started, nothing that could be charged
    try:
        return Verdict(outcome_of_failure(problem, trial, kind, spent, snapshots or {}), detail)
    except InputError as error:
        return Verdict(outcome_of_failure(problem, trial, kind, spent), f"{detail}; {error}")


def _bad(state: AttemptState) -> str:
    return f"; not understood: {state.bad_lines[0]!r}" if state.bad_lines else ""


def _told(
    problem: Problem, trial: Trial, state: AttemptState
) -> tuple[dict[str, float], dict[float, Mapping[str, float]]]:
    """The metrics of the trial itself, and those on its way; a later line adds to and corrects an earlier one."""
    final: dict[str, float] = {}
    smaller: dict[float, dict[str, float]] = {}
    for report in state.reports:
        measured = {name: value for name, value in report.metrics.items() if name not in (FRACTION, TIME, COST)}
        fraction = _offered(problem, report.metrics.get(FRACTION, trial.fraction))
        if fraction is None:
            continue  # a share of the data that nobody asked about
        if fraction == trial.fraction:
            final.update(measured)
        elif fraction < trial.fraction and problem.space.snapshots:
            smaller.setdefault(fraction, {}).update({**measured, TIME: report.seconds})
    needed = set(problem.reported_metrics)
    return final, {fraction: one for fraction, one in smaller.items() if needed <= one.keys()}


def _offered(problem: Problem, fraction: float) -> float | None:
    try:
        return problem.space.nearest_fraction(fraction)
    except InputError:
        return None
