"""What an attempt on another machine has told so far, kept on the driver's side in a folder like its own.

It outlives the machine and the driver. Whatever is told twice is kept once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from trimtuner.engines.minding import files
from trimtuner.engines.minding.attempt import Attempt
from trimtuner.engines.minding.files import EndRecord, LaunchRecord
from trimtuner.engines.minding.follow import News
from trimtuner.engines.protocol import End, Launch, State
from trimtuner.private import make_private_folder


class Mirror:
    """The folder of one attempt that runs elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, launch: Launch) -> Mirror:
        """The mirror of an attempt, in the folder of its study."""
        return cls(launch.folder.resolve() / f"{launch.trial:d}-{launch.attempt:d}")

    def open(self, record: LaunchRecord) -> None:
        """Make the folder, and write down what is to be done."""
        make_private_folder(self.folder)
        files.write_once(self.folder / files.LAUNCH, {**record})
        for parent in (self.folder.parent, self.folder.parent.parent):
            files.sync_folder(parent)

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
        make_private_folder(self.folder)
        files.write_once(self.folder / files.END, {**end})

    def note(self, name: str, content: dict[str, object]) -> None:
        """Keep something more of the engine's, once."""
        make_private_folder(self.folder)
        files.write_once(self.folder / name, content)

    def noted(self, name: str) -> dict[str, object] | None:
        """What was noted."""
        text = files.read_text(self.folder / name)
        return None if text is None else json.loads(text)

    def end(self) -> End | None:
        """How it ended, if that is known here."""
        return Attempt(self.folder).end()

    def state(self) -> State:
        """As far as it has been told."""
        return Attempt(self.folder).state_as_written()


def _write_at(path: Path, position: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while data:
            written = os.pwrite(descriptor, data, position)
            data, position = data[written:], position + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
