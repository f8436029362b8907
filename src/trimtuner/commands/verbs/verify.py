"""The verb ``verify`` of the command line."""

from __future__ import annotations

import json

import typer

from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, AsJson, JobPath, verb


@verb(16)
def verify(job: JobPath, as_json: AsJson = False) -> None:
    """Check that the record is as it was written: every row and event by its digest, the file, the ledger beside it."""
    from trimtuner.jobs.load import load_job
    from trimtuner.records.restoring import soundness_of

    found = soundness_of(load_job(job).storage)
    told = {"is_sound": found.is_sound, "looked_at": list(found.looked_at), "faults": list(found.faults)}
    if as_json:
        print(json.dumps(told, indent=2))
    else:
        for what in found.looked_at:
            print(f"looked at: {what}")
        for fault in found.faults:
            print(f"NOT SOUND: {fault}")
        print("sound" if found.is_sound else _WHAT_NOW)
    if not found.is_sound:
        raise typer.Exit(EXIT_BAD_INPUT)


_WHAT_NOW = """what is not listed is as it was written; what now:
  put a copy of the record in its place (with its -wal file if there is one)
  or move it away, and rebuild it from the ledger beside it: trimtuner restore JOB"""
