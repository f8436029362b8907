"""What other processes do to a record in the tests: write, race, hold a reading, hold a writing."""

import itertools
import os
import random
import time

from record_fakes import DEFINITION, FRACTIONS, failed, owner, succeeded

from trimtuner.problem.history import Trial
from trimtuner.records import OverBudget, Records, RecordsView
from trimtuner.records.schema import EVENTS

CONFIGURATIONS = [
    {"rate": rate, "batch": batch, "mode": mode, "type": kind, "count": count}
    for rate, batch, mode, kind, count in itertools.product(
        (1e-3, 1e-4, 1e-5), (16, 256), ("sync", "async"), ("small", "medium", "large", "huge"), (1, 2, 4, 8, 16, 32)
    )
]
RESERVE, COST = 0.1, 0.01  # of a racer's trial
REFUSALS = 10  # for want of money, in a row, after which a racer gives up
COSTS = (0.1, 0.07, 1 / 3, 0.123456789)


def write_until_killed(place, budget, seed, acknowledge):
    """Take over what the last one left, then run trials for ever; say what has returned."""
    generator = random.Random(seed)  # noqa: S311  (no secret)
    record = Records(place).create_or_open("study", DEFINITION, budget)
    name = f"writer-{seed}"
    record.register(owner(name))
    for left in record.open_trials():
        assert record.adopt(left.trial.number, left.owner, name)
        _finish(record, left.trial, left.attempt, left.reserve, generator, acknowledge)
    while True:
        number = record.history().next_number
        trial = Trial(number, {"a": number, "é": 1.0}, generator.choice(FRACTIONS), (), "model", ({"a": 1}, 1.0))
        reserve = generator.choice(COSTS)
        assert record.claim(trial, reserve, name)
        acknowledge.send(("claimed", trial))
        record.started(number, 1, f"handle-{number}")
        attempt = record.retry(number, 1, reserve / 3, 1.0, "lost", reserve) if generator.random() < 0.3 else 1
        _finish(record, trial, attempt, reserve, generator, acknowledge)


def _finish(record, trial, attempt, reserve, generator, acknowledge):
    cost = round(reserve * generator.random(), 9)
    end = generator.choice([succeeded, failed])
    outcome = end(trial, cost=record.charged(trial.number) + cost)
    record.finish(outcome, attempt, cost)
    acknowledge.send(("finished", outcome))


def race(place, budget, seed, fractions):
    """Claim places that look free, as fast as can be, until the budget or the places are used up."""
    generator = random.Random(seed)  # noqa: S311  (no secret)
    record = Records(place).create_or_open("study", DEFINITION, budget)
    name = f"racer-{seed}"
    record.register(owner(name))
    places = {_place(config, fraction): config for config in CONFIGURATIONS for fraction in fractions}
    free, told, refusals = list(places), 0, 0
    while refusals < REFUSALS:
        history = record.history()
        ended, told = history.outcomes[told:], len(history.outcomes)
        taken = {_place(one.config, one.fraction) for one in (*(end.trial for end in ended), *history.pending)}
        free = [place for place in free if place not in taken]
        if not free:
            return
        place = generator.choice(free[:20])  # few, so that they collide
        trial = Trial(history.next_number, places[place], place[1])
        try:
            if record.claim(trial, RESERVE, name):
                time.sleep(generator.uniform(0, 0.05))  # the training, so that several are under way at a time
                record.finish(succeeded(trial, cost=COST), 1, COST)
                refusals = 0
        except OverBudget:
            refusals += 1


def _place(config, fraction):
    return frozenset(config.items()), fraction


def open_at_once(place, barrier, answer):
    """Make the record and the study in the same instant as others."""
    barrier.wait()
    with Records(place) as records:
        answer.put(records.create_or_open("study", DEFINITION, 1.0).id)


def adopt_at_once(place, barrier, answer, name):
    """Reach for the same trial in the same instant as others."""
    with Records(place) as records:
        record = records.open("study")
        record.register(owner(name))
        barrier.wait()
        answer.put((name, record.adopt(0, "me", name)))


def hold_a_reading(place, pipe):
    """Begin a reading, hold it until told, and say what it saw at both ends."""
    with RecordsView(place) as records, records._reader.transaction() as connection:
        pipe.send(len(connection.execute(EVENTS.select()).all()))
        pipe.recv()
        pipe.send(len(connection.execute(EVENTS.select()).all()))


def hold_a_writing(place, pipe):
    """Begin a writing, hold it until told, and leave without a commit."""
    with Records(place) as records:
        record = records.open("study")
        with record._change() as change:
            change.log("half written", None, {})
            pipe.send(os.getpid())
            pipe.recv()
            os._exit(1)
