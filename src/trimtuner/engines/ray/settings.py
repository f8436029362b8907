"""The Ray engine, as a job file asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.checks import Check, Workload
from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine, EngineTrouble
from trimtuner.engines.ray.surroundings import prepare_to_join, prepare_to_start
from trimtuner.engines.shared_keys import wait_for_machines
from trimtuner.keys.declared import optional
from trimtuner.keys.kinds import BOOLEAN, text_like

_ADDRESS = text_like(
    re.compile(r"auto|(ray://)?[A-Za-z0-9.\[\]:-]{1,255}"),
    "the address of a Ray cluster, such as auto or 10.0.0.7:6379",
)


@dataclass(frozen=True)
class RaySettings:
    """Trials on a cluster. A machine of it offers its VM type as a custom resource of that name, 1 for each machine."""

    address: str | None = optional(
        _ADDRESS,
        "The head of the Ray cluster, `auto` for the one of this machine. Without it a cluster is started here.",
        examples=["auto", "10.0.0.7:6379"],
    )
    copy: bool | None = optional(
        BOOLEAN,
        "Whether the working directory is copied to the nodes. Without it, where an address is given; `false` suits a "
        "shared file system.",
    )
    wait: float = wait_for_machines()  # seconds, for what no node offers now, such as an autoscaler's

    @property
    def copies(self) -> bool:
        """Whether the working directory is copied to the nodes."""
        return self.address is not None if self.copy is None else self.copy

    @property
    def ended_within_seconds(self) -> float:
        """The supervisor's grace: machines are not rented by us, so what is charged is the command's time."""
        return ENDED_WITHIN_SECONDS

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """The engine; an EngineTrouble where Ray is not installed. The cluster is looked for when it is needed."""
        if self.address is None:
            prepare_to_start()
        else:
            prepare_to_join()
        try:
            from trimtuner.engines.ray.engine import RayEngine
        except ModuleNotFoundError as error:
            raise EngineTrouble(f"engine type ray needs {error.name!r}; pip install 'trimtuner[ray]'") from None
        return RayEngine(folder, secret, self)

    def checks(self, work: Workload) -> Iterator[Check]:
        """Whether the cluster can be joined, and which of the job's machines it offers."""
        from trimtuner.engines.ray.checks import checks_of

        return checks_of(work, self)
