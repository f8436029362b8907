"""Trials as plain JSON values, to be kept where another library keeps its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from trimtuner.errors import InputError
from trimtuner.problem.history import Trial
from trimtuner.records.codec import decode_trial, encode, encode_configuration, encode_recommended

Written: TypeAlias = dict[str, str | float | None]


def write_trial(trial: Trial) -> Written:
    """Everything but the number, which the other library keeps."""
    return {
        "config": encode_configuration(trial.config),
        "fraction": trial.fraction,
        "snapshots": encode(list(trial.snapshots), "the snapshots"),
        "origin": trial.origin,
        "recommended": encode_recommended(trial.recommended),
    }


def read_trial(number: int, written: object) -> Trial:
    """The trial that was written; an error where it is something else."""
    if not isinstance(written, Mapping):
        raise InputError(f"trial {number} is written down as {str(written)[:60]!r}, which is no trial of trimtuner")
    fraction, recommended = written.get("fraction"), written.get("recommended")
    texts = [written.get(name) for name in ("config", "snapshots", "origin")]
    if not isinstance(fraction, float | int) or not isinstance(recommended, str | None):
        raise InputError(f"trial {number} is written down without a fraction that can be read")
    config, snapshots, origin = (str(text) for text in texts)
    return decode_trial(number, config, float(fraction), snapshots, origin, recommended)
