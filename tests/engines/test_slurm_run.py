"""``trimtuner run`` on a Slurm cluster, as a user meets it: to its end, killed and resumed, stopped, reaped."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_study import RunStudy

from slurm_cluster import SlurmCluster
from trimtuner.engines.supervising import processes
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Slurm needs Linux"),
    pytest.mark.xdist_group("slurm"),
]

JOB = """
name: queued
goal: {{maximize: accuracy}}
budget: {{money: {money}, trials: {trials}}}
data: {{fractions: [0.5, 1]}}
parameters:
  x: {{values: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]}}
cloud:
  vms:
    small: {{vcpus: 1, memory_gib: 1, price_per_hour: 3600}}     # a dollar a second
  vm_count: {count}
run:
  command: ["{python}", -S, train.py, "{{x}}", "{{fraction}}", "{{trial}}"]
  timeout: {timeout}
  environment: {{RAN: "{ran}", NAP: "{nap}"}}
  retries: {{preempted: 20}}
engine: {{type: slurm, parallel: {parallel}, python: "{python}"}}
search: {{method: random, seed: 1}}
"""


class Study(RunStudy):
    """A job on the cluster."""

    def __init__(self, folder: Path, **changes: object) -> None:
        usual = {"trials": 4, "nap": 0.3, "parallel": 2, "money": "100000 USD", "count": 1, "timeout": "30s"}
        values = {**usual, **changes, "python": sys.executable, "ran": folder / "ran.txt"}
        super().__init__(folder, JOB.format(**values), "quick_slurm.py")

    def tagged(self) -> list[processes.TaggedProcess]:
        return [one for one in processes.tagged_processes() if one.folder.startswith(str(self.folder))]


@pytest.fixture
def folder(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    slurm_cluster.mend()
    assert [one for one in processes.tagged_processes() if one.folder.startswith(str(tmp_path))] == []


def jobs_alive(cluster: SlurmCluster) -> list[str]:
    """Of ours: tests that share the cluster hand in others, which may wait for their end still."""
    listed = cluster.ask("squeue", "-h", "-o", "%j|%i %T").splitlines()
    return [line.partition("|")[2] for line in listed if line.startswith("trimtuner-")]


def test_a_job_file_runs_on_slurm_to_its_end_though_its_run_is_killed(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    study = Study(folder, trials=3)
    with study.start("run", study.path) as process:
        wait_until(study.ran)
        process.kill()
    study.say("run", study.path, "-q")
    assert study.ran() == Counter(range(3))
    study.check_sound()
    assert [one.failed for one in study.look().history.outcomes] == [None] * 3
    assert study.look().record.spent >= 3 * 0.3
    assert jobs_alive(slurm_cluster) == []


@pytest.mark.slow
def test_a_stop_from_another_process_ends_the_jobs_and_the_run(slurm_cluster: SlurmCluster, folder: Path) -> None:
    study = Study(folder, nap=60)
    with study.start("run", study.path) as process:
        wait_until(lambda: sum(study.ran().values()) == 2)
        assert "ended trials 0, 1" in study.say("stop", study.path, "--now")
        assert jobs_alive(slurm_cluster) == []
        assert process.wait(PATIENCE_SECONDS) == 3  # no answer: nothing was measured
    assert {one.failed for one in study.look().history.outcomes} == {"preempted"}
    study.check_sound()


@pytest.mark.slow
def test_what_the_record_does_not_know_is_reaped(slurm_cluster: SlurmCluster, folder: Path) -> None:
    study = Study(folder, trials=1, parallel=1)
    study.say("run", study.path, "-q")
    place = folder / "work" / "queued.db.trials" / study.look().record.id / "99-1"
    words = [f"--comment=trimtuner {place.parent.name} 99-1 {place}", f"--job-name=trimtuner-{place.parent.name}-99-1"]
    number = slurm_cluster.ask("sbatch", "--parsable", "--output=/dev/null", *words, "--wrap=sleep 300").strip()
    wait_until(lambda: f"{number} RUNNING" in jobs_alive(slurm_cluster))
    assert "ended 1: trial 99" in study.say("reap", study.path)
    assert jobs_alive(slurm_cluster) == []
    assert study.say("reap", study.path) == "nothing to end\n"


@pytest.mark.slow
def test_what_waits_is_shown_by_the_run_and_by_status(slurm_cluster: SlurmCluster, folder: Path) -> None:
    words = ["sbatch", "--parsable", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 300"]
    number = slurm_cluster.ask(*words).strip()
    study = Study(folder, trials=1)
    with study.start("run", study.path) as process:
        assert process.stdout is not None
        wait_until((folder / "work" / "queued.db.trials").exists)
        wait_until(lambda: "waiting" in study.say("status", study.path))
        slurm_cluster.ask("scancel", number)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert "trial 0 waiting" in said
    assert "trial 0 began" in said
    (outcome,) = study.look().history.outcomes
    assert outcome.failed is None


# Says which attempt it is of; the last trials end only when there are no more faults to come, so that each finds one.
PATIENT_TRAIN = """
import json, os, sys, time
from pathlib import Path

