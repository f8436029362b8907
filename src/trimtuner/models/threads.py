"""One thread for the linear algebra of ours, whoever asks for it."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import cached_property

from threadpoolctl import ThreadpoolController


class _OneThread(ContextDecorator):
    """The models' matrices are small: more threads only fight with each other, and with trainings under way.

    How many threads a library of linear algebra uses is one number for the whole process. So the first to come in
    writes down what it was, and the last to leave puts it back, however many threads of the user's are in between.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        """Looked for once, when there is something to compute: those of numpy and scipy are loaded by then."""
        return ThreadpoolController()


one_thread = _OneThread()
