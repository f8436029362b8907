"""A method is a short assembly of parts; the difference between two methods is the difference of two declarations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from numbers import Integral, Real
from types import FunctionType
from typing import TypeAlias, TypedDict, Unpack

from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.belief import CAUTION, Belief
from trimtuner.decisions.designs import Design
from trimtuner.decisions.filters import Filter, KeepAll
from trimtuner.decisions.incumbents import Incumbent
from trimtuner.decisions.learning import TIME_GROWTH, Inheritance, Way, WithinLimits, expect, learn
from trimtuner.decisions.stopping import Stop
from trimtuner.errors import InputError
from trimtuner.models.inherited import Heir
from trimtuner.models.posterior import Surrogate
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import History
from trimtuner.problem.problem import COST, TIME, Problem
from trimtuner.problem.space import Pool, Space

Need: TypeAlias = Callable[[Problem], str | None]  # what is missing in a problem for the method to serve it


class WhereTested(Enum):
    """Which fractions a method tests on."""

    ANYWHERE = "any fraction"
    BELOW_FULL = "less than all of the data"
    WHERE_MEANT = "where goal and constraints are meant"
    FULL = "all of the data"


class _Parts(TypedDict, total=False):
    surrogate: Surrogate
    design: Design
    incumbent: Incumbent
    acquisition: Acquisition | None
    filter: Filter
    tests: WhereTested
    small: float
    takes_snapshots: bool
    time_surrogate: Surrogate | None
    quality_growth: float
    time_growth: float | WithinLimits
    confidence: float
    stop: Stop | None
    needs: tuple[Need, ...]
    earlier: tuple[Inheritance, ...]
    least_on_full_data: Recipe | None


@dataclass(frozen=True)
class Recipe:
    """The parts of a method, to be given to a ``Study``; ``but`` exchanges some of those of another.

    A part is any object with the methods that are asked of it; a frozen dataclass can also be written down in a record.
    """

    surrogate: Surrogate  # what is learnt of each metric
    design: Design  # what is tested before there is a model
    incumbent: Incumbent  # what is recommended
    acquisition: Acquisition | None = None  # what a trial is worth; None: the design goes on for ever
    filter: Filter = field(default_factory=KeepAll)  # which candidates are scored
    tests: WhereTested = WhereTested.ANYWHERE
    small: float = 0.0  # of the fractions below this one, only the largest is tested
    takes_snapshots: bool = False  # also after the design, where the space offers them
    time_surrogate: Surrogate | None = None  # what is learnt of time and cost, where that is by another model
    quality_growth: float = 0.0  # that accuracy is expected to have with the data before any evidence; see Way
    time_growth: float | WithinLimits = TIME_GROWTH  # and time
    confidence: float = CAUTION  # with which a trial must fit what is left of the budget
    stop: Stop | None = None  # None: the search goes on until it is cut off, or nothing is left to test
    needs: tuple[Need, ...] = ()
    earlier: tuple[Inheritance, ...] = ()  # studies to learn from, besides the history
    least_on_full_data: Recipe | None = None  # another method, for the least cost where no smaller share can be tested

    def but(self, **parts: Unpack[_Parts]) -> Recipe:
        """The same method with some parts exchanged."""
        return replace(self, **parts)

    def stopping_also(self, rule: Stop) -> Recipe:
        """The same method with one more reason to stop."""
        return self.but(stop=rule if self.stop is None else self.stop | rule)

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the method cannot serve."""
        for need in self.needs:
            missing = need(problem)
            if missing is not None:
                raise InputError(missing)
        if self.stop is not None:
            self.stop.check(problem)

    def suited_to(self, problem: Problem) -> Recipe:
        """The method for this very problem: another one for the least cost (or time) on all of the data and no less."""
        is_least = problem.goal.metric in (COST, TIME) and problem.goal.against is None
        if self.least_on_full_data is None or not is_least or len(problem.space.fractions) > 1:
            return self
        return self.least_on_full_data.but(stop=self.stop, earlier=self.earlier)

    def narrow(self, problem: Problem) -> Problem:
        """The problem as the method sees it: one that tests on all of the data only, recommends it only."""
        if self.tests is WhereTested.FULL:
            return problem.narrowed_to((1.0,))
        if self.tests is WhereTested.WHERE_MEANT:
            return problem.narrowed_to(problem.target_fractions)
        return problem

    def believe(self, problem: Problem, pool: Pool, history: History, seed: int) -> Belief:
        """What the method makes of a history, problem and history as it sees them."""
        return learn(problem, pool, history, self.way, seed, self.earlier)

    @property
    def way(self) -> Way:
        """How the method learns: its models, and what it expects before any evidence."""
        return Way(self.surrogate, self.time_surrogate, self.quality_growth, self.time_growth)

    def expect(self, problem: Problem, pool: Pool) -> Belief | None:
        """What earlier studies alone let it expect; nothing where there are none, or they say too little."""
        if not self.earlier or not isinstance(self.surrogate, Heir):
            return None
        return expect(problem, pool, self.way, self.earlier)

    def learning_from(self, earlier: Sequence[Earlier], space: Space) -> Recipe:
        """The same method for a study in this space that learns from earlier ones; an error where it cannot."""
        if not earlier:
            return self
        self.require_learning()
        return self.but(earlier=tuple(Inheritance(one, space) for one in earlier))

    def require_learning(self) -> None:
        """Refuse a method that cannot learn from earlier studies."""
        if self.acquisition is None or not isinstance(self.surrogate, Heir):
            raise InputError(
                "learn_from: this method has no Gaussian process that could stand on an earlier study; use trimtuner, "
                "trimtuner-gp, fabolas, fabulinus, cherrypick, eic, eic-usd or ei, or leave learn_from out"
            )

    def described(self) -> dict[str, object]:
        """The method in values that JSON knows, the same in every process: each part by its name and its constants.

        Two methods that differ in a constant have different descriptions. Earlier studies are not part of it: they are
        data, which a record keeps. A function is known by its name alone; what it does is not looked at.
        """
        later = ("small", "least_on_full_data")  # left out where unused, as in records of before there were such parts
        parts = [part.name for part in fields(self) if part.name not in ("earlier", *later)]
        told = {name: _plain(getattr(self, name), name) for name in parts}
        if self.small:
            told["small"] = _plain(self.small, "small")
        if self.least_on_full_data is not None:
            told["least_on_full_data"] = self.least_on_full_data.described()
        return told

    def tested_fractions(self, problem: Problem) -> tuple[float, ...]:
        """The fractions that may be asked."""
        problem = self.narrow(problem)
        fractions = problem.space.fractions
        if self.tests is WhereTested.BELOW_FULL:
            fractions = tuple(fraction for fraction in fractions if fraction < 1.0)
        if problem.target_fractions != (1.0,):  # each of them may be the answer
            return fractions
        return fractions[max(0, sum(fraction < self.small for fraction in fractions) - 1) :]


