"""What is to be launched: the recommendation as a trial of its own, told in values that every format can use."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.protocol import Launch, Machines
from trimtuner.engines.supervising.nodes import as_written
from trimtuner.jobs.job import Job
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.catalog import DEFAULT_REGIONS
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import TIME
from trimtuner.problem.values import written
from trimtuner.tuning.recommendation import Recommendation
from trimtuner.views.words import configuration, estimate, machines, share

MACHINE_PARAMETERS = ("vm_type", "vm_count", "market")
_LONGEST_NAME = 50  # Kubernetes takes 63, less the number of a pod
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Home:
    """Where the machines are rented."""

    provider: str  # aws, azure or gcp
    region: str | None


@dataclass(frozen=True)
class Plan:
    """Everything that a launch needs to know. Secrets are names only."""

    study: str
    command: tuple[str, ...]
    working_directory: Path
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    hyperparameters: Mapping[str, str]  # what was chosen, besides the machines
    deadline_seconds: int
    memory_bytes: int | None  # that the job may use, where it has a limit
    machines: Machines | None  # none where the job names none
    home: Home | None  # none where the provider is not known
    expected: Mapping[str, str]  # metric: value with its interval
    is_measured: bool  # whether exactly this was tested
    story: tuple[str, ...]  # what this is and what to expect, in lines for a person

    @property
    def name(self) -> str:
        """The study's name as every service takes it: small letters, digits and dashes."""
        return _NOT_IN_NAMES.sub("-", self.study.lower())[:_LONGEST_NAME].strip("-") or "study"

    @property
    def is_spot(self) -> bool:
        """Whether it is to run on machines that may be taken away."""
        return self.machines is not None and self.machines.market == "spot"

    @property
    def vm_count(self) -> int:
        """How many machines the command runs on."""
        return 1 if self.machines is None else self.machines.count


def plan_of(of: JobStudy, recommendation: Recommendation, number: int) -> Plan:
    """The launch of a recommendation: as the trial of that number would be started, with a deadline it can keep."""
    trial = Trial(number, recommendation.config, recommendation.fraction)
    launch = of.launch(of.job.name, trial, 1)
    chosen = {name: value for name, value in recommendation.config.items() if name not in MACHINE_PARAMETERS}
    return Plan(
        study=of.job.name,
        command=as_written(launch.command),
        working_directory=launch.working_directory.absolute(),
        environment=launch.environment,
        secrets=launch.secrets,
        hyperparameters={name: written(value) for name, value in chosen.items()},
        deadline_seconds=_deadline(launch, recommendation),
        memory_bytes=launch.memory_bytes,
        machines=launch.machines,
        home=_home(of.job, recommendation),
        expected={name: estimate(name, one) for name, one in recommendation.estimates.items()},
        is_measured=recommendation.is_measured,
        story=tuple(_story(of.job, recommendation, launch.machines)),
    )


def size_words(rented: Machines) -> str:
    """How large one of the machines is."""
    gpus = f", {rented.gpus} GPUs" if rented.gpus else ""
    return f"{rented.vcpus} vCPUs, {rented.memory_gib:g} GiB{gpus}"


def one_line(text: str) -> str:
    """The text without line breaks and other control characters: safe in a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _deadline(launch: Launch, recommendation: Recommendation) -> int:
    """A trial's time-out; more where all of the data is predicted to take longer than any trial was allowed."""
    expected = recommendation.estimates.get(TIME)
    return math.ceil(max(launch.limit, 0.0 if expected is None else expected.high))


def _home(job: Job, recommendation: Recommendation) -> Home | None:
    """Where the trials ran on AWS; otherwise where the catalog has the machines from."""
    settings, vm = job.engine.settings, job.vm_of(recommendation.config)
    if vm is None:
        return None
    quoted = vm.quote.region or None if vm.quote else None
    if isinstance(settings, AwsSettings):
        return Home("aws", settings.region or quoted)
    return Home(vm.quote.provider, quoted) if vm.quote and vm.quote.provider in DEFAULT_REGIONS else None


def _story(job: Job, recommendation: Recommendation, rented: Machines | None) -> list[str]:
    kind = "recommendation" if recommendation.is_feasible else "least infeasible configuration (none meets every limit)"
    lines = [f"The {kind} of the trimtuner study {job.name}:"]
    lines.append(f"  {configuration(recommendation.config)}, on {share(recommendation.fraction)} of the data")
    lines += _machine_lines(recommendation, rented)
    word = "measured" if recommendation.is_measured else "predicted, the interval holds it in 90 % of cases"
    is_safe = job.space.interruptions_per_hour(dict(recommendation.config)) == 0
    risk = "" if is_safe else "; interruptions are added to time and cost"
    lines.append(f"What to expect ({word}{risk}), after trials on the engine {job.engine.type}:")
    lines += [f"  {name}: {estimate(name, one)}" for name, one in recommendation.estimates.items()]
    lines += [f"  P({limit}) = {chance:.2f}" for limit, chance in recommendation.feasible.items()]
    return [one_line(line) for line in lines]


def _machine_lines(recommendation: Recommendation, rented: Machines | None) -> list[str]:
    if rented is None:
        return ["  The job names no machines."]
    lines = [f"  machines: {machines(recommendation.config)} ({size_words(rented)} each)"]
    if rented.helpers:
        lines.append(f"  beside them, not launched by this file: {', '.join(rented.helpers)}")
    return lines
