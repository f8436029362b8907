"""What things of ours are called on EC2: the tags by which any driver finds the machines of an attempt again."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from trimtuner.engines.supervising.files import attempt_name
from trimtuner.errors import InputError

STUDY, TRIAL, ATTEMPT = "trimtuner:study", "trimtuner:trial", "trimtuner:attempt"
GROUP = "trimtuner:group"  # workers, or the helpers of one type
ROUND = "trimtuner:round"  # how many launches of the attempt were refused before
HOST_KEY = "trimtuner:host-key"  # the public one: who logs in knows that it is our machine
STOP = "trimtuner:stop"  # somebody asked to end the attempt
WORKERS = "workers"

_HANDLE = re.compile(r"([a-z0-9-]{1,32})/([A-Za-z0-9._-]{1,128})/(\d{1,9})-(\d{1,9})")


def helpers_of(vm_type: str) -> str:
    """The group of the helpers that have this type."""
    return f"helpers-{vm_type}"


@dataclass(frozen=True)
class AttemptName:
    """An attempt, and the region that its machines are in."""

    region: str
    study: str
    trial: int
    attempt: int

    @classmethod
    def of_handle(cls, handle: str) -> AttemptName:
        """The attempt that a handle names, on whichever machine it was given out."""
        match = _HANDLE.fullmatch(handle)
        if match is None or ".." in match[2]:
            raise InputError(f"{handle!r} names no attempt on AWS; it looks like eu-west-1/study/12-1")
        return cls(match[1], match[2], int(match[3]), int(match[4]))

    @property
    def handle(self) -> str:
        """Text that any machine can resolve."""
        return f"{self.region}/{self.study}/{self.short}"

    @property
    def short(self) -> str:
        """Trial and attempt, as folders and people name it."""
        return attempt_name(self.trial, self.attempt)

    @property
    def tags(self) -> dict[str, str]:
        """What every resource of the attempt carries, and is found by."""
        return {STUDY: self.study, TRIAL: str(self.trial), ATTEMPT: str(self.attempt)}

    def client_token(self, group: str, number: int) -> str:
        """The same for every launch of a group in a round, so that EC2 takes a repeated one for the same."""
        text = f"{self.handle}/{group}/{number}"
        return hashlib.sha256(text.encode()).hexdigest()[:64]
