"""Files that cannot be used: a clear error, and not a byte changed; files of an older version open."""

import gc
import hashlib
import multiprocessing
import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from record_fakes import (
    check_everything,
    close_all,
    failed,
    in_memory,
    new_record,
    open_records,
    owner,
    succeeded,
    trial,
)
from sqlalchemy import create_engine, inspect

from trimtuner.errors import InputError
from trimtuner.records import RecordError, Records, RecordsView
from trimtuner.records.migrations import MIGRATIONS, migrate_one_step
from trimtuner.records.schema import METADATA

NOBODY = 65534


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "record.db"


def some_record(path, trials=30):
    record = new_record(path)
    for number in range(trials):
        record.claim(trial(number), 0.01, "me")
        record.finish(succeeded(trial(number), 0.01), 1, 0.01)
    history = record.history()
    close_all()
    return history


def refused(path, says):
    before = digest(path)
    for way in (Records, RecordsView):
        with pytest.raises(RecordError, match=says) as caught:
            way(path)
        assert str(path) in str(caught.value)
        assert digest(path) == before


class TestRefused:
    def test_a_newer_version(self, path):
        some_record(path, 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE trimtuner_schema SET version = ?", [len(MIGRATIONS) + 1])
        refused(path, r"newer trimtuner .*update trimtuner")

    def test_a_newer_version_whose_writer_was_killed(self, path):
        some_record(path, 1)
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("UPDATE trimtuner_schema SET version = ?", [len(MIGRATIONS) + 1])
        left = path.with_name("left.db")
        for suffix in ("", "-wal"):  # as a crash would leave them
            shutil.copy(f"{path}{suffix}", f"{left}{suffix}")
        writer.close()
        log = digest(Path(f"{left}-wal"))
        refused(left, "newer trimtuner")
        assert digest(Path(f"{left}-wal")) == log

    @pytest.mark.parametrize("mode", ["DELETE", "WAL"])
    def test_a_database_of_somebody_else(self, path, mode):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            connection.execute("CREATE TABLE customers (name TEXT)")
        refused(path, "no record of studies .*customers")

    @pytest.mark.parametrize("content", [b"hello", b"hello " * 5000, b"\0" * 8192, b"SQLite format 3\0" + b"\1" * 5000])
    def test_what_is_no_database(self, path, content):
        path.write_bytes(content)
        refused(path, "no record of studies|damaged")

    @pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9, 0.99])
    def test_a_file_cut_short(self, path, share):
        some_record(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        refused(path, "damaged")

    def test_a_file_with_a_damaged_page(self, path):
        some_record(path)
        content = bytearray(path.read_bytes())
        content[4096 * 3 : 4096 * 12] = b"\xa5" * (4096 * 9)
        path.write_bytes(content)
        before = digest(path)
        with pytest.raises(RecordError, match="damaged"):
            Records(path)
        assert digest(path) == before

    def test_a_schema_table_without_a_version(self, path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE trimtuner_schema (version INTEGER NOT NULL)")
        refused(path, "does not say which version")

    def test_a_folder_or_a_file_in_no_folder(self, tmp_path):
        with pytest.raises(RecordError, match="is a folder"):
            Records(tmp_path)
        with pytest.raises(RecordError, match="no folder"):
            Records(tmp_path / "none" / "record.db")
        assert list(tmp_path.iterdir()) == []

    def test_reading_what_is_not_there_makes_nothing(self, path):
        with pytest.raises(RecordError, match="there is no record"):
            RecordsView(path)
        assert not path.exists()
        path.touch()
        with pytest.raises(RecordError, match="is empty"):
            RecordsView(path)
        assert path.stat().st_size == 0

    @pytest.mark.parametrize(
        "place", ["", ":memory:", "sqlite://", "a\0b", "mysql://host/db", "nonsense://", "://", None]
    )
    def test_what_is_no_place(self, place):
        with pytest.raises(InputError):
            Records(place)

    def test_a_server_that_is_not_there_is_an_error_without_its_password(self):
        with pytest.raises(RecordError) as caught:
            Records("postgresql+psycopg://user:s3cret@127.0.0.1:1/studies")
        assert "s3cret" not in str(caught.value)


class TestPlaces:
    def test_names_of_studies_make_no_files(self, path):
        records = open_records(path)
        for name in ("../../etc/passwd", "'; DROP TABLE studies; --"):
            records.create_or_open(name, {}, None)
        assert sorted(os.listdir(path.parent)) == ["record.db", "record.db-shm", "record.db-wal", "record.db.ledger"]

    def test_an_empty_file_is_a_new_record(self, path):
        path.touch()
        assert open_records(path).names() == []

    def test_a_url_names_the_same_file(self, path):
        some_record(path, 1)
        assert open_records(f"sqlite:///{path}").names() == ["study"]

    def test_a_path_with_odd_characters_is_just_a_path(self, tmp_path):
        odd = tmp_path / "a ?mode=memory&x#%41 é.db"
        some_record(odd, 1)
        assert odd.is_file()
        assert sorted(one.name for one in tmp_path.iterdir()) == [odd.name, f"{odd.name}.ledger"]

    def test_a_closed_record_is_one_file_with_its_ledger_beside_it(self, path):
        some_record(path)
        assert sorted(one.name for one in path.parent.iterdir()) == ["record.db", "record.db.ledger"]

    def test_commits_are_on_the_disk_before_they_return(self, path):
        some_record(path, 1)
        with open_records(path)._writer.transaction() as connection:
            settings = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
            ]
            assert settings == ["wal", 2]
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1

    def test_a_view_cannot_write(self, path):
        some_record(path, 1)
        with (
            RecordsView(path) as records,
            pytest.raises(RecordError, match="cannot be written"),
            records._reader.transaction() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM trials")


@contextmanager
def ordinary_user():
    """Permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def foreign_folder():
    """A folder that an ordinary user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


class TestReadOnly:
    def test_a_read_only_file_is_refused_unchanged_and_can_be_read(self, foreign_folder):
        path = foreign_folder / "record.db"
        history = some_record(path)
        path.chmod(0o444)
        before = digest(path)
        with ordinary_user(), pytest.raises(RecordError, match=r"cannot be (written|opened).*(writable|written)"):
            Records(path)
        assert digest(path) == before
        with ordinary_user(), RecordsView(path) as records:
            assert records.open("study").history() == history

    def test_a_read_only_folder_is_refused_unchanged_and_can_be_read(self, foreign_folder):
        path = foreign_folder / "record.db"
        history = some_record(path)
        path.chmod(0o666)
        foreign_folder.chmod(0o555)
        before = digest(path)
        with ordinary_user(), pytest.raises(RecordError, match="cannot be"):
            Records(path)
        with ordinary_user(), RecordsView(path) as records:
            assert records.open("study").history() == history
        assert digest(path) == before
        assert sorted(one.name for one in foreign_folder.iterdir()) == ["record.db", "record.db.ledger"]

    def test_no_record_is_made_in_a_read_only_folder(self, foreign_folder):
        foreign_folder.chmod(0o555)
        with ordinary_user(), pytest.raises(RecordError, match="cannot be opened"):
            Records(foreign_folder / "record.db")
        assert list(foreign_folder.iterdir()) == []


@pytest.fixture
def tiny_disk():
    """A megabyte, outside pytest's own folders: one that could not be unmounted would be in the way of later runs."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a disk can be mounted by root only")
    folder = Path(tempfile.mkdtemp())
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode == 0:
        yield folder
        close_all()
        subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()
    if mounted.returncode != 0:
        pytest.skip("a disk cannot be mounted here")


def fill(record, most=2000):
    """Run trials until the disk is full; the history that was acknowledged, and the error."""
    steps = []
    try:
        for number in range(most):
            assert record.claim(trial(number), 0.001, "me")
            steps.append(trial(number))
            record.finish(failed(trial(number), "oom", 0.001), 1, 0.001)
            steps.append(failed(trial(number), "oom", 0.001))
    except RecordError as error:
        return in_memory(*steps), error
    raise AssertionError("the disk did not fill up")


def fill_under_a_limit(path, answer):
    limit = 150_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    record = new_record(path)
    history, error = fill(record)
    assert record.history() == history
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert record.claim(trial(history.next_number), 0.001, "me")
    answer.send((history.with_asked(trial(history.next_number)), str(error)))
    close_all()


class TestFullDisk:
    def test_what_was_acknowledged_is_there_and_the_study_goes_on_when_there_is_room(self, tiny_disk):
        filler = tiny_disk / "filler"
        filler.write_bytes(b"x" * 600_000)
        path = tiny_disk / "record.db"
        record = new_record(path)
        history, error = fill(record)
        assert "the disk is full" in str(error)
        assert "free some space" in str(error)
        assert record.history() == history
        with pytest.raises(RecordError):
            record.log_event("still full", {"text": "x" * 5_000_000})
        filler.unlink()
        assert record.claim(trial(history.next_number), 0.001, "me")
        close_all()
        assert check_everything(path) == history.with_asked(trial(history.next_number))

    def test_a_record_that_does_not_fit_leaves_nothing_that_stands_in_the_way(self, tiny_disk):
        filler = tiny_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        path = tiny_disk / "record.db"
        with pytest.raises(RecordError, match="could not be"):
            Records(path)
        filler.unlink()
        assert open_records(path).names() == []
        close_all()

    def test_a_limit_on_the_size_of_files_does_as_little_harm(self, path):
        processes = multiprocessing.get_context("spawn")
        here, there = processes.Pipe()
        child = processes.Process(target=fill_under_a_limit, args=(path, there))
        child.start()
        there.close()
        history, error = here.recv()
        child.join()
        assert "the record" in error
        assert "as it was" in error
        assert check_everything(path) == history


# Written out, not taken from the package: what files of version 1 have, whatever becomes of the code.
VERSION_1 = """
CREATE TABLE trimtuner_schema (version INTEGER NOT NULL);
INSERT INTO trimtuner_schema VALUES (1);
CREATE TABLE studies (study INTEGER NOT NULL PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL, budget BIGINT, created_at DOUBLE PRECISION NOT NULL, version BIGINT NOT NULL);
CREATE TABLE owners (study INTEGER NOT NULL REFERENCES studies (study), id TEXT NOT NULL, host TEXT NOT NULL,
    pid BIGINT NOT NULL, pid_started TEXT NOT NULL, heartbeat_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study, id));
CREATE TABLE trials (study INTEGER NOT NULL REFERENCES studies (study), number INTEGER NOT NULL, config TEXT NOT NULL,
    config_key TEXT NOT NULL, fraction DOUBLE PRECISION NOT NULL, snapshots TEXT NOT NULL, origin TEXT NOT NULL,
    recommended TEXT, asked BIGINT NOT NULL, owner TEXT, attempt INTEGER NOT NULL, told BIGINT, failed TEXT,
    cost DOUBLE PRECISION, time DOUBLE PRECISION, measurements TEXT, PRIMARY KEY (study, number),
    FOREIGN KEY (study, owner) REFERENCES owners (study, id));
CREATE UNIQUE INDEX trials_told ON trials (study, told);
CREATE TABLE attempts (study INTEGER NOT NULL, trial INTEGER NOT NULL, attempt INTEGER NOT NULL,
    reserve BIGINT NOT NULL CHECK (reserve >= 0), asked_at DOUBLE PRECISION NOT NULL, handle TEXT,
    started_at DOUBLE PRECISION, ended_at DOUBLE PRECISION, failed TEXT, seconds DOUBLE PRECISION,
    charge BIGINT CHECK (charge >= 0), PRIMARY KEY (study, trial, attempt),
    FOREIGN KEY (study, trial) REFERENCES trials (study, number));
CREATE TABLE places (study INTEGER NOT NULL, config_key TEXT NOT NULL, fraction DOUBLE PRECISION NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'tested')), trial INTEGER NOT NULL,
    PRIMARY KEY (study, config_key, fraction, state), FOREIGN KEY (study, trial) REFERENCES trials (study, number));
