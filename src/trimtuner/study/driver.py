"""The loop on an engine: ask, run, tell, record. It may be killed at any instant; another one goes on from the record.

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
from trimtuner.problem.history import PREEMPTED, Measurement, Trial
from trimtuner.problem.problem import limits_in_words
from trimtuner.records import Event, NotOpen, OpenTrial, OverBudget, OverTime, Record, RecordGone
from trimtuner.records.codec import decode_measurements, encode_measurements
from trimtuner.records.facts import NOTED, OVER, REPEATED, RETRIED
from trimtuner.state import ASKED_TO_STOP
from trimtuner.study.judging import BAD_METRIC, SILENT, Verdict, judge, judge_going_on
from trimtuner.study.loop import rounds
from trimtuner.study.memory import Recorded
from trimtuner.study.owners import HEARTBEAT_SECONDS
from trimtuner.study.repeating import mean_of
from trimtuner.study.study import Study, forgotten_text

LaunchOf: TypeAlias = Callable[[str, Trial, int], Launch]  # study, trial, attempt

_WORKS_BELOW = "works below"  # a run, before its first start: which owner it is, and where it keeps attempts
_RUN = "run"  # of a trial that is the mean of several: what one of them measured
_PAUSE = 0.1  # seconds between looks at the running trials
_LOOK_FOR_ABANDONED = 10.0  # seconds between looks for trials of processes that died
_PATIENCE_WITH_TROUBLE = 900.0  # seconds: time to renew a credential, or for a network to come back
_PAUSE_IN_TROUBLE = 5.0
_COMMANDS_FAULT = (EXIT, SILENT, BAD_METRIC)
_TRIALS_TO_BLAME_IT = 5  # that fail so before any is measured: no model is needed to see that the command is wrong


@dataclass(frozen=True)
class Happening:
    """Something to tell whoever watches the run."""

    kind: str  # a word: started, waiting, began, adopted, noted, retried, repeated, ended, in trouble, forgotten
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
    noted: tuple[str, ...] = ()  # what of it was told besides


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
        repeats: int = 1,
        listener: Listener = lambda _: None,
    ) -> None:
        self.study, self._memory, self.record = study, memory, memory.record
        self._engine, self._launch_of = engine, launch_of
        self._parallel, self._retries, self._listener = parallel, dict(retries or {}), listener
        self._repeats = repeats
        self._watched: dict[int, _Watched] = {}
        self._began = self.record.version()
        self._is_stopping = False
        self._last_look = self._last_beat = 0.0
        self._trouble = _Trouble()
        self._has_worked = False  # whether the engine ever did as asked
        self._has_said_where = False
        self._faults = 0  # of the command, in this run
        self._over_limit = 0  # of the trials that ended in this run

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
            turns = rounds(self)
            try:
                while True:
                    ended = next(turns)
                    tick()
                    if self._watched and not ended:
                        time.sleep(_PAUSE_IN_TROUBLE if self._trouble else _PAUSE)
            except SearchOver as over:
                return self._written_down(str(over))
            except RecordGone as gone:
                raise RecordGone(f"{gone}. {self._end_unrecorded()}") from None

    def _written_down(self, why: str) -> str:
        """Why the search is over, in the record too, for whoever looks at it later."""
        if self.record.why_over() != why:
            self.record.log_event(OVER, {"why": why})
        return why

    def collect(self) -> list[int]:
        """Tell the record of every trial that has ended; their numbers."""
        self._keep_in_touch()
        ended = []
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
            self._take_notes(one, state.notes)
            if state.end is not None:
                del self._watched[one.trial.number]
                self._notice_stop()  # who ended the trial may have asked us to stop before
                self._end(one, state, state.end)
                ended.append(one.trial.number)
            else:
                self._note_waiting(one, one.handle, state.waiting)
        if is_well:
            self._trouble = _Trouble()
        return ended

    def next_trial(self) -> Trial | None:
        """The next to start, where a place is free and the engine well."""
        if self._is_stopping:
            raise SearchOver(ASKED_TO_STOP)
        if self._trouble or len(self._watched) >= self._parallel:
            return None
        if self._faults >= _TRIALS_TO_BLAME_IT and not self.study.history.measurements:
            raise SearchOver(
                f"{self._faults} trials failed and none was measured, so it seems to be the command; "
                "see how their logs end, mend it, and run again"
            )
        if self._over_limit >= _TRIALS_TO_BLAME_IT and not self.study.history.measurements:
            limits = limits_in_words(self.study.problem.limits_on_full_runs)
            raise SearchOver(
                f"{self._over_limit} trials were stopped for being over {limits}, and none was measured: hardly "
                "anything seems to keep that; set a higher limit in a new study, or have trials run to their end (run: "
                "stop_at_limits: false)"
            )
        return self.study.ask()

    def start(self, trial: Trial) -> None:
        """Have the engine start it; where it cannot yet, that is tried again each time that we collect."""
        self._start(_Watched(trial, 1, None, time.time()))

    def is_done(self) -> bool:
        """Whether every trial of ours has ended; one that never came to start is left to the next run."""
        if self._is_stopping:
            return not any(one.handle for one in self._watched.values())
        if not self._watched:
            self._adopt_abandoned()  # the last one to leave leaves nothing open that it could close
        return not self._watched

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
        handle = self._engine.take_over(self._launch(one.trial, one.attempt), one.handle)
        self._watched[one.trial.number] = _Watched(one.trial, one.attempt, handle, time.time(), seen_seconds)

    def _start(self, one: _Watched) -> None:
        self._watched[one.trial.number] = one
        self._begin(one)

    def _begin(self, one: _Watched) -> bool:
        """Have it started; engines start an attempt once, however often they are asked to. Whether it worked."""
        launch = self._launch(one.trial, one.attempt)
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

    def _take_notes(self, one: _Watched, notes: tuple[str, ...]) -> None:
        """Write down, once for a trial, what else is to be known of it."""
        new = [text for text in notes if text not in one.noted]
        one.noted += tuple(new)
        known = self.record.notes().get(one.trial.number, ()) if new else ()
        for text in new:
            if text not in known:
                self.record.log_event(NOTED, {"attempt": one.attempt, "text": text}, one.trial.number)
                self._listener(Happening("noted", one.trial, one.attempt, text))

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
        verdict = self._verdict(one, state, end)
        try:
            if self._is_retried(one, verdict):
                self._retry(one, verdict, end)
            elif not self._is_repeated(one, verdict, end):
                self._finish(one, self._mean(one, verdict))
        except NotOpen:
            return  # another process, which took us for dead, was first
        if one.handle is not None:
            self._engine.forget(one.handle)

    def _verdict(self, one: _Watched, state: AttemptState, end: End) -> Verdict:
        launch = self._launch_of(self.record.id, one.trial, one.attempt)
        before = self._seconds_before(one) if launch.keeps_checkpoint and one.attempt > 1 else 0.0
        if not before:
            return judge(self.study.problem, one.trial, state, end)
        return judge_going_on(self.study.problem, one.trial, state, end, before)

    def _seconds_before(self, one: _Watched) -> float:
        """How long the attempts ran that this one went on with: those after the last that came to its end."""
        retried = [event.detail for event in self._events_of(one.trial) if event.kind == RETRIED]
        last = max((place for place, detail in enumerate(retried) if detail["failed"] == REPEATED), default=-1)
        return sum(float(str(detail["seconds"])) for detail in retried[last + 1 :])

    def _events_of(self, trial: Trial) -> list[Event]:
        return [event for event in self.record.events() if event.trial == trial.number]

    def _launch(self, trial: Trial, attempt: int) -> Launch:
        launch = self._launch_of(self.record.id, trial, attempt)
        runs = self._runs_of(trial)
        return replace(launch, repeat=1 + sum(number < attempt for number in runs)) if runs else launch

    def _runs_of(self, trial: Trial) -> dict[int, tuple[Measurement, ...]]:
        """What the attempts measured so far, each a run, by their numbers; written down before the next one begins."""
        if self._repeats == 1:
            return {}
        told = [event.detail for event in self._events_of(trial) if event.kind == _RUN]
        return {int(str(one["attempt"])): decode_measurements(str(one["measured"]), trial.config) for one in told}

    def _is_repeated(self, one: _Watched, verdict: Verdict, end: End) -> bool:
        """Whether the trial goes on with another run; not when there is no money for it, or no time."""
        if self._repeats == 1 or verdict.outcome.failed is not None:
            return False
        trial = one.trial
        if one.attempt not in self._runs_of(trial):
            measured = encode_measurements(verdict.outcome.measurements)
            self.record.log_event(_RUN, {"attempt": one.attempt, "measured": measured}, trial.number)
        count = len(self._runs_of(trial))
        if count >= self._repeats or self._is_stopping:
            return False
        attempt = self._open_next(one, verdict, end, REPEATED)
        if attempt is None:
            return False
        self._listener(Happening("repeated", trial, attempt, f"run {count + 1} of {self._repeats}"))
        self._start(_Watched(trial, attempt, None, time.time()))
        return True

    def _mean(self, one: _Watched, verdict: Verdict) -> Verdict:
        runs = self._runs_of(one.trial) if verdict.outcome.failed is None else {}
        return replace(verdict, outcome=mean_of(verdict.outcome, list(runs.values()))) if len(runs) > 1 else verdict

    def _is_retried(self, one: _Watched, verdict: Verdict) -> bool:
        failed = verdict.outcome.failed
        if failed is None or self._is_stopping:
            return False
        return one.attempt - len(self._runs_of(one.trial)) <= self._retries.get(failed, 0)

    def _retry(self, one: _Watched, verdict: Verdict, end: End) -> None:
        failed = verdict.outcome.failed or PREEMPTED
        attempt = self._open_next(one, verdict, end, failed)
        if attempt is None:
            self._finish(one, verdict)
            return
        self._listener(Happening("retried", one.trial, attempt, f"{failed}: {verdict.detail}"))
        self._start(_Watched(one.trial, attempt, None, time.time()))

    def _open_next(self, one: _Watched, verdict: Verdict, end: End, why: str) -> int | None:
        """Charge the attempt and open a further one, its worst case reserved; None where money or time lacks for it."""
        number, cost, reserve = one.trial.number, verdict.outcome.cost, self._memory.reserve_of(one.trial)
        try:
            return self.record.retry(number, one.attempt, cost, end.seconds, why, reserve, self._memory.time_cap)
        except (OverBudget, OverTime):
            return None

    def _finish(self, one: _Watched, verdict: Verdict) -> None:
        earlier = self.record.charged(one.trial.number)
        self.record.finish(verdict.with_earlier(earlier), one.attempt, verdict.outcome.cost)
        if verdict.detail:
            self.record.log_event("detail", {"attempt": one.attempt, "text": verdict.detail[:500]}, one.trial.number)
        failed = verdict.outcome.failed
        self._faults += failed in _COMMANDS_FAULT
        self._over_limit += verdict.outcome.is_over_limit
        self._listener(Happening("ended", one.trial, one.attempt, f"{failed}: {verdict.detail}" if failed else ""))


def stop_now(record: Record, engine: Engine) -> list[int]:
    """End every trial of the study that the engine finds from here; the run that watches one, or the next, tells it."""
    handles = {(found.trial, found.attempt): found.handle for found in engine.find(record.id)}
    stopped = []
    for one in record.open_trials():
        handle = handles.get((one.trial.number, one.attempt))
        if handle is not None:
            engine.stop(handle)
            stopped.append(one.trial.number)
    return stopped
