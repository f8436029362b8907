"""How the local engine reads and keeps what a job says."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtuner.engines.supervising import files, metrics, output, supervisor
from trimtuner.engines.supervising.files import Folder
from trimtuner.engines.supervising.metrics import Lines, Reports, parse_metrics
from trimtuner.engines.supervising.output import MetricsFile, OutputLog, Redactor

SECRETS = ["abcabd", "abcabdabc", "first-line\nsecond-line"]


@given(st.lists(st.sampled_from(["abc", "abd", "a", "abcabd", "first-line", "second-", "line", "\n", "x"])), st.data())
def test_no_secret_passes_the_redactor_wherever_the_text_is_cut(words: list[str], data: st.DataObject) -> None:
    text = "".join(words).encode()
    redactor, shown, position = Redactor(SECRETS), b"", 0
    while position < len(text):
        size = data.draw(st.integers(1, 5))
        shown += redactor.feed(text[position : position + size])
        position += size
    shown += redactor.finish()
    for secret in (b"abcabd", b"first-line", b"second-line"):
        assert secret not in shown
    if b"abcabd" not in text and b"first-line" not in text and b"second-line" not in text:
        assert shown == text


def test_a_longer_secret_leaves_no_rest_when_a_shorter_one_is_its_beginning() -> None:
    redactor = Redactor(["abcabd", "abcabdxyz"])
    assert redactor.feed(b"<abcabd") + redactor.feed(b"xyz>") + redactor.finish() == b"<***>"


def test_a_short_secret_does_not_spoil_numbers() -> None:
    assert Redactor(["1"]).feed(b"0.91") == b"0.91"


@given(st.binary(max_size=200), st.integers(1, 20))
def test_lines_are_the_same_however_they_are_cut(text: bytes, size: int) -> None:
    lines = Lines()
    found = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])] + lines.finish()
    assert found == text.replace(b"\r", b"\n").split(b"\n")


def test_of_a_line_that_is_too_long_the_beginning_comes_once_and_the_next_line_is_whole() -> None:
    lines = Lines()
    found = [line for _ in range(10) for line in lines.feed(b"x" * 30_000)]
    assert [len(line) > metrics.LINE_BYTES for line in found] == [True]
    assert lines.feed(b"end\nnext\n") == [b"", b"next"]


def test_a_flat_object_of_numbers_is_read() -> None:
    assert parse_metrics(b'{"accuracy": 0.5, "epochs": 3}') == {"accuracy": 0.5, "epochs": 3.0}


BAD = [b"", b"{}", b"[1]", b"1", b'{"a": null}', b'{"a": -Infinity}', b'{"a": [1]}', b'{"a": ' + b"9" * 400 + b"}"]


@pytest.mark.parametrize("text", BAD)
def test_everything_else_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (each has its own words)
        parse_metrics(text)


@given(st.binary(max_size=100))
def test_whatever_is_said_becomes_metrics_or_a_value_error(text: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(value, float) for value in parse_metrics(text).values())


def written_in(path: Path) -> list[dict[str, object]]:
    folder = Folder(path, b"key")
    lines = (path / files.REPORTS).read_bytes().splitlines()
    return [entry for line in lines if (entry := folder.unsealed(files.REPORTS, line)) is not None]


def test_a_trial_has_so_many_names_of_metrics_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_NAMES", 3)
    reports = Reports(Folder(tmp_path, b"key"))
    reports.add([b'{"a": 1, "b": 1}', b'{"b": 2, "c": 2}', b'{"d": 3}', b'{"a": 4}'], 1.0)
    entries = written_in(tmp_path)
    assert [entry.get("metrics") for entry in entries] == [{"a": 1, "b": 1}, {"b": 2, "c": 2}, None, {"a": 4}]
    assert "more than 3 names" in str(entries[2]["bad"])


def test_reports_and_bad_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_REPORTS", 3)
    reports = Reports(Folder(tmp_path, b"key"))
    reports.add([b'{"a": 1}'] * 5 + [b"bad"] * 200, 1.0)
    entries = written_in(tmp_path)
    assert sum("metrics" in entry for entry in entries) == 3
    assert sum("bad" in entry for entry in entries) == metrics.MOST_BAD_LINES
    assert "not kept" in entries[-1]["bad"]


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.parametrize("secret", ["s3cret-value", 'quo"te\\back', "it's-one"])
@pytest.mark.parametrize("line", ['{"NAME": 1}', '{"NAME": true}', '{"a": 1, "NAME": 1e999}', '{"NAME": 1', "x NAME"])
def test_no_secret_passes_in_the_escapes_of_json(tmp_path: Path, secret: str, line: str) -> None:
    reports = Reports(Folder(tmp_path, b"key"), Redactor([secret]).redacted)
    for written in (escaped(secret), json.dumps(secret)[1:-1], secret):
        reports.add([line.replace("NAME", f"of-{written}").encode()], 1.0)
    entries = written_in(tmp_path)
    assert len(entries) == 3
    for entry in entries:
        (told,) = entry["metrics"] if "metrics" in entry and len(entry["metrics"]) == 1 else [str(entry)]
        assert secret not in told
        assert repr(secret)[1:-1] not in told
        assert "of-***" in told


def test_half_a_surrogate_pair_in_a_name_is_kept(tmp_path: Path) -> None:
    Reports(Folder(tmp_path, b"key"), Redactor(SECRETS).redacted).add([b'{"\\ud800": 1}'], 1.0)
    assert written_in(tmp_path)[0]["metrics"] == {"\ud800": 1.0}


def test_a_log_keeps_beginning_and_end_and_says_how_much_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "HEAD_BYTES", 4)
    monkeypatch.setattr(output, "TAIL_BYTES", 4)
    log = OutputLog(tmp_path / "log")
    for digit in range(10):
        log.write(b"%d%d" % (digit, digit))
        assert (tmp_path / "log").read_bytes().startswith(b"0011"[: 2 * digit + 2])
    log.close()
    assert (tmp_path / "log").read_bytes() == b"0011\n[trimtuner: 12 bytes were cut here]\n8899"


def test_a_short_log_is_kept_whole(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log")
    log.write(b"all of it")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"all of it"


def test_a_file_of_metrics_is_read_from_where_it_ended_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    path.write_bytes(b"old\n")
    reader = MetricsFile(path)
    assert reader.read() == b""
    path.write_bytes(b"old\nnew\n")
    assert (reader.read(), reader.read()) == (b"new\n", b"")


def test_a_file_of_metrics_that_is_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    path.write_bytes(b"old\n")
    reader = MetricsFile(path)
    path.write_bytes(b"new one, longer\n")
    assert reader.read() == b"new one, longer\n"


def test_a_file_of_metrics_need_not_exist_at_first(tmp_path: Path) -> None:
    reader = MetricsFile(tmp_path / "metrics")
    assert reader.read() == b""
    (tmp_path / "metrics").write_bytes(b"new\n")
    assert reader.read() == b"new\n"


class FullDisk:
    """A disk that takes a few bytes, then none until there is room."""

    def __init__(self, left: int) -> None:
        self.left, self._write = left, os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, data[: self.left])
        self.left -= written
        return written


def test_reports_that_a_full_disk_does_not_take_are_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, disk = Reports(Folder(tmp_path, b"key")), FullDisk(left=10)
    monkeypatch.setattr(metrics.os, "write", disk.write)
    reports.add([b'{"accuracy": 0.5}'], 1.0)
    reports.add([b'{"accuracy": 0.75}'], 2.0)
    with pytest.raises(OSError, match="No space left"):
        reports.write_held()
    disk.left = 10_000
    reports.write_held()
    assert written_in(tmp_path) == [
        {"metrics": {"accuracy": 0.5}, "seconds": 1.0, "number": 1},
        {"metrics": {"accuracy": 0.75}, "seconds": 2.0, "number": 2},
    ]


def test_an_end_waits_for_room_on_a_full_disk_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor.time, "sleep", lambda _: None)
    troubles = [OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "over its quota")]
    written = []

    def write() -> None:
        if troubles:
            raise troubles.pop()
        written.append("end")

    supervisor._write_patiently(write)
    assert written == ["end"]
    troubles.append(PermissionError(errno.EACCES, "refused"))
    with pytest.raises(PermissionError):
        supervisor._write_patiently(write)


def test_what_a_full_disk_does_not_take_is_named_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(OSError, match=r"No space left on device.*end\.json"):
        Folder(tmp_path, b"key").put("end.json", {"kind": None})
    assert list(tmp_path.iterdir()) == []
