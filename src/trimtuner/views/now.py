"""What runs now and how far it is, and whether anything is wrong: what one looks for first."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from trimtuner.problem.history import Outcome, Trial
from trimtuner.problem.price_ages import age_warnings
from trimtuner.records import Attempt
from trimtuner.state import ASKED_TO_STOP, StudyState
from trimtuner.views.blocks import Block, Meter, Meters, View, Warned
from trimtuner.views.timeline import RUNNING, state_of_open
from trimtuner.views.words import count_of, machines, metric, seconds, share, why_over

_RECENT = 10  # ended trials that tell whether they fail
_MANY_FAILED = 0.3  # of them
_SHOWN = 6
_NEVER_QUITE = 0.99


@dataclass(frozen=True)
class Running:
    """One trial under way: how long it has run, how far it is, and what it said last."""

    trial: int
    state: str
    fraction: float
    machines: str | None
    seconds: float
    share: float | None  # of the way, as far as can be told
    by: str  # what that is judged by
    reported: str  # its last metrics in words


def running(subject: StudyState) -> tuple[Running, ...]:
    """The trials under way, in the order in which they were asked."""
    last = {one.trial: one for one in subject.attempts}
    return tuple(_running(subject, trial, last.get(trial.number)) for trial in subject.history.pending)


def troubles(subject: StudyState) -> Iterator[str]:
    """What is wrong, or may be, each with what to do."""
    waiting = len(subject.history.pending)
    if subject.unwatched:
        told = f"The run of {count_of(len(subject.unwatched), 'trial')} is gone"
        yield f"{told}; 'trimtuner run {subject.job_file}' takes over, 'trimtuner reap' ends what is left behind."
    if subject.runs == 0 and waiting == 0 and not is_over(subject):
        why = f": {why_over(subject.why_over)}" if subject.why_over else ""
        yield f"No run is at work{why}; 'trimtuner run {subject.job_file}' goes on where it stopped."
    lately = subject.history.made[-_RECENT:]
    failed = [one for one in lately if one.is_fault and not one.is_over_limit]
    if failed and len(failed) >= _MANY_FAILED * len(lately):
        yield _failing(failed, len(lately))
    if subject.problem.space.cloud is not None:
        vms = subject.problem.space.cloud.vms.values()
        for warning in age_warnings((vm.quote for vm in vms), datetime.date.today()):
            yield f"Old prices: {warning}."
    for difference in subject.differing:
        yield f"The job file differs from its record: {difference}."


def is_over(subject: StudyState) -> bool:
    """Whether the search ended by its budget or by its stop rule, so that another run would not go on."""
    most = subject.limits.trials
    is_used_up = most is not None and len(subject.history.counted) >= most
    return is_used_up or bool(why_ended(subject))


def why_ended(subject: StudyState) -> str:
    """Why the search ended by itself; nothing where it was asked to, or where it measured nothing and is to go on."""
    is_by_itself = subject.why_over != ASKED_TO_STOP and bool(subject.history.measurements)
    return why_over(subject.why_over) if is_by_itself else ""


def _over_words(subject: StudyState) -> str:
    """Why it is over, in the words of its last run; one that says nothing has used up its trials."""
    if subject.runs != 0 or subject.history.pending or not is_over(subject):
        return ""
    said = why_ended(subject) or "its trials are used up"
    return f"The search is over: {said}. With a larger budget, or another stop rule, 'trimtuner run' goes on."


def _failing(failed: list[Outcome], count: int) -> str:
    kinds = ", ".join(f"{number} x {kind}" for kind, number in Counter(str(one.failed) for one in failed).most_common())
    numbers = ", ".join(str(one.trial.number) for one in failed)
    return (
        f"{len(failed)} of the last {count_of(count, 'trial')} failed ({kinds}): look at the logs of {numbers} below."
    )


def _running(subject: StudyState, trial: Trial, attempt: Attempt | None) -> Running:
    began = None if attempt is None else attempt.started_at
    lasted = 0.0 if began is None else max(subject.now - began, 0.0)
    reports = () if attempt is None or subject.reports_of is None else subject.reports_of(trial.number, attempt.attempt)
    said = dict(reports[-1].metrics) if reports else {}
    reached = said.pop("fraction", None)
    part, by = _progress(subject, trial, lasted, reached)
    return Running(
        trial=trial.number,
        state="waiting to start" if began is None else state_of_open(subject, attempt),
        fraction=trial.fraction,
        machines=machines(trial.config),
        seconds=lasted,
        share=None if part is None else min(part, _NEVER_QUITE),
        by=by,
        reported=", ".join(f"{name} {metric(name, value)}" for name, value in said.items()),
    )


def _progress(subject: StudyState, trial: Trial, lasted: float, reached: float | None) -> tuple[float | None, str]:
    """The share of the way, and what it is judged by: its own reports, others on as much data, or its time-out."""
    if reached is not None:
        return reached / trial.fraction, f"{share(reached)} of the data reported"
    made = subject.history.made
    others = [one.time for one in made if one.trial.fraction == trial.fraction and one.time and one.failed is None]
    if others:
        return lasted / median(others), f"others took {seconds(median(others))}"
    limit = subject.problem.trial_limit
    return (None, "") if limit is None else (lasted / limit, f"ended after {seconds(limit)}")


def _words(one: Running) -> str:
    at = f"{share(one.fraction)} of the data" if one.fraction != 1.0 else "all data"
    where = f" on {one.machines}" if one.machines else ""
    state = "" if one.state == RUNNING else f"{one.state}, "
    parts = (f"{state}{at}{where}", seconds(round(one.seconds)), one.by, one.reported)
    return ", ".join(part for part in parts if part)


def _blocks(subject: StudyState) -> list[Block]:
    wrong, found = list(troubles(subject)), running(subject)
    meters = [Meter(f"trial {one.trial}", one.share, _words(one), trial=one.trial) for one in found[:_SHOWN]]
    more = f"And {len(found) - _SHOWN} more." if len(found) > _SHOWN else ""
    idle = "No trial is running." if not found else ""
    fine = "Nothing is wrong." if not wrong else ""
    return [*map(Warned, wrong), _over_words(subject), Meters(meters) if meters else "", more, idle, fine]


VIEW = View("now", "Now", "glance", _blocks, is_drawn=False)
