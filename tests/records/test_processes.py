"""Real processes on one record: killed at any instant, racing each other, reading while others write."""

import multiprocessing
import random
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress

import pytest
import record_workers
from record_fakes import FRACTIONS, check_everything, close_all, in_memory, new_record, succeeded, trial

from trimtuner.records import RecordError, RecordsView
from trimtuner.records.codec import configuration_key
from waiting import PATIENCE_SECONDS

PROCESSES = multiprocessing.get_context("forkserver")  # forked from a server that never opened a record
PROCESSES.set_forkserver_preload(["trimtuner.records"])


@contextmanager
def running(target, *arguments):
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
        process.close()


def kill_writers(place, kills, seed=0):
    """Kill as many writers, each at a random instant, and check after each that nothing acknowledged is lost."""
    generator = random.Random(seed)  # noqa: S311  (no secret)
    claimed, finished = {}, {}
    for kill in range(kills):
        here, there = PROCESSES.Pipe(duplex=False)
        with running(record_workers.write_until_killed, place, None, seed + kill, there) as writer:
            there.close()
            if kill % 3:  # else it may die while it opens or makes the file
                here.poll(PATIENCE_SECONDS)
            time.sleep(generator.uniform(0, 0.12))
            assert writer.exitcode is None
        for what, value in said_by(here):
            (claimed if what == "claimed" else finished).update({getattr(value, "trial", value).number: value})
        check_nothing_lost(place, claimed, finished)
    return finished


def said_by(pipe):
    """All that was said before the end; a message that was cut by the kill was not said."""
    with closing(pipe):
        while pipe.poll(0):
            try:
                yield pipe.recv()
            except (EOFError, OSError):
                return


def study_names(place):
    with suppress(RecordError), RecordsView(place) as records:  # a writer may die before there is a record
        return records.names()
    return []


def check_nothing_lost(place, claimed, finished):
    if not study_names(place):
        assert not claimed
        return
    history = check_everything(place)
    told = {outcome.trial.number: outcome for outcome in history.outcomes}
    assert {number: told.get(number) for number in finished} == finished
    known = {
        **{number: outcome.trial for number, outcome in told.items()},
        **{one.number: one for one in history.pending},
    }
    assert {number: known.get(number) for number in claimed} == claimed


def test_a_writer_killed_at_any_instant_loses_nothing(place):
    assert kill_writers(place, 12)


@pytest.mark.slow
def test_a_writer_killed_two_hundred_times_loses_nothing(place):
    assert kill_writers(place, 200, seed=1000)


def race_with_kills(place, budget, fractions, kills):
    """Eight processes race for places; some are killed and others take their turn."""
    generator = random.Random(0)  # noqa: S311  (no secret)
    new_record(place, budget)
    close_all()
    racers = []
    for seed in range(8 + kills):
        if seed >= 8:
            time.sleep(generator.uniform(0.05, 0.3))
            victim = racers.pop(generator.randrange(len(racers)))
            victim.kill()
            victim.join()
        racer = PROCESSES.Process(target=record_workers.race, args=(place, budget, seed, fractions), daemon=True)
        racer.start()
        racers.append(racer)
    for racer in racers:
        racer.join(PATIENCE_SECONDS * 10)
        assert racer.exitcode == 0
    history = check_everything(place)
    trials = [*(outcome.trial for outcome in history.outcomes), *history.pending]
    started = Counter((configuration_key(one.config), one.fraction) for one in trials)
    assert max(started.values()) == 1
    return started


def test_eight_processes_never_start_a_place_twice_nor_pass_the_budget(place):
    kills, budget = 2, 0.5
    started = race_with_kills(place, budget, FRACTIONS, kills)
    # What the dead left reserved, and one reserve, are all that may be left of the money.
    assert len(started) * record_workers.COST >= budget - (kills + 1) * record_workers.RESERVE


@pytest.mark.slow
def test_eight_processes_start_every_place_once(place):
    started = race_with_kills(place, 100.0, FRACTIONS, kills=40)
    assert len(started) == len(record_workers.CONFIGURATIONS) * len(FRACTIONS) == 288 * 5


def all_at_once(target, place, *arguments, count=6):
    barrier, answers = PROCESSES.Barrier(count), PROCESSES.SimpleQueue()
    racers = [
        PROCESSES.Process(target=target, args=(place, barrier, answers, *(f"{a}{n}" for a in arguments)))
        for n in range(count)
    ]
    for racer in racers:
        racer.start()
    found = [answers.get() for _ in racers]
    for racer in racers:
        racer.join(PATIENCE_SECONDS)
    return found


def test_processes_that_make_the_same_study_in_one_instant_get_the_same_one(place):
    assert len(set(all_at_once(record_workers.open_at_once, place))) == 1
    check_everything(place)


def test_of_processes_that_adopt_a_trial_in_one_instant_one_has_it(place):
    record = new_record(place)
    record.claim(trial(0), 0.5, "me")
    winners = [name for name, is_theirs in all_at_once(record_workers.adopt_at_once, place, "racer-") if is_theirs]
    assert [one.owner for one in record.open_trials()] == winners


def test_a_long_reading_neither_sees_nor_delays_what_is_written(place):
    record = new_record(place)
    here, there = PROCESSES.Pipe()
    with running(record_workers.hold_a_reading, place, there):
        seen = here.recv()
        for number in range(10):  # were they delayed, then until an error: the reader goes on after them only
            record.claim(trial(number), 0.5, "me")
            record.finish(succeeded(trial(number)), 1, 0.5)
        here.send("go on")
        assert here.recv() == seen == 1
    assert record.version() == 21


def test_a_writing_under_way_neither_shows_nor_delays_readers_and_dies_without_a_trace(place):
    record = new_record(place)
    record.claim(trial(0), 0.5, "me")
    here, there = PROCESSES.Pipe()
    with running(record_workers.hold_a_writing, place, there) as writer:
        here.recv()
        with RecordsView(place) as records:
            view = records.open("study")
            assert view.history() == record.history() == in_memory(trial(0))
            assert (view.status().version, view.version(), record.version()) == (2, 2, 2)
            assert len(view.events()) == 2
        here.send("go on")
        writer.join(PATIENCE_SECONDS)
    record.finish(succeeded(trial(0)), 1, 0.5)
    close_all()
    assert check_everything(place) == in_memory(trial(0), succeeded(trial(0)))
