"""The one loop of a search: tell what has ended, ask while there is a place, start what was asked.

Functions (``Study.optimize``), tables (``replay``) and engines (``Driver``) go round it; who runs a trial
is where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, Protocol, TypeVar

from trimtuner.errors import SearchOver
from trimtuner.problem.history import Trial

Ended = TypeVar("Ended")

_ENOUGH = "as many trials were asked as were wanted"


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


class InThreads(Generic[Ended]):
    """Runs up to so many trials, some of them side by side in the threads of a pool."""

    def __init__(
        self, ask: Callable[[], Trial], run: Callable[[Trial], Ended], most: int, pool: ThreadPoolExecutor, places: int
    ) -> None:
        self._ask, self._run, self._left, self._pool, self._places = ask, run, most, pool, places
        self._running: set[Future[Ended]] = set()

    def collect(self) -> list[Ended]:
        """What ended first of all that runs, waited for."""
        ended, self._running = wait(self._running, return_when=FIRST_COMPLETED)
        return [one.result() for one in ended]

    def next_trial(self) -> Trial | None:
        """Where a thread is free."""
        if len(self._running) == self._places:
            return None
        if self._left == 0:
            raise SearchOver(_ENOUGH)
        self._left -= 1
        return self._ask()

    def start(self, trial: Trial) -> None:
        """In a thread of its own."""
        self._running.add(self._pool.submit(self._run, trial))

    def is_done(self) -> bool:
        """Whether no thread is at work."""
        return not self._running


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
            raise SearchOver(_ENOUGH)
        self._left -= 1
        return self._ask()

    def start(self, trial: Trial) -> None:
        """Run it, however long that takes."""
        self._ended.append(self._run(trial))

    def is_done(self) -> bool:
        """Whether all that was run is collected."""
        return not self._ended
