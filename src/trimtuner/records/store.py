"""All studies of one record: made, found by name, opened to be changed or only to be read."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Row, func, insert, select

from trimtuner.errors import InputError, nearest
from trimtuner.problem.earlier import Earlier
from trimtuner.records import facts
from trimtuner.records.addresses import Address, Place, place_of
from trimtuner.records.change import Change
from trimtuner.records.codec import decode_mapping, encode_definition
from trimtuner.records.database import Database, clock, take_turn
from trimtuner.records.differences import Comparison, differences
from trimtuner.records.errors import DefinitionDiffers, RecordError
from trimtuner.records.migrations import migrate_one_step, refuse_newer, version_of
from trimtuner.records.money import Ledger, to_nanos, to_usd
from trimtuner.records.record import Record, require_text
from trimtuner.records.schema import SECRET_BYTES, SHOWN, STUDIES
from trimtuner.records.seals import refuse_damaged
from trimtuner.records.server import server_reader, server_writer
from trimtuner.records.sqlite_files import (
    file_reader,
    file_writer,
    refuse_broken,
    refuse_cut_short,
    refuse_lost,
    refuse_unusable,
)
from trimtuner.records.view import StudyView


class RecordsView:
    """The studies of a file (or of a PostgreSQL database, by its address), to be read: nothing is made or locked."""

    def __init__(self, place: Place) -> None:
        self._reader = open_to_read(place)

    def open(self, name: str) -> StudyView:
        """The study of that name; an error where it is not as it was written."""
        return StudyView(self._reader, _find_sound(self._reader, name))

    def names(self) -> list[str]:
        """The names of all studies, oldest first."""
        return _names(self._reader)

    def close(self) -> None:
        """Let go of the file, or of the server."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Records(RecordsView):
    """The studies of a record, to be changed; it is made, or brought up to date, if need be."""

    def __init__(self, place: Place) -> None:
        self._writer = open_to_write(place)
        try:
            super().__init__(place)
        except BaseException:
            self._writer.close()
            raise

    def create_or_open(
        self,
        name: str,
        definition: Mapping[str, object],
        budget: float | None,
        gather: Callable[[], Sequence[Earlier]] = tuple,
        compare: Callable[[Mapping[str, object]], Comparison] | None = None,
    ) -> Record:
        """The study of that name, made if need be; one that is defined otherwise is refused, another budget noted.

        ``gather`` finds the earlier studies that a new one learns from. It is asked once, when the study is made; what
        it found is copied into the record. ``compare`` says how the study differs from a definition in the record,
        where other words may mean the same, or more of the same: then the record is given the new ones.
        """
        require_text(name, "the name of a study")
        text = encode_definition(definition)
        nanos = None if budget is None else to_nanos(budget, "the budget")
        earlier = () if name in self.names() else gather()
        return Record(self._reader, self._writer, self._create_or_find(name, text, nanos, earlier, compare))

    def open(self, name: str) -> Record:
        """The study of that name, to be changed; an error where it is not as it was written."""
        return Record(self._reader, self._writer, _find_sound(self._reader, name))

    def close(self) -> None:
        """Let go of the file, or of the server."""
        super().close()  # first: the last to leave tidies up, which only a writer can
        self._writer.close()

    def _create_or_find(
        self,
        name: str,
        definition: str,
        budget: int | None,
        earlier: Sequence[Earlier],
        compare: Callable[[Mapping[str, object]], Comparison] | None,
    ) -> Row[tuple[object, ...]]:
        query = SHOWN[STUDIES].where(STUDIES.c.name == name)
        with self._writer.transaction() as connection:
            take_turn(connection)  # there may be no row to lock yet
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is None:
                self._writer.keep(connection, _make_study(connection, name, definition, budget, earlier).seal())
                return connection.execute(query).one()
            if self._writer.sidecar is None:  # else a file, which was checked as a whole when it was opened
                refuse_damaged(connection, self._writer.where, row.study)
            if row.definition != definition:
                old, new = decode_mapping(row.definition), decode_mapping(definition)
                found = Comparison(tuple(differences(old, new))) if compare is None else compare(old)
                if found.differences:
                    raise DefinitionDiffers(name, found.differences)
                self._writer.keep(connection, _restate(connection, row.study, definition, found).seal())
            if row.budget != budget:
                self._writer.keep(connection, _change_budget(connection, row.study, row.budget, budget).seal())
            return connection.execute(query).one()


