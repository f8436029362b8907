"""The built site: no warning, no link into the void, nothing loaded from elsewhere, every public name on a page."""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import trimtuner as tt
from benchmarks.browser import browser, why_no_browser
from tools.check_site import check_site

ROOT = Path(__file__).parents[2]
INTEGRATIONS = ROOT / "src/trimtuner/integrations"
HELPERS = {"tracking", "written"}  # what several of them share

builds = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings_handlers")),
    reason="mkdocs-material or mkdocstrings is not installed; install trimtuner[dev]",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, as make docs builds it."""
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("site")
@builds
class TestSite:
    """What ``make docs`` builds and checks, too."""

    def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(self, site):
        assert check_site(site).faults == ()

    def test_a_reader_sees_nothing_that_is_for_the_tests_alone(self, site):
        page = (site / "report.html").read_text()
        assert "trimtuner report job.yaml" in re.sub("<[^>]+>", "", page)
        assert "trimtuner init" not in re.sub("<[^>]+>", "", page)  # in a comment of the page
        assert "skip=" not in page

    def test_generated_pages_are_there(self, site):
        assert 'id="run-timeout"' in (site / "reference/job-file.html").read_text()
        assert 'id="validate"' in (site / "reference/command-line.html").read_text()
        assert "0001-own-trees.html" in (site / "decisions/index.html").read_text()
        assert (site / "reference/trimtuner.schema.json").read_text().startswith("{")

    @pytest.mark.slow
    @pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
    def test_in_a_browser_it_asks_nobody_finds_words_and_fits_a_phone(self, site):
        with served(site) as address, browser() as running:
            page = running.new_page(viewport={"width": 390, "height": 800})
            asked, troubles, wide = [], [], []
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: troubles.append(str(error)))
            for path in sorted(site.rglob("*.html")):
                page.goto(f"{address}/{path.relative_to(site)}")
                if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                    wide.append(path.name)
            page.set_viewport_size({"width": 1300, "height": 900})
            page.goto(f"{address}/index.html")
            page.click(".md-search__input")
            page.keyboard.type("interruptions")
            page.wait_for_selector(".md-search-result__item")
        assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
        assert troubles == []
        assert wide == []


@functools.cache
def page_of_names() -> str:
    return (ROOT / "docs/reference/api.md").read_text()


def shown_names() -> list[str]:
    return re.findall(r"^::: (\S+)$", page_of_names(), re.MULTILINE)


def public_names(path: Path) -> list[str]:
    """What a module says that it offers."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return ast.literal_eval(statement.value)
    return []


def test_the_page_of_the_api_shows_exactly_the_public_names():
    shown = [name.removeprefix("trimtuner.") for name in shown_names() if name.count(".") == 1]
    assert sorted(shown) == sorted(tt.__all__)


def test_the_page_of_the_api_shows_every_integration_with_all_that_it_offers():
    for path in sorted(INTEGRATIONS.iterdir()):
        if path.stem.startswith("_") or path.stem in HELPERS:
            continue
        module = f"trimtuner.integrations.{path.stem}"
        shown = {name.removeprefix(f"{module}.") for name in shown_names() if name.startswith(f"{module}.")}
        assert shown, f"{module} is not on the page"
        assert shown >= set(public_names(path / "__init__.py" if path.is_dir() else path))


def test_members_on_the_page_of_the_api_are_there():
    for name, members in re.findall(
        r"^::: trimtuner\.(\w+)\n    options:\n      members: \[(.*)\]$", page_of_names(), re.M
    ):
        assert [one for one in members.split(", ") if not hasattr(getattr(tt, name), one)] == []


class TestCheckSite:
    HEAD = '<head><meta http-equiv="Content-Security-Policy" content=""></head>'

    def faults(self, folder: Path, **pages: str) -> tuple[str, ...]:
        for name, text in pages.items():
            (folder / f"{name}.html").write_text(self.HEAD + text)
        return check_site(folder).faults

    def test_a_site_in_order_has_no_faults(self, tmp_path):
        (tmp_path / "a b.png").touch()
        text = '<h1 id="top">x</h1><a href="b.html#there">b</a><a href="#top">up</a><img src="a%20b.png">'
        assert self.faults(tmp_path, a=text, b='<a id="there"></a><a href="https://x.example">x</a>') == ()
        assert check_site(tmp_path).outside == (("https://x.example", "b.html"),)

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ('<a href="c.html">c</a>', "a.html: links to c.html, which is not there"),
            ('<a href="#nowhere">c</a>', "a.html: links to #nowhere, which has no such anchor"),
            ('<img src="c.png">', "a.html: loads c.png, which is not there"),
            ('<script src="https://x.example/a.js"></script>', "a.html: loads https://x.example/a.js from elsewhere"),
            ('<link rel="stylesheet" href="//x.example/a.css">', "a.html: loads //x.example/a.css from elsewhere"),
            ('<p style="background: url(http://x.example/a)">', "a.html: loads http://x.example/a from elsewhere"),
            ("<style>@import 'http://x.example/a';</style>", "a.html: loads http://x.example/a from elsewhere"),
            ('<img srcset="http://x.example/a 2x">', "a.html: loads http://x.example/a from elsewhere"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_page(self, tmp_path, text, fault):
        assert self.faults(tmp_path, a=text) == (fault,)

    def test_style_sheets_load_too(self, tmp_path):
        (tmp_path / "a.css").write_text("@font-face { src: url('https://x.example/a.woff') }")
        assert self.faults(tmp_path, a="") == ("a.css: loads https://x.example/a.woff from elsewhere",)

    def test_a_page_must_forbid_requests_to_others(self, tmp_path):
        (tmp_path / "a.html").write_text("<p>x")
        assert "no Content-Security-Policy" in check_site(tmp_path).faults[0]

    def test_an_empty_folder_is_no_site(self, tmp_path):
        assert "there is no page" in check_site(tmp_path).faults[0]


@builds
class TestPreparing:
    """What the hooks make of a page."""

    def prepared(self, text: str, source: str) -> str:
        from tools.docs_hooks import prepare_page

        return prepare_page(text, source)

    def test_links_between_pages_stay_and_those_to_root_files_are_found(self):
        text = "[a](howto/gpus.md#x) ![p](pictures/money.png) [c](../CHANGELOG.md) [r](../README.md)\n"
        expected = "[a](howto/gpus.md#x) ![p](pictures/money.png) [c](changelog.md) [r](index.md)\n"
        assert self.prepared(text, "jobs.md") == expected
        assert self.prepared("[j](docs/jobs.md) [d](docs/decisions)\n", "changelog.md") == (
            "[j](jobs.md) [d](decisions/index.md)\n"
        )

    def test_a_file_of_the_project_that_is_not_on_the_site_keeps_its_name(self):
        assert (
            self.prepared("see [`p`](../../pyproject.toml), [no](nothing.py)\n", "howto/a.md")
            == "see `p`, [no](nothing.py)\n"
        )

    def test_comments_and_reasons_to_skip_are_not_shown_and_code_is_left_alone(self):
        text = 'a\n<!--\n```console\n$ x\n```\n-->\n```text skip="no"\n<!--\n[r](../README.md)\n-->\n```\n'
        assert self.prepared(text, "a.md") == "a\n```text\n<!--\n[r](../README.md)\n-->\n```\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder on the loopback; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
