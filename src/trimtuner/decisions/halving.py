"""Hyperband and BOHB: many configurations on little data, the best of them on more; designs that never end.

Sources: Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, "Hyperband", JMLR 18 (2018), Algorithm 1; Falkner, Klein and
Hutter, "BOHB", ICML 2018, Algorithm 2 and Eqs. 3 and 4.

Notation: the K fractions of the space are the rungs 0 … K-1, the last is full data. A bracket is one run of successive
halving; brackets start at the rungs 0, 1, …, K-1, 0, … in turn. One configuration in η survives a rung. l and g are the
densities of the good and the bad configurations.

Nothing is remembered from one ask to the next: the brackets are read off the history. Only the draws of new
configurations have to be found among the trials, for everything above a bracket's first rung follows from them and
from the results. A trial is no draw where its configuration may yet reach, or has reached, that rung in an earlier
bracket; such configurations are *spoken for* there, and never drawn. So a draw stays a draw, whatever is told later
and in whichever order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import logsumexp, softmax

from trimtuner.arrays import Booleans, Floats, Positions
from trimtuner.decisions.belief import Belief
from trimtuner.decisions.designs import Step
from trimtuner.decisions.filters import ScoreOf
from trimtuner.decisions.outlook import Outlook
from trimtuner.problem.history import History, Measurement, Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.space import Pool

_STREAM = 80  # tells the generators of these designs from those of others with the same seed
_POINTS_AT_MOST = 8  # good configurations that a model must have; with widths of its own a column, more are not needed
_WEIGHED_AT_MOST = 4096  # of a larger pool, a random part is weighed


@dataclass(frozen=True)
class Hyperband:
    """Successive halving in brackets that start on more and more data, for ever; one in ``eta`` survives a rung.

    A rung is ranked by what was measured on its fraction, limits included. Hyperband has no model, so it does not know
    what a configuration will cost on more data: a limit on the cost at full data is met by nearly everything on little
    data, and what breaks it is found out only by going there.
    """

    eta: float = 3.0

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """The next slot of the first bracket that has one; nothing when everything has been tested."""
        return _next_step(
            _Record.of(problem, pool, history), self.eta, _draw_evenly, [seed, _STREAM, history.next_number]
        )


@dataclass(frozen=True)
class Bohb:
    """The brackets of Hyperband, filled by a model: configurations that look like the good ones and not like the bad.

    ``narrowest`` is the least width of a kernel, in columns from 0 to 1, and ``widening`` the factor on the widths when
    candidates are drawn. The model is of the largest fraction with enough measurements, so it shares Hyperband's
    ignorance of what a small fraction does not show.
    """

    eta: float = 3.0
    random_share: float = 1.0 / 3.0
    good_share: float = 0.15
    candidates: int = 64
    narrowest: float = 0.1
    widening: float = 3.0

    def next_step(self, problem: Problem, pool: Pool, history: History, seed: int) -> Step | None:
        """As Hyperband's, with other draws."""
        return _next_step(
            _Record.of(problem, pool, history), self.eta, self._draw, [seed, _STREAM, history.next_number]
        )

    def _draw(self, record: _Record, positions: Positions, generator: np.random.Generator) -> int:
        at_random = _draw_evenly(record, positions, generator)
        if generator.random() < self.random_share:
            return at_random
        # BOHB asks for one more than the number of parameters. One-hot columns are not counted, they are one parameter.
        enough = min(len(record.problem.space.names) + 1, _POINTS_AT_MOST)
        measured, failed = record.ranked_where_informed(enough + 2)
        if not measured:
            return at_random
        # Eq. 3: with few points, some are among the good and the bad.
        good_count = max(enough, int(self.good_share * len(measured)))
        bad_count = max(enough, len(measured) - good_count)
        rows = record.pool.rows
        good = _Density.of(rows[measured[:good_count]], self.narrowest)
        bad = _Density.of(rows[[*measured[-bad_count:], *failed]], self.narrowest)
        return self._most_promising(rows, good, bad, generator.permutation(positions)[:_WEIGHED_AT_MOST], generator)

    def _most_promising(
        self, rows: Floats, good: _Density, bad: _Density, weighed: Positions, generator: np.random.Generator
    ) -> int:
        """The largest l/g of some positions that were drawn in proportion to a widened l."""
        chances = softmax(good.widened(self.widening).log_at(rows[weighed]))
        drawn = generator.choice(weighed, size=self.candidates, p=chances)
        return int(drawn[np.argmax(good.log_at(rows[drawn]) - bad.log_at(rows[drawn]))])


