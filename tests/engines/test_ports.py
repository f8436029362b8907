"""Ports at which the nodes of a trial meet on one machine: no two trials have the same, whoever starts them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_engine_conformance import Bench, benches
from under_test import local

from trimtuner.engines.protocol import Launch, Machines
from trimtuner.engines.supervising.nodes import Meeting, at_port, head_alone
from trimtuner.engines.supervising.ports import LOOPBACK, meeting_here, port_of, ports_here
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    yield from benches(local(request, tmp_path), tmp_path)


def on(bench: Bench, count: int) -> Launch:
    return replace(bench.launch("rest"), nodes="all", machines=Machines("small", count=count))


def first_of(launch: Launch) -> int:
    with ports_here(launch) as found:
        return found.first


def test_ports_that_one_trial_holds_are_no_others_though_both_have_one_name(bench: Bench) -> None:
    with ports_here(on(bench, 3)) as first, ports_here(on(bench, 3)) as second, ports_here(on(bench, 2)) as third:
        taken = [*range(first.first, first.first + 3), *range(second.first, second.first + 3)]
        assert len(set(taken)) == 6
        assert {third.first, third.first + 1}.isdisjoint(taken)


def test_a_port_on_which_somebody_listens_is_passed_over(bench: Bench) -> None:
    launch = on(bench, 2)
    wanted = first_of(launch)
    with socket.create_server((LOOPBACK, wanted + 1)), ports_here(launch) as found:
        assert found.first != wanted


def test_a_running_trial_holds_its_ports_until_its_end(bench: Bench) -> None:
    launch = on(bench, 2)
    wanted = first_of(launch)
    handle = bench.start(launch)
    bench.wait_for_pids(2)
    assert first_of(launch) != wanted
    bench.engine.stop(handle)
    wait_until(lambda: first_of(launch) == wanted)  # what supervised it leaves when it has told the end


def test_nodes_that_move_to_another_port_are_told_all_that_they_would_have_been_told_there() -> None:
    nodes = {
        port: [Meeting(("127.0.0.1",) * 2, ("127.0.0.1",), port).node(rank) for rank in range(3)] for port in (1, 7)
    }
    assert at_port(nodes[1], 7) == nodes[7]


def test_nodes_that_are_all_here_move_together_and_one_of_a_cluster_stays() -> None:
    nodes = [Meeting(("127.0.0.1",) * 2, ("127.0.0.1",), 23_000).node(rank) for rank in range(3)]
    with meeting_here(nodes) as (first, _), meeting_here(nodes) as (second, held):
        ports = [int(found[0]["values"]["master_port"]) for found in (first, second)]
        assert abs(ports[0] - ports[1]) >= 3
        assert len(held) == 1
    for alone in ([nodes[2]], [head_alone()]):
        with meeting_here(alone) as found:
            assert found == (alone, ())


def test_a_command_on_the_head_alone_holds_none(bench: Bench) -> None:
    launch = bench.launch("rest")
    with ports_here(launch) as found:
        assert found == (port_of(launch), ())
