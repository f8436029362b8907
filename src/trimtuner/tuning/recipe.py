"""A method is a short assembly of parts; the difference between two methods is the difference of two declarations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias, TypedDict, Unpack

from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.belief import Belief
from trimtuner.decisions.designs import Design
from trimtuner.decisions.filters import Filter, KeepAll
from trimtuner.decisions.incumbents import Incumbent
from trimtuner.decisions.inheritance import Inheritance
from trimtuner.decisions.stopping import Never, Stop
from trimtuner.errors import InputError
from trimtuner.models.gaussian_process import GaussianProcess
from trimtuner.models.posterior import Surrogate
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import History
from trimtuner.problem.pool import Pool
from trimtuner.problem.problem import Problem
from trimtuner.problem.space import Space

Need: TypeAlias = Callable[[Problem], str | None]  # what is missing in a problem for the method to serve it


class Tests(Enum):
    """Which fractions a method tests on."""

    __test__ = False  # for pytest, which would take it for one of its own by the name

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
    tests: Tests
    takes_snapshots: bool
    quality_growth: float
    confidence: float
    stop: Stop
    needs: tuple[Need, ...]
    earlier: tuple[Inheritance, ...]


@dataclass(frozen=True)
class Recipe:
    """The parts of a method."""

    surrogate: Surrogate
    design: Design
    incumbent: Incumbent
    acquisition: Acquisition | None = None  # None: the design goes on for ever
    filter: Filter = field(default_factory=KeepAll)
    tests: Tests = Tests.ANYWHERE
    takes_snapshots: bool = False  # also after the design, where the space offers them
    quality_growth: float = 0.0  # that accuracy is expected to have with the data before any evidence; see Belief.learn
    confidence: float = 0.9  # with which a trial must fit what is left of the budget
    stop: Stop = field(default_factory=Never)
    needs: tuple[Need, ...] = ()
    earlier: tuple[Inheritance, ...] = ()  # studies to learn from, besides the history

    def but(self, **parts: Unpack[_Parts]) -> Recipe:
        """The same method with some parts exchanged."""
        return replace(self, **parts)

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the method cannot serve."""
        for need in self.needs:
            missing = need(problem)
            if missing is not None:
                raise InputError(missing)
        self.stop.check(problem)

    def narrow(self, problem: Problem) -> Problem:
        """The problem as the method sees it: one that tests on all of the data only, recommends it only."""
        if self.tests is Tests.FULL:
            return problem.narrowed_to((1.0,))
        if self.tests is Tests.WHERE_MEANT:
            return problem.narrowed_to(problem.target_fractions)
        return problem

    def believe(self, problem: Problem, pool: Pool, history: History, seed: int) -> Belief:
        """What the method makes of a history, problem and history as it sees them."""
        return Belief.learn(problem, pool, history, self.surrogate, seed, self.quality_growth, self.earlier)

    def expect(self, problem: Problem, pool: Pool) -> Belief | None:
        """What earlier studies alone let it expect; nothing where there are none, or they say too little."""
        if not self.earlier or not isinstance(self.surrogate, GaussianProcess):
            return None
        return Belief.expect(problem, pool, self.surrogate, self.quality_growth, self.earlier)

    def learning_from(self, earlier: Sequence[Earlier], space: Space) -> Recipe:
        """The same method for a study in this space that learns from earlier ones; an error where it cannot."""
        if not earlier:
            return self
        self.require_learning()
        return self.but(earlier=tuple(Inheritance(one, space) for one in earlier))

    def require_learning(self) -> None:
        """Refuse a method that cannot learn from earlier studies."""
        if self.acquisition is None or not isinstance(self.surrogate, GaussianProcess):
            raise InputError(
                "learn_from: this method has no Gaussian process that could stand on an earlier study; use trimtuner, "
                "trimtuner-gp, fabolas, fabulinus, cherrypick, eic, eic-usd or ei, or leave learn_from out"
            )

    def tested_fractions(self, problem: Problem) -> tuple[float, ...]:
        """The fractions, of a problem narrowed already, that may be asked."""
        if self.tests is Tests.BELOW_FULL:
            return tuple(fraction for fraction in problem.space.fractions if fraction < 1.0)
        return problem.space.fractions
