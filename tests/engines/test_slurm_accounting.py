"""What a real accounting says of jobs that the controller has forgotten: slurmdbd on MariaDB, and sacct."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_engine_conformance import Bench, benches
from under_test import UnderTest

import slurm_cluster
from slurm_accounting import NOT_HERE, cluster_with_accounting, is_installed
from slurm_cluster import SlurmCluster
from trimtuner.engines import protocol
from trimtuner.engines.slurm import queue
from trimtuner.engines.slurm.conclusion import end_of
from trimtuner.engines.slurm.queue import JobTag, SlurmJob
from waiting import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Slurm needs Linux"),
    pytest.mark.xdist_group("slurm"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def shared_accounting() -> Iterator[SlurmCluster]:
    if not slurm_cluster.is_installed():
        pytest.skip(slurm_cluster.NOT_HERE)
    if not is_installed():
        pytest.skip(NOT_HERE)
    with cluster_with_accounting() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_accounting: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    for name, value in shared_accounting.environment.items():
        monkeypatch.setenv(name, value)
    yield shared_accounting
    shared_accounting.mend()


@pytest.fixture
def bench(cluster: SlurmCluster, tmp_path: Path) -> Iterator[Bench]:
    assert cluster.environment
    yield from benches(
        UnderTest("slurm_under_test:make_slurm", json.dumps(str(tmp_path / "studies")), (), 1.0), tmp_path
    )


def hand_in(cluster: SlurmCluster, trial: int, *words: str) -> tuple[JobTag, str]:
    """A job that carries our tags, when it runs; with its number."""
    tag = JobTag("accounted", trial, 1, f"/shared/accounted/{trial}-1")
    ours = ["--parsable", "--no-requeue", "--output=/dev/null", f"--job-name={tag.name}", f"--comment={tag.comment}"]
    number = cluster.ask("sbatch", *ours, *words).strip()
    wait_until(lambda: cluster.ask("squeue", "-h", "-j", number, "-o", "%T").strip() != "PENDING")
    return tag, number


def accounted(tag: JobTag) -> SlurmJob:
    """As the accounting has it, when it is over there too."""
    wait_until(lambda: [job.is_final for job in queue.in_accounting(tag)] == [True])
    return queue.in_accounting(tag)[0]


def test_every_end_that_slurm_gives_a_job_is_found_in_the_accounting(cluster: SlurmCluster) -> None:
    """But OUT_OF_MEMORY, which it gives where it may use control groups."""
    jobs = {
        "TIMEOUT": hand_in(cluster, 1, "--time=1", "--wrap=sleep 300"),  # the least that there is, and half a minute
        "CANCELLED": hand_in(cluster, 3, "--wrap=sleep 300"),
        "PREEMPTED": hand_in(cluster, 4, "--nodelist=n3", "--wrap=sleep 300"),
        "NODE_FAIL": hand_in(cluster, 5, "--nodelist=n2", "--wrap=sleep 300"),
        "COMPLETED": hand_in(cluster, 6, "--wrap=true"),
        "FAILED": hand_in(cluster, 7, "--wrap=exit 3"),
    }
    cluster.ask("scancel", jobs["CANCELLED"][1])
    urgent = ["--partition=urgent", "--nodelist=n3", "--exclusive", "--output=/dev/null", "--wrap=true"]
    cluster.ask("sbatch", *urgent)
    cluster.crash("n2")
    found = {wanted: accounted(tag) for wanted, (tag, _) in jobs.items()}
    assert {wanted: job.state for wanted, job in found.items()} == {wanted: wanted for wanted in jobs}
    ends = {wanted: end_of(job, None, has_begun=True, last_beat=0.0, said="") for wanted, job in found.items()}
    assert {wanted: end.kind for wanted, end in ends.items()} == {
        "TIMEOUT": protocol.TIMEOUT,
        "CANCELLED": protocol.STOPPED,
        "PREEMPTED": protocol.PREEMPTED,
        "NODE_FAIL": protocol.PREEMPTED,
        "COMPLETED": protocol.LOST,
        "FAILED": protocol.LOST,
    }
    assert 60.0 <= ends["TIMEOUT"].seconds < 180.0
    assert [job.tag for job in found.values()] == [tag for tag, _ in jobs.values()]


def test_a_job_that_the_controller_has_forgotten_is_told_as_the_accounting_has_it(
    cluster: SlurmCluster, bench: Bench
) -> None:
    handle = bench.start(bench.launch("rest"))
    bench.wait_for_pids(1)
    tag = JobTag.of_folder(Path(handle))
    cluster.ask("scancel", cluster.ask("squeue", "-h", f"--name={tag.name}", "-o", "%i").strip())
    seconds = accounted(tag).seconds
    cluster.kill("slurmctld")
    cluster.start_daemon("slurmctld", ["slurmctld", "-D", "-c"])  # with nothing that it knew
    cluster.wait_until_idle()
    end = bench.end(handle).end
    assert end is not None
    assert (end.kind, end.seconds >= seconds) == (protocol.STOPPED, True), end
    assert "CANCELLED" in end.detail
