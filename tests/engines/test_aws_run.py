"""``trimtuner run`` on rented machines, as a user meets it: killed and resumed, stopped from elsewhere, reaped."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="asyncssh is not installed; install trimtuner[aws]")
pytest.importorskip("moto", reason="moto is not installed; install trimtuner[dev]")

from aws_under_test import IMAGE, REGION
from mock_cloud import MockCloud, tags_of
from run_study import RunStudy

from trimtuner.engines.supervising import processes
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the machines are processes of this one, as Linux shows them"),
    pytest.mark.xdist_group("aws"),
]

JOB = """
name: rented
goal: {{maximize: accuracy}}
constraints: ["cost <= 1 USD"]
budget: {{money: 5 USD, trials: {trials}}}
data: {{fractions: [0.5, 1]}}
parameters:
  x: {{values: [0, 0.2, 0.4, 0.6, 0.8, 1]}}
cloud:
  vms:
    m5.large: {{vcpus: 2, memory_gib: 8, price_per_hour: 0.1, spot_price_per_hour: 0.04}}
  market: {market}
run:
  command: ["{python}", -S, train.py, "{{x}}", "{{fraction}}", "{{trial}}"]
  timeout: 30s
  environment: {{RAN: "{ran}", NAP: "{nap}"}}
engine:
  type: aws
  parallel: {parallel}
  region: {region}
  image: {image}
  subnet: {subnet}
  connect_to: private
  ssh_config: {ssh_config}
  look_in: [{region}]
search: {{method: random, seed: 1}}
"""


class Study(RunStudy):
    """A job on the cloud."""

    def __init__(self, cloud: MockCloud, folder: Path, **changes: object) -> None:
        self.cloud = cloud
        usual = {"trials": 4, "nap": 0.3, "parallel": 2, "market": "on_demand"}
        job = JOB.format(
            **{**usual, **changes},
            python=sys.executable,
            ran=folder / "ran.txt",
            region=REGION,
            image=IMAGE,
            subnet=cloud.subnet,
            ssh_config=cloud.ssh_config,
        )
        super().__init__(folder, job, "quick_cli.py")

    def ours(self):  # type: ignore[no-untyped-def]
        study = self.look().record.id
        return self.cloud.instances(study)


@pytest.fixture
def folder(cloud: MockCloud, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    cloud.mend()
    left = [one for one in cloud.room.instances() if one.state != "terminated"]
    for one in left:
        cloud.room.end(one, "Client.UserInitiatedShutdown")
    assert [tags_of(one) for one in left] == []
    homes = [str(cloud.room.machine(one.id).home) for one in cloud.room.instances()]
    assert [one for one in processes.tagged_processes() if one.folder.startswith(tuple(homes))] == []


def test_a_run_killed_again_and_again_runs_every_trial_once_and_leaves_no_machine(cloud, folder):
    study, chance = Study(cloud, folder, trials=2), random.Random(5)  # noqa: S311
    for _ in range(2):
        with study.start("run", study.path) as process:
            time.sleep(chance.uniform(2.5, 5.0))
            process.kill()
    study.say("run", study.path, "-q")
    assert study.ran() == Counter(range(2))
    study.check_sound()
    assert [one.state for one in study.ours()] == ["terminated"] * 2
    assert len(study.look().history.outcomes) == 2
    # A minute of 0.1 USD an hour, at least.
    assert study.look().record.spent >= 2 * 60 * 0.1 / 3600


@pytest.mark.slow
def test_a_spot_machine_that_is_taken_back_is_followed_by_a_second_attempt(cloud, folder):
    study = Study(cloud, folder, trials=1, parallel=1, market="spot", nap=2)
    with study.start("run", study.path) as process:
        wait_until(study.ran)
        (first,) = study.ours()
        cloud.room.end(first, "Server.SpotInstanceTermination")
        assert process.wait(PATIENCE_SECONDS) == 0
    assert study.ran() == Counter({0: 2})
    assert [tags_of(one)["trimtuner:attempt"] for one in study.ours()] == ["1", "2"]
    study.check_sound()
    (outcome,) = study.look().history.outcomes
    assert outcome.failed is None
    assert outcome.cost >= 2 * 60 * 0.04 / 3600


@pytest.mark.slow
def test_a_stop_from_another_process_ends_the_machines_and_the_run(cloud, folder):
    study = Study(cloud, folder, trials=4, parallel=2, nap=60)
    with study.start("run", study.path) as process:
        wait_until(lambda: sum(study.ran().values()) == 2)
        assert "ended trials 0, 1" in study.say("stop", study.path, "--now")
        assert {one.state for one in study.ours()} == {"terminated"}
        assert process.wait(PATIENCE_SECONDS) == 3  # no answer: nothing was measured
    assert {one.failed for one in study.look().history.outcomes} == {"preempted"}
    study.check_sound()


@pytest.mark.slow
def test_what_a_lost_record_left_behind_is_reaped(cloud, folder):
    study = Study(cloud, folder, trials=1, parallel=1, nap=60)
    with study.start("run", study.path) as process:
        wait_until(study.ran)
        process.kill()
    client, (instance,) = cloud.client(), study.ours()
    client.create_tags(Resources=[instance.id], Tags=[{"Key": "trimtuner:trial", "Value": "99"}])
    assert "ended 1: trial 99" in study.say("reap", study.path)
    assert instance.state == "terminated"
    assert study.say("reap", study.path) == "nothing to end\n"
