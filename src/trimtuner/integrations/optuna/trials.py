"""Optuna's trials, written and read: everything is in them, so that every process on a study reads the same."""

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

from trimtuner.errors import InputError, SearchOver
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED, History, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.reports import SHORTEST_SECONDS, outcome_of_failure, outcome_of_success, with_measured_time
from trimtuner.records.codec import decode_trial, encode_trial

FRACTION = "fraction"  # user attribute: the share of the data, put there by the sampler
FAILED = "failed"  # user attribute: the kind of failure, where the objective names it
OVER = "search_over"  # user attribute: why there is nothing left to choose for a trial
ASKED = "trimtuner:asked"  # system attribute: configuration and fraction that the sampler has chosen
SECONDS = "trimtuner:seconds"  # system attribute: how long a trial took that came to its end

_CONSTRAINT_PREFIX = "constraints:"  # how Optuna's Trial.set_constraint names a system attribute
_ALL_DATA = "fraction >= 1"  # what an answer must meet besides, where limits are meant at full data
_PATIENCE_SECONDS = 30.0  # with a trial that was created and not chosen yet: its process is at work, or dead


def fraction_of(trial: optuna.trial.BaseTrial) -> float:
    """The share of the data to train this trial on, in (0, 1]."""
    refuse_when_over(trial)
    if FRACTION not in trial.user_attrs:
        raise InputError(f"trial {trial.number} has no {FRACTION!r}; is TrimTunerSampler the sampler of this study?")
    return float(trial.user_attrs[FRACTION])


def refuse_when_over(trial: optuna.trial.BaseTrial) -> None:
    """Prune the trial that was made when the search was over already: that is how an objective is left."""
    if OVER in trial.user_attrs:
        raise optuna.TrialPruned(trial.user_attrs[OVER])


def write_choice(study: optuna.Study, trial: FrozenTrial, asked: Trial) -> None:
    """Configuration and fraction that were chosen for the trial."""
    study._storage.set_trial_system_attr(trial._trial_id, ASKED, encode_trial(asked))
    _write_for_the_objective(study, trial, FRACTION, asked.fraction)


def write_end(
    study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
) -> FrozenTrial:
    """Write that the trial came to its end, and how long it took; the trial as it will be stored."""
    seconds = seconds_since_start(trial)
    study._storage.set_trial_system_attr(trial._trial_id, SECONDS, seconds)
    ended = copy.copy(trial)
    ended.state, ended.values = state, values
    ended.system_attrs = {**trial.system_attrs, SECONDS: seconds}
    return ended


def write_limits(study: optuna.Study, trial: FrozenTrial, problem: Problem, outcome: Outcome) -> None:
    """Optuna's constraint values, at most 0 where a limit is kept: so its views know which trials are answers."""
    if not outcome.measurements:
        return
    measured = outcome.measurements[-1]
    broken_by = {
        limit.text: (1.0 if limit.is_upper else -1.0) * (measured.metrics[limit.metric] - limit.limit)
        for limit in problem.constraints
    }
    if len(problem.target_fractions) < len(problem.space.fractions):
        broken_by[_ALL_DATA] = 1.0 - measured.fraction
    for name, amount in broken_by.items():
        study._storage.set_trial_system_attr(trial._trial_id, f"{_CONSTRAINT_PREFIX}{name}", amount)


def end_loop(study: optuna.Study, trial: FrozenTrial, over: SearchOver, fraction: float) -> None:
    """End study.optimize: the trial that is there already is pruned when it first suggests. Elsewhere, an error."""
    try:
        study.stop()
    except RuntimeError:
        close(study, trial)
        raise over from None
    _write_for_the_objective(study, trial, OVER, str(over))
    _write_for_the_objective(study, trial, FRACTION, fraction)  # for who reads it before suggesting


def close(study: optuna.Study, trial: FrozenTrial) -> None:
    """End a trial that cannot begin: it would be under way for ever."""
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)


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


def seconds_since_start(trial: FrozenTrial) -> float:
    """How long the trial has run, by this machine's clock."""
    started = trial.datetime_start or datetime.now()
    return max((datetime.now() - started).total_seconds(), SHORTEST_SECONDS)


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


def _write_for_the_objective(study: optuna.Study, trial: FrozenTrial, name: str, value: float | str) -> None:
    study._storage.set_trial_user_attr(trial._trial_id, name, value)
    trial.user_attrs[name] = value  # the objective looks here, not in the storage


def _is_being_chosen(trial: FrozenTrial) -> bool:
    if trial.state is not TrialState.RUNNING or ASKED in trial.system_attrs or OVER in trial.user_attrs:
        return False
    return seconds_since_start(trial) < _PATIENCE_SECONDS


def _placed(problem: Problem, trial: FrozenTrial) -> Trial:
    """The trial in the words of the space: what was suggested, else what was chosen for it."""
    asked = Trial(trial.number, {}, 1.0, origin="import")
    if ASKED in trial.system_attrs:
        asked = decode_trial(trial.number, trial.system_attrs[ASKED])
    known = {**_without_choice(problem.space.cloud), **asked.config, **trial.params}
    config = problem.space.as_written({name: known[name] for name in problem.space.names if name in known})
    given = trial.user_attrs.get(FRACTION, asked.fraction)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InputError(f"trial {trial.number} has {FRACTION}={given!r}, which is no number")
    return replace(
        asked,
        config=config,
        fraction=problem.space.nearest_fraction(given),
        recommended=_still_offered(problem, asked.recommended),
    )


def _still_offered(
    problem: Problem, recommended: tuple[Mapping[str, Value], float] | None
) -> tuple[Mapping[str, Value], float] | None:
    """What was recommended when less was known of the space may not be in it."""
    if recommended is None:
        return None
    try:
        return problem.space.as_written(recommended[0]), recommended[1]
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
    return with_measured_time(problem, reported, _seconds(trial))


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
