"""What is new in the folder of an attempt, handed on as it comes to whoever keeps a mirror of it."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.attempt import WatchedAttempt
from trimtuner.engines.supervising.files import EndRecord, Folder
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
