"""Hostile jobs against every engine that starts processes: each file in ``hostile`` says what it does.

Whatever it is: it is charged for at least as long as it ran, by a side log that it writes itself; it is ended, nothing
of it is left, whoever watches it stays alive and small, and the study goes on. A new attack is one more file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from under_test import RUNNING_COMMANDS, SECRET, UnderTest, parameters

from trimtuner.engines.protocol import TIMEOUT, AttemptState, End, Engine, Launch, Machines
from trimtuner.engines.supervising import attempt, files
from trimtuner.engines.supervising.metrics import MOST_NAMES
from trimtuner.jobs.studies import log_tail
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

HOSTILE = Path(__file__).parent / "hostile"
ATTACKS = sorted(path.stem for path in HOSTILE.glob("*.py") if path.stem != "side")
LIMIT_SECONDS = 1.0
NODES, LIMIT_ON_NODES_SECONDS = 3, 5.0  # in which all of them begin
MOST_GROWTH_BYTES = 150 * 2**20
HARMLESS = 'print("::metric {\\"accuracy\\": 0.5}")'


@dataclass
class Bench:
    """An engine, and the side log of the jobs that it runs."""

    under_test: UnderTest
    engine: Engine
    path: Path

    @property
    def side_log(self) -> Path:
        return self.path / "side log"

    @property
    def study(self) -> str:
        return f"attacked-{os.getpid()}-{self.path.name}"

    def launch(self, trial: int, *words: str, limit: float) -> Launch:
        (self.path / "work").mkdir(exist_ok=True)
        environment = {"NOTES": str(self.side_log), "PYTHONDONTWRITEBYTECODE": "1"}
        place, work = self.path / "studies" / self.study, self.path / "work"
        command = (sys.executable, *words)
        return Launch(self.study, trial, 1, command, place, work, environment, (), limit, machines=Machines("small"))

    def attack(self, name: str) -> AttemptState:
        handle = self.engine.start(self.launch(1, str(HOSTILE / f"{name}.py"), limit=LIMIT_SECONDS))
        return self.end(handle)

    def attack_on(self, ranks: str, name: str) -> AttemptState:
        """From some of three nodes."""
        words = (str(Path(__file__).parent / "on_ranks.py"), ranks, str(HOSTILE / f"{name}.py"))
        launch = self.launch(1, *words, limit=LIMIT_ON_NODES_SECONDS)
        machines = Machines("small", count=NODES - 1, helpers=("helper",))
        return self.end(self.engine.start(replace(launch, nodes="all", machines=machines)))

    def end(self, handle: str) -> AttemptState:
        wait_until(lambda: self.engine.poll(handle).end is not None)
        state = self.engine.poll(handle)
        self.engine.forget(handle)
        return state

    def sightings(self) -> list[tuple[int, float]]:
        if not self.side_log.exists():
            return []
        words = (line.split() for line in self.side_log.read_text().splitlines())
        return [(int(pid), float(seconds)) for pid, seconds in words]


@pytest.fixture(params=parameters(RUNNING_COMMANDS, pytest.mark.slow))
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # How long whoever watches waits for a supervisor that should have ended all; on other machines it is as it is.
    monkeypatch.setattr(attempt, "ENDED_WITHIN_SECONDS", 1.0)
    monkeypatch.setattr(attempt, "_PATIENCE_WITH_SUPERVISOR_SECONDS", 1.0)
    under_test = RUNNING_COMMANDS[request.param](request, tmp_path)
    bench = Bench(under_test, under_test.make(), tmp_path)
    yield bench
    for found in bench.engine.find(bench.study):
        bench.engine.stop(found.handle)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_charged_ended_and_gone_and_the_study_goes_on(bench: Bench, name: str) -> None:
    before = resident_bytes()
    judge(bench, bench.attack(name).end)
    assert resident_bytes() - before < MOST_GROWTH_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("ranks", ["1", "0,1,2"])
@pytest.mark.parametrize("name", ATTACKS)
def test_so_it_is_from_any_node_and_from_all_of_them(bench: Bench, name: str, ranks: str) -> None:
    before = resident_bytes()
    judge(bench, bench.attack_on(ranks, name).end)
    assert len({pid for pid, _ in bench.sightings()}) >= NODES  # all of them had begun
    assert resident_bytes() - before < MOST_GROWTH_BYTES


def judge(bench: Bench, end: End | None) -> None:
    assert end is not None
    assert end.kind is not None  # none of them ends by itself
    seen = bench.sightings()
    assert seen
    ran = max(seconds for _, seconds in seen) - min(seconds for _, seconds in seen)
    assert end.seconds >= ran
    assert [pid for pid, _ in seen if is_alive(pid)] == []
    wait_until(lambda: not any(one.is_running for one in bench.engine.find(bench.study)))
    after = bench.end(bench.engine.start(bench.launch(2, "-c", HARMLESS, limit=60.0)))
    assert after.end is not None
    assert (after.end.kind, [dict(one.metrics) for one in after.reports]) == (None, [{"accuracy": 0.5}])


def test_a_supervisor_that_was_stopped_is_ended_with_its_command_and_the_limit_is_what_is_told(bench: Bench) -> None:
    end = bench.attack("stops_its_supervisor").end
    assert end is not None
    assert end.kind == TIMEOUT
    assert "its supervisor had not done it" in end.detail


@pytest.mark.parametrize("name", ["forges_reports", "has_many_names", "shouts"])
def test_what_the_supervisor_did_not_report_is_not_reported(bench: Bench, name: str) -> None:
    state = bench.attack(name)
    names = {name for report in state.reports for name in report.metrics}
    assert len(names) <= MOST_NAMES
    assert all(report.metrics.get("accuracy") != 1.0 for report in state.reports)


def test_a_command_finds_no_key(bench: Bench) -> None:
    bench.attack("looks_for_the_key")
    seen = Path(f"{bench.side_log}.seen").read_bytes()
    key = files.folder_at(Path("1-1"), SECRET).key
    assert b"TRIMTUNER_FOLDER" in seen
    for secret in (SECRET, key):
        assert secret not in seen
        assert secret.hex().encode() not in seen


@pytest.mark.parametrize("name", ["links_its_log", "puts_pipes_for_its_files", "links_its_files_to_zeros"])
def test_a_log_that_is_no_file_is_not_shown(bench: Bench, name: str) -> None:
    bench.attack(name)
    log = bench.path / "studies" / bench.study / "1-1" / files.LOG
    if log.is_symlink() or log.is_fifo():
        assert log_tail(log).startswith("(there is no log here")
