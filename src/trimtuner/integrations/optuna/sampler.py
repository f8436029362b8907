"""The sampler: chooses a trial's configuration and its share of the data together, when the trial begins."""
# ruff: noqa: ARG002  (its methods have the parameters that Optuna gives)

from __future__ import annotations

import copy
import threading
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from trimtuner.errors import InputError, NoAnswer, SearchOver, TrimTunerError
from trimtuner.integrations.optuna.distributions import parameter_of, value_at, value_within
from trimtuner.integrations.optuna.trials import (
    ASKED,
    FRACTION,
    close,
    end_loop,
    history_of,
    other_trials,
    outcome_of,
    refuse_when_over,
    settled_trials,
    write_choice,
    write_end,
    write_limits,
)
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Trial
from trimtuner.problem.parameters import Choice
from trimtuner.problem.space import Space
from trimtuner.records.codec import decode_trial
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recommendation import Recommendation

_ENQUEUED = "fixed_params"  # Optuna's system attribute of what the user has chosen for a trial
_CHEAP_SHARE = 1 / 3  # of the machines, by price, that are tried while nothing is known
_ONE_AT_A_TIME = threading.RLock()  # threads of study.optimize(n_jobs=...) share a sampler


@dataclass(frozen=True)
class _KnownSpace:
    """What the trials so far say of the space, and a study of it."""

    suggested: dict[str, BaseDistribution]
    direction: StudyDirection
    study: Study

    def rounded(self, config: dict[str, Value]) -> dict[str, Value]:
        """As the objective suggests it, where the space was read from that."""
        return {
            name: value_within(name, self.suggested[name], value) if name in self.suggested else value
            for name, value in config.items()
        }