x, fraction, trial = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with open(os.environ["RAN"], "a") as file:
    file.write(f"{trial}.{os.environ['TRIMTUNER_ATTEMPT']}\\n")
time.sleep(float(os.environ["NAP"]))
while trial >= 17 and not Path("no-more-faults").exists():
    time.sleep(0.1)
print("::metric " + json.dumps({"accuracy": (1 - (x - 0.6) ** 2) * fraction ** 0.1}), flush=True)
"""
TRIALS, FAULTS = 20, 40


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_runs_under_kills_of_nodes_controller_and_driver_lose_nothing_and_run_nothing_twice(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    study = Study(folder, trials=TRIALS, parallel=3, nap=10.0, count="[1, 2]", timeout="1h", money="10000000 USD")
    chance, faults = random.Random(7), Counter[str]()  # noqa: S311
    (folder / "work" / "train.py").write_text(PATIENT_TRAIN)
    run = study.start("run", study.path)
    while run.poll() is None or run.returncode < 0:
        if run.poll() is not None:
            run.communicate()
            run = study.start("run", study.path)
        time.sleep(chance.uniform(0.5, 4.0))
        slurm_cluster.mend_all()
        busy = busy_nodes(slurm_cluster, study)
        if faults.total() == FAULTS:
            (folder / "work" / "no-more-faults").touch()
        elif busy:
            faults[_fault(slurm_cluster, run, chance, busy)] += 1
    said = run.communicate()[0]
    assert run.returncode == 0, said
    slurm_cluster.mend()
    print(f"faults, each under a running trial: {dict(faults)}")
    assert faults.total() == FAULTS
    _judge(slurm_cluster, study)


def busy_nodes(cluster: SlurmCluster, study: Study) -> list[str]:
    """Those that a trial runs on whose command lives; what the controller still takes for running may be long dead."""
    alive = {Path(one.folder).name for one in study.tagged()}
    listed = (line.split() for line in cluster.ask("squeue", "-h", "--states=RUNNING", "-o", "%j %N").splitlines())
    places = [
        place for name, place in listed if name.startswith("trimtuner-") and "-".join(name.split("-")[-2:]) in alive
    ]
    return cluster.ask("scontrol", "show", "hostnames", ",".join(places)).split() if places else []


def _fault(cluster: SlurmCluster, run: subprocess.Popen[str], chance: random.Random, busy: list[str]) -> str:
    """One thing goes wrong."""
    kind, node = (
        chance.choice(["driver", "controller", "daemon of a node", "node", "node cut off"]),
        chance.choice(busy),
    )
    if kind == "driver":
        run.kill()
        run.wait()
    elif kind == "controller":
        cluster.kill("slurmctld")
    elif kind == "daemon of a node":
        cluster.kill(node)
        cluster.start(node)
    elif kind == "node":
        cluster.crash(node)
    else:
        cluster.kill(node)
        time.sleep(8.0)  # longer than the controller waits for it
    return kind


def _judge(cluster: SlurmCluster, study: Study) -> None:
    look = study.look()
    study.check_sound()
    ran = Counter((study.folder / "ran.txt").read_text().split())
    attempts = {f"{one.trial}.{one.attempt}": one for one in look.attempts}
    charged = {name: one.charge or 0.0 for name, one in attempts.items()}
    print(
        json.dumps(
            {
                "attempts": len(attempts),
                "ran": len(ran),
                "ended": Counter(str(one.failed) for one in look.attempts),
                "measured": Counter(one.failed for one in look.history.outcomes)[None],
            }
        )
    )
    assert [one.failed for one in look.history.outcomes] == [None] * TRIALS  # nothing lost
    assert [name for name, count in ran.items() if count > 1] == []  # nothing twice
    assert set(ran) <= set(attempts)
    assert [name for name in ran if charged[name] == 0.0] == []  # nothing for free
    assert jobs_alive(cluster) == []
    wait_until(lambda: study.tagged() == [])  # nothing left
