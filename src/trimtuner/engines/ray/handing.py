"""Handing work to Ray: once, with no second try, and without holding up an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group

from trimtuner.engines.ray.orders import Demand

_ONCE = {"max_retries": 0, "retry_exceptions": False}

Answer = TypeVar("Answer")


def submit(function: Callable[..., None], demand: Demand, strategy: object, *arguments: object) -> ray.ObjectRef[None]:
    """Hand a function to Ray, for one try; it gets the actor and the arguments."""
    demand = dict(demand)
    options = {
        **_ONCE,
        "num_cpus": demand.pop("CPU", 0),
        "num_gpus": demand.pop("GPU", 0),
        "resources": demand,
        "scheduling_strategy": strategy or "DEFAULT",
        "name": f"trimtuner {function.__name__}",
    }
    task: ray.ObjectRef[None] = (
        ray.remote(function).options(**options).remote(ray.get_runtime_context().current_actor, *arguments)
    )
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