@dataclass(frozen=True)
class DropUnderperformers:
    """Hyperband's early dropping for a method with a model: what did badly on less data is not tested on more.

    Of the configurations tested at a fraction one in ``eta`` survives it, ranked as Hyperband ranks a rung; the others
    are dropped from all larger fractions, until so many are tested there that they are among the best again.
    """

    eta: float = 3.0

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:  # noqa: ARG002
        """Candidates that no smaller fraction speaks against; all of them where it speaks against all."""
        belief, places = outlook.belief, outlook.candidates
        is_kept = np.ones(len(places), dtype=bool)
        for fraction in belief.problem.space.fractions:
            dropped = self._dropped_at(belief, fraction)
            is_kept &= (places.fractions <= fraction) | ~np.isin(places.positions, dropped)
        return np.nonzero(is_kept)[0] if is_kept.any() else np.arange(len(places))

    def _dropped_at(self, belief: Belief, fraction: float) -> list[int]:
        standings = {position: _FAILED for position, failed_at in belief.failed if failed_at == fraction}
        for m in belief.measurements:
            if m.fraction == fraction:
                standings[belief.pool.position(dict(m.configuration))] = _standing(belief.problem, m)
        ranked = sorted(standings, key=standings.__getitem__, reverse=True)
        return ranked[_survivors(len(ranked), self.eta) :]


_Standing: TypeAlias = tuple[int, float, float]  # larger is better
_FAILED: _Standing = (0, 0.0, 0.0)


@dataclass(frozen=True)
class _Record:
    """The history by positions in the pool and rungs."""

    problem: Problem
    pool: Pool
    is_tested: Booleans  # one line a rung, one column a position
    standings: tuple[Mapping[int, _Standing], ...]  # one mapping a rung: how each position that was tested came out
    asked: tuple[tuple[int, int], ...]  # positions and rungs that a design asked for, in order

    @classmethod
    def of(cls, problem: Problem, pool: Pool, history: History) -> _Record:
        """Trials of other methods' models leave results, and take no slots."""
        rungs = {fraction: rung for rung, fraction in enumerate(problem.space.fractions)}
        is_tested = np.zeros((len(rungs), len(pool)), dtype=bool)
        for configuration, fraction in history.tested():
            if fraction in rungs:
                is_tested[rungs[fraction], pool.position(dict(configuration))] = True
        asked = [trial for trial in _trials_that_count(history) if trial.origin == "design" and trial.fraction in rungs]
        return cls(
            problem,
            pool,
            is_tested,
            _standings(problem, pool, history, rungs),
            tuple((pool.position(trial.config), rungs[trial.fraction]) for trial in asked),
        )

    @property
    def rung_count(self) -> int:
        return len(self.is_tested)

    def ranked_where_informed(self, enough: int) -> tuple[list[int], list[int]]:
        """The positions measured, best first, and those that failed, at the largest fraction with enough measured."""
        for standings in reversed(self.standings):
            failed = [position for position, standing in standings.items() if standing == _FAILED]
            if len(standings) - len(failed) >= enough:
                ranked = sorted(standings, key=standings.__getitem__, reverse=True)
                return ranked[: len(standings) - len(failed)], failed
        return [], []


def _trials_that_count(history: History) -> list[Trial]:
    """In the order they were asked; one pre-empted or forgotten leaves its slot as if it had never been."""
    ended = [outcome.trial for outcome in history.outcomes if outcome.failed is None or outcome.is_fault]
    return sorted((*ended, *history.pending), key=lambda trial: trial.number)


def _standings(
    problem: Problem, pool: Pool, history: History, rungs: Mapping[float, int]
) -> tuple[dict[int, _Standing], ...]:
    """Of what was tested twice, by others, the first trial decides: a rung once decided stays so."""
    standings: tuple[dict[int, _Standing], ...] = tuple({} for _ in rungs)
    for outcome in sorted(history.outcomes, key=lambda outcome: outcome.trial.number):
        results = [(m.configuration, m.fraction, _standing(problem, m)) for m in outcome.measurements]
        if outcome.is_fault:
            results.append((outcome.trial.config, outcome.trial.fraction, _FAILED))
        for configuration, fraction, standing in results:
            if fraction in rungs:
                standings[rungs[fraction]].setdefault(pool.position(dict(configuration)), standing)
    return standings


def _standing(problem: Problem, measurement: Measurement) -> _Standing:
    """Those within the limits by their goal, then the others by Accuracy_C (Eq. 7 of the TrimTuner paper)."""
    goal = problem.goal.sign * measurement.metrics[problem.goal.metric]
    measured = [(constraint, measurement.metrics[constraint.metric]) for constraint in problem.constraints]
    broken = [sorted((value, constraint.limit)) for constraint, value in measured if not constraint.is_met(value)]
    if not broken:
        return (2, goal, goal)
    # A ratio says nothing where a side is not above 0: then the share is 0, and the goal alone decides.
    share = math.prod(smaller / larger if smaller > 0 else 0.0 for smaller, larger in broken)
    if goal > 0:
        return (1, share * goal, goal)
    # A goal below 0, as every minimised one is with its sign, is made worse by dividing.
    return (1, goal / share if share > 0 else -math.inf, goal)


_Draw: TypeAlias = Callable[[_Record, Positions, np.random.Generator], int]


def _next_step(record: _Record, eta: float, draw: _Draw, seed: list[int]) -> Step | None:
    offer = _Brackets(record, eta).next_offer()
    if offer is None:
        return None
    position = draw(record, offer.positions, np.random.default_rng(seed))
    return Step(position, record.problem.space.fractions[offer.rung])


def _draw_evenly(_: _Record, positions: Positions, generator: np.random.Generator) -> int:
    return int(generator.choice(positions))


