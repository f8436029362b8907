"""A newcomer's path, end to end, from the built wheel: nothing of this repository is on the way."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tools.release.environments import Environment, has_index, run
from tools.release.newcomer import outside_requests, walk

pytestmark = [
    pytest.mark.xdist_group("release"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux"),
]
ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    """With test_pages.py, which walks the same path from the sources, the short form of the walk below."""
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT])
    (wheel,) = tmp_path.glob("*.whl")
    held = {Path(name) for name in ZipFile(wheel).namelist()}
    package = [path for path in (ROOT / "src" / "trimtuner").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(package) > 200
    assert {path.relative_to(ROOT / "src") for path in package} <= held


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute, of which most is the package index
def test_a_newcomer_gets_from_the_wheel_to_a_trained_winner_and_a_report(tmp_path):
    environment = Environment.made_by(sys.executable, tmp_path / "venv")
    if not has_index(environment):
        pytest.skip("there is no package index at hand, so nothing can be installed")
    run([sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT])
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    environment.install(wheel)
    (tmp_path / "work").mkdir()
    walk(environment.programs, tmp_path / "work")


@pytest.mark.parametrize(
    "page",
    [
        '<img src="https://elsewhere.example/a.png">',
        '<link rel="stylesheet" href="//elsewhere.example/a.css">',
        "<style>body { background: url(http://elsewhere.example/a.png) }</style>",
        '<style>@import "https://elsewhere.example/a.css"</style>',
    ],
)
def test_a_page_that_asks_others_is_found_out(page):
    assert len(outside_requests(page)) == 1


def test_a_page_that_carries_everything_asks_nobody():
    page = '<svg xmlns="http://www.w3.org/2000/svg"></svg><a href="#x">x</a><img src="data:image/png;base64,AA">'
    assert outside_requests(page) == []
