"""A first job file, with a comment on every section: ``starter.yaml`` beside this, named after its study."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from trimtuner.files import FOR_ALL, write_new
from trimtuner.jobs.names import check_name

SCHEMA_FILE = "trimtuner.schema.json"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def init_text(name: str) -> str:
    """A job file to start from, for a study of that name."""
    text = resources.files("trimtuner.jobs").joinpath("starter.yaml").read_text(encoding="utf-8")
    return text.replace("@NAME@", check_name(name))


def write_init(path: Path) -> None:
    """Write a first job file, named after the file; never over one that is there."""
    write_new(path, init_text(_study_name(path)), FOR_ALL)


def write_init_with_schema(path: Path) -> Path:
    """The same, with the schema beside it and named in its first lines, as editors want it; where the schema is."""
    beside = path.parent / SCHEMA_FILE
    from trimtuner.jobs.schema import write_schema  # heavy, and rarely asked for

    write_schema(beside)  # first: a job file must not name a schema that could not be written
    write_new(path, _EDITOR_LINES + init_text(_study_name(path)), FOR_ALL)
    return beside


def _study_name(path: Path) -> str:
    return _NOT_IN_NAMES.sub("-", path.stem).lstrip("._-")[:64] or "study"


# The first is for what uses the YAML language server, such as VS Code; the second for JetBrains.
_EDITOR_LINES = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# $schema: ./{SCHEMA_FILE}
"""
