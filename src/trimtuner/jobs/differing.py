"""How a job file differs from the study that its record has under its name, and the ways on from there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.jobs.job import Job, problem_of
from trimtuner.records import RecordsView, StudyView
from trimtuner.study.description import Description
from trimtuner.study.memory import is_in_record


def description_of(job: Job) -> Description:
    """What makes the study of a job this one and no other."""
    search = job.search
    return Description(problem_of(job), search.method, search.seed, search.options, search.learn_from)


def differences_from_record(job: Job) -> tuple[str, ...]:
    """How the job differs from what its record has by now, a line each; none where the study has not begun."""
    if not is_in_record(job.storage, job.name):
        return ()
    with RecordsView(job.storage) as records:
        return description_of(job).differences_from(records.open(job.name).definition)


def refusal(job: Job, differing: Sequence[str]) -> str:
    """Why the job cannot go on with its record, in one line."""
    return f"the record {job.storage} has a study {job.name!r} of another problem ({'; '.join(differing)})"


def note(job: Job, differing: Sequence[str]) -> str:
    """What whoever looks at such a study must know, in one line; nothing where all is the same."""
    if not differing:
        return ""
    told = f"the job file differs from its record ({'; '.join(differing)}) and all is judged by the job file"
    return f"{told}; what to do: trimtuner validate {_quoted(job.path)}"


def require_judgeable(job: Job, view: StudyView, differing: Sequence[str]) -> None:
    """Refuse a job file so different that what its study measured cannot be judged by it."""
    try:
        for configuration, _ in view.history().tested() if differing else ():
            job.space.check(dict(configuration))
        for measurement in view.history().measurements if differing else ():
            missing = set(problem_of(job).reported_metrics) - measurement.metrics.keys()
            if missing:
                raise InputError(f"{sorted(missing)[0]} was not measured")
    except InputError as error:
        raise InputError(
            f"{refusal(job, differing)}; by this job file it cannot be judged: {error}\n{ways_on(job)}"
        ) from None


def ways_on(job: Job) -> str:
    """What to do about it, in commands to paste."""
    number = next(number for number in count(2) if not _numbered(job.path, number).exists())
    old, new, name = _quoted(job.path), _quoted(_numbered(job.path, number)), f"{job.name}-{number}"
    measured = shlex.quote(f"{job.name}.csv")
    return f"""what now:
  go on with that study: put the job file back as it was
  or begin a new one beside it, with another name:
    sed 's/^name:.*/name: {name}/' {old} > {new}
    trimtuner run {new}
  before it runs, it can be given what was measured, where the parameters are the same:
    trimtuner export {old} > {measured}
    trimtuner import {new} {measured}
  or it can learn from the old one, whatever differs: write into its section search
    learn_from: [{job.path.name}]"""


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
