"""An attempt as its folder and /proc tell it, whoever started it, and its closing when its minder is gone."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from trimtuner.engines.minding import fence, files, processes
from trimtuner.engines.minding.files import BegunRecord, EndRecord, LaunchRecord
from trimtuner.engines.protocol import LOST, STOPPED, End, Report, State

# A minder on another machine, seen through a shared folder, cannot be looked up; its beats must do.
_SILENCE_ELSEWHERE_SECONDS = 60.0


class Attempt:
    """One attempt; a reader that owns nothing, so that there may be any number of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def launch(self) -> LaunchRecord | None:
        """What was to be done."""
        text = files.read_text(self.folder / files.LAUNCH)
        return None if text is None else json.loads(text)

    def begun(self) -> BegunRecord | None:
        """Which process minds it, if it ever came so far."""
        text = files.read_text(self.folder / files.BEGUN)
        return None if text is None else json.loads(text)

    def end(self) -> End | None:
        """How it ended, if that is written down."""
        text = files.read_text(self.folder / files.END)
        if text is None:
            return None
        record: EndRecord = json.loads(text)
        return End(record["kind"], record["detail"], record["seconds"])

    def state(self) -> State:
        """How it goes. What nobody minds any more is killed, and closed as soon as nothing of it is left."""
        return self._state(self._settled())

    def state_as_written(self) -> State:
        """How it goes, by its files alone."""
        return self._state(self.end())

    def settled_end(self) -> EndRecord | None:
        """How it ended, as it is written down; closed as by ``state``."""
        end = self._settled()
        return None if end is None else EndRecord(kind=end.kind, detail=end.detail, seconds=end.seconds)

    def _settled(self) -> End | None:
        return self.end() or self._close_if_unminded()

    def _state(self, end: End | None) -> State:
        # Only now the reports: with an end, they are complete.
        reports, bad_lines = [], []
        for entry in self._entries():
            if isinstance(entry, Report):
                reports.append(entry)
            else:
                bad_lines.append(entry)
        return State(tuple(reports), tuple(bad_lines), end)

    def is_under_way(self) -> bool:
        """Whether its end is not written down and somebody will do it."""
        return self.end() is None and self.is_minded()

    def is_minded(self) -> bool:
        """Whether its minder lives."""
        begun = self.begun()
        if begun is None:
            return False
        if begun["host"] != os.uname().nodename:
            return self._is_beating()
        return self.minder() is not None

    def minder(self) -> processes.Process | None:
        """The living minder, on this machine."""
        begun = self.begun()
        if begun is None or not _is_of_this_boot(begun):
            return None
        process = processes.read_process(begun["pid"])
        is_same = process is not None and process.started_ticks == begun["started_ticks"]
        return process if process is not None and is_same and process.is_alive else None

    def kill_rest(self) -> bool:
        """Kill what is left of it, by its tags and inside its fence; whether there was anything."""
        rest = processes.living_processes_of(str(self.folder))
        for process in rest:
            processes.send(process, signal.SIGKILL)
        is_any = fence.kill(str(self.folder)) or bool(rest)
        begun = self.begun()
        if is_any and begun is not None:
            files.write_beat(self.folder, time.monotonic() - begun["monotonic"])
        return is_any

    def _close_if_unminded(self) -> End | None:
        if self.is_minded():
            return None
        if self.begun() is None:
            return self._close_if_never_begun()
        if self.kill_rest():
            return None
        return self._close("its minder is gone, and nobody saw how it ended", self._last_sign_of_life())

    def _close_if_never_begun(self) -> End | None:
        try:
            with files.start_lock_if_free(self.folder) as is_ours:
                if not is_ours or self.begun() is not None:
                    return None
                return self._close("it was never started", 0.0)
        except FileNotFoundError:
            return self._end_without_folder()

    def _end_without_folder(self) -> End | None:
        if self.kill_rest():
            return None
        return End(LOST, f"its folder {str(self.folder)!r} is gone", 0.0)

    def _close(self, detail: str, seconds: float) -> End | None:
        kind = STOPPED if (self.folder / files.STOP).exists() else LOST
        files.write_once(self.folder / files.END, {**EndRecord(kind=kind, detail=detail, seconds=seconds)})
        return self.end()  # the first to write decides: the minder before it left, or one of several who close it now

    def _last_sign_of_life(self) -> float:
        """Seconds after the start, rounded up to where the next beat was due."""
        beat = float(files.read_text(self.folder / files.ALIVE) or 0.0)
        reported = [entry.seconds for entry in self._entries() if isinstance(entry, Report)]
        return max([beat, *reported]) + files.BEAT_SECONDS

    def _is_beating(self) -> bool:
        try:
            return time.time() - os.stat(self.folder / files.ALIVE).st_mtime < _SILENCE_ELSEWHERE_SECONDS
        except FileNotFoundError:
            return False

    def _entries(self) -> Iterator[Report | str]:
        text = files.read_text(self.folder / files.REPORTS) or ""
        # What follows the last end of line is still being written, or was when the minder died.
        for line in text.split("\n")[:-1]:
            entry = json.loads(line)
            yield entry["bad"] if "bad" in entry else Report(entry["metrics"], entry["seconds"])


def _is_of_this_boot(begun: BegunRecord) -> bool:
    return begun["host"] == os.uname().nodename and begun["boot"] == processes.boot_identity()
