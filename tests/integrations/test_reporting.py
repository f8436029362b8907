"""What a training script prints is what an engine reads; and what it must not print, it refuses."""

import subprocess
import sys

import numpy as np
import pytest

from integrations.reported import reports_in
from trimtuner.errors import InputError
from trimtuner.reporting import Snapshots, read_shares, report


def test_an_engine_reads_what_was_reported(capfd):
    report(accuracy=0.1 + 0.2, fraction=1 / 60)
    assert reports_in(capfd.readouterr().out) == [{"accuracy": 0.1 + 0.2, "fraction": 1 / 60}]


def test_a_report_is_understood_behind_an_unfinished_progress_bar(capfd):
    sys.__stdout__.write("\rEpoch 0:  50%|#####     |")
    report(accuracy=0.5)
    assert reports_in(capfd.readouterr().out) == [{"accuracy": 0.5}]


def test_a_report_reaches_the_real_output_when_a_library_took_it_away(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    report(accuracy=0.5)
    assert reports_in(capfd.readouterr().out) == [{"accuracy": 0.5}]


def test_numbers_of_numpy_are_numbers(capfd):
    report(accuracy=np.float32(0.5), count=np.int64(3), loss=np.array(0.25))
    assert reports_in(capfd.readouterr().out) == [{"accuracy": 0.5, "count": 3.0, "loss": 0.25}]


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ({"accuracy": float("nan")}, "accuracy=nan is not finite"),
        ({"loss": float("inf")}, "loss=inf is not finite"),
        ({"accuracy": "0.9"}, "accuracy='0.9' is not a number"),
        ({"accuracy": None}, "accuracy=None is not a number"),
        ({"accuracy": True}, "accuracy=True is not a number"),
        ({"accuracy": [0.9, 0.8]}, "is not a number"),
        ({"count": 10**400}, "is not a number"),
        ({}, "nothing to report"),
        ({"fraction": 0.5}, "nothing to report"),
        ({"accuracy": 0.9, "fraction": 0}, "outside"),
        ({"accuracy": 0.9, "fraction": 1.01}, "outside"),
        ({"accuracy": 0.9, "time": 3.0}, "time is measured by trimtuner"),
        ({"val accuracy": 0.9}, "'val accuracy' is no name"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_printed(capfd, metrics, why):
    with pytest.raises(InputError, match=why):
        report(**{"loss": 1.0, **metrics} if metrics.keys() - {"fraction"} else metrics)
    assert capfd.readouterr().out == ""


def test_reporting_loads_neither_numpy_nor_anything_else_that_is_heavy():
    script = "import sys, trimtuner.reporting; print([m for m in ('numpy', 'scipy', 'sqlalchemy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_shares_are_read_as_a_command_writes_them():
    assert read_shares(f"{1 / 60!r},0.5,0.1") == (1 / 60, 0.1, 0.5)
    assert read_shares("") == ()


@pytest.mark.parametrize("text", ["0.1;0.5", "0.1,half", "0.1,0", "2"])
def test_what_lists_no_shares_is_refused(text):
    with pytest.raises(InputError, match="shares of the data"):
        read_shares(text)


def test_every_share_is_passed_once_in_order_and_not_before_it_is_reached():
    due = Snapshots(0.5, [0.3, 0.1, 0.25], total=100)  # a share s is reached after 200 s steps
    passed = {after: due.passed(after - 16, after) for after in range(16, 113, 16)}
    assert passed == {16: (), 32: (0.1,), 48: (), 64: (0.25, 0.3), 80: (), 96: (), 112: ()}


def test_a_share_is_reached_exactly_where_a_division_would_miss_it():
    for count in (3, 7, 49, 60, 1000):
        steps = Snapshots(1.0, [step / count for step in range(1, count)], total=count)
        assert [steps.passed(step - 1, step) for step in range(1, count)] == [
            (step / count,) for step in range(1, count)
        ]


def test_shares_at_or_above_the_fraction_are_not_on_the_way():
    assert Snapshots(0.25, [0.1, 0.25, 0.5], total=10).shares == (0.1,)
