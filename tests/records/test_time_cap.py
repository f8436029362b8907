"""A cap on machine-time is as hard as one on money: what is under way is reserved at its worst."""

import pytest
from record_fakes import failed, new_record, owner, trial

from trimtuner.records import OverTime
from trimtuner.records.facts import TimeCap


def cap(seconds):
    """Trials of at most 10 s on as many machines as they say."""
    return TimeCap(seconds, 10.0, lambda config: config["machines"])


def of(number, machines):
    return trial(number, a=number, machines=machines)


def test_a_trial_starts_only_if_its_worst_case_fits_on_each_of_its_machines(tmp_path):
    record = new_record(tmp_path / "study.db")
    assert record.claim(of(0, 3), 0.0, "me", cap(50.0))
    with pytest.raises(OverTime, match="machine-hours"):
        record.claim(of(1, 3), 0.0, "me", cap(50.0))
    assert record.claim(of(1, 2), 0.0, "me", cap(50.0))  # 30 s and 20 s are reserved: not a second is left
    with pytest.raises(OverTime):
        record.claim(of(2, 1), 0.0, "me", cap(50.0))


def test_what_ended_counts_for_what_it_took_and_so_does_every_attempt_at_it(tmp_path):
    record = new_record(tmp_path / "study.db")
    assert record.claim(of(0, 2), 0.0, "me", cap(46.0))
    assert record.retry(0, 1, 0.0, 8.0, "preempted", 0.0, cap(46.0)) == 2  # 2 x 8 s are gone, 2 x 10 s reserved
    with pytest.raises(OverTime):
        record.claim(of(1, 2), 0.0, "me", cap(46.0))
    assert record.claim(of(1, 1), 0.0, "me", cap(46.0))
    record.finish(failed(of(0, 2), "oom", 0.0), 2, 0.0)  # after 3 s: 2 x (8 + 3) s are gone, 10 s reserved
    assert record.claim(of(2, 1), 0.0, "me", cap(46.0))
    with pytest.raises(OverTime):
        record.claim(of(3, 1), 0.0, "me", cap(46.0))


def test_a_retry_that_does_not_fit_changes_nothing(tmp_path):
    record = new_record(tmp_path / "study.db")
    assert record.claim(of(0, 1), 0.0, "me", cap(15.0))
    with pytest.raises(OverTime):
        record.retry(0, 1, 0.0, 8.0, "preempted", 0.0, cap(15.0))
    (one,) = record.open_trials()
    assert one.attempt == 1


def test_two_who_ask_at_once_do_not_both_get_the_last_of_it(tmp_path):
    record = new_record(tmp_path / "study.db")
    record.register(owner("other"))
    assert record.claim(of(0, 1), 0.0, "me", cap(15.0))
    assert not record.claim(of(0, 1), 0.0, "other", cap(15.0))  # its number is taken: it asks again
    with pytest.raises(OverTime):
        record.claim(of(1, 1), 0.0, "other", cap(15.0))
