"""Who still lives: by the system's own word where a process can be seen, by its heartbeat where it cannot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.engines.supervising import processes
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import Problem
from trimtuner.records import Owner
from trimtuner.study import memory
from trimtuner.study.description import Description
from trimtuner.study.memory import Recorded
from trimtuner.study.owners import is_alive, this_process
from waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are told apart as Linux does")

TELL = """
import json, sys
from trimtuner.records import Owner
from trimtuner.study.owners import is_alive, this_process
told = [is_alive(Owner(**one)) for one in json.loads(sys.argv[1])]
print(json.dumps([this_process().pid_started, told]))
"""


def seen_from(words: list[str], *asked: Owner) -> tuple[str, list[bool]]:
    """What a process that is started so says of itself, and who of these lives as it sees them."""
    command = [*words, sys.executable, "-c", TELL, json.dumps([asdict(one) for one in asked])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and words:
        pytest.skip(f"no namespace can be made here: {done.stderr.strip()[:200]}")
    started, told = json.loads(done.stdout)
    return started, told


def ended_process() -> Owner:
    """An owner whose process has been and is gone."""
    started, _ = seen_from([])
    return Owner("gone", "host", 2**22 - 1, started)


def test_this_process_lives_and_one_that_ended_does_not_whatever_their_heartbeats_say():
    assert is_alive(replace(this_process(), silent_seconds=1e6))
    assert not is_alive(replace(ended_process(), silent_seconds=0.0))


def test_a_number_that_came_again_is_another_process():
    place, _, ticks = this_process().pid_started.rpartition(":")
    assert not is_alive(replace(this_process(), pid_started=f"{place}:{int(ticks) - 1}", silent_seconds=0.0))


@pytest.mark.parametrize("started", ["unknown", "11111111-boot:4026531836:77", "11111111-boot:77"])
def test_of_a_process_that_cannot_be_seen_its_heartbeat_decides_though_its_host_has_our_name(started):
    elsewhere = replace(this_process(), pid_started=started)
    assert is_alive(replace(elsewhere, silent_seconds=30.0))
    assert not is_alive(replace(elsewhere, silent_seconds=90.0))
    assert not is_alive(elsewhere)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="namespaces are made with unshare")
def test_containers_of_one_name_on_one_kernel_do_not_take_each_other_for_dead_or_alive():
    """In the container, our number is nobody's, or somebody else's; here, its number is."""
    us = this_process()
    container = ["unshare", "--pid", "--fork", "--mount-proc"]
    started, told = seen_from(container, replace(us, silent_seconds=1.0), replace(us, silent_seconds=90.0))
    assert told == [True, False]
    assert started.split(":")[0] == us.pid_started.split(":")[0]
    assert started.rpartition(":")[0] != us.pid_started.rpartition(":")[0]
    same_number = Owner("container", us.host, os.getpid(), started)
    assert is_alive(replace(same_number, silent_seconds=1.0))
    assert not is_alive(replace(same_number, silent_seconds=90.0))


@pytest.mark.skipif(shutil.which("unshare") is None, reason="namespaces are made with unshare")
def test_where_the_processes_shown_are_not_numbered_as_ours_nothing_is_read_from_them():
    us = this_process()
    started, told = seen_from(["unshare", "--pid", "--fork"], replace(us, silent_seconds=1.0))
    assert (started, told) == ("unknown", [True])


def test_where_nothing_is_shown_the_heartbeat_decides(monkeypatch):
    monkeypatch.setattr(processes, "numbering", lambda: None)
    us = this_process()
    assert us.pid_started == "unknown"
    assert is_alive(replace(us, silent_seconds=1.0))


def recorded(place: str | Path) -> Recorded:
    space = tt.Space({"x": tt.Choice([0, 1])})
    return Recorded(place, "study", Description(Problem.of(space, "accuracy", None, (), None), "random", 0))


def test_it_beats_whatever_else_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "HEARTBEAT_SECONDS", 0.05)
    busy = recorded(tmp_path / "a.db")
    with busy.beating():
        (first,) = busy.record.owners()
        wait_until(lambda: busy.record.owners()[0].heartbeat_at > first.heartbeat_at)


@pytest.mark.parametrize("ahead_seconds", [-86400.0, 86400.0])
def test_on_a_server_a_machine_whose_clock_is_wrong_neither_dies_nor_declares_others_dead(
    postgres_address, monkeypatch, ahead_seconds
):
    """Both are told apart by their heartbeats, as machines are; one's clock is a day off."""
    monkeypatch.setattr(processes, "numbering", lambda: None)
    right, wrong, real = recorded(postgres_address), recorded(postgres_address), time.time
    with right.beating():
        monkeypatch.setattr(time, "time", lambda: real() + ahead_seconds)
        with wrong.beating():
            assert [is_alive(one) for one in wrong.record.owners()] == [True, True]
            monkeypatch.setattr(time, "time", real)
            assert [is_alive(one) for one in right.record.owners()] == [True, True]


def test_who_only_looks_enqueues_or_asks_to_stop_is_no_run(tmp_path):
    one = recorded(tmp_path / "a.db")
    one.history()
    one.enqueue({"x": 1}, 1.0)
    one.record.request_stop()
    assert one.record.owners() == []
    assert one.claim(Trial(0, {"x": 1}, 1.0))
    assert [owner.id for owner in one.record.owners()] == [one.owner.id]
