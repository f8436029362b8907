"""The two processes behind a page, a shell and a Python interpreter, which remember as a reader's would."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from expecting import Command

PATIENCE_SECONDS = 150.0  # for one command or block; a page should take a few seconds

# Scripts come and exit codes leave by two pipes, both closed to what is started, so that an end is seen as one.
_SHELL = """
set -euo pipefail
while read -r -u {scripts} script; do
    source "$script" > "$script.out" 2>&1 < /dev/null {scripts}<&- {codes}>&-
    echo "$page_exit_code" >&{codes}
done
"""
_MUST_SUCCEED = """{command}
page_exit_code=$?
"""
# In a shell of its own, since the page's would end with it.
_MAY_FAIL = """set +e
( set -e
{command}
)
page_exit_code=$?
set -e
"""


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    output: str
    exit_code: int


class TookTooLongError(Exception):
    """Nothing came within the patience."""


class Shell:
    """A bash that runs commands one by one: variables and the folder stay as a command left them."""

    def __init__(self, folder: Path, scripts: Path, environment: Mapping[str, str]) -> None:
        self._scripts, self._count = scripts, 0
        to_read, self._requests = os.pipe()
        self._answers, to_write = os.pipe()
        shell = ["bash", "--norc", "--noprofile", "-c", _SHELL.format(scripts=to_read, codes=to_write)]
        self._process = subprocess.Popen(
            shell,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_read, to_write),
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)

    def run(self, command: Command) -> Answer:
        """Type one command and wait for its end."""
        self._count += 1
        script = self._scripts / f"command-{self._count}.sh"
        form = _MAY_FAIL if command.exit_code else _MUST_SUCCEED
        script.write_text(form.format(command=command.text), encoding="utf-8")
        os.write(self._requests, f"{script}\n".encode())
        said = _read_line(self._answers)
        code = int(said) if said.strip() else self._process.wait(PATIENCE_SECONDS)
        return Answer(script.with_name(f"{script.name}.out").read_text(encoding="utf-8", errors="replace"), code)

    def end(self) -> None:
        """End it and what it started in the background."""
        os.close(self._requests)
        os.close(self._answers)
        _end_group(self._process)


class Interpreter:
    """A Python that runs blocks one by one in one namespace."""

    def __init__(self, folder: Path, log: Path, environment: Mapping[str, str], python: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [python, Path(__file__).with_name("interpreter.py"), log],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def run(self, code: str, page: str, line: int) -> tuple[int, str] | None:
        """The line of the page at which the code failed, and how; None when it did not."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: PT018
        requests.write(json.dumps({"code": code, "page": page, "line": line}).encode() + b"\n")
        requests.flush()
        said = _read_line(answers.fileno())
        if not said:
            return line, f"the interpreter ended with code {self._process.wait(PATIENCE_SECONDS)}\n{self.printed()}"
        answer = json.loads(said)
        return None if answer is None else (answer["line"], answer["text"])

    def printed(self) -> str:
        """What the blocks printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> None:
        """End it and what it started in its group."""
        _end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def end_all_in(folder: Path) -> None:
    """Kill every process that works in the folder: what a page left running, in whatever group it is."""
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if Path(os.readlink(entry)).is_relative_to(folder):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:  # it ended meanwhile, or is not ours to see
            continue


def _read_line(descriptor: int) -> bytes:
    """A line, or nothing at the end."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([descriptor], [], [], PATIENCE_SECONDS)[0]:
            raise TookTooLongError(f"it was not done within {PATIENCE_SECONDS:.0f} s")
        more = os.read(descriptor, 65536)
        if not more:
            return b""
        line += more
    return line


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # all of it has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
