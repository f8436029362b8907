"""Who remembers, in SQL, and counts money: what was written down survives any crash, and every cent is in a ledger."""

from trimtuner.records.addresses import Address, Place
from trimtuner.records.errors import (
    DamagedRecord,
    DefinitionDiffers,
    NotOpen,
    OverBudget,
    OverTime,
    RecordError,
    RecordGone,
)
from trimtuner.records.facts import Attempt, Entry, Event, OpenTrial, Owner, Status
from trimtuner.records.record import Record
from trimtuner.records.store import Records, RecordsView
from trimtuner.records.view import StudyView

__all__ = [
    "Address",
    "Attempt",
    "DamagedRecord",
    "DefinitionDiffers",
    "Entry",
    "Event",
    "NotOpen",
    "OpenTrial",
    "OverBudget",
    "OverTime",
    "Owner",
    "Place",
    "Record",
    "RecordError",
    "RecordGone",
    "Records",
    "RecordsView",
    "Status",
    "StudyView",
]
