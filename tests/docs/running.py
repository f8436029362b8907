"""A page is run from top to bottom, as its reader would: files written, commands typed, Python executed.

What a fence means, by what stands behind it:

title="FILE"      it is written to that file, over an earlier one; a job file must load, known languages must parse
python            runs; all such blocks of a page share one interpreter
console           lines ``$ …`` are commands for one bash (``> …`` goes on with one), which must end with 0, or with
                  what ``# exit 2`` at their end says; lines below a command are its output, where … stands for
                  anything, and alone on a line for any lines; without such lines its output is not looked at
yaml              a fragment of a job file: the last one of the page, with these keys replaced, must load
json, toml, csv   must parse
text              is not run
skip="WHY"        is not run, since it cannot be: a real AWS account, a GPU; test_pages.py counts these

Fences inside HTML comments are run too, and not shown: what a page needs and its reader does not. The front matter may
say ``needs: [postgres]`` (see needs.py) and ``slow: true``. While writing: ``python tests/docs docs/start.md``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from expecting import Command, commands_of, is_as_expected
from fragments import check_data, check_file, check_fragment, is_job_file
from needs import environment_of, unknown
from page import Block, Page, PageFault
from processes import Interpreter, Shell, TookTooLongError, end_all_in

from postgres_server import PostgresServer
from quick_commands import SCRIPTS

_DATA = ("json", "toml", "csv")
_LANGUAGES = "python, console, yaml, json, toml, csv, text"


def run_page(page: Page, server: PostgresServer | None = None, programs: Path | None = None) -> None:
    """Run all blocks of a page in a fresh folder; a ``PageFault`` says which one is not as the page says.

    ``programs`` is a folder of ``quick_commands``: commands are looked for there first.
    """
    if strange := unknown(page.needs):
        raise PageFault(page.name, 1, f"needs: nobody knows how to provide {', '.join(strange)}")
    with _fresh_folder() as base:
        environment = environment_of(page.needs, base, server, programs)
        folder = base / "job"
        folder.mkdir()
        python = Path(sys.executable) if programs is None else programs / SCRIPTS
        place = _Place(page.name, folder, base, environment, python)
        try:
            for block in page.blocks:
                place.run(block)
        finally:
            place.end()


@contextmanager
def _fresh_folder() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="page-")).resolve()  # a short name: sockets below it must fit 100 characters
    try:
        yield base
    finally:
        end_all_in(base)
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class _Place:
    """The folder of a page, with the shell and the interpreter that work there."""

    page: str
    folder: Path
    base: Path
    environment: dict[str, str]
    python: Path
    job_file: Path | None = None
    shell: Shell | None = None
    interpreter: Interpreter | None = None

    def run(self, block: Block) -> None:
        """Do what the block's language asks for."""
        if block.skip is not None or (block.language == "text" and block.title is None):
            return
        try:
            self._run(block)
        except TookTooLongError as error:
            raise PageFault(self.page, block.line, str(error)) from None

    def _run(self, block: Block) -> None:
        if block.title is not None:
            self._write(block, block.title)
        elif block.language == "python":
            self._execute(block)
        elif block.language == "console":
            self._type(block)
        elif block.language == "yaml":
            self._check(block)
        elif block.language in _DATA:
            with self._blaming(block):
                check_data(block.language, block.text)
        else:
            said = f"a block of {block.language!r}" if block.language else "a block without a language"
            raise PageFault(self.page, block.line, f'{said}; use one of {_LANGUAGES}, or title="FILE"')

    @contextmanager
    def _blaming(self, block: Block) -> Iterator[None]:
        try:
            yield
        except (ValueError, SyntaxError) as error:
            raise PageFault(self.page, block.line, f"{block.title or block.language}: {error}") from None

    def _write(self, block: Block, title: str) -> None:
        path = (self.folder / title).resolve()
        if not path.is_relative_to(self.folder):
            raise PageFault(self.page, block.line, f"{title!r} is outside the page's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        with self._blaming(block):
            check_file(path, block.language, block.text)
            if is_job_file(block.language, block.text):
                self.job_file = path

    def _check(self, block: Block) -> None:
        made = self.folder / "job.yaml"  # 'trimtuner init' may have
        job_file = self.job_file or (made if made.exists() else None)
        with self._blaming(block):
            check_fragment(block.text, job_file, self.folder)

    def _execute(self, block: Block) -> None:
        if self.interpreter is None:
            self.interpreter = Interpreter(self.folder, self.base / "printed", self.environment, self.python)
        failure = self.interpreter.run(block.text, self.page, block.line + 1)
        if failure is not None:
            raise PageFault(self.page, failure[0], f"the python block of line {block.line} fails\n{failure[1]}")

    def _type(self, block: Block) -> None:
        if self.shell is None:
            self.shell = Shell(self.folder, self.base, self.environment)
        with self._blaming(block):
            commands = commands_of(block.text)
        for command in commands:
            _run_command(self.shell, command, self.page, block.line + 1 + command.offset)

    def end(self) -> None:
        """Let go of the processes."""
        for process in (self.shell, self.interpreter):
            if process is not None:
                process.end()


def _run_command(shell: Shell, command: Command, page: str, line: int) -> None:
    answer = shell.run(command)
    if answer.exit_code != command.exit_code:
        codes = f"exit code {command.exit_code} was expected, {answer.exit_code} came"
        raise PageFault(page, line, f"$ {command.text}\n{codes}\n{_shown(answer.output)}")
    if command.output is not None and not is_as_expected(command.output, answer.output):
        expected = "\n".join(command.output)
        raise PageFault(page, line, f"$ {command.text}\nexpected:\n{_shown(expected)}\ncame:\n{_shown(answer.output)}")


def _shown(text: str) -> str:
    return "\n".join(f"  | {line}" for line in text.splitlines())
