"""Following an attempt from outside: what is handed on is what was written, however often the log is cut."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from trimtuner.engines.supervising import files, mirror
from trimtuner.engines.supervising.files import EndRecord, Folder
from trimtuner.engines.supervising.output import HEAD_BYTES, OutputLog


@pytest.mark.parametrize("cuts", [1, 2, 3])
def test_a_log_that_is_cut_several_times_between_two_looks_arrives_as_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: int
) -> None:
    """The file that replaces the one that replaced the first is often given the first one's number."""
    folder = Folder(tmp_path, b"key")
    folder.put(files.BEGUN, {"numbering": "elsewhere"})
    folder.beat(0.0)
    shouting = shout(folder, cuts)
    # Its own clock only: threads of other tests sleep, too.
    monkeypatch.setattr(mirror, "time", SimpleNamespace(sleep=lambda _: next(shouting), monotonic=time.monotonic))
    received = bytearray()
    for news in mirror.follow(folder, 0):
        if news.log and news.log_from == 0:
            received.clear()
        received[news.log_from :] = news.log
    assert bytes(received) == (tmp_path / files.LOG).read_bytes()
    assert received.startswith(b"first words")
    assert received.endswith(b"last words\n")


def shout(folder: Folder, cuts: int) -> Iterator[None]:
    """In between, somebody looks; the last time, the end is there after so many cuts, one of them by closing."""
    log = OutputLog(folder.path / files.LOG)
    log.write(b"first words\n")
    for _ in range(10):
        for _ in range(4):  # the middle is cut when three have come
            log.write(b"x" * HEAD_BYTES)
        yield
    for _ in range(cuts - 1):
        log.write(b"x" * HEAD_BYTES)
    log.write(b"last words\n")
    log.close()
    folder.put(files.END, {**EndRecord(kind=None, detail="", seconds=1.0)})
    yield
