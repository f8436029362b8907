"""Ray's nodes: what they could offer an attempt, how work is handed to them for one try, and what was left on them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray import node
from trimtuner.engines.ray.orders import Demand, Key
from trimtuner.engines.supervising.mirror import News

_KNOCK_SECONDS = 3.0
_OWN = ("node:", "memory", "object_store_memory", "accelerator_type:")  # resources that Ray makes up itself

Answer = TypeVar("Answer")


class Node(NamedTuple):
    """A node of the cluster, where its daemon listens, and what it offers."""

    identity: str
    address: str
    port: int
    offers: dict[str, float]


def living_nodes() -> list[Node]:
    """The nodes that the cluster takes for alive."""
    return [
        Node(one["NodeID"], one["NodeManagerAddress"], int(one["NodeManagerPort"]), dict(one["Resources"]))
        for one in ray.nodes()  # type: ignore[no-untyped-call]
        if one["Alive"]
    ]


async def is_reachable(node: Node) -> bool:
    """Whether the node's daemon takes a call."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(node.address, node.port), _KNOCK_SECONDS)
    except (TimeoutError, OSError):
        return False
    writer.close()
    return True


def what_is_lacking(demands: Sequence[Demand], nodes: Sequence[Node]) -> str | None:
    """What no waiting would bring, in words; None when the nodes, if they were free, would do."""
    for demand, count in Counter(tuple(sorted(one.items())) for one in demands).items():
        able = sum(all(one.offers.get(name, 0.0) >= amount for name, amount in demand) for one in nodes)
        if able < count:
            needed = " + ".join(f"{amount:g} {name}" for name, amount in demand)
            return f"it needs {count} x {needed} and {able} nodes offer that; {_offer(nodes)}"
    if len(demands) > 1 and len(nodes) < len(demands):
        return f"it needs {len(demands)} machines, and the cluster has {len(nodes)} nodes"
    return None


def submit(function: Callable[..., Answer], demand: Demand, strategy: object, *given: object) -> ray.ObjectRef[Answer]:
    """Hand a function to Ray, for one try."""
    demand = dict(demand)
    options = {
        "max_retries": 0,
        "retry_exceptions": False,
        "num_cpus": demand.pop("CPU", 0),
        "num_gpus": demand.pop("GPU", 0),
        "resources": demand,
        "scheduling_strategy": strategy or "DEFAULT",
        "name": f"trimtuner {function.__name__}",
    }
    task: ray.ObjectRef[Answer] = ray.remote(function).options(**options).remote(*given)
    return task


async def reserve(demands: list[Demand]) -> PlacementGroup | None:
    """Machines side by side, no two the same; a single one needs no reservation."""
    if len(demands) == 1:
        return None
    return await apart(lambda: placement_group([dict(one) for one in demands], strategy="STRICT_SPREAD"))


async def apart(ask: Callable[[], Answer]) -> Answer:
    """What Ray answers to something that blocks, while the others go on."""
    return await asyncio.to_thread(ask)


async def error_of(task: ray.ObjectRef[None]) -> Exception | None:
    """How the task failed, when it is over; None where it did not."""
    try:
        await task
    except RayError as error:
        return error
    return None


class Rescue:
    """A look on every node of the cluster, under way."""

    def __init__(self, study: str, key: Key, seal_key: bytes) -> None:
        there = [NodeAffinitySchedulingStrategy(one.identity, soft=False) for one in living_nodes()]
        self._looks = [submit(node.rescue, {}, one, study, key, seal_key) for one in there]

    def is_over(self) -> bool:
        """Whether every node has answered, or is gone."""
        if not self._looks:
            return True
        ready, _ = ray.wait(self._looks, num_returns=len(self._looks), timeout=0)
        return len(ready) == len(self._looks)

    def found(self) -> News | None:
        """All that the attempt told, if one of the nodes had it."""
        return best_of([news for look in self._looks for news in _answer(look)])


def rescue_here(study: str, key: Key, seal_key: bytes) -> News | None:
    """The same on this machine, where that was the whole cluster and is gone."""
    return best_of(node.rescue(study, key, seal_key))


def best_of(found: list[News]) -> News | None:
    """Who looked while another cleared away has less."""
    return max(found, key=lambda one: (len(one.reports), one.end["seconds"] if one.end else 0.0), default=None)


def _offer(nodes: Sequence[Node]) -> str:
    offered = Counter(name for node in nodes for name in node.offers if not name.startswith(_OWN))
    listed = ", ".join(f"{name} on {count}" for name, count in sorted(offered.items())) or "nothing"
    return f"the cluster offers {listed} (label a node: ray start --resources='{{\"m5.large\": 1}}')"


def _answer(look: ray.ObjectRef[list[News]]) -> list[News]:
    try:
        return ray.get(look)
    except RayTaskError as error:
        raise EngineTrouble(f"what lost its actor could not be ended: {error.cause}") from None
    except RayError:
        return []  # the node was lost meanwhile, and everything on it
