"""The page of every kind of study in a real browser: each section answered, none pending or at fault, picking works."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.browser import browser, dashboard, why_no_browser
from benchmarks.dashboard import until
from journeys.choices import Journey, covering
from journeys.making import write_journey
from journeys.walking import FAULTS
from postgres_server import PASSWORD
from trimtuner.views.every import VIEWS
from waiting import PATIENCE_SECONDS
from written_jobs import quick_program, trimtuner

pytestmark = [
    pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser())),
    pytest.mark.xdist_group("browser"),
]
ALL, AT_ONCE = 160, 10  # more rows than there are, and how many one dashboard shows


@pytest.fixture(scope="module")
def running() -> Iterator[object]:
    with browser() as found:
        yield found


def ran(folder: Path, journey: Journey, request: pytest.FixtureRequest) -> Path:
    """The study of a journey, without what would interrupt it."""
    folder.mkdir()
    storage = None
    if journey["store"] == "postgres":
        server = request.getfixturevalue("postgres_server")
        storage = server.address(server.new_database(), password=None)
    path = write_journey(folder, {**journey, "interruption": "none"}, storage, folder.name)
    trimtuner("run", path.name, "-q", check=False, cwd=folder)  # where all trials fail there is no answer
    return path


def looked_at(running, journeys: list[Journey], folder: Path, request: pytest.FixtureRequest) -> None:
    paths = [ran(folder / f"kind-{number}", journey, request) for number, journey in enumerate(journeys)]
    context = running.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with dashboard(*paths, program=[quick_program()]) as address:
        page.goto(address)
        for number, journey in enumerate(journeys):
            print(journey)
            page.goto(f"{address.split('/login')[0]}/study/{number}")
            until(page, "!document.querySelector('.stale')", PATIENCE_SECONDS)
            every_section_answers(page)
            picking_works(page)
            assert wrong == []
    context.close()


def every_section_answers(page) -> None:
    for view in VIEWS:
        told = page.locator(f"#{view.name} .body").inner_text()
        assert len(told) > 10, view.name
        assert all(fault not in told for fault in FAULTS), (view.name, told)
    assert page.locator("#state.trouble").count() == 0


def picking_works(page) -> None:
    """What is picked in the table is marked in it, named at the foot, and marked nowhere once it is cleared."""
    page.locator("#trials [data-pick]").first.click()
    key = page.locator("#trials tr.is-picked").first.get_attribute("data-c")
    assert page.locator(f"[data-c='{key}']:not(.is-picked)").count() == 0
    assert page.locator("#tray .chip").inner_text().startswith("A ")
    page.locator("#tray button", has_text="Clear").click()
    assert page.locator(".is-picked").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, ALL, AT_ONCE))
def test_the_pages_of_all_kinds_of_study(running, tmp_path, request, monkeypatch, first):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    kinds = list(islice(covering(0), first, first + AT_ONCE))
    if not kinds:
        pytest.skip("the array has fewer rows")
    looked_at(running, kinds, tmp_path, request)
