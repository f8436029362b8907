"""A real browser and a real dashboard, for pictures, measurements and tests."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_FLAGS = [
    "--no-sandbox",  # containers have none to give
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def why_no_browser() -> str | None:
    """What is missing; nothing where there is a browser to be had."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None if _chromium() else "there is no chromium on this machine"


@contextmanager
def browser(*flags: str) -> Iterator[Browser]:
    """Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # However long it takes: on a busy machine more than the half minute that is usual.
        running = playwright.chromium.launch(executable_path=_chromium(), args=[*_FLAGS, *flags], timeout=0)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def dashboard(*words: object, program: Sequence[str] = (sys.executable, "-m", "trimtuner")) -> Iterator[str]:
    """``trimtuner dashboard`` in a process of its own; the address that it prints."""
    command = [*program, "dashboard", *map(str, words), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, f"the dashboard said {line!r}"
        yield found[0]
    finally:
        server.terminate()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((str(Path(found)) for name in names if (found := shutil.which(name))), None)
