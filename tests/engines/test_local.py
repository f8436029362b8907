"""What only the local engine promises: about its folders, its supervisors, and this machine's processes and cores."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

from under_test import SECRET  # noqa: E402

from trimtuner.engines.local import engine as engine_module  # noqa: E402
from trimtuner.engines.local.engine import LocalEngine  # noqa: E402
from trimtuner.engines.protocol import (  # noqa: E402
    LOST,
    OUT_OF_MEMORY,
    STOPPED,
    TIMEOUT,
    EngineTrouble,
    Launch,
    Machines,
    reap,
)
from trimtuner.engines.supervising import attempt, files, processes, starting  # noqa: E402
from trimtuner.errors import InputError  # noqa: E402
from waiting import wait_until  # noqa: E402

JOB = Path(__file__).parent / "jobs" / "job.py"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(SECRET, [tmp_path / "study"])
    yield engine
    for found in engine.find():
        if found.handle.startswith(str(tmp_path)):
            engine.stop(found.handle)


def launch(tmp_path: Path, *words: str, trial: int = 1, limit: float = 60.0) -> Launch:
    work = tmp_path / f"work-{trial}"
    work.mkdir(exist_ok=True)
    command = (sys.executable, "-S", str(JOB), *words)
    return Launch(f"local-{os.getpid()}", trial, 1, command, tmp_path / "study", work, {}, (), limit)


def wait_until_ended(engine: LocalEngine, handle: str) -> None:
    wait_until(lambda: engine.poll(handle).end is not None)


def pids_of(job: Launch, count: int) -> list[int]:
    notes = job.working_directory / "notes"
    wait_until(lambda: notes.exists() and len(notes.read_text().splitlines()) >= count)
    return [int(line.split()[1]) for line in notes.read_text().splitlines()]


def is_alive(pid: int) -> bool:
    process = processes.read_process(pid)
    return process is not None and process.is_alive


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not is_alive(pid))


def supervisor_of(handle: str) -> int:
    begun = files.folder_at(Path(handle), SECRET).get(files.BEGUN)
    assert begun is not None
    return int(str(begun["pid"]))


def kill_supervisor(handle: str) -> None:
    os.kill(supervisor_of(handle), signal.SIGKILL)


def test_the_supervisor_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'dataclasses', 'asyncio', 'logging'}"
    program = f"import sys, trimtuner.engines.supervising.supervisor; print(*({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True).stdout.split() == []


def test_the_words_of_the_supervisor_are_those_of_the_protocol() -> None:
    from trimtuner.engines import protocol
    from trimtuner.engines.supervising import supervisor

    for word in ("EXIT", "SIGNAL", "OUT_OF_MEMORY", "TIMEOUT", "LOST", "STOPPED"):
        assert getattr(supervisor, f"_{word}") == getattr(protocol, word)


def test_a_killed_supervisor_takes_the_command_along_and_poll_ends_the_rest(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "found_family", "rest")
    handle = engine.start(job)
    pids = pids_of(job, 4)
    kill_supervisor(handle)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == LOST
    assert not any(is_alive(pid) for pid in pids)
    assert engine.poll(handle).end == end


def test_the_command_dies_with_its_supervisor_though_nobody_looks(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "rest")
    handle = engine.start(job)
    (pid,) = pids_of(job, 1)
    kill_supervisor(handle)
    wait_until_gone(pid)


def test_a_command_whose_supervisor_died_before_it_was_bound_to_it_does_not_run() -> None:
    program = (
        "from trimtuner.engines.supervising.supervisor import _prepare_command; _prepare_command(0, []); print('runs')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_orphans_that_end_are_collected_while_the_command_runs(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "leave_orphan")
    engine.start(job)
    orphan, _ = pids_of(job, 2)
    wait_until(lambda: processes.read_process(orphan) is None)


def test_reports_of_a_lost_attempt_are_kept_and_its_time_covers_them(engine: LocalEngine, tmp_path: Path) -> None:
    job, begin = launch(tmp_path, "report_and_rest"), time.monotonic()
    handle = engine.start(job)
    pids_of(job, 1)
    wait_until(lambda: engine.poll(handle).reports)
    with (Path(handle) / files.REPORTS).open("a") as file:
        file.write('{"metrics": {"accur')  # torn by a crash
    kill_supervisor(handle)
    wait_until_ended(engine, handle)
    state = engine.poll(handle)
    assert state.end is not None
    (report,) = state.reports
    assert report.seconds <= state.end.seconds <= time.monotonic() - begin + files.BEAT_SECONDS


def check_supervisor_killed_at(engine: LocalEngine, tmp_path: Path, trial: int, delay: float) -> None:
    """Kill every process of the attempt that is not the command's, wherever the start has come to."""
    job = launch(tmp_path, "found_family", "rest", trial=trial)
    folder = str(tmp_path / "study" / f"{trial}-1")
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(engine.start, job)
        time.sleep(delay)
        for tagged in processes.tagged_processes():
            is_supervisor = b"trimtuner.engines.supervising.supervisor" in command_line(tagged.process.pid)
            if tagged.folder == folder and is_supervisor:
                processes.send(tagged.process, signal.SIGKILL)
        try:
            handle = starting.result()
        except EngineTrouble:  # it was killed before it began: nothing has run, and it may be started again
            assert not (job.working_directory / "notes").exists()
            handle = engine.start(job)
            kill_supervisor(handle)
    if not engine.poll(handle).end and processes.read_process(supervisor_of(handle)):
        kill_supervisor(handle)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == LOST, (delay, end)
    assert processes.living_processes_of(handle) == []


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_a_supervisor_killed_at_any_instant_leaves_nothing_running_and_a_lost_attempt(
    engine: LocalEngine, tmp_path: Path
) -> None:
    chance = random.Random(3)  # noqa: S311
    for trial in range(10):
        check_supervisor_killed_at(engine, tmp_path, trial, chance.uniform(0.0, 0.3))


