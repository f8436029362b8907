"""What a command starts and hides is held all the same: by a control group, or by a PID namespace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

from under_test import SECRET  # noqa: E402

from trimtuner.engines.local.engine import LocalEngine  # noqa: E402
from trimtuner.engines.protocol import EXIT, LOST, SIGNAL, TIMEOUT, Launch, Machines, reap  # noqa: E402
from trimtuner.engines.supervising import fence, files, processes, starting  # noqa: E402
from waiting import wait_until  # noqa: E402

JOB = Path(__file__).parent / "jobs" / "job.py"
CHOOSE = (
    "import sys; from pathlib import Path; from trimtuner.engines.supervising import fence, supervisor; fence.WAYS = "
)
MIND = "; supervisor.main(Path(sys.argv[1]), *map(int, sys.argv[2:]))"
GROUP, NAMESPACE, NOTHING = "(fence.make_control_group,)", "(fence.make_pid_namespace,)", "()"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(SECRET, [tmp_path / "study"])
    yield engine
    for found in engine.find():
        if found.handle.startswith(str(tmp_path)):
            engine.stop(found.handle)


def fence_by(ways: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have supervisors try these ways only; skip where this machine allows none of them."""
    tried = [sys.executable, "-c", f"{CHOOSE}{ways}; print(fence._try_out())"]
    if ways != NOTHING and subprocess.run(tried, capture_output=True, text=True).stdout.strip() == fence.TAGS_ONLY:
        pytest.skip(f"this user may not use {ways[7:-2]} on this machine")
    monkeypatch.setattr(starting, "_program", lambda: [sys.executable, "-P", "-c", f"{CHOOSE}{ways}{MIND}"])


@pytest.fixture(params=[GROUP, NAMESPACE], ids=["group", "namespace"])
def fenced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With either."""
    fence_by(request.param, monkeypatch)


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a control group."""
    fence_by(GROUP, monkeypatch)


def launch(tmp_path: Path, *words: str, trial: int = 1, limit: float = 60.0) -> Launch:
    work = tmp_path / f"work-{trial}"
    work.mkdir(exist_ok=True)
    command = (sys.executable, "-S", str(JOB), *words)
    return Launch(f"fence-{os.getpid()}", trial, 1, command, tmp_path / "study", work, {}, (), limit)


def start(engine: LocalEngine, job: Launch) -> str:
    """Started, and as far as the job says; its handle."""
    handle = engine.start(job)
    wait_until((job.working_directory / "notes").exists)
    return handle


def living(mark: str) -> list[int]:
    """Processes that were started by this name, by the numbers that they have here."""
    return [one.pid for one in processes.all_processes() if one.is_alive and first_word_of(one.pid) == mark.encode()]


def first_word_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except (FileNotFoundError, ProcessLookupError):
        return b""


def kill_supervisor(handle: str) -> None:
    begun = files.folder_at(Path(handle), SECRET).get(files.BEGUN)
    assert begun is not None
    os.kill(int(str(begun["pid"])), signal.SIGKILL)


def groups_of(handle: str) -> list[str]:
    return [path for path in fence._groups() if path.endswith(fence._name_of_group(handle))]


def wait_until_ended(engine: LocalEngine, handle: str) -> None:
    wait_until(lambda: engine.poll(handle).end is not None)


