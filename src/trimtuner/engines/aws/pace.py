"""How often is looked, and how long is waited."""

from __future__ import annotations

from dataclasses import dataclass

from trimtuner.engines.supervising.follow import BEAT_SECONDS


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
    lock: float = 30.0  # how long a stop waits for another process that looks after the attempt

    def pause_after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return float(min(self.pause * 2.0 ** min(failures - 1, 30), self.longest_pause))
