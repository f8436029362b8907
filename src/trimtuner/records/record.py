"""A study in a record, written: every method is one transaction, on the disk when it returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Row, update

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Measurement, Origin, Outcome, Trial
from trimtuner.problem.problem import TIME
from trimtuner.records import facts
from trimtuner.records.change import Change
from trimtuner.records.codec import configuration_key, encode_measurements, plain_place
from trimtuner.records.database import Database, clock
from trimtuner.records.facts import Owner, TimeCap
from trimtuner.records.money import charged_nanos, to_nanos, to_usd
from trimtuner.records.schema import ATTEMPTS, OWNERS, TRIALS
from trimtuner.records.view import StudyView, next_number, trial_of

_IMPORT_ORIGIN: Origin = "import"
_LONGEST_TEXT = 2000


class Record(StudyView):
    """One study that may be changed; reading goes through a connection of its own."""

    def __init__(self, reader: Database, writer: Database, row: Row[tuple[object, ...]]) -> None:
        super().__init__(reader, row)
        self._writer = writer

    def claim(self, trial: Trial, reserve: float, owner: str, cap: TimeCap | None = None) -> bool:
        """Write a trial down with its worst-case cost reserved, before it starts; False: ask again.

        It is refused where another trial was added since the history was read (its number is taken), or where its
        configuration is already under way or done at its fraction or at a snapshot's.
        """
        require_text(owner, "the owner")
        _require_fractions(trial.number, (trial.fraction, *trial.snapshots))
        key, wanted = configuration_key(trial.config), to_nanos(reserve, f"the reserve of trial {trial.number}")
        with self._change() as change:
            following = next_number(change.connection, self._study)
            if trial.number > following:
                raise InputError(f"trial {trial.number} leaves a gap; the next one is trial {following}")
            if trial.number < following or change.is_taken(key, (trial.fraction, *trial.snapshots)):
                return False
            change.require_definition(self._definition)
            change.require_owner(owner)
            change.require_budget(wanted)
            change.require_time(cap, trial.config)
            asked = change.log(facts.ASKED, trial.number, {"fraction": trial.fraction, "reserve": reserve})
            change.add_trial(trial, key, owner, asked)
            change.open_attempt(trial.number, 1, wanted)
            change.take_places(trial, key)
        return True

    def started(self, number: int, attempt: int, handle: str) -> None:
        """Where the attempt runs, so that it can be found again."""
        require_text(handle, "the handle")
        with self._change() as change:
            change.require_open(number, attempt)
            change.log(facts.STARTED, number, {"attempt": attempt, "handle": handle})
            where = {"handle": handle, "started_at": change.at}
            change.update(ATTEMPTS, {"trial": number, "attempt": attempt}, where)

    def waits(self, number: int, attempt: int, why: str) -> None:
        """The attempt was handed in and has not begun; ``started`` says when it has."""
        require_text(why, "what it waits for")
        with self._change() as change:
            change.require_open(number, attempt)
            change.log(facts.WAITING, number, {"attempt": attempt, "why": why})

    def retry(
        self,
        number: int,
        attempt: int,
        cost: float,
        seconds: float | None,
        failed: str,
        reserve: float,
        cap: TimeCap | None = None,
    ) -> int:
        """Close an attempt, charged, and open the next with a reserve of its own; its number.

        Where the new reserve does not fit the budget, or the time, nothing is changed: the attempt is still there to be
        finished.
        """
        require_text(failed, "the kind of failure")
        charge = to_nanos(cost, f"the cost of trial {number}")
        wanted = to_nanos(reserve, f"the reserve of trial {number}")
        _require_finite(seconds, f"the seconds of trial {number}")
        with self._change() as change:
            row = change.require_open(number, attempt)
            detail = {"attempt": attempt, "failed": failed, "cost": cost, "seconds": seconds, "reserve": reserve}
            change.log(facts.RETRIED, number, detail)
            change.close_attempt(number, attempt, charge, seconds, failed)
            change.require_budget(wanted)
            change.require_time(cap, trial_of(row).config)
            change.open_attempt(number, attempt + 1, wanted)
            change.update(TRIALS, {"number": number}, {"attempt": attempt + 1})
        return attempt + 1

    def finish(self, outcome: Outcome, attempt: int, attempt_cost: float) -> None:
        """Write down how a trial ended: measurements, failure, charge and release at once.

        ``outcome.cost`` is that of all attempts, ``attempt_cost`` that of the last one. A cost above the reserve is
        charged all the same: money that is gone is gone.
        """
        number = outcome.trial.number
        measurements = _checked_measurements(outcome)
        with self._change() as change:
            row = change.require_open(number, attempt)
            if trial_of(row) != outcome.trial:
                raise InputError(f"trial {number} is of another study: its configuration or fraction differs")
            charge = self._last_charge(change, outcome, attempt, attempt_cost)
            detail = {"attempt": attempt, "failed": outcome.failed, "cost": outcome.cost, "seconds": outcome.time}
            told = change.log(facts.FINISHED if outcome.failed is None else facts.FAILED, number, detail)
            change.close_attempt(number, attempt, charge, outcome.time, outcome.failed)
            self._tell(change, outcome, measurements, told)

    def adopt(self, number: int, owner_from: str, owner_to: str, watched_seconds: float = 0.0) -> bool:
        """Take an open trial over from an owner that is gone; False: it is no longer theirs, or no longer open.

        By the new owner's clock, which may be another one, it began at least as long ago as it was watched.
        """
        require_text(owner_from, "the owner")
        require_text(owner_to, "the owner")
        with self._change() as change:
            change.require_owner(owner_to)
            row = change.find(TRIALS, {"number": number})
            if row is None or row.owner != owner_from or row.told is not None:
                return False
            change.log(facts.ADOPTED, number, {"from": owner_from, "to": owner_to})
            change.update(TRIALS, {"number": number}, {"owner": owner_to})
            change.date_back(number, row.attempt, change.at - watched_seconds)
        return True

    def import_measurements(self, measurements: Iterable[Measurement]) -> tuple[int, int]:
        """Take in what was measured elsewhere, free of charge; how many were added, and skipped as known already.

        What differs at the same place may all be new: a run passes smaller fractions again.
        """
        listed = list(measurements)
        for measurement in listed:
            _require_fractions(None, (measurement.fraction,))
        keyed = [(configuration_key(measurement.configuration), measurement) for measurement in listed]
        with self._change() as change:
            free = [(key, one) for key, one in keyed if not change.is_taken(key, (one.fraction,))]
            new = {(key, encode_measurements((one,))): (key, one) for key, one in free}
            for key, measurement in new.values():
                self._import(change, measurement, key)
        return len(new), len(listed) - len(new)

    def enqueue(self, configuration: Mapping[str, Value], fraction: float) -> None:
        """Write down what a user wants next; an error where it is measured, has failed, or is under way already."""
        _require_fractions(None, (fraction,))
        with self._change() as change:
            if change.is_taken(configuration_key(configuration), (fraction,)):
                raise InputError("this configuration is tested at this fraction already")
            change.log(facts.ENQUEUED, None, plain_place(configuration, fraction))

    def forget(self, numbers: Iterable[int]) -> None:
        """Take failures back, all or none: they cost what they cost, and their places may be asked again."""
        with self._change() as change:
            history = self.history()  # nobody changes it until this is done
            for number in numbers:
                history = history.with_forgotten(number)
                change.log(facts.FORGOTTEN, number, {})
                keys = {one.trial.number: configuration_key(one.trial.config) for one in history.outcomes}
                same = [one for one in history.outcomes if keys[one.trial.number] == keys[number]]
                change.settle_places_again(keys[number], same)

    def register(self, owner: Owner) -> None:
        """Make an owner known, with its first heartbeat."""
        for text, what in ((owner.id, "an owner's id"), (owner.host, "a host"), (owner.pid_started, "a start time")):
            require_text(text, what)
        values = {"host": owner.host, "pid": owner.pid, "pid_started": owner.pid_started}
        with self._change() as change:
            is_new = change.find(OWNERS, {"id": owner.id}) is None
            write = change.insert if is_new else change.update
            write(OWNERS, {"id": owner.id}, {**values, "heartbeat_at": change.at})

    def heartbeat(self, owner: str) -> None:
        """A sign of life; no change of the study."""
        require_text(owner, "the owner")
        of_owner = (OWNERS.c.study == self._study, OWNERS.c.id == owner)
        with self._writer.transaction() as connection:
            beat = update(OWNERS).where(*of_owner).values(heartbeat_at=clock(connection))
            if connection.execute(beat).rowcount == 0:
                raise InputError(f"the owner {owner!r} is not registered; register it before its heartbeats")

    def request_stop(self) -> None:
        """Ask every run of the study to start nothing more."""
        self.log_event(facts.STOP_REQUESTED)

    def log_event(self, kind: str, detail: Mapping[str, object] | None = None, trial: int | None = None) -> None:
        """Say what happened, in the caller's words."""
        require_text(kind, "the kind of an event")
        with self._change() as change:
            change.log(kind, trial, detail or {})

    @contextmanager
    def _change(self) -> Iterator[Change]:
        with self._writer.transaction() as connection:
            change = Change(connection, self._study, self._ledger)
            yield change
            self._writer.keep(connection, change.seal())

    def _last_charge(self, change: Change, outcome: Outcome, attempt: int, attempt_cost: float) -> int:
        """What is left of the outcome's cost to charge, so that the trial's charges sum up to it."""
        number = outcome.trial.number
        total = to_nanos(outcome.cost, f"the cost of trial {number}")
        last = to_nanos(attempt_cost, f"the last attempt's cost of trial {number}")
        before = charged_nanos(change.connection, self._study, number)
        if abs(total - before - last) > attempt:  # each attempt was rounded once
            raise InputError(
                f"trial {number} cost {outcome.cost!r} USD, which is not the sum of its earlier attempts "
                f"({to_usd(before)!r}) and the last one ({attempt_cost!r})"
            )
        return max(total - before, 0)

    def _tell(self, change: Change, outcome: Outcome, measurements: str, told: int) -> None:
        end = {"failed": outcome.failed, "cost": outcome.cost, "time": outcome.time, "measurements": measurements}
        change.update(TRIALS, {"number": outcome.trial.number}, {"told": told, **end})
        change.settle_places(outcome)

    def _import(self, change: Change, measurement: Measurement, key: str) -> None:
        number = next_number(change.connection, self._study)
        last = change.find(TRIALS, {"number": number - 1})
        recommended = None if last is None else trial_of(last).recommended  # an import is no reason to forget it
        trial = Trial(number, measurement.configuration, measurement.fraction, (), _IMPORT_ORIGIN, recommended)
        outcome = Outcome(trial, (measurement,), None, 0.0, measurement.metrics.get(TIME))
        measurements = _checked_measurements(outcome)
        sequence = change.log(facts.IMPORTED, number, {"fraction": measurement.fraction})
        change.add_trial(trial, key, None, sequence)
        self._tell(change, outcome, measurements, sequence)


