"""Trials on a real Slurm: what its queue, its controller and its nodes may do to them, and what is told of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from slurm_under_test import QUICK, SETTINGS
from test_engine_conformance import Bench, benches, is_alive
from under_test import SECRET, slurm

import trimtuner as tt
from slurm_cluster import SlurmCluster
from trimtuner.engines import protocol
from trimtuner.engines.checks import Workload
from trimtuner.engines.protocol import End, EngineTrouble, Machines
from trimtuner.engines.slurm import queue
from trimtuner.engines.slurm.checks import check_configuration
from trimtuner.engines.slurm.conclusion import end_of, end_without_job
from trimtuner.engines.slurm.engine import SlurmEngine
from trimtuner.engines.slurm.queue import FINAL, JobTag, SlurmJob
from trimtuner.engines.slurm.settings import SlurmSettings
from trimtuner.engines.slurm.submission import words_of
from waiting import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Slurm needs Linux"),
    pytest.mark.xdist_group("slurm"),
]


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[Bench]:
    yield from benches(slurm(request, tmp_path), tmp_path)
    slurm_cluster.mend()


@pytest.fixture
def full(slurm_cluster: SlurmCluster) -> Iterator[str]:
    """A job that has all nodes to itself, until it is cancelled."""
    words = ["sbatch", "--parsable", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 300"]
    number = slurm_cluster.ask(*words).strip()
    wait_until(lambda: slurm_cluster.ask("squeue", "-h", "-j", number, "-o", "%T").strip() == "RUNNING")
    yield number
    slurm_cluster.ask("scancel", number)


def job_numbers(cluster: SlurmCluster, name: str) -> list[str]:
    return cluster.ask("squeue", "-h", "--states=all", f"--name={name}", "-o", "%i").split()


# The queue


def test_what_waits_in_the_queue_says_so_and_is_charged_nothing_for_it(
    bench: Bench, slurm_cluster: SlurmCluster, full: str
) -> None:
    handle = bench.start(bench.launch("report", "1"))
    wait_until(lambda: bench.engine.poll(handle).waiting)
    assert "queue" in bench.engine.poll(handle).waiting
    time.sleep(2.0)  # in which nothing of it passes
    freed = time.monotonic()
    slurm_cluster.ask("scancel", full)
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind is None
    assert state.waiting == ""
    assert state.end.seconds <= time.monotonic() - freed + bench.under_test.clock_seconds


@pytest.mark.slow
def test_what_is_stopped_in_the_queue_never_runs_and_costs_nothing(bench: Bench, full: str) -> None:  # noqa: ARG001
    handle = bench.start(bench.launch("leave", "0"))
    wait_until(lambda: bench.engine.poll(handle).waiting)
    bench.engine.stop(handle)
    assert bench.engine.poll(handle).end == End(protocol.STOPPED, "ended on request", 0.0)
    assert bench.notes() == []


def test_what_waits_longer_than_it_may_is_unavailable(bench: Bench, full: str) -> None:  # noqa: ARG001
    engine = SlurmEngine(bench.path / "studies", SECRET, replace(SETTINGS, queue_limit=1.0), QUICK)
    handle = engine.start(bench.launch("leave", "0"))
    wait_until(lambda: engine.poll(handle).end is not None)
    end = engine.poll(handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.UNAVAILABLE, 0.0)
    assert "1 s in the queue" in end.detail
    assert bench.notes() == []


@pytest.mark.parametrize(
    ("machines", "words"), [(Machines("small", count=9), "never run"), (Machines("tiny"), "nvalid feature")]
)
def test_machines_that_the_cluster_has_not_are_unavailable_to_that_trial_alone(
    bench: Bench, machines: Machines, words: str
) -> None:
    end = bench.run(replace(bench.launch("leave", "0"), machines=machines)).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.UNAVAILABLE, 0.0)
    assert words in end.detail


def test_a_partition_that_there_is_not_is_trouble_with_the_engine(bench: Bench) -> None:
    engine = SlurmEngine(bench.path / "studies", SECRET, replace(SETTINGS, partition="nowhere"), QUICK)
    with pytest.raises(EngineTrouble, match="nvalid partition"):
        engine.start(bench.launch("leave", "0"))


def test_a_job_carries_its_tags_a_limit_and_no_requeue(bench: Bench, slurm_cluster: SlurmCluster) -> None:
    launch = bench.launch("rest", limit=100.0, trial=4)
    handle = bench.start(launch)
    bench.wait_for_pids(1)
    (number,) = job_numbers(slurm_cluster, f"trimtuner-{launch.study}-4-1")
    told = slurm_cluster.ask("scontrol", "show", "job", number)
    assert f"Comment=trimtuner {launch.study} 4-1 {handle}" in told
    assert "Requeue=0" in told
    assert "TimeLimit=00:03:00" in told  # 60 s to start, 100 s, 7 s of grace, in whole minutes


def test_the_command_finds_its_job_and_not_the_key_of_its_folder(bench: Bench) -> None:
    bench.run(bench.launch("print_environment"))
    environment = json.loads(bench.notes()[0])
    assert environment["SLURM_JOB_ID"].isdigit()
    assert "TRIMTUNER_KEY" not in environment
    assert "SLURM_CONF" in environment  # so that srun works


@pytest.mark.slow
def test_gpus_are_asked_for_and_given_by_slurm(bench: Bench) -> None:
    bench.run(replace(bench.launch("print_environment"), machines=Machines("small", gpus=2)))
    assert json.loads(bench.notes()[0])["CUDA_VISIBLE_DEVICES"].count(",") == 1


# What Slurm does to a job


def test_a_cancelled_job_is_told_as_stopped(bench: Bench, slurm_cluster: SlurmCluster) -> None:
    launch = bench.launch("rest")
    handle = bench.start(launch)
    (pid,) = bench.wait_for_pids(1)
    slurm_cluster.ask("scancel", *job_numbers(slurm_cluster, JobTag.of_folder(Path(handle)).name))
    end = bench.end(handle).end
    assert end is not None
    assert end.kind == protocol.STOPPED
    assert "CANCELLED" in end.detail
    assert end.seconds > 0
    assert not is_alive(pid)


@pytest.mark.slow
def test_a_job_that_must_make_room_is_preempted(bench: Bench, slurm_cluster: SlurmCluster) -> None:
    handle = bench.start(bench.launch("report_and_rest"))
    (pid,) = bench.wait_for_pids(1)
    wanted = ["--partition=urgent", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=true"]
    slurm_cluster.ask("sbatch", *wanted)
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED, state.end
    assert len(state.reports) == 1
    assert not is_alive(pid)


@pytest.mark.slow
@pytest.mark.parametrize(("verbs", "least"), [(["supervise"], 1.0), (["supervise", "run"], 60.0)], ids=["one", "both"])
def test_where_those_who_keep_the_limit_hang_the_limit_of_the_job_holds(
    bench: Bench, verbs: list[str], least: float
) -> None:
    handle = bench.start(bench.launch("stop_watchers", *verbs, limit=1.0))
    (pid,) = bench.wait_for_pids(1)
    end = bench.end(handle).end
    assert end is not None
    assert end.kind == protocol.TIMEOUT, end
    assert least < end.seconds <= 1.0 + SETTINGS.ended_within_seconds
    assert not is_alive(pid)


# What is lost


def test_while_the_controller_is_down_it_is_trouble_and_afterwards_nothing_is_lost(
    bench: Bench, slurm_cluster: SlurmCluster
) -> None:
    handle = bench.start(bench.launch("report_when_told", "2"))
    (bench.path / "notes").write_text("go\n")
    wait_until(lambda: len(bench.engine.poll(handle).reports) == 1)
    slurm_cluster.wait_until_saved()
    slurm_cluster.kill("slurmctld")
    wait_until(lambda: is_in_trouble(bench, handle))
    (bench.path / "notes").write_text("go\non\n")
    slurm_cluster.start("slurmctld")
    wait_until(lambda: not is_in_trouble(bench, handle))
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert len(state.reports) == 2


def is_in_trouble(bench: Bench, handle: str) -> bool:
    try:
        bench.engine.poll(handle)
    except EngineTrouble:
        return True
    return False


@pytest.mark.slow
def test_a_node_whose_daemon_is_started_again_goes_on(bench: Bench, slurm_cluster: SlurmCluster) -> None:
    handle = bench.start(replace(bench.launch("report_when_told", "2"), machines=Machines("large")))
    wait_until(lambda: node_of(slurm_cluster, handle) == "n2")
    slurm_cluster.kill("n2")
    slurm_cluster.start("n2")
    (bench.path / "notes").write_text("go\non\n")
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind is None, state.end
    assert len(state.reports) == 2


@pytest.mark.slow
def test_a_lost_node_preempts_its_job_and_what_it_had_reported_is_kept(
    bench: Bench, slurm_cluster: SlurmCluster
) -> None:
    handle = bench.start(replace(bench.launch("report_and_rest"), machines=Machines("large")))
    bench.wait_for_pids(1)
    wait_until(lambda: len(bench.engine.poll(handle).reports) == 1)
    slurm_cluster.crash("n2")
    state = bench.end(handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED, state.end
    assert "NODE_FAIL" in state.end.detail
    assert len(state.reports) == 1


@pytest.mark.slow
def test_what_goes_on_on_a_node_that_the_controller_has_lost_is_ended(
    bench: Bench, slurm_cluster: SlurmCluster
) -> None:
    handle = bench.start(replace(bench.launch("rest"), machines=Machines("large")))
    (pid,) = bench.wait_for_pids(1)
    slurm_cluster.kill("n2")  # alone: the job goes on
    end = bench.end(handle).end
    assert end is not None
    assert end.kind == protocol.PREEMPTED, end
    assert not is_alive(pid)


def node_of(cluster: SlurmCluster, handle: str) -> str:
    name = JobTag.of_folder(Path(handle)).name
    return cluster.ask("squeue", "-h", "--states=RUNNING", f"--name={name}", "-o", "%N").strip()


# Doctor


def test_doctor_asks_slurm_whether_it_would_take_the_largest_trial_of_each_type(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    assert slurm_cluster.environment
    machines = {name: tt.VM(vcpus=2, memory_gib=1, price_per_hour=1.0) for name in ("small", "large")}
    cloud = tt.Cloud(machines, vm_count=[1, 3], rule="vm_count == 1 or vm_type == 'small'")
    found = {one.name: one for one in SETTINGS.checks(Workload(cloud, 2, "python3", tmp_path, 60.0))}
    assert {name: one.outcome for name, one in found.items()} == {
        **dict.fromkeys(("slurm", "small", "large", "time limit"), "ok"),
    }
    assert "3 nodes" in found["slurm"].text
    too_many = tt.Cloud(machines, vm_types=["large"], vm_count=9)
    refused = {one.name: one for one in SETTINGS.checks(Workload(too_many, 2, "python3", tmp_path, 60.0))}
    assert refused["large"].outcome == "failed"


def test_doctor_says_where_there_is_no_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = SETTINGS.checks(Workload(None, 1, "python3", tmp_path, 60.0))
    assert (found.name, found.outcome) == ("slurm", "failed")


@pytest.mark.parametrize(
    ("told", "warned"),
    [
        ("KillWait                = 30 sec\nOverTimeLimit           = 0 min\n", []),
        ("KillWait                = 300 sec\n", ["time limit"]),
        ("OverTimeLimit           = UNLIMITED\n", ["time limit"]),
        ("AccountingStoreFlags    = job_comment,job_env\n", ["secrets"]),
    ],
)
def test_doctor_warns_of_what_the_cluster_is_set_to(told: str, warned: list[str]) -> None:
    assert [one.name for one in check_configuration(told) if one.outcome == "warning"] == warned


# Without a cluster


TAG = JobTag("study", 3, 1, "/shared/study/3-1")


def job(state: str, seconds: float | None = 30.0) -> SlurmJob:
    ended = None if seconds is None else 1000.0 + seconds
    return SlurmJob("7", state, None if seconds is None else 1000.0, ended, "n1", "None", TAG)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("PREEMPTED", protocol.PREEMPTED),
        ("NODE_FAIL", protocol.PREEMPTED),
        ("BOOT_FAIL", protocol.PREEMPTED),
        ("OUT_OF_MEMORY", protocol.OUT_OF_MEMORY),
        ("TIMEOUT", protocol.TIMEOUT),
        ("DEADLINE", protocol.TIMEOUT),
        ("CANCELLED", protocol.STOPPED),
        ("COMPLETED", protocol.LOST),
        ("FAILED", protocol.LOST),
    ],
)
def test_every_state_that_a_job_ends_in_has_its_kind(state: str, kind: str) -> None:
    end = end_of(job(state), None, has_begun=True, last_beat=12.0, said="")
    assert (end.kind, end.seconds) == (kind, 30.0)


def test_a_state_that_slurm_ends_jobs_in_is_no_fault_of_the_command_whatever_it_made_of_the_signal() -> None:
    for written in (
        End("exit", "exit code 143", 29.0),
        End("signal", "killed by signal 15", 29.0),
        End(None, "", 29.0),
    ):
        assert end_of(job("PREEMPTED"), written, True, 0.0, "").kind == protocol.PREEMPTED


@pytest.mark.parametrize("state", sorted(FINAL - {"PREEMPTED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "DEADLINE"}))
def test_a_job_that_came_to_its_own_end_is_told_by_its_supervisor(state: str) -> None:
    if state in ("COMPLETED", "FAILED", "OUT_OF_MEMORY"):
        assert end_of(job(state), End(None, "exit code 0", 31.5), True, 0.0, "") == End(None, "exit code 0", 31.5)


def test_a_job_that_never_began_the_command_says_why() -> None:
    end = end_of(job("FAILED", 1.0), None, has_begun=False, last_beat=0.0, said="python3: not found")
    assert end.kind == protocol.UNAVAILABLE
    assert "python3: not found" in end.detail


def test_a_job_that_slurm_has_forgotten_is_lost_if_it_ran_and_costs_nothing_if_it_did_not() -> None:
    assert end_without_job(None, has_begun=True, last_beat=40.0) == End(
        protocol.LOST, "Slurm no longer knows its job, and nobody saw how it ended", 41.0
    )
    assert end_without_job(None, has_begun=False, last_beat=0.0).seconds == 0.0
    assert end_without_job(End(None, "exit code 0", 5.0), True, 4.0) == End(None, "exit code 0", 5.0)


SACCT = """#!/bin/sh
case "$*" in *--name={name}*) echo '7|CANCELLED by 1000|1000|1030|n1|None|';; esac
"""


def test_what_the_controller_has_forgotten_is_looked_up_in_the_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sacct"
    program.write_text(SACCT.format(name=TAG.name))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (found,) = queue.in_accounting(TAG)
    assert (found.state, found.seconds, found.tag) == ("CANCELLED", 30.0, TAG)
    assert queue.in_accounting(replace(TAG, trial=4)) == []


def test_without_accounting_nothing_is_known_of_what_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sacct"
    program.write_text("#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert queue.in_accounting(TAG) == []


def test_a_comment_of_ours_is_read_back_and_no_other_is() -> None:
    for folder in ("/shared/study/3-1", "/shared/a b | c/study/3-1"):
        tag = replace(TAG, folder=folder)
        assert JobTag.of_comment(tag.comment) == tag
    for text in ("", "(null)", "trimtuner", "trimtuner study x-1 /y", "other study 3-1 /y"):
        assert JobTag.of_comment(text) is None


@dataclass(frozen=True)
class Asked:
    machines: Machines | None
    words: list[str]


@pytest.mark.parametrize(
    "asked",
    [
        Asked(None, ["--nodes=1", "--cpus-per-task=1"]),
        Asked(Machines("small", 3, vcpus=4), ["--nodes=3", "--cpus-per-task=4", "--constraint=small"]),
        Asked(Machines("big", vcpus=8, gpus=2), ["--nodes=1", "--gres=gpu:2", "--partition=gpu", "--exclusive"]),
        Asked(Machines("small", 2, helpers=("small",)), ["--nodes=3"]),
    ],
    ids=["no cloud", "a feature", "options of its own", "a helper"],
)
def test_machines_become_nodes_features_and_gpus(tmp_path: Path, asked: Asked) -> None:
    settings = SlurmSettings(vm_types={"big": ("--partition=gpu", "--exclusive")})
    launch = protocol.Launch("s", 1, 1, ("x",), tmp_path, tmp_path, {}, (), 60.0, machines=asked.machines)
    words = words_of(launch, settings, tmp_path / "s" / "1-1")
    assert set(asked.words) <= set(words)
    assert ("--gres" in " ".join(words)) == bool(asked.machines and asked.machines.gpus)


@pytest.mark.parametrize("change", [{"market": "spot"}, {"helpers": ("other",)}])
def test_what_one_job_cannot_have_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    launch = protocol.Launch("s", 1, 1, ("x",), tmp_path, tmp_path, {}, (), 60.0)
    with pytest.raises(ValueError, match=r"spot market|in another way"):
        words_of(
            replace(launch, machines=replace(Machines("small"), **change)), SlurmSettings(), tmp_path / "s" / "1-1"
        )


def test_where_slurm_is_not_installed_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineTrouble, match="login node"):
        SlurmEngine(tmp_path, SECRET, SlurmSettings()).find()


def test_nothing_but_the_standard_library_is_needed_on_the_nodes(tmp_path: Path) -> None:
    from trimtuner.engines.supervising.archive import archive_of

    archive = archive_of("trimtuner.engines.slurm.node_side")
    (tmp_path / archive.name).write_bytes(archive.data)
    words = [sys.executable, "-I", "-S", str(tmp_path / archive.name), "run", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, env={"TRIMTUNER_KEY": "00" * 32})
    assert "has no order of ours" in done.stderr
