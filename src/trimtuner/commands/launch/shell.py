"""Lines for a shell in which every value stays a value."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

STRICT = "set -euo pipefail"


def start_line(words: Sequence[str]) -> str:
    """The line that becomes the command; ``exec`` so that a first word such as ``a=b`` or ``if`` is a program too."""
    return f"exec -- {shlex.join(words)}"


def export_line(name: str, value: str) -> str:
    """The line that sets a variable for the command."""
    return f"export {name}={shlex.quote(value)}"


def demand_line(name: str) -> str:
    """The line that hands a secret on, and ends the script where there is none."""
    return f': "${{{name}:?is a secret of this job; set it in the environment first}}"; export {name}'
