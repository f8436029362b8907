"""What an attempt on another machine tells: handed on there as it comes, and kept here in a folder like its own.

What is kept outlives the machine and the driver; whatever is told twice is kept once.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from trimtuner.engines.protocol import AttemptState, End, Launch
from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.attempt import WatchedAttempt
from trimtuner.engines.supervising.files import EndRecord, Folder, LaunchRecord
from trimtuner.engines.supervising.metrics import MOST_FILE_BYTES
from trimtuner.engines.supervising.output import MOST_LOG_BYTES

BEAT_SECONDS = 2.0  # at most so long nothing is said; who hears nothing much longer knows that the line is dead
_PAUSE_SECONDS = 0.1


class News(NamedTuple):
    """What was added since the last time. With an end, all that there will ever be is told."""

    reports_from: int  # where in the file of reports the new ones begin
    reports: bytes
    log_from: int  # where in the log the new part begins; 0 again when the log was cut in its middle
    log: bytes
    end: EndRecord | None

    def as_line(self) -> bytes:
        """One line of JSON, for a stream."""
        texts = {name: base64.b64encode(getattr(self, name)).decode() for name in ("reports", "log")}
        return json.dumps({**self._asdict(), **texts}).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes) -> News:
        """What ``as_line`` wrote; a ValueError for anything else."""
        found = json.loads(line)
        try:
            reports, log = (base64.b64decode(found[name], validate=True) for name in ("reports", "log"))
            end = found["end"]
            if end is not None:
                kind = None if end["kind"] is None else str(end["kind"])
                end = EndRecord(kind=kind, detail=str(end["detail"]), seconds=float(end["seconds"]))
            return cls(int(found["reports_from"]), reports, int(found["log_from"]), log, end)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no news of an attempt: {error}") from None


def follow(folder: Folder, reports_from: int) -> Iterator[News]:
    """News of the attempt until its end, at least every BEAT_SECONDS; an attempt that lost its supervisor is ended.

    The log is told from its beginning, the reports from where the reader says.
    """
    attempt, last = WatchedAttempt(folder), -BEAT_SECONDS
    with closing(_LogReader(folder.path / files.LOG)) as log:
        while True:
            end = attempt.settled_end()  # before the rest is read, which is then complete
            reports = files.read_regular(folder.path / files.REPORTS, MOST_FILE_BYTES, reports_from) or b""
            log_from, text = log.read()
            if reports or text or end is not None or time.monotonic() - last >= BEAT_SECONDS:
                last = time.monotonic()
                yield News(reports_from, reports, log_from, text, end)
            if end is not None:
                return
            reports_from += len(reports)
            time.sleep(_PAUSE_SECONDS)


class Mirror:
    """The folder of one attempt that runs elsewhere."""

    def __init__(self, folder: Folder) -> None:
        self._sealed, self._attempt = folder, WatchedAttempt(folder)
        self.folder = folder.path

    @property
    def key(self) -> bytes:
        """With which its supervisor seals what it tells."""
        return self._sealed.key

    def open(self, record: LaunchRecord) -> None:
        """Make the folder, and write down what is to be done."""
        self.make()
        self._sealed.put_launch(record)

    def launch(self) -> LaunchRecord | None:
        """What is to be done."""
        return self._attempt.launch()

    def make(self) -> None:
        """Make the folder, unless it is there."""
        self._sealed.make()

    def is_untouched(self) -> bool:
        """Whether it is as a starter leaves it, and no supervisor has written anything into it yet."""
        return self._sealed.is_untouched()

    @property
    def has_begun(self) -> bool:
        """Whether a supervisor has it, or had."""
        return self._attempt.begun() is not None

    @property
    def last_beat(self) -> float:
        """How long its supervisor is known to have lived; 0 where nothing says so."""
        return self._sealed.last_beat()

    def ask_to_stop(self) -> None:
        """Note that it is to be ended."""
        self.make()
        self._sealed.ask_to_stop()

    def is_asked_to_stop(self) -> bool:
        """Whether it is to be ended, by somebody's word."""
        return self._sealed.is_asked_to_stop()

    @property
    def reports_size(self) -> int:
        """How many bytes of reports are here."""
        path = self.folder / files.REPORTS
        return path.stat().st_size if path.exists() else 0

    def take(self, news: News) -> None:
        """Keep the news, durably; an end is kept by ``close``, when everything else has ended too."""
        if news.reports:
            _write_at(self.folder / files.REPORTS, news.reports_from, news.reports)
        if news.log and news.log_from == 0:
            (self.folder / files.LOG).unlink(missing_ok=True)  # it begins anew
        if news.log:
            _write_at(self.folder / files.LOG, news.log_from, news.log)

    def of_node(self, rank: int) -> Mirror:
        """That of one of the nodes; the head's is the attempt's own."""
        return Mirror(self._sealed.of_node(rank)) if rank else self

    def keep_node_log(self, rank: int, log: bytes) -> None:
        """Keep what another node than the head has printed."""
        folder = self._sealed.of_node(rank)
        folder.make()
        _write_at(folder.path / files.LOG, 0, log)

    def close(self, end: EndRecord) -> None:
        """Keep how it ended; the first end stays."""
        self.make()
        self._sealed.put(files.END, {**end})

    def note(self, name: str, content: dict[str, object]) -> None:
        """Keep something more of the engine's, once."""
        self.make()
        self._sealed.put(name, content)

    def noted(self, name: str) -> dict[str, object] | None:
        """What ``note`` has kept under the name; None where nothing is."""
        return self._sealed.get(name)

    def end(self) -> End | None:
        """How it ended, if that is known here."""
        return self._attempt.end()

    def state(self) -> AttemptState:
        """As far as it has been told."""
        return self._attempt.state_as_written()


class Mirrors:
    """The mirrors of an engine's attempts, by their folders; what was read of one is not read again."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[Path, Mirror] = {}

    def at(self, path: Path) -> Mirror:
        """The mirror in a folder whose name is made of trial and attempt."""
        if path not in self._known:
            self._known[path] = Mirror(files.folder_at(path, self._secret))
        return self._known[path]

    def of(self, launch: Launch) -> Mirror:
        """The mirror of an attempt, in the folder of its study."""
        return self.at(launch.folder.resolve() / files.attempt_name(launch.trial, launch.attempt))

    def forget(self, path: Path) -> None:
        """Hold no longer what was read of it."""
        self._known.pop(path, None)


class _LogReader:
    """Reads a log on; from its beginning when another file has taken its place.

    It is held open in between: else the number of a file that was replaced may be given to the next one, and a log that
    is cut often would look like one that was never cut.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(os.devnull, "rb")  # noqa: SIM115  (closed by ``close``)

    def read(self) -> tuple[int, bytes]:
        """Where it begins, and what is new."""
        descriptor = files.open_regular(self._path)
        if descriptor is not None:
            now = open(descriptor, "rb")  # noqa: SIM115
            if os.path.samestat(os.fstat(descriptor), os.fstat(self._file.fileno())):
                now.close()
            else:
                self.close()
                self._file = now
        begin = self._file.tell()
        return begin, self._file.read(MOST_LOG_BYTES)

    def close(self) -> None:
        """Hold the log open no longer."""
        self._file.close()


def _write_at(path: Path, position: int, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.seek(position)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
