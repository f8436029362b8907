"""What is wanted: a goal, limits that must hold, and money that may be spent on finding out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trimtuner.errors import InputError, nearest
from trimtuner.problem.space import Space
from trimtuner.problem.values import is_number

COST = "cost"  # USD of one trial
TIME = "time"  # seconds of one trial
OVERRUN = 1.2  # times a limit on cost or time: by then a run is stopped

Direction: TypeAlias = Literal["maximize", "minimize"]
Minimized: TypeAlias = str | Sequence[str] | None  # a metric, or two of which one is paid for with the other

SECONDS = {
    "ms": 0.001,
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
DOLLARS = {"usd": 1.0, "$": 1.0, "cent": 0.01, "cents": 0.01}
_SHARE_NAMES = re.compile(r"(.*_)?(accuracy|acc|auc|f1|precision|recall)(_.*)?")
_PERCENT_WORDS = ("percent", "pct")
_CONSTRAINT = re.compile(r"\s*(?P<metric>[A-Za-z_]\w*)\s*(?P<operator><=|>=|<|>)\s*(?P<limit>.*?)\s*", re.DOTALL)
_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-z$]*)")


@dataclass(frozen=True)
class Goal:
    """The metric to make as large, or as small, as the limits allow.

    With ``against``, the metric that is paid with, the best is wanted for every price: a front, not one configuration.
    """

    metric: str
    direction: Direction
    against: str | None = None

    @property
    def sign(self) -> float:
        """+1 where more is better, -1 where less is."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def maximized(self) -> str | None:
        """What a user would write for ``maximize``."""
        return self.metric if self.direction == "maximize" else None

    @property
    def minimized(self) -> Minimized:
        """What a user would write for ``minimize``."""
        if self.direction == "maximize":
            return self.against
        return self.metric if self.against is None else [self.metric, self.against]

    def __str__(self) -> str:
        price = "" if self.against is None else f", minimize {self.against}"
        return f"{self.direction} {self.metric}{price}"


@dataclass(frozen=True)
class Constraint:
    """A limit that must hold, such as ``cost <= 0.10``; ``text`` is how the user wrote it."""

    metric: str
    is_upper: bool
    limit: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """Read ``metric <= number unit``; units are for cost (USD) and time (s, min, h)."""
        if not isinstance(text, str):
            raise InputError(f"a constraint is a text such as 'cost <= 0.10', not {text!r}")
        match = _CONSTRAINT.fullmatch(text)
        if match is None:
            raise InputError(f"the constraint {text!r} is not of the form 'metric <= number', such as 'time <= 20min'")
        metric = match["metric"]
        limit = parse_quantity(metric, match["limit"], where=f"the constraint {text!r}")
        if metric in (COST, TIME) and limit <= 0:
            raise InputError(f"the constraint {text!r} can never hold: {metric} is above 0")
        if is_share(metric) and not 0 <= limit <= 1:
            raise InputError(
                f"the constraint {text!r} has a limit outside 0 to 1, but {metric} is a share; "
                f"85 % is 0.85 (or call the metric {metric}_percent)"
            )
        return cls(metric, match["operator"] in ("<=", "<"), limit, text.strip())

    def is_met(self, value: float) -> bool:
        """Whether a measured value is within the limit."""
        return value <= self.limit if self.is_upper else value >= self.limit


