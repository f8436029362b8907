"""One hypothesis profile for all rooms: the same examples in every run, and no deadline on a shared machine.

And a PostgreSQL server for those that need one: one a process, started when first asked for.
"""

import gc
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from postgres_server import NOT_HERE, PostgresServer, find_binaries, running_server

settings.register_profile("trimtuner", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("trimtuner")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """In a fresh clone the tests are compiled once, and not by every process that is about to collect them."""
    if not sys.dont_write_bytecode and not Path(__file__).with_name("views").joinpath("__pycache__").exists():
        words = [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", *config.args]
        folder, nowhere = config.invocation_params.dir, subprocess.DEVNULL  # what is wrong, the others will tell
        subprocess.run(words, cwd=folder, stdout=nowhere, stderr=nowhere, check=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Instead of ``--dist loadgroup``: not one test after the other, which takes a message each, and a fixture."""
    from in_pieces import InPieces

    return InPieces(config, log) if config.getvalue("dist") == "loadgroup" else None


# Groups that mostly wait, for clusters, machines and pages: what only computes fills the time beside them.
_FIRST = ("slurm", "ray", "aws", "browser", "assistants")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups begin first; all else stays in its order."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
    return next((turn for turn, group in enumerate(_FIRST) if group in groups), len(_FIRST))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no collection of garbage need look through all of it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # rarer than Python's own choice: there is memory enough


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that many tests share: each takes a database of its own, and none stops it."""
    yield from _server()


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    yield from _server()


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> str:
    """The address of a fresh database."""
    return postgres_server.address(postgres_server.new_database())


def _server() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(NOT_HERE)
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed; install trimtuner[postgres]")
    with running_server(binaries) as server:
        yield server
