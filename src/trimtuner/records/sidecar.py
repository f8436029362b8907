"""The ledger beside a record in a file: a line for every change, from which the record can be rebuilt if it is lost.

A line is on the disk before its change is committed, so the file never knows less than the record. It is written while
the record is locked: lines of several processes never mix, and a line whose change was not committed is followed by one
that begins where it began, which takes its place. Each line has the digest of itself and of the line before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Connection, select

from trimtuner.records.errors import RecordError
from trimtuner.records.money import to_usd
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, OWNERS, STUDIES, TRIALS

Image: TypeAlias = dict[str, object]  # a row, by the names of its columns

COPIED = (STUDIES, OWNERS, TRIALS, ATTEMPTS, LEDGER, EVENTS)  # in the order in which they refer to each other
_SECRET = STUDIES.c.secret.name  # of a study; not copied: one that is rebuilt gets another
_MOST_BYTES = 1 << 30
_END = re.compile(rb'"sum":"([0-9a-f]{64})"}\n\Z')
_END_BYTES = 80  # more than the end of a line has
_HEAD = re.compile(rb'^{"study":"([0-9a-f]{32})","before":(\d+),"sequence":(\d+),', re.MULTILINE)
_HAS_TRIALS = b'"trials":['
_HOW_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HOW_TO_ADD = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Written:
    """What a change of a study wrote."""

    study: str  # its id
    before: int  # the version that it found
    sequence: int  # the version that it leaves
    rows: Mapping[str, Sequence[Image]]  # by table
    is_whole: bool = False  # whether that is all there is of the study, and what was written before counts no more


class Sidecar:
    """The ledger beside one record."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.path = record.with_name(f"{record.name}.ledger")

    def has_trials(self) -> bool:
        """Whether anything may have been spent by what it says."""
        return _HAS_TRIALS in self._read()

    def add(self, connection: Connection, written: Written) -> None:
        """Write one change down, in its own transaction; a file that is new gets all that there is."""
        with self._open(_HOW_TO_ADD) as file:
            size = os.fstat(file).st_size
            for one in [written] if size else all_written(connection):
                self._append(file, one)

    def settle(self, connection: Connection) -> None:
        """Make the file fit the record, which nobody changes meanwhile; refuse a record that knows less than it."""
        lines = [(one[1].decode(), int(one[2]), int(one[3])) for one in _HEAD.finditer(self._read())]
        studies = {row.id: row.version for row in connection.execute(select(STUDIES.c.id, STUDIES.c.version))}
        if not studies.keys() & {study for study, _, _ in lines} and self.has_trials():
            raise RecordError(f"the ledger {self.path} is of another record than {self.record}; {self.told()}")
        for study, version in studies.items():
            self._settle_study(connection, study, version, [line[1:] for line in lines if line[0] == study])

    def changes(self) -> dict[str, list[Written]]:
        """What it says was written and committed, by the id of the study, in order."""
        found: dict[str, list[Written]] = {}
        for one in self._lines():
            earlier = found.setdefault(one.study, [])
            while earlier and (one.is_whole or earlier[-1].sequence > one.before):
                earlier.pop()
            earlier.append(one)
        return found

    def told(self) -> str:
        """What was spent by what it says, for a person."""
        try:
            return "; ".join(_told(changes) for changes in self.changes().values()) or "it holds no study"
        except RecordError as error:
            return str(error)

    def _settle_study(self, connection: Connection, study: str, version: int, lines: list[tuple[int, int]]) -> None:
        known: list[int] = []
        for before, sequence in lines:
            while known and known[-1] > before:
                known.pop()
            known.append(sequence)
        if known and known[-1] == version:
            return
        if len(known) > 1 and known[-2] > version:  # one line more is a change whose commit was cut off
            raise RecordError(
                f"the record {self.record} is older than the ledger {self.path} beside it, which knows of changes up "
                f"to {known[-1]} where the record ends at {version} ({self.told()}); put the newer record back, or "
                "move this one away and rebuild it with 'trimtuner restore JOB'; to go on from the older one, and "
                "forget what was spent since, move the ledger away"
            )
        with self._open(_HOW_TO_ADD) as file:
            self._append(file, next(one for one in all_written(connection) if one.study == study))

    def _append(self, file: int, written: Written) -> None:
        head = {"study": written.study, "before": written.before, "sequence": written.sequence}
        body = {**head, "is_whole": written.is_whole, "rows": _without_secrets(written.rows)}
        text = json.dumps(body, separators=(",", ":"))
        before, is_torn = self._last_sum(file)
        line = f'{text[:-1]},"sum":"{_sum(before, text)}"}}\n'.encode()
        data = b"\n" + line if is_torn else line
        try:
            if os.write(file, data) != len(data):
                raise OSError("it was written only in part")
            os.fsync(file)
        except OSError as error:
            raise RecordError(
                f"the ledger {self.path} could not be written ({error.strerror or error}); free some space, then run "
                "again. What was recorded before is as it was"
            ) from error

    def _last_sum(self, file: int) -> tuple[str, bool]:
        """The sum of the last line that is whole, and whether what follows it was cut off."""
        size = os.fstat(file).st_size
        end = os.pread(file, _END_BYTES, max(size - _END_BYTES, 0))
        found = _END.search(end)
        if found:
            return found[1].decode(), False
        sums = re.findall(rb'"sum":"([0-9a-f]{64})"}\n', self._read())
        return (sums[-1].decode() if sums else ""), not end.endswith(b"\n") and size > 0

    def _lines(self) -> Iterator[Written]:
        before = ""
        lines = self._read().split(b"\n")
        for number, line in enumerate(lines, start=1):
            said = _said_by(line, before)
            if said is None:
                if not line or number == len(lines) or _said_by(lines[number], before) is not None:
                    continue  # cut off when it was written: its change was not committed, and the next line knows
                raise RecordError(
                    f"the ledger {self.path} is damaged: line {number} is not as it was written; where the record is "
                    "sound, move the ledger away and the next run writes it anew; else restore a copy of either"
                )
            written, before = said
            yield written

    def _read(self) -> bytes:
        try:
            with self._open(_HOW_TO_READ) as file, os.fdopen(os.dup(file), "rb") as reader:
                return reader.read(_MOST_BYTES)
        except FileNotFoundError:
            return b""

    @contextmanager
    def _open(self, how: int) -> Iterator[int]:
        """A regular file of ours and of a size that a ledger may have: others may have put something in its place."""
        record = self.record.stat() if self.record.exists() else None
        mode = 0o600 if record is None else record.st_mode & 0o666  # who shares a record shares its ledger
        try:
            file = os.open(self.path, how, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RecordError(self._unusable(f" ({error.strerror})")) from error
        try:
            found = os.fstat(file)
            ours = {os.geteuid(), *([] if record is None else [record.st_uid])}
            is_ours = found.st_uid in ours or bool(mode & 0o022)
            if not stat.S_ISREG(found.st_mode) or not is_ours or found.st_size > _MOST_BYTES:
                raise RecordError(self._unusable(": it is no file of ours, or too large"))
            if found.st_size == 0 and found.st_uid == os.geteuid():
                os.fchmod(file, mode)
            yield file
        finally:
            os.close(file)

    def _unusable(self, why: str) -> str:
        return f"the ledger {self.path} beside the record cannot be used{why}; look at what is there, and move it away"


def all_written(connection: Connection) -> list[Written]:
    """All there is, study by study."""
    return [_whole(connection, row.study, row.id, row.version) for row in connection.execute(select(STUDIES)).all()]


def _whole(connection: Connection, study: int, name: str, version: int) -> Written:
    rows = {
        table.name: [dict(row._mapping) for row in connection.execute(select(table).where(table.c.study == study))]
        for table in COPIED
    }
    return Written(name, version, version, rows, is_whole=True)


def _without_secrets(rows: Mapping[str, Sequence[Image]]) -> dict[str, list[Image]]:
    return {
        table: [{key: value for key, value in row.items() if key != _SECRET} for row in found]
        for table, found in rows.items()
        if found
    }


def _said_by(line: bytes, before: str) -> tuple[Written, str] | None:
    """What a line says, and its sum; nothing where it is none of ours, or does not follow the line of that sum."""
    text, mark, end = line.decode("ascii", errors="replace").rpartition(',"sum":"')
    try:
        body = json.loads(f"{text}}}")
        said = Written(body["study"], body["before"], body["sequence"], body["rows"], body["is_whole"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_next = bool(mark) and end.removesuffix('"}') == _sum(before, f"{text}}}")
    return (said, end.removesuffix('"}')) if is_next else None


def _sum(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()


def _told(changes: Sequence[Written]) -> str:
    """The money of one study."""
    sums: dict[str, int] = {"charge": 0, "reserve": 0, "release": 0}
    trials, name = set(), "?"
    for one in changes:
        for row in one.rows.get(LEDGER.name, ()):
            sums[str(row["kind"])] += int(str(row["nanos"]))
        trials |= {str(row["number"]) for row in one.rows.get(TRIALS.name, ())}
        name = next((str(row["name"]) for row in one.rows.get(STUDIES.name, ())), name)
    reserved = to_usd(sums["reserve"] - sums["release"])
    spent = f"{to_usd(sums['charge']):.9g} USD charged, {reserved:.9g} USD reserved for what was under way"
    return f"study {name!r}: {len(trials)} trials, {spent}"
