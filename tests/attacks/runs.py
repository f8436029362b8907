"""A ``trimtuner run`` that can be killed by its number, and whose clock can be set."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from pathlib import Path

from postgres_server import PASSWORD
from trimtuner.engines.supervising import processes

GOOD_ENDS = {0, 2, 3, 130}  # over; something is in the way; nothing was measured; interrupted twice


class Run:
    """A ``trimtuner run``: a process of its own, asked for by the socket of quick commands, with a clock of its own."""

    def __init__(self, quick: Path, job: Path, folder: Path, number: int, ahead_seconds: float = 0.0) -> None:
        self.output = folder / f"run-{number}.txt"
        self.clock = folder / f"clock-{number}"
        self.jump(ahead_seconds)
        self.signals: list[int] = []
        self._code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(quick / "socket"))
        self.pid = self._begin(["trimtuner", "run", "-q", str(job)], folder)

    def _begin(self, words: list[str], folder: Path) -> int:
        environment = {**os.environ, "PYTHON_CLOCK_FILE": str(self.clock), "PGPASSWORD": PASSWORD}
        asked = {"words": words, "folder": str(folder), "environment": environment, "files": [0, 1, 2]}
        request = json.dumps(asked).encode()
        with open(os.devnull) as nothing, self.output.open("wb") as output:
            header = [len(request).to_bytes(8, "big")]
            socket.send_fds(self._connection, header, [nothing.fileno(), output.fileno(), output.fileno()])
        self._connection.sendall(request)
        return int.from_bytes(self._connection.recv(8), "big")

    def code(self) -> int | None:
        """How it ended, if it has; less than nothing where a signal ended it."""
        if self._code is None and select.select([self._connection], [], [], 0)[0]:
            code = int.from_bytes(self._connection.recv(8), "big")
            self._code = code - 256 if code >= 192 else code
            self._connection.close()
        return self._code

    def send(self, number: signal.Signals) -> bool:
        """Whether there was anybody to receive it."""
        process = processes.read_process(self.pid) if self.code() is None else None
        if process is None or not process.is_alive:
            return False
        self.signals.append(number)
        processes.send(process, number)
        return True

    def jump(self, seconds: float) -> None:
        """Its clock is so far from ours from now on."""
        draft = self.clock.with_suffix(".new")
        draft.write_text(repr(seconds))
        draft.replace(self.clock)

    def complaint(self) -> str | None:
        """What is wrong with how it ended, if anything is."""
        code, said = self.code(), self.output.read_text(errors="replace")
        was_killed = code is not None and -code in self.signals
        if (code in GOOD_ENDS or was_killed) and "Traceback" not in said:
            return None
        return f"a run ended with {code} and said: {said[-1500:]}"