@pytest.mark.slow
def test_a_supervisor_killed_at_any_instant_leaves_nothing_running_and_a_lost_attempt_long(
    engine: LocalEngine, tmp_path: Path
) -> None:
    chance = random.Random(4)  # noqa: S311
    for trial in range(100):
        check_supervisor_killed_at(engine, tmp_path, trial, chance.uniform(0.0, 0.3))


def test_a_hanging_supervisor_is_killed_by_stop(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_PATIENCE_WITH_SUPERVISOR_SECONDS", 0.2)
    job = launch(tmp_path, "found_family", "rest")
    handle = engine.start(job)
    pids = pids_of(job, 4)
    os.kill(supervisor_of(handle), signal.SIGSTOP)
    engine.stop(handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == STOPPED
    assert not any(is_alive(pid) for pid in [supervisor_of(handle), *pids])


def test_what_a_command_says_when_asked_to_end_is_in_the_log(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "end_gently")
    handle = engine.start(job)
    pids_of(job, 1)
    engine.stop(handle)
    assert (Path(handle) / files.LOG).read_text() == "farewell\n"


def test_a_command_that_ends_when_asked_is_not_kept_waiting(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = (
        "import sys; from pathlib import Path; from trimtuner.engines.supervising import supervisor; "
        "supervisor.GRACE_SECONDS = 1e6; supervisor.main(Path(sys.argv[1]), *map(int, sys.argv[2:]))"
    )
    monkeypatch.setattr(starting, "_program", lambda: [sys.executable, "-P", "-c", patient])
    job = launch(tmp_path, "end_gently", limit=0.3)
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == TIMEOUT


def test_a_signal_to_the_supervisor_alone_is_a_loss_and_not_our_stop(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "rest")
    handle = engine.start(job)
    (pid,) = pids_of(job, 1)
    os.kill(supervisor_of(handle), signal.SIGTERM)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == LOST
    assert not is_alive(pid)


def prepare_unbegun(job: Launch) -> Path:
    """As a driver leaves it that dies between the record and the start."""
    folder = job.folder / f"{job.trial}-{job.attempt}"
    folder.mkdir(parents=True)
    (folder / files.LOCK).touch()
    return folder


def test_an_attempt_that_was_recorded_and_never_begun_is_started_by_the_next_start(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "leave", "0")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starting, "_start_supervisor", die)
        with pytest.raises(KeyboardInterrupt):
            engine.start(job)
    (found,) = engine.find(job.study)
    assert not found.is_running
    assert engine.start(job) == found.handle
    wait_until_ended(engine, found.handle)
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_an_attempt_that_never_began_is_closed_by_poll_and_then_never_starts(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "leave", "0")
    handle = str(prepare_unbegun(job))
    end = engine.poll(handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (LOST, 0.0)
    assert engine.start(job) == handle
    assert engine.poll(handle).end == end
    assert not (Path(handle) / files.BEGUN).exists()


def remove_all_of_it(folder: Path) -> None:
    shutil.rmtree(folder)


def remove_begin_and_end(folder: Path) -> None:
    (folder / files.BEGUN).unlink()
    (folder / files.END).unlink()


def remove_all_that_is_in_it(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("remove", [remove_all_of_it, remove_begin_and_end, remove_all_that_is_in_it])
def test_what_may_have_run_and_whose_files_are_gone_is_lost_and_not_run_again(
    engine: LocalEngine, tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    """As after a driver that died before it wrote down the start: another one asks, and only it knows nothing."""
    job = launch(tmp_path, "leave", "0")
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    wait_until(lambda: not processes.living_processes_of(handle))
    remove(Path(handle))
    another = LocalEngine(SECRET, [tmp_path / "study"])
    assert another.start(replace(job, may_have_run=True)) == handle
    end = another.poll(handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (LOST, 0.0)
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_what_may_have_run_is_started_where_no_supervisor_has_left_a_trace(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "leave", "0")
    prepare_unbegun(job)
    handle = engine.start(replace(job, may_have_run=True))
    wait_until_ended(engine, handle)
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_what_may_have_run_and_runs_for_another_folder_is_watched_there_and_not_started_again(
    engine: LocalEngine, tmp_path: Path
) -> None:
    """As after a driver that was killed before it wrote down the start, and one that adopts from another folder."""
    job = launch(tmp_path, "rest")
    handle = engine.start(job)
    pids = pids_of(job, 1)
    another = LocalEngine(SECRET, [tmp_path / "another"])
    assert another.start(replace(job, folder=tmp_path / "another", may_have_run=True)) == handle
    assert not (tmp_path / "another").exists()
    assert another.poll(handle).end is None
    another.stop(handle)
    assert engine.poll(handle).end == another.poll(handle).end
    assert pids_of(job, 1) == pids


def test_what_a_driver_that_is_gone_ran_below_another_folder_is_told_from_there(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "leave", "0")
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    other = replace(job, folder=tmp_path / "another", may_have_run=True, begun_below=job.folder.resolve())
    assert LocalEngine(SECRET).start(other) == handle
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_what_may_have_run_below_a_folder_that_is_not_of_this_machine_is_lost_and_not_started(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "leave", "0")
    handle = engine.start(replace(job, may_have_run=True, begun_below=tmp_path / "of another machine"))
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == LOST
    assert not (job.working_directory / "notes").exists()


def test_what_never_began_below_another_folder_of_this_machine_is_begun_there(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = launch(tmp_path, "leave", "0")
    prepare_unbegun(job)
    here = replace(job, folder=tmp_path / "here", may_have_run=True, begun_below=job.folder.resolve())
    handle = engine.start(here)
    wait_until_ended(engine, handle)
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_a_process_with_forged_tags_is_not_taken_for_what_may_have_run(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "leave", "0")
    tags = {processes.STUDY: job.study, processes.TRIAL: "1", processes.ATTEMPT: "1"}
    forged = {**tags, processes.FOLDER: str(tmp_path / "forged" / "1-1")}
    words = [sys.executable, "-S", "-c", "print(flush=True); import time; time.sleep(600)"]
    with subprocess.Popen(words, env=forged, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        handle = str(prepare_unbegun(job))
        assert engine.start(replace(job, may_have_run=True)) == handle
        wait_until_ended(engine, handle)
        process.kill()
    assert (job.working_directory / "notes").read_text() == "run\n"


def test_two_who_both_move_away_what_stands_in_the_place_of_the_lock_start_the_attempt_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = launch(tmp_path, "rest")
    folder = prepare_unbegun(job)
    (folder / files.LOCK).unlink()
    os.mkfifo(folder / files.LOCK)
    both_look, one_holds, both_hold = threading.Barrier(2), threading.Event(), threading.Barrier(2)
    put_aside, record_and_start = files._put_aside, engine_module._record_and_start

    def put_aside_one_after_the_other(path: Path) -> None:
        if both_look.wait() == 1:
            one_holds.wait()
        put_aside(path)

    def start_when_both_hold_a_lock(*given: Any) -> None:
        one_holds.set()
        both_hold.wait()
        record_and_start(*given)

    monkeypatch.setattr(files, "_put_aside", put_aside_one_after_the_other)
    monkeypatch.setattr(engine_module, "_record_and_start", start_when_both_hold_a_lock)
    engines = [LocalEngine(SECRET, [tmp_path / "study"]) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        handles = list(pool.map(lambda one: one.start(job), engines))
    assert handles == [str(folder)] * 2
    wait_until(lambda: len(pids_of(job, 1)) == 1 and supervisors_in(folder) == [supervisor_of(str(folder))])
    engines[0].stop(str(folder))
    assert engines[1].poll(str(folder)).end == engines[0].poll(str(folder)).end
    assert len(pids_of(job, 1)) == 1


def supervisors_in(folder: Path) -> list[int]:
    found = (one.process.pid for one in processes.tagged_processes() if one.folder == str(folder))
    return [pid for pid in found if "supervising.supervisor" in Path(f"/proc/{pid}/cmdline").read_text()]


@pytest.mark.parametrize("word", processes.SUPERVISOR_WORDS)
def test_a_supervisor_is_known_by_its_arguments_also_one_of_the_version_before(word: str) -> None:
    """Its environment is closed, as its memory is, to all but root."""
    does = "print(flush=True); import time; time.sleep(600)"
    words = [sys.executable, "-S", "-c", does, word, "/nowhere/study/3-1", "5"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()  # until it is itself, and no longer a copy of this process
        process = processes.read_process(started.pid)
        assert process is not None
        found = processes._read_supervisor_tags(process)
        started.kill()
    assert found == processes.TaggedProcess(process, "study", 3, 1, "/nowhere/study/3-1", ())


def test_an_attempt_that_is_being_started_is_not_lost(engine: LocalEngine, tmp_path: Path) -> None:
    folder = prepare_unbegun(launch(tmp_path, "leave", "0"))
    with files.start_lock(folder):
        assert engine.poll(str(folder)).end is None
    assert engine.poll(str(folder)).end is not None


@dataclass
class Clock:
    seconds: float = 1000.0

    def monotonic(self) -> float:
        return self.seconds


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(attempt, "time", clock)
    return clock


def test_after_a_restart_of_the_machine_an_attempt_is_lost_whatever_has_its_number_now(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare_unbegun(launch(tmp_path, "leave", "0"))
    myself = processes.read_process(os.getpid())
    assert myself is not None
    begun = {"pid": myself.pid, "started_ticks": myself.started_ticks, "monotonic": time.monotonic()}
    sealed = files.folder_at(folder, SECRET)
    sealed.put(files.BEGUN, {**begun, "numbering": "an earlier start"})
    sealed.beat(41.5)
    clock = stopped_clock(monkeypatch)
    assert engine.poll(str(folder)).end is None
    clock.seconds += 61.0
    end = engine.poll(str(folder)).end
    assert end is not None
    assert end.kind == LOST
    assert end.seconds == pytest.approx(42.5)


@pytest.mark.parametrize("ahead_seconds", [-3600.0, 0.0, 3600.0])
def test_a_supervisor_that_cannot_be_seen_counts_as_alive_while_it_beats_whatever_its_clock_says(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    """As in a container of its own, whose host name may well be ours."""
    folder = prepare_unbegun(launch(tmp_path, "leave", "0"))
    sealed = files.folder_at(folder, SECRET)
    sealed.put(files.BEGUN, {"pid": os.getpid(), "started_ticks": 1, "monotonic": 0.0, "numbering": "another"})
    clock = stopped_clock(monkeypatch)
    for beat in (3.0, 43.0, 83.0):
        sealed.beat(beat)
        shown = time.time() + ahead_seconds
        os.utime(folder / files.ALIVE, (shown, shown))
        assert engine.poll(str(folder)).end is None
        clock.seconds += 40.0
    clock.seconds += 21.0
    end = engine.poll(str(folder)).end
    assert end is not None
    assert (end.kind, end.seconds) == (LOST, 84.0)


def test_a_supervisor_whose_folder_is_removed_ends_its_command(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "rest")
    handle = engine.start(job)
    (pid,) = pids_of(job, 1)
    supervisor = supervisor_of(handle)
    shutil.rmtree(handle)
    wait_until_gone(pid)
    wait_until_gone(supervisor)


def test_what_was_seen_to_run_is_charged_from_its_begin_though_its_folder_is_gone(
    engine: LocalEngine, tmp_path: Path
) -> None:
    """Seen first 50 s after its supervisor began; then all of it vanishes."""
    folder = prepare_unbegun(launch(tmp_path, "leave", "0"))
    myself, numbering = processes.read_process(os.getpid()), processes.numbering()
    assert myself is not None
    begun = {"pid": myself.pid, "started_ticks": myself.started_ticks, "monotonic": time.monotonic() - 50.0}
    files.folder_at(folder, SECRET).put(files.BEGUN, {**begun, "numbering": numbering})
    assert engine.poll(str(folder)).end is None
    shutil.rmtree(folder)
    end = engine.poll(str(folder)).end
    assert end is not None
    assert end.kind == LOST
    assert end.seconds >= 50.0


def test_orphans_whose_folder_is_gone_are_found_and_reaped(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "found_family", "rest", trial=9)
    handle = engine.start(job)
    pids = pids_of(job, 4)
    kill_supervisor(handle)
    shutil.rmtree(handle)
    (found,) = engine.find(job.study)
    assert (found.trial, found.handle, found.is_running) == (9, handle, True)
    assert reap(engine, job.study, known=[]) == [found]
    assert not any(is_alive(pid) for pid in pids)
    assert engine.find(job.study) == []


def test_reap_spares_what_the_record_knows_and_other_studies(engine: LocalEngine, tmp_path: Path) -> None:
    jobs = [launch(tmp_path, "rest", trial=trial) for trial in (1, 2)]
    other = replace(launch(tmp_path, "rest", trial=3), study=f"other-{os.getpid()}", folder=tmp_path / "other")
    for job in (*jobs, other):
        engine.start(job)
    known, unknown, foreign = (pids_of(job, 1)[0] for job in (*jobs, other))
    ended = reap(engine, jobs[0].study, known=[(1, 1)])
    assert [one.trial for one in ended] == [2]
    assert is_alive(known)
    assert is_alive(foreign)
    assert not is_alive(unknown)


def test_an_ended_attempt_is_found_in_its_folder_as_not_running(engine: LocalEngine, tmp_path: Path) -> None:
    job = launch(tmp_path, "leave", "0")
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    (found,) = engine.find(job.study)
    assert (found.handle, found.is_running) == (handle, False)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_trials_at_the_same_time_run_on_different_cores(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = processes.tagged_processes  # others may use the engine on this machine, and come and go

    def ours() -> list[processes.TaggedProcess]:
        return [tagged for tagged in everything() if tagged.folder.startswith(str(tmp_path))]

    monkeypatch.setattr(processes, "tagged_processes", ours)
    jobs = [replace(launch(tmp_path, "rest", trial=trial), vcpus=1) for trial in (1, 2)]
    for job in jobs:
        engine.start(job)
    cores = [os.sched_getaffinity(pids_of(job, 1)[0]) for job in jobs]
    assert [len(allowed) for allowed in cores] == [1, 1]
    assert cores[0] != cores[1]


def test_more_vcpus_than_there_are_cores_get_all_of_them(engine: LocalEngine, tmp_path: Path) -> None:
    job = replace(launch(tmp_path, "rest"), vcpus=4096)
    engine.start(job)
    assert os.sched_getaffinity(pids_of(job, 1)[0]) == os.sched_getaffinity(0)


def test_a_module_in_the_working_directory_cannot_take_the_place_of_one_of_ours(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    handle = engine.start(replace(launch(tmp_path, "leave", "0"), working_directory=tmp_path))
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind is None
    assert (Path(handle) / files.SUPERVISOR_ERRORS).read_text() == ""


def test_a_supervisor_that_cannot_begin_is_trouble_that_says_why(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EngineTrouble, match="could not begin"):
        engine.start(launch(tmp_path, "leave", "0"))


def test_a_variable_is_handed_on_by_its_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"CUDA_VISIBLE_DEVICES": "3", "NVIDIA_VISIBLE_DEVICES": "all", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"}
    others = {"NVIDIA_API_KEY", "CUDA_TOKEN", "PYTHON_KEYRING_PASSWORD", "LC_AUTH", "PYTHONPATH_SECRET"}
    for name, value in {**known, **dict.fromkeys(others, "a-long-secret")}.items():
        monkeypatch.setenv(name, value)
    found = starting.handed_on()
    assert known.items() <= found.items()
    assert not others & {*found}


def test_the_folders_of_attempts_are_their_users_alone(engine: LocalEngine, tmp_path: Path) -> None:
    job = replace(launch(tmp_path, "leave", "0"), folder=tmp_path / "record.db.trials" / "study")
    folder = Path(engine.start(job))
    wait_until_ended(engine, str(folder))
    folders = [folder, folder.parent, folder.parent.parent]
    assert {one.stat().st_mode & 0o777 for one in folders} == {0o700}
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}


def test_a_secret_that_is_not_set_is_named(engine: LocalEngine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'NO_SUCH_TOKEN' is not set"):
        engine.start(replace(launch(tmp_path, "leave", "0"), secrets=("NO_SUCH_TOKEN",)))


def test_a_secret_inside_the_command_is_refused_without_showing_it(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a-long-secret")
    job = replace(launch(tmp_path, "leave", "--token=a-long-secret"), secrets=("TOKEN",))
    with pytest.raises(InputError) as caught:
        engine.start(job)
    assert "a-long-secret" not in str(caught.value)


def test_a_started_attempt_is_found_again_by_start_without_its_secrets(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a-long-secret")
    job = replace(launch(tmp_path, "leave", "0"), secrets=("TOKEN",))
    handle = engine.start(job)
    monkeypatch.delenv("TOKEN")
    assert engine.start(job) == handle


@pytest.mark.parametrize("name", ["../metrics.jsonl", "/etc/passwd", ""])
def test_a_file_of_metrics_outside_the_working_directory_is_refused(
    engine: LocalEngine, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="inside the working directory"):
        engine.start(replace(launch(tmp_path, "leave", "0"), metrics_file=name))


def test_a_pipe_in_place_of_the_file_of_metrics_does_not_hold_the_supervisor_up(
    engine: LocalEngine, tmp_path: Path
) -> None:
    job = replace(launch(tmp_path, "rest", limit=0.3), metrics_file="metrics.jsonl")
    os.mkfifo(job.working_directory / "metrics.jsonl")
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == TIMEOUT


def spread(tmp_path: Path, *deeds: str, count: int = 2) -> Launch:
    return replace(launch(tmp_path, "by_rank", *deeds), nodes="all", machines=Machines("small", count))


def test_memory_is_of_each_node(engine: LocalEngine, tmp_path: Path) -> None:
    job = replace(spread(tmp_path, "rest", "eat 150", "rest", count=4), memory_bytes=100 * 2**20)
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind == OUT_OF_MEMORY
    assert end.detail == f"killed above its limit of {100 * 2**20} bytes"


def test_every_node_has_cores_of_its_own_as_far_as_there_are_enough(engine: LocalEngine, tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    job = replace(spread(tmp_path, f"leave_after {len(cores) + 1} 0", "note_cores", count=len(cores) + 2), vcpus=1)
    handle = engine.start(job)
    wait_until_ended(engine, handle)
    end = engine.poll(handle).end
    assert end is not None
    assert end.kind is None, end
    lines = sorted((job.working_directory / "notes").read_text().splitlines())
    seen = {int(rank): core for _, rank, core in (line.split() for line in lines)}
    assert all("," not in core for core in seen.values())
    nearest = {seen[rank] for rank in range(1, len(cores) + 1)}
    assert len(nearest) == len(cores)  # so many in a row are all of them
    assert seen[len(cores) + 1] == seen[1]  # then they are shared


def test_two_trials_side_by_side_meet_at_different_ports(engine: LocalEngine, tmp_path: Path) -> None:
    jobs = [replace(spread(tmp_path, "meet"), trial=trial) for trial in (1, 2, 3)]
    handles = [engine.start(job) for job in jobs]
    for handle in handles:
        wait_until_ended(engine, handle)
        state = engine.poll(handle)
        assert [report.metrics["accuracy"] for report in state.reports] == [1], state
