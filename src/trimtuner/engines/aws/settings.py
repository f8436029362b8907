"""The AWS engine, as a job file asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine, EngineTrouble

BILLED_AT_LEAST_SECONDS = 60.0  # Linux instances, on demand and spot; by the second after that
_TERMINATED_WITHIN_SECONDS = 120.0  # of the command's end: noticed, the rest of its output read, terminated
_MINUTE = 60.0  # the shutdown timer counts whole minutes


@dataclass(frozen=True)
class AwsSettings:
    """Machines rented on EC2 for each trial. What is None is the account's default."""

    region: str | None = None
    image: str | None = None  # an AMI; None: the newest Amazon Linux 2023
    user: str = "ec2-user"
    key_name: str | None = None  # an EC2 key pair, with its private key in key_file
    key_file: Path | None = None  # None: a key of the study's own, made at its start
    security_groups: tuple[str, ...] = ()
    subnet: str | None = None
    instance_profile: str | None = None
    disk_gib: int | None = None
    connect_to: Literal["public", "private"] = "public"  # address
    ssh_config: Path | None = None  # as of OpenSSH: ports, jump hosts
    setup: tuple[str, ...] = ()  # a command that is run once on every machine, in the copied working directory
    exclude: tuple[str, ...] = ()  # patterns of what is not copied
    wait: float = 600.0  # seconds that a launch is tried again when there is no capacity, or the quota is used up
    ready_within: float = 600.0  # seconds from the launch until the command runs: boot, copy and setup
    look_in: tuple[str, ...] = ()  # regions in which what still runs is looked for; empty: all that are enabled
    billed_at_least: float = BILLED_AT_LEAST_SECONDS

    @property
    def ended_within_seconds(self) -> float:
        """Boot and setup before the command, its grace, and the way to terminated machines; all of it is charged."""
        return self.ready_within + ENDED_WITHIN_SECONDS + _TERMINATED_WITHIN_SECONDS + _MINUTE

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """The engine; an EngineTrouble where what it needs is not installed."""
        try:
            from trimtuner.engines.aws.engine import AwsEngine
        except ModuleNotFoundError as error:
            raise EngineTrouble(f"engine type aws needs {error.name!r}; pip install 'trimtuner[aws]'") from None
        return AwsEngine(folder, secret, self)
