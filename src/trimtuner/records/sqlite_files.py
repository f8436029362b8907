"""SQLite: a file in WAL mode, in which readers see the last commit while a writer writes, and neither waits.

Every writing transaction takes the write lock when it begins, so what it checked still holds when it commits. A commit
is on the disk before it returns.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, NullPool, Pool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError

from trimtuner.records.database import ANYTHING_ELSE, BUSY_SECONDS, Database
from trimtuner.records.errors import DamagedRecord, RecordError, RecordGone
from trimtuner.records.migrations import refuse_newer, version_of
from trimtuner.records.sidecar import Sidecar

_RESTORE = "restore a copy of it, with its -wal file if there is one"
_EXPLANATIONS = {  # by how SQLite's name of the error begins: what happened, what now
    "SQLITE_FULL": ("could not be written: the disk is full", "free some space, then run again"),
    "SQLITE_READONLY": ("cannot be written", "make the file and its folder writable, or give another place"),
    "SQLITE_CANTOPEN": ("cannot be opened", "check that its folder exists and may be read and written"),
    "SQLITE_NOTADB": ("is no record of studies, nor a database at all", "give another place"),
    "SQLITE_CORRUPT": ("is damaged or cut short", _RESTORE),
    "SQLITE_BUSY": (f"was locked for {BUSY_SECONDS:g} s by another process", "end what holds it, then run again"),
    "SQLITE_IOERR": ("could not be read or written", "check the disk, its free space and quota, then run again"),
}


def refuse_unusable(path: Path) -> None:
    """Whatever is there and is no record of ours is refused before anything could change it."""
    if not path.parent.is_dir():
        raise RecordError(f"the record {path} cannot be made: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise RecordError(f"the record {path} is a folder; give the name of a file in it")
    if not path.exists() or path.stat().st_size == 0:
        refuse_lost(path)
        return
    with closing(file_reader(path)) as reader, reader.transaction() as connection:
        refuse_cut_short(connection, path)
        refuse_newer(version_of(connection, reader.where), reader.where)
        refuse_broken(connection, reader.where)
    # SQLite would take a read-only file without a word, and refuse at the first trial.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise RecordError(f"the record {path} cannot be written; make it writable, or give another place")


def refuse_lost(path: Path) -> None:
    """Where there is no record but its ledger, something was spent: nobody begins anew with a fresh budget unasked."""
    sidecar = Sidecar(path)
    if sidecar.has_trials():
        raise RecordGone(
            f"the record {path} is gone, but the ledger {sidecar.path} is there ({sidecar.told()}); put the record "
            "back, or rebuild it with 'trimtuner restore JOB'; to begin anew, with a fresh budget, move the ledger away"
        )


def refuse_broken(connection: Connection, where: str) -> None:
    """SQLite's own check of the whole file, indices too: 35 ms where there are 5,000 trials."""
    verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if verdict != "ok":
        raise DamagedRecord(where, [f"SQLite says: {' '.join(str(verdict).split())}"])


def refuse_cut_short(connection: Connection, path: Path) -> None:
    """SQLite itself notices missing pages, but reads the missing end of the last one as zeros."""
    pages, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size"))
    log = Path(f"{path}-wal")
    is_all_in_file = not log.exists() or log.stat().st_size == 0  # else the last pages may be in the log alone
    if is_all_in_file and path.stat().st_size < pages * size:
        raise RecordError(f"the record {path} is damaged: it was cut short; {_RESTORE}")


def file_writer(path: Path) -> Database:
    """A way to change what is there; the file is made if need be."""

    def connect() -> sqlite3.Connection:
        _make_private(path)
        connection = _connect(f"{path.as_uri()}?mode=rwc")
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            _journal_ahead(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    return _database(path, connect, QueuePool, "BEGIN IMMEDIATE")


def file_reader(path: Path) -> Database:
    """A way to read that can change nothing."""
    uri = f"{path.as_uri()}?mode=ro"
    # A reader needs a small file beside the record. Where none can be made and no writer has made one, nothing changes
    # the record either, and it can be read as it is; asked anew with every connection.
    is_still = _is_unreadable(uri) and not Path(f"{path}-wal").exists()
    address = f"{uri}&immutable=1" if is_still else uri
    return _database(path, lambda: _connect(address), NullPool if is_still else QueuePool, "BEGIN")


def _database(path: Path, connect: Callable[[], sqlite3.Connection], pool: type[Pool], begin: str) -> Database:
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, hide_parameters=True)
    return Database(engine, f"the record {path}", _explain, begin=begin, sidecar=Sidecar(path))


def _connect(uri: str) -> sqlite3.Connection:
    # No isolation level: the driver would begin transactions by itself, later than we need them.
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _make_private(path: Path) -> None:
    """Make the file for its user alone, as SQLite then makes the files beside it; one that is there stays as it is."""
    with suppress(OSError):  # it is there, or SQLite says in a moment why it cannot be
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _is_unreadable(uri: str) -> bool:
    try:
        with closing(_connect(uri)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))
    except UnicodeDecodeError:
        return False  # it can be read, and is damaged
    return False


def _journal_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """WAL mode; a change of mode does not wait for other connections by itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise RecordError(f"the record {path} is on a file system without shared memory; keep it on a local disk")
        return


def _explain(error: DBAPIError) -> tuple[str, str]:
    name = getattr(error.orig, "sqlite_errorname", "")  # an error of the driver's own, as of a text, has no name
    return next((text for start, text in _EXPLANATIONS.items() if name.startswith(start)), ANYTHING_ELSE)
