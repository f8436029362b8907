"""One thread for the models of ours, whoever asks for them."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import cached_property

from threadpoolctl import ThreadpoolController


class _OneThread(ContextDecorator):
    """The models' matrices are small: more threads only fight with each other, and with trainings under way.

    How many threads linear algebra has is one number for the whole process, and whoever sets it must put it back before
    another one reads it. So of the user's threads one is in here at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            self._limit = self._libraries.limit(limits=1)
            self._limit.__enter__()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._limit.__exit__(None, None, None)
        self._lock.release()

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        """Looked for once, when there is something to compute: those of numpy and scipy are loaded by then."""
        return ThreadpoolController().select(user_api="blas")


one_thread = _OneThread()
