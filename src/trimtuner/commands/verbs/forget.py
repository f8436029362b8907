"""The verb ``forget`` of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtuner.commands.verbs.shared import JobPath, verb
from trimtuner.errors import InputError


@verb(13)
def forget(
    job: JobPath,
    trials: Annotated[
        list[int] | None, typer.Argument(help="Numbers of failed trials.", metavar="TRIAL...", show_default=False)
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All that failed; not those stopped over a limit.")] = False,
) -> None:
    """Take failures back, as when the script was wrong: they stay charged, and count for nothing else.

    A forgotten trial is still listed. It counts neither as a trial of the budget nor against its configuration, which
    may be tested again; what it measured on its way is forgotten with it.
    """
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.views.words import usd

    if bool(trials) == failed:
        raise InputError(f"say what to forget: numbers of failed trials, or --failed; see: trimtuner trials {job}")
    of = JobStudy.at(job)
    outcomes = of.record.history().outcomes  # of a study that there is: nothing is made to forget in it
    failures = [one for one in outcomes if one.failed is not None and not one.is_forgotten]
    known = [one.trial.number for one in failures if not one.is_over_limit]  # those would only be stopped once more
    numbers = list(dict.fromkeys(trials or known))
    _, memory = of.open_to_run()
    memory.forget(numbers)
    cost = usd(sum(one.cost for one in outcomes if one.trial.number in numbers))
    told = ", ".join(map(str, numbers))
    print(f"forgotten: {told}; their cost of {cost} stays charged" if numbers else "there is no failure to forget")
