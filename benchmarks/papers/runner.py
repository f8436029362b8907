"""Runs what is missing: side by side, each finished search kept at once, progress shown."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from benchmarks.papers.cache import Cache
from benchmarks.papers.searches import Search, Trace, run_search
from trimtuner.errors import TrimTunerError

SECONDS_BETWEEN_LINES = 30.0


Show = Callable[[int], None]  # told how many searches are done


def run_missing(searches: Sequence[Search], cache: Cache, jobs: int) -> None:
    """Run, in this order, the searches without a result. Those that raise do not stop the others; they are told of."""
    missing = [search for search in searches if search not in cache]
    if not missing:
        return
    failures: list[str] = []
    with progress(len(searches) - len(missing), len(searches)) as show, workers(jobs) as pool:
        futures: dict[Future[Trace], Search] = {pool.submit(run_search, search): search for search in missing}
        for future in as_completed(futures):
            search = futures.pop(future)
            error = future.exception()
            if error is None:
                cache.add(search, future.result())
            else:
                failures.append(f"{search.method} on {search.job.name}, seed {search.seed}: {error!r}")
            show(len(searches) - len(futures))
    if failures:
        raise TrimTunerError(f"{len(failures)} of {len(missing)} searches failed; the first: {failures[0]}")


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, however it ends."""
    # Not forked: the progress display has a thread.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():  # searches under way may have minutes to go
            child.terminate()
        raise
    pool.shutdown()


def _start_worker() -> None:
    """One thread for numbers, so that CPU seconds mean the same everywhere; interrupts are the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def progress(done: int, total: int) -> Iterator[Show]:
    """A bar on a terminal, a line now and then elsewhere; both on standard error."""
    with _bar(done, total) if sys.stderr.isatty() else _lines(done, total) as show:
        yield show


@contextmanager
def _bar(done: int, total: int) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    pace = _Pace(done, total)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("searches", total=total, completed=done)
        yield lambda now: bar.update(task, completed=now, description=pace.text(now))


@contextmanager
def _lines(done: int, total: int) -> Iterator[Show]:
    pace = _Pace(done, total)
    last = time.monotonic()
    print(f"{total - done} of {total} searches to run", file=sys.stderr, flush=True)

    def show(now: int) -> None:
        nonlocal last
        if now == total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"{now} of {total} {pace.text(now)}", file=sys.stderr, flush=True)

    yield show


class _Pace:
    """How fast searches end, and how long that makes the rest."""

    def __init__(self, done: int, total: int) -> None:
        self._done, self._total, self._started = done, total, time.monotonic()

    def text(self, now: int) -> str:
        minutes = (time.monotonic() - self._started) / 60.0
        per_minute = (now - self._done) / max(minutes, 1e-9)
        left = (self._total - now) / max(per_minute, 1e-9)
        return f"searches, {per_minute:.1f} a minute, about {_duration(left)} left"


def _duration(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