def open_to_write(place: Place) -> Database:
    """A way to write; the record is made, or brought up to date, if need be."""
    found = place_of(place)
    if isinstance(found, Path):
        refuse_unusable(found)
    writer = file_writer(found) if isinstance(found, Path) else server_writer(found)
    try:
        while _take_step(writer):
            pass
        if writer.sidecar is not None:  # made to fit the record; nothing of a damaged one gets there
            with writer.transaction() as connection:
                refuse_damaged(connection, writer.where, None)
                writer.sidecar.settle(connection)
    except BaseException:
        writer.close()
        raise
    return writer


def open_to_read(place: Place) -> Database:
    """A way to read that leaves the record alone: no lock that a writer would wait for, nothing made or migrated."""
    found = place_of(place)
    if isinstance(found, Path) and not found.is_file():
        refuse_lost(found)
        raise RecordError(f"there is no record at {found}; a study makes one when it runs with this storage")
    reader = server_reader(found) if isinstance(found, Address) else file_reader(found)
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
    return reader


def _take_step(writer: Database) -> bool:
    with writer.transaction() as connection:
        take_turn(connection)
        return migrate_one_step(connection, writer.where)


def _find_sound(reader: Database, name: str) -> Row[tuple[object, ...]]:
    """A file is looked at as a whole; of a server, whose pages may have checksums, the study alone."""
    require_text(name, "the name of a study")
    with reader.transaction() as connection:
        if reader.sidecar is not None:
            refuse_broken(connection, reader.where)
            refuse_damaged(connection, reader.where, None)
        row = connection.execute(SHOWN[STUDIES].where(STUDIES.c.name == name)).one_or_none()
        if row is not None and reader.sidecar is None:
            refuse_damaged(connection, reader.where, row.study)
    if row is None:
        raise InputError(f"{reader.where} has no study {name!r}{nearest(name, _names(reader))}")
    return row


def _names(reader: Database) -> list[str]:
    with reader.transaction() as connection:
        return list(connection.execute(select(STUDIES.c.name).order_by(STUDIES.c.study)).scalars())


def _make_study(
    connection: Connection, name: str, definition: str, budget: int | None, earlier: Sequence[Earlier]
) -> Change:
    study = int(connection.execute(select(func.max(STUDIES.c.study))).scalar() or 0) + 1
    row = {"study": study, "id": uuid.uuid4().hex, "name": name, "definition": definition, "budget": budget}
    made = {"created_at": clock(connection), "version": 0, "secret": secrets.token_hex(SECRET_BYTES), "digest": ""}
    connection.execute(insert(STUDIES).values(**row, **made))
    change = Change(connection, study, Ledger(study))
    change.log(facts.CREATED, None, {"budget": None if budget is None else to_usd(budget)})
    for one in earlier:
        change.log(facts.LEARNS, None, one.plain)
    change.touch(STUDIES, {})
    return change


def _restate(connection: Connection, study: int, definition: str, found: Comparison) -> Change:
    change = Change(connection, study, Ledger(study))
    if found.additions:
        change.log(facts.GROWN, None, {"added": list(found.additions)})
        change.complete_configurations(found.complete)
    else:
        change.log(facts.RESTATED, None, {})
    change.update(STUDIES, {}, {"definition": definition})
    return change


def _change_budget(connection: Connection, study: int, old: int | None, new: int | None) -> Change:
    change = Change(connection, study, Ledger(study))
    amounts = {key: None if nanos is None else to_usd(nanos) for key, nanos in (("from", old), ("to", new))}
    change.log(facts.BUDGET_CHANGED, None, amounts)
    change.update(STUDIES, {}, {"budget": new})
    return change
