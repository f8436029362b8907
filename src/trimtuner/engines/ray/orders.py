"""What driver, actor and nodes tell each other: plain data."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypedDict

import ray
from ray.actor import ActorHandle

from trimtuner.engines.protocol import Launch
from trimtuner.engines.supervising.devices import gpus_of
from trimtuner.engines.supervising.files import EndRecord, LaunchRecord

# Ray knows the class of an actor; who only has its name knows nothing of it.
Handle: TypeAlias = "ActorHandle[object]"
Key: TypeAlias = tuple[int, int]  # trial, attempt
Demand: TypeAlias = dict[str, float]  # of one machine, in Ray's words

ACCEPTED, LEAVING, LACKS_PARCEL = "accepted", "leaving", "lacks parcel"  # what an actor answers to an order


class AttemptOrder(TypedDict):
    """An attempt, as the driver gives it to the actor."""

    trial: int
    attempt: int
    record: LaunchRecord
    added: dict[str, str]  # secrets and tags
    demands: list[Demand]  # of the workers, then of the helpers
    workers: int
    ranks: int  # tasks that run the command: one on the head, or one on each machine
    port: int  # the first of those on which the nodes may meet
    parcel: str | None  # the digest of the working directory, where that is sent
    wait: float  # seconds for machines that no node offers
    key: bytes  # with which the supervisor seals what it tells


class Work(TypedDict):
    """An attempt, as the actor gives it to the node that runs it."""

    record: LaunchRecord
    added: dict[str, str]
    place: str  # the name of its folder on the node
    digest: str
    key: bytes
    parcel: list[ray.ObjectRef[bytes]]  # in a list, so that Ray does not fetch it before we ask; or none


class Position(NamedTuple):
    """How far the driver has heard."""

    reports: int = 0
    generation: int = -1  # of the log, which begins anew when its middle is cut
    log: int = 0


class Told(NamedTuple):
    """What the actor tells a driver, from its position on."""

    reports_from: int
    reports: bytes
    generation: int
    log_from: int
    log: bytes
    ran: float | None  # seconds since the command began, until now
    end: EndRecord | None
    node_logs: dict[int, bytes]  # of other nodes than the head, with the end


def demands_of(launch: Launch) -> list[Demand]:
    """What the attempt needs of a cluster: each worker and helper a machine that offers its VM type."""
    machines = launch.machines
    if machines is None:
        return [{"CPU": float(launch.vcpus or 1)}]
    worker = {machines.vm_type: 1.0, **({"GPU": float(machines.gpus)} if machines.gpus else {})}
    return [dict(worker) for _ in range(machines.count)] + [{helper: 1.0} for helper in machines.helpers]


def demands_here(launch: Launch, cores: int, gpus: int) -> list[Demand]:
    """What it needs of a cluster that is this machine alone: cores and GPUs, as its machines have or there are."""
    wanted = min(gpus_of(launch), gpus)
    return [{"CPU": float(min(launch.vcpus or 1, cores)), **({"GPU": float(wanted)} if wanted else {})}]
