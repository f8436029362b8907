"""Connections to a record: one kind that writes and one that can only read, and errors in words.

SQLite is a file in WAL mode: readers see the last commit while a writer writes, and neither waits for the other. Every
writing transaction takes the write lock when it begins (elsewhere: the row of its study), so what it checked still
holds when it commits. A commit is on the disk before it returns.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from trimtuner.errors import InputError
from trimtuner.records.errors import RecordError
from trimtuner.records.migrations import migrate_one_step, refuse_newer, version_of

BUSY_SECONDS = 60.0  # how long to wait for another writer; one holds the lock for milliseconds

_ONLY_READING: Mapping[str, str | bool] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
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
_ELSE = ("could not be read or written", "see the cause above, then run again")


class Database:
    """One way into a record: its engine either writes or only reads."""

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._process = os.getpid()
        self.where = where

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: all of it happens, or nothing; any trouble of the database becomes a RecordError."""
        if os.getpid() != self._process:
            # SQLite's locks are not inherited by a fork, while its memory of holding them is: data could be lost.
            raise RecordError(f"{self.where} was opened before this process was forked; open it again in a fresh one")
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise _explained(error, self.where) from error

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def open_to_write(place: str | Path) -> tuple[Database, Database]:
    """A way to read and a way to write; the record is made, or brought up to date, if need be."""
    path, url = _parse(place)
    if path is not None:
        _refuse_unusable(path)
    writer = _server(url, {}) if path is None else _sqlite_writer(path)
    try:
        while _take_step(writer):
            pass
        return open_to_read(place), writer
    except BaseException:
        writer.close()
        raise


def open_to_read(place: str | Path) -> Database:
    """A way to read that leaves the record alone: no lock that a writer would wait for, nothing made or migrated."""
    path, url = _parse(place)
    if path is not None and not path.is_file():
        raise RecordError(f"there is no record at {path}; a study makes one when it runs with this storage")
    reader = _server(url, _ONLY_READING) if path is None else _sqlite_reader(path)
    try:
        with reader.transaction() as connection:
            if path is not None:
                _refuse_cut_short(connection, path)
            version = version_of(connection, reader.where)
            refuse_newer(version, reader.where)
            if version == 0:
                raise RecordError(f"{reader.where} is empty; a study fills it when it runs with this storage")
    except BaseException:
        reader.close()
        raise
    return reader


def _take_step(writer: Database) -> bool:
    with writer.transaction() as connection:
        return migrate_one_step(connection, writer.where)


def _parse(place: str | Path) -> tuple[Path | None, URL]:
    """A path of a SQLite file, or the address of a server."""
    if not isinstance(place, str | Path):
        raise InputError(f"storage={place!r} is neither a file nor the address of a database")
    if isinstance(place, Path) or "://" not in place:
        return _checked_path(str(place)), URL.create("sqlite")
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):
        raise InputError("storage= is no address of a database; give a file, or postgresql+psycopg://…") from None
    if url.get_backend_name() == "sqlite":
        return _checked_path(url.database or ""), url
    if url.get_backend_name() != "postgresql":
        raise InputError(f"studies are kept in SQLite or PostgreSQL, not in {url.get_backend_name()!r}")
    return None, url


def _checked_path(text: str) -> Path:
    if not text or "\0" in text or text == ":memory:":
        raise InputError(f"{text!r} is no name of a file; for a study in memory, leave storage=None")
    return Path(text).absolute()


def _server(url: URL, options: Mapping[str, str | bool]) -> Database:
    where = f"the record {url.render_as_string(hide_password=True)}"
    try:
        engine = create_engine(url, hide_parameters=True, pool_pre_ping=True, execution_options=dict(options))
    except (SQLAlchemyError, ImportError) as error:
        raise RecordError(f"{where} needs a driver that is not installed ({error}); install it") from error
    return Database(engine, where)


def _refuse_unusable(path: Path) -> None:
    """Whatever is there and is no record of ours is refused before anything could change it."""
    if not path.parent.is_dir():
        raise RecordError(f"the record {path} cannot be made: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise RecordError(f"the record {path} is a folder; give the name of a file in it")
    if not path.exists() or path.stat().st_size == 0:
        return
    with closing(_sqlite_reader(path)) as reader, reader.transaction() as connection:
        _refuse_cut_short(connection, path)
        refuse_newer(version_of(connection, reader.where), reader.where)
        verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if verdict != "ok":
        raise RecordError(f"the record {path} is damaged ({verdict}); {_RESTORE}")
    # SQLite would take a read-only file without a word, and refuse at the first trial.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise RecordError(f"the record {path} cannot be written; make it writable, or give another place")


def _refuse_cut_short(connection: Connection, path: Path) -> None:
    """SQLite itself notices missing pages, but reads the missing end of the last one as zeros."""
    pages, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size"))
    log = Path(f"{path}-wal")
    is_all_in_file = not log.exists() or log.stat().st_size == 0  # else the last pages may be in the log alone
    if is_all_in_file and path.stat().st_size < pages * size:
        raise RecordError(f"the record {path} is damaged: it was cut short; {_RESTORE}")


def _sqlite_writer(path: Path) -> Database:
    def connect() -> sqlite3.Connection:
        connection = _connect(f"{path.as_uri()}?mode=rwc")
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            _journal_ahead(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return Database(engine, f"the record {path}")


def _sqlite_reader(path: Path) -> Database:
    uri = f"{path.as_uri()}?mode=ro"
    # A reader needs a small file beside the record. Where none can be made and no writer has made one, nothing changes
    # the record either, and it can be read as it is; asked anew with every connection.
    is_still = _is_unreadable(uri) and not Path(f"{path}-wal").exists()
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(f"{uri}&immutable=1" if is_still else uri),
        poolclass=NullPool if is_still else QueuePool,
        hide_parameters=True,
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return Database(engine, f"the record {path}")


def _connect(uri: str) -> sqlite3.Connection:
    # No isolation level: the driver would begin transactions by itself, later than we need them.
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _is_unreadable(uri: str) -> bool:
    try:
        with closing(_connect(uri)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))
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


def _explained(error: SQLAlchemyError, where: str) -> RecordError:
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = cause.sqlite_errorname if isinstance(cause, sqlite3.Error) and hasattr(cause, "sqlite_errorname") else ""
    known = [text for start, text in _EXPLANATIONS.items() if name.startswith(start)]
    what, now = known[0] if known else _ELSE
    said = f" ({cause})" if cause is not None else ""
    return RecordError(f"{where} {what}{said}; {now}. What was recorded before is as it was")
