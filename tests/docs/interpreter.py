"""One Python interpreter for all python blocks of a page: run as a process of its own, fed block by block.

Each request is a line of JSON: the code, the page and the line at which the code begins. The answer is a line of JSON:
null, or what went wrong with the line of the page that it went wrong at. What the code prints goes to the named file.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
import traceback
from types import ModuleType


def main(log: str) -> None:
    """Answer until there are no more requests."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _redirect(log)
    sys.path[0] = ""  # the page's folder, whose files it may import
    sys.argv = [""]
    page = ModuleType("__main__")  # pickle looks for the page's functions and classes there
    sys.modules["__main__"] = page
    for line in requests:
        request = json.loads(line)
        answer = _run(page, request["code"], request["page"], request["line"])
        sys.stdout.flush()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _redirect(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for target, source in ((0, nothing), (1, printed), (2, printed)):
        os.dup2(source, target)


def _run(page: ModuleType, code: str, name: str, line: int) -> dict[str, object] | None:
    """Run code as if the page were a Python file, so that tracebacks tell lines of the page."""
    file = f"{name}:{line}"
    padded = "\n" * (line - 1) + code
    linecache.cache[file] = (len(padded), None, padded.splitlines(keepends=True), file)
    try:
        exec(compile(padded, file, "exec"), page.__dict__)  # noqa: S102  (the page is part of the project)
    except BaseException as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        at = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
        at = frames[-1].lineno if frames else at
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None  # without this file
        return {"line": at or line, "text": "".join(traceback.format_exception(error)).strip()}
    return None


if __name__ == "__main__":
    main(sys.argv[1])