class _Offer(NamedTuple):
    """Positions that the next trial may have, at a rung: those open to a draw, or the one to be promoted."""

    positions: Positions
    rung: int


class _Brackets:
    """All brackets so far, by the rung they start at and then by their cycle."""

    def __init__(self, record: _Record, eta: float) -> None:
        self._record, self._eta = record, eta
        self._starting_at: list[list[_Bracket]] = [[] for _ in range(record.rung_count)]
        for position, rung in record.asked:
            if position not in self._spoken_for(rung):
                self._bracket_to_fill(rung).add(position)

    def next_offer(self) -> _Offer | None:
        """Brackets in their order; one that waits for results is passed over for the next."""
        for bracket in self._in_order():
            offer = bracket.promotion() if bracket.is_closed else self._open_to_draws(bracket.start)
            if len(offer.positions):
                return offer
        # What is left is spoken for by brackets that wait. Rather than idle, a worker takes some of it early.
        for rung, is_tested in enumerate(self._record.is_tested):
            if not is_tested.all():
                return _Offer(np.nonzero(~is_tested)[0], rung)
        return None

    def _in_order(self) -> Iterator[_Bracket]:
        """Those begun, cycle by cycle, and one cycle that is not."""
        for cycle in range(max(map(len, self._starting_at)) + 1):
            for start, brackets in enumerate(self._starting_at):
                yield brackets[cycle] if cycle < len(brackets) else _Bracket(self._record, start, self._eta)

    def _bracket_to_fill(self, start: int) -> _Bracket:
        brackets = self._starting_at[start]
        if not brackets or brackets[-1].is_full:
            brackets.append(_Bracket(self._record, start, self._eta))
        return brackets[-1]

    def _spoken_for(self, rung: int) -> set[int]:
        lower = [bracket for brackets in self._starting_at[:rung] for bracket in brackets]
        return {position for bracket in lower for position in bracket.contenders(rung)}

    def _open_to_draws(self, rung: int) -> _Offer:
        is_open = ~self._record.is_tested[rung]
        is_open[list(self._spoken_for(rung))] = False
        return _Offer(np.nonzero(is_open)[0], rung)


class _Bracket:
    """One run of successive halving: the configurations that were drawn, and what became of them."""

    def __init__(self, record: _Record, start: int, eta: float) -> None:
        self.start = start
        self._record, self._eta = record, eta
        halvings = record.rung_count - 1 - start
        self._size = math.ceil(record.rung_count * eta**halvings / (halvings + 1))
        self._survivors: list[list[int]] = [[]]  # those drawn, then those of each rung that is decided

    def add(self, position: int) -> None:
        """A drawn configuration; what was decided without it is void."""
        self._survivors = [[*self._survivors[0], position]]

    @property
    def is_full(self) -> bool:
        return len(self._survivors[0]) >= self._size

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will be drawn: it is full, or has what there was."""
        return self.is_full or bool(self._record.is_tested[self.start].all())

    def contenders(self, rung: int) -> list[int]:
        """Those that are, or may yet be, tested at the rung, best first as far as is known."""
        self._decide()
        return self._survivors[min(rung - self.start, len(self._survivors) - 1)]

    def promotion(self) -> _Offer:
        """The best that is still to be tested at the highest rung reached; no position where results are awaited."""
        self._decide()
        rung = self._reached
        missing = [position for position in self._survivors[-1] if not self._record.is_tested[rung, position]]
        return _Offer(np.array(missing[:1], dtype=np.int64), rung)

    @property
    def _reached(self) -> int:
        return self.start + len(self._survivors) - 1

    def _decide(self) -> None:
        """Go up as long as a rung is complete; ties keep the order of the rung below, or of the draws."""
        while self.is_closed and self._reached < self._record.rung_count - 1 and self._survivors[-1]:
            ended = self._record.standings[self._reached]
            if not all(position in ended for position in self._survivors[-1]):
                return
            ranked = sorted(self._survivors[-1], key=ended.__getitem__, reverse=True)
            self._survivors.append(ranked[: _survivors(len(ranked), self._eta)])


def _survivors(count: int, eta: float) -> int:
    """How many of a rung go on."""
    return max(1, math.floor(count / eta))


@dataclass(frozen=True)
class _Density:
    """A kernel density estimate, a Gaussian at each point; up to a factor, which no use of it depends on."""

    points: Floats
    widths: Floats  # one a column

    @classmethod
    def of(cls, points: Floats, narrowest: float) -> _Density:
        """The estimate from these points, with widths by Scott's rule."""
        count, dimension = points.shape
        return cls(points, np.maximum(points.std(axis=0) * count ** (-1.0 / (dimension + 4)), narrowest))

    def widened(self, factor: float) -> _Density:
        return _Density(self.points, factor * self.widths)

    def log_at(self, rows: Floats) -> Floats:
        from scipy.spatial.distance import cdist  # who asks for no density need not load it

        squared = cdist(rows / self.widths, self.points / self.widths, "sqeuclidean")
        return np.asarray(logsumexp(-0.5 * squared, axis=1))
