"""scikit-learn's ``*SearchCV`` by trimtuner: most candidates are fitted on a share of the rows, or with fewer trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from trimtuner.arrays import Positions
from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.inference import with_usual_scale
from trimtuner.problem.parameters import Choice, Float, Int, Parameter
from trimtuner.problem.problem import TIME
from trimtuner.problem.reports import SHORTEST_SECONDS
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_whole_number
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe

try:
    from sklearn.base import clone, is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _num_samples
except ModuleNotFoundError as error:
    raise InputError(f"TrimSearchCV needs {error.name!r}; pip install 'trimtuner[sklearn]'") from None

Offered: TypeAlias = Mapping[str, Parameter | Sequence[Value]]
Results: TypeAlias = Mapping[str, Sequence[object]]
EvaluateCandidates: TypeAlias = Callable[..., Results]  # of scikit-learn: parameters, splitter, further columns

SAMPLES = "n_samples"
_USUAL_FRACTIONS = (1 / 27, 1 / 9, 1 / 3, 1.0)
_ROWS_AT_LEAST = 20  # that a share of the rows has, and for each class two in every split
_SCORE, _FIT_TIME, _SCORE_TIME = "score", "fit_time", "score_time"


class TrimSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """Finds the parameters of an estimator by cross-validation, mostly on small shares of the rows.

    ``space`` maps names of parameters to ``tt.Choice``, ``tt.Int``, ``tt.Float`` or lists of values. ``resource`` is
    what a trial may get a share of: the rows (``"n_samples"``), or a parameter such as ``"n_estimators"``, of which
    ``max_resources`` is all. ``constraints`` limit what a candidate measures on all of it: ``time`` (seconds of all its
    fits and scores), ``fit_time`` and ``score_time`` (of one split), and other scorers by their names.

    Of all candidates that were measured on all of the resource within the limits, the best is chosen; the column
    ``fraction`` of ``cv_results_`` says on what share each was measured. ``study_`` is the study, to plot or ask.
    """

    def __init__(
        self,
        estimator: object,
        space: Offered | Space,
        *,
        constraints: Iterable[str] = (),
        resource: str = SAMPLES,
        max_resources: int | None = None,
        fractions: Iterable[float] | None = None,
        trials: int = 40,
        timeout: float | str | None = None,
        method: str | Recipe = "trimtuner",
        random_state: object = None,
        scoring: object = None,
        n_jobs: int | None = None,
        refit: object = True,
        cv: object = None,
        verbose: int = 0,
        pre_dispatch: object = "2*n_jobs",
        error_score: object = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space, self.constraints = space, constraints
        self.resource, self.max_resources, self.fractions = resource, max_resources, fractions
        self.trials, self.timeout, self.method, self.random_state = trials, timeout, method, random_state

    def fit(self, X: object, y: object = None, **params: object) -> TrimSearchCV:  # noqa: N803  (scikit-learn's names)
        """Search, then fit the best on all rows unless ``refit`` says no; further parameters go to the estimator."""
        self._known_space = self._space_for(X, y)
        try:
            super().fit(X, y, **params)
        except _NoScore:
            clone(self.estimator).fit(X, y)  # which may say itself what is wrong with these rows
            raise
        return self

    def _run_search(self, evaluate_candidates: EvaluateCandidates) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        study = Study(
            self._known_space,
            maximize=_SCORE,
            constraints=self.constraints,
            method=self.method,
            seed=seed,
            name="search",
        )
        trials = _Trials(self, evaluate_candidates, seed)
        study.optimize(trials.measure, self.trials, timeout=self.timeout, callbacks=[trials.pass_on])
        if not study.history.measurements:
            raise InputError("no candidate could be fitted and scored; see the warnings above")
        best = study.recommend()
        if not best.is_measured:  # what is recommended is measured before it is said to be best
            study.enqueue(best.config, best.fraction)
            study.optimize(trials.measure, 1, callbacks=[trials.pass_on])
        self.study_ = study
        self._best_found = trials.best_of(study)

    def _select_best_index(self, refit: object, refit_metric: str, results: Results) -> int:
        """The best that was measured on all of the resource, within the limits."""
        if callable(refit):
            return int(super()._select_best_index(refit, refit_metric, results))
        return self._best_found

    def __getstate__(self) -> dict[str, object]:
        """A study has its models at hand, which are not to be written down."""
        return {name: value for name, value in super().__getstate__().items() if name not in ("study_", "_known_space")}

    def _space_for(self, X: object, y: object) -> Space:  # noqa: N803
        if isinstance(self.space, Space):
            if self.space.has_prices or self.space.listed is not None:
                raise InputError(
                    "TrimSearchCV chooses parameters of an estimator; give a space without machines or prices"
                )
            return self.space if self.fractions is None else self.space.with_fractions(tuple(sorted(self.fractions)))
        if not isinstance(self.space, Mapping):
            raise InputError(f"space={self.space!r} must map names of parameters to tt.Choice, tt.Float or lists")
        if self.resource in self.space:
            raise InputError(
                f"{self.resource!r} is the resource, of which a trial gets a share; leave it out of the space"
            )
        fractions = self._usual_fractions(X, y) if self.fractions is None else self.fractions
        return Space({name: _parameter(name, one) for name, one in self.space.items()}, fractions=fractions)

    def _usual_fractions(self, X: object, y: object) -> list[float]:  # noqa: N803
        """Thirds of thirds, as long as a share is worth training on."""
        if self.resource == SAMPLES:
            splits = self.cv if is_whole_number(self.cv) else 5
            classes = len(np.unique(np.asarray(y))) if y is not None and is_classifier(self.estimator) else 1
            whole, least = _num_samples(X), max(_ROWS_AT_LEAST, 2 * splits * classes)
        else:
            if not is_whole_number(self.max_resources) or self.max_resources < 1:
                raise InputError(f"resource={self.resource!r} needs max_resources, how much of it is all of it")
            whole, least = self.max_resources, 1
        return [fraction for fraction in _USUAL_FRACTIONS if fraction == 1 or fraction * whole >= least]


class _NoScore(ValueError):  # noqa: N818  (named by what is missing)
    """Some fits of a candidate failed, or it was scored as no number."""


class _Trials:
    """Runs the trials of a search by scikit-learn's own means, and knows which of its rows each is."""

    def __init__(self, search: TrimSearchCV, evaluate: EvaluateCandidates, seed: int) -> None:
        self._search, self._evaluate, self._seed = search, evaluate, seed
        self._rows: list[tuple[dict[str, Value], float]] = []  # in the order of cv_results_
        self._raised: Exception | None = None

    def measure(self, config: dict[str, Value], fraction: float) -> dict[str, float]:
        """What cross-validation says of a candidate on a share of the resource."""
        search = self._search
        params, splitter = dict(config), search._checked_cv_orig
        if search.resource != SAMPLES:
            params[search.resource] = max(round(fraction * (search.max_resources or 1)), 1)
        elif fraction < 1:
            splitter = _OnShare(splitter, fraction, self._seed)
        try:
            results = self._evaluate([params], cv=splitter, more_results={"fraction": [fraction]})
        except Exception as error:
            self._raised = error
            if search.error_score != "raise":
                warnings.warn(f"{params!r} failed and counts as a failure: {error}", FitFailedWarning, stacklevel=2)
            raise
        self._rows.append((config, fraction))
        return self._metrics(results)

    def pass_on(self, study: Study, trial: object) -> None:  # noqa: ARG002  (what a callback is called with)
        """Where the user wants to see the first error, that is it."""
        if self._raised is not None and self._search.error_score == "raise":
            raise self._raised

    def best_of(self, study: Study) -> int:
        """The row of the best measured on all of the resource, of those within the limits if there are any."""
        constraints = study.problem.constraints
        ended = {(_key(m.configuration), m.fraction): m.metrics for m in study.history.measurements}
        whole = [row for row, (config, at) in enumerate(self._rows) if at == 1 and (_key(config), at) in ended]
        if not whole:
            raise InputError("no candidate could be measured on all of the resource; see the warnings above")
        told = [ended[_key(self._rows[row][0]), 1.0] for row in whole]
        within = [all(one.is_met(metrics[one.metric]) for one in constraints) for metrics in told]
        ranked = sorted(zip(within, (metrics[_SCORE] for metrics in told), whole, strict=True), key=lambda one: one[:2])
        return ranked[-1][2]

    def _metrics(self, results: Results) -> dict[str, float]:
        def last(column: str) -> float:
            return float(results[column][-1])  # type: ignore[arg-type]  # numbers, but scikit-learn has no types

        scorers = [name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_")]
        scores = {name: last(f"mean_test_{name}") for name in scorers}
        goal = _SCORE if _SCORE in scores else str(self._search.refit)
        if goal not in scores:
            raise InputError(f"several scorers: refit must name that which is maximized, one of {', '.join(scorers)}")
        if not np.isfinite(scores[goal]):
            raise _NoScore(f"the score of a candidate is {scores[goal]}; see the warnings above for which fits failed")
        times = {name: max(last(f"mean_{name}"), SHORTEST_SECONDS) for name in (_FIT_TIME, _SCORE_TIME)}
        seconds = sum(times.values()) * self._search.n_splits_
        finite = {name: score for name, score in scores.items() if np.isfinite(score)}
        return {**finite, _SCORE: scores[goal], **times, TIME: seconds}


class _OnShare:
    """A splitter whose training rows are a share of another's: the same rows for every candidate, scored on all."""

    def __init__(self, whole: object, fraction: float, seed: int) -> None:
        self._whole, self._fraction, self._seed = whole, fraction, seed

    def split(self, X: object, y: object = None, **more: object) -> Iterator[tuple[Positions, Positions]]:  # noqa: N803
        """The other's splits; a smaller share is the beginning of a larger one."""
        for number, (train, test) in enumerate(self._whole.split(X, y, **more)):  # type: ignore[attr-defined]
            order = np.random.default_rng([self._seed, number]).permutation(len(train))
            yield train[np.sort(order[: max(round(self._fraction * len(train)), 1)])], test


def _key(config: Mapping[str, Value]) -> str:
    return repr(sorted(config.items()))


def _parameter(name: str, offered: Parameter | Sequence[Value]) -> Parameter:
    if isinstance(offered, Choice | Int | Float):
        return offered
    if isinstance(offered, str) or not isinstance(offered, Iterable):
        raise InputError(f"space[{name!r}] is {offered!r}; write a list of values, tt.Choice, tt.Int or tt.Float")
    try:
        return with_usual_scale(Choice(offered))
    except InputError as error:
        raise InputError(f"space[{name!r}]: {error}") from None
