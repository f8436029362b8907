"""Every code block and command of the documentation does what its page says: one test a page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from needs import POSTGRES, missing
from page import PageFault, read_page
from running import run_page

from written_jobs import quick_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages show the local engine, which is for Linux")

ROOT = Path(__file__).parents[2]
MOST_SKIPPED = 14  # blocks on the whole site that cannot run anywhere; a new one needs a good reason

_ALONE = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
_PATHS = sorted(ROOT.glob("docs/**/*.md")) + [path for name in _ALONE if (path := ROOT / name).exists()]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def marked(path: Path) -> object:
    """The path, with the marks that the front matter asks for."""
    try:
        page = read_page(path, name_of(path))
    except PageFault:  # its test will tell
        return pytest.param(path, id=name_of(path))
    marks = [pytest.mark.xdist_group("ray")] if {"ray", "tune"} & {*page.needs} else []
    if page.is_slow:
        marks.append(pytest.mark.slow)
    return pytest.param(path, id=name_of(path), marks=marks)


@pytest.mark.parametrize("path", [marked(path) for path in _PATHS])
def test_every_block_of_the_page_does_what_it_says(path, request):
    try:
        page = read_page(path, name_of(path))
        if not page.blocks:
            return
        if reason := missing(page.needs):
            pytest.skip(reason)
        server = request.getfixturevalue("postgres_server") if POSTGRES in page.needs else None
        run_page(page, server, Path(quick_program()).parent)
    except PageFault as fault:
        pytest.fail(str(fault), pytrace=False)


def test_few_blocks_of_all_pages_are_not_run():
    skipped = [
        f"{name_of(path)}:{block.line}: {block.skip}"
        for path in _PATHS
        for block in read_page(path, name_of(path)).blocks
        if block.skip is not None
    ]
    assert len(skipped) <= MOST_SKIPPED, "\n".join(skipped)