def _plain(value: object, where: str) -> object:
    """A part of a recipe in values that JSON knows; equal parts become equal texts."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _plain_number(float(value))
    if isinstance(value, tuple | list):
        return [_plain(one, f"{where}[{number}]") for number, one in enumerate(value)]
    if isinstance(value, Mapping):
        pairs = sorted(value.items(), key=lambda pair: repr(pair[0]))
        return {"mapping": [[_plain(key, where), _plain(one, f"{where}[{key!r}]")] for key, one in pairs]}
    if is_dataclass(value) and not isinstance(value, type):
        told = [one.name for one in fields(value) if one.compare]  # what tells it from others of its kind
        return {_name_of(type(value)): {name: _plain(getattr(value, name), f"{where}.{name}") for name in told}}
    if isinstance(value, FunctionType) and "<" not in value.__qualname__:
        return {"function": _name_of(value)}
    if isinstance(value, FunctionType):
        raise InputError(
            f"the method's {where} is a function without a name that lasts ({value.__qualname__}), so that a record "
            "could not tell it from another; define it at the top of a module"
        )
    raise InputError(
        f"the method's {where} is a {type(value).__name__}, which cannot be written down; make it a frozen dataclass, "
        "or a function at the top of a module"
    )


def _plain_number(value: float) -> object:
    """Numbers that are equal are written alike, whole ones without a point; JSON knows no infinity."""
    if not math.isfinite(value):
        return {"number": str(value)}
    return int(value) if value.is_integer() and abs(value) < 2.0**53 else value


def _name_of(part: type | FunctionType) -> str:
    """Parts of our own by their names alone, for a record must not hang on the file they are in."""
    is_own = part.__module__.split(".")[0] == __name__.split(".")[0]
    return part.__qualname__ if is_own else f"{part.__module__}.{part.__qualname__}"
