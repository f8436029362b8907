"""A record on a server: what can be in the way is told without the password, and nothing is ever done twice."""

import sys
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from cutting_proxy import CuttingProxy
from record_fakes import check_everything, close_all, in_memory, new_record, open_records, succeeded, trial

from postgres_server import PASSWORD, USER
from trimtuner.errors import InputError
from trimtuner.records import RecordError, Records, RecordsView
from trimtuner.records import database as database_module
from trimtuner.records import server as server_module
from trimtuner.records.database import Database


def refused(place, *says, ways=(Records, RecordsView)):
    """Whoever opens it is told all of this in one line, and no password."""
    for way in ways:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database_module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=not_to_be_called))
            with pytest.raises(RecordError) as caught:
                way(place)
        error, chain = caught.value, []
        while error is not None:
            chain.append(f"{error} {error!r}")
            error = error.__cause__ or error.__context__
        message = str(caught.value)
        assert all(text in message for text in says), message
        assert "\n" not in message
        assert PASSWORD not in "".join(chain)
        assert "%pass" not in "".join(chain)


def not_to_be_called(seconds):
    raise AssertionError(f"what is refused is waited for, {seconds} s")


class TestRefused:
    def test_a_server_that_is_not_there(self):
        refused(
            "postgresql://me:s3cret@127.0.0.1:1/studies", "me@127.0.0.1:1/studies cannot be reached", "host and port"
        )

    def test_a_wrong_password(self, postgres_server):
        place = postgres_server.address("postgres", password="wrong")  # noqa: S106
        refused(place, "refuses this user or password", "PGPASSWORD", ".pgpass")

    def test_no_password(self, postgres_server, monkeypatch):
        monkeypatch.setenv("PGPASSFILE", "/dev/null")
        refused(postgres_server.address("postgres", password=None), "refuses this user or password")

    def test_a_user_that_is_not_there(self, postgres_server):
        refused(postgres_server.address("postgres", user="nobody"), "refuses this user or password")

    def test_a_database_that_is_not_there(self, postgres_server):
        refused(postgres_server.address("elsewhere"), "elsewhere does not exist", "createdb")

    def test_a_driver_that_is_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        refused(f"postgresql://{USER}:s3cret@host/studies", "psycopg", "pip install 'trimtuner[postgres]'")

    def test_an_option_that_libpq_does_not_know(self, postgres_address):
        refused(f"{postgres_address}?colour=red", "colour")

    def test_tables_of_somebody_else(self, postgres_server, postgres_address):
        postgres_server.execute("CREATE TABLE customers (name TEXT)", postgres_address.rpartition("/")[2])
        refused(postgres_address, "is no record of studies", "customers", "give another place")

    def test_a_newer_version(self, postgres_server, postgres_address):
        new_record(postgres_address)
        close_all()
        postgres_server.execute("UPDATE trimtuner_schema SET version = 1000", postgres_address.rpartition("/")[2])
        refused(postgres_address, "newer trimtuner")

    def test_an_empty_database_for_those_who_only_read(self, postgres_address):
        refused(postgres_address, "is empty", "when it runs", ways=(RecordsView,))


