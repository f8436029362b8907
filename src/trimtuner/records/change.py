"""One writing transaction on one study: what it may rely on, and the rows that every change writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import ColumnElement, Connection, Row, Table, case, delete, func, insert, select, update

from trimtuner.errors import InputError
from trimtuner.problem.history import Outcome, Trial
from trimtuner.records.codec import configuration_key, encode, encode_configuration, encode_recommended
from trimtuner.records.errors import NotOpen, OverBudget, RecordError
from trimtuner.records.facts import EntryKind
from trimtuner.records.ledger import Ledger
from trimtuner.records.money import to_usd
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, PLACES, STUDIES, TRIALS, shown
from trimtuner.records.seals import event_digest, last_digest, row_digest, seal_row
from trimtuner.records.server import clock
from trimtuner.records.sidecar import Image, Written

_OPEN, _TESTED = "open", "tested"


class Change:
    """A change of one study. Nobody else changes the study until its transaction ends."""

    def __init__(self, connection: Connection, study: int, ledger: Ledger) -> None:
        query = shown(STUDIES).add_columns(clock(connection).label("now")).where(STUDIES.c.study == study)
        row = connection.execute(query.with_for_update()).one_or_none()  # SQLite locked the whole file
        if row is None:
            raise RecordError("the study is no longer in the record; open it again")
        self.connection = connection
        self.study = study
        self.budget: int | None = row.budget
        self._ledger = ledger
        self._committed: int = row.version
        self._sequence: int = row.version
        self.at: float = row.now
        self.id: str = row.id
        self._events: list[dict[str, object]] = []
        self._entries: list[dict[str, object]] = []
        self._touched: dict[tuple[Table, tuple[tuple[str, object], ...]], None] = {}

    def log(self, kind: str, trial: int | None, detail: Mapping[str, object]) -> int:
        """Count one change, and say what it was."""
        self._sequence += 1
        version = update(STUDIES).where(STUDIES.c.study == self.study).values(version=self._sequence)
        self.connection.execute(version)
        text = encode(detail, f"the detail of the event {kind!r}")
        row = {"study": self.study, "sequence": self._sequence, "at": self.at}
        self._events.append({**row, "kind": kind, "trial": trial, "detail": text})  # written when sealed
        return self._sequence

    def touch(self, table: Table, key: Mapping[str, object]) -> None:
        """Remember that a row is written, so that it gets its digest."""
        self._touched[table, tuple(key.items())] = None

    def seal(self) -> Written:
        """Give all that was written its digests, at the end of the change; what was written."""
        rows: dict[str, list[Image]] = {table.name: [] for table in (STUDIES, OWNERS, TRIALS, ATTEMPTS)}
        for table, key in self._touched:
            rows[table.name].append(seal_row(self.connection, table, {"study": self.study, **dict(key)}))
        digest = last_digest(self.connection, self.study, self._committed)
        for event in self._events:
            moved = [entry for entry in self._entries if entry["sequence"] == event["sequence"]]
            digest = event_digest(digest, event, moved)
            event["digest"] = digest
        if self._events:
            self.connection.execute(insert(EVENTS), self._events)
        rows |= {LEDGER.name: self._entries, EVENTS.name: self._events}
        return Written(self.id, self._committed, self._sequence, {name: found for name, found in rows.items() if found})

    def next_number(self) -> int:
        """The number of the next trial."""
        query = select(func.max(TRIALS.c.number)).where(TRIALS.c.study == self.study)
        largest = self.connection.execute(query).scalar()
        return 0 if largest is None else int(largest) + 1

    def is_taken(self, key: str, fractions: Iterable[float]) -> bool:
        """Whether the configuration is under way, measured or failed at one of these fractions."""
        query = select(PLACES.c.trial).where(PLACES.c.study == self.study, PLACES.c.config_key == key)
        return self.connection.execute(query.where(PLACES.c.fraction.in_(list(fractions))).limit(1)).first() is not None

    def require_owner(self, owner: str) -> None:
        """Refuse an owner that did not register: nobody could tell whether it lives."""
        query = select(OWNERS.c.id).where(OWNERS.c.study == self.study, OWNERS.c.id == owner)
        if self.connection.execute(query).first() is None:
            raise InputError(f"the owner {owner!r} is not registered; register it before it takes a trial")

    def require_budget(self, wanted: int) -> None:
        """Refuse a reserve that does not fit what is left."""
        before = self._ledger.sums(self.connection, self._committed)
        now = before.until(self.connection, self.study, self._sequence)
        if self.budget is not None and now.spent + now.reserved + wanted > self.budget:
            raise OverBudget(to_usd(self.budget), to_usd(now.spent), to_usd(now.reserved), to_usd(wanted))

    def require_open(self, number: int, attempt: int) -> Row[tuple[object, ...]]:
        """The row of a trial whose attempt is under way."""
        query = select(TRIALS).where(TRIALS.c.study == self.study, TRIALS.c.number == number)
        row = self.connection.execute(query).one_or_none()
        if row is None:
            raise NotOpen(f"trial {number} was not asked by this study; tell takes what ask returned")
        if row.told is not None:
            raise NotOpen(f"trial {number} was told already; a trial is told once")
        if row.attempt != attempt:
            raise NotOpen(f"attempt {attempt} at trial {number} is over; attempt {row.attempt} is under way")
        return row

    def add_trial(self, trial: Trial, key: str, owner: str | None, asked: int) -> None:
        """The row of a trial, open."""
        self.connection.execute(
            insert(TRIALS).values(
                study=self.study,
                number=trial.number,
                config=encode_configuration(trial.config),
                config_key=key,
                fraction=float(trial.fraction),
                snapshots=encode(list(trial.snapshots), "the snapshots"),
                origin=trial.origin,
                recommended=encode_recommended(trial.recommended),
                asked=asked,
                owner=owner,
                attempt=1,
                digest="",  # until it is sealed
            )
        )
        self.touch(TRIALS, {"number": trial.number})

    def open_attempt(self, number: int, attempt: int, reserve: int) -> None:
        """The row of an attempt, its worst case reserved."""
        row = {"study": self.study, "trial": number, "attempt": attempt, "reserve": reserve, "asked_at": self.at}
        self.connection.execute(insert(ATTEMPTS), {**row, "digest": ""})  # until it is sealed
        self.touch(ATTEMPTS, {"trial": number, "attempt": attempt})
        self._enter("reserve", number, attempt, reserve)

    def start_attempt(self, number: int, attempt: int, handle: str) -> None:
        """Where the attempt runs."""
        self.connection.execute(
            update(ATTEMPTS).where(*self._of_attempt(number, attempt)).values(handle=handle, started_at=self.at)
        )
        self.touch(ATTEMPTS, {"trial": number, "attempt": attempt})

    def date_attempt_back(self, number: int, latest: float) -> None:
        """The attempt under way began at that time, or earlier."""
        columns = (ATTEMPTS.c.asked_at, ATTEMPTS.c.started_at)
        dates = {column.name: case((column > latest, latest), else_=column) for column in columns}
        under_way = (ATTEMPTS.c.study == self.study, ATTEMPTS.c.trial == number, ATTEMPTS.c.ended_at.is_(None))
        for attempt in self.connection.execute(select(ATTEMPTS.c.attempt).where(*under_way)).scalars().all():
            self.connection.execute(update(ATTEMPTS).where(*self._of_attempt(number, attempt)).values(dates))
            self.touch(ATTEMPTS, {"trial": number, "attempt": attempt})

    def close_attempt(self, number: int, attempt: int, charge: int, seconds: float | None, failed: str | None) -> None:
        """What the attempt cost is charged, and its reserve released."""
        of_attempt = self._of_attempt(number, attempt)
        reserve = self.connection.execute(select(ATTEMPTS.c.reserve).where(*of_attempt)).scalar_one()
        ended = {"ended_at": self.at, "failed": failed, "seconds": seconds, "charge": charge}
        self.connection.execute(update(ATTEMPTS).where(*of_attempt).values(ended))
        self.touch(ATTEMPTS, {"trial": number, "attempt": attempt})
        self._enter("charge", number, attempt, charge)
        self._enter("release", number, attempt, reserve)

    def take_places(self, trial: Trial, key: str) -> None:
        """Nobody else starts the configuration at the trial's fraction, or at those it passes."""
        self._add_places(key, {trial.fraction, *trial.snapshots}, _OPEN, trial.number)

    def settle_places(self, outcome: Outcome) -> None:
        """What was measured, or failed through the configuration's fault, is done; the rest is free again."""
        trial = outcome.trial
        of_trial = (PLACES.c.study == self.study, PLACES.c.trial == trial.number, PLACES.c.state == _OPEN)
        self.connection.execute(delete(PLACES).where(*of_trial))
        done = {measurement.fraction for measurement in outcome.measurements}
        if outcome.is_fault:
            done.add(trial.fraction)
        key = configuration_key(trial.config)
        query = select(PLACES.c.fraction).where(PLACES.c.study == self.study, PLACES.c.config_key == key)
        before = self.connection.execute(query.where(PLACES.c.state == _TESTED)).scalars()
        self._add_places(key, done - set(before), _TESTED, trial.number)

    def settle_places_again(self, key: str, outcomes: Iterable[Outcome]) -> None:
        """Of a configuration one of whose trials is forgotten: what the others measured is done, the rest is free."""
        of_key = (PLACES.c.study == self.study, PLACES.c.config_key == key, PLACES.c.state == _TESTED)
        self.connection.execute(delete(PLACES).where(*of_key))
        for outcome in outcomes:
            self.settle_places(outcome)

    def _add_places(self, key: str, fractions: set[float], state: str, number: int) -> None:
        rows: list[dict[str, object]] = [
            {"study": self.study, "config_key": key, "fraction": float(one), "state": state, "trial": number}
            for one in sorted(fractions)
        ]
        if rows:
            self.connection.execute(insert(PLACES), [{**row, "digest": row_digest(PLACES, row)} for row in rows])

    def _enter(self, kind: EntryKind, number: int, attempt: int, nanos: int) -> None:
        row = {"study": self.study, "sequence": self._sequence, "kind": kind, "at": self.at}
        self._entries.append({**row, "trial": number, "attempt": attempt, "nanos": nanos})
        self.connection.execute(insert(LEDGER), self._entries[-1])

    def _of_attempt(self, number: int, attempt: int) -> tuple[ColumnElement[bool], ...]:
        return (ATTEMPTS.c.study == self.study, ATTEMPTS.c.trial == number, ATTEMPTS.c.attempt == attempt)