class TrimTunerSampler(BaseSampler):
    """Chooses parameters, and the share of the data to train on: ``fraction_of(trial)``.

    The objective trains on that share and returns its metric; time is measured unless the objective reports it, and
    cost follows from the price of a ``cloud``: ``trial.set_user_attr("cost", 0.02)`` reports cost (USD), time (seconds)
    or any metric that a constraint names. Everything is kept in the study's trials, nothing in the sampler. Without
    ``space`` it is read from what the objective suggests. ``recommendation(study)`` is the answer.
    """

    def __init__(
        self,
        *,
        space: Space | None = None,
        fractions: Iterable[float] | None = None,
        cloud: Cloud | None = None,
        constraints: Iterable[str] = (),
        metric: str = "value",
        method: str | Recipe = "trimtuner",
        seed: int = 0,
        budget: float | None = None,
    ) -> None:
        if space is not None and (fractions is not None or cloud is not None):
            raise InputError("fractions= and cloud= are for a space that is yet unknown; a tt.Space has its own")
        if space is not None and space.snapshots:
            raise InputError("a trial of Optuna reports no snapshots; give a tt.Space without snapshots=True")
        self._space, self._cloud = space, cloud
        self._constraints = constraints if isinstance(constraints, str) else tuple(constraints)
        self._metric, self._method, self._seed, self._budget = metric, method, seed, budget
        unknown = {"unknown": Choice([0])}
        self._offer = space or Space(unknown, cloud=cloud, fractions=(1.0,) if fractions is None else fractions)
        self._known: _KnownSpace | None = None
        self._study_on(self._offer, StudyDirection.MINIMIZE)  # wrong words are refused now, not when money is spent

    def __getstate__(self) -> dict[str, object]:
        """To be pickled without what is only worked out from the trials."""
        return {**self.__dict__, "_known": None}

    def recommendation(self, study: optuna.Study) -> Recommendation:
        """The best configuration as far as is known, with what it is expected to measure on all of the data."""
        best = self.as_study(study).recommend()
        known = self._read(study.get_trials(deepcopy=False), study.direction)
        return best if known is None else replace(best, config=known.rounded(dict(best.config)))

    def as_study(self, study: optuna.Study) -> Study:
        """A study of ours with the same history, for its views: ``as_study(study).plot("tradeoff")``."""
        trials = study.get_trials(deepcopy=False)
        known = self._read(trials, study.direction)
        if known is None:
            raise NoAnswer("no trial of this study has ended yet; run at least one")
        ours = self._study_on(known.study.problem.space, study.direction)
        ours.history = history_of(ours.problem, trials, len(trials))
        return ours

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose configuration and fraction, and write both into the trial."""
        if ASKED in trial.system_attrs:  # Optuna runs a trial again whose process died
            return
        try:
            _refuse_several_objectives(study)
            trials = settled_trials(study, trial.number)
            with _ONE_AT_A_TIME:
                asked = self._choose(trials, study.direction, trial)
        except SearchOver as over:
            end_loop(study, trial, over, self._offer.fractions[0])
        except TrimTunerError:
            close(study, trial)
            raise
        else:
            write_choice(study, trial, asked)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Nothing: all is chosen before the objective begins, and handed out as it suggests."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, object]:
        """Nothing, as there is no relative search space."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Value:
        """The value that was chosen; at random for what is not known to be suggested by every trial."""
        refuse_when_over(trial)
        asked = decode_trial(trial.number, trial.system_attrs.get(ASKED))
        if param_name in asked.config:
            return value_within(param_name, param_distribution, asked.config[param_name])
        if self._space is not None and asked.origin != "import":
            here = ", ".join(asked.config)
            raise InputError(f"the objective suggests {param_name!r}, but the space has here only {here}")
        if asked.origin in ("design", "model"):
            warnings.warn(
                f"{param_name!r} is not suggested alike in every trial, so it is chosen at random; "
                "space=tt.Space(...), with when= conditions, says what is to be searched",
                stacklevel=2,
            )
        generator = np.random.default_rng([self._seed, trial.number, zlib.crc32(param_name.encode())])
        return value_at(param_name, param_distribution, float(generator.random()))

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Check what was reported, and write how far each limit is kept."""
        ended = write_end(study, trial, state, values)
        if state is not TrialState.COMPLETE:
            return
        known = self._read([*other_trials(study, trial.number), ended], study.direction)
        if known is None:
            raise InputError(
                "the trials so far have no parameter in common that could be learnt about; suggest one in every trial, "
                "or give space=tt.Space(...) with when= conditions"
            )
        write_limits(study, trial, known.study.problem, outcome_of(known.study.problem, ended))

    def _choose(self, trials: Sequence[FrozenTrial], direction: StudyDirection, trial: FrozenTrial) -> Trial:
        known = self._read(trials, direction)
        enqueued = trial.system_attrs.get(_ENQUEUED)
        if enqueued is not None:
            return self._as_enqueued(trial, enqueued, known)
        if known is None:
            return self._first_guess(trial.number, self._study_on(self._offer, direction))
        known.study.history = history_of(known.study.problem, trials, trial.number)
        asked = known.study.ask()
        return replace(asked, config=known.rounded(dict(asked.config)))

    def _as_enqueued(self, trial: FrozenTrial, enqueued: dict[str, Value], known: _KnownSpace | None) -> Trial:
        """On all of the data unless it says otherwise; refused before it runs, if it is outside of a known space."""
        space = self._offer if known is None else known.study.problem.space
        if enqueued.keys() >= set(space.names):
            space.check({name: enqueued[name] for name in space.names})
        return Trial(trial.number, {}, space.nearest_fraction(trial.user_attrs.get(FRACTION, 1.0)), origin="import")

    def _first_guess(self, number: int, study: Study) -> Trial:
        """While it is not known what the objective suggests: the smallest fraction on cheap machines."""
        config: dict[str, Value] = {}
        if self._cloud is not None:
            clusters = sorted(self._cloud.clusters, key=self._cloud.price_per_hour)
            cheap = max(1, round(_CHEAP_SHARE * len(clusters)))
            drawn = int(np.random.default_rng([self._seed, number]).integers(cheap))
            config = self._cloud.parameter_values(clusters[drawn])
        fractions = study.recipe.tested_fractions(study.problem)
        return Trial(number, config, fractions[0], origin="random")

    def _read(self, trials: Sequence[FrozenTrial], direction: StudyDirection) -> _KnownSpace | None:
        """What the trials say of the space; nothing while it is unknown. The same object while they say the same."""
        suggested: dict[str, BaseDistribution] = {}
        if self._space is None:
            suggested = intersection_search_space(list(trials))
            if not suggested:
                return None
        with _ONE_AT_A_TIME:
            if self._known is None or (self._known.suggested, self._known.direction) != (suggested, direction):
                space = copy.copy(self._space) or self._space_of(suggested)
                self._known = _KnownSpace(suggested, direction, self._study_on(space, direction))
            return self._known

    def _space_of(self, suggested: dict[str, BaseDistribution]) -> Space:
        machines = set() if self._cloud is None else set(self._cloud.parameter_values(self._cloud.clusters[0]))
        free = {name: parameter_of(name, one) for name, one in suggested.items() if name not in machines}
        return Space(free, cloud=self._cloud, fractions=self._offer.fractions)

    def _study_on(self, space: Space, direction: StudyDirection) -> Study:
        is_maximized = direction is StudyDirection.MAXIMIZE
        return Study(
            space,
            maximize=self._metric if is_maximized else None,
            minimize=None if is_maximized else self._metric,
            constraints=self._constraints,
            method=self._method,
            seed=self._seed,
            budget=self._budget,
        )


def _refuse_several_objectives(study: optuna.Study) -> None:
    if len(study.directions) > 1:
        raise InputError(
            f"TrimTunerSampler searches for one objective, but the study has {len(study.directions)}; "
            "keep one and state the others as constraints, such as constraints=['latency_ms <= 40']"
        )
