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
_PHONE, _DESK = {"width": 390, "height": 844}, {"width": 900, "height": 900}


def main() -> None:
    """Run a study of a made-up job, and take its pictures."""
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        path = write_job(Path(folder))
        subprocess.run([sys.executable, "-m", "trimtuner", "run", path, "-q"], check=True, stdout=subprocess.DEVNULL)
        with dashboard(path) as address:
            _keep(_columns(_shot(running, address, "light", _DESK), 2), "page-light.png")
            _keep(_columns(_shot(running, address, "dark", _DESK), 2), "page-dark.png")
            _keep(_columns(_shot(running, address, "light", _PHONE), 5), "page-phone.png")
        (report,) = write_report(JobStudy.at(path), Path(folder) / "report.html", None, None)
        _keep(_columns(_printed(running, report), 2), "report-printed.png")


def _shot(running: Browser, address: str, scheme: str, size: dict[str, int]) -> Image.Image:
    page = running.new_page(viewport=size, color_scheme=scheme)
    page.goto(address)
    until(page, "!document.querySelector('.stale')")
    page.locator("#tradeoff .pickable").focus()
    page.keyboard.press("End")
    page.fill("[data-filter]", "m5 all")
    page.wait_for_timeout(300)
    return _whole(page)


def _printed(running: Browser, report: Path) -> Image.Image:
    """As it looks on paper: 180 mm wide."""
    page = running.new_page(viewport={"width": 680, "height": 900})
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    return _whole(page)


def _whole(page: Page) -> Image.Image:
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    page.close()
    return taken.convert("RGB")


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
