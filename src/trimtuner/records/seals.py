"""The digests of a record looked at as a whole: what decayed is found, and what has none yet is given its own.

They have no key. Whoever may write the record may write digests that fit: they find accidents, not forgers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Table, bindparam, inspect, select, true, update
from sqlalchemy.exc import SQLAlchemyError

from trimtuner.records.change import CHAINED, FIRST_DIGEST, SEALED, digest_of, event_digest, row_digest
from trimtuner.records.errors import DamagedRecord
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, PLACES, SCHEMA, STUDIES, TRIALS

_SINCE = 2  # the version of the tables
_NOT_AS_WRITTEN = "is not as it was written"
_SHOWN_KEYS = {
    STUDIES: ("name",),
    OWNERS: ("id",),
    TRIALS: ("number",),
    ATTEMPTS: ("trial", "attempt"),
    PLACES: ("trial", "fraction", "state"),
}


def seal_everything(connection: Connection) -> None:
    """Give every row of a record that has no digests yet its own."""
    for table in SEALED:
        rows = [dict(row._mapping) for row in connection.execute(select(table))]
        _write_digests(connection, table, [{**row, "digest": row_digest(table, row)} for row in rows])
    entries = _entries(connection, None)
    digests: dict[object, str] = {}
    events = []
    for event in connection.execute(select(EVENTS).order_by(EVENTS.c.study, EVENTS.c.sequence)).all():
        row = dict(event._mapping)
        moved = entries.get((event.study, event.sequence), [])
        digests[event.study] = event_digest(digests.get(event.study, FIRST_DIGEST), row, moved)
        events.append({**row, "digest": digests[event.study]})
    _write_digests(connection, EVENTS, events)


def has_seals(connection: Connection) -> bool:
    """Whether the tables have digests: those of version 1 have none. Their own word, not that of the version."""
    return any(column["name"] == "digest" for column in inspect(connection).get_columns(EVENTS.name))


def refuse_damaged(connection: Connection, where: str, study: int | None) -> None:
    """An error that says what is not as it was written; where no study is given, of all that is there."""
    found = list(faults(connection, study)) if has_seals(connection) else []
    if found:
        raise DamagedRecord(where, found)


def faults(connection: Connection, study: int | None) -> Iterator[str]:
    """All that is not as it was written, of one study, or of all that is there: table, row and what is wrong.

    Where a flipped bit gives a row to another study, only the look at all rows finds it.
    """
    if any(version < _SINCE for version in connection.execute(select(SCHEMA.c.version)).scalars()):
        yield f"{SCHEMA.name} names a version that had no digests, which are there since version {_SINCE}"
    for table, columns in SEALED.items():
        try:
            query = select(table).with_only_columns(*columns, table.c.digest).where(_is_of(table, study))
            rows = connection.execute(query).all()
        except SQLAlchemyError as error:
            yield _unreadable(table, error)
            continue
        for row in rows:
            if digest_of([table.name, *row[:-1]]) != row[-1]:
                key = ", ".join(f"{name} {str(row._mapping[name])[:60]}" for name in _SHOWN_KEYS[table])
                yield f"{table.name}: {key} {_NOT_AS_WRITTEN}"
    try:
        yield from _faults_in_chains(connection, study)
    except SQLAlchemyError as error:
        yield _unreadable(EVENTS, error)


def _faults_in_chains(connection: Connection, study: int | None) -> Iterator[str]:
    events = select(*CHAINED[EVENTS], EVENTS.c.digest).where(_is_of(EVENTS, study))
    entries = _entries(connection, study)
    reached: dict[object, tuple[object, str]] = {}
    for row in connection.execute(events.order_by(EVENTS.c.study, EVENTS.c.sequence)).all():
        event: Mapping[str, object] = row._mapping  # type: ignore[assignment]
        _, before = reached.get(row.study, (0, FIRST_DIGEST))
        if event_digest(before, event, entries.pop((row.study, row.sequence), [])) != row.digest:
            yield f"{EVENTS.name}: event {row.sequence} or the money that moved with it {_NOT_AS_WRITTEN}"
        reached[row.study] = (row.sequence, row.digest)  # by its own word: what follows is judged by itself
    for _, sequence in entries:
        yield f"{LEDGER.name}: the entries of change {sequence} belong to no event"
    for number, version in connection.execute(
        select(STUDIES.c.study, STUDIES.c.version).where(_is_of(STUDIES, study))
    ).all():
        if reached.get(number, (0, FIRST_DIGEST))[0] != version:
            yield f"{STUDIES.name}: version {version} is not that of the last event"


def _is_of(table: Table, study: int | None) -> ColumnElement[bool]:
    return true() if study is None else table.c.study == study


def _entries(connection: Connection, study: int | None) -> dict[tuple[object, object], list[Mapping[str, object]]]:
    """What the ledger has, by study and change."""
    found: dict[tuple[object, object], list[Mapping[str, object]]] = {}
    query = select(LEDGER).order_by(LEDGER.c.study, LEDGER.c.sequence, LEDGER.c.kind)
    for row in connection.execute(query.where(_is_of(LEDGER, study))).all():
        found.setdefault((row.study, row.sequence), []).append(row._mapping)  # type: ignore[arg-type]
    return found


def _write_digests(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    keys = [column.name for column in table.primary_key]
    own = [table.c[name] == bindparam(f"own_{name}") for name in keys]
    given = [{"digest": row["digest"], **{f"own_{name}": row[name] for name in keys}} for row in rows]
    if given:
        connection.execute(update(table).where(*own).values(digest=bindparam("digest")), given)


def _unreadable(table: Table, error: SQLAlchemyError) -> str:
    return f"{table.name} cannot be read ({' '.join(str(getattr(error, 'orig', error)).split())[:200]})"
