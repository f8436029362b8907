"""The loop: ask, run, tell, record. It may be killed at any instant; another one goes on from the record.

record before start     a trial is claimed, its worst case reserved, before the engine hears of it
confirm before forget   a trial is told only when the engine has confirmed its end
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from trimtuner.engines.protocol import EXIT, LOST, AttemptState, End, Engine, EngineTrouble, Launch
from trimtuner.errors import InputError, SearchOver
from trimtuner.problem.history import PREEMPTED, Trial
from trimtuner.records import NotOpen, OpenTrial, OverBudget, OverTime, RecordGone
from trimtuner.study.judging import BAD_METRIC, SILENT, Verdict, judge
from trimtuner.study.memory import Recorded
from trimtuner.study.owners import HEARTBEAT_SECONDS
from trimtuner.study.study import Study, forgotten_text

LaunchOf: TypeAlias = Callable[[str, Trial, int], Launch]  # study, trial, attempt

_WORKS_BELOW = "works below"  # a run, before its first start: which owner it is, and where it keeps attempts
_PAUSE = 0.1  # seconds between looks at the running trials
_LOOK_FOR_ABANDONED = 10.0  # seconds between looks for trials of processes that died
_PATIENCE_WITH_TROUBLE = 900.0  # seconds: time to renew a credential, or for a network to come back
_PAUSE_IN_TROUBLE = 5.0
_COMMANDS_FAULT = (EXIT, SILENT, BAD_METRIC)
_TRIALS_TO_BLAME_IT = 5  # that fail so before any is measured: no model is needed to see that the command is wrong


@dataclass(frozen=True)
class Happening:
    """Something to tell whoever watches the run."""

    kind: str  # "started", "waiting", "began", "adopted", "ended", "retried", "in trouble", "forgotten"
    trial: Trial  # of several, the last
    attempt: int
    text: str = ""


Listener: TypeAlias = Callable[[Happening], None]


@dataclass
class _Watched:
    trial: Trial
    attempt: int
    handle: str | None  # None: the engine could not start it yet
    since: float
    seen_seconds: float = 0.0  # that an earlier watcher saw it run, or may have
    may_have_run: bool = False  # that watcher did not come to say whether it was started
    begun_below: Path | None = None  # nor where, but it had its folder there
    waiting: str = ""  # for what, while it has not begun


@dataclass(frozen=True)
class _Trouble:
    """What the engine cannot do for now, and since when; empty where all is well."""

    text: str = ""
    since: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.text)


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
        self._trouble = _Trouble()
        self._has_worked = False  # whether the engine ever did as asked
        self._has_said_where = False
        self._faults = 0  # of the command, in this run

    @property
    def running(self) -> list[tuple[Trial, float, str]]:
        """The trials under way, each with the time when it was started or found, and what it waits for, if it does."""
        return [(one.trial, one.since, one.waiting) for one in self._watched.values()]

    def stop_asking(self) -> None:
        """Start nothing more; what runs goes on."""
        self._is_stopping = True

    def run(self, tick: Callable[[], None] = lambda: None) -> str:
        """Until the search is over or was asked to stop, and every trial of ours has ended; why it ended."""
        with self._memory.beating():
            self._forget_bad_start()
            try:
                return self._run(tick)
            except RecordGone as gone:
                raise RecordGone(f"{gone}. {self._end_unrecorded()}") from None

    def _run(self, tick: Callable[[], None]) -> str:
        over = "it was asked to stop"
        while True:
            self._keep_in_touch()
            ended = self._collect()
            if not self._is_stopping and not self._trouble:
                reason = self._fill()
                over = reason or over
                # What waits for the end of a running trial may be affordable then.
                if reason is not None and not self._watched:
                    self._adopt_abandoned()  # the last one to leave leaves nothing open that it could close
                if reason is not None and not self._watched:
                    return reason
            if self._is_stopping and not any(one.handle for one in self._watched.values()):
                return over  # what never came to start is left to the next run
            tick()
            if not ended:
                time.sleep(_PAUSE_IN_TROUBLE if self._trouble else _PAUSE)

    def _forget_bad_start(self) -> None:
        """The command was wrong in an earlier run; whoever runs it again has mended it."""
        failed = [one for one in self.study.history.failures_at_first if one.failed in _COMMANDS_FAULT]
        if len(failed) < _TRIALS_TO_BLAME_IT:
            return
        with suppress(InputError):  # another run, started with this one, was first
            self.record.forget([one.trial.number for one in failed])
            self._listener(Happening("forgotten", failed[-1].trial, 1, forgotten_text(failed)))

    def _end_unrecorded(self) -> str:
        """End what runs, because nobody could write down what it costs; the next run finds how each ended."""
        ended = []
        for one in self._watched.values():
            if one.handle is not None:
                with suppress(EngineTrouble):  # its own limit ends it
                    self._engine.stop(one.handle)
                    ended.append(str(one.trial.number))
        return f"Ended: trial {', '.join(ended)}" if ended else "Nothing was running"

    def _keep_in_touch(self) -> None:
        self.record.require_there()
        now = time.monotonic()
        if now - self._last_beat >= HEARTBEAT_SECONDS or not self._last_beat:
            self._last_beat = now
            self._notice_stop()
        if now - self._last_look >= _LOOK_FOR_ABANDONED or not self._last_look:
            self._last_look = now
            self._adopt_abandoned()

    def _adopt_abandoned(self) -> None:
        for one in self._memory.abandoned():
            self._adopt(one)

    def _notice_stop(self) -> None:
        if self.record.stop_requested(self._began):
            self._is_stopping = True

    def _adopt(self, one: OpenTrial) -> None:
        """Go on watching a trial whose process died; one that never came to start is started now."""
        seen_seconds = self._memory.seconds_seen(one)
        if not self._memory.adopt(one, seen_seconds):
            return
        self._listener(Happening("adopted", one.trial, one.attempt))
        if one.handle is None:
            begun_below = self._folder_of(one.owner)
            self._start(
                _Watched(
                    one.trial, one.attempt, None, time.time(), seen_seconds, may_have_run=True, begun_below=begun_below
                )
            )
            return
        launch = self._launch_of(self.record.id, one.trial, one.attempt)
        handle = self._engine.take_over(launch, one.handle)
        self._watched[one.trial.number] = _Watched(one.trial, one.attempt, handle, time.time(), seen_seconds)

    def _fill(self) -> str | None:
        """Ask and start until every place is taken; why nothing more is asked, if so."""
        while len(self._watched) < self._parallel and not self._trouble:
            if self._faults >= _TRIALS_TO_BLAME_IT and not self.study.history.measurements:
                return (
                    f"{self._faults} trials failed and none was measured, so it seems to be the command; "
                    "see how their logs end, mend it, and run again"
                )
            try:
                trial = self.study.ask()
            except SearchOver as over:
                return str(over)
            self._start(_Watched(trial, 1, None, time.time()))
        return None

    def _start(self, one: _Watched) -> None:
        self._watched[one.trial.number] = one
        self._begin(one)

    def _begin(self, one: _Watched) -> bool:
        """Have it started; engines start an attempt once, however often they are asked to. Whether it worked."""
        launch = self._launch_of(self.record.id, one.trial, one.attempt)
        try:
            self._say_where(launch)
            one.handle = self._engine.start(replace(launch, may_have_run=one.may_have_run, begun_below=one.begun_below))
        except EngineTrouble as trouble:
            self._bear(one, trouble)
            return False
        self._has_worked = True
        self.record.started(one.trial.number, one.attempt, one.handle)
        self._listener(Happening("started", one.trial, one.attempt))
        return True

    def _say_where(self, launch: Launch) -> None:
        """Before anything starts: should we be gone before a start is written down, it is looked for there."""
        if not self._has_said_where:
            self.record.log_event(
                _WORKS_BELOW, {"owner": self._memory.owner.id, "folder": str(launch.folder.resolve())}
            )
            self._has_said_where = True

    def _folder_of(self, owner: str) -> Path | None:
        """Where a process of before kept the study's attempts, if it ever came to start one."""
        said = [event.detail for event in self.record.events() if event.kind == _WORKS_BELOW]
        return next((Path(str(one["folder"])) for one in said if one["owner"] == owner), None)

    def _collect(self) -> bool:
        """Tell the record of every trial that has ended; whether there was one."""
        ended = False
        is_well = True
        for one in list(self._watched.values()):
            if one.handle is None:
                is_well = self._begin(one) and is_well
                continue
            try:
                state = self._engine.poll(one.handle)
                self._has_worked = True
            except EngineTrouble as trouble:
                is_well = False
                self._bear(one, trouble)
                continue
            if state.end is not None:
                del self._watched[one.trial.number]
                self._notice_stop()  # who ended the trial may have asked us to stop before
                self._end(one, state, state.end)
                ended = True
            else:
                self._note_waiting(one, one.handle, state.waiting)
        if is_well:
            self._trouble = _Trouble()
        return ended

    def _note_waiting(self, one: _Watched, handle: str, why: str) -> None:
        """Say that it waits, and when it has begun; until then no time of it has passed."""
        if bool(why) == bool(one.waiting):
            one.waiting = why
            return
        one.waiting, one.since = why, time.time()
        with suppress(NotOpen):  # another process, which took us for dead, was first
            if why:
                self.record.waits(one.trial.number, one.attempt, why)
            else:
                self.record.started(one.trial.number, one.attempt, handle)
            self._listener(Happening("waiting" if why else "began", one.trial, one.attempt, why))

    def _bear(self, one: _Watched, trouble: EngineTrouble) -> None:
        """Say it once, and look again for a while: the trial is as safe as its dead-man limit makes it."""
        text, now = str(trouble), time.monotonic()
        is_patience_over = self._trouble and now - self._trouble.since > _PATIENCE_WITH_TROUBLE
        if is_patience_over or not self._has_worked:
            raise trouble
        if text != self._trouble.text:
            self._listener(Happening("in trouble", one.trial, one.attempt, text))
        self._trouble = _Trouble(text, self._trouble.since if self._trouble else now)

    def _end(self, one: _Watched, state: AttemptState, end: End) -> None:
        if end.kind == LOST and (end.seconds == 0.0 or not one.may_have_run):  # else we started it, and saw all of it
            end = replace(end, seconds=max(end.seconds, one.seen_seconds))
        verdict = judge(self.study.problem, one.trial, state, end)
        try:
            if self._is_retried(one, verdict):
                self._retry(one, verdict, end)
            else:
                self._finish(one, verdict)
        except NotOpen:
            return  # another process, which took us for dead, was first
        if one.handle is not None:
            self._engine.forget(one.handle)

    def _is_retried(self, one: _Watched, verdict: Verdict) -> bool:
        failed = verdict.outcome.failed
        return failed is not None and not self._is_stopping and one.attempt <= self._retries.get(failed, 0)

    def _retry(self, one: _Watched, verdict: Verdict, end: End) -> None:
        outcome, failed = verdict.outcome, verdict.outcome.failed or PREEMPTED
        reserve = self._memory.reserve_of(one.trial)
        number = one.trial.number
        try:
            cap = self._memory.time_cap
            attempt = self.record.retry(number, one.attempt, outcome.cost, end.seconds, failed, reserve, cap)
        except (OverBudget, OverTime):
            self._finish(one, verdict)
            return
        self._listener(Happening("retried", one.trial, attempt, f"{failed}: {verdict.detail}"))
        self._start(_Watched(one.trial, attempt, None, time.time()))

    def _finish(self, one: _Watched, verdict: Verdict) -> None:
        earlier = self.record.charged(one.trial.number)
        self.record.finish(verdict.with_earlier(earlier), one.attempt, verdict.outcome.cost)
        if verdict.detail:
            self.record.log_event("detail", {"attempt": one.attempt, "text": verdict.detail[:500]}, one.trial.number)
        failed = verdict.outcome.failed
        self._faults += failed in _COMMANDS_FAULT
        self._listener(Happening("ended", one.trial, one.attempt, f"{failed}: {verdict.detail}" if failed else ""))


def stop_now(memory: Recorded, engine: Engine) -> list[int]:
    """End every trial of the study that the engine finds from here; the run that watches one, or the next, tells it."""
    handles = {(found.trial, found.attempt): found.handle for found in engine.find(memory.record.id)}
    stopped = []
    for one in memory.record.open_trials():
        handle = handles.get((one.trial.number, one.attempt))
        if handle is not None:
            engine.stop(handle)
            stopped.append(one.trial.number)
    return stopped
