"""What a job prints: kept in a log of bounded size, with the secrets redacted, and read for metrics on the way."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

HEAD_BYTES = TAIL_BYTES = 1024 * 1024
MOST_LOG_BYTES = HEAD_BYTES + 3 * TAIL_BYTES  # before its middle is cut, with what was read at once
# Shorter values are too likely to be part of something else: redacting a "1" would spoil every number.
SHORTEST_SECRET = 6
_REDACTED = b"***"


class OutputLog:
    """The first and the last part of the output, in one file that reads well at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open_log(path)
        self._written = 0
        self._is_broken = False

    def write(self, data: bytes) -> None:
        """Add output. A full disk costs the log, not the trial."""
        self._written += len(data)
        if self._is_broken:
            return
        try:
            self._file.write(data)
            if self._file.tell() > HEAD_BYTES + 2 * TAIL_BYTES:
                self._cut_middle()
        except OSError:
            self._is_broken = True

    def close(self) -> None:
        """Bring the log to its final size."""
        try:
            if self._written > HEAD_BYTES + TAIL_BYTES and not self._is_broken:
                self._cut_middle()
            self._file.close()
        except OSError:
            self._is_broken = True

    def _cut_middle(self) -> None:
        self._file.seek(0)
        head = self._file.read(HEAD_BYTES)
        self._file.seek(-TAIL_BYTES, os.SEEK_END)
        tail = self._file.read(TAIL_BYTES)
        note = f"\n[trimtuner: {self._written - len(head) - len(tail)} bytes were cut here]\n".encode()
        draft = self._path.with_name(f"{self._path.name}.shorter")
        shorter = _open_log(draft)
        shorter.write(head + note + tail)
        os.replace(draft, self._path)
        self._file.close()
        self._file = shorter


class Redactor:
    """Replaces the values of secrets in a stream, also where one is cut by the end of a read."""

    def __init__(self, values: Iterable[str]) -> None:
        lines = {line.strip().encode() for value in values for line in value.splitlines()}
        self._secrets = sorted((line for line in lines if len(line) >= SHORTEST_SECRET), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(re.escape(secret) for secret in self._secrets) or rb"(?!)")
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be shown now; what may be the beginning of a secret waits."""
        data = self._held + data
        end = self._start_of_partial(data)
        for match in self._pattern.finditer(data):
            if match.start() < end < match.end():
                end = match.end()
        self._held = data[end:]
        return self._pattern.sub(_REDACTED, data[:end])

    def finish(self) -> bytes:
        """What still waited, when nothing more comes."""
        held, self._held = self._held, b""
        return self._pattern.sub(_REDACTED, held)

    def redacted(self, text: str) -> str:
        """A text that is no part of the stream, such as what an escaped one stands for."""
        return self._pattern.sub(_REDACTED, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _start_of_partial(self, data: bytes) -> int:
        longest = len(self._secrets[0]) - 1 if self._secrets else 0
        for length in range(min(longest, len(data)), 0, -1):
            if any(secret.startswith(data[-length:]) and len(secret) > length for secret in self._secrets):
                return len(data) - length
        return len(data)


class MetricsFile:
    """What is added to a file of metrics after we first looked, whether it is appended to or written anew."""

    _READ_BYTES = 1024 * 1024
    _COMPARED_BYTES = 4096

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._before = b""  # what stood just before the position: still there, if the file was appended to
        descriptor = self._open()
        if descriptor is not None:
            self._position = os.fstat(descriptor).st_size
            self._before = self._read_before(descriptor)
            os.close(descriptor)

    def read(self) -> bytes:
        """The next part; empty when there is none."""
        descriptor = self._open()
        if descriptor is None:
            return b""
        try:
            if self._read_before(descriptor) != self._before:
                self._position = 0
            data = os.pread(descriptor, self._READ_BYTES, self._position)
            self._position += len(data)
            self._before = self._read_before(descriptor)
            return data
        finally:
            os.close(descriptor)

    def _read_before(self, descriptor: int) -> bytes:
        length = min(self._position, self._COMPARED_BYTES)
        return os.pread(descriptor, length, self._position - length)

    def _open(self) -> int | None:
        """An ordinary file only: opening or reading a pipe or a device could take for ever."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None


def _open_log(path: Path) -> FileIO:
    path.unlink(missing_ok=True)  # the command may have put a link there
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "r+")
