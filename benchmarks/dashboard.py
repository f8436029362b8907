"""Thousands of trials on the dashboard in a real browser, and the report's size: ``python -m benchmarks.dashboard``."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.browser import browser, dashboard
from benchmarks.made_up_job import fill_record, write_job
from trimtuner.commands.report import write_report
from trimtuner.jobs.studies import JobStudy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_MANY = [number / 20 for number in range(12)]  # of dropout: so many configurations that thousands of trials find room
_WATCH = """
window.stalls = [];
let last = performance.now();
const beat = () => { const now = performance.now(); window.stalls.push(now - last); last = now; setTimeout(beat); };
beat();
window.seen = {};
const wanted = { recommendation: "#answer dl.facts", screen: "#now .body *", trials: "#trials tbody tr" };
new MutationObserver(() => {
  for (const [name, what] of Object.entries(wanted)) {
    if (!(name in window.seen) && document.querySelector(what)) window.seen[name] = performance.now();
  }
}).observe(document, { childList: true, subtree: true });
"""
_BYTES = "performance.getEntries().reduce((sum, one) => sum + (one.transferSize || 0), 0)"


def main() -> None:
    """Print what docs/performance.md reports."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--trials", type=int, default=5000)
    arguments.add_argument("--openings", type=int, default=5, help="of the page, after the first")
    chosen = arguments.parse_args()
    for method in ("random", "trimtuner-dt", "trimtuner"):
        with _filled(chosen.trials, method=method, dropouts=_MANY) as path:
            print(f"{chosen.trials} trials of {method}")
            for name, value in measured(path, chosen.trials, chosen.openings).items():
                print(f"  {name:<44} {value}")
    with _filled(200) as path:
        began = time.perf_counter()
        (written,) = write_report(JobStudy.at(path), path.with_suffix(".html"), None, None)
        print(f"report of 200 trials: {written.stat().st_size:,} bytes, {time.perf_counter() - began:.0f} s")


def measured(path: Path, trials: int, openings: int) -> dict[str, str]:
    """What a person waits for, from the moment that the address is opened: at once after the start, and later."""
    with dashboard(path) as address, browser() as running:
        first = opened(running, address)
        cold = _seen(first)
        began = time.perf_counter()
        until(first, "!document.querySelector('.stale')")
        every = time.perf_counter() - began
        first.close()
        later = []
        for _ in range(openings):
            page = opened(running, address)
            until(page, "!document.querySelector('.stale')")
            later.append(_seen(page))
            page.close()
        page = opened(running, address)
        until(page, "!document.querySelector('.stale')")
        page.evaluate("window.stalls.splice(0)")
        all_rows = _seconds_to_filter(page, "oom m5.large", f"of {trials} trials")
        filtered = _seconds_to_filter(page, "no such trial", f"0 of {trials} trials")
        page.fill("[data-filter]", "")
        page.wait_for_timeout(500)
        page.locator("#trials th button").nth(3).click()
        page.wait_for_timeout(500)
        table_stall = page.evaluate("Math.max(...window.stalls)")
    names = {"recommendation": "the last recommendation", "screen": "the first screen", "trials": "the trials"}
    return {
        **{f"milliseconds to {words}, just started": f"{cold[name]:.0f}" for name, words in names.items()},
        "seconds from then to all views, with the model": f"{every:.1f}",
        **{f"milliseconds to {words}, later": _spread(one[name] for one in later) for name, words in names.items()},
        "bytes of the page with all views": f"{later[0]['bytes']:,.0f}",
        "longest stall, milliseconds": _spread(one["stall"] for one in later),
        f"seconds to filter, reading all {trials} rows": f"{all_rows:.2f}",
        "seconds to filter again": f"{filtered:.2f}",
        "longest stall, all rows filtered and sorted, milliseconds": f"{table_stall:.0f}",
    }


def opened(running: Browser, address: str) -> Page:
    """The page as soon as its trials are there."""
    page = running.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(_WATCH)
    page.wait_for_timeout(1000)  # a new window keeps the browser itself busy, which answers for fonts, too
    page.goto(address, wait_until="commit")
    until(page, "window.seen && 'trials' in window.seen")
    return page


def _seen(page: Page) -> dict[str, float]:
    """When each part was there, the longest stall so far, and what was loaded."""
    stall, loaded = page.evaluate("Math.max(...window.stalls)"), page.evaluate(_BYTES)
    return {**page.evaluate("window.seen"), "stall": stall, "bytes": loaded}


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{median(found):.0f}, at most {found[-1]:.0f}"


def until(page: Page, claim: str, patience_seconds: float = 300.0) -> None:
    """Wait until something holds on the page; its policy forbids what the browser's driver would do by itself."""
    deadline = time.monotonic() + patience_seconds
    while not page.evaluate(claim):
        assert time.monotonic() < deadline, f"in vain: {claim}"
        page.wait_for_timeout(20)


def _seconds_to_filter(page: Page, words: str, told: str) -> float:
    began = time.perf_counter()
    page.fill("[data-filter]", words)
    until(page, f"document.querySelector('[data-count]').textContent.endsWith({told!r})")
    return time.perf_counter() - began


@contextmanager
def _filled(trials: int, **changes: object) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = write_job(Path(folder), name=f"made-up-{trials}", trials=10 * trials, money=10 * trials, **changes)
        fill_record(path, trials)
        yield path


if __name__ == "__main__":
    main()
