"""What is wrong, or looks wrong, with a job that can be read: missing folders and secrets, too little money."""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Iterator, Mapping

from trimtuner.errors import InputError, TrimTunerError
from trimtuner.jobs.commands import Word
from trimtuner.jobs.engines import ENGINES
from trimtuner.jobs.job import Job, problem_of
from trimtuner.jobs.learning import earlier_of
from trimtuner.jobs.space_section import MACHINE_PLACEHOLDERS
from trimtuner.keys.faults import one_printable_line
from trimtuner.problem.parameters import Choice
from trimtuner.problem.price_ages import age_warnings
from trimtuner.problem.problem import COST, TIME
from trimtuner.records import Address
from trimtuner.study.memory import is_in_record

_LOOKS_SECRET = re.compile(r"(^|_)(key|token|secret|password|passwd|credentials?)(_|$)", re.IGNORECASE)
_SCRIPT = re.compile(r"[\w./-]+\.(py|sh|R|jl|pl|ipynb)")


def errors_of(job: Job, cheapest_usd: float | None) -> tuple[str, ...]:
    """Why the job cannot run as it is; ``cheapest_usd`` is what the cheapest trial reserves."""
    return tuple(one_printable_line(text) for text in _errors(job, cheapest_usd))


def warnings_of(job: Job, dearest_usd: float | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a person should look at; of secrets the names only."""
    found = (
        *_budget_warnings(job, dearest_usd),
        *_goal_warnings(job),
        *_price_warnings(job),
        *_command_warnings(job),
        *_environment_warnings(job, environment),
        *_storage_warnings(job),
    )
    return tuple(one_printable_line(text) for text in found)


def _errors(job: Job, cheapest_usd: float | None) -> Iterator[str]:
    money = job.budget.money
    if money is not None and cheapest_usd is not None and cheapest_usd > money:
        yield (
            f"not even the cheapest trial fits the budget: it reserves {cheapest_usd:.4g} USD (timeout at its price), "
            f"and there are {money:g}; raise budget.money or lower run.timeout"
        )
    cloud, seconds = job.space.cloud, job.budget.seconds
    if cloud is not None and cloud.is_free and seconds is not None:
        least = min(one.vm_count for one in cloud.clusters) + len(cloud.helpers)
        wanted = least * (job.run.timeout + job.engine.settings.ended_within_seconds)
        if wanted > seconds:
            yield (
                f"not even the smallest trial fits the budget: it reserves {wanted / 3600:.4g} machine-hours (timeout "
                f"on each machine), and there are {seconds / 3600:.4g}; raise budget.time or lower run.timeout"
            )
    if not os.path.isdir(job.run.working_directory):  # unlike Path.is_dir, also for a name that is too long
        yield f"run.working_directory: there is no folder {job.run.working_directory}"
    try:
        job.search.recipe.check(problem_of(job))
    except InputError as error:
        yield f"search.method: {job.search.method} refuses this job: {error}"
    if job.search.learn_from:
        yield from _learning_errors(job)


def _learning_errors(job: Job) -> Iterator[str]:
    try:
        if not is_in_record(job.storage, job.name):
            earlier_of(job)
    except TrimTunerError as error:
        yield str(error)


def _budget_warnings(job: Job, dearest_usd: float | None) -> Iterator[str]:
    budget = job.budget
    if budget.money is None and budget.seconds is None and budget.trials is None:
        yield "there is no budget: the search goes on until all is tested or you stop it; write budget: {money: …}"
    if budget.money is not None and dearest_usd is not None and dearest_usd > budget.money:
        yield (
            f"the dearest machines reserve {dearest_usd:.4g} USD a trial, more than the budget of {budget.money:g}: "
            "they will never be tested; lower run.timeout or raise budget.money"
        )


def _goal_warnings(job: Job) -> Iterator[str]:
    named = {constraint.metric for constraint in job.constraints}
    if job.goal.metric in (COST, TIME) and not named - {COST, TIME}:
        yield f"the least {job.goal.metric} is wanted and nothing says how good the result must be; add a constraint"
    for constraint in job.constraints:
        if constraint.metric == TIME and constraint.is_upper and constraint.limit > job.run.timeout:
            yield f"'{constraint.text}' allows more than run.timeout, which ends trials before"


def _price_warnings(job: Job) -> Iterator[str]:
    if job.space.cloud is not None:
        yield from age_warnings((vm.quote for vm in job.space.cloud.vms.values()), datetime.date.today())


def _command_warnings(job: Job) -> Iterator[str]:
    words = [Word.parse(word) for word in job.run.command]
    named = frozenset(name for word in words for name in word.names)
    for name, parameter in job.space.parameters.items():
        is_constant = isinstance(parameter, Choice) and len(parameter.values) == 1
        if name not in named and not is_constant and name not in MACHINE_PLACEHOLDERS:
            yield f"run.command: {{{name}}} is in no word, so the job cannot know what was chosen"
    if "fraction" not in named and job.space.fractions != (1.0,):
        yield "run.command: {fraction} is in no word, so the job cannot train on less than all of its data"
    for before, word in zip(job.run.command, words[1:], strict=False):
        missing = sorted(word.names & job.run.conditional)
        if missing and before.startswith("-") and "=" not in before and not Word.parse(before).names:
            yield (
                f"run.command: where {missing[0]} has no value its word is left out, and {before!r} would stay alone; "
                f"write both in one word: '{before}={{{missing[0]}}}'"
            )
    if ENGINES[job.engine.type].runs_commands:
        yield from _missing_files(job)


def _missing_files(job: Job) -> Iterator[str]:
    for word in job.run.command[1:]:
        if _SCRIPT.fullmatch(word) and not os.path.isfile(job.run.working_directory / word):
            yield f"run.command: there is no file {word!r} in {job.run.working_directory}"
    if not _is_program_found(job):
        yield f"run.command: the program {job.run.command[0]!r} is not found on this machine"


def _is_program_found(job: Job) -> bool:
    program = job.run.command[0]
    if "/" in program:
        return shutil.which(job.run.working_directory / program) is not None
    return shutil.which(program, path=job.run.environment.get("PATH")) is not None


def _storage_warnings(job: Job) -> Iterator[str]:
    if isinstance(job.storage, Address) and job.storage.has_secret:
        yield (
            "storage: a password is written in clear text; leave it out of the address, and set PGPASSWORD or write it "
            "in ~/.pgpass"
        )


def _environment_warnings(job: Job, environment: Mapping[str, str]) -> Iterator[str]:
    for name in job.run.secrets:
        if not environment.get(name):
            yield f"run.secrets: {name} is not set in this environment"
    for name in job.run.environment:
        if _LOOKS_SECRET.search(name):
            yield f"run.environment: {name} looks like a secret in clear text; move its name to run.secrets"
