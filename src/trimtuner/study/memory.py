"""Where a study's history is kept: in this process, or in a record that survives it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from trimtuner.errors import InputError, TrimTunerError
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED, History, Outcome, Trial
from trimtuner.problem.problem import TIME
from trimtuner.problem.reports import outcome_of_failure
from trimtuner.records import NotOpen, OpenTrial, Place, Record, Records, RecordsView
from trimtuner.records.addresses import place_of
from trimtuner.records.differences import Comparison
from trimtuner.records.facts import TimeCap
from trimtuner.study.description import Description
from trimtuner.study.owners import HEARTBEAT_SECONDS, alive_owners, this_process


class Memory(Protocol):
    """What a study remembers by."""

    def history(self) -> History:
        """Everything so far; the same object as long as nothing happens."""

    def replace(self, history: History) -> None:
        """Take another history instead, where that can be done."""

    def grown(self, description: Description, added: Sequence[str]) -> Memory:
        """The same memory of a study whose space has grown; an error where trials are under way."""

    def claim(self, trial: Trial) -> bool:
        """Write down a trial that was asked; False: another was written down since, ask again."""

    def enqueue(self, config: Mapping[str, Value], fraction: float) -> None:
        """Write down what is to be asked next."""

    def tell(self, outcome: Outcome) -> None:
        """Write down how a trial ended."""

    def forget(self, numbers: Sequence[int]) -> None:
        """Take failed trials back by their numbers: all of them, or none and an error."""

    def signs_of_life(self) -> AbstractContextManager[None]:
        """While trials run in this process."""


_changing = threading.Lock()  # of any study in memory: a change is an instant, and a study can still be copied


class InMemory:
    """A value that is gone with the process; threads may share it."""

    def __init__(self) -> None:
        self._history = History()

    def history(self) -> History:
        """The value that this process holds now."""
        return self._history

    def replace(self, history: History) -> None:
        """Take any other history instead."""
        with _changing:
            self._history = history

    def grown(self, description: Description, added: Sequence[str]) -> InMemory:
        """The same, its configurations completed."""
        _require_quiet(self._history.pending, self._history, added)
        self.replace(self._history.with_configurations(description.problem.space.completed))
        return self

    def claim(self, trial: Trial) -> bool:
        """A number that is taken is refused: another thread has asked since the history was read."""
        with _changing:
            if trial.number != self._history.next_number:
                return False
            self._history = self._history.with_asked(trial)
        return True

    def enqueue(self, config: Mapping[str, Value], fraction: float) -> None:
        """Let a configuration at a fraction wait for the next ask."""
        with _changing:
            self._history = self._history.with_queued(config, fraction)

    def tell(self, outcome: Outcome) -> None:
        """Put the outcome of a trial under way into the history; one that was told already is refused."""
        with _changing:
            if all(trial.number != outcome.trial.number for trial in self._history.pending):
                raise NotOpen(f"trial {outcome.trial.number} was told already; a trial is told once")
            self._history = self._history.with_told(outcome)

    def forget(self, numbers: Sequence[int]) -> None:
        """Take failed trials back, all of them or none."""
        with _changing:
            history = self._history
            for number in numbers:
                history = history.with_forgotten(number)
            self._history = history

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Nothing: a study in memory ends with its process, so nobody asks whether that still lives."""
        yield


