"""Decay in a record: whatever flipped bit changes what can be read is found, and nobody goes on with it."""

import random
import shutil
import sqlite3
import struct
from contextlib import closing, suppress

import pytest
from record_fakes import DEFINITION, check_everything, close_all, open_records, varied
from test_files import VERSION_1

from trimtuner.records import DamagedRecord, RecordError, Records, RecordsView
from trimtuner.records.restoring import soundness_of
from trimtuner.records.schema import METADATA

CHANGING = {("owners", "heartbeat_at")}
COLUMNS = [
    (table.name, column.name)
    for table in METADATA.sorted_tables
    for column in table.c
    if (table.name, column.name) not in CHANGING
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "record.db"
    varied(path)
    close_all()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("VACUUM")  # what is left of former rows matters to nobody
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def copy(sound, tmp_path):
    shutil.copy(sound, tmp_path / "record.db")
    return tmp_path / "record.db"


def test_what_was_written_is_sound_in_either_store(place):
    varied(place)
    close_all()
    assert soundness_of(place).faults == ()
    check_everything(place)


def require_found(path):
    assert not soundness_of(path).is_sound
    for way in (lambda: Records(path).open("study"), lambda: RecordsView(path).open("study")):
        with pytest.raises(RecordError):
            way()
    with pytest.raises(RecordError):
        Records(path).create_or_open("study", DEFINITION, 12.0)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_flipped_bit_of_any_value_is_found(copy, table, column):
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        query = f"SELECT rowid, {column} FROM {table} ORDER BY {column} IS NULL"  # noqa: S608  (our own names)
        row, value = connection.execute(query).fetchone()
        update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608  (our own names)
        connection.execute(update, [flipped(value), row])
    require_found(copy)


def flipped(value):
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
    if isinstance(value, float):
        return struct.unpack(">d", (int.from_bytes(struct.pack(">d", value)) ^ 1).to_bytes(8))[0]
    return 1 if value is None else value ^ 64


@pytest.mark.parametrize("table", ["trials", "attempts", "ledger", "events", "places"])
def test_the_fault_names_the_table_and_says_what_now(copy, table):
    column = {"trials": "cost", "attempts": "charge", "ledger": "nanos", "events": "at", "places": "trial"}[table]
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        update = f"UPDATE {table} SET {column} = {column} + 1 WHERE {column} IS NOT NULL"  # noqa: S608  (our own names)
        connection.execute(update)
    with pytest.raises(DamagedRecord, match=r"trimtuner verify JOB.*trimtuner restore JOB") as caught:
        RecordsView(copy).open("study")
    assert {"ledger": "money that moved"}.get(table, table) in str(caught.value)


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_of_the_file_that_changes_what_is_read_is_found(sound, tmp_path, seed):
    """The judge is SQLite alone: all rows, as they are read before and after the flip."""
    draw = random.Random(seed)  # noqa: S311  (nothing secret)
    path, whole, before = tmp_path / "record.db", sound.read_bytes(), readable(sound)
    changed = 0
    while changed < 8:
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        if readable(path) == before:
            continue
        changed += 1
        assert not soundness_of(path).is_sound
        with pytest.raises(RecordError):
            RecordsView(path).open("study")
        with pytest.raises(RecordError):
            Records(path).open("study")
        for end in ("-wal", "-shm", ".ledger"):
            path.with_name(path.name + end).unlink(missing_ok=True)


def readable(path):
    """All rows, but for heartbeats; None where SQLite itself cannot read them."""
    found = {}
    with (
        suppress(sqlite3.Error, UnicodeDecodeError),
        closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection,
    ):
        for table in METADATA.sorted_tables:
            names = [column.name for column in table.c if (table.name, column.name) not in CHANGING]
            query = f"SELECT {', '.join(names)} FROM {table.name} NOT INDEXED"  # noqa: S608  (our own names)
            found[table.name] = connection.execute(query).fetchall()
        return found
    return None


def test_a_row_that_is_gone_is_missed(copy):
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("DELETE FROM ledger WHERE kind = 'charge'")
    require_found(copy)


def test_a_server_is_checked_too(postgres_server, postgres_address):
    varied(postgres_address)
    close_all()
    database = postgres_address.rpartition("/")[2]
    assert any("checksums" in one for one in soundness_of(postgres_address).looked_at)
    postgres_server.execute("UPDATE trials SET cost = cost + 0.001 WHERE number = 0", database)
    assert [fault for fault in soundness_of(postgres_address).faults if "trials: number 0" in fault]
    with pytest.raises(DamagedRecord, match="number 0"):
        RecordsView(postgres_address).open("study")


def test_a_server_of_version_1_gets_its_digests(postgres_server, postgres_address):
    postgres_server.execute(f"SET ROLE tuner; {VERSION_1}", postgres_address.rpartition("/")[2])
    record = open_records(postgres_address).create_or_open("study", {"space": 1}, 10.0)
    assert (record.spent, record.reserved, len(record.secret)) == (0.5, 0.7, 32)
    record.log_event("after")
    assert soundness_of(postgres_address).faults == ()
