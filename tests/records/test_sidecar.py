"""The ledger beside a record: a lost record is noticed at once, and rebuilt with all its money."""

import json
import os
import shutil
import sqlite3
import stat
from contextlib import closing, contextmanager

import pytest
from record_fakes import check_everything, close_all, new_record, open_records, succeeded, trial, varied
from test_files import VERSION_1

from trimtuner.records import RecordError, RecordGone, Records, RecordsView
from trimtuner.records.restoring import restore, soundness_of
from trimtuner.records.sidecar import Sidecar


@pytest.fixture
def path(tmp_path):
    return tmp_path / "record.db"


def beside(path):
    return path.with_name(f"{path.name}.ledger")


def all_of(path, name="study"):
    with RecordsView(path) as records:
        view = records.open(name)
        events = [event for event in view.events() if event.kind != "restored"]
        owners = [(one.id, one.host, one.pid) for one in view.owners()]
        money = (view.budget, view.spent, view.reserved, view.ledger())
        return view.id, view.definition, view.history(), view.attempts(), view.open_trials(), events, owners, money


def lose(path):
    close_all()
    path.unlink()


def rebuilt(path):
    lose(path)
    restore(path)
    check_everything(path)
    return all_of(path)


class TestNoticed:
    def test_a_record_that_was_deleted_moved_or_replaced_is_written_and_read_no_more(self, path):
        for way in ("delete", "move", "replace"):
            record = new_record(path)
            record.claim(trial(0), 0.25, "me")
            away(path, way)
            for work in (
                record.version,
                lambda record=record: record.claim(trial(1), 0.25, "me"),
                record.require_there,
            ):
                with pytest.raises(RecordGone, match=r"1 trials, 0 USD charged, 0.25 USD reserved.*trimtuner restore"):
                    work()
            close_all()
            for left in path.parent.iterdir():
                left.unlink()

    def test_a_record_that_was_moved_and_put_back_goes_on(self, path):
        record = new_record(path)
        path.rename(path.with_name("away.db"))
        with pytest.raises(RecordGone):
            record.claim(trial(0), 0.25, "me")
        path.with_name("away.db").rename(path)
        assert record.claim(trial(0), 0.25, "me")
        close_all()
        check_everything(path)

    def test_nobody_begins_anew_while_the_ledger_of_a_lost_record_is_there(self, path):
        record = new_record(path)
        record.claim(trial(0), 0.25, "me")
        record.finish(succeeded(trial(0), 0.125), 1, 0.125)
        lose(path)
        for way in (Records, RecordsView):
            with pytest.raises(RecordGone, match=r"0.125 USD charged.*trimtuner restore JOB.*to begin anew"):
                way(path)
        assert not path.exists()
        beside(path).unlink()
        assert new_record(path).spent == 0

    def test_a_record_older_than_its_ledger_is_refused(self, path):
        record = new_record(path)
        record.claim(trial(0), 0.25, "me")
        close_all()
        shutil.copy(path, path.with_name("backup.db"))
        record = open_records(path).open("study")
        record.started(0, 1, "handle")
        record.finish(succeeded(trial(0), 0.125), 1, 0.125)
        close_all()
        path.with_name("backup.db").replace(path)
        with pytest.raises(RecordError, match=r"older than the ledger.*0.125 USD charged"):
            Records(path)
        path.unlink()
        restore(path)
        assert all_of(path)[-1][1] == 0.125

    def test_the_ledger_of_another_record_is_refused(self, path):
        new_record(path).claim(trial(0), 0.25, "me")
        close_all()
        other = path.with_name("other.db")
        new_record(other)
        close_all()
        other.replace(path)
        with pytest.raises(RecordError, match="of another record"):
            Records(path)


def away(path, way):
    if way == "delete":
        path.unlink()
    else:
        path.rename(path.with_name("away.db"))
    if way == "replace":
        shutil.copy(path.with_name("away.db"), path)


