"""A study: ask for a trial, run it, tell what came out, take the recommendation."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trimtuner.decisions.belief import Belief
from trimtuner.decisions.stopping import Stop
from trimtuner.errors import InputError, SearchOver, nearest
from trimtuner.models.posterior import one_thread
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED, History, Outcome, Trial
from trimtuner.problem.problem import COST, TIME, Minimized, Problem, seconds_of_timeout
from trimtuner.problem.reports import outcome_of_failure, outcome_of_success
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_number, is_whole_number, plain_value
from trimtuner.state import Money, StudyState
from trimtuner.study.description import Description
from trimtuner.study.loop import Ended, InThreads, InTurn, rounds
from trimtuner.study.memory import InMemory, Memory, Recorded, budget_in_record, earlier_in_record
from trimtuner.study.owners import alive_owners
from trimtuner.study.progress import Progress
from trimtuner.tuning import tuner
from trimtuner.tuning.pareto import Front, front_of
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import recipe_named
from trimtuner.tuning.recommendation import Estimate, Recommendation, recommendation_from
from trimtuner.views.words import usd

if TYPE_CHECKING:
    import pandas

    from trimtuner.records import StudyView
    from trimtuner.views.figures import Figure
    from trimtuner.views.trials import Row

Snapshots: TypeAlias = Mapping[float, Mapping[str, float]]
Result: TypeAlias = Mapping[str, float | Snapshots]  # metrics, and "snapshots" where the run passed smaller fractions
Callback: TypeAlias = "Callable[[Study, Row], object]"
Train: TypeAlias = Callable[[dict[str, Value], float], Result]

# What Optuna calls things.
_OTHER_WORDS = {
    "best_params": "best_config",
    "best_trial": "recommend(), which need not be a trial that was run",
    "best_trials": "front()",
    "trials_dataframe": "to_dataframe()",
    "enqueue_trial": "enqueue(config, fraction)",
    "add_trial": "enqueue(config, fraction), or 'trimtuner import' for what was measured elsewhere",
    "get_trials": "trials",
    "direction": "problem.goal",
    "stop": "raise tt.SearchOver in a callback of optimize",
}
_SNAPSHOTS = "snapshots"
_BUGS_NOT_FAILURES = 3  # when the first trials of a loop all raise, it is the function, not the configurations
_LONGEST_KIND = 64  # characters in the name of a failure


class Study:
    """The search for the best configuration of one problem; its history is a value, and ``ask`` is pure in it.

    Threads may share it: a trial is handed out once, and numbers have no gaps.

    ``learn_from`` lists earlier studies, or paths of their records: how much they count is decided by how well they
    predict what is measured now. What they had measured when the study was made is copied; later changes are not seen.
    """

    def __init__(
        self,
        space: Space,
        *,
        maximize: str | None = None,
        minimize: Minimized = None,
        constraints: Iterable[str] = (),
        method: str | Recipe = "trimtuner",
        seed: int = 0,
        budget: float | None = None,
        stop: Stop | None = None,
        timeout: float | str | None = None,
        storage: str | Path | None = None,
        name: str = "study",
        learn_from: Iterable[Study | str | Path] = (),
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed={seed!r} must be a whole number from 0")
        problem = Problem.of(space, maximize, minimize, constraints, budget, timeout)
        if not isinstance(method, Recipe | str):
            raise InputError(f"method={method!r} must be the name of a method, such as 'trimtuner'")
        if stop is not None and not isinstance(stop, Stop):
            raise InputError(f"stop={stop!r} must be a rule such as tt.AfterTrials(60)")
        recipe = method if isinstance(method, Recipe) else recipe_named(method)
        recipe = recipe if stop is None else recipe.stopping_also(stop)
        recipe.check(problem)
        sources = _checked_sources(learn_from)
        if sources:
            recipe.require_learning()
        if budget is None and storage is not None:  # a cap is not lifted by not naming it
            problem = replace(problem, budget=budget_in_record(storage, name))
        names = tuple(source.name if isinstance(source, Study) else str(source) for source in sources)
        description = Description(problem, method, int(seed), learn_from=names)
        if storage is None:
            memory: Memory = InMemory()
            earlier = _gathered(sources, space)
        else:
            memory = Recorded(storage, name, description, lambda: _gathered(sources, space))
            earlier = memory.record.earlier()
        self._set_up(description, recipe.learning_from(earlier, space), memory, name)

    @classmethod
    def of(cls, description: Description, recipe: Recipe, memory: Memory, name: str = "study") -> Study:
        """A study that is described already, with the recipe of its method and all that it learns from."""
        recipe.check(description.problem)
        study = cls.__new__(cls)
        study._set_up(description, recipe, memory, name)
        return study

    def _set_up(self, description: Description, recipe: Recipe, memory: Memory, name: str) -> None:
        self.description, self.recipe, self.name, self._memory = description, recipe, name, memory
        self.problem, self.seed = description.problem, description.seed
        self._last_belief: tuple[History, Belief] | None = None

    @property
    def history(self) -> History:
        """Everything that happened so far, as a value."""
        return self._memory.history()

    @history.setter
    def history(self, history: History) -> None:
        self._memory.replace(history)

    @property
    def spent(self) -> float:
        """USD that the trials which have ended were charged."""
        return self.history.spent

    def ask(self) -> Trial:
        """The next trial to run; it counts as under way until told."""
        budget = self.problem.budget
        if budget is not None and self.spent >= budget:
            raise SearchOver(f"the budget of {budget:g} USD is spent ({self.spent:.4g}); take the recommendation")
        while True:  # until no other thread or process was first
            with one_thread:  # read when it is this thread's turn: what others asked meanwhile is in it
                history = self.history
                trial = tuner.ask(self.problem, self.recipe, history, self.seed, self.belief_at_hand(history))
            if self._memory.claim(trial):
                return replace(trial, config=dict(trial.config))

    def tell(
        self,
        trial: Trial,
        *,
        failed: str | None = None,
        snapshots: Snapshots | None = None,
        **metrics: float,
    ) -> None:
        """What a trial measured, or how it failed; time in seconds, cost in USD (follows from time and price)."""
        self.tell_report(trial, metrics, snapshots or {}, failed)

    def tell_report(
        self,
        trial: Trial,
        metrics: Mapping[str, float],
        snapshots: Snapshots,
        failed: str | None = None,
    ) -> None:
        """As ``tell``, with the metrics in a mapping."""
        own = self._own(trial)
        outcome = (
            outcome_of_success(self.problem, own, metrics, snapshots)
            if failed is None
            else outcome_of_failure(self.problem, own, failed, metrics, snapshots)
        )
        self._require_same_accounting(outcome)
        self._memory.tell(outcome)

    def forget(self, trial: Trial | int) -> None:
        """Take a failed trial back, by its number if need be, as when the script was wrong.

        It stays charged and is still shown, but counts neither as a trial nor against its configuration; what it
        measured on its way is forgotten with it.
        """
        number = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InputError(f"forget takes a trial or its number, not {trial!r}")
        self._memory.forget([int(number)])

    def enqueue(self, config: Mapping[str, Value], fraction: float = 1.0) -> None:
        """Have a configuration tested next at a fraction, before what the method would ask; in a record, by any run.

        A stop rule does not keep it from being asked; it waits only while what is left of the budget does not cover
        its worst case.
        """
        if not isinstance(config, Mapping) or not is_number(fraction):
            raise InputError(f"enqueue takes a configuration, a dict, and a fraction, not {config!r} and {fraction!r}")
        space = self.problem.space
        wanted = space.as_written({name: plain_value(value) for name, value in config.items()})
        offered, key, history = space.nearest_fraction(fraction), space.key(wanted), self.history
        for others, word in ((history.queued, "waits"), (history.tested(), "is tested")):
            if any(at == offered and space.key(other) == key for other, at in others):
                raise InputError(f"{wanted!r} {word} already at the fraction {offered:g}")
        self._memory.enqueue(wanted, offered)

    def grow(self, space: Space) -> None:
        """Go on in a space with more: values, wider ranges, machines, fractions, or parameters that have a default.

        What was measured counts, with the defaults of parameters that it had no value of. A study in a record can also
        be opened with the larger space; the record says what was added, and when.
        """
        description = replace(self.description, problem=replace(self.problem, space=space))
        found = description.compared_with(self.description.plain)
        if found.differences:
            raise InputError(f"a space can only grow ({'; '.join(found.differences)}); make another study")
        recipe = self.recipe.learning_from([one.earlier for one in self.recipe.earlier], space)
        recipe.check(description.problem)
        self._set_up(description, recipe, self._memory.grown(description, found.additions), self.name)

    @property
    def best_config(self) -> dict[str, Value]:
        """The configuration that is recommended."""
        return dict(self.recommend().config)

    @property
    def best_value(self) -> Estimate:
        """What the recommended configuration measures of the goal's metric, or is expected to: then with an interval.

        Where one metric is maximized and another minimized: of the first.
        """
        return self.recommend().estimates[self.problem.goal.metric]

    @property
    def trials(self) -> tuple[Row, ...]:
        """Every trial, under way or ended, in the order of their numbers: configuration, state, metrics, cost, time."""
        from trimtuner.views.trials import rows

        return rows(self.state())

    def to_dataframe(self) -> pandas.DataFrame:
        """The trials as a table of pandas: a column for each parameter (config_…) and metric (metric_…)."""
        from trimtuner.views.trials import flat_rows

        try:
            import pandas
        except ModuleNotFoundError:
            raise InputError("to_dataframe needs pandas; pip install pandas, or read study.trials") from None
        return pandas.DataFrame(flat_rows(self.trials))

    def plot(self, view: str = "tradeoff") -> Figure:
        """One view as a picture that a notebook shows and ``save`` writes: spend, progress, tradeoff, curves, …"""
        from trimtuner.views.figures import figures

        return figures(self.state(), view)[0]

    def status(self) -> dict[str, object]:
        """Money, trials and the recommendation in plain values, as ``trimtuner status --json`` prints them."""
        from trimtuner.study.telling import status

        return status(self.state())

    def explain(self, trial: Trial | int | None = None) -> str:
        """Why a trial was asked, or why the recommendation is what it is, as ``trimtuner explain`` prints it."""
        from trimtuner.study.explaining import explain_text

        return explain_text(self.state(), trial.number if isinstance(trial, Trial) else trial)

    def __repr__(self) -> str:
        history, problem = self.history, self.problem
        limits = "".join(f", {constraint.text}" for constraint in problem.constraints)
        under_way = f" and {len(history.pending)} under way" if history.pending else ""
        spent = f", {usd(history.spent)} spent" if problem.budget is not None or history.spent else ""
        kept = f", in {self._memory.place}" if isinstance(self._memory, Recorded) else ""
        told = f"{problem.goal}{limits}; {self.description.method_name}, seed {self.seed}"
        return f"<Study {self.name!r}: {told}; {len(history.outcomes)} trials{under_way}{spent}{kept}>"

    if not TYPE_CHECKING:  # a type checker is to know what there is

        def __getattr__(self, name: str) -> object:
            here = f"; here it is {_OTHER_WORDS[name]}" if name in _OTHER_WORDS else nearest(name, dir(type(self)))
            raise AttributeError(f"a study has no {name!r}{here}")

    def _repr_html_(self) -> str:
        from trimtuner.views.notebook import study_html

        return study_html(self.state())

    def state(self) -> StudyState:
        """The study as it stands: a value that all views and texts are made from."""
        memory = self._memory
        if not isinstance(memory, Recorded):
            return self._in_memory()
        return replace(self.state_in(memory.record), place=memory.place)

    def state_in(self, record: StudyView) -> StudyState:
        """The study as it stands in a record, which this process may only be allowed to read."""
        now, alive = record.status(), alive_owners(record)
        return replace(
            self._in_memory(),
            money=Money(now.budget, now.spent, now.reserved),
            attempts=tuple(record.attempts()),
            now=record.now(),
            runs=len(alive),
            unwatched=frozenset(one.trial.number for one in record.open_trials() if one.owner not in alive),
            waiting=record.waiting(),
            notes=record.notes(),
            why_over=record.why_over(),
            record=record,
        )

    def _in_memory(self) -> StudyState:
        history = self.history
        return StudyState(
            name=self.name,
            method=self.description.method_name,
            problem=self.problem,
            recipe=self.recipe,
            seed=self.seed,
            history=history,
            money=Money(self.problem.budget, history.spent, 0.0),
            known=self.belief_at_hand(history),
            fit=self.believe,
        )

    def recommend(self) -> Recommendation:
        """The best configuration as far as is known, with what it is expected to measure and its chances.

        Where one metric is traded for another: the knee of the front.
        """
        history = self.history
        belief = self.believe(history)
        return recommendation_from(belief, tuner.recommend(self.recipe, belief, history))

    def front(self) -> Front:
        """The best for every price, from the cheapest to the best: against cost (or time) where one goal was given."""
        return front_of(self.recipe, self.believe(self.history))

    def believe(self, history: History) -> Belief:
        """What the method makes of a history; of the last one that was asked for, it is fitted once."""
        belief = self.belief_at_hand(history) or tuner.believe(self.problem, self.recipe, history, self.seed)
        self._last_belief = (history, belief)
        return belief

    def optimize(
        self,
        function: Train,
        trials: int | None = None,
        *,
        n_jobs: int = 1,
        timeout: float | str | None = None,
        callbacks: Iterable[Callback] = (),
        show_progress: bool = False,
    ) -> Recommendation | None:
        """Run ``function(config, fraction) -> metrics`` for up to so many trials, then recommend.

        ``n_jobs`` trials run side by side, in threads. After ``timeout`` (seconds, or a text such as "20min") no more
        is asked, and what runs runs to its end. Each of ``callbacks`` is called with the study and the trial when one
        has ended; one that raises ``tt.SearchOver`` ends the loop.

        Time is measured unless returned; ``"snapshots": {0.1: {"accuracy": …, "time": …}}`` may be among the metrics.
        An exception is a failed trial, charged and learnt from; if the first few all raise, the last exception is
        passed on, and where nothing was ever measured they are forgotten. Ends early when the budget or the space is
        used up.
        """
        for name, count in (("n_jobs", n_jobs), *([] if trials is None else [("trials", trials)])):
            if not is_whole_number(count) or count < 1:
                raise InputError(f"{name}={count!r} must be a whole number from 1")
        if not callable(function):
            raise InputError(f"optimize takes a function (config, fraction) -> metrics, not {function!r}")
        self._require_an_end(trials, timeout)
        most = sys.maxsize if trials is None else int(trials)
        told: list[Callback] = [*callbacks, *([Progress(trials)] if show_progress else [])]
        with self._memory.signs_of_life():
            error = self._go_round(function, most, n_jobs, _asked_until(self.ask, timeout), told)
        if error is not None:
            self._forget_bad_start(error)
            raise error
        return self.recommend() if self.history.measurements else None

    def _go_round(
        self, function: Train, most: int, n_jobs: int, ask: Callable[[], Trial], callbacks: Iterable[Callback]
    ) -> Exception | None:
        """The loop of ``optimize``; what the first trials raised, if they all did."""

        def run(trial: Trial) -> tuple[Trial, Exception | None]:
            return trial, self._run(function, trial)

        count = raised = 0
        with suppress(SearchOver), ThreadPoolExecutor(n_jobs) as pool:  # which waits for what runs, however it is left
            runner = InTurn(ask, run, most) if n_jobs == 1 else InThreads(ask, run, most, pool, n_jobs)
            for ended in rounds(runner):
                for trial, error in ended:
                    count, raised = count + 1, raised + (error is not None)
                    if error is not None and raised == count >= min(_BUGS_NOT_FAILURES, most):
                        return error
                    for callback in callbacks:
                        callback(self, next(row for row in self.trials if row.number == trial.number))
        return None

    def _require_an_end(self, trials: int | None, timeout: float | str | None) -> None:
        ends = (trials, timeout, self.problem.budget, self.recipe.stop)
        if all(end is None for end in ends) and not self.problem.space.is_enumerable:
            raise InputError("nothing ends this search: give trials=, timeout=, or the study a budget or a stop rule")

    def in_turn(self, run: Callable[[Trial], Ended], most: int) -> Iterator[Ended]:
        """What ``run``, which tells them, makes of trials one after the other; fewer where the search is over."""
        with suppress(SearchOver):
            for ended in rounds(InTurn(self.ask, run, most)):
                yield from ended

    def _forget_bad_start(self, error: Exception) -> None:
        """It is the function, not the configurations: once that is mended, they may be asked again."""
        failed = self.history.failures_at_first
        if len(failed) >= _BUGS_NOT_FAILURES:
            self._memory.forget([outcome.trial.number for outcome in failed])
            error.add_note(forgotten_text(failed))

    def belief_at_hand(self, history: History) -> Belief | None:
        """The belief of the last recommendation, if nothing has happened since: the same fit, not done twice."""
        # By identity: whatever happens makes another history, and to compare two would take longer the longer they are.
        last = self._last_belief  # read once: another thread may recommend
        return last[1] if last is not None and last[0] is history else None

    def _run(self, function: Train, trial: Trial) -> Exception | None:
        started = time.perf_counter()
        try:
            metrics = function(dict(trial.config), trial.fraction)
        except Exception as error:
            kind = "oom" if isinstance(error, MemoryError) else type(error).__name__[:_LONGEST_KIND]
            self.tell(trial, failed=kind, time=_elapsed(started))
            return error
        except BaseException:  # interrupted from outside, which is not the configuration's fault
            self.tell(trial, failed=PREEMPTED, time=_elapsed(started))
            raise
        elapsed = _elapsed(started)
        try:
            self._tell_result(trial, metrics, elapsed)
        except InputError:
            # The trial ran and cost its time, whatever the function returned.
            self.tell(trial, failed="bad metric", time=elapsed)
            raise
        return None

    def _tell_result(self, trial: Trial, result: Result, elapsed: float) -> None:
        if not isinstance(result, Mapping):
            raise InputError(f"the function returned {result!r}; it must return a dict such as {{'accuracy': 0.91}}")
        snapshots = result.get(_SNAPSHOTS, {})
        if not isinstance(snapshots, Mapping):
            raise InputError(f"snapshots={snapshots!r} must map fractions to metrics: {{0.1: {{'accuracy': 0.8}}}}")
        metrics: dict[str, float] = {
            name: value  # type: ignore[misc]  # what is no number is refused, by name, when told
            for name, value in result.items()
            if name != _SNAPSHOTS
        }
        follows_from_cost = COST in metrics and self.problem.space.has_prices
        self.tell_report(trial, metrics if follows_from_cost else {TIME: elapsed, **metrics}, snapshots)

    def _own(self, trial: Trial) -> Trial:
        """The trial as it was asked, which must be under way."""
        if not isinstance(trial, Trial):
            raise InputError(f"tell takes a trial that ask returned, not {trial!r}")
        history = self.history
        for pending in history.pending:
            if pending.number == trial.number:
                if pending == trial:
                    return pending
                raise InputError(f"trial {trial.number} is of another study: its configuration or fraction differs")
        if any(outcome.trial.number == trial.number for outcome in history.outcomes):
            raise InputError(f"trial {trial.number} was told already; a trial is told once")
        raise InputError(f"trial {trial.number} was not asked by this study; tell takes what ask returned")

    def _require_same_accounting(self, outcome: Outcome) -> None:
        """Where there are no prices, time and cost do not follow from each other, so all trials must report alike."""
        earlier = self.history.measurements
        if self.problem.space.has_prices or not earlier or not outcome.measurements:
            return
        before = {TIME, COST} & earlier[0].metrics.keys()
        for measurement in outcome.measurements:
            missing = before - measurement.metrics.keys()
            if missing:
                names = " and ".join(f"{name}=" for name in sorted(missing))
                raise InputError(
                    f"trial {outcome.trial.number} reports no {names}, as earlier trials did; the space has no prices "
                    "to work it out from"
                )


def forgotten_text(failed: Sequence[Outcome]) -> str:
    """What is said of trials that failed before anything was measured, and were forgotten for that."""
    cost = usd(sum(outcome.cost for outcome in failed))
    which = f"{len(failed)} trials that failed before anything was measured"
    return f"{which} are forgotten; their cost of {cost} stays charged"


def _checked_sources(learn_from: Iterable[Study | str | Path]) -> list[Study | str | Path]:
    if isinstance(learn_from, Study | str | Path) or not isinstance(learn_from, Iterable):
        raise InputError(f"learn_from={learn_from!r} must be a list of earlier studies, or of paths of their records")
    sources = list(learn_from)
    for source in sources:
        if not isinstance(source, Study | str | Path):
            raise InputError(f"learn_from has {source!r}; it lists earlier studies, or paths of their records")
    return sources


def _gathered(sources: Iterable[Study | str | Path], space: Space) -> tuple[Earlier, ...]:
    """What earlier studies measured, as it is now; an error for one that has nothing to say in this space."""
    earlier = tuple(
        Earlier.of(source.name, source.history.measurements, source.problem.space)
        if isinstance(source, Study)
        else earlier_in_record(source)
        for source in sources
    )
    for one in earlier:
        one.rows_in(space)
    return earlier


def _asked_until(ask: Callable[[], Trial], timeout: float | str | None) -> Callable[[], Trial]:
    """The same as long as there is time."""
    if timeout is None:
        return ask
    end = time.monotonic() + seconds_of_timeout(timeout)

    def asked() -> Trial:
        if time.monotonic() >= end:
            raise SearchOver("the time is up")
        return ask()

    return asked


def _elapsed(started: float) -> float:
    return max(time.perf_counter() - started, 1e-9)
