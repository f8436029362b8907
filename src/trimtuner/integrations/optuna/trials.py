"""Optuna's trials read as a history: everything is in the trials, so that every process on a study reads the same."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import optuna
from optuna.trial import FrozenTrial, TrialState

from trimtuner.errors import InputError
from trimtuner.integrations.optuna.attributes import ASKED, FAILED, FRACTION, OVER, SECONDS
from trimtuner.integrations.written import read_trial
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED, History, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success

_FIXED = "fixed_params"  # Optuna's system attribute of a trial that was enqueued
_PATIENCE_SECONDS = 30.0  # with a trial that was created and not chosen yet: its process is at work, or dead
_SHORTEST_SECONDS = 1e-9


def enqueued_parameters(trial: FrozenTrial) -> dict[str, Value] | None:
    """Parameters that the user has chosen for the trial; nothing where it is the sampler's to choose."""
    return trial.system_attrs.get(_FIXED)


def other_trials(study: optuna.Study, number: int) -> list[FrozenTrial]:
    """All trials of the study but one."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.number != number]


def settled_trials(study: optuna.Study, number: int) -> list[FrozenTrial]:
    """All other trials, once those before this one are chosen: so that no two workers choose the same."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        others = other_trials(study, number)
        is_late = time.monotonic() > deadline
        if is_late or not any(_is_being_chosen(other) for other in others if other.number < number):
            return others
        time.sleep(0.02)


def as_ended(trial: FrozenTrial, state: TrialState, values: Sequence[float] | None, seconds: float) -> FrozenTrial:
    """The trial as it will be stored."""
    ended = copy.copy(trial)
    ended.state = state
    ended.values = values
    ended.system_attrs = {**trial.system_attrs, SECONDS: seconds}
    return ended


def seconds_since_start(trial: FrozenTrial) -> float:
    """By this machine's clock."""
    started = trial.datetime_start or datetime.now()
    return max((datetime.now() - started).total_seconds(), _SHORTEST_SECONDS)


def history_of(problem: Problem, trials: Iterable[FrozenTrial], next_number: int) -> History:
    """What the trials say, in the order of their numbers."""
    outcomes: list[Outcome] = []
    pending: list[Trial] = []
    unread: list[str] = []
    for trial in sorted(trials, key=lambda trial: trial.number):
        if OVER in trial.user_attrs:
            continue
        try:
            if trial.state is TrialState.RUNNING and ASKED in trial.system_attrs:
                pending.append(_placed(problem, trial))
            elif trial.state.is_finished():
                outcomes.append(outcome_of(problem, trial))
        except InputError as error:
            if trial.state.is_finished():
                outcomes.append(_lost(problem, trial))
            if trial.state is TrialState.COMPLETE:
                unread.append(f"trial {trial.number}: {error}")
    if unread:
        warnings.warn(f"{len(unread)} trials of the study teach nothing, the last {unread[-1]}", stacklevel=2)
    return History(tuple(outcomes), tuple(pending), next_number)


def outcome_of(problem: Problem, trial: FrozenTrial) -> Outcome:
    """How one trial ended; an error where its report cannot be used."""
    placed = _placed(problem, trial)
    kind = _kind_of_failure(trial)
    if kind is not None:
        return outcome_of_failure(problem, placed, kind, _charge(problem, trial))
    reported = {name: trial.user_attrs[name] for name in problem.reported_metrics if name in trial.user_attrs}
    told = {**_charge(problem, trial), **reported, problem.goal.metric: float(trial.value or 0.0)}
    return outcome_of_success(problem, placed, told, {})


def _is_being_chosen(trial: FrozenTrial) -> bool:
    if trial.state is not TrialState.RUNNING or ASKED in trial.system_attrs or OVER in trial.user_attrs:
        return False
    return seconds_since_start(trial) < _PATIENCE_SECONDS


def _placed(problem: Problem, trial: FrozenTrial) -> Trial:
    """The trial in the words of the space: what was suggested, else what was chosen for it."""
    asked = Trial(trial.number, {}, 1.0, origin="import")
    if ASKED in trial.system_attrs:
        asked = read_trial(trial.number, trial.system_attrs[ASKED])
    known = {**_without_choice(problem.space.cloud), **asked.config, **trial.params}
    config = _as_written(problem, {name: known[name] for name in problem.space.names if name in known})
    given = trial.user_attrs.get(FRACTION, asked.fraction)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InputError(f"trial {trial.number} has {FRACTION}={given!r}, which is no number")
    return replace(
        asked,
        config=config,
        fraction=problem.space.nearest_fraction(given),
        recommended=_still_offered(problem, asked.recommended),
    )


def _as_written(problem: Problem, config: dict[str, Value]) -> dict[str, Value]:
    """The configuration as the space writes it: 16 may be 16.0 there."""
    space = problem.space
    space.check(config)
    if not space.is_enumerable:
        return config
    pool = space.pool()
    return pool.configuration(pool.position(config))


def _still_offered(
    problem: Problem, recommended: tuple[Mapping[str, Value], float] | None
) -> tuple[Mapping[str, Value], float] | None:
    """What was recommended when less was known of the space may not be in it."""
    if recommended is None:
        return None
    try:
        return _as_written(problem, dict(recommended[0])), recommended[1]
    except InputError:
        return None


def _without_choice(cloud: Cloud | None) -> dict[str, Value]:
    """What all machines of the cloud have in common, and an objective so has no need to suggest."""
    if cloud is None:
        return {}
    first, *others = [cloud.parameter_values(cluster) for cluster in cloud.clusters]
    return {name: value for name, value in first.items() if all(other[name] == value for other in others)}


def _kind_of_failure(trial: FrozenTrial) -> str | None:
    if trial.state is TrialState.PRUNED:
        return "pruned"
    if trial.state is TrialState.COMPLETE:
        return None if math.isfinite(trial.value or 0.0) else "diverged"
    if ASKED in trial.system_attrs and SECONDS not in trial.system_attrs:
        return PREEMPTED  # it never came to its end: the process is gone
    return str(trial.user_attrs.get(FAILED, FAILED))


def _charge(problem: Problem, trial: FrozenTrial) -> dict[str, float]:
    """Time and cost as reported; else the time between start and end, from which a cost follows where prices are."""
    reported = {name: trial.user_attrs[name] for name in (TIME, COST) if name in trial.user_attrs}
    if TIME in reported or (COST in reported and problem.space.has_prices):
        return reported
    seconds = _seconds(trial)
    return reported if seconds is None else {TIME: seconds, **reported}


def _seconds(trial: FrozenTrial) -> float | None:
    """Nothing for a trial that was added with its result, and has no length of its own."""
    if SECONDS in trial.system_attrs:
        return float(trial.system_attrs[SECONDS])
    length = trial.duration
    return None if length is None or length.total_seconds() <= 0 else length.total_seconds()


def _lost(problem: Problem, trial: FrozenTrial) -> Outcome:
    """Money spent and nothing learnt, for which no configuration is to blame."""
    try:
        return outcome_of_failure(problem, _placed(problem, trial), PREEMPTED, _charge(problem, trial))
    except InputError:
        cost = trial.user_attrs.get(COST, 0.0)
        known = float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else 0.0
        return Outcome(Trial(trial.number, {}, 1.0, origin="import"), (), PREEMPTED, max(known, 0.0), _seconds(trial))