class Recorded:
    """A study in a record: written before a trial starts and when it has ended, by as many processes as like."""

    def __init__(
        self,
        storage: Place,
        name: str,
        description: Description,
        gather: Callable[[], Sequence[Earlier]] = tuple,
        time_cap: TimeCap | None = None,
    ) -> None:
        self.time_cap = time_cap
        self.problem = problem = description.problem
        self._storage, records = storage, Records(storage)

        def compare(stored: Mapping[str, object]) -> Comparison:
            found = description.compared_with(stored)
            if found.additions:
                view = records.open(name)
                alive = alive_owners(view)
                under_way = [one.trial for one in view.open_trials() if one.owner in alive]
                _require_quiet(under_way, view.history(), found.additions)
            return found

        self.record: Record = records.create_or_open(name, description.plain, problem.budget, gather, compare)
        self.place = str(place_of(storage))
        self.owner = this_process()
        self._registered = ""  # the id under which it is known

    def history(self) -> History:
        """What the record says now."""
        return self.record.history()

    def replace(self, history: History) -> None:  # noqa: ARG002
        """A record is added to, never exchanged."""
        raise InputError("the history of a study in a record cannot be replaced; tell what happened instead")

    def grown(self, description: Description, added: Sequence[str]) -> Recorded:  # noqa: ARG002  (the record compares)
        """The record says so, and is opened again."""
        return Recorded(self._storage, self.record.name, description, time_cap=self.time_cap)

    def claim(self, trial: Trial) -> bool:
        """The record refuses a number that is taken, and a configuration under way or done at that fraction."""
        self._register()
        return self.record.claim(trial, self.reserve_of(trial), self.owner.id, self.time_cap)

    def reserve_of(self, trial: Trial) -> float:
        """What the trial may cost at worst; nothing where it has no time-out or no price."""
        return self.problem.worst_cost(self.problem.space.price_per_hour(trial.config)) or 0.0

    def enqueue(self, config: Mapping[str, Value], fraction: float) -> None:
        """Whoever asks next, in whatever process, asks for it."""
        self.record.enqueue(config, fraction)

    def tell(self, outcome: Outcome) -> None:
        """The last attempt's share of the cost is what earlier ones were not charged."""
        number = outcome.trial.number
        attempt = next((one.attempt for one in self.record.open_trials() if one.trial.number == number), 1)
        self.record.finish(outcome, attempt, max(outcome.cost - self.record.charged(number), 0.0))

    def forget(self, numbers: Sequence[int]) -> None:
        """Take failed trials back, all of them or none."""
        self.record.forget(numbers)

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """A heartbeat, so that whoever finds trials of a dead process knows how long it lived."""
        self.close_abandoned()
        with self.beating():
            yield

    @contextmanager
    def beating(self) -> Iterator[None]:
        """A heartbeat whatever else is done: who is long at a model is not dead."""
        self._register()
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(HEARTBEAT_SECONDS)  # it may be waiting for a server that is gone

    def abandoned(self) -> list[OpenTrial]:
        """Trials under way whose process is gone."""
        alive = alive_owners(self.record)
        return [one for one in self.record.open_trials() if one.owner not in alive]

    def close_abandoned(self) -> None:
        """Close trials that ran inside a process that is gone: charged until its last sign of life."""
        for one in self.abandoned():
            seen = self.seconds_seen(one)
            if self.adopt(one, seen):  # else another process was first
                self.tell(outcome_of_failure(self.problem, one.trial, PREEMPTED, {TIME: max(seen, 1e-9)}))

    def adopt(self, one: OpenTrial, seen_seconds: float) -> bool:
        """Take over a trial that was seen to run so long; False: another process was first."""
        self._register()
        watched_seconds = max(seen_seconds - HEARTBEAT_SECONDS, 0.0)  # the rest is only due to rounding up
        return self.record.adopt(one.trial.number, one.owner, self.owner.id, watched_seconds)

    def seconds_seen(self, one: OpenTrial) -> float:
        """How long its owner is known to have watched a trial: until the next heartbeat was due, or its limit."""
        beats = {owner.id: owner.heartbeat_at or 0.0 for owner in self.record.owners()}
        began = one.asked_at if one.started_at is None else one.started_at
        seen = max(beats.get(one.owner, 0.0) + HEARTBEAT_SECONDS - began, 0.0)
        return seen if self.problem.trial_limit is None else min(seen, self.problem.trial_limit)

    def _register(self) -> None:
        """Be known as a run. Who only looks, enqueues, forgets or asks others to stop is none."""
        if self._registered != self.owner.id:
            self.record.register(self.owner)
            self._registered = self.owner.id

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            with suppress(TrimTunerError):  # a busy record; the next beat will do
                self.record.heartbeat(self.owner.id)


def _require_quiet(under_way: Sequence[Trial], history: History, added: Sequence[str]) -> None:
    """Refuse to let a space grow under trials that somebody runs, or that wait, in the words of the old one."""
    what = f"the space can grow ({'; '.join(added)})"
    if under_way:
        raise InputError(f"trial {under_way[0].number} is under way; {what} when it has ended")
    if history.queued:
        raise InputError(f"{len(history.queued)} enqueued trials wait; {what} when they have run")


def earlier_in_record(place: str | Path) -> Earlier:
    """What the one study of a record measured; the record is only read."""
    records = RecordsView(place)
    names = records.names()
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise InputError(
            f"learn_from: the record {str(place)!r} has {len(names)} studies ({listed}), and which one is meant cannot "
            "be told; give the study itself: tt.Study(..., storage=..., name=...)"
        )
    return Earlier.of(names[0], records.open(names[0]).history().measurements, None)


def budget_in_record(place: Place, name: str) -> float | None:
    """The budget of a study that a record has already; none where there is no such study or budget."""
    with Records(place) as records:
        return records.open(name).status().budget if name in records.names() else None


def is_in_record(place: Place, name: str) -> bool:
    """Whether a record has a study of that name; it is only read."""
    found = place_of(place)
    if isinstance(found, Path) and not (found.exists() and found.stat().st_size):
        return False
    with RecordsView(found) as records:
        return name in records.names()
