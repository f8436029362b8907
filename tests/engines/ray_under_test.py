"""A Ray cluster of several nodes on this machine, made by Ray's own utility, and the engine on it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import ray
from ray._private.node import Node
from ray.cluster_utils import Cluster
from under_test import SECRET, UnderTest

from trimtuner.engines.protocol import Engine, EngineTrouble
from trimtuner.engines.ray.engine import RayEngine
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.ray.surroundings import TOKEN_FILE
from trimtuner.engines.supervising import processes

OBJECT_STORE_BYTES = 80 * 1024 * 1024
_PATIENCE_SECONDS = 240.0  # that of ``waiting``, which a driver in another process does not find


@dataclass
class SmallCluster:
    """A head without machines to offer, and nodes that can be killed."""

    cluster: Cluster
    folder: Path
    orphans: list[processes.Process] = field(default_factory=list)  # of killed nodes

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add_node(self, **offers: float) -> Node:
        return self.add_node_with_gpus(0, **offers)

    def add_node_with_gpus(self, gpus: int, **offers: float) -> Node:
        """Of which Ray need not find any."""
        node = self.cluster.add_node(
            num_cpus=2,
            num_gpus=gpus,
            resources=offers,
            object_store_memory=OBJECT_STORE_BYTES,
            include_log_monitor=False,
        )
        self.cluster.wait_for_nodes()
        return node

    def remove(self, node: Node) -> None:
        if node in self.cluster.worker_nodes:
            self.cluster.remove_node(node, allow_graceful=False)

    def bury_orphans(self) -> None:
        for process in self.orphans:
            processes.send(process, signal.SIGKILL)
        self.orphans.clear()

    def settings(self, **changed: object) -> RaySettings:
        return RaySettings(**{"address": self.address, "wait": 60.0, **changed})

    def engine(self, folder: Path, **changed: object) -> Engine:
        return patient(RayEngine(folder, SECRET, self.settings(**changed)))


@contextmanager
def small_cluster() -> Iterator[SmallCluster]:
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ[TOKEN_FILE] = str(token)
    os.environ["RAY_TMPDIR"] = str(folder)
    logging.getLogger("ray").setLevel(logging.ERROR)
    head = {
        "num_cpus": 0,
        "resources": {"helper": 1},
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
        "include_log_monitor": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    small = SmallCluster(cluster, folder)
    try:
        small.add_node(small=4, large=1)
        small.add_node(small=4)
        yield small
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def ray_engine(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    cluster: SmallCluster = request.getfixturevalue("ray_cluster")
    argument = json.dumps({"folder": str(path / "studies"), "address": cluster.address})
    return UnderTest("ray_under_test:make", argument)


def make(argument: dict[str, str]) -> Engine:
    return patient(RayEngine(Path(argument["folder"]), SECRET, RaySettings(address=argument["address"])))


def patient(engine: RayEngine) -> Engine:
    """The engine; when the cluster does not answer for a while it is asked again, as a driver would."""
    return cast("Engine", _Patient(engine))


@dataclass(frozen=True)
class _Patient:
    engine: RayEngine

    def __getattr__(self, name: str) -> Callable[..., object]:
        return partial(_answer_of, getattr(self.engine, name))


def _answer_of(ask: Callable[..., object], *arguments: object) -> object:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return ask(*arguments)
        except EngineTrouble:
            if time.monotonic() > deadline:
                raise
