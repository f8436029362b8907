"""The earlier studies that a job learns from: found by their job files, read from their records, never changed."""

from __future__ import annotations

from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.jobs.job import Job
from trimtuner.jobs.load import load_job
from trimtuner.problem.earlier import Earlier
from trimtuner.records import RecordsView


def earlier_of(job: Job) -> tuple[Earlier, ...]:
    """What the studies named in ``search: learn_from`` have measured by now; an error names the one that cannot be."""
    found = tuple(_earlier_at(job, text) for text in job.search.learn_from)
    for one in found:
        one.rows_in(job.space)
    return found


def _earlier_at(job: Job, text: str) -> Earlier:
    path = job.path.absolute().parent / text
    if path.resolve() == job.path.resolve():
        raise InputError(f"search.learn_from: {text} is this job itself; name another one")
    if not path.is_file():
        raise InputError(f"search.learn_from: there is no job file {text} (seen from {job.path})")
    earlier = load_job(path)
    if isinstance(earlier.storage, Path) and not earlier.storage.exists():
        raise InputError(f"search.learn_from: {text} has no record yet ({earlier.storage}); run it, or leave it out")
    with RecordsView(earlier.storage) as records:
        return Earlier.of(earlier.name, records.open(earlier.name).history().measurements, earlier.space)
