"""A job: everything that a job file says, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from trimtuner.decisions.stopping import Stop
from trimtuner.engines.local.settings import LocalSettings
from trimtuner.engines.protocol import Settings
from trimtuner.jobs.commands import Word, written
from trimtuner.problem.axes import Configuration
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import Constraint, Goal, Problem
from trimtuner.problem.space import Space
from trimtuner.problem.vms import VM
from trimtuner.records import Address
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recipes import METHODS

DEFAULT_TIMEOUT_SECONDS = 3600.0  # what is reserved for a trial must end somewhere, also when nobody says where
GIB = 2**30

Json: TypeAlias = "str | bool | int | float | list[Json] | dict[str, Json] | None"
EngineType: TypeAlias = Literal["local", "ray", "aws", "replay"]
Memory: TypeAlias = int | Literal["vm"]  # bytes, or that of the VM type


@dataclass(frozen=True)
class Budget:
    """What the search may use; None is no limit."""

    money: float | None = None  # USD
    seconds: float | None = None
    trials: int | None = None


@dataclass(frozen=True)
class Run:
    """How one trial is run."""

    command: tuple[str, ...]  # as written, with its placeholders
    working_directory: Path
    environment: Mapping[str, str]
    secrets: tuple[str, ...]  # names of variables of our environment, handed on and written nowhere
    timeout: float  # seconds
    memory: Memory | None
    retries: Mapping[str, int]  # for each kind of failure
    metrics_file: str | None  # in the working directory; may hold {trial}; None: ``::metric`` lines of the output
    machine_facts: Mapping[str, Mapping[str, Value]]  # of each VM type, for the placeholders
    conditional: frozenset[str]  # parameters that have no value in some configurations

    def command_for(
        self, config: Mapping[str, Value], fraction: float, trial: int, snapshots: Sequence[float] = ()
    ) -> tuple[str, ...]:
        """The words to run. A word with a placeholder that has no value (an inactive parameter) is left out."""
        values = {**self.machine_facts.get(str(config.get("vm_type")), {}), **config}
        texts = {name: written(value) for name, value in values.items()}
        texts |= {"fraction": written(fraction), "trial": written(trial)}
        if snapshots:
            texts["snapshots"] = ",".join(written(share) for share in snapshots)
        words = (Word.parse(word).filled(texts) for word in self.command)
        return tuple(word for word in words if word is not None)

    def metrics_file_for(self, trial: int) -> str | None:
        """Where this trial writes its metrics, if not to its output."""
        return None if self.metrics_file is None else Word.parse(self.metrics_file).filled({"trial": written(trial)})


@dataclass(frozen=True)
class EngineChoice:
    """Where trials run, and how many side by side."""

    type: EngineType = "local"
    parallel: int = 1
    settings: Settings = field(default_factory=LocalSettings)


@dataclass(frozen=True)
class Search:
    """Who decides what to test."""

    method: str = "trimtuner"
    options: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    stop: Stop | None = None  # besides the budget
    learn_from: tuple[str, ...] = ()  # job files of earlier studies, as written

    @property
    def recipe(self) -> Recipe:
        """The method's recipe, with the stop rules of the job beside its own."""
        recipe = METHODS[self.method].recipe(self.options)
        return recipe if self.stop is None else recipe.but(stop=recipe.stop | self.stop)


@dataclass(frozen=True)
class Job:
    """A job file, read and checked."""

    name: str
    path: Path
    space: Space
    configs: tuple[Configuration, ...] | None  # where the job lists them one by one
    goal: Goal
    constraints: tuple[Constraint, ...]
    budget: Budget
    run: Run
    engine: EngineChoice
    search: Search
    storage: Path | Address

    def vm_of(self, config: Mapping[str, Value]) -> VM | None:
        """The VM type that the configuration names, where the job says what it is."""
        cloud = self.space.cloud
        return None if cloud is None else cloud.vms.get(str(config.get("vm_type")))

    def memory_bytes_for(self, config: Mapping[str, Value]) -> int | None:
        """The memory that a trial may use: as written, or that of one VM of its type."""
        if self.run.memory != "vm":
            return self.run.memory
        vm = self.vm_of(config)
        return None if vm is None else int(vm.memory_gib * GIB)


def problem_of(job: Job) -> Problem:
    """The problem that the job states; its budget is the money."""
    is_maximized = job.goal.direction == "maximize"
    return Problem.of(
        job.space,
        maximize=job.goal.metric if is_maximized else None,
        minimize=job.goal.against if is_maximized else job.goal.metric,
        constraints=[constraint.text for constraint in job.constraints],
        budget=job.budget.money,
    )
