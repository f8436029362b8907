"""One study in a record: what each method promises."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from record_fakes import (
    DEFINITION,
    FRACTIONS,
    check_everything,
    failed,
    in_memory,
    new_record,
    open_records,
    owner,
    succeeded,
    trial,
)

from trimtuner.errors import InputError, SearchOver, TrimTunerError
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.history import PREEMPTED, History, Measurement, Outcome, Trial
from trimtuner.problem.machines import Machine
from trimtuner.problem.vms import VM
from trimtuner.records import DefinitionDiffers, NotOpen, OverBudget, RecordError, RecordsView


@pytest.fixture
def record(place):
    return new_record(place)


class TestStudies:
    def test_a_new_study_has_an_empty_history_and_an_id_that_is_safe_in_file_names(self, record):
        assert record.history() == History()
        assert (record.name, record.definition, record.budget) == ("study", DEFINITION, 10.0)
        assert len(record.id) == 32
        assert set(record.id) <= set("0123456789abcdef")

    def test_opening_again_finds_the_same_study(self, place, record):
        again = open_records(place).create_or_open("study", DEFINITION, 10.0)
        assert (again.id, again.created_at) == (record.id, record.created_at)
        assert open_records(place).open("study").id == record.id

    def test_every_study_has_a_secret_of_its_own_that_all_who_open_it_find(self, place, record):
        other = open_records(place).create_or_open("other", DEFINITION, None)
        with RecordsView(place) as records:
            found = [one.secret for one in (record, other, records.open("study"), records.open("other"))]
        assert [len(one) for one in found] == [32] * 4
        assert found[:2] == found[2:]
        assert found[0] != found[1]

    def test_a_secret_is_in_no_text_of_the_study(self, record):
        secret = record.secret.hex()
        shown = [repr(record), str(vars(record)), record.definition, record.events(), record.status(), record.owners()]
        assert secret not in str(shown)

    @pytest.mark.usefixtures("record")
    def test_another_definition_is_refused_with_what_differs(self, place):
        with pytest.raises(DefinitionDiffers) as caught:
            open_records(place).create_or_open("study", {"space": 2}, 10.0)
        assert caught.value.differences == ("space: was {'a': [1, 2.0, True, 'x']}, is 2",)

    def test_earlier_studies_are_copied_once_when_the_study_is_made(self, place):
        measured = tuple(Measurement({"a": a, "b": "é"}, 0.5, {"accuracy": 0.1 * a}) for a in (1, 2))
        machine = Machine(VM(vcpus=2, memory_gib=4.0, price_per_hour=0.1), 3, True)
        earlier = Earlier("before", measured, (machine, None))
        made = open_records(place).create_or_open("warm", DEFINITION, None, lambda: [earlier, earlier])
        again = open_records(place).create_or_open("warm", DEFINITION, None, lambda: pytest.fail("asked again"))
        with RecordsView(place) as records:
            views = [made, again, records.open("warm")]
            assert [[one.plain for one in view.earlier()] for view in views] == [[earlier.plain] * 2] * 3
        check_everything(place, "warm")

    def test_a_study_learns_from_nothing_unless_it_is_told_to(self, record):
        assert record.earlier() == ()

    def test_another_budget_is_noted(self, place, record):
        before = record.version()
        again = open_records(place).create_or_open("study", DEFINITION, 20.0)
        assert again.budget == record.budget == 20.0
        (event,) = record.events(before)
        assert (event.kind, event.detail) == ("budget changed", {"from": 10.0, "to": 20.0})

    def test_names_are_data_whatever_they_say(self, place):
        records = open_records(place)
        names = ["'; DROP TABLE studies; --", "../../etc/passwd", "é ☃ %s :name", "a" * 2000]
        for name in names:
            records.create_or_open(name, {}, None)
        assert records.names() == names
        assert [records.open(name).name for name in names] == names

    @pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\ud800", "a" * 2001, None])
    def test_a_name_that_cannot_be_shown_or_stored_is_refused(self, place, name):
        with pytest.raises(InputError, match="name of a study"):
            open_records(place).create_or_open(name, {}, None)

    def test_an_unknown_name_is_an_error_with_the_nearest_one(self, place):
        new_record(place)
        with pytest.raises(InputError, match=r"no study 'studie'; did you mean 'study'\?"):
            open_records(place).open("studie")

    def test_studies_of_one_record_do_not_meet(self, place, record):
        other = new_record(place, name="other")
        assert record.claim(trial(0), 1.0, "me")
        assert other.claim(trial(0), 2.0, "me")
        assert (record.reserved, other.reserved) == (1.0, 2.0)
        record.finish(succeeded(trial(0)), 1, 0.5)
        assert other.history() == in_memory(trial(0))

    def test_metric_names_are_data(self, record):
        one = trial(0)
        outcome = Outcome(one, (Measurement(one.config, 0.5, {"'); DROP TABLE trials; --": 1.0}),), None, 0.0, None)
        record.claim(one, 0.0, "me")
        record.finish(outcome, 1, 0.0)
        assert record.history().outcomes == (outcome,)


class TestClaims:
    def test_a_claim_is_written_down_with_its_reserve(self, place, record):
        assert record.claim(trial(0), 0.25, "me")
        with RecordsView(place) as records:
            (found,) = records.open("study").open_trials()
        assert (found.trial, found.attempt, found.handle, found.reserve, found.owner) == (trial(0), 1, None, 0.25, "me")
        assert (record.spent, record.reserved) == (0.0, 0.25)

    def test_a_number_that_is_taken_is_refused(self, record):
        assert record.claim(trial(0), 0.1, "me")
        assert not record.claim(trial(0, a="another"), 0.1, "me")
        assert record.history() == in_memory(trial(0))

    @pytest.mark.parametrize("same", [{"a": 1}, {"a": 1.0}])
    def test_a_place_under_way_is_refused(self, record, same):
        assert record.claim(trial(0, a=1), 0.1, "me")
        assert not record.claim(trial(1, **same), 0.1, "me")
        assert record.claim(trial(1, a=True), 0.1, "me")

    def test_a_place_that_is_measured_or_failed_is_refused(self, record):
        for number, end in enumerate((succeeded, failed)):
            one = trial(number)
            record.claim(one, 0.5, "me")
            record.finish(end(one), 1, 0.5)
            assert not record.claim(trial(number + 1, a=number), 0.1, "me")

    def test_a_place_that_was_preempted_may_be_started_again(self, record):
        record.claim(trial(0, a=1), 0.5, "me")
        record.finish(failed(trial(0, a=1), PREEMPTED), 1, 0.5)
        assert record.claim(trial(1, a=1), 0.5, "me")

    def test_snapshots_are_places_until_the_trial_ends_without_them(self, place, record):
        one = trial(0, 0.5, [0.1, 0.25], a=1)
        record.claim(one, 0.5, "me")
        assert not record.claim(trial(1, 0.1, a=1), 0.1, "me")
        record.finish(succeeded(one, 0.5, 0.25), 1, 0.5)
        assert not record.claim(trial(1, 0.25, a=1), 0.1, "me")
        assert record.claim(trial(1, 0.1, a=1), 0.1, "me")
        check_everything(place)

    def test_a_snapshot_told_unasked_beside_an_open_trial_stays_measured_when_that_is_preempted(self, place, record):
        large, small = trial(0, 0.5, a=1), trial(1, 0.1, a=1)
        record.claim(large, 0.5, "me")
        record.claim(small, 0.5, "me")
        record.finish(succeeded(large, 0.5, 0.1), 1, 0.5)
        record.finish(failed(small, PREEMPTED), 1, 0.5)
        assert not record.claim(trial(2, 0.1, a=1), 0.1, "me")
        check_everything(place)

    def test_what_does_not_fit_the_budget_is_not_started(self, record):
        record.claim(trial(0), 6.0, "me")
        before = record.version()
        with pytest.raises(OverBudget) as caught:
            record.claim(trial(1), 4.000000001, "me")
        figures = (caught.value.budget, caught.value.spent, caught.value.reserved, caught.value.wanted)
        assert figures == (10.0, 0.0, 6.0, 4.000000001)
        assert isinstance(caught.value, SearchOver)
        assert record.version() == before
        assert record.claim(trial(1), 4.0, "me")

    def test_ten_tenths_fit_a_budget_of_one(self, place):
        record = new_record(place, budget=1.0)
        assert all(record.claim(trial(number), 0.1, "me") for number in range(10))
        with pytest.raises(OverBudget):
            record.claim(trial(10), 1e-9, "me")

    def test_without_a_budget_anything_fits(self, place):
        assert new_record(place, budget=None).claim(trial(0), 1e8, "me")

    def test_a_lowered_budget_stops_new_trials_only(self, place, record):
        record.claim(trial(0), 6.0, "me")
        open_records(place).create_or_open("study", DEFINITION, 5.0)
        with pytest.raises(OverBudget):
            record.claim(trial(1), 0.1, "me")
        record.finish(succeeded(trial(0)), 1, 0.5)
        assert record.claim(trial(1), 0.1, "me")

    @pytest.mark.parametrize(
        ("bad", "reserve", "by", "says"),
        [
            (trial(1), 0.1, "me", "leaves a gap"),
            (trial(0, 0.0), 0.1, "me", "outside"),
            (trial(0, 0.5, [2.0]), 0.1, "me", "outside"),
            (trial(0), -0.1, "me", "the reserve of trial 0"),
            (trial(0), 0.1, "nobody", "not registered"),
            (trial(0), 0.1, "\ud800", "the owner"),
            (trial(0, a=float("inf")), 0.1, "me", "finite"),
        ],
    )
    def test_a_bad_claim_changes_nothing(self, record, bad, reserve, by, says):
        before = record.version()
        with pytest.raises(InputError, match=says):
            record.claim(bad, reserve, by)
        assert record.version() == before


class TestAttempts:
    def test_where_it_runs_is_written_down(self, record):
        record.claim(trial(0), 0.5, "me")
        record.started(0, 1, "pid:77")
        (found,) = record.open_trials()
        assert found.handle == "pid:77"
        assert found.started_at >= found.asked_at

    def test_a_retry_charges_the_attempt_and_reserves_anew(self, place, record):
        record.claim(trial(0), 0.5, "me")
        record.started(0, 1, "first")
        assert record.retry(0, 1, 0.2, 7.0, PREEMPTED, 0.6) == 2
        (found,) = record.open_trials()
        assert (found.attempt, found.handle, found.reserve, found.started_at) == (2, None, 0.6, None)
        assert (record.spent, record.reserved, record.charged(0)) == (0.2, 0.6, 0.2)
        record.finish(succeeded(trial(0), 0.2 + 0.1), 2, 0.1)
        assert (record.spent, record.reserved) == (0.3, 0.0)
        check_everything(place)

    def test_a_retry_that_does_not_fit_changes_nothing(self, place, record):
        record.claim(trial(0), 6.0, "me")
        before = record.version(), record.ledger()
        with pytest.raises(OverBudget):
            record.retry(0, 1, 5.0, 7.0, "oom", 5.1)
        assert (record.version(), record.ledger()) == before
        record.finish(failed(trial(0), "oom", 5.0), 1, 5.0)
        check_everything(place)

    def test_only_the_attempt_under_way_can_be_started_retried_or_finished(self, record):
        record.claim(trial(0), 0.5, "me")
        record.retry(0, 1, 0.2, 7.0, "oom", 0.5)
        with pytest.raises(NotOpen, match="attempt 2 is under way"):
            record.started(0, 1, "late")
        with pytest.raises(NotOpen, match="attempt 2 is under way"):
            record.retry(0, 1, 0.2, 7.0, "oom", 0.5)
        with pytest.raises(NotOpen, match="attempt 2 is under way"):
            record.finish(succeeded(trial(0)), 1, 0.5)

    def test_a_trial_is_told_once(self, place, record):
        record.claim(trial(0), 0.5, "me")
        record.finish(succeeded(trial(0)), 1, 0.5)
        with pytest.raises(NotOpen, match="told already"):
            record.finish(succeeded(trial(0)), 1, 0.5)
        with pytest.raises(NotOpen, match="told already"):
            record.retry(0, 1, 0.2, 7.0, "oom", 0.5)
        assert record.spent == 0.5
        check_everything(place)

    def test_a_trial_that_was_not_asked_cannot_be_told(self, record):
        with pytest.raises(NotOpen, match="not asked"):
            record.finish(succeeded(trial(0)), 1, 0.5)

    def test_a_cost_above_the_reserve_is_charged_all_the_same(self, record):
        record.claim(trial(0), 0.1, "me")
        record.finish(succeeded(trial(0), 0.3), 1, 0.3)
        assert (record.spent, record.reserved) == (0.3, 0.0)

    @pytest.mark.parametrize(
        ("outcome", "cost", "says"),
        [
            (succeeded(trial(0, a="other")), 0.5, "of another study"),
            (succeeded(trial(0, 0.25)), 0.5, "of another study"),
            (succeeded(trial(0), 0.5), 0.4, "not the sum"),
            (failed(trial(0), "oom", -1.0), -1.0, "the cost of trial 0"),
            (failed(trial(0), "a\nb"), 0.5, "kind of failure"),
            (Outcome(trial(0), (Measurement({"a": 9}, 0.5, {}),), None, 0.5, 1.0), 0.5, "another configuration"),
            (Outcome(trial(0), (Measurement({"a": 0}, 0.5, {"x": float("nan")}),), None, 0.5, 1.0), 0.5, "finite"),
            (Outcome(trial(0), (), None, 0.5, float("inf")), 0.5, "time of trial 0"),
        ],
    )
    def test_a_bad_outcome_changes_nothing(self, record, outcome, cost, says):
        record.claim(trial(0), 0.5, "me")
        before = record.version()
        with pytest.raises(InputError, match=says):
            record.finish(outcome, 1, cost)
        assert record.version() == before
        assert record.history() == in_memory(trial(0))

    def test_a_trial_is_adopted_by_one(self, record):
        for name in ("second", "third"):
            record.register(owner(name))
        record.claim(trial(0), 0.5, "me")
        assert record.adopt(0, "me", "second")
        assert not record.adopt(0, "me", "third")
        assert record.open_trials()[0].owner == "second"
        record.finish(succeeded(trial(0)), 1, 0.5)
        assert not record.adopt(0, "second", "third")

    def test_an_adopted_attempt_began_as_long_ago_as_it_was_watched_by_whatever_clock(self, record):
        record.register(owner("second"))
        record.claim(trial(0), 0.5, "me")
        record.started(0, 1, "handle")
        record.adopt(0, "me", "second", 100.0)
        (one,) = record.open_trials()
        assert one.asked_at <= one.started_at <= record.now() - 100.0
        record.adopt(0, "second", "me", 50.0)
        assert record.open_trials()[0].started_at == one.started_at  # never later than it was

    def test_owners_are_kept_with_their_heartbeat(self, record):
        (first,) = record.owners()
        before = record.version()
        record.heartbeat("me")
        (second,) = record.owners()
        assert (second.id, second.host, second.pid, second.pid_started) == ("me", "host", 1234, "5678")
        assert second.heartbeat_at > first.heartbeat_at
        assert record.version() == before
        with pytest.raises(InputError, match="not registered"):
            record.heartbeat("nobody")


class TestImports:
    def test_what_was_measured_elsewhere_is_taken_in_free_of_charge_and_once(self, place, record):
        there = [Measurement({"a": number}, 0.5, {"accuracy": 0.1 * number, "time": 3.0}) for number in range(3)]
        assert record.import_measurements([*there, there[0]]) == (3, 1)
        assert record.import_measurements(there) == (0, 3)
        assert record.history().measurements == tuple(there)
        assert (record.spent, record.ledger(), record.history().next_number) == (0.0, [], 3)
        check_everything(place)

    def test_an_import_leaves_the_recommendation(self, record):
        advice = ({"a": 7}, 1.0)
        record.claim(Trial(0, {"a": 0}, 0.5, (), "model", advice), 0.5, "me")
        record.import_measurements([Measurement({"a": 1}, 0.5, {"accuracy": 0.5})])
        assert record.history().last_recommended == advice

    def test_a_bad_one_among_them_changes_nothing(self, record):
        good, bad = Measurement({"a": 1}, 0.5, {"x": 1.0}), Measurement({"a": 2}, 0.5, {"x": float("inf")})
        with pytest.raises(InputError):
            record.import_measurements([good, bad])
        assert record.history() == History()


class TestForgetting:
    def test_a_forgotten_failure_is_logged_stays_charged_and_its_place_is_free(self, place, record):
        one = trial(0, 0.5)
        record.claim(one, 2.0, "me")
        on_its_way = Outcome(one, (Measurement(one.config, 0.1, {"accuracy": 0.5}),), "exit", 1.5, 3.0)
        record.finish(on_its_way, 1, 1.5)
        before = record.ledger()
        record.forget([0])
        assert record.ledger() == before
        assert (record.spent, record.events()[-1].kind, record.events()[-1].trial) == (1.5, "forgotten", 0)
        assert (record.status().failed, record.status().forgotten) == (0, 1)
        assert record.history() == History().with_asked(one).with_told(on_its_way).with_forgotten(0)
        assert record.claim(replace(one, number=1, snapshots=(0.1,)), 2.0, "me")
        check_everything(place)

    def test_what_another_trial_measured_too_stays_taken(self, place, record):
        """Told unasked, a snapshot is measured by both; the place is the first one's until that is forgotten."""
        small, large = trial(0, 0.25, a=1), trial(1, 0.5, a=1)
        record.claim(small, 1.0, "me")
        record.finish(Outcome(small, (Measurement(small.config, 0.1, {"accuracy": 0.5}),), "exit", 0.5, 1.0), 1, 0.5)
        record.claim(large, 1.0, "me")
        record.finish(succeeded(large, 0.5, 0.1), 1, 0.5)
        record.forget([0])
        assert not record.claim(trial(2, 0.1, a=1), 1.0, "me")
        assert record.claim(trial(2, 0.25, a=1), 1.0, "me")
        check_everything(place)

    def test_one_that_cannot_be_forgotten_leaves_all_as_they_were(self, place, record):
        for number in (0, 1):
            record.claim(trial(number), 1.0, "me")
        record.finish(failed(trial(0)), 1, 0.5)
        version, history = record.version(), record.history()
        with pytest.raises(InputError, match="trial 1 is running"):
            record.forget([0, 1])
        assert (record.version(), record.history()) == (version, history)
        check_everything(place)

    def test_whoever_reads_sees_what_was_forgotten_since(self, place, record):
        record.claim(trial(0), 1.0, "me")
        record.finish(failed(trial(0)), 1, 0.5)
        with RecordsView(place) as records:
            view = records.open("study")
            assert [one.failure for one in view.history().outcomes] == ["oom"]
            record.forget([0])
            assert [one.failure for one in view.history().outcomes] == ["forgotten (oom)"]


