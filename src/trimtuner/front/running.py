"""``trimtuner run``: what a person sees while it goes on, and what an interrupt does."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from trimtuner.front.jobfile.faults import one_printable_line
from trimtuner.front.look import Look, brief, money_line, signs
from trimtuner.front.studies import JobStudy
from trimtuner.front.subjects import last_words, subject_of
from trimtuner.session.driver import Driver, Happening
from trimtuner.views.progress import progress
from trimtuner.views.spend import spend
from trimtuner.views.terminal import money_bar, progress_line, timeline_lines
from trimtuner.views.trials import timeline
from trimtuner.views.words import seconds, usd

EXIT_INTERRUPTED = 130
_SECONDS_BETWEEN_LOOKS = 1.0
_BARS_IN_FOOT = 4


def run_job(of: JobStudy, *, is_quiet: bool = False) -> str:
    """Run the study until it is over; why it ended. An interrupt starts nothing more, a second one leaves at once."""
    display = _Bar() if sys.stderr.isatty() and not is_quiet else _Lines(is_quiet)
    driver = of.driver(lambda what: display.happened(look, what))
    look = Look(of, driver.study, driver.record)  # the run's own, whose models are fitted already
    with _interrupts(driver, display.say), display:
        return driver.run(lambda: display.refresh(look, driver))


@contextmanager
def _interrupts(driver: Driver, say: Callable[[str], None]) -> Iterator[None]:
    """Trials are in sessions of their own: an interrupt reaches only us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            say("left at once; running trials go on until their time-out, and the next run adopts them")
            raise SystemExit(EXIT_INTERRUPTED)
        driver.stop_asking()
        say("stopping: waiting for the running trials to end; interrupt again to leave at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Lines:
    """A line for everything that happens."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_quiet = is_quiet

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        if not self._is_quiet:
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def refresh(self, look: Look, driver: Driver) -> None:
        pass

    def happened(self, look: Look, what: Happening) -> None:
        if self._is_quiet:
            return
        self.say(_text(look, what))
        if what.kind == "ended":
            self.say(f"{money_line(look)}; recommended: {_recommended(look)}")


class _Bar:
    """A few lines at the foot of the terminal: money, running trials, the recommendation."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._last = 0.0

    def __enter__(self) -> _Bar:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text)

    def happened(self, look: Look, what: Happening) -> None:
        if what.kind != "started":  # the foot shows what runs
            self.say(f"{time.strftime('%H:%M:%S')} {_text(look, what)}")
        self._last = 0.0

    def refresh(self, look: Look, driver: Driver) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LOOKS:
            return
        self._last = now
        from rich.text import Text

        self._live.update(Text("\n".join(_foot(look, driver))))


def _foot(look: Look, driver: Driver) -> list[str]:
    recommended = _recommended(look)  # fits the model, where that is not done yet
    subject = subject_of(look.of, look.study, look.view)
    lines = ["-" * 60, money_bar(spend(subject), signs())]
    lines += timeline_lines(timeline(subject), signs(), _BARS_IN_FOOT)
    lines += [
        f"running trial {trial.number}: {brief(trial)}, for {seconds(time.time() - since)}"
        for trial, since in driver.running
    ]
    lines.append(progress_line(progress(subject), look.study.problem.goal, signs()))
    return [*lines, f"recommended so far: {recommended}"]


def _recommended(look: Look) -> str:
    recommendation = look.recommendation()
    if recommendation is None:
        return "nothing yet"
    goal = look.study.problem.goal.metric
    found = recommendation.estimates
    parts = [" ".join(f"{name}={value}" for name, value in recommendation.config.items())]
    parts.append(f"{goal} {found[goal].mean:.4g}")
    if "cost" in found and goal != "cost":
        parts.append(f"cost {usd(found['cost'].mean)}")
    front = look.front()
    if front is not None:
        parts.insert(0, f"the knee of {len(front)} on the front")
    parts.append(f"P(limits) {recommendation.chance_feasible:.2f}")
    return ", ".join(parts)


def _last_words(look: Look, what: Happening) -> str:
    """How the log of a failed trial ends: an exit code alone explains nothing."""
    words = last_words(look.of, look.view.id, what.trial.number, what.attempt)
    return f"; its log ends: {one_printable_line(words)}" if words else ""


def _text(look: Look, what: Happening) -> str:
    attempt = f" (attempt {what.attempt})" if what.attempt > 1 else ""
    if what.kind == "in trouble":
        return f"trial {what.trial.number}{attempt} cannot be watched now, trying again: {what.text}"
    if what.kind == "forgotten":
        return what.text
    text = f"trial {what.trial.number}{attempt} {what.kind}: {brief(what.trial)}"
    if what.kind != "ended":
        return f"{text}; {what.text}" if what.text else text
    outcome = next(one for one in look.history.outcomes if one.trial.number == what.trial.number)
    number = f"trial {what.trial.number}{attempt}"
    if outcome.failed is not None:
        return f"{number} failed ({what.text}), cost {usd(outcome.cost)}: {brief(what.trial)}{_last_words(look, what)}"
    goal = look.study.problem.goal.metric
    measured = outcome.measurements[-1].metrics[goal]
    paid = f"in {seconds(outcome.time or 0.0)} for {usd(outcome.cost)}"
    return f"{number} measured {goal} {measured:.4g} {paid}: {brief(what.trial)}"
