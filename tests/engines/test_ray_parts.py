"""Parts of the Ray engine that need no cluster."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed; install trimtuner[ray]")

from trimtuner.engines.protocol import EXIT, LOST, PREEMPTED, STOPPED, Launch, Machines
from trimtuner.engines.ray import node as on_node
from trimtuner.engines.ray.held_attempt import HeldAttempt
from trimtuner.engines.ray.orders import AttemptOrder, Position, demands_here, demands_of
from trimtuner.engines.ray.scheduling import Node, best_of, what_is_lacking
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.supervising import processes
from trimtuner.engines.supervising.files import BEAT_SECONDS, BEGUN, BegunRecord, EndRecord, Folder, LaunchRecord
from trimtuner.engines.supervising.mirror import News
from trimtuner.engines.supervising.nodes import head_alone


def launch(machines: Machines | None, vcpus: int | None = None) -> Launch:
    place = Path("/nowhere")
    return Launch("s", 1, 1, ("true",), place / "s", place, {}, (), 1.0, vcpus=vcpus, machines=machines)


def held() -> HeldAttempt:
    record = LaunchRecord(
        study="s",
        trial=1,
        attempt=1,
        command=["true"],
        working_directory="/",
        environment={},
        secrets=[],
        limit=1.0,
        memory_bytes=None,
        metrics_file=None,
        starts_on="head",
        nodes=[head_alone()],
        repeat=1,
        checkpoint=None,
    )
    secrets = {"KEY": "secret"}
    demands = [{"CPU": 1.0}]
    order = AttemptOrder(
        trial=1,
        attempt=1,
        record=record,
        added=secrets,
        demands=demands,
        workers=1,
        ranks=1,
        port=20000,
        parcel=None,
        wait=1.0,
    )
    return HeldAttempt.of("s", order)


def node(identity: str, **offers: float) -> Node:
    return Node(identity, "10.0.0.1", 1, {"memory": 1e9, "node:10.0.0.1": 1.0, **offers})


def test_every_worker_and_helper_is_a_machine_that_offers_its_type() -> None:
    machines = Machines("p3.2xlarge", count=2, gpus=1, helpers=("m5.large",))
    worker = {"p3.2xlarge": 1.0, "GPU": 1.0}
    assert demands_of(launch(machines)) == [worker, worker, {"m5.large": 1.0}]


def test_a_job_without_machines_needs_its_cores_and_a_cluster_of_one_machine_gives_no_more_than_it_has() -> None:
    assert demands_of(launch(None, vcpus=3)) == [{"CPU": 3.0}]
    assert demands_of(launch(None)) == [{"CPU": 1.0}]
    assert demands_here(launch(Machines("m5.24xlarge"), vcpus=96), cores=4, gpus=0) == [{"CPU": 4.0}]
    assert demands_here(launch(Machines("gpu", gpus=8)), cores=4, gpus=2) == [{"CPU": 1.0, "GPU": 2.0}]


def test_nodes_that_would_do_if_they_were_free_lack_nothing() -> None:
    nodes = [node("a", small=1, CPU=2), node("b", small=1)]
    assert what_is_lacking([{"small": 1.0}, {"small": 1.0}], nodes) is None


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        ([{"large": 1.0}], "1 x 1 large and 0 nodes offer that; the cluster offers CPU on 1, small on 2"),
        ([{"small": 1.0}] * 3, "3 x 1 small and 2 nodes offer that"),
        ([{"CPU": 8.0}], "1 x 8 CPU and 0 nodes"),
        ([{"small": 1.0}, {"small": 1.0}, {"CPU": 1.0}], "needs 3 machines, and the cluster has 2 nodes"),
    ],
)
def test_what_is_lacking_is_named_with_what_there_is(demands: list[dict[str, float]], words: str) -> None:
    lacking = what_is_lacking(demands, [node("a", small=1, CPU=2), node("b", small=1)])
    assert lacking is not None
    assert words in lacking


def test_a_driver_hears_only_what_is_new_and_a_new_one_hears_everything() -> None:
    one = held()
    one.take(News(0, b"r1\n", 0, b"log1", None))
    first = one.told(Position())
    assert (first.reports, first.log_from, first.log) == (b"r1\n", 0, b"log1")
    one.take(News(3, b"r2\n", 4, b"log2", None))
    second = one.told(Position(3, first.generation, 4))
    assert (second.reports_from, second.reports, second.log_from, second.log) == (3, b"r2\n", 4, b"log2")
    assert one.told(Position()).reports == b"r1\nr2\n"


def test_a_log_that_was_cut_is_told_anew() -> None:
    one = held()
    one.take(News(0, b"", 0, b"a long log", None))
    heard = one.told(Position())
    one.take(News(0, b"", 0, b"a cut log", None))
    told = one.told(Position(0, heard.generation, len(heard.log)))
    assert (told.log_from, told.log) == (0, b"a cut log")


def test_the_first_end_stays_and_secrets_go_with_it() -> None:
    one = held()
    one.finish(EXIT, "exit code 1", 2.0)
    one.finish(PREEMPTED, "later", 3.0)
    one.take(News(0, b"late", 0, b"late", None))
    assert one.end == EndRecord(kind=EXIT, detail="exit code 1", seconds=2.0)
    assert one.order["added"] == {}
    assert one.told(Position()).reports == b""


def test_a_known_reason_explains_a_failure_but_not_a_success() -> None:
    failed, succeeded, stopped = held(), held(), held()
    failed.reason = succeeded.reason = PREEMPTED, "a node was lost"
    failed.finish(EXIT, "exit code 1", 2.0)
    succeeded.finish(None, "exit code 0", 2.0)
    stopped.ask_to_stop()
    stopped.finish(LOST, "whoever started it is gone", 2.0)
    kinds = [one.end["kind"] for one in (failed, succeeded, stopped) if one.end is not None]
    assert kinds == [PREEMPTED, None, STOPPED]


def test_of_several_who_looked_the_one_who_found_most_is_believed() -> None:
    gone = News(0, b"", 0, b"", EndRecord(kind=LOST, detail="gone", seconds=0.0))
    whole = News(0, b"r1\n", 0, b"", EndRecord(kind=LOST, detail="", seconds=3.0))
    assert best_of([gone, whole, gone]) == whole
    assert best_of([]) is None


def test_the_working_directory_is_copied_where_an_address_is_given_unless_the_job_says_otherwise() -> None:
    assert not RaySettings().copies
    assert RaySettings("auto").copies
    assert not RaySettings("auto", copy=False).copies
    assert RaySettings(copy=True).copies


def test_of_several_nodes_on_one_machine_one_rescues_an_attempt_and_the_others_find_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for round_number in range(20):
        study = f"s{round_number}"
        folder = on_node._folder(f"{on_node.place_of(study, (1, 1))}-abc")
        folder.mkdir(mode=0o700, parents=True)
        numbering = processes.numbering() or ""
        sealed = Folder(folder, b"key")
        sealed.put(BEGUN, {**BegunRecord(numbering=numbering, pid=1, started_ticks=-1, monotonic=0.0)})
        sealed.beat(3.0)
        with ThreadPoolExecutor(6) as pool:
            looks = pool.map(lambda _: on_node.rescue(study, (1, 1), b"key"), range(6))  # noqa: B023
            found = [news for look in looks for news in look]
        rescued = best_of(found)
        assert rescued is not None
        assert rescued.end is not None
        assert rescued.end["seconds"] == 3.0 + BEAT_SECONDS  # the last sign of life, and what may have come after
        assert not folder.exists()
