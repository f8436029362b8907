"""Waiting for what should come true, however busy the machine is: a test says what it waits for, not how long."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 240.0  # less than pytest's own limit, so that a test in vain says where it stood


def wait_until(is_true: Callable[[], object]) -> None:
    """Return as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        asked = time.monotonic()
        if is_true():
            return
        now = time.monotonic()
        assert now < deadline, f"it did not come true within {PATIENCE_SECONDS:g} s"
        time.sleep(max(0.02, 3 * (now - asked)))  # what takes long to ask is not asked all the time
