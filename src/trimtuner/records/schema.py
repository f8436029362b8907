"""The tables of a record as they are now, to be queried; how they are made of older ones is in ``migrations``.

Times are seconds since 1970 (UTC), money is in billionths of a dollar, and ``sequence`` counts the changes of a study.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Table, Text, select

METADATA = MetaData()
SECRET_BYTES = 32
_NOT_SHOWN = ("secret", "digest")


def _of_study(name: str, *columns: Column[object]) -> Table:
    """A table whose rows belong to studies."""
    return Table(name, METADATA, Column("study", Integer, primary_key=True), *columns)


SCHEMA = Table("trimtuner_schema", METADATA, Column("version", Integer, nullable=False))

STUDIES = Table(
    "studies",
    METADATA,
    Column("study", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    Column("budget", BigInteger),
    Column("created_at", Double, nullable=False),
    Column("version", BigInteger, nullable=False),  # the sequence of its last event
    Column("secret", Text, nullable=False),  # 32 random bytes as hex, never shown: what only the study's own may know
    Column("digest", Text, nullable=False),  # of the row as it was written; of an event, of all before it too
)

OWNERS = _of_study(
    "owners",
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("pid_started", Text, nullable=False),
    Column("heartbeat_at", Double, nullable=False),
    Column("digest", Text, nullable=False),
)

TRIALS = _of_study(
    "trials",
    Column("number", Integer, primary_key=True),
    Column("config", Text, nullable=False),
    Column("config_key", Text, nullable=False),
    Column("fraction", Double, nullable=False),
    Column("snapshots", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("recommended", Text),
    Column("asked", BigInteger, nullable=False),  # the sequence at which it was asked
    Column("owner", Text),  # nobody's, where it was measured elsewhere
    Column("attempt", Integer, nullable=False),  # the last one
    Column("told", BigInteger),  # the sequence at which it was told; open until then
    Column("failed", Text),
    Column("cost", Double),
    Column("time", Double),
    Column("measurements", Text),
    Column("digest", Text, nullable=False),
)

ATTEMPTS = _of_study(
    "attempts",
    Column("trial", Integer, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("reserve", BigInteger, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("handle", Text),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("failed", Text),
    Column("seconds", Double),
    Column("charge", BigInteger),
    Column("digest", Text, nullable=False),
)

PLACES = _of_study(
    "places",
    Column("config_key", Text, primary_key=True),
    Column("fraction", Double, primary_key=True),
    Column("state", Text, primary_key=True),  # open or tested
    Column("trial", Integer, nullable=False),
    Column("digest", Text, nullable=False),
)

LEDGER = _of_study(
    "ledger",
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text, primary_key=True),  # charge, release or reserve: one of each in a change
    Column("at", Double, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("nanos", BigInteger, nullable=False),
)

EVENTS = _of_study(
    "events",
    Column("sequence", BigInteger, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("trial", Integer),
    Column("detail", Text, nullable=False),
    Column("digest", Text, nullable=False),
)

# What anybody may see of each table, and older ones have too.
SHOWN = {
    table: select(table).with_only_columns(*(column for column in table.c if column.name not in _NOT_SHOWN))
    for table in METADATA.tables.values()
}
