"""The dashboard by its answers: who may ask, what is told, and that nothing is changed."""

import asyncio
import hashlib
import json
import re
import socket
from contextlib import contextmanager
from multiprocessing.spawn import get_executable, set_executable
from pathlib import Path
from urllib.parse import quote

import pytest

import trimtuner as tt
from postgres_server import PASSWORD
from quick_commands import SCRIPTS
from written_jobs import quick_program, trimtuner, write_job

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette", reason="starlette is not installed; install trimtuner[dashboard]")

from benchmarks.browser import dashboard as dashboard_in_a_process  # noqa: E402
from trimtuner.commands.dashboard.access import own_hosts  # noqa: E402
from trimtuner.commands.dashboard.app import Dashboard  # noqa: E402
from trimtuner.commands.dashboard.command import is_record, job_files  # noqa: E402
from trimtuner.commands.dashboard.recorded import RecordWatched  # noqa: E402
from trimtuner.errors import InputError  # noqa: E402
from trimtuner.jobs.studies import JobStudy  # noqa: E402
from trimtuner.records import RecordError  # noqa: E402
from trimtuner.views.blocks import READING  # noqa: E402
from trimtuner.views.every import VIEWS  # noqa: E402
from trimtuner.views.marking import key_of  # noqa: E402
from waiting import wait_until  # noqa: E402

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105
LOCAL = "http://localhost"
NINES = "9" * 5000  # more digits than Python reads


@pytest.fixture(scope="module", autouse=True)
def _quick_workers():
    """What fits models is a process of its own, as always; only its imports were done before."""
    before = get_executable()
    set_executable(str(Path(quick_program()).with_name(SCRIPTS)))
    yield
    set_executable(before)


def running_dashboard(*words):
    return dashboard_in_a_process(*words, program=[quick_program()])


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    path = write_job(tmp_path_factory.mktemp("study"), trials=6, fail="2", method="random", nap=0)
    trimtuner("run", path, "-q")
    return path


@contextmanager
def serving(*paths, token=None, **options):
    dashboard = Dashboard([JobStudy.at(path) for path in paths], token, **options)
    try:
        yield dashboard
    finally:
        dashboard.close()


def ask(app, *addresses, method="GET", base=LOCAL, **options):
    """One client's questions, in order; the last answer."""

    async def asking():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base) as client:
            answers = [await client.request(method, address, **options) for address in addresses]
        return answers[-1]

    return asyncio.run(asking())