CREATE INDEX places_of_trial ON places (study, trial);
CREATE TABLE ledger (study INTEGER NOT NULL, sequence BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'release', 'reserve')), at DOUBLE PRECISION NOT NULL,
    trial INTEGER NOT NULL, attempt INTEGER NOT NULL, nanos BIGINT NOT NULL CHECK (nanos >= 0),
    PRIMARY KEY (study, sequence, kind),
    FOREIGN KEY (study, trial, attempt) REFERENCES attempts (study, trial, attempt));
CREATE TABLE events (study INTEGER NOT NULL REFERENCES studies (study), sequence BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, trial INTEGER, detail TEXT NOT NULL,
    PRIMARY KEY (study, sequence));
INSERT INTO studies VALUES
    (1, '0123456789abcdef0123456789abcdef', 'study', '{"space":1}', 10000000000, 1700000000.0, 4);
INSERT INTO owners VALUES (1, 'me', 'host', 1234, '5678', 1700000000.5);
INSERT INTO trials VALUES (1, 0, '{"a":0}', '726e1d6d746a3e9f60f040abc03446b6', 0.5, '[]', 'model', NULL, 2, 'me', 1, 3,
    NULL, 0.5, 3.0, '[[0.5,{"accuracy":0.5,"cost":0.5}]]');
