"""How often is looked, how long is waited, and what is in the way meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trimtuner.engines.aws.refusals import Credentials, Passing
from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.supervising.mirror import BEAT_SECONDS


@dataclass(frozen=True)
class Pace:
    """Seconds. The usual ones keep hundreds of attempts far below what AWS allows an account to ask."""

    look: float = 2.0  # between two looks at the machines, of all attempts together
    pause: float = 2.0  # after a first failure; doubled after each more
    longest_pause: float = 60.0
    appear: float = 120.0  # at most so long a rented machine may be missing from what EC2 shows
    silence: float = 3 * BEAT_SECONDS + 1.0  # after which a line on which nothing comes is taken for lost
    connect: float = 20.0  # at most, for an SSH connection
    stopped_within: float = 900.0  # machines take minutes to go; a stop that takes longer is told as unconfirmed
    checkpoint: float = 30.0  # between two copies of what a command keeps for a retry
    copied: float = 600.0  # at most, for one of them
    lock: float = 30.0  # how long a stop waits for another process that looks after the attempt

    def pause_after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return float(min(self.pause * 2.0 ** min(failures - 1, 30), self.longest_pause))


class Troubles:
    """The last trouble with an attempt, for whoever polls it, until something works again."""

    def __init__(self, pace: Pace, renew: Callable[[], None]) -> None:
        self.text = ""
        self._pace, self._renew, self._failures = pace, renew, 0

    def bear(self, trouble: EngineTrouble | None) -> float:
        """Remember trouble, or that there is none; how long to wait."""
        if trouble is None:
            self.text, self._failures = "", 0
            return 0.0
        self._failures += 1
        if isinstance(trouble, Credentials):
            self._renew()
        # What passes by itself is worth a word only when it stays.
        if not (isinstance(trouble, Passing) and self._failures == 1):
            self.text = str(trouble)
        return self._pace.pause_after(self._failures)
