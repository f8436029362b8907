"""Views as HTML, no more often than they change: what is read at once, what needs a model in a process of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import get_context, parent_process
from pathlib import Path

from trimtuner.errors import TrimTunerError
from trimtuner.jobs.studies import JobStudy
from trimtuner.state import StudyState
from trimtuner.views import every
from trimtuner.views.blocks import EFFORTS, READING, Effort, View, html_of
from trimtuner.views.standing import Standing, standing_of
from trimtuner.views.words import count_of, words_instead

# After its work it rests so many times as long, so that a study that runs on this machine is not slowed.
_PAUSE_TIMES = 5.0
_PAUSE_AT_MOST = 60.0  # seconds
_PAUSES_AT_MOST: dict[Effort, float] = {"glance": 0.4, "facts": 10.0, "model": _PAUSE_AT_MOST, "checks": _PAUSE_AT_MOST}
_GLANCE_SECONDS, _FACTS_SECONDS = 0.5, 10.0  # after which it is told anew how far trials are, while they run
_NICE = 10
_MODELLED_AT_MOST = 2_000  # measurements, by Gaussian processes: ten seconds; their work grows with the cube
_NO_STATE = "trouble"  # of what could not be read or made: it is tried again
_WORKER_LOST = (
    "The process that fits the model was ended from outside, perhaps for want of memory; it is tried again within a "
    "minute. 'trimtuner status' tells the same without the page."
)


@dataclass(frozen=True)
class Rendered:
    """The views of one state of a record, as HTML; where one could not be made, it says why."""

    state: str
    html: dict[str, str]
    seconds: float  # that it took


@dataclass
class Shown:
    """One study on the page: what was rendered last of it, and what is being rendered."""

    name: str
    path: Path
    of: JobStudy
    watched: JobStudy | None = None  # None: it has not begun, or cannot be read
    trouble: str = ""  # why there is nothing to watch
    runs: int = 0  # at work
    subject: StudyState | None = None  # as it was read last
    read_of: str = ""  # the version, and how many were at work then
    standing: Standing | None = None  # in one line, of the version that was looked at last
    looked_at: str = ""
    rendered: dict[Effort, Rendered] = field(default_factory=dict)
    pending: dict[Effort, Future[Rendered]] = field(default_factory=dict)
    rests_until: dict[Effort, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    facts_lock: threading.Lock = field(default_factory=threading.Lock)

    def made(self, view: View) -> Rendered | None:
        """What was rendered of a view: of its own effort, or until then of what the record says already."""
        found = self.rendered.get(view.effort)
        if found is None and view.at_once is not None:
            found = self.rendered.get("glance")
        return found

    @property
    def said(self) -> str:
        """Who is at work, in words."""
        if self.trouble:
            return self.trouble
        runs = count_of(self.runs, "run") if self.runs else "no run"
        return f"{runs} at work{'; the model is being fitted anew' if self.pending else ''}"


class Renderer:
    """Reads the record where it is called, and asks a worker for the rest without waiting for it."""

    def __init__(self) -> None:
        self._pool = _new_pool()

    def close(self) -> None:
        """End the worker, in the midst of what nobody will see, without waiting for it."""
        for worker in list(self._pool._processes.values()):
            worker.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self, shown: Shown) -> None:
        """See how it stands, without a model: for a list of many."""
        with shown.lock:
            version, watched = _version_of(shown), shown.watched
            if version is None or watched is None:
                shown.standing, shown.looked_at = None, shown.trouble
                return
            seen = f"{version}, {watched.runs()} runs"
            if seen == shown.looked_at:
                return
            try:
                shown.standing = standing_of(watched.judged_state())
            except Exception as error:
                shown.standing, shown.trouble = None, words_instead(error)
            shown.looked_at = seen

    def glance(self, shown: Shown) -> None:
        """See to the first screen, as the record has it by now: whoever opens the page waits for nothing else."""
        with shown.lock:
            version, watched = _version_of(shown), shown.watched
            if version is None or watched is None:
                return
            shown.runs = watched.runs()
            # Who is at work is shown too, and of that the record's version says nothing.
            known = f"{version}, {shown.runs} runs"
            state = f"{known}{_signs_of_life(shown, _GLANCE_SECONDS)}"
            if _is_due(shown, "glance", state):
                _take(shown, "glance", _rendered(partial(_read, shown, watched), "glance", state))
                shown.read_of = known

    def refresh(self, shown: Shown) -> None:
        """Take what is done, and see to what has changed."""
        self.glance(shown)
        self._facts(shown)
        with shown.lock:
            self._collect(shown)
            version = _version_of(shown)
            for effort in EFFORTS if version is not None else ():
                if effort not in READING and effort not in shown.pending and _is_due(shown, effort, str(version)):
                    shown.pending[effort] = self._pool.submit(render, str(shown.path), effort, str(version))

    def _facts(self, shown: Shown) -> None:
        """The rest of what was read; nobody who opens the page waits for it."""
        with shown.facts_lock:
            state, subject = f"{shown.read_of}{_signs_of_life(shown, _FACTS_SECONDS)}", shown.subject
            if subject is not None and _is_due(shown, "facts", state):
                _take(shown, "facts", _rendered(lambda: subject, "facts", state))

    def _collect(self, shown: Shown) -> None:
        for effort, future in list(shown.pending.items()):
            if not future.done():
                continue
            del shown.pending[effort]
            if future.cancelled() or future.exception() is not None:
                # A worker that was killed, say for want of memory, is replaced; what it was asked is asked again.
                self._pool = _new_pool()
                _take(shown, effort, Rendered(_NO_STATE, _instead(effort, _WORKER_LOST), _PAUSE_AT_MOST))
            else:
                _take(shown, effort, future.result())


def render(path: str, effort: Effort, state: str) -> Rendered:
    """In the worker: all views of one effort, as the record stands."""
    return _rendered(lambda: _patient(_watched(path).judged_state()), effort, state)


def _rendered(read: Callable[[], StudyState], effort: Effort, state: str) -> Rendered:
    begin = time.monotonic()
    try:
        html = _html(read(), effort)
    except Exception as error:
        html, state = _instead(effort, words_instead(error)), _NO_STATE
    return Rendered(state, html, time.monotonic() - begin)


def _read(shown: Shown, watched: JobStudy) -> StudyState:
    """The study as it stands by now, which is kept to be asked about."""
    shown.subject = watched.judged_state()
    return shown.subject


def _instead(effort: Effort, words: str) -> dict[str, str]:
    """The same words in the place of every view of that effort."""
    shown = (view for view in every.VIEWS if view.effort == effort or (effort == "glance" and view.at_once is not None))
    return {view.name: html_of([words]) for view in shown}


def _html(subject: StudyState, effort: Effort) -> dict[str, str]:
    made = {view.name: view.html(subject) for view in every.VIEWS if view.effort == effort}
    known = {view.name: view.html_at_once(subject) for view in every.VIEWS if effort == "glance"}
    return made | {name: html for name, html in known.items() if html is not None}


def _signs_of_life(shown: Shown, every_seconds: float) -> str:
    """What changes while trials run and the record does not: the time, since views tell how far they are."""
    subject = shown.subject
    return f", {time.time() // every_seconds:.0f}" if shown.runs and subject and subject.history.pending else ""


def _is_due(shown: Shown, effort: Effort, state: str) -> bool:
    """Whether it is to be made anew: it is of another state, and its maker has rested."""
    last = shown.rendered.get(effort)
    return (last is None or last.state != state) and time.monotonic() >= shown.rests_until.get(effort, 0.0)


def _take(shown: Shown, effort: Effort, done: Rendered) -> None:
    most = _PAUSES_AT_MOST[effort]
    shown.rendered[effort] = done
    shown.rests_until[effort] = time.monotonic() + min(_PAUSE_TIMES * done.seconds, most)


def _patient(subject: StudyState) -> StudyState:
    """Who looks at a page does not wait for the model of thousands of measurements, where that takes minutes."""
    if subject.recipe.surrogate.takes_thousands:
        return subject
    return replace(subject, modelled_at_most=_MODELLED_AT_MOST)


@cache
def _watched(path: str) -> JobStudy:
    return JobStudy.at(Path(path))


def _version_of(shown: Shown) -> int | None:
    """The version of the record, by one small query; nothing where there is no record yet."""
    try:
        if shown.watched is None:
            shown.watched = JobStudy(shown.of.job)  # opened anew
        version = shown.watched.record.version()
        shown.trouble = ""
        return version
    except TrimTunerError as error:
        shown.watched, shown.trouble = None, str(error)
        return None


def _new_pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"), initializer=_be_modest)


def _be_modest() -> None:
    """Give way to everybody else, leave interrupts to the server, and end with it however it ends."""
    os.nice(_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(1)
