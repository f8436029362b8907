"""GPUs are leased: no two trials of this machine see the same one, whoever starts them and however they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_engine_conformance import Bench, benches
from under_test import local

from trimtuner.engines.protocol import STOPPED, Machines
from trimtuner.engines.supervising import processes
from trimtuner.engines.supervising.devices import VISIBLE, Lease, devices_here, leased
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Four that nobody else has: CUDA takes names as well as numbers."""
    names = [f"GPU-{uuid.uuid4()}" for _ in range(4)]
    monkeypatch.setenv(VISIBLE, ",".join(names))
    return names


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    yield from benches(local(request, tmp_path), tmp_path)


def start(bench: Bench, trial: int, gpus: int, *words: str) -> str:
    return bench.start(replace(bench.launch(*words, trial=trial), machines=Machines("gpu", gpus=gpus)))


def seen(bench: Bench) -> list[set[str]]:
    return [set(json.loads(line)[VISIBLE].split(",")) for line in bench.notes() if line.startswith("{")]


def test_what_a_process_may_see_is_what_there_is_to_lease(devices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices_here() == tuple(devices)
    for nothing in ("", "-1"):
        monkeypatch.setenv(VISIBLE, nothing)
        assert devices_here() == ()


def test_a_device_that_is_leased_is_nobody_elses_until_it_is_given_back(devices: list[str]) -> None:
    with leased(3) as first:
        assert first is not None
        assert len(first.devices) == 3
        with leased(2) as second:
            assert second is None
        with leased(1) as third:
            assert third is not None
            assert set(third.devices) == set(devices) - set(first.devices)
    with leased(4) as all_of_them:
        assert all_of_them is not None


def test_where_there_are_fewer_than_wanted_all_are_given(devices: list[str]) -> None:
    with leased(9) as lease:
        assert lease is not None
        assert lease.devices == tuple(devices)


def test_nodes_that_share_a_machine_share_its_devices() -> None:
    lease = Lease(("a", "b", "c", "d"), ())
    assert [lease.share_of(rank, 2) for rank in range(2)] == ["a,b", "c,d"]
    assert [Lease(("a",), ()).share_of(rank, 3) for rank in range(3)] == ["a", "a", "a"]


def test_trials_side_by_side_see_devices_of_their_own_and_one_too_many_waits(bench: Bench, devices: list[str]) -> None:
    handles: list[str] = []
    for trial in (1, 2):  # the first has said what it sees before the second may
        handles.append(start(bench, trial, 2, "print_environment_and_rest"))
        wait_until(lambda: len(seen(bench)) == len(handles))
    first, second = seen(bench)
    assert first | second == set(devices)
    assert len(first) == len(second) == 2
    third = start(bench, 3, 2, "print_environment_and_rest")
    assert "2 GPUs" in bench.engine.poll(third).waiting
    assert bench.engine.poll(third).end is None
    bench.engine.stop(handles[0])
    wait_until(lambda: bench.engine.poll(third).waiting == "")
    wait_until(lambda: len(seen(bench)) == 3)
    assert seen(bench)[2] == first


def test_what_waits_for_devices_is_taken_over_by_another_driver_and_can_be_stopped(
    bench: Bench, devices: list[str]
) -> None:
    start(bench, 1, len(devices), "rest")
    bench.wait_for_pids(1)
    launch = replace(bench.launch("rest", trial=2), machines=Machines("gpu", gpus=1))
    handle = bench.start(launch)
    other = bench.under_test.make()
    assert other.take_over(launch, handle) == handle
    assert other.poll(handle).waiting
    other.stop(handle)
    end = bench.engine.poll(handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (STOPPED, 0.0)
    assert len(bench.pids()) == 1


def test_devices_are_free_again_when_a_supervisor_was_killed(bench: Bench, devices: list[str]) -> None:
    handle = start(bench, 1, len(devices), "rest")
    bench.wait_for_pids(1)
    for one in processes.tagged_processes():
        if one.folder == handle:
            os.kill(one.process.pid, signal.SIGKILL)
    bench.end(handle)
    second = start(bench, 2, len(devices), "leave", "0")
    assert bench.end(second).end is not None


def test_without_devices_trials_run_as_before(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "")
    end = bench.end(start(bench, 1, 8, "leave", "0")).end
    assert end is not None
    assert end.kind is None
