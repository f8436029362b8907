"""Digests by which decay is found: one of every row, and a chain through the events and the money that moved with them.

They have no key. Whoever may write the record may write digests that fit: they find accidents, not forgers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, bindparam, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError

from trimtuner.records.errors import DamagedRecord
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, PLACES, SCHEMA, STUDIES, TRIALS

_DIGEST = "digest"
_CHANGING = ("version", "heartbeat_at", _DIGEST)  # a version is that of the last event; a heartbeat matters for seconds
_SINCE = 2  # the version of the tables
_FIRST = ""  # what the first event's digest follows
_SHOWN_KEYS = {
    STUDIES: ("name",),
    OWNERS: ("id",),
    TRIALS: ("number",),
    ATTEMPTS: ("trial", "attempt"),
    PLACES: ("trial", "fraction", "state"),
}
_IN_CHAIN = {table: tuple(column for column in table.c if column.name != _DIGEST) for table in (EVENTS, LEDGER)}
SEALED = {table: tuple(column for column in table.c if column.name not in _CHANGING) for table in _SHOWN_KEYS}


@dataclass(frozen=True)
class Fault:
    """Something that is not as it was written."""

    table: str
    where: str  # which row
    text: str

    def __str__(self) -> str:
        return f"{self.table}: {self.where} {self.text}" if self.where else f"{self.table} {self.text}"


def row_digest(table: Table, row: Mapping[str, object]) -> str:
    """The digest of a row as it is written."""
    return _digest([table.name, *(row[column.name] for column in SEALED[table])])


def event_digest(before: str, event: Mapping[str, object], entries: Iterable[Mapping[str, object]]) -> str:
    """The digest of an event, of the money that moved with it, and by the digest before of all that came before."""
    moved = sorted(entries, key=lambda entry: str(entry["kind"]))
    return _chained(
        before,
        [event[column.name] for column in _IN_CHAIN[EVENTS]],
        [[entry[column.name] for column in _IN_CHAIN[LEDGER]] for entry in moved],
    )


def seal_row(connection: Connection, table: Table, key: Mapping[str, object]) -> dict[str, object]:
    """Give a row its digest, of what the database says of it; the row."""
    own = [table.c[name] == value for name, value in key.items()]
    row = dict(connection.execute(select(table).where(*own)).one()._mapping)
    row[_DIGEST] = row_digest(table, row)
    connection.execute(update(table).where(*own).values(digest=row[_DIGEST]))
    return row


def seal_everything(connection: Connection) -> None:
    """Give every row of a record that has no digests yet its own."""
    for table in SEALED:
        rows = [dict(row._mapping) for row in connection.execute(select(table))]
        _write_digests(connection, table, [{**row, _DIGEST: row_digest(table, row)} for row in rows])
    entries = _entries(connection, [])
    digests: dict[object, str] = {}
    events = []
    for event in connection.execute(select(EVENTS).order_by(EVENTS.c.study, EVENTS.c.sequence)).all():
        row = dict(event._mapping)
        moved = entries.get((event.study, event.sequence), [])
        digests[event.study] = event_digest(digests.get(event.study, _FIRST), row, moved)
        events.append({**row, _DIGEST: digests[event.study]})
    _write_digests(connection, EVENTS, events)


def last_digest(connection: Connection, study: int, version: int) -> str:
    """The digest of a study's event; of none, what the first one follows."""
    query = select(EVENTS.c.digest).where(EVENTS.c.study == study, EVENTS.c.sequence == version)
    return str(connection.execute(query).scalar() or _FIRST)


def has_seals(connection: Connection) -> bool:
    """Whether the tables have digests: those of version 1 have none. Their own word, not that of the version."""
    return any(column["name"] == _DIGEST for column in inspect(connection).get_columns(EVENTS.name))


def refuse_damaged(connection: Connection, where: str, study: int | None) -> None:
    """An error that says what is not as it was written; where no study is given, of all that is there."""
    if not has_seals(connection):
        return
    found = list(faults(connection, study))
    if found:
        raise DamagedRecord(where, [str(fault) for fault in found])


