"""What the ledger adds up to. Entries are only added, so what was added up once is not added up again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from trimtuner.records.schema import LEDGER


@dataclass(frozen=True)
class Sums:
    """The entries of a study up to one change of it, in billionths of a dollar."""

    sequence: int = 0
    spent: int = 0
    reserved: int = 0

    def until(self, connection: Connection, study: int, sequence: int) -> Sums:
        """With the entries of later changes, up to that one."""
        if sequence == self.sequence:
            return self
        kind, nanos = LEDGER.c.kind, LEDGER.c.nanos
        spent = func.sum(case((kind == "charge", nanos), else_=0))
        reserved = func.sum(case((kind == "reserve", nanos), (kind == "release", -nanos), else_=0))
        later = (LEDGER.c.study == study, LEDGER.c.sequence > self.sequence, LEDGER.c.sequence <= sequence)
        added = connection.execute(select(spent, reserved).where(*later)).one()
        return Sums(sequence, self.spent + int(added[0] or 0), self.reserved + int(added[1] or 0))


class Ledger:
    """The sums of one study, remembered up to the last change that was asked for."""

    def __init__(self, study: int) -> None:
        self._study = study
        self._known = Sums()  # replaced as a whole, so threads may share it

    def sums(self, connection: Connection, version: int) -> Sums:
        """At a version of the study that is committed: what a transaction has added itself may yet be taken back."""
        known = self._known
        sums = (known if known.sequence <= version else Sums()).until(connection, self._study, version)
        self._known = sums
        return sums
