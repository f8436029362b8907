"""The engines that there are: the one table to which a new one is added, beside a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.local.settings import LocalSettings
from trimtuner.engines.protocol import Settings
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.replay.settings import ReplaySettings
from trimtuner.engines.slurm.settings import SlurmSettings
from trimtuner.keys.kinds import Json


@dataclass(frozen=True)
class KnownEngine:
    """An engine as a job file names it: what it is, and the class that declares its keys and makes its checks."""

    is_what: str
    settings: type[Settings]
    example: dict[str, Json]  # what a job file may write beside the type
    modules: tuple[str, ...] = ()  # that ``pip install 'trimtuner[TYPE]'`` brings
    runs_commands: bool = True


DEFAULT_ENGINE = "local"
ENGINES: Mapping[str, KnownEngine] = {
    DEFAULT_ENGINE: KnownEngine("this machine", LocalSettings, {"parallel": 2}),
    "ray": KnownEngine("a Ray cluster", RaySettings, {"address": "auto", "parallel": 8}, ("ray",)),
    "aws": KnownEngine(
        "machines rented on EC2 for each trial",
        AwsSettings,
        {"region": "eu-west-1", "security_groups": ["sg-0abc1234"], "parallel": 8},
        ("boto3", "asyncssh"),
    ),
    "slurm": KnownEngine("a Slurm cluster", SlurmSettings, {"partition": "main", "parallel": 8}),
    "replay": KnownEngine(
        "a rehearsal from a table of measurements", ReplaySettings, {"table": "digits"}, runs_commands=False
    ),
}
