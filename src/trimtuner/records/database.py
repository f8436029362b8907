"""One way into a record, in transactions: all of one happens, or nothing, and any trouble is told in words."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, Double, Engine, Pool, cast, extract, func, literal, select
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from trimtuner.records.errors import DamagedRecord, RecordError, RecordGone
from trimtuner.records.sidecar import Sidecar, Written

BUSY_SECONDS = 60.0  # how long to wait for another writer; one holds the lock for milliseconds

Explain: TypeAlias = Callable[[DBAPIError], tuple[str, str]]  # what happened, what now

ANYTHING_ELSE = ("could not be read or written", "see the cause above, then run again")
_AS_IT_WAS = "What was recorded before is as it was"
_NOT_KNOWN = "Whether the last change was recorded is not known: what was recorded before it is as it was"
_PAUSE_SECONDS = 0.25
_MAKING = 7236583  # the advisory lock of whoever makes tables or studies; any number, the same in every version


class Database:
    """One way into a record: its engine either writes or only reads. A file has a ledger beside it, a server none."""

    def __init__(
        self,
        engine: Engine,
        where: str,
        explain: Explain,
        *,
        begin: str | None = None,
        sidecar: Sidecar | None = None,
        patience_seconds: float = 0.0,
    ) -> None:
        self._engine = engine
        self._explain = explain
        self._begin = begin  # the statement, where the driver does not begin a transaction in time
        self._patience_seconds = patience_seconds  # with one that was reached before: a server that restarts
        self._was_reached = False
        self._process = os.getpid()
        self.where = where
        self.sidecar = sidecar
        self._opened: tuple[int, int] | None = None  # which file it was, when it was first reached
        # A study is rarely closed. Not when the engine is gone: its pool holds it, as this holds the pool.
        weakref.finalize(self, _let_go, engine.pool, self._process)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: all of it happens, or nothing; any trouble of the database becomes a RecordError."""
        if os.getpid() != self._process:
            # SQLite's locks are not inherited by a fork, while its memory of holding them is: data could be lost.
            raise RecordError(f"{self.where} was opened before this process was forked; open it again in a fresh one")
        self.require_there()
        was_all_said, handled = False, _interruption_behind(sys.exception())
        try:
            with self._connect() as connection, connection.begin():
                self._opened = self._opened or self._file()
                self.require_there()  # one that was gone by then was made anew
                if self._begin is not None:
                    connection.exec_driver_sql(self._begin)
                yield connection
                was_all_said = True
        except SQLAlchemyError as error:
            interruption = _interruption_behind(error)
            if interruption is not None and interruption is not handled:
                raise interruption from None
            # Never tried again here: a commit whose answer was lost may have happened.
            raise self._explained(error, _NOT_KNOWN if was_all_said and _is_cut_off(error) else _AS_IT_WAS) from error
        except UnicodeDecodeError as error:  # of the driver, where a name in the file is no text any more
            raise DamagedRecord(self.where, [f"it holds what is no text: {error}"]) from error

    def require_there(self) -> None:
        """An error where the file is no longer the one that was opened: SQLite would go on in one without a name."""
        if self.sidecar is not None and self._opened is not None and self._file() != self._opened:
            raise RecordGone(
                f"the record {self.sidecar.record} was moved, deleted or replaced while it was in use, and nothing "
                f"more is written. What was spent is in {self.sidecar.path} ({self.sidecar.told()}); put the record "
                "back, or rebuild it with 'trimtuner restore JOB', then run again"
            )

    def keep(self, connection: Connection, written: Written) -> None:
        """Write what a change wrote into the ledger beside the record, at the end of its transaction."""
        if self.sidecar is not None:
            self.require_there()
            self.sidecar.add(connection, written)

    def close(self) -> None:
        """Give all connections back; what is asked next makes new ones."""
        self._engine.dispose()

    def _file(self) -> tuple[int, int] | None:
        """Which file is there now, whatever its name."""
        try:
            found = None if self.sidecar is None else self.sidecar.record.stat()
        except FileNotFoundError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    def _connect(self) -> Connection:
        """Nothing was asked of it yet, so a connection may be tried again."""
        deadline = time.monotonic() + (self._patience_seconds if self._was_reached else 0.0)
        while True:
            try:
                connection = self._engine.connect()
            except OperationalError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                self._was_reached = True
                return connection

    def _explained(self, error: SQLAlchemyError, state: str) -> RecordError:
        (what, now), cause = ANYTHING_ELSE, type(error).__name__
        if isinstance(error, DBAPIError):
            (what, now), cause = self._explain(error), " ".join(str(error.orig).split())
        return RecordError(f"{self.where} {what} ({cause}); {now}. {state}")


def clock(connection: Connection) -> ColumnElement[float]:
    """The time now by the one clock that everybody who shares the record goes by: the server's, or this machine's."""
    if connection.dialect.name == "postgresql":
        return cast(extract("epoch", func.clock_timestamp()), Double)
    return literal(_began_to_count() + _seconds_since_boot(), Double)


def take_turn(connection: Connection) -> None:
    """Nobody else makes tables or studies until the transaction ends; SQLite has locked the whole file already."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_MAKING)))


@cache
def _began_to_count() -> float:
    """When the machine was started, by its clock as it was when we first asked.

    A clock that is set later does not move the times that this process writes: one that is set back between the start
    of a trial and a heartbeat would make its watch, and so what it is charged for, shorter.
    """
    return time.time() - _seconds_since_boot()


def _seconds_since_boot() -> float:
    """Also while the machine slept, where it can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def _let_go(pool: Pool, process: int) -> None:
    if os.getpid() == process:  # a forked process would end its parent's connections
        pool.dispose()


def _interruption_behind(error: BaseException | None) -> BaseException | None:
    """The Ctrl-C in the middle of a statement, where the driver, on its way out of it, raised an error in its place."""
    behind = error
    while isinstance(behind, Exception):
        behind = behind.__cause__ or behind.__context__
    return behind


def _is_cut_off(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated
