"""The verb ``restore`` of the command line."""

from __future__ import annotations

from pathlib import Path

from trimtuner.commands.verbs.shared import JobPath, verb
from trimtuner.errors import InputError


@verb(17)
def restore(job: JobPath) -> None:
    """Rebuild a record that was deleted or damaged from the ledger beside it; never over one that is there."""
    from trimtuner.jobs.load import load_job
    from trimtuner.records.restoring import restore as rebuild

    storage = load_job(job).storage
    if not isinstance(storage, Path):
        raise InputError("only a record in a file has a ledger beside it; restore a backup of the database")
    print(f"rebuilt {storage}; {rebuild(storage)}")
    print(f"go on with: trimtuner run {job}")
