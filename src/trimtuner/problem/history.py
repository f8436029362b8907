"""What happened: trials asked, measurements told, money spent. A value; every change makes a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value

Origin: TypeAlias = Literal["design", "model", "random", "user", "import"]
PlaceToTest: TypeAlias = tuple[Mapping[str, Value], float]  # a configuration, and a fraction

PREEMPTED = "preempted"  # the one failure that is not the configuration's fault
OVER_LIMIT = "over limit"  # it was stopped once it had cost or taken more than a limit allows: it ran, but too long


@dataclass(frozen=True)
class Trial:
    """One configuration at one fraction, asked for; ``snapshots`` are smaller fractions worth reporting on the way."""

    number: int
    config: Mapping[str, Value]
    fraction: float
    snapshots: tuple[float, ...] = ()
    origin: Origin = "model"
    recommended: PlaceToTest | None = None  # when this was asked

    def with_configurations(self, changed: Callable[[Mapping[str, Value]], dict[str, Value]]) -> Trial:
        """The same trial, its own and the recommended configuration as the function has them."""
        said = self.recommended
        recommended = None if said is None else (changed(said[0]), said[1])
        return replace(self, config=changed(self.config), recommended=recommended)

    def __repr__(self) -> str:
        passing = f", snapshots={self.snapshots!r}" if self.snapshots else ""
        return f"Trial({self.number}, {dict(self.config)!r}, fraction={self.fraction:.4g}{passing})"


@dataclass(frozen=True)
class Measurement:
    """What one configuration measured at one fraction; cost (USD) and time (seconds) are among the metrics."""

    configuration: Mapping[str, Value]
    fraction: float
    metrics: Mapping[str, float]
    runs: int = 1  # that the metrics are the mean of
    spread: Mapping[str, float] = field(default_factory=dict)  # standard deviations of these runs


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: its measurements (snapshots first), or the kind of failure; and what it cost in USD."""

    trial: Trial
    measurements: tuple[Measurement, ...]
    failed: str | None
    cost: float
    time: float | None
    is_forgotten: bool = False  # a failure that was taken back: it cost what it cost, and says nothing else

    def with_trial(self, trial: Trial) -> Outcome:
        """The same end of a trial whose configuration is now said otherwise."""
        measured = tuple(replace(one, configuration=trial.config) for one in self.measurements)
        return replace(self, trial=trial, measurements=measured)

    @property
    def is_fault(self) -> bool:
        """Whether it failed through the configuration's fault."""
        return self.failed not in (None, PREEMPTED) and not self.is_forgotten

    @property
    def is_over_limit(self) -> bool:
        """Whether it was stopped for breaking a limit: it took at least its time, and more is not known."""
        return self.failed == OVER_LIMIT and self.is_fault and self.time is not None

    @property
    def failure(self) -> str | None:
        """The kind of failure as people read it, such as ``forgotten (exit)``; nothing where it succeeded."""
        return f"forgotten ({self.failed})" if self.is_forgotten else self.failed


