"""One writing transaction on one study: what it may rely on, the rows that every change writes, and their digests.

By the digests decay is found: one of every row, and a chain through the events and the money that moved with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Row, Table, case, delete, insert, select, update

from trimtuner.errors import InputError
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Outcome, Trial
from trimtuner.records.codec import configuration_key, decode_configuration, decode_trial, encode, encode_trial
from trimtuner.records.database import clock
from trimtuner.records.errors import NotOpen, OverBudget, OverTime, RecordError
from trimtuner.records.facts import EntryKind, TimeCap
from trimtuner.records.money import Ledger, to_usd
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, PLACES, SHOWN, STUDIES, TRIALS
from trimtuner.records.sidecar import Image, Written

FIRST_DIGEST = ""  # what the first event's digest follows
_OPEN, _TESTED = "open", "tested"  # states of a place
_BEGINNINGS = ("asked_at", "started_at")  # of an attempt
_CHANGING = ("version", "heartbeat_at", "digest")  # a version is the last event's; a heartbeat matters for seconds
SEALED = {
    table: tuple(column for column in table.c if column.name not in _CHANGING)
    for table in (STUDIES, OWNERS, TRIALS, ATTEMPTS, PLACES)
}
CHAINED = {table: tuple(column for column in table.c if column.name != "digest") for table in (EVENTS, LEDGER)}


class Change:
    """A change of one study. Nobody else changes the study until its transaction ends."""

    def __init__(self, connection: Connection, study: int, ledger: Ledger) -> None:
        query = SHOWN[STUDIES].add_columns(clock(connection).label("now")).where(STUDIES.c.study == study)
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
        self._definition: str = row.definition
        self._events: list[dict[str, object]] = []
        self._entries: list[dict[str, object]] = []
        self._touched: dict[tuple[Table, tuple[tuple[str, object], ...]], None] = {}

    def log(self, kind: str, trial: int | None, detail: Mapping[str, object]) -> int:
        """Count one change, and say what it was; its number."""
        self._sequence += 1
        text = encode(detail, f"the detail of the event {kind!r}")
        row = {"study": self.study, "sequence": self._sequence, "at": self.at}
        self._events.append({**row, "kind": kind, "trial": trial, "detail": text})  # written when sealed
        return self._sequence

    def find(self, table: Table, key: Mapping[str, object]) -> Row[tuple[object, ...]] | None:
        """The row of the study that has this key, if there is one."""
        return self.connection.execute(select(table).where(*self._own(table, key))).one_or_none()

    def insert(self, table: Table, key: Mapping[str, object], values: Mapping[str, object]) -> None:
        """Add a row to the study."""
        self.connection.execute(insert(table), {"study": self.study, **key, **values, "digest": ""})
        self.touch(table, key)

    def update(self, table: Table, key: Mapping[str, object], values: Mapping[str, object]) -> None:
        """Change a row of the study that has this key."""
        self.connection.execute(update(table).where(*self._own(table, key)).values(values))
        self.touch(table, key)

    def touch(self, table: Table, key: Mapping[str, object]) -> None:
        """Remember that a row of the study is written, so that it gets its digest."""
        self._touched[table, tuple(key.items())] = None

    def seal(self) -> Written:
        """Give all that was written its digests, at the end of the change; what was written."""
        version = update(STUDIES).where(STUDIES.c.study == self.study).values(version=self._sequence)
        if self._events:
            self.connection.execute(version)
        rows: dict[str, list[Image]] = {table.name: [] for table in (STUDIES, OWNERS, TRIALS, ATTEMPTS)}
        for table, key in self._touched:
            rows[table.name].append(self._sealed(table, dict(key)))
        digest = self._last_digest()
        for event in self._events:
            moved = [entry for entry in self._entries if entry["sequence"] == event["sequence"]]
            digest = event_digest(digest, event, moved)
            event["digest"] = digest
        if self._events:
            self.connection.execute(insert(EVENTS), self._events)
        rows |= {LEDGER.name: self._entries, EVENTS.name: self._events}
        return Written(self.id, self._committed, self._sequence, {name: found for name, found in rows.items() if found})

    def is_taken(self, key: str, fractions: Iterable[float]) -> bool:
        """Whether the configuration is under way, measured or failed at one of these fractions."""
        query = select(PLACES.c.trial).where(PLACES.c.study == self.study, PLACES.c.config_key == key)
        return self.connection.execute(query.where(PLACES.c.fraction.in_(list(fractions))).limit(1)).first() is not None

    def require_owner(self, owner: str) -> None:
        """Refuse an owner that did not register: nobody could tell whether it lives."""
        if self.find(OWNERS, {"id": owner}) is None:
            raise InputError(f"the owner {owner!r} is not registered; register it before it takes a trial")

    def require_definition(self, definition: str) -> None:
        """Refuse whoever opened the study before its space grew, and would ask in the old one."""
        if definition != self._definition:
            raise InputError("another process has added to the space of this study; open it again to go on")

    def require_budget(self, wanted: int) -> None:
        """Refuse a reserve that does not fit what is left."""
        before = self._ledger.sums(self.connection, self._committed)
        now = before.until(self.connection, self.study, self._sequence)
        if self.budget is not None and now.spent + now.reserved + wanted > self.budget:
            raise OverBudget(to_usd(self.budget), to_usd(now.spent), to_usd(now.reserved), to_usd(wanted))

    def require_time(self, cap: TimeCap | None, configuration: Mapping[str, Value]) -> None:
        """Refuse a trial whose worst case does not fit the machine-time that is left."""
        if cap is None:
            return
        joined = ATTEMPTS.join(TRIALS, (TRIALS.c.study == ATTEMPTS.c.study) & (TRIALS.c.number == ATTEMPTS.c.trial))
        query = select(TRIALS.c.config, ATTEMPTS.c.seconds, ATTEMPTS.c.ended_at).select_from(joined)
        rows = self.connection.execute(query.where(ATTEMPTS.c.study == self.study))
        taken = 0.0
        for row in rows:
            seconds = cap.worst_seconds if row.ended_at is None else float(row.seconds or 0.0)
            taken += cap.machines_in(decode_configuration(row.config)) * seconds
        wanted = cap.machines_in(configuration) * cap.worst_seconds
        if taken + wanted > cap.seconds:
            raise OverTime(cap.seconds, taken, wanted)

    def require_open(self, number: int, attempt: int) -> Row[tuple[object, ...]]:
        """The row of a trial whose attempt is under way."""
        row = self.find(TRIALS, {"number": number})
        if row is None:
            raise NotOpen(f"trial {number} was not asked by this study; tell takes what ask returned")
        if row.told is not None:
            raise NotOpen(f"trial {number} was told already; a trial is told once")
        if row.attempt != attempt:
            raise NotOpen(f"attempt {attempt} at trial {number} is over; attempt {row.attempt} is under way")
        return row

    def add_trial(self, trial: Trial, key: str, owner: str | None, asked: int) -> None:
        """The row of a trial, open."""
        values = {"config_key": key, "asked": asked, "owner": owner, "attempt": 1}
        self.insert(TRIALS, {"number": trial.number}, {**encode_trial(trial), **values})

    def open_attempt(self, number: int, attempt: int, reserve: int) -> None:
        """The row of an attempt, its worst case reserved."""
        key = {"trial": number, "attempt": attempt}
        self.insert(ATTEMPTS, key, {"reserve": reserve, "asked_at": self.at})
        self._enter("reserve", key, reserve)

    def date_back(self, number: int, attempt: int, latest: float) -> None:
        """The attempt was asked and started at that time, or earlier."""
        dates = {name: case((ATTEMPTS.c[name] > latest, latest), else_=ATTEMPTS.c[name]) for name in _BEGINNINGS}
        self.update(ATTEMPTS, {"trial": number, "attempt": attempt}, dates)

    def close_attempt(self, number: int, attempt: int, charge: int, seconds: float | None, failed: str | None) -> None:
        """What the attempt cost is charged, and its reserve released."""
        key = {"trial": number, "attempt": attempt}
        reserve = self.connection.execute(select(ATTEMPTS.c.reserve).where(*self._own(ATTEMPTS, key))).scalar_one()
        self.update(ATTEMPTS, key, {"ended_at": self.at, "failed": failed, "seconds": seconds, "charge": charge})
        self._enter("charge", key, charge)
        self._enter("release", key, reserve)

    def take_places(self, trial: Trial, key: str) -> None:
        """Nobody else starts the configuration at the trial's fraction, or at those it passes."""
        self._add_places(key, {trial.fraction, *trial.snapshots}, _OPEN, trial.number)

    def settle_places(self, outcome: Outcome) -> None:
        """What was measured, or failed through the configuration's fault, is done; the rest is free again."""
        trial, key = outcome.trial, configuration_key(outcome.trial.config)
        under_way = self._own(PLACES, {"trial": trial.number, "state": _OPEN})
        self.connection.execute(delete(PLACES).where(*under_way))
        done = {measurement.fraction for measurement in outcome.measurements}
        if outcome.is_fault:
            done.add(trial.fraction)
        tested = self._own(PLACES, {"config_key": key, "state": _TESTED})
        before = self.connection.execute(select(PLACES.c.fraction).where(*tested)).scalars()
        self._add_places(key, done - set(before), _TESTED, trial.number)

    def complete_configurations(self, complete: Callable[[Mapping[str, Value]], dict[str, Value]]) -> None:
        """Every configuration of the study in words of a space that has grown, and the places with them."""
        rows = self.connection.execute(SHOWN[TRIALS].where(TRIALS.c.study == self.study)).all()
        moved = {}
        for row in rows:
            old = decode_trial(row.number, row._mapping)
            new = old.with_configurations(complete)
            if new != old:
                key = moved[row.config_key] = configuration_key(new.config)
                self.update(TRIALS, {"number": row.number}, {**encode_trial(new), "config_key": key})
        for before, key in moved.items():
            self._move_places(before, key)

    def _move_places(self, before: str, key: str) -> None:
        of_before = self._own(PLACES, {"config_key": before})
        rows = self.connection.execute(select(PLACES).where(*of_before)).all()
        self.connection.execute(delete(PLACES).where(*of_before))
        for row in rows:
            self._add_places(key, {row.fraction}, row.state, row.trial)

    def settle_places_again(self, key: str, outcomes: Iterable[Outcome]) -> None:
        """Of a configuration one of whose trials is forgotten: what the others measured is done, the rest is free."""
        tested = self._own(PLACES, {"config_key": key, "state": _TESTED})
        self.connection.execute(delete(PLACES).where(*tested))
        for outcome in outcomes:
            self.settle_places(outcome)

    def _add_places(self, key: str, fractions: set[float], state: str, number: int) -> None:
        rows: list[dict[str, object]] = [
            {"study": self.study, "config_key": key, "fraction": float(one), "state": state, "trial": number}
            for one in sorted(fractions)
        ]
        if rows:
            self.connection.execute(insert(PLACES), [{**row, "digest": row_digest(PLACES, row)} for row in rows])

    def _enter(self, kind: EntryKind, attempt: Mapping[str, int], nanos: int) -> None:
        row = {"study": self.study, "sequence": self._sequence, "kind": kind, "at": self.at}
        self._entries.append({**row, **attempt, "nanos": nanos})
        self.connection.execute(insert(LEDGER), self._entries[-1])

    def _sealed(self, table: Table, key: Mapping[str, object]) -> Image:
        """A row with its digest, which is of what the database says of the row."""
        own = self._own(table, key)
        row = dict(self.connection.execute(select(table).where(*own)).one()._mapping)
        row["digest"] = row_digest(table, row)
        self.connection.execute(update(table).where(*own).values(digest=row["digest"]))
        return row

    def _last_digest(self) -> str:
        query = select(EVENTS.c.digest).where(*self._own(EVENTS, {"sequence": self._committed}))
        return str(self.connection.execute(query).scalar() or FIRST_DIGEST)

    def _own(self, table: Table, key: Mapping[str, object]) -> list[ColumnElement[bool]]:
        return [table.c.study == self.study, *(table.c[name] == value for name, value in key.items())]


def row_digest(table: Table, row: Mapping[str, object]) -> str:
    """The digest of a row as it is written."""
    return digest_of([table.name, *(row[column.name] for column in SEALED[table])])


def event_digest(before: str, event: Mapping[str, object], entries: Iterable[Mapping[str, object]]) -> str:
    """The digest of an event, of the money that moved with it, and by the digest before of all that came before."""
    moved = sorted(entries, key=lambda entry: str(entry["kind"]))
    money = [[entry[column.name] for column in CHAINED[LEDGER]] for entry in moved]
    return digest_of([before, [event[column.name] for column in CHAINED[EVENTS]], money])


def digest_of(content: Sequence[object]) -> str:
    """Of plain values; what is none, such as bytes where a text was, has another."""
    return hashlib.sha256(json.dumps(content, separators=(",", ":"), default=repr).encode()).hexdigest()