@dataclass(frozen=True)
class Problem:
    """A space, a goal and constraints; the budget is in USD, the limit of a trial in seconds.

    A trial that is ended at its limit costs no more than its price for that long: where both are known, that is
    reserved before it starts, and the budget cannot be passed whatever the trials do.
    """

    space: Space
    goal: Goal
    constraints: tuple[Constraint, ...] = ()
    budget: float | None = None
    trial_limit: float | None = None
    ended_within: float | None = None  # seconds after it is well over a limit a trial is ended; None: it is not

    @classmethod
    def of(
        cls,
        space: Space,
        maximize: str | None,
        minimize: Minimized,
        constraints: Iterable[str],
        budget: float | None,
        trial_limit: float | str | None = None,
    ) -> Problem:
        """The problem in the words of a user; an error says which word is wrong."""
        if not isinstance(space, Space):
            raise InputError(f"a study needs a tt.Space, not {space!r}")
        if isinstance(constraints, str):
            raise InputError(f"constraints={constraints!r} is one text; write a list: constraints=[{constraints!r}]")
        if not isinstance(constraints, Iterable):
            raise InputError(f"constraints={constraints!r} must be a list of texts such as 'cost <= 0.10'")
        goal = goal_of(maximize, minimize)
        parsed = tuple(Constraint.parse(text) for text in constraints)
        if budget is not None and not (is_number(budget) and budget > 0):
            raise InputError(f"budget={budget!r} must be an amount of USD above 0")
        limit = None if trial_limit is None else seconds_of_timeout(trial_limit)
        problem = cls(space, goal, parsed, None if budget is None else float(budget), limit)
        problem._refuse_contradictions()
        return problem

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that the goal or a constraint is about, the goal's first."""
        price = () if self.goal.against is None else (self.goal.against,)
        return tuple(dict.fromkeys((self.goal.metric, *price, *(constraint.metric for constraint in self.constraints))))

    @property
    def reported_metrics(self) -> tuple[str, ...]:
        """What every successful trial must report, besides its time or cost."""
        return tuple(metric for metric in self.metrics if metric not in (COST, TIME))

    @property
    def names_cost(self) -> bool:
        """Whether money enters the goal, a constraint or a budget."""
        return COST in self.metrics or self.budget is not None

    @property
    def target_fractions(self) -> tuple[float, ...]:
        """Where goal and constraints are meant: at full data, or anywhere when the least cost or time is wanted."""
        if self.goal.metric in (COST, TIME):
            return self.space.fractions
        return (1.0,)

    @property
    def limits_on_full_runs(self) -> tuple[Constraint, ...]:
        """What a run on all of the data may cost or take at most; none where limits hold on any share of it."""
        if self.target_fractions != (1.0,):
            return ()
        return tuple(limit for limit in self.constraints if limit.is_upper and limit.metric in (COST, TIME))

    def seconds_until_stopped(self, price_per_hour: float | None) -> float:
        """After so long a run on any share of the data is well over a limit on cost or time; infinity where none is.

        A little over, it is let come to its end: what it measures tells of others, and by how much the limit is missed.
        """
        limits = self.limits_on_full_runs
        seconds = [limit.limit for limit in limits if limit.metric == TIME]
        if price_per_hour:
            seconds += [limit.limit * 3600.0 / price_per_hour for limit in limits if limit.metric == COST]
        return OVERRUN * min(seconds, default=math.inf)

    def limits_broken_after(self, seconds: float, price_per_hour: float | None) -> tuple[Constraint, ...]:
        """Those on the cost and time of a run on all of the data that a run of so many seconds breaks."""
        taken = {TIME: seconds, COST: seconds * (price_per_hour or 0.0) / 3600.0}
        return tuple(limit for limit in self.limits_on_full_runs if not limit.is_met(taken[limit.metric]))

    def worst_cost(self, price_per_hour: float | None) -> float | None:
        """USD of a trial that runs until it is ended; nothing where there is no limit or no price."""
        if self.trial_limit is None or price_per_hour is None:
            return None
        seconds = self.trial_limit
        if self.ended_within is not None:
            seconds = min(seconds, self.seconds_until_stopped(price_per_hour) + self.ended_within)
        return seconds * price_per_hour / 3600.0

    def narrowed_to(self, fractions: tuple[float, ...]) -> Problem:
        """The same problem where only these fractions may be tested or recommended."""
        if fractions == self.space.fractions:
            return self
        return replace(self, space=self.space.with_fractions(fractions))

    def within(self, price: float) -> Problem:
        """The problem with one goal that a front answers for this price: the best that costs no more."""
        against = self.goal.against
        if against is None:
            raise InputError("the goal has no price; only one of two metrics has")
        limit = Constraint(against, True, price, f"{against} <= {price:.4g}")
        return replace(self, goal=replace(self.goal, against=None), constraints=(*self.constraints, limit))

    def _refuse_contradictions(self) -> None:
        for most in (constraint for constraint in self.constraints if constraint.is_upper):
            for least in (constraint for constraint in self.constraints if not constraint.is_upper):
                if most.metric == least.metric and least.limit > most.limit:
                    raise InputError(f"{most.text!r} and {least.text!r} cannot both hold")


