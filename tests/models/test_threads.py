"""One thread for linear algebra of ours, whichever of the user's threads asks, and then the user's number again."""

import os
import subprocess
import sys

import pytest

from trimtuner.engines.supervising.environment import THREADS

SCRIPT = """
from concurrent.futures import ThreadPoolExecutor

import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
from trimtuner.models.posterior import one_thread

def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

def compute():
    with one_thread:
        return nested() | threads()

@one_thread
def nested():
    return threads()

assert threads() == {2}
assert compute() == {1}
assert threads() == {2}
with ThreadPoolExecutor(4) as pool:
    assert [future.result() for future in [pool.submit(compute) for _ in range(40)]] == [{1}] * 40
assert threads() == {2}
try:
    with one_thread:
        raise ValueError
except ValueError:
    assert threads() == {2}
with threadpool_limits(2):  # the user's own limit
    assert compute() == {1}
    assert threads() == {2}
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="this machine has one core: there is nothing to limit")
def test_whoever_comes_in_has_one_thread_and_leaves_the_number_as_it_was():
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    environment["OPENBLAS_NUM_THREADS"] = environment["MKL_NUM_THREADS"] = "2"  # on any larger machine
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment)