INSERT INTO trials VALUES (1, 1, '{"a":1}', '2c6b113b8dd15ffbded9860b43eb0c6c', 0.5, '[]', 'model', NULL, 4, 'me', 1,
    NULL, NULL, NULL, NULL, NULL);
INSERT INTO attempts VALUES (1, 0, 1, 600000000, 1700000001.0, 'h', 1700000002.0, 1700000005.0, NULL, 3.0, 500000000);
INSERT INTO attempts VALUES (1, 1, 1, 700000000, 1700000006.0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO places VALUES (1, '726e1d6d746a3e9f60f040abc03446b6', 0.5, 'tested', 0);
INSERT INTO places VALUES (1, '2c6b113b8dd15ffbded9860b43eb0c6c', 0.5, 'open', 1);
INSERT INTO ledger VALUES (1, 2, 'reserve', 1700000001.0, 0, 1, 600000000);
INSERT INTO ledger VALUES (1, 3, 'charge', 1700000005.0, 0, 1, 500000000);
INSERT INTO ledger VALUES (1, 3, 'release', 1700000005.0, 0, 1, 600000000);
INSERT INTO ledger VALUES (1, 4, 'reserve', 1700000006.0, 1, 1, 700000000);
INSERT INTO events VALUES (1, 1, 1700000000.0, 'created', NULL, '{"budget":10.0}');
INSERT INTO events VALUES (1, 2, 1700000001.0, 'asked', 0, '{}');
INSERT INTO events VALUES (1, 3, 1700000005.0, 'finished', 0, '{}');
INSERT INTO events VALUES (1, 4, 1700000006.0, 'asked', 1, '{}');
"""


@pytest.fixture
def first_version(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
    return path


def test_a_clock_that_is_set_does_not_move_what_this_process_writes(path, monkeypatch):
    record, real = new_record(path), time.time
    record.claim(trial(0), 0.5, "me")
    record.started(0, 1, "handle")
    for ahead in (-86400.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: real() + ahead)
        record.heartbeat("me")
        (owner_now,), (one,) = record.owners(), record.open_trials()
        assert 0 <= owner_now.heartbeat_at - one.started_at < 3600


class TestMigrations:
    def test_a_file_of_version_1_opens_with_all_it_holds_and_goes_on(self, first_version):
        record = open_records(first_version).create_or_open("study", {"space": 1}, 10.0)
        assert record.history() == in_memory(trial(0), trial(1), succeeded(trial(0)))
        assert (record.id, record.spent, record.reserved) == ("0123456789abcdef0123456789abcdef", 0.5, 0.7)
        assert len(record.secret) == 32
        record.register(owner("new"))
        assert record.adopt(1, "me", "new")
        record.finish(failed(trial(1)), 1, 0.5)
        assert not record.claim(trial(2, a=0), 0.1, "new")
        close_all()
        check_everything(first_version)

    def test_a_file_of_version_1_can_be_read_as_it_is(self, first_version):
        before = digest(first_version)
        with RecordsView(first_version) as records:
            view = records.open("study")
            assert view.history() == in_memory(trial(0), trial(1), succeeded(trial(0)))
            assert (view.status().spent, len(view.events()), len(view.attempts())) == (0.5, 4, 2)
        assert digest(first_version) == before

    def test_the_steps_lead_to_the_tables_that_are_queried(self, path):
        some_record(path, 0)
        engine = create_engine(f"sqlite:///{path}")
        inspector = inspect(engine)
        assert set(inspector.get_table_names()) == set(METADATA.tables)
        for name, table in METADATA.tables.items():
            columns = {c["name"]: (c["type"].python_type, c["nullable"]) for c in inspector.get_columns(name)}
            assert columns == {c.name: (c.type.python_type, c.nullable) for c in table.columns}
            assert inspector.get_pk_constraint(name)["constrained_columns"] == [c.name for c in table.primary_key]
        engine.dispose()

    def test_a_step_that_fails_leaves_the_version_before_it(self, path):
        def half_a_step(connection):
            connection.exec_driver_sql("ALTER TABLE studies ADD COLUMN colour TEXT")
            raise ZeroDivisionError

        def step(writer, *migrations):
            with writer.transaction() as connection:
                return migrate_one_step(connection, "here", migrations)

        some_record(path, 1)
        before = digest(path)
        writer = open_records(path)._writer
        with pytest.raises(ZeroDivisionError):
            step(writer, *MIGRATIONS, half_a_step)
        close_all()
        assert digest(path) == before
        writer = open_records(path)._writer
        assert step(writer, *MIGRATIONS, lambda _: None)
        assert not step(writer, *MIGRATIONS, lambda _: None)
        close_all()
        refused(path, "newer")


def test_a_record_is_made_for_its_user_alone_with_the_files_beside_it(path):
    before = os.umask(0o022)  # the usual one, which lets everybody read
    try:
        record = new_record(path)
        record.claim(trial(0), 0.01, "me")
        modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    finally:
        os.umask(before)
    names = ("record.db", "record.db-wal", "record.db-shm", "record.db.ledger")
    assert modes == dict.fromkeys(names, 0o600)


def test_a_record_that_a_team_shares_stays_as_it_was_shared(path):
    path.touch()
    path.chmod(0o664)
    new_record(path).claim(trial(0), 0.01, "me")
    assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o664}


def test_a_record_that_nobody_holds_any_more_is_closed(tmp_path):
    """Studies are rarely closed by hand; a notebook, or a page with many of them, would run out of files."""
    path = tmp_path / "study.db"
    for number in range(3):
        Records(path).create_or_open(f"study {number}", {}, None)
        RecordsView(path).open(f"study {number}").history()
    gc.collect()
    opened = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name)]
    assert not [one for one in opened if one.startswith(str(path))]


def _is_open(name):
    return os.path.lexists(f"/proc/self/fd/{name}")
