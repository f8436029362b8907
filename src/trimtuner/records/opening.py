"""Records opened: made or brought up to date by those who write, left alone by those who read."""

from __future__ import annotations

from pathlib import Path

from trimtuner.records.addresses import Address, Place, place_of
from trimtuner.records.database import Database
from trimtuner.records.errors import RecordError
from trimtuner.records.migrations import migrate_one_step, refuse_newer, version_of
from trimtuner.records.server import RESTART_SECONDS, server_reader, server_writer, take_turn
from trimtuner.records.sqlite_files import file_reader, file_writer, refuse_cut_short, refuse_lost, refuse_unusable


def open_to_write(place: Place) -> tuple[Database, Database]:
    """A way to read and a way to write; the record is made, or brought up to date, if need be."""
    found = place_of(place)
    writer = _writer(found)
    try:
        while _take_step(writer):
            pass
        writer.settle_sidecar()
        reader = open_to_read(found)
    except BaseException:
        writer.close()
        raise
    return reader, _patient(writer, found)


def open_to_read(place: Place) -> Database:
    """A way to read that leaves the record alone: no lock that a writer would wait for, nothing made or migrated."""
    found = place_of(place)
    reader = _reader(found)
    try:
        with reader.transaction() as connection:
            if isinstance(found, Path):
                refuse_cut_short(connection, found)
            version = version_of(connection, reader.where)
            refuse_newer(version, reader.where)
            if version == 0:
                raise RecordError(f"{reader.where} is empty; a study fills it when it runs with this storage")
    except BaseException:
        reader.close()
        raise
    return _patient(reader, found)


def _writer(place: Path | Address) -> Database:
    if isinstance(place, Address):
        return server_writer(place)
    refuse_unusable(place)
    return file_writer(place)


def _reader(place: Path | Address) -> Database:
    if isinstance(place, Address):
        return server_reader(place)
    if not place.is_file():
        refuse_lost(place)
        raise RecordError(f"there is no record at {place}; a study makes one when it runs with this storage")
    return file_reader(place)


def _patient(database: Database, place: Path | Address) -> Database:
    return database.but_patient(RESTART_SECONDS) if isinstance(place, Address) else database


def _take_step(writer: Database) -> bool:
    with writer.transaction() as connection:
        take_turn(connection)
        return migrate_one_step(connection, writer.where)
