"""The JSON schema of the job file: what editors complete and check, and what the reference is made of.

It sees what one value, or one section, can get wrong. What only the reader sees: conditions and placeholders that name
nothing, constraints that contradict each other, files that are not there, spot prices that are missing, upper bounds of
texts with units, and whole numbers that are written with a point. It is stricter in one thing: numbers among the
options of a method stand without quotes. ``trimtuner validate`` has the last word.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from trimtuner.errors import InputError, unwritable
from trimtuner.files import replace_whole
from trimtuner.jobs.names import STUDY_NAME
from trimtuner.jobs.schema_cloud import built_in_vm_types, cloud
from trimtuner.jobs.schema_engine import ENGINE
from trimtuner.jobs.schema_kinds import Schema, either, has, key, mapping, text_like, where
from trimtuner.jobs.schema_problem import BUDGET, CONSTRAINTS, GOAL
from trimtuner.jobs.schema_run import RUN
from trimtuner.jobs.schema_search import SEARCH
from trimtuner.jobs.schema_space import CONFIGS, DATA, PARAMETERS
from trimtuner.jobs.space_section import MACHINE_PLACEHOLDERS
from trimtuner.records.addresses import DATABASES

TITLE = "A job file of trimtuner"


def job_schema() -> Schema:
    """The schema (draft 2020-12) as plain data."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        "description": "What may be chosen, what is wanted, what it may cost, and the command that trains.",
        **mapping(_sections(), required=["name", "goal", "run"]),
        **where(has("configs"), _NOT_BESIDE_CONFIGS, {"anyOf": [has("parameters"), has("cloud")]}),
        "allOf": [where(has("cloud"), _NO_NAMES_OF_MACHINES)],
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


def _sections() -> dict[str, Schema]:
    return {
        "name": key(
            "The name of the study: 1 to 64 letters, digits and `.` `_` `-`, the first a letter or digit.",
            text_like(STUDY_NAME),
            examples=["mnist-cnn"],
        ),
        "goal": GOAL,
        "constraints": CONSTRAINTS,
        "budget": BUDGET,
        "data": DATA,
        "parameters": PARAMETERS,
        "cloud": cloud(),
        "configs": CONFIGS,
        "run": RUN,
        "engine": ENGINE,
        "search": SEARCH,
        "storage": key(
            "Where the record is kept: the path of a SQLite file from the folder of the job file, or the address of a "
            "PostgreSQL database. Without it, `NAME.db` beside the job file.",
            {
                "type": "string",
                "minLength": 1,
                "anyOf": [{"pattern": rf"^{either(map(re.escape, DATABASES))}://"}, {"not": {"pattern": "://"}}],
            },
            examples=["records/mnist.db", "postgresql://user@host/database"],
        ),
    }


_NOT_BESIDE_CONFIGS: Schema = {"properties": {"parameters": False, "cloud": False}}
_NO_NAMES_OF_MACHINES: Schema = {
    "properties": {"parameters": {"propertyNames": {"not": {"enum": [*MACHINE_PLACEHOLDERS]}}}}
}