class TestEvents:
    def test_everything_that_happens_is_logged_in_order(self, record):
        record.claim(trial(0), 0.5, "me")
        record.started(0, 1, "h")
        record.retry(0, 1, 0.1, 1.0, "oom", 0.5)
        record.finish(failed(trial(0), "oom", 0.2), 2, 0.1)
        record.log_event("recommended", {"é": [1, 2.5, None]}, trial=0)
        kinds = [event.kind for event in record.events()]
        assert kinds == ["created", "asked", "started", "retried", "failed", "recommended"]
        assert record.events()[-1].detail == {"é": [1, 2.5, None]}
        assert [event.kind for event in record.events(after=4)] == kinds[4:]
        assert record.version() == 6

    def test_a_stop_is_for_runs_that_began_before_it(self, place, record):
        began = record.version()
        assert not record.stop_requested(began)
        open_records(place).open("study").request_stop()
        assert record.stop_requested(began)
        assert not record.stop_requested(record.version())

    def test_the_status_is_of_one_instant(self, record):
        for number, end in enumerate((succeeded, failed, None)):
            record.claim(trial(number), 0.75, "me")
            if end is not None:
                record.finish(end(trial(number)), 1, 0.5)
        status = record.status()
        assert (status.budget, status.spent, status.reserved) == (10.0, 1.0, 0.75)
        assert (status.open, status.succeeded, status.failed) == (1, 1, 1)
        assert status.changed_at == record.events()[-1].at