class TestRebuilt:
    def test_a_record_is_rebuilt_with_all_that_was_in_it(self, path):
        varied(path)
        before = all_of(path)
        assert rebuilt(path) == before
        record = open_records(path).open("study")
        assert record.claim(trial(5, a=77), 0.25, "me")
        close_all()
        check_everything(path)

    def test_all_studies_of_a_record_are_rebuilt(self, path):
        for name in ("one", "two"):
            new_record(path, name=name).claim(trial(0), 0.25, "me")
        before = [all_of(path, name) for name in ("one", "two")]
        lose(path)
        restore(path)
        assert [all_of(path, name) for name in ("one", "two")] == before

    def test_a_change_that_was_not_committed_is_not_rebuilt(self, path, monkeypatch):
        record = new_record(path)
        record.claim(trial(0), 0.25, "me")
        add = Sidecar.add

        def add_and_fail(self, connection, written):
            add(self, connection, written)
            raise ZeroDivisionError  # as if the process ended here

        monkeypatch.setattr(Sidecar, "add", add_and_fail)
        with pytest.raises(ZeroDivisionError):
            record.finish(succeeded(trial(0)), 1, 0.5)
        monkeypatch.undo()
        record.claim(trial(1), 0.25, "me")
        before = all_of(path)
        assert rebuilt(path) == before

    @pytest.mark.parametrize("torn", [b"", b"{", b'{"study":"0', b"\xff\x00"])
    def test_a_line_that_was_cut_off_is_passed_over(self, path, torn):
        record = new_record(path)
        record.claim(trial(0), 0.25, "me")
        with beside(path).open("ab") as file:
            file.write(torn)
        assert len(Sidecar(path).changes()) == 1
        record.finish(succeeded(trial(0)), 1, 0.5)
        before = all_of(path)
        assert rebuilt(path) == before

    def test_a_last_line_that_was_cut_short_leaves_what_was_before_it(self, path):
        record = new_record(path)
        record.claim(trial(0), 0.25, "me")
        before = all_of(path)
        record.finish(succeeded(trial(0)), 1, 0.5)
        os.truncate(beside(path), beside(path).stat().st_size - 40)
        assert rebuilt(path) == before

    def test_a_line_that_was_changed_is_found(self, path):
        varied(path)
        close_all()
        lines = beside(path).read_bytes().split(b"\n")
        lines[3] = lines[3].replace(b'"nanos":', b'"nanos":1')
        beside(path).write_bytes(b"\n".join(lines))
        assert not soundness_of(path).is_sound
        path.unlink()
        with pytest.raises(RecordError, match="line 4"):
            restore(path)
        assert not path.exists()

    def test_a_ledger_that_was_removed_is_written_anew(self, path):
        record = varied(path)
        beside(path).unlink()
        record.log_event("after")
        before = all_of(path)
        assert rebuilt(path) == before
        close_all()
        beside(path).unlink()
        open_records(path)
        before = all_of(path)
        assert rebuilt(path) == before

    def test_two_who_write_at_once_share_it(self, path):
        first, second = new_record(path), open_records(path).open("study")
        for number in range(6):
            (first, second)[number % 2].claim(trial(number), 0.25, "me")
            (second, first)[number % 2].finish(succeeded(trial(number)), 1, 0.5)
        before = all_of(path)
        assert rebuilt(path) == before

    def test_a_record_of_version_1_gets_its_ledger_when_it_is_opened(self, path):
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(VERSION_1)
        open_records(path)
        before = all_of(path)
        assert rebuilt(path) == before

    def test_it_is_never_put_over_a_record(self, path):
        varied(path)
        close_all()
        before = path.read_bytes()
        with pytest.raises(RecordError, match="move it away first"):
            restore(path)
        assert path.read_bytes() == before

    def test_the_log_of_the_lost_record_does_not_get_into_the_new_one(self, path):
        """SQLite takes any log of that name for the file's own."""
        record = varied(path)
        for end in ("-wal", "-shm"):
            shutil.copy(f"{path}{end}", f"{path}{end}.kept")
        before = all_of(path)
        assert record.reserved > 0
        lose(path)
        for end in ("-wal", "-shm"):
            os.replace(f"{path}{end}.kept", f"{path}{end}")
        restore(path)
        assert all_of(path) == before
        check_everything(path)


class TestTheFile:
    def test_nobody_else_may_read_it_and_it_has_no_secret(self, path):
        record = varied(path)
        assert stat.S_IMODE(beside(path).stat().st_mode) == 0o600
        assert record.secret.hex() not in beside(path).read_text()
        before = record.secret
        rebuilt(path)
        with RecordsView(path) as records:
            assert records.open("study").secret != before

    def test_every_line_is_json_with_a_sum(self, path):
        varied(path)
        lines = [json.loads(line) for line in beside(path).read_text().splitlines()]
        assert all(len(line["sum"]) == 64 for line in lines)

    @pytest.mark.parametrize("kind", ["link", "pipe", "folder", "foreign"])
    def test_what_is_no_file_of_ours_is_refused(self, path, kind):
        record = new_record(path)
        with put_there(beside(path), kind):
            for work in (lambda: record.claim(trial(0), 0.25, "me"), lambda: Records(path)):
                with pytest.raises(RecordError, match=r"ledger .* cannot be used.*move it away"):
                    work()
        assert record.history().pending == ()


@contextmanager
def put_there(path, kind):
    path.unlink()
    if kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        path.touch()
        os.chown(path, 65534, 65534)
    yield
