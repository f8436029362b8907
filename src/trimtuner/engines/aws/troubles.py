"""What is in the way of an attempt, for whoever polls it, and how long to wait before the next try."""

from __future__ import annotations

from collections.abc import Callable

from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.refusals import Credentials, Passing
from trimtuner.engines.protocol import EngineTrouble


class Troubles:
    """The last trouble, until something works again."""

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
