"""What every engine must do, shown with real commands and real kills; on those that run no commands, with played ones.

A new engine is one more line in ``under_test``.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest
from under_test import ALL, RUNNING_COMMANDS, UnderTest, parameters

from trimtuner.engines import protocol
from trimtuner.engines.protocol import AttemptState, Engine, Launch, Machines
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

GRACE_SECONDS = 5.0  # what an engine may take after the limit, before it uses force
JOBS = Path(__file__).parent / "jobs"
SECRET = "f3c1-token-of-the-user"  # noqa: S105


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Bench:
    """An engine under test, with a place to work in."""

    under_test: UnderTest
    engine: Engine
    path: Path
    handles: list[str] = field(default_factory=list)

    def launch(self, *words: str, limit: float = 60.0, trial: int = 1) -> Launch:
        (self.path / "work").mkdir(exist_ok=True)
        command = (sys.executable, "-S", str(JOBS / "job.py"), *words)
        # A name of its own, because other tests and people may use the machine.
        study = f"conformance-{os.getpid()}-{self.path.name}"
        place, environment = self.path / "studies" / study, {"NOTES": str(self.path / "notes")}
        work, machines = self.path / "work", Machines("small")
        return Launch(study, trial, 1, command, place, work, environment, (), limit, machines=machines)

    def start(self, launch: Launch) -> str:
        handle = self.engine.start(launch)
        self.handles.append(handle)
        return handle

    def end(self, handle: str) -> AttemptState:
        wait_until(lambda: self.engine.poll(handle).end is not None)
        return self.engine.poll(handle)

    def run(self, launch: Launch) -> AttemptState:
        return self.end(self.start(launch))

    def notes(self) -> list[str]:
        file = self.path / "notes"
        return file.read_text().splitlines() if file.exists() else []

    def pids(self) -> list[int]:
        return [int(line.split()[1]) for line in self.notes() if line.startswith("pid ")]

    def wait_for_pids(self, count: int) -> list[int]:
        wait_until(lambda: len(self.pids()) == count)
        return self.pids()

    def files(self) -> list[Path]:
        places = (self.path / "studies", *self.under_test.kept)
        return [path for place in places for path in place.rglob("*") if path.is_file()]

    def driver(self, launch: Launch) -> subprocess.Popen[str]:
        given = {**asdict(launch), "folder": str(launch.folder), "working_directory": str(launch.working_directory)}
        one = self.under_test
        words = [sys.executable, str(JOBS / "driver.py"), one.maker, one.argument, json.dumps(given)]
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )


def benches(under_test: UnderTest, path: Path) -> Iterator[Bench]:
    bench = Bench(under_test, under_test.make(), path)
    yield bench
    for handle in bench.handles:
        bench.engine.stop(handle)
        bench.engine.forget(handle)


@pytest.fixture(params=parameters(ALL))
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """With every engine."""
    yield from benches(ALL[request.param](request, tmp_path), tmp_path)


@pytest.fixture(params=parameters(ALL, pytest.mark.slow))
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """With every engine, for what all tell by the same code: on clusters and rented machines in the long form."""
    yield from benches(ALL[request.param](request, tmp_path), tmp_path)


@pytest.fixture(params=parameters(RUNNING_COMMANDS))
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """With every engine that runs commands."""
    yield from benches(RUNNING_COMMANDS[request.param](request, tmp_path), tmp_path)


@pytest.fixture(params=parameters(RUNNING_COMMANDS, pytest.mark.slow))
def supervised(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """The same, for what the supervisor does, which all use, or what they have tests of their own for.

    The long form is that it is so everywhere.
    """
    yield from benches(RUNNING_COMMANDS[request.param](request, tmp_path), tmp_path)


def test_a_command_that_ends_well_has_no_kind_of_failure_and_all_of_its_reports(bench: Bench) -> None:
    state = bench.run(bench.launch("report", "3", "0.05"))
    assert state.end is not None
    assert state.end.kind is None
    assert [report.metrics["accuracy"] for report in state.reports] == [0.1, 0.2, 0.3]
    seconds = [report.seconds for report in state.reports]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] <= seconds[-1] <= state.end.seconds  # none is later than the end, by whatever clock


def test_each_report_has_the_time_at_which_it_came(supervised: Bench) -> None:
    handle = supervised.start(supervised.launch("report_when_told", "2"))
    for count in (1, 2):
        with (supervised.path / "notes").open("a") as notes:
            notes.write("go on\n")
        wait_until(lambda count=count: len(supervised.engine.poll(handle).reports) == count)
    first, second = (report.seconds for report in supervised.engine.poll(handle).reports)
    assert 0 < first < second


def test_a_report_is_seen_while_the_command_runs(told: Bench) -> None:
    handle = told.start(told.launch("report_and_rest"))
    wait_until(lambda: len(told.engine.poll(handle).reports) == 1)
    assert told.engine.poll(handle).end is None


def test_an_exit_code_is_told_apart(told: Bench) -> None:
    end = told.run(told.launch("leave", "3")).end
    assert end is not None
    assert end.kind == protocol.EXIT
    assert "3" in end.detail


def test_a_command_that_does_not_exist_is_a_failure_of_the_trial_and_not_of_the_engine(supervised: Bench) -> None:
    end = supervised.run(replace(supervised.launch(), command=("no-such-program",))).end
    assert end is not None
    assert end.kind == protocol.EXIT
    assert "no-such-program" in end.detail


def test_a_signal_is_told_apart(told: Bench) -> None:
    end = told.run(told.launch("die_by", str(int(signal.SIGKILL)))).end
    assert end is not None
    assert end.kind == protocol.SIGNAL
    assert str(int(signal.SIGKILL)) in end.detail


def run_over_its_limit(bench: Bench, deed: str) -> tuple[float, AttemptState]:
    """Its limit, and how it ended; one that is over before the command knows what to do then is no trial of it."""
    for trial, limit in enumerate((0.3, 3.0, 30.0)):
        state = bench.run(bench.launch(deed, limit=limit, trial=trial))
        if bench.pids():
            break
    return limit, state


def test_a_command_that_will_not_end_is_killed_after_limit_and_grace_and_charged_for_both(supervised: Bench) -> None:
    limit, state = run_over_its_limit(supervised, "refuse_to_end")
    assert state.end is not None
    assert state.end.kind == protocol.TIMEOUT
    assert state.end.seconds >= limit + GRACE_SECONDS
    assert not any(is_alive(pid) for pid in supervised.pids())


def test_a_command_over_its_time_is_asked_to_end_first(supervised: Bench) -> None:
    limit, state = run_over_its_limit(supervised, "end_gently")
    assert state.end is not None
    assert state.end.kind == protocol.TIMEOUT
    assert state.end.seconds >= limit
    assert supervised.notes()[-1] == "farewell"


def test_a_command_over_its_memory_is_killed(supervised: Bench) -> None:
    launch = replace(supervised.launch("eat", "400"), memory_bytes=100 * 2**20)
    end = supervised.run(launch).end
    assert end is not None
    assert end.kind == protocol.OUT_OF_MEMORY


def test_memory_that_children_share_is_counted_once(supervised: Bench) -> None:
    end = supervised.run(replace(supervised.launch("share", "60", "3"), memory_bytes=150 * 2**20)).end
    assert end is not None
    assert end.kind is None, end.detail


def test_stop_returns_when_everything_is_gone_and_again_at_once(running: Bench) -> None:
    handle = running.start(running.launch("rest"))
    (pid,) = running.wait_for_pids(1)
    running.engine.stop(handle)
    assert not is_alive(pid)
    end = running.engine.poll(handle).end
    assert end is not None
    assert end.kind == protocol.STOPPED
    running.engine.stop(handle)
    assert running.engine.poll(handle).end == end


def test_stopping_what_has_ended_changes_nothing(told: Bench) -> None:
    handle = told.start(told.launch("report", "1"))
    state = told.end(handle)
    told.engine.stop(handle)
    assert told.engine.poll(handle) == state


def test_starting_an_attempt_again_returns_the_handle_and_starts_nothing(running: Bench) -> None:
    launch = running.launch("leave", "1")
    handle = running.start(launch)
    assert running.start(launch) == handle
    running.end(handle)
    assert running.start(launch) == handle
    assert running.notes() == ["run"]


def test_two_who_start_the_same_attempt_at_once_start_one(supervised: Bench) -> None:
    launch = supervised.launch("leave", "0")
    with ThreadPoolExecutor(4) as pool:
        handles = set(pool.map(lambda _: supervised.under_test.make().start(launch), range(4)))
    (handle,) = handles
    supervised.end(handle)
    assert supervised.notes() == ["run"]


def test_a_failure_is_not_tried_again(supervised: Bench) -> None:
    handle = supervised.start(supervised.launch("leave", "1"))
    supervised.end(handle)
    before = len(supervised.notes())
    time.sleep(0.3)
    assert len(supervised.notes()) == before == 1


def test_another_attempt_is_another_run(supervised: Bench) -> None:
    first = supervised.launch("leave", "0")
    supervised.run(first)
    supervised.run(replace(first, attempt=2))
    assert supervised.notes() == ["run", "run"]


def test_the_command_survives_a_killed_driver_and_is_adopted_by_another(bench: Bench) -> None:
    launch = bench.launch("report", "5", "0.1")
    with bench.driver(launch) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        handle = driver.stdout.readline().strip()
        driver.kill()
    assert bench.start(launch) == handle
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind is None
    assert len(state.reports) == 5


def test_what_another_driver_started_is_taken_over_and_not_started_again(supervised: Bench) -> None:
    launch = supervised.launch("rest")
    with supervised.driver(launch) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        handle = driver.stdout.readline().strip()
        supervised.wait_for_pids(1)
        driver.kill()
    taken = supervised.under_test.make().take_over(launch, handle)
    supervised.handles.append(taken)
    assert supervised.engine.poll(taken).end is None
    time.sleep(0.3)
    assert len(supervised.pids()) == 1


def test_interrupting_the_driver_does_not_reach_the_command(told: Bench) -> None:
    launch = told.launch("report", "3", "0.1")
    with told.driver(launch) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        handle = driver.stdout.readline().strip()
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    state = told.end(handle)
    assert state.end is not None
    assert state.end.kind is None


def check_driver_killed_while_starting(bench: Bench, trial: int, delay: float) -> None:
    launch = bench.launch("leave", "0", trial=trial)
    before = len(bench.notes())
    with bench.driver(launch) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        time.sleep(delay)
        driver.kill()
    state = bench.run(launch)
    assert state.end is not None
    assert state.end.kind is None, (delay, state)
    assert len(bench.notes()) == before + 1


def test_a_driver_killed_at_any_instant_of_a_start_leaves_an_attempt_that_runs_once(running: Bench) -> None:
    chance = random.Random(1)  # noqa: S311
    for trial in range(5 if running.under_test.maker == "under_test:make_local" else 2):
        check_driver_killed_while_starting(running, trial, chance.uniform(0.0, 0.12))


@pytest.mark.slow
def test_a_driver_killed_at_any_instant_of_a_start_leaves_an_attempt_that_runs_once_long(running: Bench) -> None:
    chance = random.Random(2)  # noqa: S311
    for trial in range(100):
        check_driver_killed_while_starting(running, trial, chance.uniform(0.0, 0.15))


def test_nothing_that_a_command_leaves_behind_goes_on_when_it_ends(supervised: Bench) -> None:
    state = supervised.run(supervised.launch("found_family", "leave"))
    assert state.end is not None
    assert state.end.kind is None
    assert len(supervised.pids()) == 3
    assert not any(is_alive(pid) for pid in supervised.pids())


def words_of_processes() -> set[bytes]:
    lines = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            lines.add((place / "cmdline").read_bytes())
    return lines


@pytest.mark.parametrize("then", ["leave", "rest"])
def test_a_grandchild_without_our_session_and_tags_is_dead_when_the_end_is_told(supervised: Bench, then: str) -> None:
    mark = f"escaped-{os.getpid()}-{supervised.path.name}"
    handle = supervised.start(supervised.launch("escape", mark, then))
    wait_until(supervised.notes)
    if then == "rest":
        assert f"{mark}\x00300\x00".encode() in words_of_processes()
        supervised.engine.stop(handle)
    supervised.end(handle)
    assert f"{mark}\x00300\x00".encode() not in words_of_processes()


def test_stop_ends_the_whole_family(supervised: Bench) -> None:
    handle = supervised.start(supervised.launch("found_family", "rest"))
    pids = supervised.wait_for_pids(4)
    supervised.engine.stop(handle)
    assert not any(is_alive(pid) for pid in pids)


def test_what_runs_is_found_by_its_study(supervised: Bench) -> None:
    launch = supervised.launch("rest", trial=7)
    handle = supervised.start(launch)
    supervised.wait_for_pids(1)
    (found,) = supervised.under_test.make().find(launch.study)
    assert (found.study, found.trial, found.attempt, found.handle) == (launch.study, 7, 1, handle)
    assert found.is_running
    assert supervised.engine.find("another-study") == []


def test_a_secret_reaches_the_command_and_no_file(supervised: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    state = supervised.run(replace(supervised.launch("print_environment"), secrets=("WANDB_API_KEY",)))
    assert json.loads(supervised.notes()[0])["WANDB_API_KEY"] == SECRET
    assert [set(report.metrics) for report in state.reports] == [{"of-***"}]  # whose name was written in escapes
    assert SECRET not in repr(state)
    assert len(supervised.files()) > 3
    assert [path for path in supervised.files() if SECRET.encode() in path.read_bytes()] == []


def test_only_what_is_meant_for_the_command_is_in_its_environment(
    supervised: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {"AWS_SECRET_ACCESS_KEY", "NVIDIA_API_KEY", "CUDA_TOKEN", "PYTHON_KEYRING_PASSWORD", "LC_AUTH"}
    for name in hidden:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    launch = supervised.launch("print_environment", trial=5)
    launch = replace(launch, environment={**launch.environment, "MODE": "sync"}, vcpus=1)
    supervised.run(launch)
    environment = json.loads(supervised.notes()[0])
    assert not hidden & {*environment}
    assert SECRET not in environment.values()
    assert environment["PATH"].endswith(os.environ["PATH"])  # a rented machine has places of its own
    assert environment["MODE"] == "sync"
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "1"
    assert environment["TRIMTUNER_STUDY"] == launch.study
    assert (environment["TRIMTUNER_TRIAL"], environment["TRIMTUNER_ATTEMPT"]) == ("5", "1")


def test_however_much_a_command_prints_what_is_kept_is_bounded(supervised: Bench) -> None:
    state = supervised.run(supervised.launch("shout", "5"))
    assert state.end is not None
    assert state.end.kind is None
    assert sum(path.stat().st_size for path in supervised.files()) < 3 * 2**20
    kept = b"".join(path.read_bytes() for path in supervised.files())
    assert b"first words" in kept
    assert b"last words" in kept
    assert b"bytes were cut here" in kept


def test_hostile_output_is_kept_as_text_and_harms_nothing(supervised: Bench) -> None:
    state = supervised.run(supervised.launch("be_hostile"))
    assert state.end is not None
    assert state.end.kind is None
    assert [report.metrics for report in state.reports] == [{"accuracy": 0.5}]
    assert len(state.bad_lines) == 11
    assert all(len(line) < 500 and line.isprintable() for line in state.bad_lines)


def test_a_line_that_never_ends_is_neither_kept_whole_nor_waited_for(supervised: Bench) -> None:
    state = supervised.run(supervised.launch("never_end_the_line", limit=1.0))
    assert state.end is not None
    assert state.end.kind == protocol.TIMEOUT
    assert sum(path.stat().st_size for path in supervised.files()) < 3 * 2**20


def test_metrics_may_come_from_a_file_in_the_working_directory(supervised: Bench) -> None:
    launch = replace(supervised.launch("write_metrics_file"), metrics_file="metrics.jsonl")
    (supervised.path / "work" / "metrics.jsonl").write_text('{"accuracy": 0.99}\n')
    state = supervised.run(launch)
    assert [report.metrics["accuracy"] for report in state.reports] == [0.1, 0.2, 0.3]
    assert state.bad_lines == ()


def test_the_time_that_is_charged_covers_the_whole_run(told: Bench) -> None:
    begin = time.monotonic()
    end = told.run(told.launch("report", "1", "0.5")).end
    assert end is not None
    assert 0.5 <= end.seconds <= time.monotonic() - begin + told.under_test.clock_seconds


@pytest.mark.parametrize("limit", [0.0, -1.0, math.inf, math.nan])
def test_a_limit_that_cannot_be_kept_is_refused(bench: Bench, limit: float) -> None:
    with pytest.raises(ValueError, match="limit"):
        bench.engine.start(bench.launch("leave", "0", limit=limit))
    assert bench.notes() == []
