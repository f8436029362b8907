"""What can go wrong with a record, sorted by what the caller should do next.

TrimTunerError
├── RecordError              look at the file, the disk or the server, as the message says; the data is as it was
│   ├── DamagedRecord        what is there is not what was written: restore a copy
│   └── RecordGone           the file was moved, deleted or replaced: put it back, or restore it
├── InputError
│   ├── DefinitionDiffers    the name belongs to another study: take another name, or the old definition
│   └── NotOpen              somebody else ended this attempt, or nobody began it: read the history again
└── SearchOver
    ├── OverBudget           start something cheaper, or stop
    └── OverTime             start something on fewer machines, or stop
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtuner.errors import InputError, SearchOver, TrimTunerError


class RecordError(TrimTunerError, RuntimeError):
    """The record cannot be read or written; the message says what, where and what now."""


class DamagedRecord(RecordError):  # noqa: N818  (named by what the caller learns)
    """What is there is not what was written."""

    def __init__(self, where: str, faults: Sequence[str]) -> None:
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        super().__init__(
            f"{where} is damaged ({faults[0]}{more}); what else is there can still be read, and 'trimtuner verify JOB' "
            "lists what is not sound. Restore a copy of it, or move it away and rebuild it from the ledger beside it "
            "with 'trimtuner restore JOB'"
        )


class RecordGone(RecordError):  # noqa: N818  (named by what the caller learns)
    """The file of the record is no longer the one that was opened."""


class DefinitionDiffers(InputError):  # noqa: N818  (named by what the caller learns)
    """A study of this name exists, and it is defined otherwise."""

    def __init__(self, name: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"the study {name!r} exists with another definition ({'; '.join(self.differences)}); take another name, or "
            "define it as it was"
        )


class NotOpen(InputError):  # noqa: N818  (named by what the caller learns)
    """The attempt at the trial is not under way."""


class OverBudget(SearchOver):
    """What the trial may cost at worst does not fit what is left of the budget; nothing was changed."""

    def __init__(self, budget: float, spent: float, reserved: float, wanted: float) -> None:
        super().__init__(
            f"a reserve of {wanted:.9g} USD does not fit: of the budget of {budget:.9g} USD, {spent:.9g} are spent "
            f"and {reserved:.9g} reserved for trials under way"
        )
        self.budget = budget
        self.spent = spent
        self.reserved = reserved
        self.wanted = wanted


class OverTime(SearchOver):
    """How long machines may be at work at worst does not fit what is left of their time; nothing was changed."""

    def __init__(self, cap_seconds: float, taken_seconds: float, wanted_seconds: float) -> None:
        super().__init__(
            f"{wanted_seconds / 3600:.4g} more machine-hours, should the trial run until its time-out, do not fit: of "
            f"{cap_seconds / 3600:.4g}, {taken_seconds / 3600:.4g} are used or reserved for trials under way"
        )
