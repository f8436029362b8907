"""What an attempt has left on the nodes when its actor is gone: ended there, and fetched."""

from __future__ import annotations

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray import node
from trimtuner.engines.ray.orders import Key
from trimtuner.engines.ray.scheduling import living_nodes, submit
from trimtuner.engines.supervising.follow import News


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
    return max(found, key=lambda one: (len(one.reports), _seconds(one)), default=None)


def _seconds(news: News) -> float:
    return 0.0 if news.end is None else news.end["seconds"]


def _answer(look: ray.ObjectRef[list[News]]) -> list[News]:
    try:
        return ray.get(look)
    except RayTaskError as error:
        raise EngineTrouble(f"what lost its actor could not be ended: {error.cause}") from None
    except RayError:
        return []  # the node was lost meanwhile, and everything on it
