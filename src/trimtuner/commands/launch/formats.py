"""The formats in which a launch can be written, by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.commands.launch.kubernetes import kubernetes_text
from trimtuner.commands.launch.plan import Plan
from trimtuner.commands.launch.sagemaker import sagemaker_text
from trimtuner.commands.launch.skypilot import skypilot_text
from trimtuner.commands.launch.writing import STRICT, demand_line, export_line, start_line
from trimtuner.errors import InputError, nearest
from trimtuner.files import FOR_USER, write_new


def bash_text(plan: Plan) -> str:
    """A script for a machine that one has: the same folder, variables and command as the trials had."""
    lines = ["#!/usr/bin/env bash", *(f"# {line}" for line in plan.story), STRICT]
    lines.append(f"cd -- {shlex.quote(str(plan.working_directory))}")
    lines += [export_line(name, value) for name, value in plan.environment.items()]
    lines += [demand_line(name) for name in plan.secrets]
    return "\n".join([*lines, start_line(plan.command), ""])


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
    if form not in FORMATS:
        raise InputError(f"--format {form!r} is none of {', '.join(FORMATS)}{nearest(form, FORMATS)}")
    return FORMATS[form].text(plan)


def write_launch(plan: Plan, form: str, output: Path) -> str:
    """Write what launches the recommendation, never over a file that is there; the command that takes the file."""
    write_new(output, launch_text(plan, form), FOR_USER)
    return f"{FORMATS[form].launcher}{shlex.quote(str(output))}"
