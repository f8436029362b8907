"""When a search has gone on for long enough; rules are joined with ``&`` and ``|``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from trimtuner.decisions.acquisition import ConstrainedImprovement
from trimtuner.decisions.belief import LIKELY
from trimtuner.decisions.entropy import value_of_knowing_everything
from trimtuner.decisions.outlook import Outlook
from trimtuner.errors import InputError
from trimtuner.problem.history import History
from trimtuner.problem.problem import COST, TIME, Problem, parse_quantity


@dataclass(frozen=True)
class Prospect:
    """The trial that the method would ask for next: one of the outlook's candidates."""

    outlook: Outlook
    chosen: int

    @property
    def price(self) -> float:
        """What it is expected to cost, in USD (seconds where no price is known)."""
        return float(self.outlook.effort[self.chosen])


class Stop(ABC):
    """A rule that ends a search."""

    @abstractmethod
    def reason(self, history: History, prospect: Prospect | None) -> str | None:
        """Why to stop; nothing as long as the search should go on. There is no prospect while a design goes on."""

    def check(self, problem: Problem) -> None:  # noqa: B027
        """Refuse a problem that the rule cannot judge."""

    def __and__(self, other: Stop) -> Stop:
        return Both(self, other) if isinstance(other, Stop) else NotImplemented

    def __or__(self, other: Stop) -> Stop:
        return Either(self, other) if isinstance(other, Stop) else NotImplemented


@dataclass(frozen=True)
class Both(Stop):
    """Two rules, of which both must want to stop: ``left & right``."""

    left: Stop
    right: Stop

    def reason(self, history: History, prospect: Prospect | None) -> str | None:
        """The reasons of both, when both have one."""
        first = self.left.reason(history, prospect)
        second = self.right.reason(history, prospect) if first is not None else None
        return None if first is None or second is None else f"{first}, and {second}"

    def check(self, problem: Problem) -> None:
        """Refuse what either cannot judge."""
        self.left.check(problem)
        self.right.check(problem)


@dataclass(frozen=True)
class Either(Stop):
    """Two rules, of which one is enough to stop: ``left | right``."""

    left: Stop
    right: Stop

    def reason(self, history: History, prospect: Prospect | None) -> str | None:
        """The reasons of those that have one."""
        reasons = [rule.reason(history, prospect) for rule in (self.left, self.right)]
        return ", and ".join(reason for reason in reasons if reason is not None) or None

    def check(self, problem: Problem) -> None:
        """Refuse what either cannot judge."""
        self.left.check(problem)
        self.right.check(problem)


