"""From any older version of the tables to the newest, one transaction a step.

A step is never edited once a version with it is out: what it says is what files out there have. It is written in the
SQL that SQLite and PostgreSQL share, as far as they do.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, inspect, select, update

from trimtuner.records.errors import RecordError
from trimtuner.records.schema import SCHEMA, SECRET_BYTES, STUDIES
from trimtuner.records.seals import seal_everything

Migration: TypeAlias = Callable[[Connection], None]


def make_first_tables(connection: Connection) -> None:
    """Version 1: studies, trials and their attempts, the ledger, and what happened."""
    for statement in _VERSION_1:
        connection.exec_driver_sql(statement)


def add_secrets_and_digests(connection: Connection) -> None:
    """Version 2: every study has a secret of its own, and every row a digest by which decay is found."""
    is_server = connection.dialect.name == "postgresql"
    for statement in (*_VERSION_2, *(_EVENTS_2_ON_SERVER if is_server else _EVENTS_2_IN_FILE)):
        connection.exec_driver_sql(statement)
    for study in list(connection.execute(select(STUDIES.c.study)).scalars()):
        own = update(STUDIES).where(STUDIES.c.study == study)
        connection.execute(own.values(secret=secrets.token_hex(SECRET_BYTES)))
    seal_everything(connection)


MIGRATIONS: tuple[Migration, ...] = (make_first_tables, add_secrets_and_digests)


def version_of(connection: Connection, where: str) -> int:
    """The version of the tables, 0 where there are none; an error for tables that are not ours, or newer ones."""
    tables = set(inspect(connection).get_table_names())
    if SCHEMA.name not in tables:
        if tables:
            listed = ", ".join(sorted(tables)[:3])
            raise RecordError(f"{where} is no record of studies (it has tables such as {listed}); give another place")
        return 0
    versions = list(connection.execute(select(SCHEMA.c.version)).scalars())
    if len(versions) != 1:
        raise RecordError(f"{where} does not say which version it is of; restore a copy of it")
    return int(versions[0])


def refuse_newer(version: int, where: str, newest: int = len(MIGRATIONS)) -> None:
    """An error for tables that a newer trimtuner made."""
    if version > newest:
        raise RecordError(
            f"{where} was written by a newer trimtuner (its tables are of version {version}, this one knows {newest}); "
            "update trimtuner, or give another place"
        )


def migrate_one_step(connection: Connection, where: str, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Whether a step was left to take, and is now taken, in the caller's transaction."""
    version = version_of(connection, where)
    refuse_newer(version, where, len(migrations))
    if version == len(migrations):
        return False
    migrations[version](connection)
    connection.execute(update(SCHEMA).values(version=version + 1))
    return True


_VERSION_1 = (
    "CREATE TABLE trimtuner_schema (version INTEGER NOT NULL)",
    "INSERT INTO trimtuner_schema (version) VALUES (0)",
    """CREATE TABLE studies (
        study INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        budget BIGINT,
        created_at DOUBLE PRECISION NOT NULL,
        version BIGINT NOT NULL
    )""",
    """CREATE TABLE owners (
        study INTEGER NOT NULL REFERENCES studies (study),
        id TEXT NOT NULL,
        host TEXT NOT NULL,
        pid BIGINT NOT NULL,
        pid_started TEXT NOT NULL,
        heartbeat_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (study, id)
    )""",
    """CREATE TABLE trials (
        study INTEGER NOT NULL REFERENCES studies (study),
        number INTEGER NOT NULL,
        config TEXT NOT NULL,
        config_key TEXT NOT NULL,
        fraction DOUBLE PRECISION NOT NULL,
        snapshots TEXT NOT NULL,
        origin TEXT NOT NULL,
        recommended TEXT,
        asked BIGINT NOT NULL,
        owner TEXT,
        attempt INTEGER NOT NULL,
        told BIGINT,
        failed TEXT,
        cost DOUBLE PRECISION,
        time DOUBLE PRECISION,
        measurements TEXT,
        PRIMARY KEY (study, number),
        FOREIGN KEY (study, owner) REFERENCES owners (study, id)
    )""",
    "CREATE UNIQUE INDEX trials_told ON trials (study, told)",
    """CREATE TABLE attempts (
        study INTEGER NOT NULL,
        trial INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        reserve BIGINT NOT NULL CHECK (reserve >= 0),
        asked_at DOUBLE PRECISION NOT NULL,
        handle TEXT,
        started_at DOUBLE PRECISION,
        ended_at DOUBLE PRECISION,
        failed TEXT,
        seconds DOUBLE PRECISION,
        charge BIGINT CHECK (charge >= 0),
        PRIMARY KEY (study, trial, attempt),
        FOREIGN KEY (study, trial) REFERENCES trials (study, number)
    )""",
    """CREATE TABLE places (
        study INTEGER NOT NULL,
        config_key TEXT NOT NULL,
        fraction DOUBLE PRECISION NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'tested')),
        trial INTEGER NOT NULL,
        PRIMARY KEY (study, config_key, fraction, state),
        FOREIGN KEY (study, trial) REFERENCES trials (study, number)
    )""",
    "CREATE INDEX places_of_trial ON places (study, trial)",
    """CREATE TABLE ledger (
        study INTEGER NOT NULL,
        sequence BIGINT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('charge', 'release', 'reserve')),
        at DOUBLE PRECISION NOT NULL,
        trial INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        nanos BIGINT NOT NULL CHECK (nanos >= 0),
        PRIMARY KEY (study, sequence, kind),
        FOREIGN KEY (study, trial, attempt) REFERENCES attempts (study, trial, attempt)
    )""",
    """CREATE TABLE events (
        study INTEGER NOT NULL REFERENCES studies (study),
        sequence BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        kind TEXT NOT NULL,
        trial INTEGER,
        detail TEXT NOT NULL,
        PRIMARY KEY (study, sequence)
    )""",
)

_VERSION_2 = (
    "ALTER TABLE studies ADD COLUMN secret TEXT NOT NULL DEFAULT ''",
    *(
        f"ALTER TABLE {table} ADD COLUMN digest TEXT NOT NULL DEFAULT ''"
        for table in ("studies", "owners", "trials", "attempts", "places")
    ),
)
# Without a default: an older trimtuner that is still at work can change no more, rather than leave no digest.
_EVENTS_2_ON_SERVER = (  # where a new table would have lost what was granted on it
    "ALTER TABLE events ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE events ALTER COLUMN digest DROP DEFAULT",
)
_EVENTS_2_IN_FILE = (  # SQLite cannot take a default back
    """CREATE TABLE events_with_digests (
        study INTEGER NOT NULL REFERENCES studies (study),
        sequence BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        kind TEXT NOT NULL,
        trial INTEGER,
        detail TEXT NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (study, sequence)
    )""",
    "INSERT INTO events_with_digests SELECT study, sequence, at, kind, trial, detail, '' FROM events",
    "DROP TABLE events",
    "ALTER TABLE events_with_digests RENAME TO events",
)
