"""The pictures of page and report in docs/pictures: ``python -m benchmarks.view_pictures``."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from benchmarks.browser import browser, dashboard
from benchmarks.dashboard import until
from benchmarks.made_up_job import write_job
from trimtuner.commands.report import write_report
from trimtuner.jobs.studies import JobStudy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_COLOURS = 128
_PHONE, _DESK, _PAPER = {"width": 390, "height": 844}, {"width": 1440, "height": 900}, {"width": 680, "height": 900}


def main() -> None:
    """Run studies of a made-up job, and take their pictures."""
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        paths = [_ran(Path(folder), "speech", "trimtuner"), _ran(Path(folder), "speech-by-eic", "eic")]
        with dashboard(paths[0]) as address:
            _keep(_first(_opened(running, address, "light", _DESK)), "page-first.png")
            _keep(_columns(_whole(_picked(_opened(running, address, "light", _DESK))), 2), "page-light.png")
            _keep(_columns(_whole(_opened(running, address, "dark", _DESK)), 2), "page-dark.png")
            _keep(_columns(_whole(_opened(running, address, "light", _PHONE)), 6), "page-phone.png")
            _keep(_first(_compared(_opened(running, address, "light", _DESK))), "page-compare.png")
        with dashboard(*paths) as address:
            _keep(_first(_listed(running, address)), "page-studies.png")
            _keep(_first(_against(_listed(running, address))), "page-against.png")
        (report,) = write_report(JobStudy.at(paths[0]), Path(folder) / "report.html", None, None)
        printed = running.new_page(viewport=_PAPER)
        printed.goto(report.as_uri())
        printed.emulate_media(media="print")
        _keep(_columns(_whole(printed), 3), "report-printed.png")


def _ran(folder: Path, name: str, method: str) -> Path:
    own = folder / name
    own.mkdir()
    path = write_job(own, name=name, method=method)
    subprocess.run([sys.executable, "-m", "trimtuner", "run", path, "-q"], check=True, stdout=subprocess.DEVNULL)
    return path


def _opened(running: Browser, address: str, scheme: str, size: dict[str, int]) -> Page:
    page = running.new_page(viewport=size, color_scheme=scheme)
    page.goto(address)
    until(page, "!document.querySelector('.stale')")
    return page


def _picked(page: Page) -> Page:
    """With what is recommended picked, which is then marked everywhere."""
    page.locator("#tradeoff path.recommended[data-c]").click()
    return page


def _compared(page: Page) -> Page:
    _picked(page)
    page.locator("#trials [data-pick]").first.click()
    page.locator("#tray button", has_text="Compare").click()
    return page


def _listed(running: Browser, address: str) -> Page:
    page = running.new_page(viewport=_DESK)
    page.goto(address)
    page.locator("#studies input").first.wait_for()
    return page


def _against(page: Page) -> Page:
    for tick in page.locator("#studies input").all():
        tick.check()
    page.locator("#studies button").click()
    page.locator("#against svg.chart").wait_for()
    return page


def _first(page: Page) -> Image.Image:
    page.wait_for_timeout(300)
    return _taken(page, page.screenshot())


def _whole(page: Page) -> Image.Image:
    page.mouse.move(1, 1)
    page.evaluate("window.scrollTo(0, 0)")  # else what stays in sight is in the midst of the picture
    page.wait_for_timeout(300)
    return _taken(page, page.screenshot(full_page=True))


def _taken(page: Page, shot: bytes) -> Image.Image:
    page.close()
    return Image.open(io.BytesIO(shot)).convert("RGB")


def _columns(whole: Image.Image, count: int) -> Image.Image:
    """A long page cut into columns side by side."""
    height = -(-whole.height // count)
    sheet = Image.new("RGB", ((whole.width + 10) * count - 10, height), "#888888")
    for column in range(count):
        part = whole.crop((0, column * height, whole.width, min((column + 1) * height, whole.height)))
        sheet.paste(part, (column * (whole.width + 10), 0))
    return sheet


def _keep(picture: Image.Image, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    reduced = picture.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(PICTURES / name, optimize=True)
    print(f"{name}: {picture.width} x {picture.height}, {(PICTURES / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
