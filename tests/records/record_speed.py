"""How fast a record is: ``python tests/records/record_speed.py [trials]``."""

import sys
import tempfile
import time
from pathlib import Path

from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.records import Owner, Records, RecordsView


def measure_speed(folder, trials=2000):
    """Seconds per claim and finish, per reading of the history (all, a little, nothing new) and status; bytes."""
    path = Path(folder) / "speed.db"
    with Records(path) as records:
        record = records.create_or_open("speed", {"space": "a few parameters"}, 1e6)
        record.register(Owner("owner", "host", 1, "1"))
        figures = {"claim+finish, first": _run(record, 0, trials // 10)}
        _run(record, trials // 10, trials - trials // 10)
        figures["claim+finish, last"] = _run(record, trials - trials // 10, trials)
        figures["history, all new"] = _timed(records.open("speed").history)
        _timed(record.history)
        _run(record, trials, trials + 1)
        figures["history, one trial new"] = _timed(record.history)
        figures["history, nothing new"] = _timed(record.history)
        figures["status"] = _timed(record.status)
        figures["version"] = _timed(record.version)
        figures["open trials"] = _timed(record.open_trials)
        figures["heartbeat"] = _timed(lambda: record.heartbeat("owner"))
    figures["file, bytes"] = path.stat().st_size
    figures["open to write"] = _timed(lambda: Records(path).close())
    figures["open to read"] = _timed(lambda: RecordsView(path).close())
    return figures


def print_speed(trials=2000):
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure_speed(folder, trials).items():
            print(f"{name:24} {value:,.0f}" if "bytes" in name else f"{name:24} {1000 * value:8.2f} ms")


def _timed(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _run(record, first, last):
    started = time.perf_counter()
    for number in range(first, last):
        trial = _trial(number)
        assert record.claim(trial, 0.02, "owner")
        metrics = {"accuracy": 1 / (number + 2), "time": 30.0 + number / 7, "cost": 0.01 + number / 1e6}
        measured = (Measurement(trial.config, trial.fraction, metrics),)
        record.finish(Outcome(trial, measured, None, metrics["cost"], metrics["time"]), 1, metrics["cost"])
    return (time.perf_counter() - started) / (last - first)


def _trial(number):
    config = {
        "learning_rate": 10 ** -(3 + number % 3),
        "batch_size": 16 + number,
        "mode": "sync",
        "vm_type": "t2.small",
    }
    return Trial(number, {**config, "vm_count": 8}, 1 / 60, (), "model", ({**config, "vm_count": 16}, 1.0))


if __name__ == "__main__":
    print_speed(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