def first_line_of_answer(port, *hosts, path="/study/0/state"):
    """What the server says to exactly these headers; a client of the library would put them right."""
    lines = [f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.makefile("rb").readline().decode()


def version_of(job):
    return JobStudy.at(job).record.version()


def state_when_all_is_drawn(app):
    def state():
        return ask(app, "/study/0/state").json()

    wait_until(lambda: None not in state()["views"].values())
    return state()


def digest_of(folder):
    """Everything in the folder of a study, byte by byte."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def test_every_view_is_answered_and_nothing_is_written(job):
    before = digest_of(job.parent)
    with serving(job) as dashboard:
        app = dashboard.app()
        state = state_when_all_is_drawn(app)
        assert list(state["views"]) == [view.name for view in VIEWS]
        assert {state["views"][view.name] for view in VIEWS if view.effort in READING} == {f"{version_of(job)}, 0 runs"}
        assert {state["views"][view.name] for view in VIEWS if view.effort not in READING} == {str(version_of(job))}
        assert state["said"].startswith("no run at work")
        assert state["goal"] == "maximize accuracy with cost <= 1 USD; method random"
        for view in VIEWS:
            answer = ask(app, f"/study/0/view/{view.name}")
            assert answer.status_code == 200
            assert len(answer.text) > 50
        assert ask(app, "/study/0/state").json()["views"] == state["views"]
        assert "::metric" in ask(app, "/study/0/log/0").text
        assert "1 attempt" in ask(app, "/study/0/trial/2").text
        assert re.findall(r"data-trial='(\d)'", ask(app, "/study/0/trials?below=3").text) == ["2", "1", "0"]
    assert digest_of(job.parent) == before


def test_every_answer_carries_the_policy(job):
    with serving(job) as dashboard:
        app = dashboard.app()
        for address in ("/study/0", "/static/style.css", "/study/0/state", "/study/7", "/login", "/studies"):
            headers = ask(app, address).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


def test_the_page_has_no_script_or_style_in_it(job):
    with serving(job) as dashboard:
        html = ask(dashboard.app(), "/study/0").text
    assert re.findall(r"<script[^>]*>(.*?)</script>", html) == [""]
    assert "<style" not in html
    assert " style=" not in html


@pytest.mark.parametrize(
    "address",
    [
        *("/study/1", "/study/-1", "/study/0/view/none", "/study/0/view/..%2f..%2fjob.yaml", "/study/0/log/99"),
        *("/study/0/log/..%2f..%2fjob.yaml", "/static/..%2fdocument.py", "/static/app.py", "/study/0/trial/99"),
        *("/study/0/trials?below=x", "/study/0/trials", "/none"),
        *(
            f"/study/{NINES}/state",
            f"/study/0/log/{NINES}",
            f"/study/0/trial/{NINES}",
            f"/study/0/trials?below={NINES}",
        ),
    ],
    ids=lambda address: address[:40],
)
def test_what_is_not_there_is_not_found(job, address):
    with serving(job) as dashboard:
        app = dashboard.app()
        ask(app, "/study/0/state")
        assert ask(app, address).status_code == 404


@pytest.fixture(scope="module")
def open_port(job):
    """A server that asks for no token: only its rules for names keep other pages out."""
    with running_dashboard(job, "--no-token") as address:
        yield int(re.fullmatch(r"http://localhost:(\d+)/", address)[1])


@pytest.mark.parametrize(
    "hosts",
    [
        *(
            ["a{b.evil.example"],
            ["a{b.evil.example:PORT"],
            ["evil.example"],
            ["evil.example:PORT"],
            [""],
            [":PORT"],
            [],
        ),
        *(["localhost.evil.example:PORT"], ["localhost@evil.example"], ["localhost:PORT@evil.example"]),
        *(["evil.example@localhost:PORT"], ["localhost.:PORT"], ["127.0.0.1:1"], ["localhost"], ["[::1"], ["::1:PORT"]),
        *(["localhost:PORT, evil.example"], ["localhost:PORT", "evil.example"], ["localhost:PORT", "localhost:PORT"]),
        *(["evil.example", "localhost:PORT"], ["localhost:PORT/"], ["localhost:0PORT"], ["192.0.2.1:PORT"]),
    ],
    ids=" and ".join,
)
def test_what_is_not_exactly_a_name_and_the_port_of_ours_is_refused(open_port, hosts):
    sent = [host.replace("PORT", str(open_port)) for host in hosts]
    for path in ("/study/0/state", "/login", "/static/live.js", "/none"):
        assert first_line_of_answer(open_port, *sent, path=path).split()[1] in ("400", "403")


@pytest.mark.parametrize("host", ["localhost:PORT", "127.0.0.1:PORT", "[::1]:PORT", "LocalHost:PORT"])
def test_the_names_of_this_machine_with_the_port_are_answered(open_port, host):
    assert first_line_of_answer(open_port, host.replace("PORT", str(open_port))).split()[1] == "200"


def test_unless_told_otherwise_it_demands_the_token_in_the_link_that_it_prints(job):
    with running_dashboard(job) as link, httpx.Client(follow_redirects=True) as client:
        base, token = re.fullmatch(r"(http://localhost:\d+)/login\?token=([\w-]{32})", link).groups()
        assert client.get(f"{base}/study/0").status_code == 401
        shown = client.get(link)
        assert (shown.status_code, str(shown.url)) == (200, f"{base}/study/0")
        assert token not in shown.text


def test_a_foreign_name_is_refused_with_the_token_too_and_told_the_way_on(job):
    with serving(job, token=TOKEN) as dashboard:
        app = dashboard.app()
        for address in ("/", "/study/0", "/study/0/log/0", "/static/live.js", f"/login?token={TOKEN}", "/none"):
            answer = ask(app, address, base="http://evil.example", headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code == 403
            assert "--allow-host" in answer.text
            assert "set-cookie" not in answer.headers


def test_without_the_token_nothing_is_answered(job):
    with serving(job, token=TOKEN) as dashboard:
        app = dashboard.app()
        addresses = [
            "/",
            "/studies",
            "/study/0",
            "/study/0/state",
            "/study/0/log/0",
            "/static/page.js",
            "/none",
            "/login/",
        ]
        wrong = [{"Cookie": "trimtuner-80=wrong"}, {"Cookie": "trimtuner-80="}, {"Authorization": "Bearer wrong"}]
        for headers in ({}, *wrong, {"Cookie": f"trimtuner-81={TOKEN}"}):
            for address in addresses:
                answer = ask(app, address, headers=headers)
                assert answer.status_code == 401
                assert "quick" not in answer.text
        assert ask(app, "/login?token=wrong").status_code == 401
        assert ask(app, "/login").status_code == 401


def test_with_the_token_the_page_is_had_and_the_cookie_is_for_no_script_and_for_one_port(job):
    with serving(job, token=TOKEN, hosts=("localhost:8081", "machine.example")) as dashboard:
        app = dashboard.app()
        for base, name in (("http://localhost:8081", "trimtuner-8081"), ("http://machine.example", "trimtuner-80")):
            answer = ask(app, f"/login?token={TOKEN}", base=base)
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            cookie = answer.headers["set-cookie"].lower()
            assert cookie.startswith(f"{name}=")
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert ask(app, f"/login?token={TOKEN}", "/study/0", base=base).status_code == 200
            assert ask(app, "/study/0", base=base, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_page_that_only_reads_has_no_way_to_change_anything(job):
    with serving(job) as dashboard:
        app = dashboard.app()
        assert "<form" not in ask(app, "/study/0").text
        for address in ("/", "/study/0", "/study/0/state", "/study/0/log/0"):
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                assert ask(app, address, method=method).status_code == 405
        assert ask(app, "/study/0/stop", method="POST").status_code == 404


def test_the_button_to_stop_works_from_its_own_page_only(job):
    view = JobStudy.at(job).record
    with serving(job) as dashboard:
        app = dashboard.app_that_may_change()
        token = re.search(r'name="form_token" value="([^"]+)"', ask(app, "/study/0").text)[1]
        ask(app, "/study/0/state")
        before = view.version()
        refused = [
            {"data": {"form_token": token}},
            {"data": {"form_token": token}, "headers": {"Origin": "http://evil.example"}},
            {"data": {"form_token": token}, "headers": {"Origin": "http://evil.example", "Host": "evil.example"}},
            {"data": {"form_token": token}, "headers": {"Origin": "http://localhost:8888"}},
            {"data": {"form_token": token}, "headers": {"Origin": "null"}},
            {"data": {"form_token": "wrong"}, "headers": {"Origin": LOCAL}},
            {"headers": {"Origin": LOCAL}},
        ]
        for options in refused:
            assert ask(app, "/study/0/stop", method="POST", **options).status_code == 403
        too_long = {"data": {"form_token": "x" * 9000}, "headers": {"Origin": LOCAL}}
        assert ask(app, "/study/0/stop", method="POST", **too_long).status_code == 413
        assert ask(app, "/study/0/stop").status_code == 405
        assert view.version() == before
        sent = {"data": {"form_token": token}, "headers": {"Origin": LOCAL}}
        assert ask(app, "/study/0/stop", method="POST", **sent).status_code == 200
        assert view.stop_requested(before)


def test_a_configuration_is_enqueued_by_a_form_and_what_is_none_is_refused_with_words(job):
    with serving(job) as dashboard:
        app = dashboard.app_that_may_change()
        token = re.search(r'name="form_token" value="([^"]+)"', ask(app, "/study/0").text)[1]
        ask(app, "/study/0/state")

        def send(config, fraction):
            form = {"form_token": token, "config": config, "fraction": fraction}
            return ask(app, "/study/0/enqueue", method="POST", data=form, headers={"Origin": LOCAL})

        for config, fraction in (("no json", "1"), ("[1]", "1"), ('{"x": 0.2}', "much"), ('{"y": 1}', "1")):
            assert send(config, fraction).status_code == 503
        asked = {(tuple(trial.config.items()), trial.fraction) for trial in JobStudy.at(job).state().trials}
        tests = [
            ({"vm_type": "small", "vm_count": 1, "x": x}, fraction)
            for x in (0, 0.2, 0.4, 0.6, 0.8, 1)
            for fraction in (0.1, 0.5, 1.0)
        ]
        config, fraction = next(one for one in tests if (tuple(one[0].items()), one[1]) not in asked)
        answer = send(json.dumps(config), str(fraction))
        assert (answer.status_code, answer.text.startswith("enqueued")) == (200, True)
        assert len(JobStudy.at(job).record.history().queued) == 1


def test_a_stop_that_cannot_be_written_down_is_said_on_the_page(job, monkeypatch):
    def refuse(*_):
        raise RecordError("the record could not be written: the disk is full; free some space")

    monkeypatch.setattr("trimtuner.records.record.Record.request_stop", refuse)
    with serving(job) as dashboard:
        app = dashboard.app_that_may_change()
        token = re.search(r'name="form_token" value="([^"]+)"', ask(app, "/study/0").text)[1]
        ask(app, "/study/0/state")
        answer = ask(app, "/study/0/stop", method="POST", data={"form_token": token}, headers={"Origin": LOCAL})
        assert (answer.status_code, "the disk is full; free some space" in answer.text) == (503, True)


def test_several_studies_are_listed_with_where_they_stand_one_that_has_not_begun_too(job, tmp_path):
    other = write_job(tmp_path)
    with serving(job, other) as dashboard:
        app = dashboard.app()
        html = ask(app, "/").text
        assert '<a href="/study/0">quick</a>' in html
        assert "6 (1 failed)" in html
        assert "not begun" in html
        state = ask(app, "/study/1/state").json()
        assert "start the study with: trimtuner run" in state["trouble"]
        assert set(state["views"].values()) == {None}
        assert 'href="/">all studies' in ask(app, "/study/1").text
    assert not list(tmp_path.glob("*.db*"))


def test_a_record_lists_all_its_studies_without_their_job_files(job):
    with serving(records=[RecordWatched(str(job.with_name("quick.db")))]) as dashboard:
        app = dashboard.app()
        html = ask(app, "/").text
        for words in (
            "quick",
            "6 (1 failed)",
            "accuracy 0.",
            "kept",
            "of 5 USD",
            "over: ",
            "its job file was not given",
        ):
            assert words in html
        assert "/study/0" not in html
        assert ask(app, "/study/0").status_code == 404


def test_a_server_lists_the_studies_of_its_database_and_those_that_are_begun_later(postgres_address):
    def begin(name):
        space = tt.Space({"x": tt.Choice([1, 2, 3])})
        study = tt.Study(space, maximize="score", method="random", storage=postgres_address, name=name)
        study.tell(study.ask(), score=0.5, time=1.0)

    begin("first")
    with serving(records=[RecordWatched(postgres_address)]) as dashboard:
        app = dashboard.app()
        assert "first" in ask(app, "/").text
        begin("second")
        html = ask(app, "/studies").text
        against = ask(app, "/against?study=0&study=1").text
    assert html.count("score 0.5") == 2
    assert quote(PASSWORD, safe="") not in html
    assert {"first", "second"} <= set(re.findall(r"<th scope='col'>(\w+)</th>", against))


def test_an_address_of_a_database_and_the_file_of_one_are_records_and_a_job_file_is_none(job, tmp_path):
    assert is_record("postgresql://me@host/studies")
    assert is_record(str(job.with_name("quick.db")))
    assert not is_record(str(job))
    assert not is_record(str(tmp_path))


def test_one_failure_is_forgotten_by_the_form_of_its_trial(job):
    (failed,) = [one.trial.number for one in JobStudy.at(job).state().history.outcomes if one.failed]
    with serving(job) as dashboard:
        app = dashboard.app_that_may_change()
        token = re.search(r'name="form_token" value="([^"]+)"', ask(app, "/study/0").text)[1]
        assert "Forget this failure" in ask(app, f"/study/0/trial/{failed}").text
        assert "Forget this failure" not in ask(app, f"/study/0/trial/{failed + 1}").text

        def forget(trial):
            form = {"form_token": token, "trial": str(trial)}
            return ask(app, "/study/0/forget", method="POST", data=form, headers={"Origin": LOCAL}).text

        assert forget(failed + 1).startswith("forgotten: 0 failures")
        assert forget(failed).startswith("forgotten: 1 failure;")
    (outcome,) = [one for one in JobStudy.at(job).state().history.outcomes if one.failed]
    assert outcome.is_forgotten


def test_a_picked_configuration_is_enqueued_by_the_mark_that_stands_for_it(job):
    trials = JobStudy.at(job).state().trials
    pool = JobStudy.at(job).problem.space.pool()
    every_one = [pool.configuration(position) for position in range(len(pool))]
    new = next(one for one in every_one if all(one != dict(trial.config) for trial in trials))
    with serving(job) as dashboard:
        app = dashboard.app_that_may_change()
        token = re.search(r'name="form_token" value="([^"]+)"', ask(app, "/study/0").text)[1]

        def send(picked):
            form = {"form_token": token, "picked": picked, "fraction": "0.5"}
            return ask(app, "/study/0/enqueue", method="POST", data=form, headers={"Origin": LOCAL})

        assert (send("no mark").status_code, "was not tested yet" in send("no mark").text) == (503, True)
        assert send(key_of(new)).status_code == 200
    assert JobStudy.at(job).record.history().queued[-1] == (new, 0.5)


def test_who_opens_the_page_gets_its_first_screen_and_waits_for_nothing_else(job):
    with serving(job) as dashboard:
        html = ask(dashboard.app(), "/study/0").text
    assert re.findall(r'<section id="(\w+)"[^>]*data-version', html) == [view.name for view in VIEWS if view.is_first]
    assert "being read" not in html


def test_one_study_is_shown_at_once(job):
    with serving(job) as dashboard:
        assert ask(dashboard.app(), "/").headers["location"] == "/study/0"


def test_folders_are_searched_for_job_files_and_other_files_are_left_alone(job, tmp_path):
    (tmp_path / "other.yaml").write_text("a: 1\n")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe")
    own = write_job(tmp_path)
    assert job_files([tmp_path, job, own]) == [own, job]
    done = trimtuner("dashboard", Path(__file__).parent / "none", check=False)
    assert done.returncode == 2


def test_a_short_token_and_an_empty_folder_are_refused(job, tmp_path):
    done = trimtuner("dashboard", job, "--token", "short", check=False)
    assert (done.returncode, "less than 16 characters" in done.stderr) == (2, True)
    done = trimtuner("dashboard", tmp_path, check=False)
    assert (done.returncode, "there is no job file in the folder" in done.stderr) == (2, True)


@pytest.mark.parametrize("host", ["0.0.0.0", ""])  # noqa: S104
def test_only_this_machine_goes_without_a_token(job, host):
    done = trimtuner("dashboard", job, "--no-token", "--host", host, "--port", "0", check=False)
    assert (done.returncode, "leave out --no-token" in done.stderr, done.stdout) == (2, True, "")


def test_a_token_and_none_contradict_each_other(job):
    done = trimtuner("dashboard", job, "--no-token", "--token", TOKEN, check=False)
    assert (done.returncode, "leave out one of them" in done.stderr) == (2, True)


LOOPBACK = {"localhost:8080", "127.0.0.1:8080", "[::1]:8080"}


@pytest.mark.parametrize(
    ("host", "address", "further_names", "hosts"),
    [
        ("127.0.0.1", "127.0.0.1", [], LOOPBACK),
        ("127.1", "127.0.0.1", [], LOOPBACK | {"127.1:8080"}),
        ("0:0:0:0:0:0:0:1", "::1", [], LOOPBACK),
        ("192.0.2.7", "192.0.2.7", [], {"192.0.2.7:8080"}),
        ("[2001:DB8::7]", "2001:db8::7", [], {"[2001:db8::7]:8080"}),
        ("Machine", "192.0.2.7", [], {"machine:8080", "192.0.2.7:8080"}),
        ("localhost", "127.0.0.1", ["localhost:9000"], LOOPBACK | {"localhost:9000"}),
        ("localhost", "127.0.0.1", ["Proxy.example"], LOOPBACK | {"proxy.example", "proxy.example:8080"}),
    ],
)
def test_the_names_that_are_answered_to_are_those_that_it_listens_under_and_those_allowed(
    host, address, further_names, hosts
):
    assert own_hosts(host, address, 8080, further_names) == hosts


def test_the_usual_port_may_be_left_out():
    usual = {"192.0.2.7", "192.0.2.7:80"}
    assert own_hosts("192.0.2.7", "192.0.2.7", 80, []) == usual


def test_on_all_addresses_it_answers_to_what_this_machine_is_called():
    assert own_hosts("0.0.0.0", "0.0.0.0", 8080, []) >= LOOPBACK | {f"{socket.gethostname().lower()}:8080"}  # noqa: S104


@pytest.mark.parametrize("name", ["", "http://proxy.example", "a{b", "*", "me@proxy.example", "proxy.example:", "::1"])
def test_what_is_no_name_cannot_be_allowed(name):
    with pytest.raises(InputError, match="write it as in an address"):
        own_hosts("localhost", "127.0.0.1", 8080, [name])
