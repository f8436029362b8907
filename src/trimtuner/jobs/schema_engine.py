"""The schema of where trials run; which keys are allowed depends on the type."""

from __future__ import annotations

from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.replay.settings import ReplaySettings
from trimtuner.jobs.engine_section import (
    AWS_NAME,
    ENGINE_KEYS,
    FASTEST,
    MOST_DISK_GIB,
    MOST_PARALLEL,
    RAY_ADDRESS,
)
from trimtuner.jobs.job import EngineChoice
from trimtuner.jobs.schema_kinds import (
    BOOLEAN,
    DURATION,
    SCALAR,
    TEXT,
    Schema,
    has,
    key,
    list_of,
    mapping,
    number_above,
    one_of,
    one_or,
    only,
    text_like,
    tidy,
    where,
    whole_number,
)
from trimtuner.jobs.validation import duration_text

COMMON_KEYS = ("type", "parallel")  # of every type of engine

_NAME = text_like(AWS_NAME)

_KEYS: dict[str, Schema] = {
    "type": key(
        "`local` is this machine, `ray` a Ray cluster, `aws` machines rented on EC2 for each trial, `replay` a "
        "rehearsal from a table of measurements.",
        one_of(ENGINE_KEYS),
        default=EngineChoice.type,
    ),
    "parallel": key(
        "How many trials run side by side.",
        whole_number(1, MOST_PARALLEL),
        default=EngineChoice.parallel,
        examples=[4],
    ),
    "address": key(
        "The head of the Ray cluster, `auto` for the one of this machine. Without it a cluster is started here.",
        text_like(RAY_ADDRESS),
        examples=["auto", "10.0.0.7:6379"],
    ),
    "copy": key(
        "Whether the working directory is copied to the nodes. Without it, where an address is given; `false` suits a "
        "shared file system.",
        BOOLEAN,
    ),
    "wait": key(
        "How long a trial waits for machines that are not to be had, before it ends as `unavailable`; with its unit.",
        DURATION,
        default=duration_text(RaySettings.wait),
        examples=["30min"],
    ),
    "table": key(
        "The table of measurements to play trials from, which a replay needs: its name (see `trimtuner tables`), or "
        "the path of its CSV.",
        TEXT,
        examples=["digits", "my.csv"],
    ),
    "pace": key(
        "How many times faster than in earnest trials pass.",
        number_above(0, FASTEST),
        default=tidy(ReplaySettings.pace),
    ),
    "region": key(
        "Where machines are rented. Without it, as your AWS configuration says.", _NAME, examples=["eu-west-1"]
    ),
    "image": key(
        "The AMI to boot. Without it, the newest Amazon Linux 2023 for the VM type.", _NAME, examples=["ami-0abc1234"]
    ),
    "user": key("The user to log in as on the image.", _NAME, default=AwsSettings.user, examples=["ubuntu"]),
    "key_name": key(
        "An EC2 key pair; it needs `key_file`. Without it, a key of the study's own.", TEXT, examples=["my-key"]
    ),
    "key_file": key(
        "The private key of `key_name`, from the folder of the job file.", TEXT, examples=["~/.ssh/my-key.pem"]
    ),
    "security_groups": key(
        "Security groups by id, one or a list; they must let SSH in from here. Without them, the account's default.",
        one_or(list_of(_NAME)),
        examples=[["sg-0abc1234"]],
    ),
    "subnet": key("A subnet by id. Without it, the account's default.", _NAME, examples=["subnet-0abc1234"]),
    "instance_profile": key(
        "An instance profile by name, for what the command may do on AWS. Without it, none.",
        _NAME,
        examples=["training"],
    ),
    "disk_gib": key(
        "The size of the disk in GiB. Without it, as in the image.", whole_number(1, MOST_DISK_GIB), examples=[100]
    ),
    "connect_to": key(
        "Which address of a machine is called.", one_of(["public", "private"]), default=AwsSettings.connect_to
    ),
    "ssh_config": key(
        "A file as OpenSSH writes it, for ports and jump hosts; from the folder of the job file.",
        TEXT,
        examples=["ssh_config"],
    ),
    "setup": key(
        "A command that is run once on every machine, in the copied working directory; a list of words, no shell "
        "reads it.",
        list_of(SCALAR),
        default=[],
        examples=[["pip3", "install", "-r", "requirements.txt"]],
    ),
    "exclude": key(
        "Patterns of what is not copied, besides `.git`, `__pycache__`, `.venv` and records; one or a list.",
        one_or(list_of(TEXT)),
        default=[],
        examples=[["*.ckpt", "data"]],
    ),
    "ready_within": key(
        "How long boot, copy and setup may take, from launch until the command runs; with its unit. It is part of what "
        "a trial reserves.",
        DURATION,
        default=duration_text(AwsSettings.ready_within),
        examples=["20min"],
    ),
    "look_in": key(
        "Regions in which `trimtuner reap` looks for what still runs, one or a list. Without it, all that are enabled.",
        one_or(list_of(_NAME)),
        examples=[["eu-west-1", "us-east-1"]],
    ),
}


def _is_type(kind: str) -> Schema:
    """The condition that the engine is of this type; also where none is written, if that means this one."""
    told: Schema = {} if kind == EngineChoice.type else has("type")
    return {"properties": {"type": {"const": kind}}, **told}


ENGINE = key(
    "Where trials run. Besides `type` and `parallel`, each type has keys of its own.",
    {
        **mapping(_KEYS),
        "allOf": [
            *(where(_is_type(kind), only((*COMMON_KEYS, *keys))) for kind, keys in ENGINE_KEYS.items()),
            where(_is_type("replay"), has("table")),
            where(has("key_name"), has("key_file")),
        ],
    },
    examples=[
        {"type": "local", "parallel": 2},
        {"type": "ray", "address": "auto", "parallel": 8},
        {"type": "aws", "region": "eu-west-1", "security_groups": ["sg-0abc1234"], "parallel": 8},
        {"type": "replay", "table": "digits"},
    ],
)
