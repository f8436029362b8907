"""The engine that plays trials. How one goes follows from what was written down at its start, and from the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from trimtuner.engines.protocol import LOST, STOPPED, TIMEOUT, AttemptState, End, Found, Launch
from trimtuner.engines.replay.script import Script, ScriptOf
from trimtuner.engines.supervising.environment import check_launch, record_of
from trimtuner.engines.supervising.mirror import Mirror, Mirrors

_PLAYED = "played.json"  # the script, the pace, and when it began
_STOPPED = "stopped.json"  # when


class ReplayEngine:
    """Plays trials; it holds no state, so that any number of drivers see the same."""

    def __init__(self, folder: Path, secret: bytes, script_of: ScriptOf, pace: float = 1.0) -> None:
        self._folder, self._mirrors, self._script_of, self._pace = folder, Mirrors(secret), script_of, pace

    def start(self, launch: Launch) -> str:
        """Begin to play the attempt, unless that was begun already; its folder."""
        check_launch(launch)
        mirror = self._mirrors.of(launch)
        if mirror.noted(_PLAYED) is None:
            script = self._script_of(launch)
            mirror.open(record_of(launch, str(mirror.folder), str(launch.working_directory)))
            mirror.note(_PLAYED, {**script.as_json(), "pace": self._pace, "began": time.time()})
        return str(mirror.folder)

    def take_over(self, launch: Launch, handle: str) -> str:
        """By its folder, if that is here under whatever path."""
        mirror = self._mirrors.of(launch)
        return handle if mirror.noted(_PLAYED) is None else str(mirror.folder)

    def poll(self, handle: str) -> AttemptState:
        """How far it is played by now."""
        return _state(self._mirrors.at(Path(handle)))

    def stop(self, handle: str) -> None:
        """Play the attempt no further: it has ended now."""
        mirror = self._mirrors.at(Path(handle))
        if _state(mirror).end is None:
            mirror.note(_STOPPED, {"at": time.time()})

    def find(self, study: str | None = None) -> list[Found]:
        """The attempts below the folder."""
        return [one for one in self._found() if study is None or one.study == study]

    def forget(self, handle: str) -> None:
        """Nothing is held for it but what was read."""
        self._mirrors.forget(Path(handle))

    def _found(self) -> Iterator[Found]:
        for path in sorted(self._folder.glob(f"*/*/{_PLAYED}")):
            mirror = self._mirrors.at(path.parent)
            launch = mirror.launch()
            if launch is not None:  # else it is of another record
                is_running = _state(mirror).end is None
                yield Found(launch["study"], launch["trial"], launch["attempt"], str(path.parent), is_running)


def _state(mirror: Mirror) -> AttemptState:
    played = mirror.noted(_PLAYED)
    if played is None:
        return AttemptState((), (), End(LOST, f"its folder {str(mirror.folder)!r} is gone", 0.0))
    began, pace = float(str(played["began"])), float(str(played["pace"]))
    script, stopped = Script.of_json(played), mirror.noted(_STOPPED)
    ends = [script.end, _end_at_limit(mirror)]
    if stopped is not None:
        ends.append(End(STOPPED, "ended on request", (float(str(stopped["at"])) - began) * pace))
    end = min(ends, key=lambda one: one.seconds)
    now = max(time.time() - began, 0.0) * pace
    reached = min(now, end.seconds)
    # What a table measured in a run of its own may have taken longer there: it is said at the end at the latest.
    reports = tuple(report for report in script.reports if min(report.seconds, script.end.seconds) <= reached)
    return AttemptState(reports, (), end if now >= end.seconds else None)


def _end_at_limit(mirror: Mirror) -> End:
    launch = mirror.launch()
    limit = 0.0 if launch is None else launch["limit"]
    return End(TIMEOUT, f"ended after its limit of {limit:g} s", limit)
