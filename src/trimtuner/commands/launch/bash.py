"""A script for a machine that one has: the same folder, variables and command as the trials had."""

from __future__ import annotations

import shlex

from trimtuner.commands.launch.plan import Plan
from trimtuner.commands.launch.shell import STRICT, demand_line, export_line, start_line


def bash_text(plan: Plan) -> str:
    """The script."""
    lines = ["#!/usr/bin/env bash", *(f"# {line}" for line in plan.story), STRICT]
    lines.append(f"cd -- {shlex.quote(str(plan.working_directory))}")
    lines += [export_line(name, value) for name, value in plan.environment.items()]
    lines += [demand_line(name) for name in plan.secrets]
    return "\n".join([*lines, start_line(plan.command), ""])
