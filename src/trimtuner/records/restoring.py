"""A record looked at as a whole, and one that was lost rebuilt from the ledger beside it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, func, insert, select, text

from trimtuner.errors import TrimTunerError
from trimtuner.records.addresses import Place, place_of
from trimtuner.records.change import SEALED, Change, row_digest
from trimtuner.records.codec import configuration_key
from trimtuner.records.database import Database
from trimtuner.records.errors import RecordError
from trimtuner.records.migrations import migrate_one_step
from trimtuner.records.money import Ledger
from trimtuner.records.schema import EVENTS, LEDGER, SECRET_BYTES, SHOWN, STUDIES
from trimtuner.records.seals import faults, has_seals
from trimtuner.records.sidecar import COPIED, Image, Sidecar, Written
from trimtuner.records.sqlite_files import file_writer
from trimtuner.records.store import open_to_read
from trimtuner.records.view import StudyView

_RESTORED = "restored"  # the event that says so


@dataclass(frozen=True)
class Soundness:
    """What was looked at, and what is not as it was written."""

    looked_at: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing wrong was found."""
        return not self.faults


def soundness_of(place: Place) -> Soundness:
    """Everything that can be checked: the database by its own means, every digest, and the ledger beside a file."""
    found = place_of(place)
    if isinstance(found, Path) and not found.exists():
        open_to_read(found).close()  # which says what is missing, and what now
    looked: list[str] = []
    faulty: list[str] = []
    try:
        with closing(open_to_read(found)) as reader, reader.transaction() as connection:
            for what, wrong in _looks(reader, connection):
                looked.append(what)
                faulty += wrong
    except TrimTunerError as error:
        faulty.append(str(error))
    if isinstance(found, Path) and Sidecar(found).path.exists():
        what, wrong = _look_at_sidecar(Sidecar(found))
        looked.append(what)
        faulty += wrong
    return Soundness(tuple(looked), tuple(faulty))


def restore(path: Path) -> str:
    """Rebuild a record from the ledger beside it, never over one that is there; what it holds, for a person."""
    sidecar, rebuilt = Sidecar(path), path.with_name(f"{path.name}.rebuilt-{os.getpid()}")
    if path.exists():
        raise RecordError(
            f"there is a record {path}; to rebuild it, move it away first, with its -wal and -shm files if it has any"
        )
    changes = sidecar.changes()
    if not changes:
        raise RecordError(f"there is no ledger {sidecar.path} to rebuild the record {path} from; restore a copy of it")
    try:
        with closing(file_writer(rebuilt)) as writer:
            _fill(writer, list(changes.values()))
        rebuilt.chmod(0o600)
        _put_log_aside(path)
        os.link(rebuilt, path)  # which fails where somebody made one meanwhile
    finally:
        for end in ("", "-wal", "-shm", ".ledger"):
            rebuilt.with_name(rebuilt.name + end).unlink(missing_ok=True)
    return sidecar.told()


def _put_log_aside(path: Path) -> None:
    """SQLite would take the log of the lost file for one of the new file, and write its pages into it."""
    for end in ("-wal", "-shm"):
        left = path.with_name(path.name + end)
        if left.exists():
            left.rename(left.with_name(f"{left.name}.of-lost-record"))


def _looks(reader: Database, connection: Connection) -> Iterator[tuple[str, list[str]]]:
    if reader.sidecar is not None:
        said = list(connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars())
        yield "SQLite's own check of the file", [] if said == ["ok"] else [f"SQLite says: {one}" for one in said]
    else:
        is_on = connection.execute(text("SHOW data_checksums")).scalar_one() == "on"
        yield f"PostgreSQL's checksums of its pages are {'on' if is_on else 'off'}", []
    if has_seals(connection):
        counts = (select(func.count()).select_from(table) for table in (*SEALED, LEDGER, EVENTS))
        rows = sum(connection.execute(count).scalar_one() for count in counts)
        yield f"the digests of {rows} rows", list(faults(connection, None))
    else:
        yield "an older trimtuner wrote this record, without digests; the next run adds them", []


def _look_at_sidecar(sidecar: Sidecar) -> tuple[str, list[str]]:
    try:
        lines = sum(len(changes) for changes in sidecar.changes().values())
    except RecordError as error:
        return f"the ledger {sidecar.path}", [str(error)]
    return f"the ledger {sidecar.path}, {lines} lines", []


def _fill(writer: Database, studies: Sequence[Sequence[Written]]) -> None:
    with writer.transaction() as connection:
        while migrate_one_step(connection, writer.where):
            pass
        rows = [_rows(changes) for changes in studies]
        for table in COPIED:
            found = [row for one in rows for row in one[table].values()]
            if found:
                connection.execute(insert(table), found)
    for study in [next(iter(one[STUDIES].values()))["study"] for one in rows]:
        with writer.transaction() as connection:
            row = connection.execute(SHOWN[STUDIES].where(STUDIES.c.study == study)).one()
        history = StudyView(writer, row).history()
        with writer.transaction() as connection:
            change = Change(connection, row.study, Ledger(row.study))
            for outcome in history.outcomes:
                change.settle_places(outcome)
            for trial in history.pending:
                change.take_places(trial, configuration_key(trial.config))
            change.log(_RESTORED, None, {"version": row.version})
            change.seal()
            wrong = next(faults(connection, None), None)
            if wrong is not None:
                raise RecordError(
                    f"the ledger does not add up to a sound record ({wrong}); restore a copy of the record"
                )


def _rows(changes: Sequence[Written]) -> dict[Table, dict[tuple[object, ...], Image]]:
    """The rows of a study as its last change left them."""
    rows: dict[Table, dict[tuple[object, ...], Image]] = {table: {} for table in COPIED}
    for written in changes:
        for table in COPIED:
            keys = [column.name for column in table.primary_key]
            for row in written.rows.get(table.name, ()):
                rows[table][tuple(row[key] for key in keys)] = row
    for row in rows[STUDIES].values():
        row |= {"secret": secrets.token_hex(SECRET_BYTES), "version": changes[-1].sequence}
        row["digest"] = row_digest(STUDIES, row)
    return rows