class TestPermissions:
    @pytest.fixture
    def guest(self, postgres_server, postgres_address):
        """The database, and its address for somebody who was granted nothing yet."""
        database = postgres_address.rpartition("/")[2]
        name = f"guest_{database}"
        postgres_server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        return database, name, postgres_server.address(database, user=name)

    def test_who_may_make_no_tables_is_told_so(self, guest):
        refused(guest[2], "may not be used so by this user", "permission denied", "ask the owner", ways=(Records,))

    def test_who_may_only_read_reads(self, postgres_server, postgres_address, guest):
        database, name, address = guest
        new_record(postgres_address).claim(trial(0), 0.5, "me")
        refused(address, "permission denied")
        postgres_server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", database)
        with RecordsView(address) as records:
            assert records.open("study").history() == in_memory(trial(0))
        with pytest.raises(RecordError, match=r"may not be used so .*permission denied"):
            open_records(address).open("study").request_stop()

    def test_who_may_write_rows_runs_studies_without_owning_the_tables(self, postgres_server, postgres_address, guest):
        database, name, address = guest
        new_record(postgres_address)
        postgres_server.execute(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}", database
        )
        record = new_record(address, name="theirs")
        assert record.claim(trial(0), 0.5, "me")
        record.finish(succeeded(trial(0)), 1, 0.5)

    def test_a_view_cannot_write(self, postgres_address):
        new_record(postgres_address)
        with (
            RecordsView(postgres_address) as records,
            pytest.raises(RecordError, match="can only be read"),
            records._reader.transaction() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM owners")


class TestPlaces:
    def test_a_socket_is_as_good_as_a_port(self, postgres_server):
        database = postgres_server.new_database()
        new_record(postgres_server.socket_address(database)).claim(trial(0), 0.5, "me")
        with RecordsView(postgres_server.address(database)) as records:
            assert records.open("study").history() == in_memory(trial(0))

    def test_the_password_may_come_from_the_environment_or_a_file(self, postgres_server, monkeypatch, tmp_path):
        address = postgres_server.address(postgres_server.new_database(), password=None)
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        assert open_records(address).names() == []
        monkeypatch.delenv("PGPASSWORD")
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        (tmp_path / "pgpass").write_text(f"127.0.0.1:*:*:{USER}:{escaped}\n")
        (tmp_path / "pgpass").chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
        assert open_records(address).names() == []

    def test_a_schema_of_its_own_shares_a_database_with_others(self, postgres_server, postgres_address):
        database = postgres_address.rpartition("/")[2]
        postgres_server.execute("CREATE TABLE customers (name TEXT)", database)
        postgres_server.execute(f"CREATE SCHEMA tuning AUTHORIZATION {USER}", database)
        own = f"{postgres_address}?options=-csearch_path%3Dtuning"
        new_record(own).claim(trial(0), 0.5, "me")
        close_all()
        assert check_everything(own) == in_memory(trial(0))

    def test_a_commit_is_on_the_disk_before_it_returns_whatever_the_server_does_for_others(self, postgres_address):
        writer = open_records(postgres_address)._writer
        with writer.transaction() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"

    def test_nothing_of_a_password_is_in_the_record_the_log_or_what_is_printed(self, postgres_server, postgres_address):
        records = open_records(postgres_address)
        record = new_record(postgres_address)
        for shown in (vars(records), vars(record), vars(record._writer), record._writer._engine, record._writer.where):
            assert PASSWORD not in str(shown)
            assert "%pass" not in str(shown)
        with record._reader.transaction() as connection:
            names = connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").scalars()
            for name in list(names):
                assert PASSWORD not in str(connection.exec_driver_sql(f"SELECT * FROM {name}").all())  # noqa: S608
        assert PASSWORD not in postgres_server.log()


def make_impatient(monkeypatch, milliseconds=300):
    settings = [text.replace("'60s'", f"'{milliseconds}ms'") for text in server_module._SETTINGS]
    assert settings != list(server_module._SETTINGS)
    monkeypatch.setattr(server_module, "_SETTINGS", settings)


def change_in_two_halves(record, meanwhile):
    with record._change() as change:
        change.log("half written", None, {})
        meanwhile()
        change.log("never written", None, {})


class TestOthers:
    def test_who_is_interrupted_while_the_server_is_asked_whether_it_lives_leaves(self, postgres_address, monkeypatch):
        """A second Ctrl-C: the driver, on its way out of a statement under way, raised an error in its place."""

        def begin_and_be_interrupted(cursor, *_, **__):
            cursor.connection.pgconn.send_query(b"SELECT pg_sleep(60)")
            raise SystemExit(130)

        record = new_record(postgres_address)
        record.version()
        with monkeypatch.context() as patch:
            patch.setattr("psycopg.Cursor.execute", begin_and_be_interrupted)
            with pytest.raises(SystemExit):
                record.version()
        assert record.version() >= 0  # with another connection

    def test_trouble_while_an_interruption_is_dealt_with_is_told_as_trouble(self, postgres_address, monkeypatch):
        holder = new_record(postgres_address)
        make_impatient(monkeypatch)
        waiting = open_records(postgres_address).open("study")
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            with holder._change(), pytest.raises(RecordError, match="was locked for 60 s"):
                waiting.claim(trial(0), 0.5, "me")

    def test_a_lock_that_is_held_too_long_is_told_and_nothing_was_changed(self, postgres_address, monkeypatch):
        holder = new_record(postgres_address)
        make_impatient(monkeypatch)
        waiting = open_records(postgres_address).open("study")
        before = holder.version()
        with holder._change(), pytest.raises(RecordError, match=r"was locked for 60 s .*end what holds it"):
            waiting.claim(trial(0), 0.5, "me")
        assert waiting.version() == before
        assert waiting.claim(trial(0), 0.5, "me")

    def test_who_stands_still_in_the_middle_of_a_change_loses_it_and_stops_nobody(self, postgres_address, monkeypatch):
        other = new_record(postgres_address)
        make_impatient(monkeypatch)
        still = open_records(postgres_address).open("study")

        def wait_in_the_middle():
            assert other.claim(trial(0), 0.5, "me")

        with pytest.raises(RecordError, match=r"stood still|(ended|lost) our connection"):
            change_in_two_halves(still, wait_in_the_middle)
        assert [event.kind for event in other.events()] == ["created", "asked"]
        assert still.history() == in_memory(trial(0))

    @pytest.mark.parametrize("code", ["40001", "40P01"])
    def test_a_meeting_with_others_is_an_error_after_which_one_runs_again(self, postgres_address, code):
        record = new_record(postgres_address)
        raising = f"DO $$ BEGIN RAISE EXCEPTION 'met' USING ERRCODE = '{code}'; END $$"
        with (
            pytest.raises(RecordError, match=r"in the same instant .*met.*run again.* as it was"),
            record._change() as one,
        ):
            one.connection.exec_driver_sql(raising)
        assert record.claim(trial(0), 0.5, "me")

    def test_a_database_of_another_encoding_refuses_what_it_cannot_hold(self, postgres_server):
        postgres_server.execute(
            f"CREATE DATABASE latin OWNER {USER} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        records = open_records(postgres_server.address("latin"))
        records.create_or_open("é", {"é": "☃"}, None)
        with pytest.raises(RecordError, match=r"cannot hold this text.*UTF8"):
            records.create_or_open("☃", {}, None)
        assert records.names() == ["é"]


class TestRestarts:
    @pytest.fixture
    def server(self, own_postgres_server):
        return own_postgres_server

    @pytest.fixture
    def record(self, server):
        return new_record(server.address(server.new_database()))

    @pytest.mark.parametrize("signal", ["INT", "QUIT"])
    def test_between_two_changes_a_restart_is_not_noticed(self, server, record, signal):
        for number in range(3):
            assert record.claim(trial(number), 0.5, "me")
            server.stop(signal)
            server.start()
        record.heartbeat("me")
        assert record.history() == in_memory(*map(trial, range(3)))

    def test_a_server_that_is_down_is_waited_for(self, server, record):
        server.stop()
        starting = threading.Timer(0.5, server.start)
        starting.start()
        assert record.claim(trial(0), 0.5, "me")
        starting.join()  # it may still be looking whether the server answers

    def test_a_server_that_stays_away_is_an_error_and_when_it_is_back_all_is_there(self, server, record):
        assert record.claim(trial(0), 0.5, "me")
        record._writer._patience_seconds = record._reader._patience_seconds = 1.0
        server.stop()
        for work in (record.version, lambda: record.claim(trial(1), 0.5, "me")):
            with pytest.raises(RecordError, match=r"cannot be reached .*host and port.*as it was"):
                work()
        server.start()
        assert record.claim(trial(1), 0.5, "me")
        assert record.history() == in_memory(trial(0), trial(1))

    @pytest.mark.parametrize("signal", ["INT", "QUIT"])
    def test_a_change_that_is_cut_in_the_middle_is_an_error_and_leaves_nothing(self, server, record, signal):
        def restart():
            server.stop(signal)
            server.start()

        with pytest.raises(RecordError, match=r"(shut down|lost our connection).*run again.* as it was"):
            change_in_two_halves(record, restart)
        assert [event.kind for event in record.events()] == ["created"]
        assert record.claim(trial(0), 0.5, "me")

    def test_a_reading_that_is_cut_in_the_middle_is_an_error_and_the_next_one_is_well(self, server, record):
        def read_twice():
            with record._reader.transaction() as connection:
                connection.exec_driver_sql("SELECT 1")
                server.stop()
                server.start()
                connection.exec_driver_sql("SELECT 1")

        with pytest.raises(RecordError, match="run again"):
            read_twice()
        assert record.version() == 1


class TestLostAnswers:
    @pytest.fixture
    def proxy(self, postgres_server):
        with closing(CuttingProxy(postgres_server.port, b"COMMIT\0")) as proxy:
            yield proxy

    def test_a_change_whose_confirmation_is_lost_is_told_as_not_known_and_happens_once(
        self, postgres_address, postgres_server, proxy
    ):
        there = new_record(postgres_address)
        record = open_records(postgres_address.replace(str(postgres_server.port), str(proxy.port))).open("study")
        proxy.is_armed = True
        with pytest.raises(RecordError, match=r"Whether the last change was recorded is not known"):
            record.claim(trial(0), 0.5, "me")
        assert proxy.cuts == 1
        assert there.history() == in_memory(trial(0))
        assert not record.claim(trial(0), 0.5, "me")
        proxy.is_armed = True
        with pytest.raises(RecordError, match="not known"):
            record.finish(succeeded(trial(0)), 1, 0.5)
        with pytest.raises(InputError, match="told already"):
            record.finish(succeeded(trial(0)), 1, 0.5)
        assert there.spent == 0.5
        check_everything(postgres_address)


class TestClocks:
    def test_times_are_the_servers_whatever_the_machines_clocks_say(
        self, postgres_server, postgres_address, monkeypatch
    ):
        real = time.time
        now = float(postgres_server.execute("SELECT extract(epoch FROM clock_timestamp())::float")[0][0])
        for ahead in (-86400.0, 86400.0):
            monkeypatch.setattr(time, "time", lambda ahead=ahead: real() + ahead)
            record = new_record(postgres_address, name=f"ahead by {ahead}")
            record.heartbeat("me")
            record.claim(trial(0), 0.5, "me")
            record.started(0, 1, "handle")
            (owner,), (one,) = record.owners(), record.open_trials()
            seen = (record.created_at, owner.heartbeat_at, one.asked_at, one.started_at, record.now())
            assert all(now - 1 < at < now + 3600 for at in seen)
            assert -1 < owner.silent_seconds < 3600
            assert list(seen) == sorted(seen)


def test_a_file_is_never_waited_for(tmp_path):
    record = new_record(tmp_path / "a.db")
    assert isinstance(record._writer, Database)
    assert record._writer._patience_seconds == record._reader._patience_seconds == 0.0
