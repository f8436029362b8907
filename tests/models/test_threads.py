"""One thread for linear algebra of ours, and the user's number of threads again when the last of ours has left."""

import os
import subprocess
import sys

import pytest

from trimtuner.engines.minding.environment import THREADS

SCRIPT = """
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
from trimtuner.models.threads import one_thread

def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

@one_thread
def compute():
    return threads()

threadpool_limits(2)
assert threads() == {2}
assert compute() == {1}
first, second = one_thread, one_thread
first.__enter__()   # one thread of the user's comes in,
second.__enter__()  # another one,
first.__exit__()    # and the first leaves before the second
assert threads() == {1}
assert compute() == {1}
assert threads() == {1}
second.__exit__()
assert threads() == {2}
try:
    with one_thread:
        raise ValueError
except ValueError:
    assert threads() == {2}
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="this machine has one core: there is nothing to limit")
def test_the_last_to_leave_puts_back_what_the_first_found():
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment)
