"""``trimtuner doctor`` on a job for AWS: everything that would stop a trial is found before anything is rented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="asyncssh is not installed; install trimtuner[aws]")
pytest.importorskip("moto", reason="moto is not installed; install trimtuner[dev]")

from mock_cloud import MockCloud
from typer.testing import CliRunner

from trimtuner.cli import app_of
from trimtuner.commands.doctor import examine
from trimtuner.engines.aws import ec2
from trimtuner.engines.checks import Check
from trimtuner.jobs.load import load_job

app = app_of()

pytestmark = pytest.mark.xdist_group("aws")

JOB = """
name: rented
goal: {{maximize: accuracy}}
budget: {{money: 5 USD}}
parameters:
  x: {{values: [0, 1]}}
cloud:
  vms:
    {vm_type}: {{vcpus: 2, memory_gib: 8, price_per_hour: 0.1, spot_price_per_hour: 0.04}}
  vm_count: [1, 4]
  market: [on_demand, spot]
run: {{command: [python3, train.py, "{{x}}"]}}
engine: {{type: aws, parallel: 3, region: eu-west-1, subnet: {subnet}, connect_to: private{more}}}
"""


def write(cloud: MockCloud, folder: Path, more: str = "", vm_type: str = "m5.large") -> Path:
    path = folder / "job.yaml"
    text = JOB.format(vm_type=vm_type, subnet=cloud.subnet, more=f", {more}" if more else "")
    path.write_text(text)
    return path


def found(path: Path) -> dict[str, Check]:
    return {check.name: check for check in examine(load_job(path))}


def test_a_job_that_can_run_is_said_to_be_ready_and_nothing_is_rented(cloud: MockCloud, tmp_path: Path) -> None:
    before = len(cloud.room.instances())
    result = CliRunner().invoke(app, ["doctor", str(write(cloud, tmp_path)), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    outcomes = {check["name"]: check["outcome"] for check in told["checks"]}
    assert told["is_ready"]
    for name in ("credentials", "clock", "vm types", "image", "subnet", "run_instances", "terminate_instances"):
        assert outcomes[name] == "ok"
    assert outcomes["security_groups"] == "warning"  # the default one lets nobody in
    assert outcomes["quota standard on_demand"] == outcomes["quota standard spot"] == "unknown"  # moto knows none
    assert len(cloud.room.instances()) == before
    assert all("DryRun" in fields for action, fields in cloud.requests if action == "RunInstances")


@pytest.mark.parametrize("action", ["GetCallerIdentity", "*"])
def test_without_credentials_nothing_else_is_asked(cloud: MockCloud, tmp_path: Path, action: str) -> None:
    cloud.refuse(action, "ExpiredToken", times=1000)
    checks = found(write(cloud, tmp_path))
    assert checks["credentials"].outcome == "failed"
    assert "ExpiredToken" in checks["credentials"].text
    assert "run_instances" not in checks


def test_a_launch_that_is_not_allowed_fails_with_what_to_do(cloud: MockCloud, tmp_path: Path) -> None:
    cloud.refuse("RunInstances", "UnauthorizedOperation", times=1000, status=403)
    path = write(cloud, tmp_path)
    check = found(path)["run_instances"]
    assert check.outcome == "failed"
    assert "--policy" in check.advice
    assert CliRunner().invoke(app, ["doctor", str(path)]).exit_code == 2


def test_an_end_that_may_be_allowed_for_our_machines_alone_is_unknown(cloud: MockCloud, tmp_path: Path) -> None:
    cloud.refuse("TerminateInstances", "UnauthorizedOperation", times=1000, status=403)
    assert found(write(cloud, tmp_path))["terminate_instances"].outcome == "unknown"


def test_what_may_not_be_looked_at_is_unknown_and_not_failed(cloud: MockCloud, tmp_path: Path) -> None:
    cloud.refuse("DescribeSubnets", "UnauthorizedOperation", times=1000, status=403)
    assert found(write(cloud, tmp_path))["network"].outcome == "unknown"


def test_machines_that_the_region_does_not_have_are_named(cloud: MockCloud, tmp_path: Path) -> None:
    check = found(write(cloud, tmp_path, vm_type="m9.huge", more="image: ami-12c6146b"))["vm types"]
    assert check.outcome == "failed"
    assert "m9.huge" in check.text


def test_a_security_group_is_told_with_those_whom_it_lets_in(cloud: MockCloud, tmp_path: Path) -> None:
    client = cloud.client()
    network = client.describe_subnets(SubnetIds=[cloud.subnet])["Subnets"][0]["VpcId"]
    names = {}
    for name, port in (("open", 22), ("shut", 443)):
        group = client.create_security_group(GroupName=f"{name}-{tmp_path.name}", Description=name, VpcId=network)
        rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": "10.1.2.3/32"}]}
        client.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[rule])
        names[name] = group["GroupId"]
    check = found(write(cloud, tmp_path, f"security_groups: [{names['open']}]"))["security_groups"]
    assert check.outcome == "ok"
    assert "10.1.2.3/32" in check.text
    assert found(write(cloud, tmp_path, f"security_groups: [{names['shut']}]"))["security_groups"].outcome == "failed"


def test_a_key_pair_and_a_profile_that_are_not_there_fail(cloud: MockCloud, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    checks = found(write(cloud, tmp_path, "key_name: nobodys, key_file: key, instance_profile: nobodys"))
    assert checks["key_file"].outcome == "failed"
    assert checks["key"].outcome == "failed"
    assert checks["instance_profile"].outcome == "failed"


def test_a_quota_below_what_the_job_may_ask_for_fails(cloud: MockCloud, tmp_path: Path) -> None:
    """Three clusters of four machines with two vCPUs are 24."""
    cloud.quota(16.0)
    check = found(write(cloud, tmp_path))["quota standard on_demand"]
    assert check.outcome == "failed"
    assert "24 vCPUs at once, the account has 16" in check.text
    cloud.mend()
    cloud.quota(24.0)
    assert found(write(cloud, tmp_path))["quota standard spot"].outcome == "ok"


def test_a_clock_that_is_minutes_off_fails(cloud: MockCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = ec2.Clock.now
    monkeypatch.setattr(ec2.Clock, "now", lambda clock: really(clock) + 400.0)
    assert found(write(cloud, tmp_path))["clock"].outcome == "failed"


def test_the_policy_is_printed_without_asking_anybody(cloud: MockCloud, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", str(write(cloud, tmp_path)), "--policy"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["Version"] == "2012-10-17"
    assert cloud.requests == []
