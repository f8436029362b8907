"""The Ray engine, as a job file asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine, EngineTrouble
from trimtuner.engines.ray.surroundings import prepare_to_join, prepare_to_start


@dataclass(frozen=True)
class RaySettings:
    """Trials on a cluster. A machine of it offers its VM type as a custom resource of that name, 1 for each machine."""

    address: str | None = None  # of a running cluster, "auto" for the one of this machine; None: start one here
    copy: bool | None = None  # whether the working directory is copied to the nodes; None: where an address is given
    wait: float = 600.0  # seconds for machines that no node of the cluster offers now, such as an autoscaler's

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