def test_a_process_that_was_forked_may_not_use_the_record(record):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            record.version()
            os.write(write, b"read")
        except RecordError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"forked" in os.read(read, 1000)


def test_threads_may_read_while_another_writes(record):
    def read(_):
        return [record.history().next_number for _ in range(20)]

    with ThreadPoolExecutor(3) as threads:
        seen = threads.map(read, range(3))
        for number in range(10):
            record.claim(trial(number), 0.1, "me")
        assert all(list(numbers) == sorted(numbers) for numbers in seen)
    assert record.history().next_number == 10


def test_every_error_is_one_of_ours():
    assert all(issubclass(kind, TrimTunerError) for kind in (RecordError, DefinitionDiffers, NotOpen, OverBudget))


values = st.one_of(
    st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3)
)
configurations = st.dictionaries(st.text(max_size=2), values, max_size=3)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def told(draw, one):
    cost = draw(st.floats(0, 1))
    kind = draw(st.sampled_from([None, None, PREEMPTED, "oom"]))
    smaller = draw(st.sets(st.sampled_from(FRACTIONS), max_size=2)) - {one.fraction}
    metrics = st.dictionaries(st.text(max_size=3), finite, max_size=3)
    shares = sorted(smaller) if kind is not None else (*sorted(smaller), one.fraction)
    measured = [Measurement(one.config, f, draw(metrics)) for f in shares]
    return Outcome(one, tuple(measured), kind, cost, draw(st.none() | st.floats(0, 1e6)))


