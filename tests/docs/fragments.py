"""Blocks that are data: job files and fragments of them must load, everything else must parse."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from trimtuner.errors import InputError
from trimtuner.jobs.load import load_job

# What a fragment is laid over on a page that has no job file.
MINIMAL = """
name: minimal
goal: {maximize: accuracy}
data: {fractions: [1/10, 1]}
parameters:
  learning_rate: {values: [0.001, 0.01, 0.1], scale: log}
cloud:
  vms:
    small: {vcpus: 1, memory_gib: 2, price_per_hour: 0.05}
run:
  command: [python, train.py, "--learning-rate={learning_rate}", "--fraction={fraction}"]
"""


def check_file(path: Path, language: str, text: str) -> None:
    """Refuse (``ValueError``) a file of a page that is not what its language says; a job file must load."""
    check = _CHECKS.get(language)
    if check is not None:
        check(text)
    if is_job_file(language, text):
        _load(path)


def is_job_file(language: str, text: str) -> bool:
    """Whether the text is a job file rather than some other YAML."""
    if language != "yaml":
        return False
    found = _parse_yaml(text)
    return isinstance(found, Mapping) and "goal" in found


def check_data(language: str, text: str) -> None:
    """Refuse (``ValueError``) what does not parse."""
    _CHECKS[language](text)


def check_fragment(text: str, job_file: Path | None, folder: Path) -> None:
    """Refuse (``ValueError``) a fragment with which the page's job file does not load."""
    fragment = _parse_yaml(text)
    if not isinstance(fragment, Mapping):
        raise ValueError('it is no mapping of keys, so no part of a job file; give other YAML a title="FILE"')
    whole = dict(_parse_yaml(job_file.read_text(encoding="utf-8") if job_file else MINIMAL))
    if "configs" in fragment:  # these take the place of two other keys
        for key in ("parameters", "cloud"):
            whole.pop(key, None)
    combined = (job_file.parent if job_file else folder) / "fragment-of-a-page.yaml"
    with combined.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump({**whole, **fragment}, file)
    try:
        _load(combined)
    finally:
        combined.unlink()


def _load(path: Path) -> None:
    try:
        load_job(path)
    except InputError as error:
        raise ValueError(f"it does not load as a job file: {error}") from None


def _parse_yaml(text: str) -> object:
    try:
        return YAML(typ="safe").load(text)
    except YAMLError as error:
        raise ValueError(f"it is not YAML: {error}") from None


def _parse_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text), strict=True))
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        raise ValueError(f"its rows have different numbers of columns: {sorted(widths)}")


def _parse_python(text: str) -> None:
    compile(text, "block", "exec")


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "csv": _parse_csv,
    "json": json.loads,
    "python": _parse_python,
    "toml": tomllib.loads,
    "yaml": _parse_yaml,
}
