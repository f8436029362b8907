"""The loop: ask, run, tell, record. It may be killed at any instant; another one goes on from the record.

record before start     a trial is claimed, its worst case reserved, before the engine hears of it
confirm before forget   a trial is told only when the engine has confirmed its end
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from trimtuner.engines.protocol import End, Engine, Launch, State
from trimtuner.errors import SearchOver
from trimtuner.problem.history import PREEMPTED, Trial
from trimtuner.records import NotOpen, OpenTrial, OverBudget
from trimtuner.session.judging import Verdict, judge
from trimtuner.session.memory import Recorded
from trimtuner.session.owners import HEARTBEAT_SECONDS
from trimtuner.session.study import Study

LaunchOf: TypeAlias = Callable[[str, Trial, int], Launch]  # study, trial, attempt

_PAUSE = 0.1  # seconds between looks at the running trials
_LOOK_FOR_ABANDONED = 10.0  # seconds between looks for trials of processes that died


@dataclass(frozen=True)
class Happening:
    """Something to tell whoever watches the run."""

    kind: str  # "started", "adopted", "ended", "retried"
    trial: Trial
    attempt: int
    text: str = ""


Listener: TypeAlias = Callable[[Happening], None]


@dataclass
class _Watched:
    trial: Trial
    attempt: int
    handle: str
    since: float


class Driver:
    """Runs a study's trials on an engine, some side by side, until there is nothing more to ask."""

    def __init__(
        self,
        study: Study,
        memory: Recorded,
        engine: Engine,
        launch_of: LaunchOf,
        *,
        parallel: int = 1,
        retries: Mapping[str, int] | None = None,
        listener: Listener = lambda _: None,
    ) -> None:
        self.study, self._memory, self.record = study, memory, memory.record
        self._engine, self._launch_of = engine, launch_of
        self._parallel, self._retries, self._listener = parallel, dict(retries or {}), listener
        self._watched: dict[int, _Watched] = {}
        self._began = self.record.version()
        self._is_stopping = False
        self._last_look = self._last_beat = 0.0

    @property
    def running(self) -> list[tuple[Trial, float]]:
        """The trials under way, each with the time when it was started or found."""
        return [(one.trial, one.since) for one in self._watched.values()]

    def stop_asking(self) -> None:
        """Start nothing more; what runs goes on."""
        self._is_stopping = True

    def run(self, tick: Callable[[], None] = lambda: None) -> str:
        """Until the search is over or was asked to stop, and every trial of ours has ended; why it ended."""
        over = "it was asked to stop"
        while True:
            self._keep_in_touch()
            ended = self._collect()
            if not self._is_stopping:
                reason = self._fill()
                over = reason or over
                # What waits for the end of a running trial may be affordable then.
                if reason is not None and not self._watched:
                    return reason
            if self._is_stopping and not self._watched:
                return over
            tick()
            if not ended:
                time.sleep(_PAUSE)

    def _keep_in_touch(self) -> None:
        now = time.monotonic()
        if now - self._last_beat >= HEARTBEAT_SECONDS or not self._last_beat:
            self._last_beat = now
            self.record.heartbeat(self._memory.owner.id)
            self._notice_stop()
        if now - self._last_look >= _LOOK_FOR_ABANDONED or not self._last_look:
            self._last_look = now
            for one in self._memory.abandoned():
                self._adopt(one)

    def _notice_stop(self) -> None:
        if self.record.stop_requested(self._began):
            self._is_stopping = True

    def _adopt(self, one: OpenTrial) -> None:
        """Go on watching a trial whose process died; one that never came to start is started now."""
        if self.record.adopt(one.trial.number, one.owner, self._memory.owner.id):
            self._listener(Happening("adopted", one.trial, one.attempt))
            self._start(one.trial, one.attempt)

    def _fill(self) -> str | None:
        """Ask and start until every place is taken; why nothing more is asked, if so."""
        while len(self._watched) < self._parallel:
            try:
                trial = self.study.ask()
            except SearchOver as over:
                return str(over)
            self._start(trial, 1)
        return None

    def _start(self, trial: Trial, attempt: int) -> None:
        """Engines start an attempt once, however often they are asked to."""
        handle = self._engine.start(self._launch_of(self.record.id, trial, attempt))
        self.record.started(trial.number, attempt, handle)
        self._watched[trial.number] = _Watched(trial, attempt, handle, time.time())
        self._listener(Happening("started", trial, attempt))

    def _collect(self) -> bool:
        """Tell the record of every trial that has ended; whether there was one."""
        ended = False
        for one in list(self._watched.values()):
            state = self._engine.poll(one.handle)
            if state.end is not None:
                del self._watched[one.trial.number]
                self._notice_stop()  # who ended the trial may have asked us to stop before
                self._end(one, state, state.end)
                ended = True
        return ended

    def _end(self, one: _Watched, state: State, end: End) -> None:
        verdict = judge(self.study.problem, one.trial, state, end)
        try:
            if self._is_retried(one, verdict):
                self._retry(one, verdict, end)
            else:
                self._finish(one, verdict)
        except NotOpen:
            return  # another process, which took us for dead, was first

    def _is_retried(self, one: _Watched, verdict: Verdict) -> bool:
        failed = verdict.outcome.failed
        return failed is not None and not self._is_stopping and one.attempt <= self._retries.get(failed, 0)

    def _retry(self, one: _Watched, verdict: Verdict, end: End) -> None:
        outcome, failed = verdict.outcome, verdict.outcome.failed or PREEMPTED
        reserve = self._memory.reserve_of(one.trial)
        number = one.trial.number
        try:
            attempt = self.record.retry(number, one.attempt, outcome.cost, end.seconds, failed, reserve)
        except OverBudget:
            self._finish(one, verdict)
            return
        self._listener(Happening("retried", one.trial, attempt, f"{failed}: {verdict.detail}"))
        self._start(one.trial, attempt)

    def _finish(self, one: _Watched, verdict: Verdict) -> None:
        earlier = self.record.charged(one.trial.number)
        self.record.finish(verdict.with_earlier(earlier), one.attempt, verdict.outcome.cost)
        if verdict.detail:
            self.record.log_event("detail", {"attempt": one.attempt, "text": verdict.detail[:500]}, one.trial.number)
        failed = verdict.outcome.failed
        self._listener(Happening("ended", one.trial, one.attempt, f"{failed}: {verdict.detail}" if failed else ""))


def stop_now(memory: Recorded, engine: Engine) -> list[int]:
    """End every running trial of the study; the runs that watch them, or the next one, tell their end."""
    stopped = []
    for one in memory.record.open_trials():
        if one.handle is not None:
            engine.stop(one.handle)
            stopped.append(one.trial.number)
    return stopped
