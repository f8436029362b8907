"""One way into a record, in transactions: all of one happens, or nothing, and any trouble is told in words."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TypeAlias

from sqlalchemy import Connection, Engine, Pool
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from trimtuner.records.errors import DamagedRecord, RecordError
from trimtuner.records.seals import refuse_damaged
from trimtuner.records.sidecar import Sidecar, Written

BUSY_SECONDS = 60.0  # how long to wait for another writer; one holds the lock for milliseconds

Explain: TypeAlias = Callable[[DBAPIError], tuple[str, str]]  # what happened, what now

_ELSE = ("could not be read or written", "see the cause above, then run again")
_AS_IT_WAS = "What was recorded before is as it was"
_NOT_KNOWN = "Whether the last change was recorded is not known: what was recorded before it is as it was"
_PAUSE_SECONDS = 0.25


class Database:
    """One way into a record: its engine either writes or only reads."""

    def __init__(
        self,
        engine: Engine,
        where: str,
        explain: Explain,
        patience_seconds: float = 0.0,
        *,
        require_there: Callable[[], None] = lambda: None,
        sidecar: Sidecar | None = None,
    ) -> None:
        self._engine = engine
        self._explain = explain
        self._patience_seconds = patience_seconds
        self._process = os.getpid()
        self.where = where
        self.require_there = require_there  # an error where the file is no longer the one that was opened
        self._sidecar = sidecar
        self._last_user = _LastUser()
        # A study is rarely closed. Not when the engine is gone: its pool holds it, as this holds the pool.
        weakref.finalize(self._last_user, _let_go, engine.pool, self._process)

    def but_patient(self, seconds: float) -> Database:
        """The same, for one that was reached before: a server that restarts is waited for."""
        patient = copy(self)
        patient._patience_seconds = seconds
        return patient

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: all of it happens, or nothing; any trouble of the database becomes a RecordError."""
        if os.getpid() != self._process:
            # SQLite's locks are not inherited by a fork, while its memory of holding them is: data could be lost.
            raise RecordError(f"{self.where} was opened before this process was forked; open it again in a fresh one")
        self.require_there()
        was_all_said = False
        try:
            with self._connect() as connection, connection.begin():
                yield connection
                was_all_said = True
        except SQLAlchemyError as error:
            # Never tried again here: a commit whose answer was lost may have happened.
            raise self._explained(error, _NOT_KNOWN if was_all_said and _is_cut_off(error) else _AS_IT_WAS) from error
        except UnicodeDecodeError as error:  # of the driver, where a name in the file is no text any more
            raise DamagedRecord(self.where, [f"it holds what is no text: {error}"]) from error

    @property
    def is_file(self) -> bool:
        """Whether it is a file rather than a server."""
        return self._engine.dialect.name == "sqlite"

    def keep(self, connection: Connection, written: Written) -> None:
        """Write what a change wrote into the ledger beside the record, at the end of its transaction."""
        if self._sidecar is not None:
            self.require_there()
            self._sidecar.add(connection, written)

    def settle_sidecar(self) -> None:
        """Make the ledger beside the record fit it; nothing of a damaged one gets there."""
        if self._sidecar is not None:
            with self.transaction() as connection:
                refuse_damaged(connection, self.where, None)
                self._sidecar.settle(connection)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def _connect(self) -> Connection:
        """Nothing was asked of it yet, so a connection may be tried again."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                return self._engine.connect()
            except OperationalError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _explained(self, error: SQLAlchemyError, state: str) -> RecordError:
        if not isinstance(error, DBAPIError):
            what, now = _ELSE
            return RecordError(f"{self.where} {what} ({type(error).__name__}); {now}. {state}")
        what, now = self._explain(error)
        return RecordError(f"{self.where} {what} ({' '.join(str(error.orig).split())}); {now}. {state}")


class _LastUser:
    """What all that share an engine have in common; gone with the last of them."""


def _let_go(pool: Pool, process: int) -> None:
    if os.getpid() == process:  # a forked process would end its parent's connections
        pool.dispose()


def _is_cut_off(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated
