"""``trimtuner doctor``: whether a job can run, found out before a cent is spent."""

from __future__ import annotations

from collections.abc import Iterator

from trimtuner.commands.checkup.checks import Check
from trimtuner.commands.checkup.here import (
    check_command,
    check_extras,
    check_fence,
    check_python,
    check_record,
    check_size,
)
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.local.settings import LocalSettings
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.errors import InputError
from trimtuner.jobs.job import Job

_MARKS = {"ok": "ok", "warning": "WARNING", "failed": "FAILED", "unknown": "unknown"}


def examine(job: Job | None) -> list[Check]:
    """Everything that can be looked at without spending anything."""
    return [*check_python(), *check_extras(), *(check_fence() if job is None else _of_job(job))]


def is_ready(checks: list[Check]) -> bool:
    """Whether nothing is in the way for sure."""
    return not any(check.outcome == "failed" for check in checks)


def doctor_text(checks: list[Check]) -> str:
    """A line for each check, with what to do below it."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{_MARKS[check.outcome]:<8} {check.name:<{width}}  {check.text}")
        if check.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {check.advice}")
    return "\n".join(lines)


def policy_of(job: Job | None) -> dict[str, object]:
    """The smallest IAM policy for a job; without one, for the usual settings."""
    from trimtuner.engines.aws.policy import policy

    settings = AwsSettings() if job is None else job.engine.settings
    if not isinstance(settings, AwsSettings):
        raise InputError("a policy is for trials on AWS; this job has another engine (see 'engine' in its file)")
    cloud = None if job is None else job.space.cloud
    return policy(settings, uses_spot=cloud is None or "spot" in cloud.markets)


def _of_job(job: Job) -> Iterator[Check]:
    yield from check_record(job)
    settings = job.engine.settings
    if isinstance(settings, LocalSettings):
        yield from check_command(job)
        yield from check_size(job)
        yield from check_fence()
    elif isinstance(settings, RaySettings):
        from trimtuner.commands.checkup.on_ray import check_ray

        yield from check_ray(job, settings)
        yield from check_fence() if settings.address is None else ()
    elif isinstance(settings, AwsSettings):
        yield from _of_aws(job, settings)


def _of_aws(job: Job, settings: AwsSettings) -> Iterator[Check]:
    try:
        from trimtuner.commands.checkup.on_aws import check_aws
    except ModuleNotFoundError as error:
        yield Check("aws", "failed", f"{error.name!r} is not installed", "pip install 'trimtuner[aws]'")
        return
    yield from check_aws(job, settings)
