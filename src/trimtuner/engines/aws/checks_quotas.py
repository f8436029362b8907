"""How many vCPUs an account may use at once, against what the job may ask for."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import BotoCoreError, ClientError

from trimtuner.engines.aws.ec2 import Ec2
from trimtuner.engines.checks import Check, Workload, failed, fine, unknown
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.vms import Market

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


def check_quotas(ec2: Ec2, work: Workload) -> Iterator[Check]:
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
