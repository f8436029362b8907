"""Keys of the job file that several engines have."""

from __future__ import annotations

from trimtuner.keys.declared import key
from trimtuner.keys.kinds import DURATION


def wait_for_machines() -> float:
    """The key ``wait`` of an engine that may have to wait for machines, in seconds."""
    return key(
        DURATION,
        "How long a trial waits for machines that are not to be had, before it ends as `unavailable`; with its unit.",
        default=600.0,
        examples=["30min"],
    )