def _known_failures(history):
    return [one.trial.number for one in history.outcomes if one.failed is not None and not one.is_forgotten]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])  # every place is a new one
@given(st.data())
def test_the_history_is_that_of_a_study_in_memory(new_place, data):
    place = new_place()
    record, history = new_record(place, None), History()
    for _ in range(data.draw(st.integers(1, 12))):
        if history.pending and data.draw(st.booleans()):
            outcome = data.draw(told(data.draw(st.sampled_from(history.pending))))
            record.finish(outcome, 1, outcome.cost)
            history = history.with_told(outcome)
        elif (failures := _known_failures(history)) and data.draw(st.booleans()):
            number = data.draw(st.sampled_from(failures))
            record.forget([number])
            history = history.with_forgotten(number)
        else:
            fraction = data.draw(st.sampled_from(FRACTIONS))
            origin = data.draw(st.sampled_from(["design", "model", "random"]))
            advice = data.draw(st.none() | st.tuples(configurations, st.sampled_from(FRACTIONS)))
            asked = Trial(history.next_number, data.draw(configurations), fraction, (), origin, advice)
            if record.claim(asked, 1.0, "me"):
                history = history.with_asked(asked)
        assert record.history() == history
    with RecordsView(place) as records:
        anew = records.open("study").history()
    assert anew == history
    assert repr(anew) == repr(history)  # types and signs too
    assert check_everything(place) == history
