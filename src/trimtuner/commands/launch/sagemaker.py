"""A SageMaker training job: ``aws sagemaker create-training-job --cli-input-json file://FILE``.

JSON has no comments: what to expect stands in the tags, and what must be filled in stands between < and >.
"""

from __future__ import annotations

import json
import re

from trimtuner.commands.launch.plan import Plan, size_words
from trimtuner.commands.launch.writing import Tree
from trimtuner.errors import InputError

ROLE = "<ARN of the role that the job runs as>"
IMAGE = "<ECR path of an image with the code of the job in its working directory>"
UNTOLD = "<a secret; whoever may describe the job sees it here, so better have the job fetch it from Secrets Manager>"
OUTPUT = "<s3://bucket/folder for what the job writes to /opt/ml/model>"

_DISK_GIB = 30
_MOST_WORDS, _LONGEST_WORD = 100, 256  # of the service, as are the following
_MOST_ENTRIES, _LONGEST_HYPERPARAMETER, _LONGEST_VARIABLE = 100, 2500, 512
_LONGEST_RUN_SECONDS = 28 * 86_400
_LONGEST_TAG = 128
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9 _.:/=+@-]+")


# The machine types that SageMaker trains on, as its API listed them in November 2026.
_SIZES = {
    "m4": "xlarge 2xlarge 4xlarge 10xlarge 16xlarge",
    "m5": "large xlarge 2xlarge 4xlarge 12xlarge 24xlarge",
    "m6i r6i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "m7i c7i r7i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
    "m8i r8i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 96xlarge",
    "m7i-flex m8i-flex r8i-flex": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
    "c4": "xlarge 2xlarge 4xlarge 8xlarge",
    "c5 c5n": "xlarge 2xlarge 4xlarge 9xlarge 18xlarge",
    "c6i": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "c8i": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 96xlarge",
    "c7i-flex c8i-flex g4dn": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
    "r5 r5d": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge",
    "t3": "medium large xlarge 2xlarge",
    "g5 g6 g6e": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
    "g7 g7e": "2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge",
    "p2": "xlarge 8xlarge 16xlarge",
    "p3": "2xlarge 8xlarge 16xlarge",
    "p3dn p4d p4de": "24xlarge",
    "p5": "4xlarge 48xlarge",
    "p5e p5en p6-b200 p6-b300 trn2": "48xlarge",
    "p6e-gb200": "36xlarge",
    "trn1": "2xlarge 32xlarge",
    "trn1n": "32xlarge",
}

TRAINING_TYPES = frozenset(
    f"{family}.{size}" for families, sizes in _SIZES.items() for family in families.split() for size in sizes.split()
)


def sagemaker_text(plan: Plan) -> str:
    """The request for a training job, as JSON."""
    _check(plan)
    seconds = min(plan.deadline_seconds, _LONGEST_RUN_SECONDS)
    stopping: dict[str, Tree] = {"MaxRuntimeInSeconds": seconds}
    if plan.is_spot:
        stopping["MaxWaitTimeInSeconds"] = min(2 * seconds, _LONGEST_RUN_SECONDS)
    program, *arguments = plan.command
    words: dict[str, Tree] = {"ContainerEntrypoint": [program]}
    if arguments:
        words["ContainerArguments"] = arguments
    request: dict[str, Tree] = {
        "TrainingJobName": plan.name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File", **words},
        "HyperParameters": dict(plan.hyperparameters),
        "Environment": {**plan.environment, **dict.fromkeys(plan.secrets, UNTOLD)},
        "OutputDataConfig": {"S3OutputPath": OUTPUT},
        "ResourceConfig": {
            "InstanceType": _instance_type(plan),
            "InstanceCount": plan.vm_count,
            "VolumeSizeInGB": _DISK_GIB,
        },
        "EnableManagedSpotTraining": plan.is_spot,
        "StoppingCondition": stopping,
        "Tags": _tags(plan),
    }
    return json.dumps(request, indent=2) + "\n"


def _instance_type(plan: Plan) -> str:
    machines = plan.machines
    if machines is None:
        return "<an instance type such as ml.m5.large; the job names no machines>"
    if plan.home is not None and plan.home.provider == "aws" and machines.vm_type in TRAINING_TYPES:
        return f"ml.{machines.vm_type}"
    size = size_words(machines)
    return f"<SageMaker has no {machines.vm_type}; an instance type such as ml.m5.large, but with {size}>"


def _tags(plan: Plan) -> list[Tree]:
    """The study, and what to expect of it, in the letters that a tag may have."""
    word = "measured" if plan.is_measured else "predicted"
    tags = {
        "study": plan.study,
        **{f"{word}-{name}": text.replace("(", "from ") for name, text in plan.expected.items()},
    }
    return [{"Key": _tag_text(f"trimtuner:{name}"), "Value": _tag_text(text)} for name, text in tags.items()]


def _tag_text(text: str) -> str:
    return " ".join(_NOT_IN_TAGS.sub(" ", text).split())[:_LONGEST_TAG]


def _check(plan: Plan) -> None:
    """Refuse what the service would refuse, in words that say what to do."""
    if len(plan.command) - 1 > _MOST_WORDS:
        raise InputError(f"SageMaker takes commands of up to {_MOST_WORDS} words; put them into a script in the image")
    for word in plan.command:
        _check_line("a word of the command", word, _LONGEST_WORD)
    for name, value in plan.hyperparameters.items():
        _check_line(f"the hyper-parameter {name}", value, _LONGEST_HYPERPARAMETER)
    for name, value in plan.environment.items():
        _check_length(f"the variable {name}", value, _LONGEST_VARIABLE)
    for kind, entries in (("hyper-parameters", plan.hyperparameters), ("variables", plan.environment)):
        if len(entries) > _MOST_ENTRIES:
            raise InputError(f"SageMaker takes up to {_MOST_ENTRIES} {kind}, and the job has {len(entries)}")


def _check_length(what: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise InputError(f"{what} has {len(text)} letters, and SageMaker takes up to {longest}; shorten it")


def _check_line(what: str, text: str, longest: int) -> None:
    if "\n" in text or "\r" in text:
        raise InputError(f"{what} has a line break, which SageMaker refuses; read it from a file in the image instead")
    _check_length(what, text, longest)