@dataclass(frozen=True)
class AfterTrials(Stop):
    """So many trials, those under way included."""

    trials: int

    def __post_init__(self) -> None:
        if isinstance(self.trials, bool) or not isinstance(self.trials, Integral) or self.trials < 1:
            raise InputError(f"AfterTrials({self.trials!r}): the number of trials is a whole number from 1")

    def reason(self, history: History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        """Trials are counted from the first, failed ones too; not those that were imported, or are forgotten."""
        asked = len(history.counted) + len(history.pending)
        return f"{asked} of {self.trials} trials are made" if asked >= self.trials else None


@dataclass(frozen=True)
class AfterMoney(Stop):
    """So much money spent, in USD. Unlike a study's budget it is no cap: the last trial may pass it."""

    usd: float

    def __post_init__(self) -> None:
        _require_positive("AfterMoney", self.usd, "an amount of USD")

    def reason(self, history: History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        """When what ended trials cost has reached it."""
        return f"{history.spent:.4g} of {self.usd:g} USD are spent" if history.spent >= self.usd else None


@dataclass(frozen=True)
class AfterTime(Stop):
    """So much time spent on trials, one after the other: seconds, or a text such as ``2h``."""

    duration: float | str

    def __post_init__(self) -> None:
        if isinstance(self.duration, str):
            object.__setattr__(self, "duration", parse_quantity(TIME, self.duration, f"AfterTime({self.duration!r})"))
        _require_positive("AfterTime", self.duration, "a number of seconds, or a text such as '2h',")

    def reason(self, history: History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        """The time of ended trials, imported ones not counted."""
        spent = sum(outcome.time or 0.0 for outcome in history.made)
        return f"trials took {spent:.4g} of {self.duration:g} seconds" if spent >= float(self.duration) else None


@dataclass(frozen=True)
class LittleImprovement(Stop):
    """No candidate promises to improve on the best measured by more than a share of it (CherryPick: 10 %, after 6).

    The share is that of the goal's own value that the greatest expected improvement on the model's scale amounts to.
    """

    share: float = 0.1
    after: int = 6  # trials that ran

    def __post_init__(self) -> None:
        _require_positive("LittleImprovement", self.share, "a share")
        if isinstance(self.after, bool) or not isinstance(self.after, Integral) or self.after < 0:
            raise InputError(f"LittleImprovement(after={self.after!r}): it takes a whole number of trials from 0")

    def reason(self, history: History, prospect: Prospect | None) -> str | None:
        """Not before something within the limits was measured: until then everything is an improvement."""
        ran = sum(outcome.failed is None for outcome in history.outcomes)
        if prospect is None or ran < self.after or prospect.outlook.best_measured is None:
            return None
        promised = _relative_improvement(prospect.outlook, prospect.outlook.best_measured)
        if promised >= self.share:
            return None
        return f"no trial promises more than {promised:.2g} of the best measured, less than {self.share:g}"


@dataclass(frozen=True)
class NotWorthItsPrice(Stop):
    """The recommendation will not get better by more than the next trial costs.

    Even if the next trial told everything there is to know, the recommendation would be expected to gain no more than
    ``E[max v] - max E[v]`` over what may be recommended (the value of perfect information), and no trial tells more.
    When that gain, in money, is below the price of the trial, the trial cannot pay for itself. ``worth`` is what one
    unit of the goal is worth in USD: for a cost, how often the recommended run will be made; for an accuracy, what
    the whole way from 0 to 1 is worth.
    """

    worth: float | None = None

    def __post_init__(self) -> None:
        if self.worth is not None:
            _require_positive("NotWorthItsPrice", self.worth, "an amount of USD for each unit of the goal")

    def check(self, problem: Problem) -> None:
        """Only a cost is money by itself."""
        if self.worth is None and problem.goal.metric != COST:
            raise InputError(
                f"NotWorthItsPrice() cannot tell what {problem.goal.metric} is worth; say how many USD one unit of it "
                "is worth: NotWorthItsPrice(worth=1000) when one hundredth more is worth 10 USD"
            )

    def reason(self, history: History, prospect: Prospect | None) -> str | None:  # noqa: ARG002
        """Judged for the trial that would be asked."""
        if prospect is None:
            return None
        if prospect.outlook.belief.effort_metric != COST:
            raise InputError(
                "NotWorthItsPrice needs the price of a trial in USD; give the space a cloud or price_per_hour=, or "
                "tell cost= of every trial"
            )
        gain = gain_of_going_on(prospect.outlook) * (1.0 if self.worth is None else self.worth)
        if gain > prospect.price:
            return None
        return (
            f"knowing everything would be worth {gain:.2g} USD to the recommendation, "
            f"and the next trial costs {prospect.price:.2g}"
        )


def gain_of_going_on(outlook: Outlook) -> float:
    """The value of perfect information, in the goal's units; without bound as long as nothing seems feasible.

    A model that calls everything infeasible sees nothing to gain, but there is nothing yet to stop with either.
    """
    if outlook.belief.feasible_at_targets.max() < LIKELY:
        return math.inf
    return value_of_knowing_everything(outlook)


def _relative_improvement(outlook: Outlook, best: float) -> float:
    """The greatest expected improvement, as a share of the best value in the goal's own units."""
    goal = outlook.belief.problem.goal
    transform = outlook.belief.quantity_of(goal.metric).transform
    gain = float(ConstrainedImprovement().score(outlook).max())
    now, then = transform.inverse(np.array([goal.sign * best, goal.sign * (best + gain)])).tolist()
    return float(abs(then - now) / max(abs(now), 1e-300))


def _require_positive(rule: str, value: object, what: str) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
        raise InputError(f"{rule}({value!r}): it takes {what} above 0")
