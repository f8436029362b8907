"""PostgreSQL: a server that many machines share.

Readers see one snapshot and wait for nobody. A writing transaction locks the row of its study and reads what was
committed by then, so what it checked still holds when it commits. All times are of the server's clock: those of the
machines that share it need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from trimtuner.records.addresses import Address
from trimtuner.records.database import ANYTHING_ELSE, BUSY_SECONDS, Database
from trimtuner.records.errors import RecordError

_RESTART_SECONDS = 60.0  # how long a server that was reached before is waited for

_ONLY_READING: Mapping[str, str | bool] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_WRITING: Mapping[str, str | bool] = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}
_UNLESS_GIVEN: Mapping[str, str | int] = {  # libpq's own would wait for hours for a machine that is gone
    "application_name": "trimtuner",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# One who stops in the middle of a change must not stop the others; and a commit is on the disk before it returns.
_SETTINGS = (
    f"SET lock_timeout = '{BUSY_SECONDS:.0f}s'",
    f"SET idle_in_transaction_session_timeout = '{BUSY_SECONDS:.0f}s'",
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
)
_GRANT = "ask the owner of the database for the permission, or give another user or place"
_GO_ON = "run again when it is back: a run goes on from what was recorded"
_EXPLANATIONS = {  # by how the server's code of the error begins: what happened, what now
    "28": ("refuses this user or password", "set PGPASSWORD, or write the password in ~/.pgpass"),
    "3D000": ("does not exist", "make the database first, such as with createdb, or give another place"),
    "42501": ("may not be used so by this user", _GRANT),
    "25006": ("is a copy that can only be read", "give the address of the server that it is copied from"),
    "55P03": (f"was locked for {BUSY_SECONDS:g} s by another process", "end what holds it, then run again"),
    "25P03": (f"was held for more than {BUSY_SECONDS:g} s by this process, which stood still", "run again"),
    "40": ("was changed by others in the same instant", "run again"),
    "53100": ("could not be written: the server's disk is full", "free some space there, then run again"),
    "53300": ("has too many connections", "end some, or raise max_connections, then run again"),
    "22": ("cannot hold this text", "make the database with the encoding UTF8, or give another place"),
    "42P01": ("lacks a table", "restore a copy of it, or give another place"),
    "42703": ("lacks a column", "restore a copy of it, or give another place"),
    "57014": ("takes longer than the server allows", "raise statement_timeout for this user, then run again"),
    "57": ("was shut down, or ended our connection", _GO_ON),
    "08": ("lost our connection", _GO_ON),
}
_REFUSALS = {  # by what the server says before there is a connection: it gives no code then
    "too many": "53300",
    "connection slots": "53300",
    "password": "28",
    "pg_hba.conf": "28",
    'role "': "28",
    'database "': "3D000",
}
_UNREACHED = ("cannot be reached", "check that the server runs and that host and port are right, then run again")


def server_writer(address: Address) -> Database:
    """A way to change what is there."""
    engine = _engine(address, _WRITING)
    event.listen(engine, "connect", _settle)
    return _database(address, engine)


def server_reader(address: Address) -> Database:
    """A way to read that can change nothing."""
    return _database(address, _engine(address, _ONLY_READING))


def _database(address: Address, engine: Engine) -> Database:
    return Database(engine, f"the record {address}", _explain, patience_seconds=_RESTART_SECONDS)


def _engine(address: Address, options: Mapping[str, str | bool]) -> Engine:
    given = {name: value for name, value in _UNLESS_GIVEN.items() if name not in address.url.query}
    try:
        return create_engine(
            address.url,
            connect_args={**given, **address.secrets, "client_encoding": "utf8"},
            execution_options=dict(options),
            hide_parameters=True,
            pool_pre_ping=True,
            use_native_hstore=False,
        )
    except ImportError:
        raise RecordError(
            f"the record {address} needs psycopg, which is not installed; install it with: "
            "pip install 'trimtuner[postgres]'"
        ) from None
    except SQLAlchemyError as error:
        raise RecordError(f"the record {address} cannot be opened ({error}); check its address") from None


def _settle(connection: DBAPIConnection, _: object) -> None:
    cursor = connection.cursor()
    for statement in _SETTINGS:
        cursor.execute(statement)
    cursor.close()
    connection.commit()


def _explain(error: DBAPIError) -> tuple[str, str]:
    code = getattr(error.orig, "sqlstate", None) or ""
    if code:
        return next((text for start, text in _EXPLANATIONS.items() if code.startswith(start)), ANYTHING_ELSE)
    if error.connection_invalidated:
        return _EXPLANATIONS["08"]
    said = str(error.orig)
    refused = [_EXPLANATIONS[code] for words, code in _REFUSALS.items() if words in said]
    return refused[0] if refused else _UNREACHED
