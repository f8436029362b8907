"""The JSON schema of the job file: what editors complete and check, and what the reference is made of.

It sees what one value, or one section, can get wrong. What only the reader sees: conditions and placeholders that name
nothing, constraints that contradict each other, files that are not there, spot prices that are missing, upper bounds of
texts with units, and whole numbers that are written with a point. It is stricter in one thing: numbers among the
options of a method stand without quotes. ``trimtuner validate`` has the last word.
"""

from __future__ import annotations

import json
from pathlib import Path

from trimtuner.errors import InputError, unwritable
from trimtuner.files import replace_whole
from trimtuner.jobs.cloud_section import built_in_vm_types, rules_of_catalogs
from trimtuner.jobs.job import JobKeys
from trimtuner.jobs.space_section import MACHINE_PLACEHOLDERS
from trimtuner.keys.declared import keys_of, schema_of
from trimtuner.keys.kinds import Schema, has, where

TITLE = "A job file of trimtuner"


def job_schema() -> Schema:
    """The schema (draft 2020-12) as plain data."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        "description": "What may be chosen, what is wanted, what it may cost, and the command that trains.",
        **schema_of(keys_of(JobKeys), _rules()),
        "$defs": built_in_vm_types(),
    }


def schema_text() -> str:
    """The schema as a file holds it."""
    return json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(path: Path) -> None:
    """Write the schema, also over an older one; any other file that is there stays as it is."""
    try:
        if path.exists() and not _is_ours(path):
            raise InputError(f"{path} is there already, and is no schema of a job file; name another file")
    except OSError as error:
        raise unwritable(path, error) from None
    replace_whole(path, schema_text())


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("title") == TITLE


def _rules() -> Schema:
    """For keys of several sections, and what the built-in catalogs know of machines."""
    not_beside: Schema = {"properties": {"parameters": False, "cloud": False}}
    no_machines: Schema = {"propertyNames": {"not": {"enum": [*MACHINE_PLACEHOLDERS]}}}
    return {
        **where(has("configs"), not_beside, {"anyOf": [has("parameters"), has("cloud")]}),
        "allOf": [
            where(has("cloud"), {"properties": {"parameters": no_machines}}),
            {"properties": {"cloud": rules_of_catalogs()}},
        ],
    }
