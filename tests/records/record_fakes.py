"""Trials, outcomes and records to test with, and the one check of everything that must always hold."""

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from trimtuner.problem.history import History, Measurement, Outcome, Trial
from trimtuner.records import Owner, Records, RecordsView
from trimtuner.records.codec import configuration_key
from trimtuner.records.money import to_nanos
from trimtuner.records.schema import PLACES

FRACTIONS = (1 / 60, 0.1, 0.25, 0.5, 1.0)
DEFINITION = {"space": {"a": [1, 2.0, True, "x"]}}


def trial(number, fraction=0.5, snapshots=(), **config):
    return Trial(number, config or {"a": number}, fraction, tuple(snapshots))


def succeeded(one, cost=0.5, *smaller):
    measured = [Measurement(one.config, f, {"accuracy": 0.5, "cost": cost}) for f in (*smaller, one.fraction)]
    return Outcome(one, tuple(measured), None, cost, 3.0)


def failed(one, kind="oom", cost=0.5):
    return Outcome(one, (), kind, cost, 3.0)


def owner(name="me"):
    return Owner(name, "host", 1234, "5678")


_OPENED = []


def open_records(place):
    """Records that the test need not close."""
    _OPENED.append(Records(place))
    return _OPENED[-1]


def close_all():
    while _OPENED:
        _OPENED.pop().close()


def new_record(place, budget=10.0, name="study"):
    record = open_records(place).create_or_open(name, DEFINITION, budget)
    record.register(owner())
    return record


def varied(place):
    """Every kind of change at least once; a trial is open, one was retried, one forgotten, one imported."""
    record = new_record(place)
    record.register(owner("other"))
    for number in range(4):
        assert record.claim(trial(number, 0.5, (0.25,)), 0.25 + number, "me")
        record.started(number, 1, f"handle {number}")
    record.finish(succeeded(trial(0, 0.5, (0.25,)), 0.5, 0.25), 1, 0.5)
    record.finish(failed(trial(1, 0.5, (0.25,))), 1, 0.5)
    record.retry(2, 1, 0.125, 2.0, "preempted", 1.5)
    record.finish(failed(trial(2, 0.5, (0.25,)), "oom", 0.375), 2, 0.25)
    record.forget([2])
    assert record.adopt(3, "me", "other")
    record.import_measurements([Measurement({"a": 9}, 1.0, {"accuracy": 0.75})])
    open_records(place).create_or_open("study", DEFINITION, 12.0)
    record.log_event("note", {"text": "a word"}, 3)
    return record


def check_everything(place, name="study"):
    """Whatever happened before, the record is sound: file, events, places, attempts and money; its history."""
    if isinstance(place, Path):
        _check_file(place)
    with RecordsView(place) as records:
        view = records.open(name)
        history, status = _settled(view)
        with records._reader.transaction() as connection:
            places = {(row.config_key, row.fraction) for row in connection.execute(PLACES.select())}
        assert [event.sequence for event in view.events()] == list(range(1, status.version + 1))
        assert {(configuration_key(config), fraction) for config, fraction in history.tested()} == places
        _check_trials(history)
        _check_ledger(view.ledger(), history, status, view.open_trials())
    return history


def _check_file(path):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _settled(view):
    """History and status; a server may still be at the last commit of a process that was killed."""
    while True:
        before = view.version()
        time.sleep(0.02)
        history, status = view.history(), view.status()
        if before == status.version == view.version():
            return history, status


def _check_trials(history):
    trials = [*(outcome.trial for outcome in history.outcomes), *history.pending]
    assert sorted(one.number for one in trials) == list(range(history.next_number))
    started = Counter(
        (configuration_key(one.config), one.fraction)
        for one in (*(o.trial for o in history.outcomes if o.failed is None or o.is_fault), *history.pending)
    )
    assert max(started.values(), default=1) == 1


def _check_ledger(ledger, history, status, open_trials):
    spent = reserved = 0
    for position, entry in enumerate(ledger):
        sign = {"charge": (1, 0), "reserve": (0, 1), "release": (0, -1)}[entry.kind]
        spent, reserved = spent + sign[0] * entry.nanos, reserved + sign[1] * entry.nanos
        is_last_of_change = position + 1 == len(ledger) or ledger[position + 1].sequence != entry.sequence
        if is_last_of_change and status.budget is not None:
            assert 0 <= spent + reserved <= to_nanos(status.budget, "budget")
    assert (to_nanos(status.spent, "spent"), to_nanos(status.reserved, "reserved")) == (spent, reserved)
    assert sum(to_nanos(one.reserve, "reserve") for one in open_trials) == reserved
    charges = Counter()
    for entry in ledger:
        if entry.kind == "charge":
            charges[entry.trial] += entry.nanos
    for outcome in history.outcomes:
        assert charges[outcome.trial.number] == to_nanos(outcome.cost, "cost")


def in_memory(*steps):
    """The history of a study in memory: a trial is asked, an outcome told."""
    history = History()
    for step in steps:
        history = history.with_asked(step) if isinstance(step, Trial) else history.with_told(step)
    return history