def faults(connection: Connection, study: int | None) -> Iterator[Fault]:
    """All that is not as it was written, of one study, or of all that is there.

    Where a flipped bit gives a row to another study, only the look at all rows finds it.
    """
    if any(version < _SINCE for version in connection.execute(select(SCHEMA.c.version)).scalars()):
        yield Fault(SCHEMA.name, "", f"names a version that had no digests, which are there since version {_SINCE}")
    for table, columns in SEALED.items():
        of_study = [] if study is None else [table.c.study == study]
        try:
            query = select(table).with_only_columns(*columns, table.c.digest).where(*of_study)
            rows = connection.execute(query).all()
        except SQLAlchemyError as error:
            yield _unreadable(table, error)
            continue
        for row in rows:
            if _digest([table.name, *row[:-1]]) != row[-1]:
                yield Fault(table.name, _shown_key(table, row._mapping), "is not as it was written")
    try:
        yield from _faults_in_chains(connection, study)
    except SQLAlchemyError as error:
        yield _unreadable(EVENTS, error)


def _faults_in_chains(connection: Connection, study: int | None) -> Iterator[Fault]:
    versions = select(STUDIES.c.study, STUDIES.c.version)
    events = select(*_IN_CHAIN[EVENTS], EVENTS.c.digest).order_by(EVENTS.c.study, EVENTS.c.sequence)
    if study is not None:
        versions, events = versions.where(STUDIES.c.study == study), events.where(EVENTS.c.study == study)
    entries = _entries(connection, [] if study is None else [LEDGER.c.study == study])
    reached: dict[object, tuple[object, str]] = {}
    for row in connection.execute(events).all():
        before = reached.get(row.study, (0, _FIRST))
        moved = [[entry[column.name] for column in _IN_CHAIN[LEDGER]] for entry in entries.pop((row[0], row[1]), [])]
        if _chained(before[1], row[:-1], moved) != row.digest:
            yield Fault(
                EVENTS.name, f"event {row.sequence}", "or the money that moved with it is not as it was written"
            )
        reached[row.study] = (row.sequence, row.digest)  # by its own word: what follows is judged by itself
    for _, sequence in entries:
        yield Fault(LEDGER.name, f"the entries of change {sequence}", "belong to no event")
    for number, version in connection.execute(versions).all():
        if reached.get(number, (0, _FIRST))[0] != version:
            yield Fault(STUDIES.name, f"version {version}", "is not that of the last event")


def _entries(
    connection: Connection, of_study: Sequence[ColumnElement[bool]]
) -> dict[tuple[object, object], list[Mapping[str, object]]]:
    """What the ledger has, by study and change."""
    found: dict[tuple[object, object], list[Mapping[str, object]]] = {}
    query = select(LEDGER).order_by(LEDGER.c.study, LEDGER.c.sequence, LEDGER.c.kind)
    for row in connection.execute(query.where(*of_study)).all():
        found.setdefault((row.study, row.sequence), []).append(row._mapping)  # type: ignore[arg-type]
    return found


def _write_digests(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    keys = [column.name for column in table.primary_key]
    own = [table.c[name] == bindparam(f"own_{name}") for name in keys]
    given = [{_DIGEST: row[_DIGEST], **{f"own_{name}": row[name] for name in keys}} for row in rows]
    if given:
        connection.execute(update(table).where(*own).values(digest=bindparam(_DIGEST)), given)


def _unreadable(table: Table, error: SQLAlchemyError) -> Fault:
    return Fault(table.name, "", f"cannot be read ({' '.join(str(getattr(error, 'orig', error)).split())[:200]})")


def _shown_key(table: Table, row: RowMapping) -> str:
    return ", ".join(f"{name} {str(row[name])[:60]}" for name in _SHOWN_KEYS[table])


def _chained(before: str, event: Sequence[object], entries: Sequence[Sequence[object]]) -> str:
    return _digest([before, list(event), [list(entry) for entry in entries]])


def _digest(content: object) -> str:
    """Of plain values; what is none, such as bytes where a text was, has another."""
    return hashlib.sha256(json.dumps(content, separators=(",", ":"), default=repr).encode()).hexdigest()
