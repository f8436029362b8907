"""A Ray Tune searcher that tests mostly on small shares of the data."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from trimtuner.errors import InputError, SearchOver
from trimtuner.problem.history import PREEMPTED, History, Trial
from trimtuner.problem.problem import COST, TIME
from trimtuner.problem.reports import SHORTEST_SECONDS, with_measured_time
from trimtuner.problem.space import Space
from trimtuner.records.codec import decode_trial, encode_trial
from trimtuner.reporting import plain_number
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recommendation import Recommendation

try:
    from ray.tune.search import Searcher
except ModuleNotFoundError:
    raise InputError("the Ray Tune searcher needs 'ray[tune]'; pip install 'trimtuner[ray-tune]'") from None

_SECONDS_SO_FAR = "time_total_s"  # Ray Tune's own: of training, without the wait for a free machine

Metrics: TypeAlias = dict[str, float]


@dataclass
class _UnderWay:
    """A trial that Ray Tune was given, and what it has reported so far."""

    trial: Trial
    since: float = field(default_factory=time.monotonic)
    seconds: float | None = None  # of training, at the last report
    snapshots: dict[float, Metrics] = field(default_factory=dict)

    def charge(self) -> Metrics:
        """What it is charged for when it measured nothing; a trial that never reported, since it was suggested."""
        seconds = time.monotonic() - self.since if self.seconds is None else self.seconds
        return {TIME: max(seconds, SHORTEST_SECONDS)}


class TrimTunerSearch(Searcher):
    """Suggests a configuration with the share of the data to train on, under the key ``fraction``.

    A trial reports its metrics by ``ray.tune.report({"accuracy": 0.91})``; time is Ray Tune's unless reported as
    ``time`` (seconds), and cost (USD) follows from the space's prices unless reported. In a space with snapshots,
    reports with a smaller ``fraction`` are measurements on the way. ``recommendation()`` is the answer.
    """

    def __init__(
        self,
        space: Space,
        *,
        metric: str,
        mode: str = "max",
        constraints: Iterable[str] = (),
        method: str | Recipe = "trimtuner",
        seed: int = 0,
        budget: float | None = None,
        fraction_key: str = "fraction",
    ) -> None:
        if mode not in ("max", "min"):
            raise InputError(f"mode={mode!r} is none of max, min")
        self._study = Study(
            space,
            maximize=metric if mode == "max" else None,
            minimize=metric if mode == "min" else None,
            constraints=constraints,
            method=method,
            seed=seed,
            budget=budget,
        )
        if fraction_key in space.names:
            raise InputError(f"the space has a parameter {fraction_key!r}; give fraction_key= another name")
        super().__init__(metric=metric, mode=mode)
        self._fraction_key = fraction_key
        self._under_way: dict[str, _UnderWay] = {}  # by Ray Tune's name of the trial
        self._events: list[dict[str, object]] = []  # every trial asked and told, in order: what is saved

    def set_search_properties(
        self,
        metric: str | None,
        mode: str | None,
        config: Mapping[str, object],
        **spec: object,  # noqa: ARG002  (Ray Tune's signature)
    ) -> bool:
        """Refuse a goal or a space in the Tuner that is not the searcher's."""
        if (metric or self.metric, mode or self.mode) != (self.metric, self.mode):
            raise InputError(
                f"TuneConfig says {mode} of {metric!r} and the searcher {self.mode} of {self.metric!r}; "
                "leave metric and mode out of TuneConfig, or say the same"
            )
        for name in config:
            if name in (*self._study.problem.space.names, self._fraction_key):
                raise InputError(f"param_space gives {name!r}, which the searcher chooses; leave it out there")
        return False  # to Ray Tune: what is left in param_space are constants

    @property
    def study(self) -> Study:
        """The study behind the search, for its views: ``search.study.plot("tradeoff")``."""
        return self._study

    def recommendation(self) -> Recommendation:
        """The best configuration as far as is known, with what it is expected to measure on all of the data."""
        return self._study.recommend()

    def suggest(self, trial_id: str) -> dict[str, object] | str | None:  # type: ignore[override]
        """The next configuration with its fraction; FINISHED when the search is over."""
        try:
            trial = self._study.ask()
        except SearchOver:
            return None if self._study.history.pending else str(self.FINISHED)
        self._remember(trial_id, trial)
        return {**trial.config, self._fraction_key: trial.fraction}

    def on_trial_result(self, trial_id: str, result: Mapping[str, object]) -> None:
        """A report on the way: a snapshot, where it names a smaller fraction and the space has snapshots."""
        under_way = self._under_way.get(trial_id)
        if under_way is None:
            return
        seconds = result.get(_SECONDS_SO_FAR)
        under_way.seconds = float(seconds) if isinstance(seconds, int | float) else under_way.seconds
        fraction = self._fraction_of(under_way.trial, result)
        if fraction < under_way.trial.fraction and self._study.problem.space.snapshots:
            metrics = self._metrics_of(result)
            if _all_finite(metrics):
                under_way.snapshots[fraction] = metrics

    def on_trial_complete(self, trial_id: str, result: Mapping[str, object] | None = None, error: bool = False) -> None:
        """How a trial ended; an error where its report cannot be used, and Ray Tune then shows it as errored."""
        under_way = self._under_way.get(trial_id)
        if under_way is None:
            return
        failed = "error" if error else self._kind_of_failure(under_way.trial, result)
        metrics = under_way.charge() if failed is not None or result is None else self._metrics_of(result)
        try:
            self._tell(trial_id, metrics, under_way.snapshots, failed)
        except InputError:
            # The trial ran and cost its time, whatever it reported.
            self._tell(trial_id, under_way.charge(), {}, "bad metric")
            raise

    def save(self, checkpoint_path: str) -> None:
        """Write every trial asked and told, as JSON."""
        Path(checkpoint_path).write_text(json.dumps(self._events, allow_nan=False), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on from what was saved, by a searcher with the same space and goal."""
        try:
            events = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
            self._study.history = History()
            self._under_way.clear()
            self._events.clear()
            for event in events:
                self._repeat(event)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{checkpoint_path} is not what such a searcher has saved: {error}") from None

    def _repeat(self, event: Mapping[str, object]) -> None:
        trial_id = str(event["trial_id"])
        if "asked" in event:
            trial = decode_trial(self._study.history.next_number, event["asked"])
            self._study.problem.space.check(trial.config)
            self._study.history = self._study.history.with_asked(trial)
            self._remember(trial_id, trial)
            return
        told = event["told"]
        if not isinstance(told, list):
            raise TypeError(f"{trial_id} was told {told!r}")
        metrics, snapshots, failed = told
        self._tell(trial_id, metrics, {float(fraction): told for fraction, told in snapshots}, failed)

    def _remember(self, trial_id: str, trial: Trial) -> None:
        self._under_way[trial_id] = _UnderWay(trial)
        self._events.append({"trial_id": trial_id, "asked": encode_trial(trial)})

    def _tell(self, trial_id: str, metrics: Metrics, snapshots: dict[float, Metrics], failed: str | None) -> None:
        self._study.tell_report(self._under_way[trial_id].trial, metrics, snapshots, failed)
        del self._under_way[trial_id]
        self._events.append({"trial_id": trial_id, "told": [metrics, list(snapshots.items()), failed]})

    def _kind_of_failure(self, trial: Trial, result: Mapping[str, object] | None) -> str | None:
        if result is None:
            return PREEMPTED  # Ray Tune took it back before it began
        if self._fraction_of(trial, result) < trial.fraction:
            return "stopped early"
        return None if _all_finite(self._metrics_of(result)) else "diverged"

    def _fraction_of(self, trial: Trial, result: Mapping[str, object]) -> float:
        """The share of the data that a report is about: the trial's, where it does not say."""
        if self._fraction_key not in result:
            return trial.fraction
        return self._study.problem.space.nearest_fraction(_number_in(result, self._fraction_key))

    def _metrics_of(self, result: Mapping[str, object]) -> Metrics:
        """What the problem is about, out of all that Ray Tune has in a result."""
        problem = self._study.problem
        wanted = (*problem.reported_metrics, TIME, COST)
        told = {name: _number_in(result, name) for name in wanted if name in result}
        seconds = _number_in(result, _SECONDS_SO_FAR) if _SECONDS_SO_FAR in result else None
        return with_measured_time(problem, told, seconds)


def _all_finite(metrics: Metrics) -> bool:
    return all(math.isfinite(value) for value in metrics.values())


def _number_in(result: Mapping[str, object], name: str) -> float:
    number = plain_number(result[name])
    if number is None:
        raise InputError(f"a trial reports {name}={result[name]!r}, which is no number")
    return number