@dataclass(frozen=True)
class History:
    """Every trial so far, in the order it was asked (pending) and told (outcomes), and what the user wants next."""

    outcomes: tuple[Outcome, ...] = ()
    pending: tuple[Trial, ...] = ()
    next_number: int = field(default=0)
    queued: tuple[PlaceToTest, ...] = ()

    def with_asked(self, trial: Trial) -> History:
        """The history in which the trial is under way; it waits no longer."""
        pending, queued = (*self.pending, trial), self._queued_without(trial)
        return replace(self, pending=pending, queued=queued, next_number=max(self.next_number, trial.number + 1))

    def with_queued(self, config: Mapping[str, Value], fraction: float) -> History:
        """The history in which a configuration at a fraction waits to be asked, after those that wait already."""
        return replace(self, queued=(*self.queued, (config, fraction)))

    def _queued_without(self, trial: Trial) -> tuple[PlaceToTest, ...]:
        place = (trial.config, trial.fraction)
        if trial.origin != "user" or place not in self.queued:
            return self.queued
        first = self.queued.index(place)
        return (*self.queued[:first], *self.queued[first + 1 :])

    def with_told(self, outcome: Outcome) -> History:
        """The history in which the trial has ended."""
        still = tuple(trial for trial in self.pending if trial.number != outcome.trial.number)
        return replace(self, outcomes=(*self.outcomes, outcome), pending=still)

    def with_forgotten(self, number: int) -> History:
        """The history in which a failed trial cost what it cost, and is nothing else; an error for any other trial."""
        if any(trial.number == number for trial in self.pending):
            raise InputError(f"trial {number} is running; it can be forgotten when it has failed")
        found = next((outcome for outcome in self.outcomes if outcome.trial.number == number), None)
        if found is None:
            raise InputError(f"there is no trial {number} to forget")
        if found.failed is None:
            raise InputError(f"trial {number} succeeded; only a failed one can be forgotten")
        if found.is_forgotten:
            raise InputError(f"trial {number} is forgotten already")
        forgotten = replace(found, measurements=(), is_forgotten=True)
        return replace(self, outcomes=tuple(forgotten if one is found else one for one in self.outcomes))

    def with_configurations(self, changed: Callable[[Mapping[str, Value]], dict[str, Value]]) -> History:
        """The same history in other words: each configuration as the function has it."""
        ended = tuple(outcome.with_trial(outcome.trial.with_configurations(changed)) for outcome in self.outcomes)
        pending = tuple(trial.with_configurations(changed) for trial in self.pending)
        queued = tuple((changed(config), fraction) for config, fraction in self.queued)
        return replace(self, outcomes=ended, pending=pending, queued=queued)

    @property
    def made(self) -> tuple[Outcome, ...]:
        """What the study ran itself; what was imported is not of its making, and counts against no limit."""
        return tuple(outcome for outcome in self.outcomes if outcome.trial.origin != "import")

    @property
    def counted(self) -> tuple[Outcome, ...]:
        """What counts as a trial: what the study ran itself, except what is forgotten."""
        return tuple(outcome for outcome in self.made if not outcome.is_forgotten)

    @property
    def spent(self) -> float:
        """USD of all ended trials."""
        return sum(outcome.cost for outcome in self.outcomes)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Everything that was measured, snapshots and failed trials' included."""
        return tuple(m for outcome in self.outcomes for m in outcome.measurements)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Trials that failed through the configuration's fault."""
        return tuple(outcome for outcome in self.outcomes if outcome.is_fault)

    @property
    def failures_at_first(self) -> tuple[Outcome, ...]:
        """The failures while nothing was ever measured: if they are many, the job is wrong, not the configurations.

        Where one was forgotten before, another is not among them: what fails there again may well do so by itself.
        """
        if self.measurements:
            return ()
        before = [(outcome.trial.config, outcome.trial.fraction) for outcome in self.outcomes if outcome.is_forgotten]
        return tuple(one for one in self.failures if (one.trial.config, one.trial.fraction) not in before)

    @property
    def last_recommended(self) -> PlaceToTest | None:
        """What was recommended when the last trial was asked."""
        trials = (*(outcome.trial for outcome in self.outcomes), *self.pending)
        return max(trials, key=lambda trial: trial.number).recommended if trials else None

    def at_fractions(self, fractions: tuple[float, ...]) -> History:
        """The same history with only what was measured at these fractions; money and trials stay."""

        def kept(outcome: Outcome) -> Outcome:
            measured = tuple(m for m in outcome.measurements if m.fraction in fractions)
            return outcome if len(measured) == len(outcome.measurements) else replace(outcome, measurements=measured)

        return replace(self, outcomes=tuple(kept(outcome) for outcome in self.outcomes))

    def tested(self) -> Iterator[PlaceToTest]:
        """Every (configuration, fraction) that is measured, failed or under way: not to be asked again."""
        for measurement in self.measurements:
            yield measurement.configuration, measurement.fraction
        for outcome in self.failures:
            yield outcome.trial.config, outcome.trial.fraction
        for trial in self.pending:
            for fraction in (*trial.snapshots, trial.fraction):
                yield trial.config, fraction
