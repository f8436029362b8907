"""``trimtuner run``: what a person sees while it goes on, and what an interrupt does."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeAlias

from trimtuner.jobs.studies import JobStudy, last_words
from trimtuner.keys.faults import one_printable_line
from trimtuner.problem.history import OVER_LIMIT, History
from trimtuner.state import StudyState
from trimtuner.study.driver import Driver, Happening
from trimtuner.study.telling import brief, money_line, signs
from trimtuner.views.progress import progress, progress_line
from trimtuner.views.spend import money_bar, spend
from trimtuner.views.timeline import timeline, timeline_lines
from trimtuner.views.trials import broken_limits
from trimtuner.views.words import chance, configuration, metric, seconds, usd, words_instead

EXIT_INTERRUPTED = 130
_SECONDS_BETWEEN_LOOKS = 1.0
_BARS_IN_FOOT = 4


def run_job(of: JobStudy, *, is_quiet: bool = False) -> str:
    """Run the study until it is over; why it ended. An interrupt starts nothing more, a second one leaves at once."""
    display = _Display(_Shown() if is_quiet else _Bar() if sys.stderr.isatty() else _Lines(_told))
    driver = of.driver(lambda what: display.happened(look, what))

    def look() -> StudyState:
        return of.state_of(driver.study, driver.record)  # the run's own study, whose models are fitted already

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


Look: TypeAlias = Callable[[], StudyState]  # the study as it stands, read when it is needed


class _Display:
    """What is shown of a run. Whatever goes wrong in showing it, the run goes on, and is told in plain lines."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown

    def __enter__(self) -> _Display:
        self._attempt(lambda shown: shown.begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._attempt(lambda shown: shown.end())

    def say(self, text: str) -> None:
        self._attempt(lambda shown: shown.say(text))

    def happened(self, look: Look, what: Happening) -> None:
        self._attempt(lambda shown: shown.happened(look, what))

    def refresh(self, look: Look, driver: Driver) -> None:
        self._attempt(lambda shown: shown.refresh(look, driver))

    def _attempt(self, show: Callable[[_Shown], None]) -> None:
        try:
            show(self._shown)
        except Exception as error:
            with suppress(Exception):
                self._shown.end()
            self._shown = _Lines(_event)
            with suppress(Exception):  # the terminal itself may be gone
                self._shown.say(
                    f"the display failed; the run goes on and is told in plain lines. {words_instead(error)}"
                )
                show(self._shown)


class _Shown:
    """A way to show a run; this one shows nothing."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def happened(self, look: Look, what: Happening) -> None:
        pass

    def refresh(self, look: Look, driver: Driver) -> None:
        pass


class _Lines(_Shown):
    """Lines for everything that happens."""

    def __init__(self, tell: Callable[[Look, Happening], list[str]]) -> None:
        self._tell = tell

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def happened(self, look: Look, what: Happening) -> None:
        for text in self._tell(look, what):
            self.say(text)


class _Bar(_Shown):
    """A few lines at the foot of the terminal: money, running trials, the recommendation."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._last = 0.0
        self._known: tuple[History, list[str]] | None = None

    def begin(self) -> None:
        self._live.start()

    def end(self) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text)

    def happened(self, look: Look, what: Happening) -> None:
        if what.kind != "started":  # the foot shows what runs
            self.say(f"{time.strftime('%H:%M:%S')} {_text(look(), what)}")
        self._last = 0.0

    def refresh(self, look: Look, driver: Driver) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LOOKS:
            return
        self._last = now
        from rich.text import Text

        self._live.update(Text("\n".join([*_work(look(), driver), *self._knowledge(look)])))

    def _knowledge(self, look: Look) -> list[str]:
        """What is known by now; worked out anew only when something has been told."""
        state = look()
        if self._known is None or self._known[0] is not state.history:
            self._known = (state.history, _knowledge(state))
        return self._known[1]


def _work(state: StudyState, driver: Driver) -> list[str]:
    lines = ["-" * 60, money_bar(spend(state), signs())]
    lines += timeline_lines(timeline(state), signs(), _BARS_IN_FOOT)
    return lines + [
        f"{'waiting' if waiting else 'running'} trial {trial.number}: {brief(trial)}, "
        f"{f'{waiting}, ' if waiting else ''}for {seconds(time.time() - since)}"
        for trial, since, waiting in driver.running
    ]


def _knowledge(state: StudyState) -> list[str]:
    line = progress_line(progress(state), state.problem.goal, signs())
    return [line, f"recommended so far: {_recommended(state)}"]


def _told(look: Look, what: Happening) -> list[str]:
    """What happened, and after a trial's end where that leaves us."""
    state = look()
    ended = [f"{money_line(state)}; recommended: {_recommended(state)}"] if what.kind == "ended" else []
    return [_text(state, what), *ended]


def _event(_look: Look, what: Happening) -> list[str]:
    """What happened, and nothing that would have to be worked out."""
    return [f"trial {what.trial.number} {what.kind}{f' ({what.text})' if what.text else ''}: {brief(what.trial)}"]


def _recommended(state: StudyState) -> str:
    recommendation = state.recommendation
    if recommendation is None:
        return "nothing yet"
    goal = state.problem.goal.metric
    found = recommendation.estimates
    parts = [configuration(recommendation.config)]
    parts.append(f"{goal} {metric(goal, found[goal].mean)}")
    if "cost" in found and goal != "cost":
        parts.append(f"cost {usd(found['cost'].mean)}")
    front = state.front
    if front is not None:
        parts.insert(0, f"the knee of {len(front)} on the front")
    if state.problem.constraints:
        parts.append(f"P(limits) {chance(recommendation.chance_feasible)}")
    return ", ".join(parts)


def _last_words(state: StudyState, what: Happening) -> str:
    """How the log of a failed trial ends: an exit code alone explains nothing."""
    words = "" if state.log_of is None else last_words(state.log_of(what.trial.number, what.attempt))
    return f"; its log ends: {one_printable_line(words)}" if words else ""


def _text(state: StudyState, what: Happening) -> str:
    attempt = f" (attempt {what.attempt})" if what.attempt > 1 else ""
    if what.kind == "in trouble":
        return f"trial {what.trial.number}{attempt} cannot be watched now, trying again: {what.text}"
    if what.kind == "forgotten":
        return what.text
    text = f"trial {what.trial.number}{attempt} {what.kind}: {brief(what.trial)}"
    if what.kind != "ended":
        return f"{text}; {what.text}" if what.text else text
    outcome = next(one for one in state.history.outcomes if one.trial.number == what.trial.number)
    number = f"trial {what.trial.number}{attempt}"
    paid = f" for {usd(outcome.cost)}" if outcome.cost else ""
    if outcome.is_over_limit:
        return f"{number} {what.text.removeprefix(f'{OVER_LIMIT}: ')}{paid}: {brief(what.trial)}"
    if outcome.failed is not None:
        return f"{number} failed ({what.text}){paid}: {brief(what.trial)}{_last_words(state, what)}"
    problem, measured = state.problem, outcome.measurements[-1].metrics
    found = ", ".join(f"{name} {metric(name, measured[name])}" for name in problem.reported_metrics)
    broken = " and ".join(broken_limits(problem, outcome))
    lasted = f"in {seconds(outcome.time or 0.0)}{paid}{f', breaks {broken}' if broken else ''}"
    return f"{number} measured {f'{found} ' if found else ''}{lasted}: {brief(what.trial)}"
