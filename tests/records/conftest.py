"""Whatever a test opened is closed after it."""

import pytest
import record_fakes


@pytest.fixture(autouse=True)
def _close_records():
    yield
    record_fakes.close_all()
