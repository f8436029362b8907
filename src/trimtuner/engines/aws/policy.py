"""The smallest IAM policy with which the engine can do its work, and end nothing but what it has rented."""

from __future__ import annotations

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
    rented = [*_RENTED, *(["spot-instances-request"] if uses_spot else [])]
    statements: list[Statement] = [
        {"Sid": "Look", "Effect": "Allow", "Action": _looks(settings, uses_spot), "Resource": "*"},
        {
            "Sid": "RentWhatIsTagged",
            "Effect": "Allow",
            "Action": "ec2:RunInstances",
            "Resource": [_resource(kind, where) for kind in rented],
            "Condition": _TO_BE_OURS,
        },
        {
            "Sid": "RentWithTheseThings",
            "Effect": "Allow",
            "Action": "ec2:RunInstances",
            "Resource": [_resource(kind, where) for kind in _USED],
        },
        {
            "Sid": "TagAtBirth",
            "Effect": "Allow",
            "Action": "ec2:CreateTags",
            "Resource": [_resource(kind, where) for kind in rented],
            "Condition": {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        },
        {
            "Sid": "EndAndMarkWhatIsOurs",
            "Effect": "Allow",
            "Action": ["ec2:TerminateInstances", "ec2:CreateTags"],
            "Resource": "arn:aws:ec2:*:*:instance/*",  # reap looks into every region
            "Condition": _OURS,
        },
    ]
    if settings.instance_profile is not None:
        statements.append(_pass_role(settings.instance_profile))
    if settings.image is None:
        statements.append(_newest_image(where))
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


def _pass_role(profile: str) -> Statement:
    """The role of a profile usually has its name; where it has another, that is the one to write here."""
    return {
        "Sid": "GiveTheRoleOfTheProfile",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": f"arn:aws:iam::*:role/{profile}",
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }


def _newest_image(where: str) -> Statement:
    return {
        "Sid": "FindTheNewestImage",
        "Effect": "Allow",
        "Action": "ssm:GetParameter",
        "Resource": f"arn:aws:ssm:{where}::parameter/aws/service/ami-amazon-linux-latest/*",
    }


def _resource(kind: str, where: str) -> str:
    return f"arn:aws:ec2:{where}:*:{kind}/*"
