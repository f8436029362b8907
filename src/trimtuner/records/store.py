"""All studies of one record: made, found by name, opened to be changed or only to be read."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from sqlalchemy import Connection, Row, func, insert, select, update

from trimtuner.errors import InputError, nearest
from trimtuner.problem.earlier import Earlier
from trimtuner.records import facts
from trimtuner.records.addresses import Place
from trimtuner.records.change import Change
from trimtuner.records.codec import decode_mapping, encode_definition
from trimtuner.records.database import Database
from trimtuner.records.differences import differences
from trimtuner.records.errors import DefinitionDiffers
from trimtuner.records.ledger import Ledger
from trimtuner.records.money import to_nanos, to_usd
from trimtuner.records.opening import open_to_read, open_to_write
from trimtuner.records.record import Record, require_text
from trimtuner.records.schema import SECRET_BYTES, STUDIES, shown
from trimtuner.records.seals import refuse_damaged
from trimtuner.records.server import clock, take_turn
from trimtuner.records.sidecar import Written
from trimtuner.records.sqlite_files import refuse_broken
from trimtuner.records.view import StudyView


class Records:
    """The studies of a file (or of a PostgreSQL database, by its address), to be changed."""

    def __init__(self, place: Place) -> None:
        self._reader, self._writer = open_to_write(place)

    def create_or_open(
        self,
        name: str,
        definition: Mapping[str, object],
        budget: float | None,
        gather: Callable[[], Sequence[Earlier]] = tuple,
        differing: Callable[[Mapping[str, object]], Sequence[str]] | None = None,
    ) -> Record:
        """The study of that name, made if need be; one that is defined otherwise is refused, another budget noted.

        ``gather`` finds the earlier studies that a new one learns from. It is asked once, when the study is made; what
        it found is copied into the record. ``differing`` says how the study differs from a definition in the record,
        where other words may mean the same: then the record is given the new ones.
        """
        require_text(name, "the name of a study")
        text = encode_definition(definition)
        nanos = None if budget is None else to_nanos(budget, "the budget")
        earlier = () if name in self.names() else gather()
        return Record(self._reader, self._writer, self._create_or_find(name, text, nanos, earlier, differing))

    def open(self, name: str) -> Record:
        """The study of that name."""
        return Record(self._reader, self._writer, _find_sound(self._reader, name))

    def names(self) -> list[str]:
        """The names of all studies, oldest first."""
        return _names(self._reader)

    def close(self) -> None:
        """Let go of the file, or of the server."""
        self._reader.close()  # first: the last to leave tidies up, which only a writer can
        self._writer.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _create_or_find(
        self,
        name: str,
        definition: str,
        budget: int | None,
        earlier: Sequence[Earlier],
        differing: Callable[[Mapping[str, object]], Sequence[str]] | None,
    ) -> Row[tuple[object, ...]]:
        query = shown(STUDIES).where(STUDIES.c.name == name)
        with self._writer.transaction() as connection:
            take_turn(connection)  # there may be no row to lock yet
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is not None and not self._writer.is_file:  # which was checked as a whole when it was opened
                refuse_damaged(connection, self._writer.where, row.study)
            if row is None:
                self._writer.keep(connection, _insert_study(connection, name, definition, budget, earlier))
                return connection.execute(query).one()
            if row.definition != definition:
                old, new = decode_mapping(row.definition), decode_mapping(definition)
                found = differences(old, new) if differing is None else differing(old)
                if found:
                    raise DefinitionDiffers(name, found)
                self._writer.keep(connection, _restate(connection, row.study, definition))
            if row.budget != budget:
                self._writer.keep(connection, _change_budget(connection, row.study, row.budget, budget))
            return connection.execute(query).one()


class RecordsView:
    """The studies of a record, to be read: nothing is made, changed or locked."""

    def __init__(self, place: Place) -> None:
        self._reader = open_to_read(place)

    def open(self, name: str) -> StudyView:
        """The study of that name."""
        return StudyView(self._reader, _find_sound(self._reader, name))

    def names(self) -> list[str]:
        """The names of all studies, oldest first."""
        return _names(self._reader)

    def close(self) -> None:
        """Let go of the file, or of the server."""
        self._reader.close()

    def __enter__(self) -> RecordsView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _find_sound(reader: Database, name: str) -> Row[tuple[object, ...]]:
    """A file is looked at as a whole; of a server, whose pages may have checksums, the study alone."""
    if reader.is_file:
        with reader.transaction() as connection:
            refuse_broken(connection, reader.where)
            refuse_damaged(connection, reader.where, None)
        return _find(reader, name)
    row = _find(reader, name)
    with reader.transaction() as connection:
        refuse_damaged(connection, reader.where, row.study)
    return row


def _find(reader: Database, name: str) -> Row[tuple[object, ...]]:
    require_text(name, "the name of a study")
    with reader.transaction() as connection:
        row = connection.execute(shown(STUDIES).where(STUDIES.c.name == name)).one_or_none()
    if row is None:
        raise InputError(f"{reader.where} has no study {name!r}{nearest(name, _names(reader))}")
    return row


def _names(reader: Database) -> list[str]:
    with reader.transaction() as connection:
        return list(connection.execute(select(STUDIES.c.name).order_by(STUDIES.c.study)).scalars())


def _insert_study(
    connection: Connection, name: str, definition: str, budget: int | None, earlier: Sequence[Earlier]
) -> Written:
    largest = connection.execute(select(func.max(STUDIES.c.study))).scalar()
    study = 1 if largest is None else largest + 1
    row = {"study": study, "id": uuid.uuid4().hex, "name": name, "definition": definition, "budget": budget}
    made = {"created_at": clock(connection), "version": 0, "secret": secrets.token_hex(SECRET_BYTES), "digest": ""}
    connection.execute(insert(STUDIES).values(**row, **made))
    change = Change(connection, study, Ledger(study))
    change.log(facts.CREATED, None, {"budget": None if budget is None else to_usd(budget)})
    for one in earlier:
        change.log(facts.LEARNS, None, one.plain)
    change.touch(STUDIES, {})
    return change.seal()


def _restate(connection: Connection, study: int, definition: str) -> Written:
    connection.execute(update(STUDIES).where(STUDIES.c.study == study).values(definition=definition))
    change = Change(connection, study, Ledger(study))
    change.log(facts.RESTATED, None, {})
    change.touch(STUDIES, {})
    return change.seal()


def _change_budget(connection: Connection, study: int, old: int | None, new: int | None) -> Written:
    connection.execute(update(STUDIES).where(STUDIES.c.study == study).values(budget=new))
    amounts = {key: None if nanos is None else to_usd(nanos) for key, nanos in (("from", old), ("to", new))}
    change = Change(connection, study, Ledger(study))
    change.log(facts.BUDGET_CHANGED, None, amounts)
    change.touch(STUDIES, {})
    return change.seal()