def goal_of(maximize: str | None, minimize: Minimized) -> Goal:
    """The goal in the words of a user: one metric, or one against the other; two may be minimized."""
    if maximize is None and minimize is None:
        raise InputError("give a goal: maximize='accuracy', minimize='cost', or both for the best at every cost")
    if isinstance(minimize, Sequence) and not isinstance(minimize, str):
        return _goal_of_several(maximize, minimize)
    if maximize in (COST, TIME):
        raise InputError(f"{maximize} is to be small: minimize it, and maximize what it is spent on, if anything")
    if minimize is None:
        return Goal(_metric_name(maximize), "maximize")
    if maximize is None:
        return Goal(_metric_name(minimize), "minimize")
    if maximize == minimize:
        raise InputError(f"{maximize!r} cannot be both large and small; maximize one metric and minimize another")
    return Goal(_metric_name(maximize), "maximize", _metric_name(minimize))


def _goal_of_several(maximize: str | None, minimize: Sequence[str]) -> Goal:
    """Of two metrics to be small, money or time is what is paid; of two others, the last."""
    if len(minimize) == 1:
        return goal_of(maximize, minimize[0])
    if len(minimize) != 2 or maximize is not None:
        named = [*([] if maximize is None else [maximize]), *minimize]
        raise InputError(f"{len(named)} metrics are no goal: one is, or two to trade; make the others constraints")
    wanted, paid = minimize if minimize[0] not in (COST, TIME) else reversed(minimize)
    if wanted in (COST, TIME):
        raise InputError("cost and time are both paid; minimize one, and limit the other, or what it must be good for")
    if wanted == paid:
        raise InputError(f"{wanted!r} against itself is no trade; minimize it and cost for the best at every cost")
    return Goal(_metric_name(wanted), "minimize", _metric_name(paid))


def is_share(metric: str) -> bool:
    """Whether the metric is by its name a share from 0 to 1, such as accuracy, and not said to be in percent."""
    return bool(_SHARE_NAMES.fullmatch(metric)) and not any(word in metric for word in _PERCENT_WORDS)


def parse_quantity(metric: str, text: str, where: str) -> float:
    """A number with an optional unit, in USD for cost and seconds for time."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{where}: {text!r} is not a number, or a number with a unit such as 20min")
    number, unit = float(match["number"]), match["unit"].lower()
    units = {TIME: SECONDS, COST: DOLLARS}.get(metric, {})
    if unit and unit not in units:
        known = ", ".join(units) if units else "no unit (a plain number)"
        hint = nearest(unit, units) if units else nearest(metric, (COST, TIME))
        raise InputError(f"{where}: unknown unit {match['unit']!r}; {metric} takes {known}{hint}")
    value = number * units.get(unit, 1.0)
    if not math.isfinite(value):
        raise InputError(f"{where}: {text!r} is not finite")
    return value


def seconds_of_timeout(told: float | str) -> float:
    """How long a time-out is, that is given as a number of seconds or as a text."""
    seconds = parse_quantity(TIME, told, where=f"the time-out {told!r}") if isinstance(told, str) else told
    if not is_number(seconds) or seconds <= 0:
        raise InputError(f"the time-out {told!r} must be above 0: seconds, or a text such as '30min'")
    return seconds


def _metric_name(name: str | None) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"{name!r} is no name for a metric; use letters, digits and underscores, such as 'accuracy'")
    return name


def limits_in_words(limits: Iterable[Constraint]) -> str:
    """As the user wrote them."""
    return " and ".join(limit.text for limit in limits)
