"""The loop that functions, tables and engines share, with runners whose every step is known."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Barrier

import trimtuner as tt
from trimtuner.errors import SearchOver
from trimtuner.study.loop import Ended, Runner, rounds
from trimtuner.study.study import Study
from waiting import PATIENCE_SECONDS


def study(trials: int) -> Study:
    space = tt.Space({"x": tt.Choice(list(range(20)))}, fractions=[1])
    return Study(space, maximize="accuracy", method="random", stop=tt.AfterTrials(trials))


def seen(runner: Runner[Ended]) -> tuple[list[Ended], str]:
    """All that ended, in order, and why the loop did."""
    found: list[Ended] = []
    try:
        for ended in rounds(runner):
            found += ended
    except SearchOver as over:
        return found, str(over)
    raise AssertionError("the loop ended without a reason")


class InThreads:
    """Runs so many trials side by side, in threads; tells them in the thread that goes round the loop."""

    def __init__(self, of: Study, measure: Callable[[tt.Trial], float], places: int) -> None:
        self._study, self._measure, self._places = of, measure, places
        self._pool = ThreadPoolExecutor(places)
        self._running: dict[Future[float], tt.Trial] = {}

    def collect(self) -> list[int]:
        ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [self._tell(self._running.pop(one), one.result()) for one in ended]

    def next_trial(self) -> tt.Trial | None:
        return self._study.ask() if len(self._running) < self._places else None

    def start(self, trial: tt.Trial) -> None:
        self._running[self._pool.submit(self._measure, trial)] = trial

    def is_done(self) -> bool:
        return not self._running

    def _tell(self, trial: tt.Trial, accuracy: float) -> int:
        self._study.tell(trial, accuracy=accuracy, time=1.0)
        return trial.number


class AfterAnother:
    """A search that has nothing to ask as long as a trial runs, as when its reserve is all the money that is left."""

    def __init__(self, trials: list[tt.Trial]) -> None:
        self._trials, self._running = trials, list[tt.Trial]()

    def collect(self) -> list[tt.Trial]:
        ended, self._running = self._running, []
        return ended

    def next_trial(self) -> tt.Trial:
        if self._running or not self._trials:
            raise SearchOver("too dear" if self._running else "nothing left")
        return self._trials.pop(0)

    def start(self, trial: tt.Trial) -> None:
        self._running.append(trial)

    def is_done(self) -> bool:
        return not self._running


def test_a_runner_with_three_places_has_three_trials_run_at_once_and_each_is_told():
    of, together = study(trials=9), Barrier(3)

    def measure(trial: tt.Trial) -> float:
        together.wait(PATIENCE_SECONDS)  # which a trial that runs alone does not pass
        return trial.number / 10

    told, over = seen(InThreads(of, measure, places=3))
    assert sorted(told) == list(range(9))
    assert "the search is over" in over
    assert not of.history.pending


def test_what_is_too_dear_while_a_trial_runs_is_asked_again_when_that_has_ended():
    trials = [tt.Trial(number, {"x": number}, 1.0) for number in range(3)]
    assert seen(AfterAnother(list(trials))) == (trials, "nothing left")


def test_trials_in_turn_are_as_many_as_were_wanted_each_asked_when_the_one_before_was_seen_to_end():
    of = study(trials=9)
    steps: list[str] = []

    def run(trial: tt.Trial) -> int:
        steps.append(f"asked {trial.number}")
        of.tell(trial, accuracy=0.5, time=1.0)
        return trial.number

    for number in of.in_turn(run, 3):
        steps.append(f"saw {number}")
    assert steps == ["asked 0", "saw 0", "asked 1", "saw 1", "asked 2", "saw 2"]


def test_who_leaves_the_loop_has_asked_nothing_more():
    of = study(trials=9)
    for _ in of.in_turn(lambda trial: of.tell(trial, accuracy=0.5, time=1.0), 9):
        if len(of.history.outcomes) == 2:
            break
    assert len(of.history.outcomes) == 2
    assert not of.history.pending
