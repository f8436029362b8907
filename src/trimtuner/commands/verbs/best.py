"""The verb ``best`` of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trimtuner.commands.verbs.shared import EXIT_NO_ANSWER, AsJson, JobPath, opened, verb
from trimtuner.errors import InputError

if TYPE_CHECKING:
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.state import StudyState
    from trimtuner.tuning.recommendation import Recommendation


@verb(6)
def best(
    job: JobPath,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="What launches it there: skypilot, sagemaker, kubernetes or bash.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --format, the file to write; never over one.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            help="The best for a run that costs at most so much: USD, or the unit of what is minimised, such as 20min.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The recommendation, with the command line that trains it, or with --format what launches it elsewhere.

    Where one metric is traded for another: the best for every price, and the knee.
    """
    from trimtuner.study.telling import answered, best_text, recommendation_text, recommended

    if form is None and output is not None:
        raise InputError("--output is for what launches the recommendation; say --format bash, or another")
    if form is not None and as_json:
        raise InputError("--json and --format are two forms of the answer; choose one")
    of = opened(job)
    state = of.judged_state()
    recommendation = state.recommendation
    if recommendation is None:
        print("nothing was measured yet", file=sys.stderr)
        raise typer.Exit(EXIT_NO_ANSWER)
    if within is not None:
        recommendation = _best_within(state, within)
    if form is not None:
        _tell_launch(of, state, recommendation, form, output)
        return
    tell, text = (answered, best_text) if within is None else (recommended, recommendation_text)
    told = {**tell(state, recommendation), "differs_from_record": list(state.differing)}
    print(json.dumps(told, indent=2) if as_json else text(state, recommendation))


def _best_within(state: StudyState, limit: str) -> Recommendation:
    from trimtuner.errors import NoAnswer

    try:
        return state.best_for_every_price.within(limit)
    except NoAnswer as error:
        print(error, file=sys.stderr)
        raise typer.Exit(EXIT_NO_ANSWER) from None


def _tell_launch(
    of: JobStudy, state: StudyState, recommendation: Recommendation, form: str, output: Path | None
) -> None:
    from trimtuner.commands.launch.formats import launch_text, write_launch
    from trimtuner.commands.launch.plan import plan_of

    if output is None:
        print(launch_text(plan_of(of, recommendation, state.history.next_number), form), end="")
        return
    launcher = write_launch(plan_of(of, recommendation, state.history.next_number), form, output)
    print(f"wrote {output}; launch it with: {launcher}")
