"""The one loop of a search: tell what has ended, ask while there is a place, start what was asked.

Functions (``Study.optimize``), tables (``replay``) and engines (``Driver``) go round it; who runs a trial
is where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from trimtuner.errors import SearchOver
from trimtuner.problem.history import Trial

Ended = TypeVar("Ended")


class Runner(Protocol[Ended]):
    """Who runs the trials of a loop, one or several at a time."""

    def collect(self) -> list[Ended]:
        """What has ended since the last look, each told to the study; never waits for long."""

    def next_trial(self) -> Trial | None:
        """Asked of the study, where there is a place for it now; SearchOver where nothing more is asked."""

    def start(self, trial: Trial) -> None:
        """Have it run, or run it."""

    def is_done(self) -> bool:
        """Whether nothing is left to wait for, now that nothing more is asked."""


def rounds(runner: Runner[Ended]) -> Iterator[list[Ended]]:
    """What ended in every round, before more is asked; SearchOver says why when nothing is left to ask or wait for."""
    while True:
        yield runner.collect()
        try:
            while (trial := runner.next_trial()) is not None:
                runner.start(trial)
        except SearchOver:
            if runner.is_done():  # else the end of a trial that runs may make another affordable
                raise


class InTurn(Generic[Ended]):
    """Runs up to so many trials one after the other, in the thread that goes round the loop."""

    def __init__(self, ask: Callable[[], Trial], run: Callable[[Trial], Ended], most: int) -> None:
        self._ask, self._run, self._left = ask, run, most
        self._ended: list[Ended] = []

    def collect(self) -> list[Ended]:
        """What the trial came to that was run since, if one was."""
        ended, self._ended = self._ended, []
        return ended

    def next_trial(self) -> Trial | None:
        """Only when it is known what came of the one before."""
        if not self.is_done():
            return None
        if self._left == 0:
            raise SearchOver("as many trials were asked as were wanted")
        self._left -= 1
        return self._ask()

    def start(self, trial: Trial) -> None:
        """Run it, however long that takes."""
        self._ended.append(self._run(trial))

    def is_done(self) -> bool:
        """Whether all that was run is collected."""
        return not self._ended
