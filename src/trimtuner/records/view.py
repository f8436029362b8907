"""A study in a record, read: never waits for a writer, and never makes one wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, Select, func, select

from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import History, Outcome, PlaceToTest, Trial
from trimtuner.records.codec import (
    Json,
    decode_earlier,
    decode_mapping,
    decode_measurements,
    decode_place,
    decode_trial,
)
from trimtuner.records.database import Database, clock
from trimtuner.records.errors import RecordError
from trimtuner.records.facts import (
    ADOPTED,
    ASKED,
    ENQUEUED,
    FORGOTTEN,
    GROWN,
    LEARNS,
    NOTED,
    OVER,
    RETRIED,
    STARTED,
    STOP_REQUESTED,
    WAITING,
    Attempt,
    Entry,
    Event,
    OpenTrial,
    Owner,
    Status,
)
from trimtuner.records.money import Ledger, charged_nanos, to_usd
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, SECRET_BYTES, SHOWN, STUDIES, TRIALS


class StudyView:
    """One study, as it was last written down."""

    def __init__(self, reader: Database, row: Row[tuple[object, ...]]) -> None:
        self._reader = reader
        self._study: int = row.study
        self._ledger = Ledger(self._study)
        self._lock = threading.Lock()
        self._known = _Reading(0, -1, History())
        self.id: str = row.id
        self.name: str = row.name
        self.created_at: float = row.created_at
        self._definition: str = row.definition

    @property
    def definition(self) -> dict[str, Json]:
        """What the study was made with, as JSON gives it back."""
        return decode_mapping(self._definition)

    def require_there(self) -> None:
        """An error where the file of the record is no longer the one that was opened."""
        self._reader.require_there()

    @property
    def secret(self) -> bytes:
        """What only the study's own processes know; read when it is needed, kept nowhere, and never to be shown."""
        with self._reader.transaction() as connection:
            text = str(connection.execute(select(STUDIES.c.secret).where(STUDIES.c.study == self._study)).scalar_one())
        try:
            secret = bytes.fromhex(text)
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise RecordError(f"{self._reader.where} has lost the secret of the study {self.name!r}; restore a copy")
        return secret

    @property
    def budget(self) -> float | None:
        """USD that may be spent."""
        return self.status().budget

    @property
    def spent(self) -> float:
        """USD charged so far: the sum of the ledger's charges."""
        return self.status().spent

    @property
    def reserved(self) -> float:
        """USD that the trials under way may cost at worst: what the ledger reserved and did not release."""
        return self.status().reserved

    def version(self) -> int:
        """A number that rises with each change."""
        with self._reader.transaction() as connection:
            return self._version(connection)

    def history(self) -> History:
        """The history, equal to the one of a study in memory; what was read before is not read again."""
        with self._lock, self._reader.transaction() as connection:
            version = self._version(connection)
            if version != self._known.version:
                self._known = self._updated(connection, version)
            return self._known.history

    def status(self) -> Status:
        """Counts and money, all of one instant."""
        with self._reader.transaction() as connection:
            row = connection.execute(SHOWN[STUDIES].where(STUDIES.c.study == self._study)).one()
            changed = select(EVENTS.c.at).where(EVENTS.c.study == self._study, EVENTS.c.sequence == row.version)
            counts = select(func.count(), func.count(TRIALS.c.told), func.count(TRIALS.c.failed))
            asked, told, failed = connection.execute(counts.where(TRIALS.c.study == self._study)).one()
            forgotten = len(self._forgotten(connection, 0))
            sums = self._ledger.sums(connection, row.version)
            changed_at = float(connection.execute(changed).scalar_one())
        budget = None if row.budget is None else to_usd(row.budget)
        money = (budget, to_usd(sums.spent), to_usd(sums.reserved))
        counted = (asked - told, told - failed, failed - forgotten, forgotten)
        return Status(row.version, changed_at, *money, *counted)

    def earlier(self) -> tuple[Earlier, ...]:
        """The earlier studies that it learns from, as they were when it was made."""
        query = select(EVENTS.c.detail).where(EVENTS.c.study == self._study, EVENTS.c.kind == LEARNS)
        return tuple(decode_earlier(row.detail) for row in self._read(query.order_by(EVENTS.c.sequence)))

    def open_trials(self) -> list[OpenTrial]:
        """The trials under way, in the order asked."""
        attempts = TRIALS.join(
            ATTEMPTS,
            (ATTEMPTS.c.study == TRIALS.c.study)
            & (ATTEMPTS.c.trial == TRIALS.c.number)
            & (ATTEMPTS.c.attempt == TRIALS.c.attempt),
        )
        latest = (ATTEMPTS.c.handle, ATTEMPTS.c.reserve, ATTEMPTS.c.asked_at, ATTEMPTS.c.started_at)
        query = SHOWN[TRIALS].add_columns(*latest).select_from(attempts).order_by(TRIALS.c.asked)
        return [
            OpenTrial(trial_of(r), r.attempt, r.handle, to_usd(r.reserve), r.owner, r.asked_at, r.started_at)
            for r in self._read(query.where(TRIALS.c.study == self._study, TRIALS.c.told.is_(None)))
        ]

    def charged(self, number: int) -> float:
        """USD charged so far for a trial's attempts."""
        with self._reader.transaction() as connection:
            return to_usd(charged_nanos(connection, self._study, number))

    def attempts(self) -> list[Attempt]:
        """Every attempt at a trial, in the order of the trials."""
        query = SHOWN[ATTEMPTS].where(ATTEMPTS.c.study == self._study).order_by(ATTEMPTS.c.trial, ATTEMPTS.c.attempt)
        return [
            Attempt(
                *(r.trial, r.attempt, r.asked_at, r.started_at, r.ended_at, r.failed),
                reserve=to_usd(r.reserve),
                charge=None if r.charge is None else to_usd(r.charge),
            )
            for r in self._read(query)
        ]

    def ledger(self) -> list[Entry]:
        """Every movement of money, in order."""
        query = select(LEDGER).where(LEDGER.c.study == self._study).order_by(LEDGER.c.sequence, LEDGER.c.kind)
        return [Entry(r.sequence, r.at, r.trial, r.attempt, r.kind, r.nanos) for r in self._read(query)]

    def events(self, after: int = 0) -> list[Event]:
        """What happened since that sequence number, in order."""
        query = SHOWN[EVENTS].where(EVENTS.c.study == self._study, EVENTS.c.sequence > after)
        rows = self._read(query.order_by(EVENTS.c.sequence))
        return [Event(r.sequence, r.at, r.kind, r.trial, decode_mapping(r.detail)) for r in rows]

    def waiting(self) -> dict[int, str]:
        """Trials under way that have not begun, and what each waits for."""
        kinds = (WAITING, STARTED, RETRIED)
        query = select(EVENTS.c.trial, EVENTS.c.kind, EVENTS.c.detail).join(
            TRIALS, (TRIALS.c.study == EVENTS.c.study) & (TRIALS.c.number == EVENTS.c.trial)
        )
        of_open = query.where(EVENTS.c.study == self._study, EVENTS.c.kind.in_(kinds), TRIALS.c.told.is_(None))
        last = {row.trial: row for row in self._read(of_open.order_by(EVENTS.c.sequence))}
        return {trial: str(decode_mapping(r.detail)["why"]) for trial, r in last.items() if r.kind == WAITING}

    def notes(self) -> dict[int, tuple[str, ...]]:
        """What is to be known of trials besides how they ended, in order."""
        query = select(EVENTS.c.trial, EVENTS.c.detail).where(EVENTS.c.study == self._study, EVENTS.c.kind == NOTED)
        found: dict[int, tuple[str, ...]] = {}
        for row in self._read(query.order_by(EVENTS.c.sequence)):
            found[row.trial] = (*found.get(row.trial, ()), str(decode_mapping(row.detail)["text"]))
        return found

    def stop_requested(self, since: int) -> bool:
        """Whether somebody asked to stop after that version.

        A run compares with the version at which it began, so no old request stops it and none need be taken back.
        """
        query = select(EVENTS.c.sequence).where(EVENTS.c.study == self._study, EVENTS.c.sequence > since)
        return bool(self._read(query.where(EVENTS.c.kind == STOP_REQUESTED).limit(1)))

    def why_over(self) -> str:
        """Why the last run asked for nothing more; nothing where it did not say, or a trial was asked since."""
        kinds = EVENTS.c.kind.in_((ASKED, ADOPTED, OVER))
        query = select(EVENTS.c.kind, EVENTS.c.detail).where(EVENTS.c.study == self._study, kinds)
        last = next(iter(self._read(query.order_by(EVENTS.c.sequence.desc()).limit(1))), None)
        return str(decode_mapping(last.detail)["why"]) if last is not None and last.kind == OVER else ""

    def owners(self) -> list[Owner]:
        """Every process that registered, with its last sign of life."""
        with self._reader.transaction() as connection:
            silent = (clock(connection) - OWNERS.c.heartbeat_at).label("silent")
            query = SHOWN[OWNERS].add_columns(silent).where(OWNERS.c.study == self._study).order_by(OWNERS.c.id)
            rows = connection.execute(query).all()
        return [Owner(r.id, r.host, r.pid, r.pid_started, r.heartbeat_at, r.silent) for r in rows]

    def now(self) -> float:
        """The time by the clock that all times of the record are of."""
        with self._reader.transaction() as connection:
            return float(connection.execute(select(clock(connection))).scalar_one())

    def _read(self, query: Select[tuple[object, ...]]) -> Sequence[Row[tuple[object, ...]]]:
        with self._reader.transaction() as connection:
            return connection.execute(query).all()

    def _version(self, connection: Connection) -> int:
        query = select(STUDIES.c.version).where(STUDIES.c.study == self._study)
        return int(connection.execute(query).scalar_one())

    def _updated(self, connection: Connection, version: int) -> _Reading:
        grown = self._grown(connection, self._known.version)
        # Where the space has grown, what was read before is now said otherwise; nothing waited when it grew.
        known = self._known if grown is None else _Reading(0, -1, History())
        asked = {trial.number: trial for trial in known.history.pending}
        of_study = SHOWN[TRIALS].where(TRIALS.c.study == self._study)
        told = connection.execute(of_study.where(TRIALS.c.told > known.told).order_by(TRIALS.c.told)).all()
        still = connection.execute(of_study.where(TRIALS.c.told.is_(None)).order_by(TRIALS.c.asked)).all()
        trials = {row.number: asked.get(row.number) or trial_of(row) for row in (*told, *still)}
        waiting = History(queued=(*known.history.queued, *self._enqueued(connection, grown or known.version)))
        for number in sorted(trials.keys() - asked.keys()):
            waiting = waiting.with_asked(trials[number])
        history = History(
            outcomes=(*known.history.outcomes, *(_outcome_of(row, trials[row.number]) for row in told)),
            pending=tuple(trials[row.number] for row in still),
            next_number=next_number(connection, self._study),
            queued=waiting.queued,
        )
        for number in self._forgotten(connection, known.version):
            history = history.with_forgotten(number)
        return _Reading(told[-1].told if told else known.told, version, history)

    def _forgotten(self, connection: Connection, after: int) -> list[int]:
        """The trials that were forgotten after that version."""
        query = select(EVENTS.c.trial).where(EVENTS.c.study == self._study, EVENTS.c.sequence > after)
        return list(connection.execute(query.where(EVENTS.c.kind == FORGOTTEN).order_by(EVENTS.c.sequence)).scalars())

    def _grown(self, connection: Connection, after: int) -> int | None:
        """When the space last grew after that version, if it did."""
        query = select(func.max(EVENTS.c.sequence)).where(EVENTS.c.study == self._study, EVENTS.c.sequence > after)
        return connection.execute(query.where(EVENTS.c.kind == GROWN)).scalar()

    def _enqueued(self, connection: Connection, after: int) -> list[PlaceToTest]:
        """What users wanted next after that version."""
        query = select(EVENTS.c.detail).where(EVENTS.c.study == self._study, EVENTS.c.sequence > after)
        rows = connection.execute(query.where(EVENTS.c.kind == ENQUEUED).order_by(EVENTS.c.sequence)).scalars()
        return [decode_place(text) for text in rows]


@dataclass(frozen=True)
class _Reading:
    """What was read so far. Outcomes are added or forgotten, so the next reading begins after the last one told."""

    told: int
    version: int
    history: History


def trial_of(row: Row[tuple[object, ...]]) -> Trial:
    """The trial of a row, as it was asked."""
    return decode_trial(row.number, row._mapping)


def next_number(connection: Connection, study: int) -> int:
    """The number of the next trial."""
    largest = connection.execute(select(func.max(TRIALS.c.number)).where(TRIALS.c.study == study)).scalar()
    return 0 if largest is None else int(largest) + 1


def _outcome_of(row: Row[tuple[object, ...]], trial: Trial) -> Outcome:
    measurements = decode_measurements(row.measurements, trial.config)
    return Outcome(trial, measurements, row.failed, row.cost, row.time)
