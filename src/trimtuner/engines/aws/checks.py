"""AWS: whether the account, the permissions and the things that a job names are as trials need them.

Nothing is rented: what spends is only asked for as a dry run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from botocore.exceptions import BotoCoreError, ClientError

from trimtuner.engines.aws.checks_named import check_things
from trimtuner.engines.aws.ec2 import Ec2, usual_region
from trimtuner.engines.aws.refusals import Refused, code_of, explain
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.checks import Check, Workload, failed, fine, unknown, warning
from trimtuner.engines.protocol import EngineTrouble
from trimtuner.errors import TrimTunerError
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.vms import Market

_SKEW_REFUSED, _SKEW_NOTED = 300.0, 30.0  # seconds; AWS refuses what is signed by a clock that is further off


def checks_of(work: Workload, settings: AwsSettings) -> Iterator[Check]:
    """One after the other; without credentials, there is nothing more to see."""
    region = settings.region or usual_region()
    if region is None:
        yield failed("region", "none is set", "write engine.region, or set AWS_DEFAULT_REGION")
        return
    yield fine("region", region)
    ec2 = Ec2(region)
    credentials = _check_credentials(ec2)
    yield credentials
    if credentials.outcome == "failed":
        return
    yield _check_clock(ec2)
    yield from check_things(ec2, work, settings)
    yield from _check_permissions(ec2, work, settings)
    yield from _check_quotas(ec2, work)


def _check_credentials(ec2: Ec2) -> Check:
    try:
        found = ec2.ask("sts", "get_caller_identity", {})
    except (ClientError, BotoCoreError) as error:
        return failed("credentials", str(explain(error)), "run 'aws configure' or 'aws sso login'")
    return fine("credentials", f"account {found['Account']}, {found['Arn']}")


def _check_clock(ec2: Ec2) -> Check:
    skew = ec2.clock.now() - time.time()
    text = f"within {abs(skew):.0f} s of AWS's"
    if abs(skew) > _SKEW_REFUSED:
        return failed("clock", text, "set this machine's clock; AWS refuses requests that are dated so far off")
    if abs(skew) > _SKEW_NOTED:
        return warning("clock", text, "set this machine's clock")
    return fine("clock", text)


def _check_permissions(ec2: Ec2, work: Workload, settings: AwsSettings) -> Iterator[Check]:
    for look in _looks(work, settings):
        yield _check_dry_run(ec2, look, {})
    yield _check_launch(ec2, work, settings)
    # No machine is there to try it on, and the policy allows it for ours alone; so a refusal says little.
    for call, request in _ENDING.items():
        found = _check_dry_run(ec2, call, request)
        is_refused = found.outcome == "failed"
        yield unknown(found.name, "can be known only with a machine of ours", _POLICY) if is_refused else found


def _looks(work: Workload, settings: AwsSettings) -> list[str]:
    uses_spot = work.cloud is not None and "spot" in work.cloud.markets
    wanted = {
        "describe_instances": True,
        "describe_spot_instance_requests": uses_spot,
        "describe_regions": not settings.look_in,
    }
    return [look for look, is_wanted in wanted.items() if is_wanted]


_POLICY = "allow it as 'trimtuner doctor JOB --policy' says"
_NOBODY = "i-00000000000000000"
_ENDING: Mapping[str, Mapping[str, object]] = {
    "terminate_instances": {"InstanceIds": [_NOBODY]},
    "create_tags": {"Resources": [_NOBODY], "Tags": [{"Key": "trimtuner:stop", "Value": "yes"}]},
}


def _check_launch(ec2: Ec2, work: Workload, settings: AwsSettings) -> Check:
    """The very request that a trial would make, as a dry run."""
    from trimtuner.engines.aws.keys import KeyPair
    from trimtuner.engines.aws.naming import AttemptName
    from trimtuner.engines.aws.order import RentalOrder
    from trimtuner.engines.protocol import Machines

    cloud = work.cloud
    if cloud is None:
        return failed("run_instances", "the job names no machines", "add a section 'cloud' to it")
    first = cloud.clusters[0]
    machines = Machines(first.vm_type, first.vm_count, first.market, price_per_hour=1.0)
    order = RentalOrder(
        AttemptName(ec2.region, "doctor", 0, 0), machines, settings, KeyPair("", "none"), None, work.limit
    )
    try:
        image = settings.image or ec2.newest_image(first.vm_type)
        root_device = None if settings.disk_gib is None else ec2.root_device(image)
    except (TrimTunerError, Refused) as error:
        return unknown("run_instances", f"there is no image to try it with ({error})")
    return _check_dry_run(ec2, "run_instances", order.request(order.groups[0], 0, image, root_device))


def _check_dry_run(ec2: Ec2, call: str, request: Mapping[str, object]) -> Check:
    try:
        ec2.ask("ec2", call, {**request, "DryRun": True})
    except ClientError as error:
        if code_of(error) == "DryRunOperation":
            return fine(call, "allowed")
        if code_of(error).startswith("InvalidInstanceID"):
            return fine(call, "allowed, as far as it can be seen without a machine")
        return _refused(call, explain(error))
    except BotoCoreError as error:
        return _refused(call, explain(error))
    return fine(call, "allowed")


def _refused(call: str, why: Refused | EngineTrouble) -> Check:
    if isinstance(why, Refused):
        return warning(call, f"allowed, but there are no such machines now ({why})", "wait, or offer other VM types")
    return failed(call, str(why).partition("; 'trimtuner doctor")[0], _POLICY)


# How many vCPUs the account may use at once, against what the job may ask for


# AWS's codes of the quotas, by the first letters of a VM type: Service Quotas, "Amazon EC2".
_STANDARD = tuple("acdhimrtz")
_CODES: dict[tuple[str, Market], str] = {
    ("standard", "on_demand"): "L-1216C47A",
    ("standard", "spot"): "L-34B43A08",
    ("g", "on_demand"): "L-DB2E81BA",
    ("g", "spot"): "L-3819A6DF",
    ("p", "on_demand"): "L-417A185B",
    ("p", "spot"): "L-7212CCBC",
}


def _check_quotas(ec2: Ec2, work: Workload) -> Iterator[Check]:
    """One check for each quota that the job may use."""
    for (family, market), most in ({} if work.cloud is None else _most_vcpus(work.cloud)).items():
        yield _check_quota(ec2, family, market, most * work.parallel)


def _most_vcpus(cloud: Cloud) -> dict[tuple[str, Market], int]:
    """Of one cluster, in each family and market. Helpers are not counted: their vCPUs are not known here."""
    most: dict[tuple[str, Market], int] = {}
    for cluster in cloud.clusters:
        key = (_family(cluster.vm_type), cluster.market)
        most[key] = max(most.get(key, 0), cloud.vms[cluster.vm_type].vcpus * cluster.vm_count)
    return most


def _family(vm_type: str) -> str:
    letters = vm_type.rstrip("0123456789").partition(".")[0]
    if letters.startswith("vt"):
        return "g"
    return "standard" if letters.startswith(_STANDARD) else letters[:1]


def _check_quota(ec2: Ec2, family: str, market: Market, wanted: int) -> Check:
    name, code = f"quota {family} {market}", _CODES.get((family, market))
    if code is None:
        return unknown(name, f"the job may ask for {wanted} vCPUs at once; the quota of this family is not known here")
    try:
        answer = ec2.ask("service-quotas", "get_service_quota", {"ServiceCode": "ec2", "QuotaCode": code})
        quota = answer["Quota"]
        most = float(str(quota["Value"])) if isinstance(quota, dict) else 0.0
    except (ClientError, BotoCoreError, KeyError) as error:
        reason = " ".join(str(error).split())[:80]
        return unknown(name, f"the job may ask for {wanted} vCPUs at once; AWS does not tell the quota ({reason})")
    text = f"the job may ask for {wanted} vCPUs at once, the account has {most:.0f} ({code})"
    if most >= wanted:
        return fine(name, text)
    return failed(name, text, "lower engine.parallel, offer smaller clusters, or ask AWS for a higher quota")
