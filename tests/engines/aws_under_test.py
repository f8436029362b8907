"""The AWS engine for the conformance suite: real commands over real SSH, on machines that moto says it has rented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from under_test import SECRET, UnderTest

from trimtuner.engines.aws.engine import AwsEngine
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.settings import AwsSettings

if TYPE_CHECKING:
    from mock_cloud import MockCloud  # heavy, and a driver in another process needs none of it

REGION = "eu-west-1"
IMAGE = "ami-12c6146b"  # known to moto
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "mock",
    "AWS_SECRET_ACCESS_KEY": "mock",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}
QUICK = Pace(
    look=0.1,
    pause=0.05,
    longest_pause=0.3,
    appear=0.5,
    silence=10.0,
    connect=20.0,
    stopped_within=120.0,
    checkpoint=0.2,
    lock=1.0,
)


def aws(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    cloud: MockCloud = request.getfixturevalue("cloud")
    argument = {"folder": str(path / "studies"), "subnet": cloud.subnet, "ssh_config": str(cloud.ssh_config)}
    return UnderTest("aws_under_test:make_aws", json.dumps(argument), (), 2.0)


def make_aws(argument: dict[str, str]) -> AwsEngine:
    return AwsEngine(Path(argument["folder"]), SECRET, settings(argument["subnet"], argument["ssh_config"]), QUICK)


def settings(subnet: str, ssh_config: str | Path) -> AwsSettings:
    return AwsSettings(
        region=REGION,
        image=IMAGE,
        subnet=subnet,
        connect_to="private",
        ssh_config=Path(ssh_config),
        look_in=(REGION, "us-east-1"),
        wait=60.0,
        ready_within=120.0,
        billed_at_least=0.0,
    )
