"""Run pages from the shell while writing them: ``python tests/docs docs/start.md``."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "docs"), str(TESTS)]

from needs import POSTGRES, missing  # noqa: E402
from page import Page, PageFault, read_page  # noqa: E402
from running import run_page  # noqa: E402

from postgres_server import find_binaries, running_server  # noqa: E402
from quick_commands import quick_commands  # noqa: E402


def main(names: list[str]) -> int:
    """Run the pages, and say of each how it went."""
    if not names:
        print("usage: python tests/docs PAGE.md ...   (runs every block of the pages; how: tests/docs/running.py)")
        return 2
    return max([_try(Path(name)) for name in names])


def _try(path: Path) -> int:
    started = time.monotonic()
    try:
        page = read_page(path, str(path))
        if reason := missing(page.needs):
            print(f"{path}: skipped: {reason}")
            return 0
        _run(page)
    except PageFault as fault:
        print(f"{fault}\n{path}: FAILED")
        return 1
    print(f"{path}: {len(page.blocks)} blocks, all right, {time.monotonic() - started:.1f} s")
    for block in page.blocks:
        if block.skip is not None:
            print(f"{path}:{block.line}: not run: {block.skip}")
    return 0


def _run(page: Page) -> None:
    with ExitStack() as stack:
        binaries = find_binaries()
        needs_server = POSTGRES in page.needs and binaries is not None
        server = stack.enter_context(running_server(binaries)) if needs_server else None
        run_page(page, server, stack.enter_context(quick_commands()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
