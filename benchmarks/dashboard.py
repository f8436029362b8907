"""Thousands of trials on the dashboard in a real browser, and the report's size: ``python -m benchmarks.dashboard``."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.browser import browser, dashboard
from benchmarks.made_up_job import fill_record, write_job
from trimtuner.commands.report import write_report
from trimtuner.jobs.studies import JobStudy

if TYPE_CHECKING:
    from playwright.sync_api import Page

_MANY = [number / 20 for number in range(12)]  # of dropout: so many configurations that thousands of trials find room
_WATCH = """
window.stalls = [];
let last = performance.now();
const beat = () => { const now = performance.now(); window.stalls.push(now - last); last = now; setTimeout(beat); };
beat();
"""
_BYTES = "performance.getEntries().reduce((sum, one) => sum + (one.transferSize || 0), 0)"


def main() -> None:
    """Print what docs/performance.md reports."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--trials", type=int, default=5000)
    chosen = arguments.parse_args()
    for method in ("random", "trimtuner-dt", "trimtuner"):
        with _filled(chosen.trials, method=method, dropouts=_MANY) as path:
            print(f"{chosen.trials} trials of {method}")
            for name, value in measured(path, chosen.trials).items():
                print(f"  {name:<44} {value}")
    with _filled(200) as path:
        began = time.perf_counter()
        (written,) = write_report(JobStudy.at(path), path.with_suffix(".html"), None, None)
        print(f"report of 200 trials: {written.stat().st_size:,} bytes, {time.perf_counter() - began:.0f} s")


def measured(path: Path, trials: int) -> dict[str, str]:
    """What a person waits for, from the moment that the address is opened."""
    with dashboard(path) as address, browser() as running:
        page = running.new_page()
        page.add_init_script(_WATCH)
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("#trials tbody tr")
        first, first_bytes = time.perf_counter() - began, page.evaluate(_BYTES)
        until(page, "!document.querySelector('.stale')")
        every, every_bytes = time.perf_counter() - began, page.evaluate(_BYTES)
        stall = page.evaluate("Math.max(...window.stalls.splice(0))")
        all_rows = _seconds_to_filter(page, "oom m5.large", f"of {trials} trials")
        rows_bytes = page.evaluate(_BYTES) - every_bytes
        filtered = _seconds_to_filter(page, "no such trial", f"0 of {trials} trials")
        later = page.evaluate("Math.max(...window.stalls)")
    return {
        "seconds to the first views (facts)": f"{first:.2f}",
        "bytes until then": f"{first_bytes:,}",
        "seconds to all ten views": f"{every:.1f}",
        "bytes until then, all views": f"{every_bytes:,}",
        "longest stall of the page, milliseconds": f"{stall:.0f}",
        f"seconds to filter, reading all {trials} rows": f"{all_rows:.2f}",
        "bytes of these rows": f"{rows_bytes:,}",
        "seconds to filter again": f"{filtered:.2f}",
        "longest stall meanwhile, milliseconds": f"{later:.0f}",
    }


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
