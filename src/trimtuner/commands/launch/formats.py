"""The formats in which a launch can be written, by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.commands.launch.bash import bash_text
from trimtuner.commands.launch.kubernetes import kubernetes_text
from trimtuner.commands.launch.plan import Plan
from trimtuner.commands.launch.sagemaker import sagemaker_text
from trimtuner.commands.launch.skypilot import skypilot_text
from trimtuner.errors import InputError, nearest
from trimtuner.files import FOR_USER, write_new


@dataclass(frozen=True)
class Format:
    """How a launch is written, and which command takes the file."""

    text: Callable[[Plan], str]
    launcher: str  # the file's path follows


FORMATS: Mapping[str, Format] = {
    "skypilot": Format(skypilot_text, "sky launch --down "),
    "sagemaker": Format(sagemaker_text, "aws sagemaker create-training-job --cli-input-json file://"),
    "kubernetes": Format(kubernetes_text, "kubectl apply -f "),
    "bash": Format(bash_text, "bash "),
}


def launch_text(plan: Plan, form: str) -> str:
    """What launches the recommendation, in that format."""
    return _format_named(form).text(plan)


def write_launch(plan: Plan, form: str, output: Path) -> str:
    """Write what launches the recommendation, never over a file that is there; the command that takes the file."""
    text = launch_text(plan, form)
    write_new(output, text, FOR_USER)
    return f"{FORMATS[form].launcher}{shlex.quote(str(output))}"


def _format_named(form: str) -> Format:
    if form not in FORMATS:
        raise InputError(f"--format {form!r} is none of {', '.join(FORMATS)}{nearest(form, FORMATS)}")
    return FORMATS[form]
