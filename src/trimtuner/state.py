"""A study as it stands: what status, explanations, views, the live page and notebooks read, by every door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypedDict

from trimtuner.decisions.belief import Belief
from trimtuner.engines.protocol import Report
from trimtuner.errors import NoAnswer
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import History, Trial
from trimtuner.problem.problem import Problem
from trimtuner.records import Attempt, StudyView
from trimtuner.records.money import money_left
from trimtuner.tuning import tuner
from trimtuner.tuning.pareto import Front, front_of
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recommendation import Recommendation, recommendation_from

ASKED_TO_STOP = "it was asked to stop"  # why a run ended that was told to

CommandOf: TypeAlias = Callable[[Mapping[str, Value], float], tuple[str, ...]]
LogOf: TypeAlias = Callable[[int, int], Path]  # trial, attempt
ReportsOf: TypeAlias = Callable[
    [int, int], Sequence[Report]
]  # trial, attempt: what it said so far, where that is known
Fit: TypeAlias = Callable[[History], Belief]


@dataclass(frozen=True)
class Money:
    """USD; None is no budget."""

    budget: float | None
    spent: float
    reserved: float

    @property
    def left(self) -> float | None:
        """What may still be spent or reserved."""
        return money_left(self.budget, self.spent, self.reserved)


class Learnt(TypedDict):
    """An earlier study that this one learns from, and how much of each model stands on it by now."""

    study: str
    measurements: int
    weights: dict[str, float]


@dataclass(frozen=True)
class Limits:
    """What ends the search besides money; None is no limit."""

    trials: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class StudyState:
    """A study at one moment: its problem and method, what happened, and what its record and its job say besides."""

    name: str
    method: str
    problem: Problem
    recipe: Recipe
    seed: int
    history: History
    money: Money
    attempts: tuple[Attempt, ...] = ()  # by number; none for a study in memory
    limits: Limits = Limits()
    now: float = 0.0  # seconds since 1970, by the record's clock
    command_of: CommandOf | None = None
    log_of: LogOf | None = None
    reports_of: ReportsOf | None = None
    known: Belief | None = None  # of this very history, where it is at hand
    fit: Fit | None = None  # by whoever keeps what was fitted, so that it is done once
    note: str = ""  # what must be known beside the recommendation
    differing: tuple[str, ...] = ()  # how the job file differs from the study in its record, a line each
    place: str = ""  # of the record; none for a study in memory
    job_file: str = ""  # that a command would be given
    record: StudyView | None = None  # which tells the rest: events, the ledger
    modelled_at_most: int | None = None  # measurements; beyond, nobody would wait for the model
    runs: int | None = None  # processes that run it now; None where nobody keeps count, as in memory
    unwatched: frozenset[int] = frozenset()  # trials under way whose run is gone
    why_over: str = ""  # as the last run said it, if it ended by itself and nothing was asked since
    waiting: Mapping[int, str] = field(default_factory=dict)  # trials that have not begun, and what each waits for
    notes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # what else is to be known of trials

    @property
    def counts_money(self) -> bool:
        """Whether there is money to speak of: without prices, every sum would be 0 USD."""
        return self.problem.space.has_prices or self.money.budget is not None or self.money.spent > 0

    @property
    def why_no_model(self) -> str | None:
        """Why there is nothing to say about what was not measured."""
        count = len(self.history.measurements)
        if count == 0:
            return "Nothing was measured yet."
        if self.known is None and self.modelled_at_most is not None and count > self.modelled_at_most:
            return (
                f"A model of {count:,} measurements would take minutes to fit, so none is shown here; "
                "'trimtuner best' and 'trimtuner report' fit it."
            )
        return None

    @cached_property
    def belief(self) -> Belief | None:
        """What the method makes of the history; nothing where ``why_no_model`` says why."""
        if self.known is not None or self.why_no_model is not None:
            return self.known
        if self.fit is not None:
            return self.fit(self.history)
        return tuner.believe(self.problem, self.recipe, self.history, self.seed)

    @cached_property
    def front(self) -> Front | None:
        """The best for every price, where that is the goal and something is likely to meet the limits."""
        if self.problem.goal.against is None:
            return None
        try:
            return self.best_for_every_price
        except NoAnswer:
            return None

    @cached_property
    def best_for_every_price(self) -> Front:
        """The best for every price, whatever the goal; an error where nothing is likely to meet the limits."""
        if self.belief is None:
            raise NoAnswer("nothing was measured yet")
        return front_of(self.recipe, self.belief)

    @cached_property
    def recommended_target(self) -> int | None:
        """Which of the belief's targets is recommended."""
        return None if self.belief is None else tuner.recommend(self.recipe, self.belief, self.history)

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """What is recommended by now; nothing where ``why_no_model`` says why."""
        if self.belief is None or self.recommended_target is None:
            return None
        return recommendation_from(self.belief, self.recommended_target)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, in the order of their numbers."""
        trials = (*(outcome.trial for outcome in self.history.outcomes), *self.history.pending)
        return tuple(sorted(trials, key=lambda trial: trial.number))

    @property
    def learns_from(self) -> list[Learnt]:
        """The earlier studies, and how much each counts by now; weights once something is fitted."""
        return [
            Learnt(
                study=one.earlier.name,
                measurements=len(one),
                weights={} if self.belief is None else dict(self.belief.weights_of(position)),
            )
            for position, one in enumerate(self.recipe.earlier)
        ]

    def command(self, recommendation: Recommendation) -> tuple[str, ...]:
        """The words that train what is recommended; none where no command is known, as in Python."""
        return () if self.command_of is None else self.command_of(recommendation.config, recommendation.fraction)
