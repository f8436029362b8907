"""What an attempt on another machine has told so far, kept on the driver's side in a folder like its own.

It outlives the machine and the driver. Whatever is told twice is kept once.
"""

from __future__ import annotations

import os
from pathlib import Path

from trimtuner.engines.protocol import AttemptState, End, Launch
from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.attempt import WatchedAttempt
from trimtuner.engines.supervising.files import EndRecord, Folder, LaunchRecord
from trimtuner.engines.supervising.follow import News


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


def _write_at(path: Path, position: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        while data:
            written = os.pwrite(descriptor, data, position)
            data, position = data[written:], position + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
