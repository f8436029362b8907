"""What a job names on AWS: machine types, image, keys, network, profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from botocore.exceptions import BotoCoreError, ClientError

from trimtuner.engines.aws.ec2 import Ec2
from trimtuner.engines.aws.keys import read_login_key
from trimtuner.engines.aws.refusals import Refused, code_of, explain
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.checks import Check, Workload, failed, fine, unknown, warning
from trimtuner.engines.protocol import EngineTrouble
from trimtuner.errors import InputError

_MAY_NOT_LOOK = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
_SSH = 22
_PUT_RIGHT = "put it right in the section 'engine' of the job file"


def check_things(ec2: Ec2, work: Workload, settings: AwsSettings) -> Iterator[Check]:
    """Each thing that is named, and the account's own where none is."""
    things = _Things(ec2, work, settings)
    for name, look in things.looks().items():
        try:
            yield from look()
        except (ClientError, BotoCoreError) as error:
            yield _could_not_look(name, error)
        except (EngineTrouble, Refused) as trouble:
            yield failed(name, _without_hint(str(trouble)), _PUT_RIGHT)


def _could_not_look(name: str, error: ClientError | BotoCoreError) -> Check:
    if isinstance(error, ClientError) and code_of(error) in _MAY_NOT_LOOK:
        return unknown(name, "these credentials may not look at it; trials do not need to")
    return failed(name, _without_hint(str(explain(error))), _PUT_RIGHT)


def _without_hint(text: str) -> str:
    """Who reads this is with the doctor already."""
    return text.partition("; 'trimtuner doctor")[0]


class _Things:
    def __init__(self, ec2: Ec2, work: Workload, settings: AwsSettings) -> None:
        self._ec2, self._settings = ec2, settings
        cloud = work.cloud
        self._types = [] if cloud is None else [*cloud.rented_types]

    def looks(self) -> dict[str, Callable[[], Iterator[Check]]]:
        return {
            "vm types": self._check_types,
            "image": self._check_image,
            "network": self._check_network,
            "security_groups": self._check_groups,
            "key": self._check_key,
            "instance_profile": self._check_profile,
        }

    def _ask(self, service: str, call: str, request: Mapping[str, object]):  # type: ignore[no-untyped-def]
        return self._ec2.ask(service, call, request)

    def _check_types(self) -> Iterator[Check]:
        filters = [{"Name": "instance-type", "Values": self._types}]
        offered = self._ask("ec2", "describe_instance_type_offerings", {"Filters": filters})["InstanceTypeOfferings"]
        missing = [name for name in self._types if name not in {str(one["InstanceType"]) for one in offered}]
        if missing:
            advice = "offer other VM types under cloud, or choose another engine.region"
            yield failed("vm types", f"{', '.join(missing)} cannot be rented in {self._ec2.region}", advice)
        else:
            yield fine("vm types", f"{', '.join(self._types)} can be rented in {self._ec2.region}")

    def _check_image(self) -> Iterator[Check]:
        image = self._settings.image
        if image is None:
            for name in self._types[:1]:
                yield fine("image", f"the newest Amazon Linux 2023, now {self._ec2.newest_image(name)}")
            return
        found = self._ask("ec2", "describe_images", {"ImageIds": [image]})["Images"]
        if not found:
            yield failed("image", f"{image} is not in {self._ec2.region}", "images have other names in each region")
            return
        made_for = str(found[0]["Architecture"])
        wrong = [name for name in self._types if made_for not in self._ec2.architectures(name)]
        if wrong:
            advice = "offer VM types of one architecture, with an image for it"
            yield failed("image", f"{image} is made for {made_for}, which {', '.join(wrong)} cannot run", advice)
        else:
            yield fine("image", f"{image} ({made_for})")

    def _check_key(self) -> Iterator[Check]:
        settings = self._settings
        if settings.key_file is not None:
            try:
                read_login_key(settings.key_file)
                yield fine("key_file", str(settings.key_file))
            except InputError as error:
                yield failed("key_file", str(error), "give the private key of the key pair, without a passphrase")
        if settings.key_name is not None:
            self._ask("ec2", "describe_key_pairs", {"KeyNames": [settings.key_name]})
            yield fine("key_name", settings.key_name)

    def _check_network(self) -> Iterator[Check]:
        subnet, is_public = self._settings.subnet, self._settings.connect_to == "public"
        if subnet is None:
            filters = [{"Name": "is-default", "Values": ["true"]}]
            if self._ask("ec2", "describe_vpcs", {"Filters": filters})["Vpcs"]:
                yield fine("subnet", "one of the account's default network")
            else:
                yield failed("subnet", "the account has no default network here", "name one under engine.subnet")
            return
        (found,) = self._ask("ec2", "describe_subnets", {"SubnetIds": [subnet]})["Subnets"]
        if is_public and not found.get("MapPublicIpOnLaunch"):
            advice = "let the subnet give public addresses, or write connect_to: private"
            yield warning("subnet", f"{subnet} gives its machines no public address to log in at", advice)
        else:
            yield fine("subnet", f"{subnet} ({found['CidrBlock']})")

    def _check_groups(self) -> Iterator[Check]:
        groups = self._settings.security_groups
        if not groups:
            advice = "name one that lets SSH (port 22) in from this machine under engine.security_groups"
            yield warning("security_groups", "the default group lets nobody in from outside", advice)
            return
        found = self._ask("ec2", "describe_security_groups", {"GroupIds": list(groups)})["SecurityGroups"]
        sources = sorted({source for group in found for source in _let_in(group)})
        if not sources:
            advice = "add a rule for TCP port 22 from this machine's address"
            yield failed("security_groups", f"{', '.join(groups)} let no SSH in", advice)
        else:
            yield fine("security_groups", f"{', '.join(groups)} let SSH in from {', '.join(sources)}")

    def _check_profile(self) -> Iterator[Check]:
        name = self._settings.instance_profile
        if name is None:
            return
        found = self._ask("iam", "get_instance_profile", {"InstanceProfileName": name})["InstanceProfile"]
        roles = ", ".join(str(role["RoleName"]) for role in found["Roles"]) or "no role"
        yield fine("instance_profile", f"{name}, with {roles}")


def _let_in(group) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """From where a security group lets SSH in."""
    for rule in group["IpPermissions"]:
        is_all = rule["IpProtocol"] == "-1"
        if is_all or (rule["IpProtocol"] == "tcp" and rule["FromPort"] <= _SSH <= rule["ToPort"]):
            yield from (str(one["CidrIp"]) for one in rule.get("IpRanges", []))
            yield from (str(one["CidrIpv6"]) for one in rule.get("Ipv6Ranges", []))
            yield from (str(one["GroupId"]) for one in rule.get("UserIdGroupPairs", []))
