"""The two stores of a record, and whatever a test opened is closed after it."""

import itertools

import pytest
import record_fakes


@pytest.fixture(autouse=True)
def _close_records():
    yield
    record_fakes.close_all()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request, tmp_path):
    """Makes fresh places for records, of one store or the other."""
    if request.param == "sqlite":
        numbers = itertools.count()
        return lambda: tmp_path / f"record-{next(numbers)}.db"
    server = request.getfixturevalue("postgres_server")
    return lambda: server.address(server.new_database())


@pytest.fixture
def place(new_place):
    """Where a record may be made."""
    return new_place()
