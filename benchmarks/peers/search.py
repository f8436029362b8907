"""One search of one peer against a table, under the rules of ``trimtuner replay``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from benchmarks.kept import MOST_TRIALS, unit_of
from benchmarks.peers.job import Job, Outcome, Proposal
from benchmarks.peers.peer import FULL, MakePeer, Peer, Record
from benchmarks.scoring import Scorer
from benchmarks.variants import Variant
from trimtuner.problem.expressions import Value
from trimtuner.study.replay import LEVELS, ReplayMoment, ReplayRun

BUDGET_UNITS = 20.0  # of the mean price of a full-data run
MOST_REPEATS = 50

RULES = (
    f"A search ends after {MOST_TRIALS} trials, or when {BUDGET_UNITS:g} units are spent (the trial that passes the "
    "budget counts). A trial is one configuration at one fraction. A peer that asks for a trial again gets the same "
    f"answer for nothing, and it is no trial; after {MOST_REPEATS} such answers in a row, or when a peer has nothing "
    "more to propose, a random configuration that is new is tried at full data, and the peer is told of it where it "
    "can be told. A wish that the table does not have goes to the nearest configuration. A run that is a fifth over a "
    "limit on cost or time is stopped: ours is told nothing but that; the others pay no more either, and are told all "
    "that it came to."
)


def search(
    variant: Variant, make: MakePeer, seed: int, trials: int = MOST_TRIALS, *, until_settled: bool = False
) -> ReplayRun:
    """Trials until the budget is spent, a recommendation after each.

    ``until_settled``: or until what is recommended was measured within the limits and is as good as any level asks. All
    peers recommend the best that was so measured, so that nothing later could bring them below that level again.
    """
    job, scorer = Job(variant.measured), Scorer(variant.truth)
    can_settle = variant.measured is variant.truth  # else no measurement is as good as it looks
    return play(job, scorer, unit_of(variant.measured), make, seed, trials, until_settled=until_settled and can_settle)


class Judge(Protocol):
    """What a configuration is worth in truth."""

    def quality(self, configuration: Mapping[str, Value]) -> float:
        """Accuracy_C on all of the data, as a share of the best feasible accuracy."""

    def is_feasible(self, configuration: Mapping[str, Value]) -> bool:
        """Whether it runs within every limit."""


def play(
    job: Job, judge: Judge, unit: float, make: MakePeer, seed: int, trials: int, *, until_settled: bool = False
) -> ReplayRun:
    """The same on any job, where a mean full-data run costs so many USD."""
    record = Record(job)
    peer = make(job, record, seed)
    loop = Loop(job, record, peer, np.random.default_rng([seed, 3]))
    limit = BUDGET_UNITS * unit
    moments: list[ReplayMoment] = []
    spent = seconds = 0.0
    started = time.process_time()
    for outcome in loop.new_outcomes():
        recommended = peer.recommend()
        asking = time.process_time() - started
        spent += job.charge(outcome)
        seconds += outcome.metrics.get("time", 0.0)
        config = {} if recommended is None else dict(job.configuration(recommended))
        moments.append(
            ReplayMoment(
                spent=spent,
                quality=judge.quality(config) if config else 0.0,
                config=config,
                recommended_fraction=FULL,
                fraction=outcome.fraction,
                time=seconds,
                ask_seconds=asking,
                chance_feasible=0.0,  # the peers do not say
                is_feasible=bool(config) and judge.is_feasible(config),
            )
        )
        is_settled = (
            (recommended, FULL) in record.outcomes and moments[-1].is_feasible and moments[-1].quality >= LEVELS[-1]
        )
        if len(moments) >= trials or spent >= limit or (until_settled and is_settled):
            break
        started = time.process_time()
    return ReplayRun(seed, tuple(moments))


class Loop:
    """Ask, measure, tell; repeats are answered from memory."""

    def __init__(self, job: Job, record: Record, peer: Peer, generator: np.random.Generator) -> None:
        self._job, self._record, self._peer, self._generator = job, record, peer, generator

    def new_outcomes(self) -> Iterator[Outcome]:
        """Until everything is measured at full data."""
        while True:
            proposal = self._ask_for_something_new()
            if proposal is not None:
                outcome = self._measure(proposal)
                self._peer.tell(outcome)
            else:
                untested = [one for one in range(self._job.count) if (one, FULL) not in self._record.outcomes]
                if not untested:
                    return
                outcome = self._measure((int(self._generator.choice(untested)), FULL))
                self._peer.learn(outcome)
            yield outcome

    def _ask_for_something_new(self) -> Proposal | None:
        for _ in range(MOST_REPEATS):
            proposal = self._peer.ask()
            if proposal is None or proposal not in self._record.outcomes:
                return proposal
            self._peer.tell(self._record.outcomes[proposal])
        return None

    def _measure(self, proposal: Proposal) -> Outcome:
        outcome = self._job.measure(proposal)
        self._record.add(outcome)
        return outcome
