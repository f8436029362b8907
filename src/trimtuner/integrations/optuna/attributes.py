"""What the sampler writes into a trial: Optuna's own attributes, so that every process and every view can read it."""

from __future__ import annotations

import optuna
from optuna.trial import FrozenTrial, TrialState

from trimtuner.errors import InputError, SearchOver
from trimtuner.integrations.written import write_trial
from trimtuner.problem.history import Outcome, Trial
from trimtuner.problem.problem import Problem

FRACTION = "fraction"  # user attribute: the share of the data, put there by the sampler
FAILED = "failed"  # user attribute: the kind of failure, where the objective names it
OVER = "search_over"  # user attribute: why there is nothing left to choose for a trial
ASKED = "trimtuner:asked"  # system attribute: configuration and fraction that the sampler has chosen
SECONDS = "trimtuner:seconds"  # system attribute: how long a trial took that came to its end

_CONSTRAINT_PREFIX = "constraints:"  # how Optuna's Trial.set_constraint names a system attribute
_ALL_DATA = "fraction >= 1"  # what an answer must meet besides, where limits are meant at full data


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
    study._storage.set_trial_system_attr(trial._trial_id, ASKED, write_trial(asked))
    _write_for_the_objective(study, trial, FRACTION, asked.fraction)


def write_end(study: optuna.Study, trial: FrozenTrial, seconds: float) -> None:
    """That the trial came to its end, and how long it took."""
    study._storage.set_trial_system_attr(trial._trial_id, SECONDS, seconds)


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


def _write_for_the_objective(study: optuna.Study, trial: FrozenTrial, name: str, value: float | str) -> None:
    study._storage.set_trial_user_attr(trial._trial_id, name, value)
    trial.user_attrs[name] = value  # the objective looks here, not in the storage
