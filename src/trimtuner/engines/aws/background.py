"""One thread with an event loop for all that is under way in this process, and a few threads for calls that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
T = TypeVar("T")

_AGAIN_SECONDS = 1.0
_THREADS = 8  # calls to AWS at once, of all attempts together


def begin(work: Coroutine[None, None, T]) -> Future[T]:
    """Begin the work in the background; it ends with the process, wherever it is then."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


async def in_thread(call: Callable[Given, T], *given: Given.args, **named: Given.kwargs) -> T:
    """What the call returns; meanwhile everything else goes on."""
    return await asyncio.get_running_loop().run_in_executor(_pool(), lambda: call(*given, **named))


async def first_of(*works: Coroutine[None, None, T]) -> T:
    """What the first to end returns, or raises; the others are broken off. Of several, the one named first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        await _break_off(tasks)


async def all_of(*works: Coroutine[None, None, T]) -> list[T]:
    """What all return; when one fails, the others are broken off."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await _break_off(tasks)


async def _break_off(tasks: Sequence[asyncio.Future[T]]) -> None:
    """Return when all have ended. One that waits for a dead line while it is broken off is told again."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # of several failures, one is told


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="trimtuner-aws", daemon=True).start()
    return loop


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="trimtuner-aws")