def require_text(text: str, what: str) -> None:
    """Refuse what some database could not hold, or a person not read."""
    if not isinstance(text, str) or not text or not text.isprintable() or len(text) > _LONGEST_TEXT:
        shown = text[:60] if isinstance(text, str) else text
        raise InputError(f"{what} is {shown!r}; it must be a printable text of 1 to {_LONGEST_TEXT} characters")


def _checked_measurements(outcome: Outcome) -> str:
    number = outcome.trial.number
    if outcome.failed is not None:
        require_text(outcome.failed, "the kind of failure")
    _require_finite(outcome.time, f"the time of trial {number}")
    _require_fractions(number, (measurement.fraction for measurement in outcome.measurements))
    for measurement in outcome.measurements:
        if measurement.configuration != outcome.trial.config:
            raise InputError(f"trial {number} has a measurement of another configuration")
    return encode_measurements(outcome.measurements)


def _require_finite(seconds: float | None, what: str) -> None:
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise InputError(f"{what} is {seconds!r}; it must be a number of seconds")


def _require_fractions(number: int | None, fractions: Iterable[float]) -> None:
    where = "an imported measurement" if number is None else f"trial {number}"
    for fraction in fractions:
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1:
            raise InputError(f"{where}: fraction {fraction!r} is outside (0, 1]; it is the share of the data")
