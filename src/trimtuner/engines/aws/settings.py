"""The AWS engine, as a job file asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtuner.engines.checks import Check, Workload, failed
from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine, EngineTrouble
from trimtuner.engines.shared_keys import wait_for_machines
from trimtuner.keys.declared import key, optional
from trimtuner.keys.kinds import PATH, list_of, one_of, one_or_more, text, text_like, whole_number, word
from trimtuner.keys.quantities import DURATION, MEMORY

BILLED_AT_LEAST_SECONDS = 60.0  # Linux instances, on demand and spot; by the second after that
_TERMINATED_WITHIN_SECONDS = 120.0  # of the command's end: noticed, the rest of its output read, terminated
_MINUTE = 60.0  # the shutdown timer counts whole minutes
_CONNECTIONS: tuple[Literal["public", "private"], ...] = ("public", "private")
# What AWS calls its things: letters, digits and a few signs. A text that is none of these is a mistake, or worse.
_NAME = text_like(
    re.compile(r"[A-Za-z0-9][A-Za-z0-9+=,.@_-]{0,127}"),
    "a name as AWS gives it, such as eu-west-1, ami-0abc1234 or sg-0abc1234",
)


@dataclass(frozen=True)
class AwsSettings:
    """Machines rented on EC2 for each trial. What is None is the account's default."""

    region: str | None = optional(
        _NAME, "Where machines are rented. Without it, as your AWS configuration says.", examples=["eu-west-1"]
    )
    image: str | None = optional(
        _NAME, "The AMI to boot. Without it, the newest Amazon Linux 2023 for the VM type.", examples=["ami-0abc1234"]
    )
    user: str = key(_NAME, "The user to log in as on the image.", default="ec2-user", examples=["ubuntu"])
    key_name: str | None = optional(
        text("the name of a key pair"),
        "An EC2 key pair; it needs `key_file`. Without it, a key of the study's own.",
        examples=["my-key"],
        needs=("key_file", "it needs 'key_file', its private key"),
    )
    key_file: Path | None = optional(
        PATH, "The private key of `key_name`, from the folder of the job file.", examples=["~/.ssh/my-key.pem"]
    )
    security_groups: tuple[str, ...] = key(
        one_or_more(_NAME, "a list such as [sg-0abc1234]"),
        "Security groups by id, one or a list; they must let SSH in from here. Without them, the account's default.",
        default=(),
        examples=[["sg-0abc1234"]],
    )
    subnet: str | None = optional(
        _NAME, "A subnet by id. Without it, the account's default.", examples=["subnet-0abc1234"]
    )
    instance_profile: str | None = optional(
        _NAME,
        "An instance profile by name, for what the command may do on AWS. Without it, none.",
        examples=["training"],
    )
    disk_gib: int | None = optional(
        whole_number("a size in GiB", 1, 65536),
        "The size of the disk in GiB. Without it, as in the image.",
        examples=[100],
    )
    connect_to: Literal["public", "private"] = key(
        one_of(_CONNECTIONS), "Which address of a machine is called.", default="public"
    )
    ssh_config: Path | None = optional(
        PATH,
        "A file as OpenSSH writes it, for ports and jump hosts; from the folder of the job file.",
        examples=["ssh_config"],
    )
    setup: tuple[str, ...] = key(
        list_of(word("a word"), "a list of words such as [pip, install, torch]"),
        "A command that is run once on every machine, in the copied working directory; a list of words, no shell reads "
        "it.",
        default=(),
        examples=[["pip3", "install", "-r", "requirements.txt"]],
    )
    exclude: tuple[str, ...] = key(
        one_or_more(text("a pattern such as '*.ckpt'"), "a list such as ['*.ckpt']"),
        "Patterns of what is not copied, besides `.git`, `__pycache__`, `.venv` and records; one or a list.",
        default=(),
        examples=[["*.ckpt", "data"]],
    )
    wait: float = wait_for_machines()  # seconds that a launch is tried again: no capacity, or the quota is used up
    ready_within: float = key(  # seconds
        DURATION,
        "How long boot, copy and setup may take, from launch until the command runs; with its unit. It is part of what "
        "a trial reserves.",
        default=600.0,
        examples=["20min"],
    )
    look_in: tuple[str, ...] = key(
        one_or_more(_NAME, "a list of regions such as [eu-west-1]"),
        "Regions in which `trimtuner reap` looks for what still runs, one or a list. Without it, all that are enabled.",
        default=(),
        examples=[["eu-west-1", "us-east-1"]],
    )
    checkpoint_limit: int = key(  # bytes
        MEMORY,
        "The most that is copied of what the command keeps in `{checkpoint}`. A folder above it is not copied, and the "
        "run says so. Here and on the head, a copy is held in memory while it is made.",
        default=500 * 2**20,
        examples=["2GiB"],
    )
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

    def checks(self, work: Workload) -> Iterator[Check]:
        """Whether account, permissions, quotas and all that the job names are as trials need them."""
        try:
            from trimtuner.engines.aws.checks import checks_of
        except ModuleNotFoundError as error:
            return iter((failed("aws", f"{error.name!r} is not installed", "pip install 'trimtuner[aws]'"),))
        return checks_of(work, self)
