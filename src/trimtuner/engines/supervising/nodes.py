"""What the processes of a trial are told, that starts on several machines: who each is, and where the others are.

torchrun and torch.distributed read MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and LOCAL_RANK, TensorFlow reads
TF_CONFIG; the rest is ours. Supervisors read this file, so it imports little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trimtuner.engines.supervising.files import LaunchRecord, NodeRecord

WORKER, HELPER = "worker", "helper"

_LATER = re.compile("\0([a-z_]+)\0")  # as protocol.later writes it
_CHECKPOINT, _REPEAT = "checkpoint", "repeat"


class Meeting(NamedTuple):
    """Where the nodes of a trial find each other. Node ``rank`` may listen on ``port + rank``, wherever it is."""

    workers: tuple[str, ...]  # their addresses, that of the head first
    helpers: tuple[str, ...]
    port: int

    def node(self, rank: int, cores: Sequence[int] = ()) -> NodeRecord:
        """What the process of this rank is told: workers come first, then helpers."""
        values = {
            "node_rank": str(rank),
            "node_role": WORKER if rank < len(self.workers) else HELPER,
            "world_size": str(len(self.workers) + len(self.helpers)),
            "master_address": self.workers[0],
            "master_port": str(self.port),
        }
        return NodeRecord(rank=rank, values=values, environment=self._environment(values), cores=list(cores))

    def _environment(self, values: Mapping[str, str]) -> dict[str, str]:
        return {
            "MASTER_ADDR": values["master_address"],
            "MASTER_PORT": values["master_port"],
            "RANK": values["node_rank"],
            "WORLD_SIZE": values["world_size"],
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "TF_CONFIG": self._tf_config(int(values["node_rank"])),
            "TRIMTUNER_RANK": values["node_rank"],
            "TRIMTUNER_ROLE": values["node_role"],
            "TRIMTUNER_PORT": values["master_port"],
            **addresses(self.workers, self.helpers),
        }

    def _tf_config(self, rank: int) -> str:
        """The workers, the first of which leads, and helpers as parameter servers."""
        places = [f"{host}:{self.port + one}" for one, host in enumerate((*self.workers, *self.helpers))]
        count = len(self.workers)
        servers = {"ps": places[count:]} if self.helpers else {}
        role, index = ("worker", rank) if rank < count else ("ps", rank - count)
        cluster = {"worker": places[:count], **servers}
        return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})


def at_port(nodes: Sequence[NodeRecord], port: int) -> list[NodeRecord]:
    """The same nodes, all on one machine, meeting at another port."""
    places = [node["values"]["master_address"] for node in nodes]
    workers = sum(node["values"]["node_role"] == WORKER for node in nodes)
    meeting = Meeting(tuple(places[:workers]), tuple(places[workers:]), port)
    return [meeting.node(node["rank"], node["cores"]) for node in nodes]


def addresses(workers: Sequence[str], helpers: Sequence[str]) -> dict[str, str]:
    """What every command is told of the machines of its trial."""
    return {
        "TRIMTUNER_HEAD": workers[0],
        "TRIMTUNER_WORKERS": ",".join(workers),
        "TRIMTUNER_HELPERS": ",".join(helpers),
    }


def head_alone(cores: Sequence[int] = ()) -> NodeRecord:
    """The only node of a trial that starts on its head: it is told nothing of others."""
    return NodeRecord(rank=0, values={}, environment={}, cores=list(cores))


def command_of(launch: LaunchRecord, node: NodeRecord) -> list[str]:
    """The words to run on the node."""
    known = {**node["values"], **_kept(_CHECKPOINT, launch), _REPEAT: str(launch["repeat"])}
    return [_LATER.sub(lambda name: known[name[1]], word) for word in launch["command"]]


def environment_of(launch: LaunchRecord, node: NodeRecord) -> dict[str, str]:
    """What is added to the environment on the node; what the job sets itself goes before what we tell."""
    told = {**_kept("TRIMTUNER_CHECKPOINT", launch), "TRIMTUNER_REPEAT": str(launch["repeat"])}
    return {**node["environment"], **told, **launch["environment"]}


def as_written(words: Iterable[str]) -> tuple[str, ...]:
    """A command for a person: what is known only where it starts stands in braces, as in the job file."""
    return tuple(_LATER.sub(r"{\1}", word) for word in words)


def _kept(name: str, launch: LaunchRecord) -> dict[str, str]:
    return {} if launch["checkpoint"] is None else {name: launch["checkpoint"]}
