"""What every engine does with a command that starts on all machines of a trial: real processes, on each of them one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from keeping import is_kept
from test_engine_conformance import SECRET, Bench, benches, is_alive
from under_test import RUNNING_COMMANDS, parameters

from trimtuner.engines import protocol
from trimtuner.engines.protocol import CHECKPOINT, OF_NODES, Launch, Machines, later
from trimtuner.engines.supervising import files
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")

WORLD = 3  # two workers and a helper


@pytest.fixture(params=parameters(RUNNING_COMMANDS))
def spread(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """With every engine that runs commands."""
    yield from benches(RUNNING_COMMANDS[request.param](request, tmp_path), tmp_path)


@pytest.fixture(params=parameters(RUNNING_COMMANDS, pytest.mark.slow))
def widely_spread(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """The same, on clusters and rented machines in the long form."""
    yield from benches(RUNNING_COMMANDS[request.param](request, tmp_path), tmp_path)


def on_all(launch: Launch) -> Launch:
    return replace(launch, nodes="all", machines=Machines("small", count=WORLD - 1, helpers=("helper",)))


def by_rank(bench: Bench, *deeds: str, limit: float = 60.0) -> Launch:
    return on_all(bench.launch("by_rank", *deeds, limit=limit))


def log_of_node(launch: Launch, rank: int) -> str:
    return (launch.folder / "1-1" / f"node-{rank}" / files.LOG).read_text()


def test_every_node_knows_who_it_is_and_all_of_them_meet(spread: Bench) -> None:
    state = spread.run(on_all(spread.launch("meet", *map(later, OF_NODES))))
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert [report.metrics["accuracy"] for report in state.reports] == [WORLD - 1]
    told = sorted((json.loads(line) for line in spread.notes()), key=lambda one: int(one["RANK"]))
    assert [one["RANK"] for one in told] == [one["TRIMTUNER_RANK"] for one in told] == ["0", "1", "2"]
    assert [one["TRIMTUNER_ROLE"] for one in told] == ["worker", "worker", "helper"]
    assert {one["WORLD_SIZE"] for one in told} == {str(WORLD)}
    assert {one["LOCAL_RANK"] for one in told} == {"0"}
    (head,) = {(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in told}
    for one in told:
        placed = [one["RANK"], one["TRIMTUNER_ROLE"], one["WORLD_SIZE"], *head]
        assert one["placeholders"] == placed
        assert one["TRIMTUNER_HEAD"] == one["TRIMTUNER_WORKERS"].split(",")[0] == head[0]
    clusters = [json.loads(one["TF_CONFIG"]) for one in told]
    assert [one["task"] for one in clusters] == [
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
        {"type": "ps", "index": 0},
    ]
    (cluster,) = {json.dumps(one["cluster"]) for one in clusters}
    places = [place for kind in ("worker", "ps") for place in json.loads(cluster)[kind]]
    assert len(set(places)) == WORLD
    assert places[0] == ":".join(head)


def test_the_trial_ends_with_its_head_and_the_others_are_ended(widely_spread: Bench) -> None:
    state = widely_spread.run(by_rank(widely_spread, f"leave_after {WORLD - 1} 0", "rest"))
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert len(widely_spread.pids()) == WORLD - 1
    assert not any(is_alive(pid) for pid in widely_spread.pids())


def test_the_trial_fails_with_any_node_and_the_others_are_ended(widely_spread: Bench) -> None:
    state = widely_spread.run(by_rank(widely_spread, "rest", "rest", f"leave_after {WORLD - 1} 3"))
    assert state.end is not None
    assert state.end.kind == protocol.EXIT
    assert "node 2" in state.end.detail
    assert "exit code 3" in state.end.detail
    assert len(widely_spread.pids()) == WORLD - 1
    assert not any(is_alive(pid) for pid in widely_spread.pids())


def test_a_killed_node_is_told_apart(widely_spread: Bench) -> None:
    end = widely_spread.run(by_rank(widely_spread, "rest", "die_by 9", "rest")).end
    assert end is not None
    assert end.kind == protocol.SIGNAL
    assert "node 1" in end.detail


def test_a_node_that_ended_well_is_not_missed(widely_spread: Bench) -> None:
    state = widely_spread.run(by_rank(widely_spread, "report_when_told 2", "leave 0"))
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert len(state.reports) == 2


def test_the_head_alone_reports_and_what_the_others_print_is_kept(
    widely_spread: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    launch = by_rank(
        widely_spread, f"leave_after {WORLD - 1} 0", "print_and_rest words-of-a-worker", "print_and_rest help"
    )
    state = widely_spread.run(replace(launch, secrets=("WANDB_API_KEY",)))
    assert state.reports == ()
    assert "words-of-a-worker" in log_of_node(launch, 1)
    assert "help" in log_of_node(launch, 2)
    assert not any(SECRET.encode() in file.read_bytes() for file in widely_spread.files())


def test_all_nodes_are_ended_at_the_limit(widely_spread: Bench) -> None:
    for trial, limit in enumerate((1.0, 5.0, 30.0), 1):
        launch = replace(by_rank(widely_spread, "end_gently", "refuse_to_end", limit=limit), trial=trial)
        end = widely_spread.run(launch).end
        if len(widely_spread.pids()) >= WORLD:
            break
    assert end is not None
    assert end.kind == protocol.TIMEOUT
    assert end.seconds >= limit
    assert not any(is_alive(pid) for pid in widely_spread.pids())


def test_stop_ends_all_nodes(widely_spread: Bench) -> None:
    handle = widely_spread.start(by_rank(widely_spread, "rest"))
    pids = widely_spread.wait_for_pids(WORLD)
    widely_spread.engine.stop(handle)
    assert not any(is_alive(pid) for pid in pids)
    end = widely_spread.engine.poll(handle).end
    assert end is not None
    assert end.kind == protocol.STOPPED


def test_nodes_survive_a_killed_driver_and_are_adopted_by_another(widely_spread: Bench) -> None:
    launch = by_rank(widely_spread, "report_when_told 4", "rest")
    with widely_spread.driver(launch) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        handle = driver.stdout.readline().strip()
        widely_spread.wait_for_pids(WORLD - 1)
        driver.kill()
    taken = widely_spread.start(launch)
    assert taken == handle
    with (widely_spread.path / "notes").open("a") as notes:
        notes.write("go on\ngo on\n")
    state = widely_spread.end(taken)
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert len(state.reports) == 4
    assert len(widely_spread.pids()) == WORLD - 1
    wait_until(lambda: not any(is_alive(pid) for pid in widely_spread.pids()))


def test_a_retry_gets_back_what_the_attempts_before_it_kept(widely_spread: Bench) -> None:
    launch = widely_spread.launch("go_on", later(CHECKPOINT))
    for attempt in (1, 2):
        handle = widely_spread.start(replace(launch, attempt=attempt))
        wait_until(lambda attempt=attempt: is_kept(launch, attempt))
        widely_spread.engine.stop(handle)
    state = widely_spread.run(replace(launch, attempt=3))
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert [report.metrics["accuracy"] for report in state.reports] == [3]
    assert widely_spread.notes() == ["begun 1 True", "begun 2 True", "begun 3 True"]


def test_another_trial_has_a_folder_of_its_own(widely_spread: Bench) -> None:
    for trial in (1, 2):
        handle = widely_spread.start(widely_spread.launch("go_on", later(CHECKPOINT), trial=trial))
        wait_until(lambda trial=trial: len(widely_spread.notes()) == trial)
        widely_spread.engine.stop(handle)
    assert widely_spread.notes() == ["begun 1 True"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_distributed_example_trains(spread: Bench, mode: str) -> None:
    """A worker, the parameter server and the book-keeper, each on a machine of its own."""
    example = Path(__file__).parents[2] / "examples" / "distributed"
    shutil.copytree(example, spread.path / "work")
    chosen = ("--learning-rate=0.1", "--batch-size=16", f"--mode={mode}", "--fraction=0.0625", "--look=0.1")
    launch = replace(
        spread.launch(limit=300.0),
        command=(sys.executable, "train.py", *chosen, f"--checkpoint={later(CHECKPOINT)}"),
        nodes="all",
        machines=Machines("small", helpers=("small", "helper")),
    )
    state = spread.run(launch)
    assert state.end is not None
    assert state.end.kind is None, state.end
    (report,) = state.reports
    assert report.metrics["accuracy"] > 0.5  # one in ten by chance
    assert "batches of" in log_of_node(launch, 2)
