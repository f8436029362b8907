"""What the verbs of the command line share: its exit codes, common arguments, and the list that each enters itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from trimtuner.jobs.studies import JobStudy

EXIT_UNREAD = 1  # nobody read the output to its end
EXIT_BAD_INPUT = 2  # what was given is wrong, or something is in the way; the message says what to do
EXIT_NO_ANSWER = 3  # nothing wrong, but there is no answer yet

JobPath = Annotated[Path, typer.Argument(help="The job file.", metavar="JOB")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Experiment = Annotated[
    str | None, typer.Option(help="The experiment in MLflow. [default: named as the study]", show_default=False)
]

Verb: TypeAlias = Callable[..., None]
VERBS: dict[str, tuple[float, Verb]] = {}  # by their modules: where the help lists each, and what it does


def verb(place: float) -> Callable[[Verb], Verb]:
    """Enter a function as a verb of the command line, named as it is; where others stand, see the help."""

    def enter(function: Verb) -> Verb:
        VERBS[function.__module__] = (place, function)
        return function

    return enter


def opened(job: Path) -> JobStudy:
    """The study of a job file, to be read; where the file differs from it, that is said."""
    from trimtuner.jobs.studies import JobStudy

    of = JobStudy.at(job)
    told = of.note
    if told:
        print(f"warning: {told}", file=sys.stderr)
    return of
