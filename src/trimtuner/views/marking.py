"""The marks of configurations: the same configuration is the same mark on every picture and in every table."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from trimtuner.problem.expressions import Value
from trimtuner.views.drawing.marks import Mark
from trimtuner.views.words import configuration


def key_of(config: Mapping[str, Value]) -> str:
    """A short name for a configuration, the same wherever it is shown."""
    return f"{crc32(configuration(dict(sorted(config.items()))).encode()):x}"


def mark_of(config: Mapping[str, Value], *lines: str, trial: int | None = None) -> Mark:
    """The mark of a configuration: what is said of it, and then its values."""
    return Mark("\n".join((*lines, configuration(config))), key_of(config), trial)
