"""EC2, in our words: every call that spends, ends or looks is here, thin and typed.

Nothing is tried again in here: whoever asks does that, and can be seen to.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.refusals import explain
from trimtuner.errors import InputError

Json: TypeAlias = "str | bool | int | float | datetime | list[Json] | dict[str, Json] | None"

_CONFIG = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=30, user_agent_extra="trimtuner")
_ALIVE = frozenset({"pending", "running", "stopping", "stopped"})
# "User initiated (2026-01-31 12:00:00 GMT)", and other reasons in the same form.
_TRANSITION = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_IMAGE_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"


@dataclass(frozen=True)
class Instance:
    """A machine as EC2 shows it; times are seconds since 1970 by AWS's clock."""

    id: str
    state: str
    launched: float
    index: int  # among those of one launch
    private_address: str | None
    public_address: str | None
    reason: str  # AWS's code for why it is not running
    ended: float | None  # when it stopped running, where AWS says so
    spot_request: str | None
    tags: Mapping[str, str]

    @property
    def is_alive(self) -> bool:
        """Whether it is still to be terminated."""
        return self.state in _ALIVE

    @property
    def is_gone(self) -> bool:
        """Whether it is gone for sure, and no longer on its way out."""
        return self.state == "terminated"

    @property
    def group(self) -> str:
        """Which part of the cluster it belongs to."""
        return self.tags.get(naming.GROUP, "")

    @property
    def round(self) -> int:
        """In which try of the launch it was rented."""
        text = self.tags.get(naming.ROUND, "")
        return int(text) if text.isdigit() else 0


class Clock:
    """AWS's clock, as the answers show it: in whole seconds, so we know how late it is there at most."""

    def __init__(self) -> None:
        self._ahead = math.inf  # of our monotonic clock

    def heard(self, date: str, asked: float) -> None:
        """An answer, dated by AWS, to what was asked at that time of our monotonic clock."""
        self._ahead = min(self._ahead, parsedate_to_datetime(date).timestamp() + 1.0 - asked)

    def now(self) -> float:
        """Seconds since 1970; ours until AWS has answered."""
        return time.time() if math.isinf(self._ahead) else self._ahead + time.monotonic()


