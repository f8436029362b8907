"""The smallest IAM policy with which the engine can do its work, and end nothing but what it has rented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.settings import AwsSettings

Statement: TypeAlias = dict[str, object]

_OURS = {"StringLike": {f"aws:ResourceTag/{naming.STUDY}": "*"}}
_TO_BE_OURS = {"StringLike": {f"aws:RequestTag/{naming.STUDY}": "*"}}
_RENTED = ("instance", "volume", "network-interface")  # and tagged from their birth
_USED = ("image", "security-group", "subnet", "key-pair")


def policy(settings: AwsSettings, *, uses_spot: bool) -> dict[str, object]:
    """The policy as IAM takes it. What only ``trimtuner doctor`` asks is left out: it says then that it cannot know."""
    return {"Version": "2012-10-17", "Statement": list(_statements(settings, uses_spot))}


def _statements(settings: AwsSettings, uses_spot: bool) -> list[Statement]:
    where = settings.region or "*"
    rented = [_resource(kind, where) for kind in (*_RENTED, *(["spot-instances-request"] if uses_spot else []))]
    used = [_resource(kind, where) for kind in _USED]
    at_birth = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    ours = _resource("instance", "*")  # reap looks into every region
    statements = [
        _allow("Look", _looks(settings, uses_spot), "*"),
        _allow("RentWhatIsTagged", "ec2:RunInstances", rented, _TO_BE_OURS),
        _allow("RentWithTheseThings", "ec2:RunInstances", used),
        _allow("TagAtBirth", "ec2:CreateTags", rented, at_birth),
        _allow("EndAndMarkWhatIsOurs", ["ec2:TerminateInstances", "ec2:CreateTags"], ours, _OURS),
    ]
    if settings.instance_profile is not None:
        # The role of a profile usually has its name; where it has another, that is the one to write here.
        role = f"arn:aws:iam::*:role/{settings.instance_profile}"
        to_ec2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
        statements.append(_allow("GiveTheRoleOfTheProfile", "iam:PassRole", role, to_ec2))
    if settings.image is None:
        newest = f"arn:aws:ssm:{where}::parameter/aws/service/ami-amazon-linux-latest/*"
        statements.append(_allow("FindTheNewestImage", "ssm:GetParameter", newest))
    return statements


def _looks(settings: AwsSettings, uses_spot: bool) -> list[str]:
    wanted = {
        "ec2:DescribeInstances": True,
        "ec2:DescribeRegions": not settings.look_in,
        "ec2:DescribeSpotInstanceRequests": uses_spot,
        "ec2:DescribeInstanceTypes": settings.image is None,
        "ec2:DescribeImages": settings.disk_gib is not None,
    }
    return [action for action, is_wanted in wanted.items() if is_wanted]


def _allow(name: str, action: object, resource: object, condition: Mapping[str, object] | None = None) -> Statement:
    statement: Statement = {"Sid": name, "Effect": "Allow", "Action": action, "Resource": resource}
    return statement if condition is None else {**statement, "Condition": condition}


def _resource(kind: str, where: str) -> str:
    return f"arn:aws:ec2:{where}:*:{kind}/*"