@pytest.mark.usefixtures("fenced")
def test_an_end_is_told_only_when_what_escaped_from_a_killed_supervisor_is_dead(
    engine: LocalEngine, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    handle = start(engine, launch(tmp_path, "escape", mark, "rest"))
    assert len(living(mark)) == 1
    kill_supervisor(handle)
    wait_until_ended(engine, handle)
    assert living(mark) == []
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == LOST
    assert groups_of(handle) == []


@pytest.mark.usefixtures("fenced")
@pytest.mark.parametrize(("then", "limit", "kind"), [("leave", 60.0, None), ("rest", 1.0, TIMEOUT)])
def test_what_escaped_ends_with_the_command(
    engine: LocalEngine, tmp_path: Path, then: str, limit: float, kind: str | None
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    handle = engine.start(launch(tmp_path, "escape", mark, then, limit=limit))
    wait_until_ended(engine, handle)
    assert living(mark) == []
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == kind
    assert groups_of(handle) == []


@pytest.mark.usefixtures("grouped")
def test_what_escaped_is_ended_by_the_next_driver_when_driver_and_supervisor_were_killed(
    engine: LocalEngine, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    job = launch(tmp_path, "escape", mark, "rest")
    given = {**asdict(job), "folder": str(job.folder), "working_directory": str(job.working_directory)}
    words = [sys.executable, str(JOB.with_name("driver.py")), "under_test:make_local", "null", json.dumps(given)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        handle = driver.stdout.readline().strip()
        wait_until((job.working_directory / "notes").exists)
        kill_supervisor(handle)
        driver.kill()
    wait_until(lambda: not processes.living_processes_of(handle))
    assert len(living(mark)) == 1
    wait_until_ended(engine, handle)
    assert living(mark) == []


@pytest.mark.usefixtures("fenced")
def test_stop_ends_what_escaped_though_the_supervisor_was_killed(engine: LocalEngine, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    handle = start(engine, launch(tmp_path, "escape", mark, "rest"))
    kill_supervisor(handle)
    engine.stop(handle)
    assert living(mark) == []


@pytest.mark.usefixtures("fenced")
def test_a_fence_changes_nothing_about_how_an_end_is_told(engine: LocalEngine, tmp_path: Path) -> None:
    handle = engine.start(launch(tmp_path, "die_by", str(int(signal.SIGKILL))))
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == SIGNAL
    assert (Path(handle) / files.SUPERVISOR_ERRORS).read_text() == ""


@pytest.mark.usefixtures("fenced")
def test_a_command_that_cannot_be_started_leaves_no_fence(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "leave", "0")
    handle = engine.start(replace(job, command=("no-such-program",)))
    wait_until_ended(engine, handle)
    assert not fence.kill(handle)
    assert groups_of(handle) == []


@pytest.mark.usefixtures("grouped")
def test_what_escaped_is_found_and_reaped_though_supervisor_and_folder_are_gone(
    engine: LocalEngine, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    job = launch(tmp_path, "escape", mark, "rest", trial=9)
    handle = start(engine, job)
    kill_supervisor(handle)
    shutil.rmtree(handle)
    wait_until(lambda: not processes.living_processes_of(handle))  # the command dies with its supervisor
    assert len(living(mark)) == 1
    (found,) = engine.find(job.study)
    assert (found.trial, found.attempt, found.handle, found.is_running) == (9, 1, handle, True)
    assert reap(engine, job.study, known=[]) == [found]
    assert living(mark) == []
    assert engine.find(job.study) == []
    assert groups_of(handle) == []


@pytest.mark.usefixtures("grouped")
def test_what_only_a_fence_holds_is_found_running_and_to_look_ends_nothing(engine: LocalEngine, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    job = launch(tmp_path, "escape", mark, "rest")
    handle = start(engine, job)
    kill_supervisor(handle)
    wait_until(lambda: not processes.living_processes_of(handle))
    (found,) = engine.find(job.study)
    assert found.is_running
    assert len(living(mark)) == 1


@pytest.mark.usefixtures("grouped")
def test_an_empty_group_that_a_killed_supervisor_left_is_removed_by_whoever_closes_the_attempt(
    engine: LocalEngine, tmp_path: Path
) -> None:
    handle = start(engine, launch(tmp_path, "rest"))
    kill_supervisor(handle)
    wait_until(lambda: not processes.living_processes_of(handle))
    assert len(groups_of(handle)) == 1
    wait_until_ended(engine, handle)
    assert groups_of(handle) == []


@pytest.mark.usefixtures("grouped")
def test_groups_that_a_command_makes_below_its_own_are_killed_and_removed(engine: LocalEngine, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    handle = start(engine, launch(tmp_path, "escape", mark, "rest"))
    (group,) = groups_of(handle)
    os.makedirs(f"{group}/of/its/own")
    (escaped,) = living(mark)
    Path(f"{group}/of/its/own/cgroup.procs").write_text(str(escaped))
    kill_supervisor(handle)
    wait_until_ended(engine, handle)
    assert living(mark) == []
    assert groups_of(handle) == []


@pytest.mark.usefixtures("fenced")
def test_the_fence_of_one_attempt_holds_nothing_of_another(engine: LocalEngine, tmp_path: Path) -> None:
    marks = [f"mark-{trial}-{tmp_path.name}-{os.getpid()}" for trial in (1, 2)]
    handles = [
        start(engine, launch(tmp_path, "escape", mark, "rest", trial=trial)) for trial, mark in enumerate(marks, 1)
    ]
    kill_supervisor(handles[0])
    wait_until_ended(engine, handles[0])
    assert living(marks[0]) == []
    assert len(living(marks[1])) == 1
    assert engine.poll(handles[1]).end is None


@pytest.mark.usefixtures("grouped")
def test_a_group_that_says_it_is_anothers_is_believed_by_nobody(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "rest")
    handle = start(engine, job)
    (group,) = groups_of(handle)
    assert handle in [one.folder for one in fence.held_attempts()]
    others = json.dumps([job.study, 1, 1, str(tmp_path / "study" / "2-1")])
    for lie in (
        others,
        "{",
        "[1]",
        "[" * 60_000,
        f'["{job.study}", 1, 1, "\\ud800"]',
        f'["{job.study}", 1e999, 1, "{handle}"]',
    ):
        os.setxattr(group, "user.trimtuner", lie.encode())
        assert [one for one in fence.held_attempts() if one.study == job.study] == []


@pytest.mark.parametrize("ways", [NOTHING, GROUP, NAMESPACE], ids=["nothing", "group", "namespace"])
def test_what_forks_and_leaves_faster_than_one_can_look_is_dead_when_the_end_is_told(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: str
) -> None:
    fence_by(ways, monkeypatch)
    job = launch(tmp_path, "hop")
    wait_until_ended(engine, engine.start(job))
    hops = (job.working_directory / "notes").read_text()
    time.sleep(0.1)
    assert (job.working_directory / "notes").read_text() == hops


def test_where_no_fence_may_be_made_trials_run_all_the_same(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence_by(NOTHING, monkeypatch)
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    handle = engine.start(launch(tmp_path, "escape", mark, "leave"))
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind is None
    assert living(mark) == []  # while the supervisor lives, what is orphaned becomes its child


def test_a_machine_without_groups_of_version_2_has_no_group_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "_hierarchy", lambda: None)
    assert fence.make_control_group(fence.FencedAttempt("study", 1, 1, "/nowhere")) is None
    assert fence.held_attempts() == []


def test_a_place_that_takes_no_group_gives_none_and_says_so_by_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr(fence, "_own_group", lambda: str(tmp_path))  # a folder, but no control group: no cgroup.kill
    monkeypatch.setattr(fence, "WAYS", (fence.make_control_group,))
    assert fence.make(fence.FencedAttempt("study", 1, 1, "/nowhere")).kind == fence.TAGS_ONLY
    assert [one.name for one in tmp_path.iterdir()] == ["cgroup.procs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who may make no fence")
def test_a_user_who_may_make_neither_has_tags_only() -> None:
    program = (
        "import os; from trimtuner.engines.supervising import fence; os.setgid(65534); os.setuid(65534); "
        "print(fence.make(fence.FencedAttempt('study', 1, 1, '/nowhere')).kind)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == fence.TAGS_ONLY, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can delegate a control group to another user")
def test_a_user_with_a_delegated_group_has_a_group_below_it() -> None:
    if (own := fence._own_group()) is None or not os.access(own, os.W_OK):
        pytest.skip("this machine has no cgroup v2 that can be written to")
    name = f"delegated-{os.getpid()}"  # others may have theirs
    delegated = Path(own) / name
    delegated.mkdir()
    try:
        for path in (delegated, delegated / "cgroup.procs", delegated / "cgroup.subtree_control"):
            os.chown(path, 65534, 65534)  # as systemd does with Delegate=yes
        program = (
            "import os, subprocess; from trimtuner.engines.supervising import fence; "
            f"open('{delegated}/cgroup.procs', 'w').write('0'); os.setgid(65534); os.setuid(65534); "
            f"one = fence.make(fence.FencedAttempt('{name}', 1, 1, '/nowhere/{name}')); "
            "sleep = subprocess.Popen(['/bin/sleep', '300'], env={}, preexec_fn=one.enter); "
            f"print(one.kind, sum(held.study == '{name}' for held in fence.held_attempts()), "
            "one.kill(), sleep.wait(), one.kill())"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        wait_until(lambda: not fence._is_populated(str(delegated)))
        assert [path for path in delegated.iterdir() if path.is_dir()] == []
    finally:
        delegated.rmdir()
    assert done.stdout.split() == ["cgroup", "v2", "1", "True", "-9", "False"], done.stderr


@pytest.mark.usefixtures("fenced")
def test_all_nodes_of_a_trial_are_held_and_a_killed_supervisor_leaves_none(engine: LocalEngine, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    machines = Machines("small", count=3)
    job = replace(launch(tmp_path, "by_rank", f"escape {mark} rest"), nodes="all", machines=machines)
    handle = engine.start(job)
    notes = job.working_directory / "notes"
    wait_until(lambda: notes.exists() and len(notes.read_text().splitlines()) == 3)
    kill_supervisor(handle)
    wait_until_ended(engine, handle)
    assert living(mark) == []
    assert groups_of(handle) == []


@pytest.mark.usefixtures("fenced")
def test_the_code_of_each_node_is_its_own(engine: LocalEngine, tmp_path: Path) -> None:
    job = replace(launch(tmp_path, "by_rank", "rest", "leave 0", "leave 7"), nodes="all", machines=Machines("small", 3))
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert (end.kind, end.detail) == (EXIT, "node 2: exit code 7")
