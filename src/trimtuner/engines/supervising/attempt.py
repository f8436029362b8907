"""An attempt as its folder and /proc tell it, whoever started it, and its closing when its supervisor is gone."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import cast

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, LOST, STOPPED, TIMEOUT, AttemptState, End, Report
from trimtuner.engines.supervising import fence, files, processes
from trimtuner.engines.supervising.files import BegunRecord, EndRecord, Folder, LaunchRecord
from trimtuner.engines.supervising.metrics import MOST_FILE_BYTES

# A supervisor that cannot be looked up, in a container or on another machine: its beats must do, and whether they go on
# is told by the reader's own clock, since no two machines need agree on the time.
_SILENCE_ELSEWHERE_SECONDS = 60.0
_PATIENCE_WITH_SUPERVISOR_SECONDS = (
    5.0  # beyond what it may take itself, before it is ended with all that it supervises
)


class WatchedAttempt:
    """One attempt; a reader that owns nothing, so that there may be any number of them.

    It remembers what it has seen: whatever becomes of the folder, the attempt has run at least so long.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._launch: LaunchRecord | None = None  # these two are written once: what was read once is not read again
        self._begun: BegunRecord | None = None
        self._since: float | None = None  # when it began, or was first seen to run, by our clock
        self._seen_seconds = 0.0  # that it had run when it was last seen to
        self._beat = (0.0, time.monotonic())  # the last one, and since when it is that
        self._gone_since: float | None = None
        self._position = self._number = 0  # how far its reports are read
        self._reports: list[Report] = []
        self._bad_lines: list[str] = []

    def launch(self) -> LaunchRecord | None:
        """What was to be done."""
        self._launch = self._launch or cast("LaunchRecord | None", self.folder.get(files.LAUNCH))
        return self._launch

    def begun(self) -> BegunRecord | None:
        """Which process supervises it, if it ever came so far."""
        self._begun = self._begun or cast("BegunRecord | None", self.folder.get(files.BEGUN))
        return self._begun

    def end(self) -> End | None:
        """How it ended, if that is written down."""
        record = cast("EndRecord | None", self.folder.get(files.END))
        return None if record is None else End(record["kind"], record["detail"], record["seconds"])

    def has_started(self, since: float | None = None) -> None:
        """Note that it runs: since then, or since its supervisor began, or from now on at the latest; and until now."""
        begun = self.begun()
        told = begun["monotonic"] if begun is not None and _is_numbered_here(begun) else None
        known = [one for one in (self._since, since, told) if one is not None]
        self._since = min(known, default=time.monotonic())
        self._seen_seconds = self._ran()

    def state(self) -> AttemptState:
        """How it goes. What nobody supervises any more is killed, and closed as soon as nothing of it is left."""
        return self._state(self._settled())

    def state_as_written(self) -> AttemptState:
        """How it goes, by its files alone."""
        return self._state(self.end())

    def settled_end(self) -> EndRecord | None:
        """How it ended, as it is written down; closed as by ``state``."""
        end = self._settled()
        return None if end is None else EndRecord(kind=end.kind, detail=end.detail, seconds=end.seconds)

    def is_under_way(self) -> bool:
        """Whether its end is not written down and somebody will do it."""
        return self.end() is None and self.is_supervised()

    def is_supervised(self) -> bool:
        """Whether its supervisor lives, as far as can be seen from here."""
        begun = self.begun()
        if begun is None:
            return False
        return self.supervisor() is not None if _is_numbered_here(begun) else self._is_beating()

    def supervisor(self) -> processes.Process | None:
        """The living supervisor, where it can be seen from here."""
        begun = self.begun()
        if begun is None or not _is_numbered_here(begun):
            return None
        process = processes.read_process(begun["pid"])
        is_same = process is not None and process.started_ticks == begun["started_ticks"]
        return process if process is not None and is_same and process.is_alive else None

    def kill_rest(self) -> bool:
        """Kill what is left of it, by its tags and inside its fence; whether there was anything."""
        rest = processes.living_processes_of(str(self.folder.path))
        processes.kill(rest)
        is_any = fence.kill(str(self.folder.path)) or bool(rest)
        if is_any:
            self.has_started()
            with suppress(OSError):  # for whoever closes it, if that is not us
                self.folder.beat(self._seen_seconds)
        return is_any

    def _settled(self) -> End | None:
        end = self.end()
        if end is not None:
            return end
        if self.folder.is_there() and self.is_supervised():
            self.has_started()
            if self._ran() > self._most_seconds() + _PATIENCE_WITH_SUPERVISOR_SECONDS:
                self.kill_rest()  # a supervisor that was stopped keeps no limit; then we do
            return None
        return self._close_if_unsupervised()

    def _ran(self) -> float:
        """How long it has run, if it has until now."""
        begun = self.begun()
        if begun is not None and _is_numbered_here(begun):
            return time.monotonic() - begun["monotonic"]
        return 0.0 if self._since is None else time.monotonic() - self._since

    def _most_seconds(self) -> float:
        """After which it has ended for sure, if its supervisor does what it should."""
        launch = self.launch()
        return sys.maxsize if launch is None else launch["limit"] + ENDED_WITHIN_SECONDS

    def _close_if_unsupervised(self) -> End | None:
        if not self.folder.is_there():
            return self._end_without_folder()
        if self.begun() is None:
            return self._close_if_never_begun()
        if self.kill_rest():
            return None
        return self._close("its supervisor is gone, and nobody saw how it ended", self._last_sign_of_life())

    def _close_if_never_begun(self) -> End | None:
        """Who was seen to run and says no more that it has begun, is ended; and is no longer about to be started."""
        if self._since is not None:
            if self.kill_rest():
                return None
            return self._close("what it had written down of its start is gone", self._ran())
        try:
            with files.start_lock(self.folder.path, patience_seconds=0.0):
                if self.begun() is not None or self.kill_rest():
                    return None
                return self._close("nothing tells that it was started", 0.0)
        except TimeoutError:  # somebody is about to start it
            return None

    def _end_without_folder(self) -> End | None:
        """Its supervisor sees it too, ends all, and makes the folder anew to say so; unless it is gone itself."""
        if processes.living_processes_of(str(self.folder.path)):
            self.has_started()
            self._gone_since = self._gone_since or time.monotonic()
            if time.monotonic() - self._gone_since > _PATIENCE_WITH_SUPERVISOR_SECONDS:
                self.kill_rest()
            return None
        if self.kill_rest():  # what had left its parents and its tags behind
            return None
        seconds = min(self._ran(), self._most_seconds())
        return self.end() or End(LOST, f"its folder {str(self.folder.path)!r} is gone", seconds)

    def _close(self, detail: str, seconds: float) -> End:
        launch = self.launch()
        kind = STOPPED if self.folder.is_asked_to_stop() else LOST
        if kind == LOST and launch is not None and seconds >= launch["limit"]:
            kind, detail = TIMEOUT, f"ended after its limit of {launch['limit']:g} s; its supervisor had not done it"
        end = End(kind, detail, seconds)
        with suppress(OSError):  # a folder that is beyond use: then our word is all there is
            self.folder.put(files.END, {**EndRecord(kind=kind, detail=detail, seconds=seconds)})
        return (
            self.end() or end
        )  # the first to write decides: the supervisor before it left, or another who closes it now

    def _last_sign_of_life(self) -> float:
        """Seconds after the start, rounded up to where the next beat was due; never less than it was seen to run."""
        reported = [report.seconds for report in self._state(None).reports]
        return max(max([self.folder.last_beat(), *reported]) + files.BEAT_SECONDS, self._seen_seconds)

    def _is_beating(self) -> bool:
        beat = self.folder.last_beat()
        if beat != self._beat[0]:
            self._beat = beat, time.monotonic()
        return time.monotonic() - self._beat[1] < _SILENCE_ELSEWHERE_SECONDS

    def _state(self, end: End | None) -> AttemptState:
        # Only now the reports: with an end, they are complete.
        self._read_reports()
        return AttemptState(tuple(self._reports), tuple(self._bad_lines), end)

    def _read_reports(self) -> None:
        """Those that have come since the last time; what the command wrote there itself is none."""
        path = self.folder.path / files.REPORTS
        text = files.read_regular(path, MOST_FILE_BYTES - self._position, self._position) or b""
        # What follows the last end of line is still being written, or was when the supervisor died.
        for line in text.split(b"\n")[:-1]:
            self._position += len(line) + 1
            entry = self.folder.unsealed(files.REPORTS, line)
            if entry is not None and cast("int", entry["number"]) > self._number:
                self._number = cast("int", entry["number"])
                self._take(entry)

    def _take(self, entry: dict[str, object]) -> None:
        if "bad" in entry:
            self._bad_lines.append(str(entry["bad"]))
            return
        metrics = cast("dict[str, float]", entry["metrics"])
        named = {sys.intern(name): value for name, value in metrics.items()}  # the same ones in line after line
        self._reports.append(Report(named, cast("float", entry["seconds"])))


def _is_numbered_here(begun: BegunRecord) -> bool:
    return begun["numbering"] == processes.numbering()
