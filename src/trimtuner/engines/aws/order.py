"""What is rented for an attempt, in the words of EC2."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.ec2 import as_tags
from trimtuner.engines.aws.keys import KeyPair
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.protocol import Machines

_MINUTE = 60.0


@dataclass(frozen=True)
class Group:
    """Machines of one type, rented all or none."""

    name: str
    vm_type: str
    count: int
    is_spot: bool = False


@dataclass(frozen=True)
class RentalOrder:
    """The machines of an attempt."""

    name: AttemptName
    machines: Machines
    settings: AwsSettings
    host: KeyPair
    authorized: str | None  # the public key that is let in; None: the image or the key pair sees to that
    limit: float  # seconds, of the command
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        one = self.machines
        workers = Group(naming.WORKERS, one.vm_type, one.count, is_spot=one.market == "spot")
        helpers = (Group(naming.helpers_of(kind), kind, count) for kind, count in Counter(one.helpers).items())
        object.__setattr__(self, "groups", (workers, *helpers))

    @property
    def lifetime(self) -> float:
        """Seconds after its launch at which a machine ends itself: what is reserved."""
        return self.limit + self.settings.ended_within_seconds

    def minutes_left(self, age: float) -> int:
        """What to set the shutdown timer to; it counts whole minutes, and must not fire after the lifetime."""
        return max(int((self.lifetime - age) // _MINUTE), 1)

    def request(self, group: Group, number: int, image: str, root_device: str | None) -> dict[str, object]:
        """What EC2 is asked for, in the words of its RunInstances, to rent a group in a round."""
        settings, profile = self.settings, self.settings.instance_profile
        ebs = {"VolumeSize": settings.disk_gib, "VolumeType": "gp3", "DeleteOnTermination": True}
        request: dict[str, object] = {
            "ImageId": image,
            "InstanceType": group.vm_type,
            "MinCount": group.count,
            "MaxCount": group.count,
            "ClientToken": self.name.client_token(group.name, number),
            "UserData": user_data(self.host, self.authorized, self.minutes_left(_MINUTE)),
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
            "TagSpecifications": self._tag_specifications(group, number),
            "KeyName": settings.key_name,
            "SecurityGroupIds": list(settings.security_groups) or None,
            "SubnetId": settings.subnet,
            "IamInstanceProfile": None if profile is None else {"Name": profile},
            "BlockDeviceMappings": None if root_device is None else [{"DeviceName": root_device, "Ebs": ebs}],
            "InstanceMarketOptions": self._spot() if group.is_spot else None,
        }
        return {name: value for name, value in request.items() if value is not None}

    def _spot(self) -> dict[str, object]:
        options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        if self.machines.price_per_hour is not None:
            options["MaxPrice"] = f"{self.machines.price_per_hour:.6f}"  # no more than was reserved
        return {"MarketType": "spot", "SpotOptions": options}

    def _tag_specifications(self, group: Group, number: int) -> list[dict[str, object]]:
        shown = f"trimtuner {self.name.study} {self.name.short}"
        more = {"Name": shown, naming.GROUP: group.name, naming.ROUND: str(number), naming.HOST_KEY: self.host.public}
        kinds = ["instance", "volume", "network-interface", *(["spot-instances-request"] if group.is_spot else [])]
        return [{"ResourceType": kind, "Tags": as_tags({**self.name.tags, **more})} for kind in kinds]


def user_data(host: KeyPair, authorized: str | None, minutes: int) -> str:
    """What a machine is told at its birth, as a cloud-config: whom to let in, how to be known, when to end itself.

    JSON is YAML. The timer ends the machine even if nobody ever logs in.
    """
    told: dict[str, object] = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],  # no host key but ours
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "runcmd": [["shutdown", "-P", f"+{minutes:d}"]],
    }
    if authorized is not None:
        told["ssh_authorized_keys"] = [authorized]
    return "#cloud-config\n" + json.dumps(told, indent=1) + "\n"