class Ec2:
    """One region of EC2, with the credentials that boto3 finds."""

    def __init__(self, region: str) -> None:
        self.region, self.clock = region, Clock()
        self._clients: dict[str, object] = {}
        self._session: boto3.session.Session | None = None
        self._images: dict[str, str] = {}
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Look for credentials anew: they may have been renewed since we last read them."""
        with self._lock:
            self._clients, self._session = {}, None

    def instances(self, filters: Mapping[str, Sequence[str]]) -> list[Instance]:
        """All that carry the tags, in whatever state."""
        conditions = [{"Name": f"tag:{name}", "Values": list(values)} for name, values in filters.items()]
        found, token = [], ""
        while True:
            request: dict[str, object] = {"Filters": conditions, "MaxResults": 1000}
            answer = self._ask("ec2", "describe_instances", {**request, "NextToken": token} if token else request)
            for reservation in answer["Reservations"]:
                found += [_instance(one) for one in reservation["Instances"]]
            token = str(answer.get("NextToken") or "")
            if not token:
                return found

    def run(self, request: Mapping[str, object]) -> list[Instance]:
        """Rent machines: all that are asked for, or none."""
        return [_instance(one) for one in self._ask("ec2", "run_instances", request)["Instances"]]

    def terminate(self, ids: Sequence[str]) -> dict[str, str]:
        """Ask to terminate; the states that they are in now."""
        answer = self._ask("ec2", "terminate_instances", {"InstanceIds": list(ids)})
        return {str(one["InstanceId"]): str(one["CurrentState"]["Name"]) for one in answer["TerminatingInstances"]}

    def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Add tags to machines, beside those that they have."""
        self._ask("ec2", "create_tags", {"Resources": list(ids), "Tags": as_tags(tags)})

    def spot_ends(self, requests: Iterable[str]) -> dict[str, tuple[str, float]]:
        """For each spot request, AWS's code of how it stands, and since when."""
        request = {"SpotInstanceRequestIds": list(requests)}
        answer = self._ask("ec2", "describe_spot_instance_requests", request)
        statuses = {str(one["SpotInstanceRequestId"]): one.get("Status", {}) for one in answer["SpotInstanceRequests"]}
        return {
            name: (str(status.get("Code", "")), status["UpdateTime"].timestamp())
            for name, status in statuses.items()
            if "UpdateTime" in status
        }

    def regions(self) -> list[str]:
        """Those that the account may use."""
        return sorted(str(one["RegionName"]) for one in self._ask("ec2", "describe_regions", {})["Regions"])

    def newest_image(self, vm_type: str) -> str:
        """The newest Amazon Linux 2023 that runs on the VM type."""
        if vm_type not in self._images:
            parameter = {"Name": _IMAGE_PARAMETER.format(architecture=self.architectures(vm_type)[0])}
            self._images[vm_type] = str(self._ask("ssm", "get_parameter", parameter)["Parameter"]["Value"])
        return self._images[vm_type]

    def architectures(self, vm_type: str) -> list[str]:
        """What images must be made for to run on it."""
        answer = self._ask("ec2", "describe_instance_types", {"InstanceTypes": [vm_type]})
        known = answer["InstanceTypes"][0]["ProcessorInfo"]["SupportedArchitectures"]
        return [str(one) for one in known if one in ("x86_64", "arm64")] or ["x86_64"]

    def root_device(self, image: str) -> str:
        """The name that the image gives to its disk."""
        images = self._ask("ec2", "describe_images", {"ImageIds": [image]})["Images"]
        if not images:
            raise InputError(f"there is no image {image!r} in {self.region}")
        return str(images[0]["RootDeviceName"])

    def ask(self, service: str, operation: str, request: Mapping[str, object]) -> dict[str, Json]:
        """Any other question, with boto3's own words; its errors come as they are."""
        asked = time.monotonic()
        answer = getattr(self._client(service), operation)(**request)
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if date is not None:
            self.clock.heard(date, asked)
        return dict(answer)

    # boto3 has no types; what leaves the methods above has.
    def _ask(self, service: str, operation: str, request: Mapping[str, object]):  # type: ignore[no-untyped-def]
        try:
            return self.ask(service, operation, request)
        except (ClientError, BotoCoreError) as error:
            raise explain(error) from None

    def _client(self, service: str) -> object:
        with self._lock:  # making one is not safe in several threads; using it is
            if self._session is None:
                self._session = boto3.session.Session()
            if service not in self._clients:
                self._clients[service] = self._session.client(service, region_name=self.region, config=_CONFIG)
            return self._clients[service]


def usual_region() -> str | None:
    """Where the account's configuration says to work."""
    region = boto3.session.Session().region_name
    return None if region is None else str(region)


def as_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 takes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _instance(found) -> Instance:  # type: ignore[no-untyped-def]
    return Instance(
        id=str(found["InstanceId"]),
        state=str(found["State"]["Name"]),
        launched=found["LaunchTime"].timestamp(),
        index=int(found.get("AmiLaunchIndex", 0)),
        private_address=found.get("PrivateIpAddress") or None,
        public_address=found.get("PublicIpAddress") or None,
        reason=str(found.get("StateReason", {}).get("Code", "")),
        ended=_transition_time(str(found.get("StateTransitionReason", ""))),
        spot_request=found.get("SpotInstanceRequestId") or None,
        tags={str(tag["Key"]): str(tag["Value"]) for tag in found.get("Tags", [])},
    )


def _transition_time(reason: str) -> float | None:
    match = _TRANSITION.search(reason)
    if match is None:
        return None
    return datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
